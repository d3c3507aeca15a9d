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
//! [`Raw`] is the streams after the move and before any runtime: it reads and writes without waiting
//! and tells when that is possible, so that a conversation can begin without one.
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
pub(super) const CHUNK: usize = 64 * 1024;

/// Both directions, driven by readiness or by threads.
pub(super) struct Streams {
    pub(super) input: Input,
    pub(super) output: Output,
}

/// Standard input.
pub(super) enum Input {
    /// A pipe or a socket.
    #[cfg(unix)]
    Ready(Async<Plain>, Box<[u8]>),
    /// Chunks from a thread; closed at the end.
    Thread(Receiver<io::Result<Vec<u8>>>),
}

/// Standard output.
pub(super) enum Output {
    /// A pipe or a socket.
    #[cfg(unix)]
    Ready(Async<Plain>),
    /// Chunks to a thread, and the outcome of the one it has.
    Thread { chunks: Sender<Vec<u8>>, written: Receiver<io::Result<usize>>, busy: bool },
}

/// A private descriptor of one direction.
#[cfg(unix)]
#[derive(Debug)]
pub(super) struct Plain {
    fd: OwnedFd,
    kind: Kind,
}

#[cfg(unix)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    /// A pipe under a description of our own, with `O_NONBLOCK`.
    Pipe,
    Socket,
    /// What can only be read and written by waiting.
    Blocking,
}

#[cfg(unix)]
impl std::os::fd::AsFd for Plain {
    fn as_fd(&self) -> std::os::fd::BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

#[cfg(unix)]
impl Plain {
    fn new(fd: OwnedFd, direction: rustix::fs::OFlags) -> io::Result<Self> {
        use rustix::fs::{FileType, fstat};
        Ok(match FileType::from_raw_mode(fstat(&fd)?.st_mode) {
            FileType::Socket => Self { fd, kind: Kind::Socket },
            FileType::Fifo => match reopen(&fd, direction) {
                Some(own) => Self { fd: own, kind: Kind::Pipe },
                None => Self { fd, kind: Kind::Blocking },
            },
            _ => Self { fd, kind: Kind::Blocking },
        })
    }

    /// Reads what is there, without waiting unless the kind can only wait.
    pub(super) fn read(&self, chunk: &mut [u8]) -> io::Result<usize> {
        use rustix::net::{RecvFlags, recv};
        again(match self.kind {
            Kind::Socket => recv(&self.fd, chunk, RecvFlags::DONTWAIT).map(|(got, _)| got),
            Kind::Pipe | Kind::Blocking => rustix::io::read(&self.fd, chunk),
        })
    }

    /// Writes what fits, without waiting unless the kind can only wait.
    pub(super) fn write(&self, bytes: &[u8]) -> io::Result<usize> {
        use rustix::net::{SendFlags, send};
        again(match self.kind {
            Kind::Socket => send(&self.fd, bytes, SendFlags::DONTWAIT | SendFlags::NOSIGNAL),
            Kind::Pipe | Kind::Blocking => rustix::io::write(&self.fd, bytes),
        })
    }
}

/// The standard streams, moved and not yet driven by anything.
#[cfg(unix)]
#[derive(Debug)]
pub(super) struct Raw {
    pub(super) input: Plain,
    pub(super) output: Plain,
}

#[cfg(unix)]
impl Raw {
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
        Ok(Self {
            input: Plain::new(input, OFlags::RDONLY)?,
            output: Plain::new(output, OFlags::WRONLY)?,
        })
    }

    /// Whether both directions can be used without waiting.
    pub(super) fn never_waits(&self) -> bool {
        self.input.kind != Kind::Blocking && self.output.kind != Kind::Blocking
    }

    /// Hands the streams to the runtime.
    pub(super) fn into_streams(self) -> io::Result<Streams> {
        let input = match self.input.kind {
            Kind::Blocking => Input::thread(std::fs::File::from(self.input.fd)),
            _ => {
                Input::Ready(Async::new_nonblocking(self.input)?, vec![0; CHUNK].into_boxed_slice())
            }
        };
        let output = match self.output.kind {
            Kind::Blocking => Output::thread(std::fs::File::from(self.output.fd)),
            _ => Output::Ready(Async::new_nonblocking(self.output)?),
        };
        Ok(Streams { input, output })
    }
}

impl Input {
    /// Appends what has arrived to `inbox`, waiting for it; 0 is the end.
    pub(super) async fn read(&mut self, inbox: &mut Inbox) -> io::Result<usize> {
        match self {
            #[cfg(unix)]
            Self::Ready(source, chunk) => {
                let got = source.read_with(|source| source.read(chunk)).await?;
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
            Self::Ready(sink) => sink.write_with(|sink| sink.write(bytes)).await,
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
