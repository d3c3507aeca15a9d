//! Arguments of a call, read leniently where the meaning is clear and refused helpfully otherwise.
//!
//! Hosts send numbers as strings and lists as strings that hold JSON; both are taken. An unknown
//! argument is refused, so that a misspelt one is never silently lost.

use alloc::borrow::ToOwned;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use serde_json::{Map, Value};

use super::Output;
use crate::address::split_cc;
use crate::lang::Lang;

/// An argument: its name, other names it is taken under, what it is, and an example value as JSON.
#[derive(Clone, Copy, Debug)]
pub(super) struct Arg {
    pub(super) name: &'static str,
    pub(super) aliases: &'static [&'static str],
    pub(super) zh: &'static str,
    pub(super) en: &'static str,
    pub(super) example: &'static str,
}

impl Arg {
    /// An argument without other names.
    pub(super) const fn new(
        name: &'static str,
        zh: &'static str,
        en: &'static str,
        example: &'static str,
    ) -> Self {
        Self { name, aliases: &[], zh, en, example }
    }

    /// The same under further names.
    pub(super) const fn or(mut self, aliases: &'static [&'static str]) -> Self {
        self.aliases = aliases;
        self
    }

    fn answers_to(&self, name: &str) -> bool {
        self.name == name || self.aliases.contains(&name)
    }
}

/// The arguments of one call.
#[derive(Clone, Copy, Debug)]
pub(super) struct Args<'a> {
    tool: &'static str,
    map: &'a Map<String, Value>,
    pub(super) lang: Lang,
    known: &'static [Arg],
}

impl<'a> Args<'a> {
    pub(super) const fn new(
        tool: &'static str,
        map: &'a Map<String, Value>,
        lang: Lang,
        known: &'static [Arg],
    ) -> Self {
        Self { tool, map, lang, known }
    }

    /// Refuses arguments that the tool does not have.
    pub(super) fn check_names(&self) -> Result<(), Output> {
        let unknown = self.map.keys().find(|key| !self.known.iter().any(|a| a.answers_to(key)));
        let Some(unknown) = unknown else { return Ok(()) };
        let shown: String = unknown.chars().take(64).collect();
        let names: Vec<&str> = self.known.iter().map(|arg| arg.name).collect();
        let (tool, names) = (self.tool, names.join(", "));
        Err(self.error(match self.lang {
            Lang::Zh => format!("{tool} 没有参数 {shown:?}。可用的参数：{names}。"),
            Lang::En => format!("{tool} has no argument {shown:?}. Its arguments: {names}."),
        }))
    }

    /// The value of an argument under any of its names; `null` and empty texts count as absent.
    fn value(&self, arg: &Arg) -> Option<&'a Value> {
        let names = core::iter::once(&arg.name).chain(arg.aliases);
        names.filter_map(|name| self.map.get(*name)).find(|value| match value {
            Value::Null => false,
            Value::String(text) => !text.trim().is_empty(),
            _ => true,
        })
    }

    /// A text, trimmed; absent is `None`.
    pub(super) fn text(&self, arg: &Arg) -> Result<Option<String>, Output> {
        Ok(self.verbatim(arg)?.map(|text| text.trim().to_owned()))
    }

    /// A text as it is; absent is `None`.
    pub(super) fn verbatim(&self, arg: &Arg) -> Result<Option<String>, Output> {
        match self.value(arg) {
            None => Ok(None),
            Some(Value::String(text)) => Ok(Some(text.clone())),
            Some(Value::Number(number)) => Ok(Some(format!("{number}"))),
            Some(Value::Bool(value)) => Ok(Some(format!("{value}"))),
            Some(other) => Err(self.wrong(arg, Some(other))),
        }
    }

    /// A text that must be there, trimmed.
    pub(super) fn required(&self, arg: &Arg) -> Result<String, Output> {
        self.text(arg)?.ok_or_else(|| self.wrong(arg, None))
    }

    /// As [`Args::required`], as it is.
    pub(super) fn required_verbatim(&self, arg: &Arg) -> Result<String, Output> {
        self.verbatim(arg)?.ok_or_else(|| self.wrong(arg, None))
    }

    /// A whole number from `least` to `most`; absent is `default`.
    pub(super) fn integer(
        &self,
        arg: &Arg,
        (least, most): (u64, u64),
        default: u64,
    ) -> Result<u64, Output> {
        let Some(value) = self.value(arg) else { return Ok(default) };
        let number = match value {
            Value::Number(number) => number.as_u64().or_else(|| whole(number.as_f64()?)),
            Value::String(text) => text.trim().parse().ok(),
            _ => None,
        };
        number
            .filter(|number| (least..=most).contains(number))
            .ok_or_else(|| self.wrong(arg, Some(value)))
    }

    /// Several texts: a list, a text that holds a JSON list, or one text split at commas,
    /// semicolons and white space.
    pub(super) fn list(&self, arg: &Arg) -> Result<Vec<String>, Output> {
        let Some(value) = self.value(arg) else { return Ok(Vec::new()) };
        let texts = |items: &[Value]| -> Option<Vec<String>> {
            let text = |item: &Value| match item {
                Value::String(text) => Some(text.trim().to_owned()),
                Value::Number(number) => Some(format!("{number}")),
                _ => None,
            };
            items.iter().map(text).collect()
        };
        let found = match value {
            Value::Array(items) => texts(items),
            Value::String(text) if text.trim_start().starts_with('[') => {
                serde_json::from_str::<Vec<Value>>(text).ok().and_then(|items| texts(&items))
            }
            Value::String(text) => Some(split_cc(text).map(ToOwned::to_owned).collect()),
            Value::Number(number) => Some(alloc::vec![format!("{number}")]),
            _ => None,
        };
        let found = found.ok_or_else(|| self.wrong(arg, Some(value)))?;
        Ok(found.into_iter().filter(|text| !text.is_empty()).collect())
    }

    /// The error for a missing (`None`) or unusable value.
    pub(super) fn wrong(&self, arg: &Arg, value: Option<&Value>) -> Output {
        let Arg { name, example, .. } = arg;
        let what = self.lang.pick(arg.zh, arg.en);
        let got = value.map(shown);
        let tool = self.tool;
        self.error(match (self.lang, got) {
            (Lang::Zh, None) => {
                format!("{tool} 缺少参数 \"{name}\"：需要{what}。例如 {{\"{name}\": {example}}}")
            }
            (Lang::Zh, Some(got)) => format!(
                "{tool} 的参数 \"{name}\" 不对：需要{what}，收到 {got}。\
                 例如 {{\"{name}\": {example}}}"
            ),
            (Lang::En, None) => format!(
                "{tool}: argument \"{name}\" is missing; expected {what}. \
                 Example: {{\"{name}\": {example}}}"
            ),
            (Lang::En, Some(got)) => format!(
                "{tool}: argument \"{name}\" is wrong; expected {what}, got {got}. \
                 Example: {{\"{name}\": {example}}}"
            ),
        })
    }

    /// An error of this call.
    pub(super) fn error(&self, text: String) -> Output {
        Output::new(text, true, self.lang)
    }
}

