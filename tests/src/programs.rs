//! Running the real programs: where they are, how a test starts them, bounded waits.

use std::ffi::OsStr;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Output, Stdio};
use std::sync::OnceLock;
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

/// Longest wait for a program to start, answer or end. Generous: it only bounds a hang.
pub const PATIENCE: Duration = Duration::from_secs(60);

/// The path of one of our programs in the same target directory and profile as this test.
///
/// The first call builds all of them, so that a test never runs yesterday's binary.
///
/// # Panics
///
/// Panics when the build fails.
#[must_use]
pub fn bin(name: &str) -> PathBuf {
    static DIR: OnceLock<PathBuf> = OnceLock::new();
    let dir = DIR.get_or_init(|| {
        let exe = std::env::current_exe().expect("a running test has a path");
        // target/<profile>/deps/<test>, or target/<profile>/<program>
        let dir = exe.parent().expect("a file has a folder");
        let dir =
            if dir.ends_with("deps") { dir.parent().expect("deps has a parent") } else { dir };
        let dir = dir.to_owned();
        let profile = match dir.file_name().and_then(OsStr::to_str) {
            Some("debug") | None => "dev",
            Some(other) => other,
        };
        let status = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()))
            .args(["build", "--quiet", "--bins", "--profile", profile])
            .args(["-p", "zcode-mail-smol", "-p", "zcode-mail-blocking", "--target-dir"])
            .arg(dir.parent().expect("a profile directory has a parent"))
            .current_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/.."))
            .status()
            .expect("cargo runs");
        assert!(status.success(), "the programs do not build");
        dir
    });
    dir.join(name)
}

/// A command for one of our programs with an empty environment but `PATH` and the given pairs.
#[must_use]
pub fn command(name: &str, env: &[(&str, &str)]) -> Command {
    let mut command = Command::new(bin(name));
    command.env_clear();
    if let Some(path) = std::env::var_os("PATH") {
        command.env("PATH", path);
    }
    // A coverage or sanitizer run needs its own variables in the children as well.
    for (key, value) in std::env::vars_os() {
        if key.to_str().is_some_and(|key| key.starts_with("LLVM_PROFILE")) {
            command.env(key, value);
        }
    }
    command.envs(env.iter().copied());
    command
}

/// Runs a program to its end with nothing on stdin.
///
/// # Panics
///
/// Panics when it does not start or does not end within [`PATIENCE`].
#[must_use]
pub fn run(name: &str, args: &[&str], env: &[(&str, &str)]) -> Output {
    let mut command = command(name, env);
    command.args(args);
    Running::spawn(command, Some(b"")).finish(PATIENCE)
}

/// A child process whose output is collected in the background and which is killed when dropped.
#[derive(Debug)]
pub struct Running {
    child: Child,
    stdin: Option<std::process::ChildStdin>,
    stdout: mpsc::Receiver<Vec<u8>>,
    stderr: mpsc::Receiver<Vec<u8>>,
    status: Option<ExitStatus>,
}

impl Running {
    /// Starts `command`. `Some(bytes)` is written to its stdin, which is then closed; `None` leaves
    /// stdin open for [`Running::write`].
    ///
    /// # Panics
    ///
    /// Panics when the program does not start.
    #[must_use]
    pub fn spawn(mut command: Command, input: Option<&[u8]>) -> Self {
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap_or_else(|e| panic!("{command:?}: {e}"));
        let mut stdin = child.stdin.take();
        if let (Some(bytes), Some(mut pipe)) = (input, stdin.take_if(|_| input.is_some())) {
            let bytes = bytes.to_vec();
            // A large input must not wait for the child to read it; an early exit is its right.
            thread::spawn(move || pipe.write_all(&bytes));
        }
        let stdout = collect(child.stdout.take().expect("stdout is piped"));
        let stderr = collect(child.stderr.take().expect("stderr is piped"));
        Self { child, stdin, stdout, stderr, status: None }
    }

    /// The child's process id.
    #[must_use]
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// Writes to the child's stdin, which [`Running::spawn`] left open.
    ///
    /// # Panics
    ///
    /// Panics when stdin is closed.
    pub fn write(&mut self, bytes: &[u8]) {
        let stdin = self.stdin.as_mut().expect("stdin is open");
        stdin.write_all(bytes).expect("the child reads");
        stdin.flush().expect("the child reads");
    }

    /// Closes the child's stdin.
    pub fn close_stdin(&mut self) {
        self.stdin = None;
    }

    /// Sends a signal by name, such as `TERM`, `INT`, `STOP`, `CONT` or `KILL`.
    ///
    /// # Panics
    ///
    /// Panics on a name that it does not know.
    pub fn signal(&self, name: &str) {
        use rustix::process::{Pid, Signal, kill_process};
        let signal = match name {
            "TERM" => Signal::TERM,
            "INT" => Signal::INT,
            "HUP" => Signal::HUP,
            "STOP" => Signal::STOP,
            "CONT" => Signal::CONT,
            "KILL" => Signal::KILL,
            other => panic!("no signal {other}"),
        };
        let pid = Pid::from_raw(self.child.id().cast_signed()).expect("a child has a pid");
        // The child may be gone already, which is what the caller wanted.
        let _ = kill_process(pid, signal);
    }

    /// Whether the child still runs.
    pub fn alive(&mut self) -> bool {
        if self.status.is_none() {
            self.status = self.child.try_wait().expect("a child can be waited for");
        }
        self.status.is_none()
    }

