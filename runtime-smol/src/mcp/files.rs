//! Which local files may leave, and where received ones may go.
//!
//! A model names the paths, and a mail may have told it which. So files leave only out of the
//! folders that the work is about (the working directory, the project's, the temporary one), never
//! through a link to elsewhere, and never when they look like a secret. Received files go into the
//! same folders, always as new files, under a name that is safe whatever the sender called them.

use std::fs::{File, OpenOptions};
use std::io::{self, Read as _, Seek as _};
use std::path::{Component, Path, PathBuf};

use zcode_mail_core::api::attachment::MAX_BYTES;
use zcode_mail_core::tool::FileFault;

/// Longest name of a saved file, in bytes: what file systems take, less room for a number.
const MAX_NAME: usize = 200;
/// How many numbered names are tried before giving up.
const MAX_NUMBER: u32 = 99;
/// Bytes at the start of a file that are searched for a private key.
const PEEK: u64 = 4096;
/// Endings of files that hold keys.
const SECRET_ENDINGS: [&str; 12] = [
    ".pem",
    ".key",
    ".p12",
    ".pfx",
    ".ppk",
    ".jks",
    ".keystore",
    ".kdbx",
    ".asc",
    ".gpg",
    ".ovpn",
    ".p8",
];
/// Names of files that hold keys, whatever their ending.
const SECRET_NAMES: [&str; 7] =
    ["id_rsa", "id_dsa", "id_ecdsa", "id_ed25519", "credentials", "authorized_keys", "agent.key"];

/// A file that may leave.
#[derive(Debug)]
pub(super) struct Source {
    pub(super) file: File,
    pub(super) size: u64,
    pub(super) name: String,
}

/// Folders that attachments come from and go to.
struct Roots {
    base: PathBuf,
    all: Vec<PathBuf>,
}

impl Roots {
    fn of_this_process() -> Self {
        let project = std::env::var_os("ZCODE_PROJECT_DIR").filter(|dir| !dir.is_empty());
        let working = std::env::current_dir().unwrap_or_default();
        let base = project.map_or_else(|| working.clone(), PathBuf::from);
        Self::new(base, &[working, std::env::temp_dir()])
    }

    /// `base` is what relative paths start at. A root that is the whole file system would allow
    /// everything, so it allows nothing.
    fn new(base: PathBuf, others: &[PathBuf]) -> Self {
        let all = std::iter::once(&base)
            .chain(others)
            .filter_map(|root| root.canonicalize().ok())
            .filter(|root| root.parent().is_some())
            .collect();
        Self { base, all }
    }

    /// The part of a canonical path below the root that holds it.
    fn below<'p>(&self, path: &'p Path) -> Option<&'p Path> {
        self.all
            .iter()
            .filter_map(|root| path.strip_prefix(root).ok())
            .min_by_key(|rest| rest.components().count())
    }

    fn outside(&self, path: &Path) -> FileFault {
        let roots: Vec<String> = self.all.iter().map(|root| root.display().to_string()).collect();
        FileFault::Outside(path.display().to_string(), roots.join(", "))
    }
}

/// Opens a file that is to leave.
///
/// # Errors
/// [`FileFault`] says why it stays.
pub(super) fn source(path: &str) -> Result<Source, FileFault> {
    open_source(path, &Roots::of_this_process())
}

fn open_source(path: &str, roots: &Roots) -> Result<Source, FileFault> {
    let given = roots.base.join(path);
    let shown = || given.display().to_string();
    let real = given.canonicalize().map_err(|error| unreadable(&given, &error))?;
    let Some(below) = roots.below(&real) else { return Err(roots.outside(&given)) };
    if is_hidden(below) || looks_secret(&real) || looks_secret(&given) {
        return Err(FileFault::Secret(shown()));
    }
    let mut options = OpenOptions::new();
    options.read(true);
    // The path is free of links; one that appears meanwhile is not followed, and a pipe that
    // appears does not block.
    never_follow(&mut options);
    let mut file = options.open(&real).map_err(|error| unreadable(&given, &error))?;
    let about = file.metadata().map_err(|error| unreadable(&given, &error))?;
    if !about.is_file() {
        return Err(FileFault::NotRegular(shown()));
    }
    if about.len() > MAX_BYTES {
        return Err(FileFault::TooLarge(about.len(), MAX_BYTES));
    }
    if holds_private_key(&mut file).map_err(|error| unreadable(&given, &error))? {
        return Err(FileFault::Secret(shown()));
    }
    let name = given.file_name().or(real.file_name()).unwrap_or_default();
    Ok(Source { file, size: about.len(), name: name.to_string_lossy().into_owned() })
}

fn unreadable(path: &Path, error: &io::Error) -> FileFault {
    let path = path.display().to_string();
    match error.kind() {
        io::ErrorKind::NotFound => FileFault::NotFound(path),
        io::ErrorKind::AlreadyExists => FileFault::Exists(path),
        // Opening a socket gives ENXIO, which has no kind of its own.
        _ if cfg!(unix) && error.raw_os_error() == Some(6) => FileFault::NotRegular(path),
        _ => FileFault::Unusable(path, error.to_string()),
    }
}

#[cfg(unix)]
fn never_follow(options: &mut OpenOptions) {
    use rustix::fs::OFlags;
    use std::os::unix::fs::OpenOptionsExt as _;
    let flags = OFlags::NOFOLLOW | OFlags::NONBLOCK;
    options.custom_flags(i32::try_from(flags.bits()).unwrap_or(0));
}

#[cfg(not(unix))]
const fn never_follow(_options: &mut OpenOptions) {}

/// Whether any part of a path is hidden.
fn is_hidden(path: &Path) -> bool {
    path.components().any(|part| match part {
        Component::Normal(name) => name.as_encoded_bytes().first() == Some(&b'.'),
        _ => false,
    })
}

