//! `zcode-mail gateway install | upgrade | prune`, with real gateways under a small systemd.

use std::fs;
use std::io::Read as _;
use std::net::{TcpListener, TcpStream};
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::atomic::{AtomicU16, Ordering};

use rusqlite::Connection;
use tempfile::TempDir;
use zcode_mail_tests::programs::{PATIENCE, Running, bin, operator};

/// Starts and stops what the unit's ExecStart names, one process, as `systemctl` would; the log is
/// a file that the `journalctl` beside it prints.
const SYSTEMCTL: &str = r#"#!/bin/bash
here=$(dirname "$0")
unit=$(ls "$here"/../units/*.service 2>/dev/null | head -1)
alive() { [ -f "$here/pid" ] && kill -0 "$(cat "$here/pid")" 2>/dev/null; }
stop() {
  alive || return 0
  kill "$(cat "$here/pid")"
  for _ in $(seq 200); do alive || break; sleep 0.05; done
  alive && kill -9 "$(cat "$here/pid")"
  rm -f "$here/pid"
}
start() {
  line=$(sed -n 's/^ExecStart=//p' "$unit")
  # The words of a unit are quoted like those of a shell; percent and dollar signs are doubled.
  line=${line//%%/%}
  eval "set -- ${line//\$\$/\\\$}"
  set -a; . "$here/../gateway.env"; set +a
  # What the log says since this start.
  setsid "$@" >"$here/log" 2>&1 </dev/null &
  echo $! >"$here/pid"
}
echo "$*" >>"$here/calls"
case "$1" in
  daemon-reload | enable) ;;
  restart | start) stop; start ;;
  stop) stop ;;
  is-active) if alive; then echo active; else echo failed; exit 3; fi ;;
  *) echo "unknown $1" >&2; exit 1 ;;
esac
"#;

struct Host {
    dir: TempDir,
    port: u16,
}

impl Host {
    fn new() -> Self {
        let dir = TempDir::new().unwrap();
        let tools = dir.path().join("tools");
        fs::create_dir(&tools).unwrap();
        let port = free_port();
        script(&tools.join("systemctl"), SYSTEMCTL);
        script(&tools.join("journalctl"), "#!/bin/sh\ncat \"$(dirname \"$0\")/log\"\n");
        Self { dir, port }
    }

    fn path(&self, place: &str) -> PathBuf {
        self.dir.path().join(place)
    }

    fn data(&self) -> PathBuf {
        self.path("da ta")
    }

    fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(bin("zcode-mail"));
        command.env_clear().env("PATH", format!("{}:/usr/bin:/bin", self.path("tools").display()));
        command.arg("gateway").args(args);
        command.arg("--prefix").arg(self.path("pre fix 100%"));
        command.arg("--data").arg(self.data()).arg("--env-file").arg(self.path("gateway.env"));
        command.arg("--unit-dir").arg(self.path("units"));
        command.arg("--listen").arg(format!("127.0.0.1:{}", self.port));
        command
    }

    fn run(&self, args: &[&str]) -> Output {
        Running::spawn(self.command(args), Some(b"")).finish(PATIENCE * 3)
    }

    #[track_caller]
    fn ok(&self, args: &[&str]) -> String {
        let out = self.run(args);
        assert!(out.status.success(), "{args:?}: {}", String::from_utf8_lossy(&out.stderr));
        String::from_utf8(out.stdout).unwrap()
    }

    fn root(&self) -> PathBuf {
        self.path("pre fix 100%/gateway")
    }

    fn current(&self) -> String {
        fs::read_link(self.root().join("current")).unwrap().display().to_string()
    }

    fn generations(&self) -> Vec<String> {
        let mut names: Vec<String> = fs::read_dir(self.root())
            .unwrap()
            .map(|entry| entry.unwrap().path())
            .filter(|path| path.is_dir() && !path.is_symlink())
            .map(|path| path.file_name().unwrap().to_str().unwrap().to_owned())
            .collect();
        names.sort();
        names
    }

    /// The pages of the gateway answer.
    fn answers(&self) -> bool {
        ureq::get(format!("http://127.0.0.1:{}/health", self.port)).call().is_ok()
    }

    /// A program that says a version and then does what the script says.
    fn other(&self, name: &str, body: &str) -> String {
        let path = self.path(name);
        let real = bin("zcode-mail");
        let head = "#!/bin/bash\n[ \"$1\" = --version ] && echo zcode-mail 9.9.9 && exit\n";
        script(&path, &format!("{head}REAL='{}'\n{body}\n", real.display()));
        path.display().to_string()
    }
}

impl Drop for Host {
    fn drop(&mut self) {
        let tools = self.path("tools");
        let _ = Command::new(tools.join("systemctl")).arg("stop").status();
    }
}

/// A free port that the system gives nobody who asks for any: the tests beside this one do, and a
/// gateway that is restarted must find its port again.
fn free_port() -> u16 {
    static NEXT: AtomicU16 = AtomicU16::new(0);
    let start = u16::try_from(std::process::id() % 100).unwrap() * 100;
    loop {
        let port = 20_000 + (start + NEXT.fetch_add(1, Ordering::Relaxed)) % 10_000;
        if TcpListener::bind(("127.0.0.1", port)).is_ok() {
            return port;
        }
    }
}

fn script(path: &Path, text: &str) {
    fs::write(path, text).unwrap();
    fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
}

fn names_in(database: &Path) -> Vec<String> {
    let db = Connection::open(database).unwrap();
    let mut statement = db.prepare("SELECT name FROM users ORDER BY name").unwrap();
    let names = statement.query_map([], |row| row.get(0)).unwrap();
    names.map(Result::unwrap).collect()
}

#[test]
fn an_installed_gateway_runs_and_its_secrets_are_private() {
    let host = Host::new();
    let shown = host.ok(&["install", "--dry-run"]);
    assert!(shown.contains("ExecStart=") && !host.root().exists(), "{shown}");
    let shown = host.ok(&["install"]);
    assert!(host.answers(), "{shown}");
    let env = fs::read_to_string(host.path("gateway.env")).unwrap();
    let mode = fs::metadata(host.path("gateway.env")).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    let password = env.lines().find_map(|line| line.strip_prefix("ADMIN_PASSWORD=")).unwrap();
    assert!(password.len() >= 20 && !shown.contains(password), "{shown}");
    assert_eq!(names_in(&host.data().join("agentmail.db")), ["admin"]);
    // systemd itself reads the unit, where it is installed.
    let unit = host.path("units/agentmail-gateway.service");
    if let Ok(out) = Command::new("systemd-analyze").arg("verify").arg(&unit).output() {
        let said = String::from_utf8_lossy(&out.stderr).into_owned();
        assert!(!said.contains("agentmail-gateway.service:"), "{said}");
    }
    // A second installation keeps the password.
    host.ok(&["install"]);
    assert_eq!(fs::read_to_string(host.path("gateway.env")).unwrap(), env);
    assert!(host.answers());
}

#[test]
fn an_upgrade_saves_the_database_while_it_is_in_use_and_brings_streams_back() {
    let host = Host::new();
    host.ok(&["install"]);
    let _ = operator(&host.data(), &["user", "add", "ann"]);
    let key = operator(&host.data(), &["agent-key", "create", "zcode", "--owner", "ann"]);
    // An agent that reconnects, as every bridge does.
    let port = host.port;
    std::thread::spawn(move || {
        loop {
            let url = format!("http://127.0.0.1:{port}/api/v1/events/stream");
            let opened = ureq::get(&url).header("authorization", format!("Bearer {key}")).call();
            if let Ok(reply) = opened {
                let _ = reply.into_body().into_reader().read_to_end(&mut Vec::new());
            }
            std::thread::sleep(std::time::Duration::from_millis(50));
        }
    });
    let old = host.current();
    let plan = host.ok(&["upgrade", "--dry-run"]);
    assert!(plan.contains(&old) && host.current() == old, "{plan}");
    let shown = host.ok(&["upgrade"]);
    assert!(host.answers() && host.current() != old, "{shown}");
    assert!(shown.contains("to go back:"), "{shown}");
    let backups: Vec<PathBuf> = fs::read_dir(host.data().join("backups"))
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect();
    assert_eq!(backups.len(), 1);
    assert_eq!(names_in(&backups[0]), ["admin", "ann"]);
    assert_eq!(fs::metadata(&backups[0]).unwrap().permissions().mode() & 0o777, 0o600);
}

#[test]
fn an_upgrade_that_is_not_well_is_taken_back() {
    let host = Host::new();
    host.ok(&["install"]);
    let old = host.current();
    for (what, body, why) in [
        ("ends at once", "exit 1", "not active"),
        ("panics", "echo \"thread 'main' panicked at src/x.rs\"; exec \"$REAL\" \"$@\"", "panic"),
        (
            "changes the schema and ends",
            "for i in $(seq 100); do sleep 0.02; done; exit 1",
            "not active",
        ),
    ] {
        let program = host.other(what, body);
        if what.starts_with("changes") {
            // What a newer program does first.
            let change = format!(
                "python3 - \"$3\" <<'END'\nimport sqlite3, sys\ndb = sqlite3.connect(sys.argv[1] + '/agentmail.db')\n\
                 db.execute('DELETE FROM keys'); db.execute('CREATE TABLE newer (x)')\n\
                 db.execute('PRAGMA user_version = 99'); db.commit()\nEND\n{body}"
            );
            let _ = host.other(what, &change);
        }
        let out = host.run(&["upgrade", "--from", &program]);
        let stderr = String::from_utf8_lossy(&out.stderr).into_owned();
        assert_eq!(out.status.code(), Some(1), "{what}: {stderr}");
        assert!(stderr.contains(why) && stderr.contains("runs again"), "{what}: {stderr}");
        assert_eq!(host.current(), old, "{what}");
        assert!(host.answers(), "{what}");
        assert_eq!(names_in(&host.data().join("agentmail.db")), ["admin"]);
        assert_eq!(stderr.contains("with the database of before"), what.starts_with("changes"));
    }
}

#[test]
fn a_program_that_does_not_run_changes_nothing() {
    let host = Host::new();
    host.ok(&["install"]);
    let (old, calls) = (host.current(), fs::read(host.path("tools/calls")).unwrap());
    fs::write(host.path("no program"), "text").unwrap();
    for program in [host.path("no program"), host.path("missing"), PathBuf::from("/bin/true")] {
        let out = host.run(&["upgrade", "--from", program.to_str().unwrap()]);
        assert_eq!(out.status.code(), Some(1));
        assert_eq!(host.current(), old);
        assert_eq!(host.generations(), std::slice::from_ref(&old), "{}", program.display());
        assert_eq!(fs::read(host.path("tools/calls")).unwrap(), calls, "no call of systemctl");
    }
    // A damaged database stops the upgrade before anything is switched.
    let database = host.data().join("agentmail.db");
    Command::new(host.path("tools/systemctl")).arg("stop").status().unwrap();
    fs::write(&database, "this is no database, whatever its name says").unwrap();
    let out = host.run(&["upgrade"]);
    let stderr = String::from_utf8_lossy(&out.stderr).into_owned();
    assert!(stderr.contains("nothing was changed"), "{stderr}");
    assert_eq!(host.current(), old);
}

#[test]
fn generations_are_pruned_by_age_and_those_in_use_stay() {
    let host = Host::new();
    host.ok(&["install"]);
    let first = host.current();
    for _ in 0..4 {
        host.ok(&["upgrade"]);
    }
    assert_eq!(host.generations().len(), 3, "an upgrade keeps three");
    assert!(!host.generations().contains(&first));
    // Non-empty directories of others are none of its business.
    fs::create_dir_all(host.root().join("0.0.1-mine")).unwrap();
    fs::write(host.root().join("0.0.1-mine/zcode-mail"), "mine").unwrap();
    let plan = host.ok(&["prune", "--keep", "1", "--dry-run"]);
    assert_eq!(plan.lines().count(), 2, "{plan}");
    let shown = host.ok(&["prune", "--keep", "1"]);
    assert!(shown.contains("removed 2 old generations, 1 stay"), "{shown}");
    assert_eq!(host.generations(), ["0.0.1-mine".to_owned(), host.current()]);
    assert!(host.answers());
}

#[test]
fn a_removal_that_fails_is_told_by_status_2_and_without_a_summary() {
    let host = Host::new();
    host.ok(&["install"]);
    let stuck = host.current();
    host.ok(&["upgrade"]);
    // Nobody but its owner may empty a directory without write permission; root goes as a guest.
    let open = |path: &Path, mode| {
        fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
    };
    open(&host.root().join(&stuck), 0o555);
    let mut command = host.command(&["prune", "--keep", "1"]);
    if rustix::process::geteuid().is_root() {
        let mut path = host.root();
        open(&path.join(".lock"), 0o666);
        open(&path, 0o777);
        while path.starts_with(host.dir.path()) && path != host.dir.path() {
            path.pop();
            open(&path, 0o755);
        }
        // The program has to be somewhere that the guest can reach.
        let program = host.path("zcode-mail");
        fs::copy(bin("zcode-mail"), &program).unwrap();
        let mut guest = Command::new(program);
        guest.args(command.get_args()).env_clear().uid(65_534).gid(65_534);
        command = guest;
    }
    let out = Running::spawn(command, Some(b"")).finish(PATIENCE);
    let stderr = String::from_utf8_lossy(&out.stderr).into_owned();
    assert_eq!(out.status.code(), Some(2), "{stderr}");
    assert!(stderr.contains("[FAIL]") && stderr.contains("stays"), "{stderr}");
    assert!(out.stdout.is_empty(), "no summary");
    let named = stderr.split("[FAIL] ").nth(1).unwrap().split(" stays").next().unwrap();
    assert!(Path::new(named).join("zcode-mail").exists(), "{stderr}");
    open(Path::new(named), 0o755);
    let shown = host.ok(&["prune", "--keep", "1"]);
    assert!(shown.contains("removed 1 old generations"), "the next run removes it: {shown}");
    assert!(!Path::new(named).exists() && !host.root().join(&stuck).exists());
}

#[test]
fn a_stopped_upgrade_leads_to_one_complete_program() {
    let host = Host::new();
    host.ok(&["install"]);
    let mut stops = 0;
    for step in 1.. {
        let mut command = host.command(&["upgrade"]);
        command.env("ZCODE_MAIL_TEST_STOP_BEFORE_STEP", step.to_string());
        let out = Running::spawn(command, Some(b"")).finish(PATIENCE * 3);
        let program = host.root().join("current/zcode-mail");
        let said = Command::new(&program).arg("--version").output().unwrap();
        assert!(said.status.success(), "step {step}");
        assert!(host.root().join("current/generation.json").exists(), "step {step}");
        assert_eq!(names_in(&host.data().join("agentmail.db")), ["admin"]);
        if out.status.success() {
            break;
        }
        assert_eq!(out.status.code(), None, "step {step}: {out:?}");
        stops += 1;
    }
    assert!(stops > 12, "{stops}");
    assert!(host.answers());
    let left = fs::read_dir(host.root()).unwrap().filter(|entry| {
        entry.as_ref().unwrap().file_name().to_string_lossy().contains("unfinished")
    });
    assert_eq!(left.count(), 0);
}

#[test]
fn a_place_that_systemd_cannot_name_is_refused_before_anything_is_made() {
    let host = Host::new();
    let mut command = Command::new(bin("zcode-mail"));
    command.args(["gateway", "install", "--prefix"]).arg(host.path("it's"));
    command.arg("--unit-dir").arg(host.path("units")).arg("--env-file").arg(host.path("env"));
    let out = Running::spawn(command, Some(b"")).finish(PATIENCE);
    assert!(String::from_utf8_lossy(&out.stderr).contains("systemd"), "{out:?}");
    assert!(!host.path("it's").exists() && !host.path("units").exists());
}

#[test]
fn only_one_change_runs_at_a_time() {
    let host = Host::new();
    host.ok(&["install"]);
    let lock = fs::File::open(host.root().join(".lock")).unwrap();
    lock.lock().unwrap();
    let out = host.run(&["upgrade"]);
    assert!(String::from_utf8_lossy(&out.stderr).contains("another change is running"));
    assert!(TcpStream::connect(("127.0.0.1", host.port)).is_ok());
}