/// A double that is a whole number, as some hosts send `5.0`.
fn whole(number: f64) -> Option<u64> {
    let text = format!("{number}");
    text.parse().ok()
}

/// A value as an error shows it: its JSON, cut.
fn shown(value: &Value) -> String {
    let full = format!("{value}");
    let mut cut: String = full.chars().take(60).collect();
    if cut.len() < full.len() {
        cut.push('…');
    }
    cut
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    const LIMIT: Arg = Arg::new("limit", "1 到 9 的整数", "an integer from 1 to 9", "5");
    const FILE: Arg = Arg::new("file_path", "路径", "a path", "\"/a\"").or(&["path"]);
    const IDS: Arg = Arg::new("ids", "id", "ids", "\"a\"");

    fn with<T>(value: Value, test: impl Fn(&Args<'_>) -> T) -> T {
        let Value::Object(map) = value else { panic!("an object") };
        test(&Args::new("t", &map, Lang::En, &[LIMIT, FILE, IDS]))
    }

    #[test]
    fn numbers_may_be_texts_and_are_held_to_their_range() {
        for (value, expected) in [
            (json!({}), Ok(5)),
            (json!({"limit":null}), Ok(5)),
            (json!({"limit":1}), Ok(1)),
            (json!({"limit":" 9 "}), Ok(9)),
            (json!({"limit":3.0}), Ok(3)),
            (json!({"limit":0}), Err(())),
            (json!({"limit":10}), Err(())),
            (json!({"limit":2.5}), Err(())),
            (json!({"limit":-1}), Err(())),
            (json!({"limit":[1]}), Err(())),
        ] {
            let found = with(value.clone(), |args| args.integer(&LIMIT, (1, 9), 5));
            assert_eq!(found.map_err(|_| ()), expected, "{value}");
        }
    }

    #[test]
    fn lists_are_read_in_every_spelling() {
        for value in [json!(["a", "b"]), json!("[\"a\",\"b\"]"), json!("a, b"), json!("a；b")] {
            let found = with(json!({"ids":value}), |args| args.list(&IDS)).unwrap();
            assert_eq!(found, ["a", "b"]);
        }
        assert!(with(json!({"ids":{"a":1}}), |args| args.list(&IDS)).is_err());
        assert!(with(json!({"ids":"[1,{}]"}), |args| args.list(&IDS)).is_err());
    }

    #[test]
    fn an_error_names_argument_expectation_and_example() {
        let error = with(json!({"file_path":{"a":1}}), |args| args.required(&FILE)).unwrap_err();
        assert!(error.is_error);
        assert_eq!(
            error.text,
            "t: argument \"file_path\" is wrong; expected a path, got {\"a\":1}. \
             Example: {\"file_path\": \"/a\"}"
        );
        let error = with(json!({"file_path":" "}), |args| args.required(&FILE)).unwrap_err();
        assert!(error.text.contains("is missing"), "{}", error.text);
        let error = with(json!({"fil_path":"x"}), |args| args.check_names()).unwrap_err();
        assert!(error.text.contains("limit, file_path, ids"), "{}", error.text);
    }

    #[test]
    fn an_alias_is_the_same_argument() {
        let found = with(json!({"path":"/x"}), |args| args.check_names().and(args.required(&FILE)));
        assert_eq!(found.unwrap(), "/x");
    }
}
