//! The files that a decision is bound to: read when the question is asked, and again right before
//! an approval is printed.
//!
//! What it promises: an approval is given only while every bound file and the working directory are
//! what they were when the question was asked (faults row 8). What is left is the time between this
//! check and the host's own start of the command; nothing outside of the host can close that.
//!
//! Files are read through symbolic links, as the command will: a link that points elsewhere shows
//! other bytes. Pipes, devices and directories are not read; they are named as not bound.

use std::fs::{File, Metadata, OpenOptions};
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};

use sha2::{Digest as _, Sha256};
use zcode_mail_core::digest::Operand;
use zcode_mail_core::hook::Call;
use zcode_mail_core::hook::question::{Binding, Dependencies, dependencies};
use zcode_mail_core::lang::Lang;

/// Bytes of one file that are hashed. Scripts are small; hashing this much takes a fraction of a
/// second, and a larger file is said to be not bound.
const HASHED: u64 = 64 * 1024 * 1024;
/// Bytes of a file that are shown beside what a `Write` makes of it.
const SHOWN: u64 = 128 * 1024;

/// What a call is bound to.
#[derive(Debug)]
pub(crate) struct Bound {
    /// For the question.
    pub(crate) binding: Binding,
    dependencies: Dependencies,
    base: PathBuf,
    place: Option<Place>,
    lang: Lang,
}

/// Which directory a path led to.
#[derive(Debug, PartialEq, Eq)]
struct Place {
    path: PathBuf,
    #[cfg(unix)]
    node: (u64, u64),
}

impl Bound {
    /// Reads everything that `call` depends on.
    pub(crate) fn read(call: &Call, lang: Lang) -> Self {
        let base = call.event.cwd.as_deref().map_or_else(PathBuf::new, PathBuf::from);
        let dependencies = dependencies(&call.event, &call.input, lang);
        let mut binding = Binding { notes: dependencies.notes.clone(), ..Binding::default() };
        let (operands, unread) = operands(&base, &dependencies.files);
        binding.operands = operands;
        for (file, why) in unread {
            binding.notes.push(match lang {
                Lang::Zh => format!("{file}：无法绑定（{why}）"),
                Lang::En => format!("{file}: cannot be bound ({why})"),
            });
        }
        binding.before = dependencies.replaced.as_deref().and_then(|file| text(&base.join(file)));
        Self { place: place(&base), binding, dependencies, base, lang }
    }

    /// What is different from when it was read; `None` when nothing is.
    pub(crate) fn drift(&self) -> Option<String> {
        if place(&self.base) != self.place {
            return Some(match self.lang {
                Lang::Zh => format!("工作目录 {} 已被替换", self.base.display()),
                Lang::En => format!("the directory {} was replaced", self.base.display()),
            });
        }
        let (now, _) = operands(&self.base, &self.dependencies.files);
        let path = self.binding.drift(&now)?;
        Some(match self.lang {
            Lang::Zh => format!("文件 {path} 已改变"),
            Lang::En => format!("the file {path} changed"),
        })
    }
}

/// The state of each file, and those that have none, with the reason.
fn operands(base: &Path, files: &[String]) -> (Vec<Operand>, Vec<(String, String)>) {
    let (mut found, mut unread) = (Vec::new(), Vec::new());
    for path in files {
        match hash(&base.join(path)) {
            Ok(sha256) => found.push(Operand { path: path.clone(), sha256 }),
            Err(why) => unread.push((path.clone(), why)),
        }
    }
    (found, unread)
}

/// SHA-256 of a file, `None` when there is none.
fn hash(path: &Path) -> Result<Option<[u8; 32]>, String> {
    let (mut file, meta) = match open(path) {
        Ok(opened) => opened,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        // A component that is a file: the command will not find it either.
        Err(error) if error.kind() == io::ErrorKind::NotADirectory => return Ok(None),
        Err(error) => return Err(error.to_string()),
    };
    if !meta.is_file() {
        return Err("not a regular file".to_owned());
    }
    let mut hash = Sha256::new();
    let mut buffer = vec![0; 64 * 1024];
    let mut read = 0;
    loop {
        let count = file.read(&mut buffer).map_err(|error| error.to_string())?;
        if count == 0 {
            return Ok(Some(hash.finalize().into()));
        }
        read += count as u64;
        if read > HASHED {
            return Err(format!("larger than {HASHED} bytes"));
        }
        hash.update(&buffer[..count]);
    }
}

/// The text of a file that is small enough to be shown.
fn text(path: &Path) -> Option<String> {
    let (file, meta) = open(path).ok()?;
    if !meta.is_file() || meta.len() > SHOWN {
        return None;
    }
    let mut bytes = Vec::new();
    file.take(SHOWN).read_to_end(&mut bytes).ok()?;
    String::from_utf8(bytes).ok()
}

/// Opens without waiting: the other end of a pipe may never come.
fn open(path: &Path) -> io::Result<(File, Metadata)> {
    let mut options = OpenOptions::new();
    options.read(true);
    #[cfg(unix)]
    {
        use std::os::unix::fs::OpenOptionsExt as _;
        options.custom_flags(rustix::fs::OFlags::NONBLOCK.bits().cast_signed());
    }
    let file = options.open(path)?;
    let meta = file.metadata()?;
    Ok((file, meta))
}

fn place(base: &Path) -> Option<Place> {
    let path = base.canonicalize().ok()?;
    #[cfg(unix)]
    {
        use std::os::unix::fs::MetadataExt as _;
        let meta = path.metadata().ok()?;
        Some(Place { node: (meta.dev(), meta.ino()), path })
    }
    #[cfg(not(unix))]
    Some(Place { path })
}
