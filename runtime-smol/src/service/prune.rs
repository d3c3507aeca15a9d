//! Removing old generations.

use std::collections::BTreeSet;
use std::fs;
use std::io::Write;
use std::path::PathBuf;

use super::error::ServiceError;
use super::generation::{Generations, current};
use super::{Prune, say};
use crate::durable;

/// `zcode-mail gateway prune`.
pub(super) fn run(prune: &Prune, out: &mut dyn Write) -> Result<(), ServiceError> {
    let root = prune.place.root();
    if current(&root).is_none() {
        return Err(ServiceError::NotInstalled(root));
    }
    let generations = Generations::open(&root)?;
    if prune.dry_run {
        for name in doomed(&generations, prune.keep)? {
            say(out, format_args!("would remove {}", generations.path(&name).display()))?;
        }
        return Ok(());
    }
    old(&generations, prune.keep, out)
}

/// Removes all but the newest `keep` generations. All of them are tried; if one stays, there is no
/// summary but an error that names it.
pub(super) fn old(
    generations: &Generations,
    keep: usize,
    out: &mut dyn Write,
) -> Result<(), ServiceError> {
    let mut failed = Vec::new();
    let mut removed = 0_usize;
    let mut paths = generations.leftovers()?;
    for name in doomed(generations, keep)? {
        // Out of the list first: half a generation must not look like one.
        let path = generations.path(&name);
        let hidden = durable::beside(&path).map_err(ServiceError::io(&path))?;
        match durable::rename(&path, &hidden) {
            Ok(()) => paths.push(hidden),
            Err(error) => failed.push((path, error)),
        }
    }
    for path in paths {
        match durable::remove_directory(&path) {
            Ok(()) => removed += 1,
            Err(error) => failed.push((path, error)),
        }
    }
    if !failed.is_empty() {
        return Err(ServiceError::NotRemoved(failed));
    }
    let kept = generations.list()?.len();
    say(out, format_args!("removed {removed} old generations, {kept} stay"))
}

/// What goes: everything but the current generation, those from which a process runs, and the
/// newest ones up to `keep` in all.
fn doomed(generations: &Generations, keep: usize) -> Result<Vec<String>, ServiceError> {
    let current = generations.current();
    let used = in_use();
    let list = generations.list()?;
    let mut others: Vec<String> = list
        .into_iter()
        .map(|(_, name)| name)
        .filter(|name| Some(name) != current.as_ref())
        .collect();
    let kept = keep.saturating_sub(1).min(others.len());
    others.truncate(others.len() - kept);
    others.retain(|name| {
        let path = fs::canonicalize(generations.path(name)).unwrap_or_default();
        !used.iter().any(|program| program.starts_with(&path))
    });
    Ok(others)
}

/// The programs of all running processes.
fn in_use() -> BTreeSet<PathBuf> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    entries.filter_map(|entry| fs::read_link(entry.path().join("exe")).ok()).collect()
}
