//! The standard streams: moved out of everybody's reach, then read and written without waiting.
//!
//! Input and output are duplicated to private descriptors that close in children; descriptor 0
//! becomes `/dev/null` and descriptor 1 standard error, so that nothing a library prints or a child
//! reads can touch the protocol.
//!
//! | what it is | how it is used |
//! |---|---|
//! | pipe (Linux) | opened again through `/proc/self/fd`, so that `O_NONBLOCK` is on our own description and never on one shared with the parent; readiness |
//! | socket | `MSG_DONTWAIT` on each call, no flag on the shared description; readiness |
//! | file, terminal, `/dev/null`, anything else | a thread that blocks |
//!
//! Reading and writing are cancel-safe: a dropped future has taken or given nothing.

use std::io;
#[cfg(unix)]
use std::os::fd::OwnedFd;

use async_channel::{Receiver, Sender};
#[cfg(unix)]
use async_io::Async;
use zcode_mail_core::inbox::Inbox;

/// Bytes read at once: what a pipe holds on Linux.
const CHUNK: usize = 64 * 1024;

/// Both directions.
pub(super) struct Streams {
    pub(super) input: Input,
    pub(super) output: Output,
}

/// Standard input.
pub(super) enum Input {
    /// A pipe.
    #[cfg(unix)]
    Pipe(Async<OwnedFd>, Box<[u8]>),
    /// A socket.
    #[cfg(unix)]
    Socket(Async<OwnedFd>, Box<[u8]>),
    /// Chunks from a thread; closed at the end.
    Thread(Receiver<io::Result<Vec<u8>>>),
}

/// Standard output.
pub(super) enum Output {
    /// A pipe.
    #[cfg(unix)]
    Pipe(Async<OwnedFd>),
    /// A socket.
    #[cfg(unix)]
    Socket(Async<OwnedFd>),
    /// Chunks to a thread, and the outcome of the one it has.
    Thread { chunks: Sender<Vec<u8>>, written: Receiver<io::Result<usize>>, busy: bool },
}

impl Input {
    /// Appends what has arrived to `inbox`, waiting for it; 0 is the end.
    pub(super) async fn read(&mut self, inbox: &mut Inbox) -> io::Result<usize> {
        match self {
            #[cfg(unix)]
            Self::Pipe(pipe, chunk) => {
                let got = pipe.read_with(|fd| again(rustix::io::read(fd, &mut **chunk))).await?;
                inbox.extend(chunk.get(..got).unwrap_or_default());
                Ok(got)
            }
            #[cfg(unix)]
            Self::Socket(socket, chunk) => {
                use rustix::net::{RecvFlags, recv};
                let flags = RecvFlags::DONTWAIT;
                let got = socket
                    .read_with(|fd| again(recv(fd, &mut **chunk, flags).map(|(got, _)| got)))
                    .await?;
                inbox.extend(chunk.get(..got).unwrap_or_default());
                Ok(got)
            }
            Self::Thread(chunks) => match chunks.recv().await {
                Ok(chunk) => {
                    let chunk = chunk?;
                    inbox.extend(&chunk);
                    Ok(chunk.len())
                }
                Err(_) => Ok(0),
            },
        }
    }
}

impl Output {
    /// Writes some of `bytes`, waiting until it can; gives back how many.
    pub(super) async fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            #[cfg(unix)]
            Self::Pipe(pipe) => pipe.write_with(|fd| again(rustix::io::write(fd, bytes))).await,
            #[cfg(unix)]
            Self::Socket(socket) => {
                use rustix::net::{SendFlags, send};
                let flags = SendFlags::DONTWAIT | SendFlags::NOSIGNAL;
                socket.write_with(|fd| again(send(fd, bytes, flags))).await
            }
            Self::Thread { chunks, written, busy } => {
                if !*busy {
                    let chunk = bytes.get(..CHUNK).unwrap_or(bytes).to_vec();
                    chunks.try_send(chunk).map_err(|_| io::ErrorKind::BrokenPipe)?;
                    *busy = true;
                }
                let count = written.recv().await.map_err(|_| io::ErrorKind::BrokenPipe)?;
                *busy = false;
                count
            }
        }
    }
}

/// An interrupted call is to be repeated by the caller of `read_with`, which does so for
/// `WouldBlock` only.
#[cfg(unix)]
fn again<T>(result: rustix::io::Result<T>) -> io::Result<T> {
    match result {
        Err(rustix::io::Errno::INTR) => Err(io::ErrorKind::WouldBlock.into()),
        other => other.map_err(io::Error::from),
    }
}

