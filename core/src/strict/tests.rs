use super::*;
use alloc::string::ToString as _;

fn fields(body: &str) -> Fields {
    Fields::parse(body.as_bytes()).unwrap()
}

#[test]
fn the_error_names_field_expected_and_received_type() {
    let error = fields(r#"{"workspaces":["/a"]}"#).opt_object_array("workspaces").unwrap_err();
    assert_eq!(error.to_string(), "字段 \"workspaces[0]\" 类型不对：期望 object，收到 string");
    assert_eq!(
        error.text(Lang::En),
        "field \"workspaces[0]\" has the wrong type: expected object, received string"
    );
    let error = fields(r#"{"workspaces":{}}"#).opt_object_array("workspaces").unwrap_err();
    assert_eq!(error.to_string(), "字段 \"workspaces\" 类型不对：期望 array，收到 object");
}

#[test]
fn each_type_is_told_from_the_others() {
    let samples = ["null", "true", "1", "1.5", "\"x\"", "[]", "{}", "-9223372036854775808", "1e2"];
    for sample in samples {
        let body = alloc::format!("{{\"f\":{sample}}}");
        let take = || fields(&body);
        assert_eq!(take().string("f").is_ok(), sample == "\"x\"", "{sample}");
        let absent = sample == "null";
        assert_eq!(take().opt_bool("f").is_ok(), absent || sample == "true", "{sample}");
        let whole = ["1", "-9223372036854775808"].contains(&sample);
        assert_eq!(take().opt_int("f").is_ok(), absent || whole, "{sample}");
        assert_eq!(take().opt_string_array("f").is_ok(), absent || sample == "[]", "{sample}");
        assert_eq!(take().opt_object("f").is_ok(), absent || sample == "{}", "{sample}");
    }
    assert!(fields(r#"{"f":18446744073709551615}"#).opt_int("f").is_err());
}

#[test]
fn a_required_field_may_be_neither_absent_nor_null() {
    assert_eq!(fields("{}").string("to").unwrap_err().to_string(), "缺少字段 \"to\"：期望 string");
    assert_eq!(
        fields(r#"{"to":null}"#).string("to").unwrap_err().to_string(),
        "字段 \"to\" 类型不对：期望 string，收到 null"
    );
}

#[test]
fn unknown_fields_are_listed_with_their_paths() {
    let mut outer = fields(r#"{"a":"x","b":1,"o":{"c":1,"d":2},"e":null}"#);
    outer.string("a").unwrap();
    let mut inner = outer.opt_object("o").unwrap().unwrap();
    inner.opt_int("c").unwrap();
    assert_eq!(inner.unknown(), ["o.d"]);
    assert_eq!(outer.finish().unwrap_err().to_string(), "未知字段 \"b\", \"e\"");
}

#[test]
fn an_error_stays_short_whatever_the_sender_calls_a_field() {
    let long = "k".repeat(PATH_LIMIT);
    let error = fields(&alloc::format!(r#"{{"{long}":1,"{long}2":1,"a\u001bb":1}}"#));
    let expected = alloc::format!("未知字段 \"{long}\", \"{long}…\", \"a\u{fffd}b\"");
    assert_eq!(error.finish().unwrap_err().to_string(), expected);
    let body = |count: usize| {
        let members: Vec<_> = (0..count).map(|nth| alloc::format!("\"f{nth}\":1")).collect();
        fields(&alloc::format!("{{{}}}", members.join(","))).finish().unwrap_err().to_string()
    };
    assert!(body(NAMED_LIMIT).ends_with("\"f7\""));
    assert!(body(NAMED_LIMIT + 1).ends_with("\"f7\" (+1)"));
}

#[test]
fn documents_that_are_no_single_object_are_refused() {
    assert!(matches!(Fields::parse(b"{} {}"), Err(Invalid::Syntax { .. })));
    assert!(matches!(Fields::parse(b""), Err(Invalid::Syntax { .. })));
    assert!(matches!(
        Fields::parse(b"[]"),
        Err(Invalid::NotAnObject { received: JsonType::Array })
    ));
    assert!(matches!(Fields::parse(br#"{"a":1,"a":1}"#), Err(Invalid::Duplicate { .. })));
}
