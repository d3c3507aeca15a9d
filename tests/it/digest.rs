//! The digest of a call: golden vectors made by an independent implementation of the documented
//! encoding, and what a difference anywhere does.

use proptest::collection::vec;
use proptest::prelude::*;
use serde_json::Value as Json;
use zcode_mail_core::digest::{Call, CallDigest, Operand, sha256};
use zcode_mail_core::exact::Value;

#[test]
fn golden_vectors_hold() {
    let vectors = include_str!("../fixtures/digest/golden.jsonl");
    for line in vectors.lines() {
        let vector: Json = serde_json::from_str(line).unwrap();
        let operands: Vec<Operand> = vector["operands"]
            .as_array()
            .unwrap()
            .iter()
            .map(|operand| Operand {
                path: operand["path"].as_str().unwrap().into(),
                sha256: operand["content"].as_str().map(|content| sha256(content.as_bytes())),
            })
            .collect();
        let digest = CallDigest::of(&Call {
            tool: vector["tool"].as_str().unwrap(),
            input: &Value::parse(vector["input"].as_str().unwrap()).unwrap(),
            cwd: vector["cwd"].as_str().unwrap(),
            session: vector["session"].as_str(),
            agent: vector["agent"].as_str(),
            operands: &operands,
        });
        assert_eq!(digest.hex(), vector["sha256"].as_str().unwrap(), "{line}");
        assert_eq!(digest.code(), vector["code"].as_str().unwrap(), "{line}");
    }
    assert_eq!(vectors.lines().count(), 7);
}

#[derive(Clone, Debug, PartialEq)]
struct Owned {
    tool: String,
    input: Value,
    cwd: String,
    session: Option<String>,
    agent: Option<String>,
    operands: Vec<Operand>,
}

impl Owned {
    fn digest(&self) -> CallDigest {
        CallDigest::of(&Call {
            tool: &self.tool,
            input: &self.input,
            cwd: &self.cwd,
            session: self.session.as_deref(),
            agent: self.agent.as_deref(),
            operands: &self.operands,
        })
    }
}

/// Few and short texts, so that two calls often differ only in how the parts are cut.
fn calls() -> impl Strategy<Value = Owned> {
    let text = || "[ab]{0,3}";
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::Bool),
        "[12]{1,3}".prop_map(Value::Number),
        text().prop_map(Value::Text),
    ];
    let input = leaf.prop_recursive(3, 12, 3, move |inner| {
        prop_oneof![
            vec(inner.clone(), 0..3).prop_map(Value::List),
            vec(("[ab]{0,2}", inner), 0..3).prop_map(Value::object),
        ]
    });
    let operand = ("[ab]{0,3}", proptest::option::of(0_u8..2))
        .prop_map(|(path, fill)| Operand { path, sha256: fill.map(|fill| [fill; 32]) });
    let some = proptest::option::of(text());
    (text(), input, text(), some.clone(), some, vec(operand, 0..3)).prop_map(
        |(tool, input, cwd, session, agent, operands)| Owned {
            tool,
            input,
            cwd,
            session,
            agent,
            operands,
        },
    )
}

proptest! {
    #[test]
    fn two_calls_have_the_same_digest_only_if_they_are_the_same(a in calls(), b in calls()) {
        prop_assert_eq!(a == b, a.digest() == b.digest());
    }

    #[test]
    fn a_line_reads_back_as_its_digest(bytes in any::<[u8; 32]>(), before in "[^\n]{0,40}") {
        let digest = CallDigest(bytes);
        prop_assert_eq!(CallDigest::from_line(&digest.line()), Some(digest));
        let context = format!("| {before}\n{}\nbound", digest.line());
        prop_assert_eq!(CallDigest::find(&context), Ok(Some(digest)));
    }

    #[test]
    fn garbage_is_no_digest_line(text in ".{0,120}") {
        prop_assert_eq!(CallDigest::from_line(&text), None);
    }

    #[test]
    fn canonical_json_reads_back_as_the_value(call in calls()) {
        prop_assert_eq!(Value::parse(&call.input.to_json()).unwrap(), call.input);
    }
}
