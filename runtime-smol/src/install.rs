//! `zcode-mail install` and `zcode-mail uninstall`: into ZCode and out of it again.
//!
//! ```text
//! <prefix>/plugins/zcode-mail-bridge/
//!   0.1.0/               a snapshot: complete, never changed after it got this name
//!   0.1.0+1f2e3d4c/      another build of the same version
//!   current -> 0.1.0     the one that ZCode loads; the link moves by a rename
//!   install.json         whose configuration has our entry, and what it was before
//!   backup/              those configurations, byte for byte
//! ZCode's config.json    plugins.dirs names .../current
//! ```
//!
//! What it promises:
//! - At every moment `current` is missing or leads to one complete snapshot, and the configuration
//!   is the old or the new file; a `kill -9` between two steps changes nothing about that, and the
//!   next run finishes the work.
//! - Everything that could be refused is refused before the first change.
//! - `uninstall` puts back the bytes from before when the file has not changed since, and takes out
//!   exactly our entry when it has.
//!
//! Plugin directories are read at the start of a session, so a running session keeps what it has.

use std::io::Write;
use std::path::{Path, PathBuf};

use clap::Args;
use similar::TextDiff;
use zcode_mail_core::hook::answer::Dialect;
use zcode_mail_core::relay_key::sha256_hex;

pub mod config_file;
pub mod edit;
pub mod error;
pub mod paths;
pub mod record;
pub mod snapshot;
pub mod version;

use config_file::ConfigFile;
use error::InstallError;
use paths::Paths;
use record::{Entry, Record};
use snapshot::Snapshots;
use version::{Choice, ZcodeVersion};

/// How many snapshots stay, the current one included: the one before for `--rollback`, and one
/// more for a session that was started before the last two changes.
pub const KEPT: usize = 3;

/// Where everything is.
#[derive(Clone, Debug, Default, Args)]
pub struct Where {
    /// Directory that holds plugins/zcode-mail-bridge [default: /opt/agentmail for root, else
    /// ~/.local/share/agentmail]
    #[arg(long, value_name = "DIR")]
    pub prefix: Option<PathBuf>,
    /// ZCode's configuration [default: ~/.zcode/cli/config.json]
    #[arg(long, value_name = "FILE")]
    pub config: Option<PathBuf>,
}

/// `zcode-mail install`
#[derive(Clone, Debug, Default, Args)]
pub struct InstallArgs {
    /// Where everything is.
    #[command(flatten)]
    pub place: Where,
    /// Show what would change, and change nothing
    #[arg(long)]
    pub dry_run: bool,
    /// Go back to the snapshot before the current one
    #[arg(long, conflicts_with_all = ["dialect", "zcode_version", "enable_plugins"])]
    pub rollback: bool,
    /// How the hook answers [default: by ZCode's version]
    #[arg(long, value_name = "both|structured|flat", value_parser = crate::plugin::parse_dialect)]
    pub dialect: Option<Dialect>,
    /// ZCode's version, when it cannot be found
    #[arg(long, value_name = "VERSION")]
    pub zcode_version: Option<ZcodeVersion>,
    /// Turn on ZCode's plugins if its configuration turns them off
    #[arg(long)]
    pub enable_plugins: bool,
}

/// `zcode-mail uninstall`
#[derive(Clone, Debug, Default, Args)]
pub struct UninstallArgs {
    /// Where everything is.
    #[command(flatten)]
    pub place: Where,
    /// Show what would change, and change nothing
    #[arg(long)]
    pub dry_run: bool,
}

/// Installs, or rolls back, and says what it did on `out`.
///
/// # Errors
///
/// Says what stands in the way; everything is then as it was, or a later run finishes it.
pub fn install(args: &InstallArgs, out: &mut dyn Write) -> Result<(), InstallError> {
    let paths = Paths::find(&args.place)?;
    if args.rollback {
        return rollback(&paths, args.dry_run, out);
    }
    let config = ConfigFile::open(&paths.config)?;
    let entry = paths.entry()?;
    let edit = edit::add(config.bytes(), &entry, args.enable_plugins)
        .map_err(|refusal| InstallError::Refused(paths.config.clone(), refusal))?;
    let choice = Choice::make(args.dialect, args.zcode_version);
    let changed = edit.bytes != config.bytes();
    if args.dry_run {
        let name = Snapshots::plan(&paths.root, choice.dialect)?;
        say(out, format_args!("would put the plugin into {}", paths.root.join(name).display()))?;
        say(out, format_args!("{choice}"))?;
        return diff(&config, &edit.bytes, out);
    }
    let (snapshots, made) = Snapshots::open(&paths.root)?;
    let mut record = Record::load(&paths.root)?;
    record.remember(&paths.root, made)?;
    let name = snapshots.add(choice.dialect)?;
    snapshots.switch(&name)?;
    if changed {
        record.put(&paths.root, Entry::new(&config, &entry, &edit), config.bytes())?;
        config.replace(&edit.bytes)?;
    }
    snapshots.prune(KEPT)?;
    say(out, format_args!("installed {name} in {}", paths.root.display()))?;
    say(out, format_args!("{choice}"))?;
    let added = if changed { "names it in" } else { "was already named in" };
    say(out, format_args!("plugins.dirs {added} {}", paths.config.display()))?;
    for warning in warnings(&edit.bytes, &entry) {
        say(out, format_args!("note: {warning}"))?;
    }
    say(out, format_args!("new sessions of ZCode load it; `zcode-mail doctor` checks the rest"))
}