    /// Waits for the end and returns everything the child wrote.
    ///
    /// # Panics
    ///
    /// Panics when the child still runs after `patience`.
    #[must_use]
    pub fn finish(mut self, patience: Duration) -> Output {
        self.close_stdin();
        self.finish_open(patience)
    }

    /// Like [`Running::finish`], but leaves stdin open until the child has ended.
    ///
    /// # Panics
    ///
    /// Panics when the child still runs after `patience`.
    #[must_use]
    pub fn finish_open(mut self, patience: Duration) -> Output {
        let deadline = Instant::now() + patience;
        // Both pipes close when the child (and whoever inherited them) is gone: an event, no polling.
        let left = |deadline: Instant| deadline.saturating_duration_since(Instant::now());
        let stdout = self.stdout.recv_timeout(left(deadline));
        let stderr = self.stderr.recv_timeout(left(deadline));
        let (Ok(stdout), Ok(stderr)) = (stdout, stderr) else {
            panic!("process {} still runs after {patience:?}", self.child.id());
        };
        while self.alive() {
            assert!(Instant::now() < deadline, "process {} closed its output but runs", self.id());
            thread::sleep(Duration::from_millis(1));
        }
        let status = self.status.expect("it has ended");
        Output { status, stdout, stderr }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn collect(mut pipe: impl std::io::Read + Send + 'static) -> mpsc::Receiver<Vec<u8>> {
    let (send, receive) = mpsc::channel();
    thread::spawn(move || {
        let mut all = Vec::new();
        let _ = pipe.read_to_end(&mut all);
        send.send(all)
    });
    receive
}

/// A running `zcode-mail gateway` with its own data directory or one that outlives it.
#[derive(Debug)]
pub struct Gateway {
    child: Child,
    /// Its base URL, without a trailing slash.
    pub url: String,
    /// Its data directory.
    pub data: PathBuf,
    log: mpsc::Receiver<Vec<u8>>,
}

impl Gateway {
    /// Starts a gateway on a free port.
    ///
    /// # Panics
    ///
    /// Panics when it does not report its address within [`PATIENCE`].
    #[must_use]
    pub fn start(data: &Path) -> Self {
        Self::start_with(data, "127.0.0.1:0", &[])
    }

    /// Starts a gateway on `listen` with additional environment.
    ///
    /// # Panics
    ///
    /// Panics when it does not report its address within [`PATIENCE`].
    #[must_use]
    pub fn start_with(data: &Path, listen: &str, env: &[(&str, &str)]) -> Self {
        let mut command = command("zcode-mail", env);
        command.args(["gateway", "--listen", listen, "--data"]).arg(data);
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().expect("the gateway starts");
        let log = collect(child.stderr.take().expect("stderr is piped"));
        let mut out = BufReader::new(child.stdout.take().expect("stdout is piped"));
        let (send, receive) = mpsc::channel();
        thread::spawn(move || {
            let mut line = String::new();
            let _ = out.read_line(&mut line);
            let _ = send.send(line);
            let _ = out.read_to_end(&mut Vec::new());
        });
        let line = receive.recv_timeout(PATIENCE).unwrap_or_default();
        let Some(url) = line.trim().strip_prefix("listening on ") else {
            let _ = child.kill();
            let _ = child.wait();
            let log = log.recv_timeout(PATIENCE).unwrap_or_default();
            panic!("no address but {line:?}; log: {}", String::from_utf8_lossy(&log));
        };
        Self { url: url.to_owned(), data: data.to_owned(), child, log }
    }

    /// `IP:PORT` of the gateway, to start another one in its place.
    #[must_use]
    pub fn address(&self) -> &str {
        self.url.trim_start_matches("http://")
    }

    /// The gateway's process id.
    #[must_use]
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// Kills the gateway without notice.
    pub fn kill(mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }

    /// Asks the gateway to end by SIGTERM and returns its status and log.
    ///
    /// # Panics
    ///
    /// Panics when it does not end within [`PATIENCE`].
    #[must_use]
    pub fn stop(mut self) -> (ExitStatus, String) {
        use rustix::process::{Pid, Signal, kill_process};
        let pid = Pid::from_raw(self.child.id().cast_signed()).expect("a child has a pid");
        kill_process(pid, Signal::TERM).expect("the gateway runs");
        let log = self.log.recv_timeout(PATIENCE).expect("the gateway ends after SIGTERM");
        (self.child.wait().expect("it has ended"), String::from_utf8_lossy(&log).into_owned())
    }

    /// Runs an operator command such as `["user", "add", "ann"]` on this gateway's data and returns
    /// the first line that it prints.
    ///
    /// # Panics
    ///
    /// Panics when the command fails.
    #[must_use]
    pub fn operator(&self, args: &[&str]) -> String {
        operator(&self.data, args)
    }
}

impl Drop for Gateway {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Runs an operator command on a data directory and returns the first line that it prints.
///
/// # Panics
///
/// Panics when the command fails.
#[must_use]
pub fn operator(data: &Path, args: &[&str]) -> String {
    let data = data.to_str().expect("test directories have plain names");
    let mut all = args.to_vec();
    all.extend(["--data", data]);
    let out = run("zcode-mail", &all, &[]);
    let stderr = String::from_utf8_lossy(&out.stderr);
    assert!(out.status.success(), "{args:?}: {stderr}");
    String::from_utf8_lossy(&out.stdout).lines().next().unwrap_or_default().to_owned()
}
