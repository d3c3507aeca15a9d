//! `zcode-mail install` and `uninstall` on many shapes of configuration, stopped at every step.

use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::OnceLock;

use serde_json::{Value, json};
use tempfile::TempDir;
use zcode_mail_tests::plugin_host::{Session, load};
use zcode_mail_tests::programs::{PATIENCE, Running, bin};

mod shapes;
mod stopped;

/// A home, a prefix and a configuration in a temporary directory.
struct Place {
    dir: TempDir,
    /// Where the configuration is.
    config: PathBuf,
}

impl Place {
    /// A place without a configuration.
    fn empty() -> Self {
        let dir = TempDir::new().unwrap();
        let config = dir.path().join("home/.zcode/cli/config.json");
        fs::create_dir_all(dir.path().join("home")).unwrap();
        Self { dir, config }
    }

    fn with(bytes: &[u8]) -> Self {
        let place = Self::empty();
        fs::create_dir_all(place.config.parent().unwrap()).unwrap();
        fs::write(&place.config, bytes).unwrap();
        place
    }

    fn root(&self) -> PathBuf {
        self.dir.path().join("pre fix/plugins/zcode-mail-bridge")
    }

    fn current(&self) -> PathBuf {
        self.root().join("current")
    }

    fn run(&self, args: &[&str]) -> Output {
        self.run_with(args, &[])
    }

    fn run_with(&self, args: &[&str], env: &[(&str, &str)]) -> Output {
        let home = self.dir.path().join("home");
        let mut command = installer(env);
        command.env("HOME", home).args(args).arg("--prefix").arg(self.dir.path().join("pre fix"));
        command.arg("--config").arg(&self.config);
        Running::spawn(command, Some(b"")).finish(PATIENCE)
    }

    #[track_caller]
    fn ok(&self, args: &[&str]) -> String {
        let out = self.run(args);
        assert!(out.status.success(), "{args:?}: {}", String::from_utf8_lossy(&out.stderr));
        String::from_utf8(out.stdout).unwrap()
    }

    #[track_caller]
    fn refused(&self, args: &[&str]) -> String {
        let out = self.run(args);
        assert_eq!(out.status.code(), Some(1), "{}", String::from_utf8_lossy(&out.stdout));
        String::from_utf8(out.stderr).unwrap()
    }

    fn bytes(&self) -> Option<Vec<u8>> {
        fs::read(&self.config).ok()
    }

    /// Whether the configuration names our plugin.
    fn named(&self) -> bool {
        let Some(bytes) = self.bytes() else { return false };
        let current = json!(self.current().to_str().unwrap()).to_string();
        String::from_utf8_lossy(&bytes).contains(&current)
    }

    /// The dialect of the snapshot that ZCode would load, which must be a complete one.
    #[track_caller]
    fn dialect(&self) -> String {
        let root = self.current();
        let session = Session {
            project: self.dir.path().to_owned(),
            data: self.dir.path().join("data"),
            id: "s".to_owned(),
            env: Default::default(),
        };
        let plugin = load(&root, &session).unwrap();
        assert_eq!(plugin.diagnostics, []);
        assert_eq!(plugin.commands.len(), 3);
        for hook in &plugin.hooks {
            assert_eq!(fs::read_to_string(&hook.command).unwrap(), PROGRAM);
            assert!(fs::metadata(&hook.command).unwrap().permissions().mode() & 0o111 == 0o111);
        }
        let about: Value =
            serde_json::from_slice(&fs::read(root.join("snapshot.json")).unwrap()).unwrap();
        let dialect = about["dialect"].as_str().unwrap().to_owned();
        assert_eq!(plugin.hooks[0].args, ["--dialect", &dialect]);
        dialect
    }

