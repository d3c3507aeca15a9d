use alloc::format;
use alloc::string::ToString as _;

use super::*;

/// 2026-09-02T11:41:16.744Z
const NOW: UnixMillis = UnixMillis(1_788_349_276_744);

fn after(span: i64) -> UnixMillis {
    UnixMillis(NOW.0 + span)
}

fn one() -> Grants {
    let mut grants = Grants::new();
    assert!(grants.add("s", "Bash", NOW));
    grants
}

#[test]
fn session_and_tool_are_compared_byte_by_byte() {
    let grants = one();
    assert!(grants.covers("s", "Bash", NOW));
    for (session, tool) in
        [("s", "bash"), ("S", "Bash"), ("s ", "Bash"), ("s", "Write"), ("", "Bash"), ("s", "*")]
    {
        assert!(!grants.covers(session, tool, NOW), "{session:?} {tool:?}");
    }
}

#[test]
fn an_unused_grant_ends_after_seven_days_and_use_prolongs_it() {
    let mut grants = one();
    assert!(grants.covers("s", "Bash", after(UNUSED_MS)));
    assert!(!grants.covers("s", "Bash", after(UNUSED_MS + 1)));
    assert!(!grants.touch("s", "Bash", after(UNUSED_MS + 1)), "an ended grant stays ended");
    assert!(!grants.touch("s", "Bash", after(TOUCH_MS - 1)));
    assert!(grants.touch("s", "Bash", after(TOUCH_MS)));
    assert!(grants.covers("s", "Bash", after(TOUCH_MS + UNUSED_MS)));
    assert_eq!(grants.prune(after(TOUCH_MS + UNUSED_MS)), 0);
    assert_eq!(grants.prune(after(TOUCH_MS + UNUSED_MS + 1)), 1);
    assert!(grants.is_empty());
}

#[test]
fn a_clock_set_back_by_hours_keeps_grants_and_a_far_future_stamp_gives_none() {
    let grants = one();
    assert!(grants.covers("s", "Bash", after(-2 * 60 * 60 * 1000)));
    assert!(grants.covers("s", "Bash", after(-SKEW_MS)));
    assert!(!grants.covers("s", "Bash", after(-SKEW_MS - 1)));
    let mut extreme = Grants::new();
    for now in [i64::MIN, i64::MAX] {
        assert!(extreme.add("s", "Bash", UnixMillis(now)));
        assert_eq!(Grants::parse(extreme.to_json().as_bytes()), Ok(extreme.clone()));
    }
}

#[test]
fn the_least_recently_used_is_pushed_out_above_the_limit() {
    let mut grants = Grants::new();
    for nth in 0..LIMIT {
        grants.add(&format!("s{nth}"), "Bash", after(nth as i64));
    }
    assert_eq!(grants.len(), LIMIT);
    assert!(grants.touch("s0", "Bash", after(TOUCH_MS)));
    grants.add("new", "Bash", after(TOUCH_MS));
    assert_eq!(grants.len(), LIMIT);
    assert!(grants.covers("s0", "Bash", after(TOUCH_MS)));
    assert!(!grants.covers("s1", "Bash", after(TOUCH_MS)));
    assert!(grants.covers("s2", "Bash", after(TOUCH_MS)));
}

#[test]
fn a_new_grant_is_never_the_one_pushed_out() {
    let mut grants = Grants::new();
    for nth in 0..LIMIT {
        grants.add(&format!("s{nth}"), "Bash", NOW);
    }
    grants.add("a", "Bash", NOW);
    assert!(grants.covers("a", "Bash", NOW));
    assert_eq!(grants.len(), LIMIT);
}

#[test]
fn names_have_two_limits() {
    let mut grants = Grants::new();
    let longest = "x".repeat(NAME_LIMIT);
    assert!(grants.add(&longest, "Bash", NOW));
    assert!(!grants.add(&format!("{longest}x"), "Bash", NOW));
    assert!(!grants.add("", "Bash", NOW));
    assert!(!grants.add("s", "", NOW));
    assert_eq!(grants.len(), 1);
}

