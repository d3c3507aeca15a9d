//! What the standard streams may be, and what is done to them.

use std::fs::File;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{OFlags, fcntl_getfl};
use zcode_mail_tests::fakes::mcp::Setup;
use zcode_mail_tests::programs::PATIENCE;

const PING: &str = "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}\n";
const PONG: &str = "{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{}}\n";

fn setup() -> Setup {
    Setup::new("http://127.0.0.1:1")
}

/// A child that is killed when a test fails.
struct Guard(Child);

impl Guard {
    fn spawn(command: &mut Command) -> Self {
        Self(command.spawn().expect("it starts"))
    }

    fn wait(&mut self) -> ExitStatus {
        let deadline = Instant::now() + PATIENCE;
        loop {
            if let Some(status) = self.0.try_wait().unwrap() {
                return status;
            }
            assert!(Instant::now() < deadline, "it does not end");
            std::thread::sleep(Duration::from_millis(2));
        }
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn line(stream: impl std::io::Read) -> String {
    let mut text = String::new();
    BufReader::new(stream).read_line(&mut text).unwrap();
    text
}

#[test]
fn regular_files_serve_as_streams() {
    let setup = setup();
    let (input, output) = (setup.home().join("in"), setup.home().join("out"));
    std::fs::write(&input, PING).unwrap();
    let mut command = setup.command();
    command.stdin(File::open(&input).unwrap()).stdout(File::create(&output).unwrap());
    assert!(Guard::spawn(&mut command).wait().success());
    assert_eq!(std::fs::read_to_string(&output).unwrap(), PONG);
}

#[test]
fn an_empty_input_ends_it() {
    let setup = setup();
    let mut command = setup.command();
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    assert!(Guard::spawn(&mut command).wait().success());
}

#[test]
fn socket_pairs_serve_as_streams() {
    let (ours_in, theirs_in) = UnixStream::pair().unwrap();
    let (ours_out, theirs_out) = UnixStream::pair().unwrap();
    let watch = theirs_in.try_clone().unwrap();
    let setup = setup();
    let mut command = setup.command();
    command.stdin(OwnedFd::from(theirs_in)).stdout(OwnedFd::from(theirs_out));
    let mut child = Guard::spawn(&mut command);
    drop(command);
    (&ours_in).write_all(PING.as_bytes()).unwrap();
    assert_eq!(line(&ours_out), PONG);
    assert!(!fcntl_getfl(&watch).unwrap().contains(OFlags::NONBLOCK), "a shared flag was set");
    ours_in.shutdown(std::net::Shutdown::Write).unwrap();
    assert!(child.wait().success());
}

#[test]
fn a_shared_pipe_stays_blocking() {
    let (read_in, write_in) = rustix::pipe::pipe().unwrap();
    let (read_out, write_out) = rustix::pipe::pipe().unwrap();
    let watch = [read_in.try_clone().unwrap(), write_out.try_clone().unwrap()];
    let setup = setup();
    let mut command = setup.command();
    command.stdin(read_in).stdout(write_out);
    let _child = Guard::spawn(&mut command);
    drop(command);
    File::from(write_in.try_clone().unwrap()).write_all(PING.as_bytes()).unwrap();
    assert_eq!(line(File::from(read_out)), PONG);
    for fd in &watch {
        assert!(!fcntl_getfl(fd).unwrap().contains(OFlags::NONBLOCK), "a shared flag was set");
    }
}

#[test]
fn a_client_that_stopped_reading_for_good_ends_it() {
    let setup = setup();
    let mut command = setup.command();
    command.stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut child = Guard::spawn(&mut command);
    drop(child.0.stdout.take());
    let mut stdin = child.0.stdin.take().unwrap();
    stdin.write_all(PING.as_bytes()).unwrap();
    assert!(child.wait().success());
}

#[test]
fn a_standard_error_that_nobody_reads_stops_nothing() {
    let setup = setup().set("AGENTMAIL_LOG", "debug");
    let mut command = setup.command();
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = Guard::spawn(&mut command);
    let mut stdin = child.0.stdin.take().unwrap();
    let mut stdout = BufReader::new(child.0.stdout.take().unwrap());
    // Each call logs a line; together they are many times what a pipe holds.
    for id in 0..3000 {
        let call = format!(
            "{{\"jsonrpc\":\"2.0\",\"id\":{id},\"method\":\"tools/call\",\
             \"params\":{{\"name\":\"read_inbox\"}}}}\n"
        );
        stdin.write_all(call.as_bytes()).unwrap();
        let mut answer = String::new();
        stdout.read_line(&mut answer).unwrap();
        assert!(answer.starts_with(&format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},")), "{answer}");
    }
}

#[test]
fn a_dead_parent_leaves_no_orphan() {
    let setup = setup();
    let program = setup.command().get_program().to_owned();
    let mut shell = Command::new("sh");
    // The shell's child reads our pipe, which stays open when the shell is gone.
    shell.args(["-c", "exec 3<&0; \"$0\" <&3 & wait"]).arg(program);
    shell.env("HOME", setup.home()).stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut shell = Guard::spawn(&mut shell);
    let mut stdin = shell.0.stdin.take().unwrap();
    let mut stdout = BufReader::new(shell.0.stdout.take().unwrap());
    stdin.write_all(PING.as_bytes()).unwrap();
    let mut answer = String::new();
    stdout.read_line(&mut answer).unwrap();
    assert_eq!(answer, PONG);
    shell.0.kill().unwrap();
    // Its output closes when it ends; a hang fails here by the test's own patience.
    let (sender, ended) = std::sync::mpsc::channel();
    std::thread::spawn(move || {
        let mut rest = String::new();
        let _ = stdout.read_to_string(&mut rest);
        let _ = sender.send(rest);
    });
    assert_eq!(ended.recv_timeout(PATIENCE).expect("it ends"), "");
    drop(stdin);
}

#[test]
fn a_client_that_does_not_read_is_not_read_from_either_and_loses_nothing() {
    let setup = setup();
    let mut command = setup.command();
    command.stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut child = Guard::spawn(&mut command);
    let stdin = child.0.stdin.take().unwrap();
    rustix::io::ioctl_fionbio(&stdin, true).unwrap();
    let stdout = child.0.stdout.take().unwrap();
    let memory = |child: &Guard| {
        let status = std::fs::read_to_string(format!("/proc/{}/status", child.0.id())).ok()?;
        let line = status.lines().find(|line| line.starts_with("VmHWM:"))?.to_owned();
        line.split_whitespace().nth(1)?.parse::<u64>().ok()
    };
    // One answered ping, so that everything that is made once is made.
    let mut stdin = stdin;
    stdin.write_all(PING.as_bytes()).unwrap();
    let mut reader = BufReader::new(stdout);
    let mut answer = String::new();
    reader.read_line(&mut answer).unwrap();
    let before = memory(&child);
    let (mut sent, mut stream) = (0_u64, Vec::new());
    for id in 0..200_000 {
        stream.extend(format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},\"method\":\"ping\"}}\n").bytes());
    }
    let pause = Timespec { tv_sec: 0, tv_nsec: 700_000_000 };
    while (sent as usize) < stream.len() {
        let mut fds = [PollFd::new(&stdin, PollFlags::OUT)];
        if poll(&mut fds, Some(&pause)).unwrap() == 0 {
            break;
        }
        sent += stdin.write(&stream[sent as usize..]).unwrap_or(0) as u64;
    }
    assert!((sent as usize) < stream.len(), "it took {sent} bytes without being read");
    if let (Some(before), Some(after)) = (before, memory(&child)) {
        assert!(after - before < 1024, "grew by {} KiB", after - before);
    }
    // Now the client reads: everything that went in whole is answered, in order.
    let whole = stream[..sent as usize].iter().filter(|byte| **byte == b'\n').count();
    for id in 0..whole {
        let mut answer = String::new();
        reader.read_line(&mut answer).unwrap();
        assert!(answer.contains(&format!("\"id\":{id},")), "{id}: {answer}");
    }
}