    /// Everything below the temporary directory, for comparing before and after.
    fn tree(&self) -> Vec<(PathBuf, u32, Vec<u8>)> {
        fn walk(dir: &Path, out: &mut Vec<(PathBuf, u32, Vec<u8>)>) {
            let mut paths: Vec<PathBuf> =
                fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().path()).collect();
            paths.sort();
            for path in paths {
                let found = fs::symlink_metadata(&path).unwrap();
                let mode = found.permissions().mode();
                if found.is_symlink() {
                    let target = fs::read_link(&path).unwrap();
                    out.push((path, mode, target.to_str().unwrap().as_bytes().to_vec()));
                } else if found.is_dir() {
                    out.push((path.clone(), mode, Vec::new()));
                    walk(&path, out);
                } else {
                    let bytes = fs::read(&path).unwrap();
                    out.push((path, mode, bytes));
                }
            }
        }
        let mut out = Vec::new();
        walk(self.dir.path(), &mut out);
        out
    }

    fn snapshots(&self) -> Vec<String> {
        let mut names: Vec<String> = fs::read_dir(self.root())
            .unwrap()
            .map(|entry| entry.unwrap().path())
            .filter(|path| {
                path.is_dir() && !path.is_symlink() && path.join("snapshot.json").exists()
            })
            .map(|path| path.file_name().unwrap().to_str().unwrap().to_owned())
            .collect();
        names.sort();
        names
    }
}

#[test]
fn installing_twice_changes_nothing_the_second_time() {
    let place = Place::with(b"{}\n");
    place.ok(&["install"]);
    let first = place.tree();
    place.ok(&["install"]);
    assert!(first == place.tree());
    assert!(place.named());
}

#[test]
fn a_dry_run_shows_the_difference_and_changes_nothing() {
    let place = Place::with(b"{\n  \"theme\": \"dark\"\n}\n");
    let before = place.tree();
    let shown = place.ok(&["install", "--dry-run"]);
    assert!(before == place.tree());
    let added: Vec<&str> = shown.lines().filter(|line| line.starts_with('+')).collect();
    assert!(added.iter().any(|line| line.contains("zcode-mail-bridge/current")), "{shown}");
    let removed = shown.lines().filter(|line| line.starts_with('-') && !line.starts_with("---"));
    assert_eq!(removed.collect::<Vec<_>>(), ["-  \"theme\": \"dark\""], "{shown}");
    place.ok(&["install"]);
    let installed = place.tree();
    let shown = place.ok(&["uninstall", "--dry-run"]);
    assert!(shown.contains("would remove"), "{shown}");
    assert!(installed == place.tree());
}

#[test]
fn the_version_of_zcode_chooses_the_dialect() {
    for (args, expected) in [
        (vec!["install", "--zcode-version", "3.8.1"], "structured"),
        (vec!["install", "--zcode-version", "3.15.1"], "both"),
        (vec!["install", "--zcode-version", "0.16.9"], "both"),
        (vec!["install", "--zcode-version", "3.15.1", "--dialect", "flat"], "flat"),
    ] {
        let place = Place::with(b"{}");
        place.ok(&args);
        assert_eq!(place.dialect(), expected, "{args:?}");
    }
}

