//! The command line. It is written by the installer into `hooks.json`, so nothing on it may make
//! the hook fail: what is not understood is reported and left out.

use std::ffi::OsString;

use lexopt::Arg;
use zcode_mail_core::config::Settings;
use zcode_mail_core::hook::answer::Dialect;

const HELP: &str = "\
zcode-mail-hook: asks a human by mail before ZCode runs a dangerous tool.

Usage: zcode-mail-hook [--dialect both|structured|flat]

Reads one hook event on stdin and writes the answer on stdout: one JSON line, or nothing for no
opinion. ZCode runs it; see the hooks.json that `zcode-mail plugin write` makes.

Options:
  --dialect D   both (default): ZCode 3.14 and later; structured: ZCode 3.8 and older;
                flat: the original form. Else AGENTMAIL_ZCODE_DIALECT.
  --version     Print the version.
  --help        Print this text.

Environment: AGENTMAIL_GATEWAY_URL, AGENTMAIL_AGENT_NAME, AGENTMAIL_AGENT_KEY or
AGENTMAIL_AGENT_SECRET, AGENTMAIL_SESSION_ID, AGENTMAIL_PERMISSION_MODE,
AGENTMAIL_PERMISSION_WAIT_MS, AGENTMAIL_LANG, AGENTMAIL_CA_FILE, AGENTMAIL_PROXY,
AGENTMAIL_CONFIG_DIR, AGENTMAIL_ZCODE_GRANTS_FILE.
";

/// What the command line asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Run {
    /// Answer an event.
    Hook(Args),
    /// Print this text.
    Print(String),
}

/// The arguments of a hook.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Args {
    /// `--dialect`.
    pub(crate) dialect: Option<Dialect>,
    /// What was not understood, one line each.
    pub(crate) warnings: Vec<String>,
}

impl Args {
    /// The dialect to answer in: the argument, else `AGENTMAIL_ZCODE_DIALECT`, else the default.
    #[must_use]
    pub(crate) fn dialect(&self, settings: &Settings) -> Dialect {
        self.dialect
            .or_else(|| {
                let name = settings.dialect.as_deref()?;
                let dialect = Dialect::parse(name);
                if dialect.is_none() {
                    crate::log(&format!(
                        "AGENTMAIL_ZCODE_DIALECT={name} is no dialect; using both"
                    ));
                }
                dialect
            })
            .unwrap_or_default()
    }
}

/// Reads the command line.
#[must_use]
pub(crate) fn parse(args: impl IntoIterator<Item = OsString>) -> Run {
    let mut found = Args::default();
    let mut parser = lexopt::Parser::from_args(args);
    loop {
        match parser.next() {
            Ok(None) => return Run::Hook(found),
            Ok(Some(Arg::Long("dialect"))) => {
                let name = parser.value().unwrap_or_default();
                found.dialect = name.to_str().and_then(Dialect::parse);
                if found.dialect.is_none() {
                    let name = name.to_string_lossy();
                    found.warnings.push(format!("--dialect {name} is no dialect; using both"));
                }
            }
            Ok(Some(Arg::Long("version") | Arg::Short('V'))) => {
                return Run::Print(format!("zcode-mail-hook {}\n", env!("CARGO_PKG_VERSION")));
            }
            Ok(Some(Arg::Long("help") | Arg::Short('h'))) => return Run::Print(HELP.to_owned()),
            Ok(Some(Arg::Value(value))) => {
                let value = value.to_string_lossy();
                found.warnings.push(format!("ignoring the argument {value}"));
            }
            Ok(Some(Arg::Long(name))) => {
                found.warnings.push(format!("ignoring the argument --{name}"));
                // A value glued to an unknown option is part of it.
                let _ = parser.optional_value();
            }
            Ok(Some(Arg::Short(name))) => {
                found.warnings.push(format!("ignoring the argument -{name}"));
                let _ = parser.optional_value();
            }
            Err(error) => found.warnings.push(format!("ignoring an argument: {error}")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(args: &[&str]) -> Run {
        parse(args.iter().map(OsString::from))
    }

    #[test]
    fn the_dialect_is_an_argument_then_a_setting_then_both() {
        let settings = |value: &'static str| {
            Settings::from_env(|name| (name == "AGENTMAIL_ZCODE_DIALECT").then(|| value.to_owned()))
        };
        for (args, env, expected) in [
            (&["--dialect", "flat"][..], "structured", Dialect::Flat),
            (&["--dialect=structured"], "", Dialect::Structured),
            (&[], "structured", Dialect::Structured),
            (&[], "", Dialect::Both),
            (&[], "nonsense", Dialect::Both),
            (&["--dialect", "nonsense"], "", Dialect::Both),
            (&["--dialect"], "", Dialect::Both),
        ] {
            let Run::Hook(found) = run(args) else { panic!("{args:?}") };
            assert_eq!(found.dialect(&settings(env)), expected, "{args:?} {env}");
        }
    }

    #[test]
    fn nothing_on_the_command_line_stops_the_hook() {
        for args in [&["--wat"][..], &["--wat=1", "-x", "y", "--dialect", "both"], &["", "-"]] {
            let Run::Hook(found) = run(args) else { panic!("{args:?}") };
            assert!(!found.warnings.is_empty(), "{args:?}");
        }
        assert!(matches!(run(&["--help"]), Run::Print(_)));
        assert!(matches!(run(&["--version"]), Run::Print(_)));
    }
}