/// Takes the plugin out again and says what it did on `out`.
///
/// # Errors
///
/// Says what stands in the way; a later run finishes it.
pub fn uninstall(args: &UninstallArgs, out: &mut dyn Write) -> Result<(), InstallError> {
    let paths = Paths::find(&args.place)?;
    let config = ConfigFile::open(&paths.config)?;
    let entry = paths.entry()?;
    let mut record = Record::load(&paths.root)?;
    let known = record.of(&paths.config).cloned();
    let restored = restored(&paths, &config, known.as_ref(), &entry)?;
    if args.dry_run {
        diff(&config, restored.as_deref().unwrap_or_default(), out)?;
        return say(out, format_args!("would remove {}", paths.root.display()));
    }
    if !paths.root.is_dir() && known.is_none() && restored.as_deref() == config.existing() {
        return Err(InstallError::NotInstalled(paths.root));
    }
    let snapshots = paths.root.is_dir().then(|| Snapshots::existing(&paths.root)).transpose()?;
    match &restored {
        Some(bytes) if Some(bytes.as_slice()) != config.existing() => config.replace(bytes)?,
        None if config.existing().is_some() => config.delete()?,
        _ => {}
    }
    for dir in known.iter().flat_map(|known| known.directories.iter().rev()) {
        // Whoever put something there meanwhile keeps it.
        let _ = std::fs::remove_dir(dir);
    }
    say(out, format_args!("{} has no entry of ours", paths.config.display()))?;
    let Some(snapshots) = snapshots else { return Ok(()) };
    record.forget(&paths.root, &paths.config)?;
    if !record.is_empty() {
        return say(
            out,
            format_args!("the plugin stays for the other configurations that name it"),
        );
    }
    snapshots.remove_all()?;
    for dir in record.made().iter().rev() {
        let _ = std::fs::remove_dir(dir);
    }
    say(out, format_args!("removed {}", paths.root.display()))
}

fn rollback(paths: &Paths, dry_run: bool, out: &mut dyn Write) -> Result<(), InstallError> {
    let snapshots = Snapshots::existing(&paths.root)?;
    let (current, before) = snapshots.before_current()?;
    if dry_run {
        return say(out, format_args!("would go from {current} back to {before}"));
    }
    snapshots.switch(&before)?;
    say(out, format_args!("went from {current} back to {before}; new sessions of ZCode load it"))
}

/// What the configuration becomes: `None` is no file at all.
fn restored(
    paths: &Paths,
    config: &ConfigFile,
    known: Option<&Entry>,
    entry: &str,
) -> Result<Option<Vec<u8>>, InstallError> {
    let Some(bytes) = config.existing() else { return Ok(None) };
    if let Some(known) = known.filter(|known| known.after == sha256_hex(bytes)) {
        return known.original(&paths.root);
    }
    let created = known.map(|known| known.created).unwrap_or_default();
    edit::remove(bytes, entry, created)
        .map(Some)
        .map_err(|refusal| InstallError::Refused(paths.config.clone(), refusal))
}

/// What else in the configuration keeps ZCode from loading the plugin.
fn warnings(bytes: &[u8], entry: &str) -> Vec<String> {
    let Ok(value) = edit::read(bytes) else { return Vec::new() };
    let plugins = &value["plugins"];
    let mut out = Vec::new();
    if plugins["enabledPlugins"][crate::plugin::ID] == false {
        out.push(format!("plugins.enabledPlugins turns {} off", crate::plugin::ID));
    }
    let dirs = plugins["dirs"].as_array().into_iter().flatten().filter_map(|dir| dir.as_str());
    for dir in dirs.take_while(|dir| *dir != entry) {
        if crate::plugin::name_in(Path::new(dir)).as_deref() == Some(crate::plugin::NAME) {
            out.push(format!("{dir} is a plugin of the same name and is loaded in its place"));
        }
    }
    out
}

fn diff(config: &ConfigFile, after: &[u8], out: &mut dyn Write) -> Result<(), InstallError> {
    let name = config.shown().display().to_string();
    let (before, after) = (String::from_utf8_lossy(config.bytes()), String::from_utf8_lossy(after));
    let diff = TextDiff::from_lines(before.as_ref(), after.as_ref());
    let unified = diff.unified_diff().context_radius(3).header(&name, &name).to_string();
    if unified.is_empty() {
        return say(out, format_args!("{name} would stay as it is"));
    }
    out.write_all(unified.as_bytes()).map_err(InstallError::output)
}

fn say(out: &mut dyn Write, line: std::fmt::Arguments<'_>) -> Result<(), InstallError> {
    writeln!(out, "{line}").map_err(InstallError::output)
}