#[test]
fn zcode_is_found_by_its_engine_and_by_its_command() {
    let place = Place::with(b"{}");
    let engine = place.dir.path().join("engine");
    fs::create_dir(&engine).unwrap();
    fs::write(engine.join("package.json"), r#"{"name":"zcode-cli","version":"0.16.9"}"#).unwrap();
    let engine = engine.to_str().unwrap();
    let out = place.run_with(&["install"], &[("ZCODE_ENGINE_DIR", engine)]);
    assert!(String::from_utf8(out.stdout).unwrap().contains("both, for ZCode 0.16.9"));

    let bin = place.dir.path().join("bin");
    fs::create_dir(&bin).unwrap();
    fs::write(bin.join("zcode"), "#!/bin/sh\necho zcode v3.8.1\n").unwrap();
    fs::set_permissions(bin.join("zcode"), fs::Permissions::from_mode(0o755)).unwrap();
    let path = format!("{}:/usr/bin:/bin", bin.display());
    let out = place.run_with(&["install"], &[("PATH", &path)]);
    assert!(String::from_utf8(out.stdout).unwrap().contains("structured, for ZCode 3.8.1"));
    assert_eq!(place.dialect(), "structured");
}

#[test]
fn the_last_three_snapshots_stay_and_one_step_back_is_one_command() {
    let place = Place::with(b"{}");
    for dialect in ["both", "structured", "flat"] {
        place.ok(&["install", "--dialect", dialect]);
        assert_eq!(place.dialect(), dialect);
    }
    assert_eq!(place.snapshots().len(), 3);
    // A fourth build: the content differs by what an earlier snapshot says of itself.
    let names = place.snapshots();
    let plain = names.iter().find(|name| !name.contains('+')).unwrap();
    let about = place.root().join(plain).join("snapshot.json");
    let mut changed: Value = serde_json::from_slice(&fs::read(&about).unwrap()).unwrap();
    changed["digest"] = json!("0".repeat(64));
    fs::write(&about, changed.to_string()).unwrap();
    place.ok(&["install", "--dialect", "both"]);
    assert_eq!(place.snapshots().len(), 3);
    assert!(!place.snapshots().contains(plain), "the oldest one goes");
    assert_eq!(place.dialect(), "both");

    place.ok(&["install", "--rollback", "--dry-run"]);
    assert_eq!(place.dialect(), "both");
    place.ok(&["install", "--rollback"]);
    assert_eq!(place.dialect(), "flat");
    place.ok(&["install", "--rollback"]);
    assert_eq!(place.dialect(), "structured");
    let refused = place.refused(&["install", "--rollback"]);
    assert!(refused.contains("no snapshot before"), "{refused}");
    assert_eq!(place.dialect(), "structured");
}

#[test]
fn a_running_session_keeps_the_files_that_it_was_started_with() {
    let place = Place::with(b"{}");
    place.ok(&["install", "--dialect", "both"]);
    let seen = fs::canonicalize(place.current()).unwrap();
    let hooks = fs::read(seen.join("hooks/hooks.json")).unwrap();
    place.ok(&["install", "--dialect", "flat"]);
    assert_eq!(fs::read(seen.join("hooks/hooks.json")).unwrap(), hooks);
    assert_ne!(fs::canonicalize(place.current()).unwrap(), seen);
}

#[test]
fn an_upgrade_leaves_the_configuration_alone_and_uninstall_still_restores_it() {
    let before = b"{ \"theme\": \"dark\" } // mine";
    let place = Place::with(before);
    place.ok(&["install", "--dialect", "both"]);
    let installed = place.bytes();
    place.ok(&["install", "--dialect", "flat"]);
    assert_eq!(place.bytes(), installed);
    place.ok(&["uninstall"]);
    assert_eq!(place.bytes().unwrap(), before);
    assert!(!place.root().exists());
}

#[test]
fn what_the_user_changed_since_then_stays() {
    let place = Place::with(b"{\n  // first\n  \"theme\": \"dark\"\n}\n");
    place.ok(&["install"]);
    let text = String::from_utf8(place.bytes().unwrap()).unwrap();
    let text = text.replace("\"dark\"", "\"light\"").replace("// first", "// second");
    fs::write(&place.config, text).unwrap();
    place.ok(&["uninstall"]);
    let after = String::from_utf8(place.bytes().unwrap()).unwrap();
    assert_eq!(after, "{\n  // second\n  \"theme\": \"light\"\n}\n");
}

#[test]
fn hooks_and_plugins_of_others_survive_install_and_uninstall_after_a_change() {
    let text = r#"{
  "hooks": { "enabled": true, "events": { "Stop": [ { "hooks": [ { "type": "process", "command": "mine" } ] } ] } },
  "plugins": {
    "enabled": true,
    "dirs": [
      "/srv/other/plugin" // not ours
    ],
    "enabledPlugins": { "other@inline": false }
  }
}
"#;
    let place = Place::with(text.as_bytes());
    place.ok(&["install"]);
    let mut changed = place.bytes().unwrap();
    changed.extend_from_slice(b"// a last word\n");
    fs::write(&place.config, &changed).unwrap();
    place.ok(&["uninstall"]);
    let after = String::from_utf8(place.bytes().unwrap()).unwrap();
    assert_eq!(after, format!("{text}// a last word\n"));
}