#[cfg(unix)]
impl Streams {
    /// Takes the standard streams away from everybody else.
    pub(super) fn take() -> io::Result<Self> {
        use rustix::fs::{Mode, OFlags, open};
        use rustix::io::fcntl_dupfd_cloexec;
        // Above the standard descriptors, so that nothing can land on them.
        const ABOVE_STANDARD: i32 = 3;
        let input = fcntl_dupfd_cloexec(rustix::stdio::stdin(), ABOVE_STANDARD)?;
        let output = fcntl_dupfd_cloexec(rustix::stdio::stdout(), ABOVE_STANDARD)?;
        let null = open("/dev/null", OFlags::RDWR | OFlags::CLOEXEC, Mode::empty())?;
        rustix::stdio::dup2_stdin(&null)?;
        rustix::stdio::dup2_stdout(rustix::stdio::stderr())?;
        Ok(Self { input: Input::of(input)?, output: Output::of(output)? })
    }
}

#[cfg(unix)]
impl Input {
    fn of(fd: OwnedFd) -> io::Result<Self> {
        use rustix::fs::{FileType, OFlags, fstat};
        let chunk = || vec![0; CHUNK].into_boxed_slice();
        Ok(match FileType::from_raw_mode(fstat(&fd)?.st_mode) {
            FileType::Socket => Self::Socket(Async::new_nonblocking(fd)?, chunk()),
            FileType::Fifo => match reopen(&fd, OFlags::RDONLY) {
                Some(own) => Self::Pipe(Async::new_nonblocking(own)?, chunk()),
                None => Self::thread(std::fs::File::from(fd)),
            },
            _ => Self::thread(std::fs::File::from(fd)),
        })
    }
}

#[cfg(unix)]
impl Output {
    fn of(fd: OwnedFd) -> io::Result<Self> {
        use rustix::fs::{FileType, OFlags, fstat};
        Ok(match FileType::from_raw_mode(fstat(&fd)?.st_mode) {
            FileType::Socket => Self::Socket(Async::new_nonblocking(fd)?),
            FileType::Fifo => match reopen(&fd, OFlags::WRONLY) {
                Some(own) => Self::Pipe(Async::new_nonblocking(own)?),
                None => Self::thread(std::fs::File::from(fd)),
            },
            _ => Self::thread(std::fs::File::from(fd)),
        })
    }
}

/// The same pipe under a description of our own, on which `O_NONBLOCK` concerns nobody else.
#[cfg(target_os = "linux")]
fn reopen(fd: &OwnedFd, direction: rustix::fs::OFlags) -> Option<OwnedFd> {
    use rustix::fs::{Mode, OFlags, open};
    use std::os::fd::AsRawFd as _;
    let path = format!("/proc/self/fd/{}", fd.as_raw_fd());
    open(path, direction | OFlags::NONBLOCK | OFlags::CLOEXEC, Mode::empty()).ok()
}

/// Elsewhere a second description of a pipe cannot be had; the thread serves.
#[cfg(all(unix, not(target_os = "linux")))]
fn reopen(_fd: &OwnedFd, _direction: rustix::fs::OFlags) -> Option<OwnedFd> {
    None
}

#[cfg(not(unix))]
impl Streams {
    /// The standard streams as they are.
    pub(super) fn take() -> io::Result<Self> {
        Ok(Self { input: Input::thread(io::stdin()), output: Output::thread(io::stdout()) })
    }
}

impl Input {
    /// A thread that reads until the end; one chunk waits, so it never runs ahead.
    fn thread(mut source: impl io::Read + Send + 'static) -> Self {
        let (chunks, receiver) = async_channel::bounded(1);
        std::thread::spawn(move || {
            let mut chunk = vec![0; CHUNK];
            loop {
                let result = match source.read(&mut chunk) {
                    Ok(0) => return,
                    Ok(got) => Ok(chunk.get(..got).unwrap_or_default().to_vec()),
                    Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                    Err(error) => Err(error),
                };
                let failed = result.is_err();
                if chunks.send_blocking(result).is_err() || failed {
                    return;
                }
            }
        });
        Self::Thread(receiver)
    }
}

impl Output {
    /// A thread that writes one chunk at a time and says how it went.
    fn thread(mut sink: impl io::Write + Send + 'static) -> Self {
        let (chunks, receiver) = async_channel::bounded::<Vec<u8>>(1);
        let (sender, written) = async_channel::bounded(1);
        std::thread::spawn(move || {
            while let Ok(chunk) = receiver.recv_blocking() {
                let result = sink.write_all(&chunk).and_then(|()| sink.flush());
                if sender.send_blocking(result.map(|()| chunk.len())).is_err() {
                    return;
                }
            }
        });
        Self::Thread { chunks, written, busy: false }
    }
}