fn looks_secret(path: &Path) -> bool {
    let name = path.file_name().unwrap_or_default().to_string_lossy().to_ascii_lowercase();
    SECRET_NAMES.contains(&name.as_str())
        || SECRET_ENDINGS.iter().any(|ending| name.ends_with(ending))
}

fn holds_private_key(file: &mut File) -> io::Result<bool> {
    let mut start = Vec::new();
    (&mut *file).take(PEEK).read_to_end(&mut start)?;
    file.rewind()?;
    let text = String::from_utf8_lossy(&start);
    Ok(text.contains("PRIVATE KEY-----") || text.starts_with("PuTTY-User-Key-File"))
}

/// A new file that goes away again unless it is kept: a download that breaks or is cancelled leaves
/// nothing behind.
#[derive(Debug)]
pub(super) struct Destination {
    path: PathBuf,
    kept: bool,
}

impl Destination {
    /// Keeps the file; gives back its absolute path.
    pub(super) fn keep(&mut self) -> String {
        self.kept = true;
        self.path.display().to_string()
    }

    /// The fault that a failed write is.
    pub(super) fn unusable(&self, error: &io::Error) -> FileFault {
        unreadable(&self.path, error)
    }
}

impl Drop for Destination {
    fn drop(&mut self) {
        if !self.kept {
            // It may be gone already.
            let _ = std::fs::remove_file(&self.path);
        }
    }
}

/// Makes the file that a download goes into. `name` is the sender's word for it.
///
/// # Errors
/// [`FileFault`] says why there is none.
pub(super) fn destination(
    save_path: Option<&str>,
    name: &str,
) -> Result<(Destination, File), FileFault> {
    make_destination(save_path, name, &Roots::of_this_process())
}

fn make_destination(
    save_path: Option<&str>,
    name: &str,
    roots: &Roots,
) -> Result<(Destination, File), FileFault> {
    let given = save_path.map_or_else(|| roots.base.clone(), |path| roots.base.join(path));
    let names_folder = save_path.is_none_or(|path| path.ends_with(['/', '\\'])) || given.is_dir();
    let (folder, own_name) = if names_folder {
        (given.clone(), None)
    } else {
        let folder = given.parent().unwrap_or(&roots.base).to_owned();
        let Some(Component::Normal(own)) = given.components().next_back() else {
            let why = "it names no file".to_owned();
            return Err(FileFault::Unusable(given.display().to_string(), why));
        };
        (folder, Some(own.to_string_lossy().into_owned()))
    };
    let folder = folder.canonicalize().map_err(|error| unreadable(&folder, &error))?;
    let Some(below) = roots.below(&folder) else { return Err(roots.outside(&given)) };
    let hidden = |path: &Path| {
        let why = "it is hidden or lies in a hidden folder".to_owned();
        FileFault::Unusable(path.display().to_string(), why)
    };
    if is_hidden(below) {
        return Err(hidden(&given));
    }
    let Some(own) = own_name else { return numbered(&folder, &safe_name(name)) };
    if own.starts_with('.') {
        return Err(hidden(&given));
    }
    create(folder.join(own))
}

/// A new file called `name`, or with the first free number before its ending.
fn numbered(folder: &Path, name: &str) -> Result<(Destination, File), FileFault> {
    let (stem, ending) = match name.rsplit_once('.') {
        Some((stem, ending)) if !stem.is_empty() => (stem, format!(".{ending}")),
        _ => (name, String::new()),
    };
    let mut path = folder.join(name);
    for number in 2..=MAX_NUMBER {
        match create(path) {
            Err(FileFault::Exists(_)) => path = folder.join(format!("{stem}-{number}{ending}")),
            made => return made,
        }
    }
    create(path)
}

fn create(path: PathBuf) -> Result<(Destination, File), FileFault> {
    let mut options = OpenOptions::new();
    options.write(true).create_new(true);
    never_follow(&mut options);
    match options.open(&path) {
        Ok(file) => Ok((Destination { path, kept: false }, file)),
        Err(error) => Err(unreadable(&path, &error)),
    }
}

/// A base name that is safe in every folder: no separators, nothing hidden, no control or direction
/// characters, no name that some system reserves, never empty, at most [`MAX_NAME`] bytes.
fn safe_name(name: &str) -> String {
    let base = name.rsplit(['/', '\\']).next().unwrap_or_default();
    let turns = |c: char| matches!(c, '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    let plain: String = base
        .chars()
        .filter(|c| !c.is_control() && !turns(*c) && !matches!(c, '\u{2028}' | '\u{2029}'))
        .map(|c| if matches!(c, '<' | '>' | ':' | '"' | '|' | '?' | '*') { '_' } else { c })
        .collect();
    let plain = plain.trim_matches(|c: char| c == '.' || c.is_whitespace());
    let (stem, ending) = match plain.rsplit_once('.') {
        Some((stem, ending)) if ending.len() <= 16 => (stem, format!(".{ending}")),
        _ => (plain, String::new()),
    };
    let stem = &stem[..stem.floor_char_boundary(MAX_NAME - ending.len())];
    let device = stem.split('.').next().unwrap_or_default().to_ascii_uppercase();
    let numbered_device = device.strip_suffix(|c: char| c.is_ascii_digit());
    let reserved = matches!(device.as_str(), "CON" | "PRN" | "AUX" | "NUL")
        || matches!(numbered_device, Some("COM" | "LPT"));
    match stem {
        "" => format!("attachment{ending}"),
        stem if reserved => format!("_{stem}{ending}"),
        stem => format!("{stem}{ending}"),
    }
}

#[cfg(test)]
mod tests;