#[test]
fn a_plugin_of_the_same_name_and_a_switch_that_is_off_are_named() {
    let other = TempDir::new().unwrap();
    fs::create_dir(other.path().join(".claude-plugin")).unwrap();
    fs::write(other.path().join(".claude-plugin/plugin.json"), r#"{"name":"agentmail"}"#).unwrap();
    let text = json!({ "plugins": {
        "dirs": [other.path()], "enabledPlugins": { "agentmail@inline": false },
    }});
    let place = Place::with(text.to_string().as_bytes());
    let shown = place.ok(&["install"]);
    assert!(shown.contains("turns agentmail@inline off"), "{shown}");
    assert!(shown.contains("plugin of the same name"), "{shown}");
}

#[test]
fn a_directory_that_is_not_ours_is_left_alone() {
    let place = Place::with(b"{}");
    fs::create_dir_all(place.root().join("current")).unwrap();
    fs::write(place.root().join("current/server.mjs"), "// another bridge").unwrap();
    let before = place.tree();
    let refused = place.refused(&["install"]);
    assert!(refused.contains("holds something else"), "{refused}");
    let refused = place.refused(&["uninstall"]);
    assert!(refused.contains("holds something else"), "{refused}");
    assert!(before == place.tree());
}

#[test]
fn two_configurations_share_the_plugin_until_the_last_one_lets_go() {
    let place = Place::with(b"{}");
    place.ok(&["install"]);
    let second = Place { dir: TempDir::new().unwrap(), config: place.dir.path().join("b.json") };
    let prefix = place.dir.path().join("pre fix");
    let run = |what: &str| {
        let mut command = installer(&[("HOME", "/nonexistent")]);
        command.arg(what).arg("--prefix").arg(&prefix).arg("--config").arg(&second.config);
        let out = Running::spawn(command, Some(b"")).finish(PATIENCE);
        assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
    };
    run("install");
    place.ok(&["uninstall"]);
    assert_eq!(place.bytes().unwrap(), b"{}");
    place.dialect();
    run("uninstall");
    assert!(!second.config.exists() && !prefix.exists());
}

#[test]
fn without_a_home_the_places_must_be_named() {
    let place = Place::empty();
    let mut command = installer(&[("HOME", "")]);
    command.args(["install", "--prefix"]).arg(place.dir.path().join("p"));
    let out = Running::spawn(command, Some(b"")).finish(PATIENCE);
    assert_eq!(out.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&out.stderr).contains("HOME is not set"), "{out:?}");
    assert_eq!(place.tree().len(), 1);
}

#[test]
fn nothing_to_take_out_is_said_and_nothing_is_made() {
    let place = Place::with(b"{\"plugins\":{\"dirs\":[]}}");
    let before = place.tree();
    assert!(place.refused(&["uninstall"]).contains("nothing is installed"));
    assert!(before == place.tree());
}

/// What stands for the hook and the mail server: the real ones are 35 MB in a test build, and the
/// tests of `plugin` install them.
const PROGRAM: &str = "#!/bin/sh\nexit 0\n";

/// The real `zcode-mail` beside small programs.
fn installer(env: &[(&str, &str)]) -> Command {
    static DIR: OnceLock<PathBuf> = OnceLock::new();
    let dir = DIR.get_or_init(|| {
        let dir = Path::new(env!("CARGO_TARGET_TMPDIR")).join("installer");
        let fresh = dir.with_added_extension(std::process::id().to_string());
        fs::create_dir_all(&fresh).unwrap();
        for name in ["zcode-mail-hook", "zcode-mail-mcp"] {
            fs::write(fresh.join(name), PROGRAM).unwrap();
        }
        let real = bin("zcode-mail");
        let here = fresh.join("zcode-mail");
        fs::hard_link(&real, &here).or_else(|_| fs::copy(&real, &here).map(drop)).unwrap();
        let _ = fs::remove_dir_all(&dir);
        fs::rename(&fresh, &dir).unwrap();
        dir
    });
    let mut command = Command::new(dir.join("zcode-mail"));
    command.env_clear().env("PATH", std::env::var_os("PATH").unwrap_or_default());
    command.envs(env.iter().copied());
    command
}

/// A symbolic link, for the shapes.
fn link(target: &Path, name: &Path) {
    symlink(target, name).unwrap();
}