#[test]
fn a_full_set_of_the_worst_names_still_fits_the_file() {
    let mut grants = Grants::new();
    for nth in 0..LIMIT {
        let session = format!("{nth:04}{}", "\u{1}".repeat(NAME_LIMIT - 4));
        grants.add(&session, &"\u{1}".repeat(NAME_LIMIT), NOW);
    }
    let file = grants.to_json();
    assert_eq!(Grants::parse(file.as_bytes()), Ok(grants));
    assert_eq!(Grants::parse(" ".repeat(FILE_LIMIT + 1).as_bytes()), Err(BadGrants::TooLarge));
}

#[test]
fn the_file_is_readable_and_reads_back() {
    let file = one().to_json();
    let expected = r#"{
  "version": 1,
  "grants": [
    {
      "session": "s",
      "tool": "Bash",
      "granted_at": "2026-09-02T11:41:16.744Z",
      "used_at": "2026-09-02T11:41:16.744Z"
    }
  ]
}
"#;
    assert_eq!(file, expected);
    assert_eq!(Grants::parse(file.as_bytes()), Ok(one()));
}

#[test]
fn a_file_that_is_not_exactly_the_format_gives_no_grants() {
    let entry = r#"{"session":"s","tool":"Bash","granted_at":"2026-09-02T00:00:00Z","used_at":"2026-09-02T00:00:00Z"}"#;
    let file = |entry: &str| format!(r#"{{"version":1,"grants":[{entry}]}}"#);
    assert_eq!(Grants::parse(file(entry).as_bytes()).map(|grants| grants.len()), Ok(1));
    for bad in [
        String::new(),
        "null".into(),
        "[]".into(),
        "{}".into(),
        r#"{"version":0,"grants":[]}"#.into(),
        r#"{"version":"1","grants":[]}"#.into(),
        r#"{"version":1,"grants":{}}"#.into(),
        r#"{"version":1,"grants":"*"}"#.into(),
        r#"{"version":1,"grants":["*"]}"#.into(),
        r#"{"version":1,"grants":[],"more":1}"#.into(),
        file(&entry.replace(r#""tool":"Bash""#, r#""tool":["Bash"]"#)),
        file(&entry.replace(r#""tool":"Bash""#, r#""tool":"""#)),
        file(&entry.replace(r#""tool":"Bash","#, "")),
        file(&entry.replace(r#""tool":"Bash""#, r#""tool":"Bash","prefix":"ls""#)),
        file(&entry.replace(r#""tool":"Bash""#, r#""tool":"Bash","tool":"Write""#)),
        file(&entry.replace("2026-09-02T00:00:00Z", "yesterday")),
        file(&entry.replace("\"2026-09-02T00:00:00Z\"", "1788307200")),
        file(entry)[..90].into(),
        file(entry) + "x",
    ] {
        let result = Grants::parse(bad.as_bytes());
        assert!(matches!(result, Err(BadGrants::Malformed(_))), "{bad} {result:?}");
    }
    let later = r#"{"version":2,"grants":[{"session":"s","prefix":"ls"}]}"#;
    assert_eq!(Grants::parse(later.as_bytes()), Err(BadGrants::LaterVersion(2)));
    let error = Grants::parse(br#"{"version":1,"grants":["*"]}"#).unwrap_err();
    assert_eq!(
        error.to_string(),
        "the grants file is damaged: field \"grants[0]\" has the wrong type: \
         expected object, received string"
    );
}

#[test]
fn a_reopened_session_keeps_nothing() {
    let mut grants = one();
    grants.add("s", "Write", NOW);
    grants.add("t", "Bash", NOW);
    assert_eq!(grants.revoke_session("s"), 2);
    assert!(grants.covers("t", "Bash", NOW) && !grants.covers("s", "Bash", NOW));
    assert!(grants.revoke("t", "Bash"));
    assert!(!grants.revoke("t", "Bash"));
}

#[test]
fn merging_keeps_both_and_the_later_stamps() {
    let mut left = one();
    left.add("l", "Bash", NOW);
    let mut right = Grants::new();
    right.add("r", "Bash", NOW);
    right.add("s", "Bash", after(TOUCH_MS));
    left.merge(&right);
    assert_eq!(left.len(), 3);
    let used = left.iter().find(|grant| grant.session == "s").unwrap().used_at;
    assert_eq!(used, after(TOUCH_MS));
}
