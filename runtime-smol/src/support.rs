//! `zcode-mail support`: one file that helps somebody else to help, without anybody's secrets.
//!
//! What goes in: versions, the doctor's findings, the shape of ZCode's configuration, our own plugin
//! files, names and modes of state files, numbers of rows in the gateway's database. What never goes
//! in: keys, passwords, mail, subjects, addresses, questions, commands, decisions, file contents of
//! others. Values are left out unless they are on a list; nothing is searched for and replaced. In the
//! end the text is compared with every secret that this process knows, and if one is in it after
//! all, there is no bundle.

use std::collections::BTreeMap;
use std::env;
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};

use clap::Args;
use jiff::Timestamp;
use rusqlite::{Connection, OpenFlags};
use serde_json::{Map, Value, json};
use zcode_mail_core::config::Settings;

use crate::doctor::{self, DoctorArgs};
use crate::durable;
use crate::gateway::DATABASE_NAME;
use crate::install::config_file::ConfigFile;
use crate::install::paths::Paths;
use crate::install::{Where, edit, snapshot, version};

/// Variables whose values say nothing about anybody.
const PLAIN: [&str; 6] = [
    "AGENTMAIL_LANG",
    "AGENTMAIL_LOG",
    "AGENTMAIL_PERMISSION_MODE",
    "AGENTMAIL_PERMISSION_WAIT_MS",
    "AGENTMAIL_ZCODE_DIALECT",
    "LANG",
];
/// Prefixes of variables whose presence matters.
const NAMED: [&str; 5] = ["AGENTMAIL_", "ZCODE_", "HTTP", "ALL_PROXY", "NO_PROXY"];
/// Keys of ZCode's configuration whose values are shown.
const SHOWN: [&str; 5] = ["enabled", "dirs", "enabledPlugins", "timeoutMs", "maxOutputBytes"];
/// Tables of the gateway whose rows are counted.
const TABLES: [&str; 8] =
    ["users", "agents", "keys", "sessions", "mails", "permission_requests", "events", "audit"];

/// `zcode-mail support`
#[derive(Clone, Debug, Default, Args)]
pub struct SupportArgs {
    /// Where everything is.
    #[command(flatten)]
    pub place: Where,
    /// The gateway's data folder, if it runs here.
    #[arg(long, value_name = "DIR")]
    pub data: Option<PathBuf>,
    /// Where to write the bundle [default: zcode-mail-support-TIME.json here].
    #[arg(long, short, value_name = "FILE")]
    pub output: Option<PathBuf>,
}

/// Writes the bundle and prints its path.
///
/// # Errors
///
/// Says what stands in the way.
pub fn run(args: &SupportArgs, out: &mut dyn Write) -> Result<(), String> {
    let env: BTreeMap<String, String> = env::vars_os()
        .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)))
        .collect();
    let now = Timestamp::now();
    let text = format!("{:#}\n", bundle(args, &env, now)?);
    if let Some(name) = leaked(&text, &env) {
        return Err(format!("the bundle would hold the value of {name}, so none was written"));
    }
    let name = format!("zcode-mail-support-{}.json", now.strftime("%Y%m%dT%H%M%SZ"));
    let path = args.output.clone().unwrap_or_else(|| PathBuf::from(name));
    let path = std::path::absolute(&path).map_err(|e| format!("{}: {e}", path.display()))?;
    durable::write(&path, text.as_bytes(), durable::PRIVATE_FILE)
        .map_err(|error| format!("{}: {error}", path.display()))?;
    writeln!(out, "{}", path.display()).map_err(|error| format!("standard output: {error}"))
}

fn bundle(
    args: &SupportArgs,
    env: &BTreeMap<String, String>,
    now: Timestamp,
) -> Result<Value, String> {
    let paths = Paths::find(&args.place).map_err(|error| error.to_string())?;
    let doctor = DoctorArgs { place: args.place.clone(), no_probe: true, ..DoctorArgs::default() };
    let report = doctor::examine(&doctor, env)?;
    let findings =
        report.findings.iter().map(|f| json!({ "code": f.code, "fixable": f.fix.is_some() }));
    let started = report.started.iter().map(|one| {
        json!({ "status": one.status, "stdout_bytes": one.stdout.len(), "stderr_bytes": one.stderr.len() })
    });
    let config = ConfigFile::open(&paths.config);
    let config = match config.map(|file| edit::read(file.bytes())) {
        Ok(Ok(value)) => shape(&value, false),
        Ok(Err(refusal)) => {
            json!({ "unreadable": { "line": refusal.line, "column": refusal.column } })
        }
        Err(_) => json!("cannot be opened"),
    };
    let snapshots = snapshot::list(&paths.root).unwrap_or_default();
    Ok(json!({
        "about": "zcode-mail support bundle; holds no key, mail or command",
        "made": now.to_string(),
        "version": env!("CARGO_PKG_VERSION"),
        "commit": crate::COMMIT,
        "platform": format!("{} {}", env::consts::OS, env::consts::ARCH),
        "zcode": version::find().map(|version| version.to_string()),
        "findings": findings.collect::<Vec<_>>(),
        "started": started.collect::<Vec<_>>(),
        "environment": environment(env),
        "configuration": config,
        "current": snapshot::current(&paths.root),
        "snapshots": snapshots.iter().map(|(about, name)| json!({
            "name": name, "dialect": about.dialect, "sequence": about.sequence,
        })).collect::<Vec<_>>(),
        "state": state(env),
        "gateway": args.data.as_deref().map(database),
    }))
}

/// Which variables are set; values only of those that say nothing about anybody.
fn environment(env: &BTreeMap<String, String>) -> Value {
    let wanted = |name: &str| {
        PLAIN.contains(&name) || NAMED.iter().any(|prefix| name.to_uppercase().starts_with(prefix))
    };
    let shown = |name: &str, value: &str| match name {
        name if PLAIN.contains(&name) => json!(value),
        "AGENTMAIL_GATEWAY_URL" => json!(address(value)),
        _ => json!({ "characters": value.chars().count() }),
    };
    let set = env.iter().filter(|(name, _)| wanted(name));
    Value::Object(set.map(|(name, value)| (name.clone(), shown(name, value))).collect())
}

/// Scheme, kind of host and port of an address.
fn address(url: &str) -> String {
    let Ok(uri) = url.parse::<http::Uri>() else { return "unreadable".to_owned() };
    let host = uri.host().unwrap_or_default();
    let kind = match host {
        "localhost" => "localhost",
        "127.0.0.1" | "[::1]" => "this machine",
        _ => "another machine",
    };
    let port = uri.port_u16().map(|port| format!(", port {port}")).unwrap_or_default();
    format!("{}, {kind}{port}", uri.scheme_str().unwrap_or("no scheme"))
}

/// The keys and kinds of values; the values only of keys that are on the list.
fn shape(value: &Value, shown: bool) -> Value {
    match value {
        Value::Object(map) => {
            let inner = map.iter().map(|(key, value)| {
                (key.clone(), shape(value, shown || SHOWN.contains(&key.as_str())))
            });
            Value::Object(inner.collect::<Map<_, _>>())
        }
        Value::Array(items) if shown => items.iter().map(|item| shape(item, true)).collect(),
        Value::Array(items) => json!(format!("list of {}", items.len())),
        Value::String(text) if shown && Path::new(text).is_absolute() => json!(text),
        Value::String(text) => json!(format!("text of {}", text.chars().count())),
        Value::Number(_) if !shown => json!("number"),
        plain => plain.clone(),
    }
}

/// Names, sizes and modes of the hook's files.
fn state(env: &BTreeMap<String, String>) -> Value {
    let settings = Settings::from_env(|name| env.get(name).cloned());
    let Ok(folder) = settings.state_folder() else { return Value::Null };
    let mut out = Vec::new();
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let Ok(found) = entry.metadata() else { continue };
        out.push(json!({
            "name": entry.file_name().to_string_lossy(),
            "bytes": found.len(),
            "directory": found.is_dir(),
            "mode": mode(&found),
        }));
    }
    Value::Array(out)
}

#[cfg(unix)]
fn mode(found: &fs::Metadata) -> Option<String> {
    use std::os::unix::fs::PermissionsExt as _;
    Some(format!("{:o}", found.permissions().mode() & 0o7777))
}

#[cfg(not(unix))]
fn mode(_found: &fs::Metadata) -> Option<String> {
    None
}

/// Schema version and row counts.
fn database(data: &Path) -> Value {
    let path = data.join(DATABASE_NAME);
    let Ok(db) = Connection::open_with_flags(&path, OpenFlags::SQLITE_OPEN_READ_ONLY) else {
        return json!("cannot be opened");
    };
    let number = |sql: &str| db.query_row(sql, [], |row| row.get::<_, i64>(0)).ok();
    let rows = TABLES
        .map(|table| (table.to_owned(), json!(number(&format!("SELECT count(*) FROM {table}")))));
    json!({
        "schema": number("PRAGMA user_version"),
        "bytes": fs::metadata(&path).map(|found| found.len()).ok(),
        "rows": Value::Object(rows.into_iter().collect()),
    })
}

/// The name of a secret whose value is in the text.
fn leaked(text: &str, env: &BTreeMap<String, String>) -> Option<String> {
    let settings = Settings::from_env(|name| env.get(name).cloned());
    let file = settings.key_file().ok().and_then(|path| fs::read_to_string(path).ok());
    let secret = |name: &str| {
        ["KEY", "SECRET", "TOKEN", "PASSWORD"].iter().any(|word| name.to_uppercase().contains(word))
    };
    let set = env.iter().filter(|(name, _)| secret(name));
    let set = set.map(|(name, value)| (name.clone(), value.trim().to_owned()));
    let all = set.chain(file.map(|text| ("the key file".to_owned(), text.trim().to_owned())));
    // A shorter value would be found in any text.
    all.filter(|(_, value)| value.len() >= 8)
        .find(|(_, value)| text.contains(value))
        .map(|(name, _)| name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_listed_values_of_a_configuration_are_shown() {
        let value = json!({
            "model": { "apiKey": "sk-secret", "n": 3 },
            "plugins": { "enabled": true, "dirs": ["/opt/x"], "options": { "a": "secret" } },
            "hooks": { "events": { "Stop": [{ "command": "secret" }] } },
        });
        let shown = shape(&value, false);
        assert!(!shown.to_string().contains("secret"), "{shown}");
        assert_eq!(shown["plugins"]["dirs"], json!(["/opt/x"]));
        assert_eq!(shown["model"]["apiKey"], "text of 9");
    }

    #[test]
    fn an_address_is_told_without_its_host_and_password() {
        assert_eq!(address("http://127.0.0.1:8180"), "http, this machine, port 8180");
        assert_eq!(address("https://u:secret@mail.example/x"), "https, another machine");
    }

    #[test]
    fn a_secret_in_the_text_is_found() {
        let env = |name: &str, value: &str| BTreeMap::from([(name.to_owned(), value.to_owned())]);
        assert!(leaked("x am_12345678 y", &env("AGENTMAIL_AGENT_KEY", "am_12345678")).is_some());
        assert!(leaked("x am_12345678 y", &env("OTHER", "am_12345678")).is_none());
        assert!(leaked("short", &env("X_TOKEN", "short")).is_none());
    }
}
