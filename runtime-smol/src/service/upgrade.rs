//! Installing and replacing the gateway's program.

use std::env;
use std::io::Write;
use std::path::PathBuf;

use jiff::Timestamp;

use super::backup::Copy;
use super::error::ServiceError;
use super::generation::{Generations, current};
use super::systemd::{systemctl, unit};
use super::{Change, KEPT, Place, backup, checks, prune, say, systemd};

/// Installs the service and starts it.
pub(super) fn install(change: &Change, out: &mut dyn Write) -> Result<(), ServiceError> {
    let place = &change.place;
    systemd::nameable(place)?;
    let program = program(change)?;
    if change.dry_run {
        say(out, format_args!("would copy {} into {}", program.display(), place.root().display()))?;
        let env = place.env_file.display();
        if place.env_file.exists() {
            say(out, format_args!("would leave {env} as it is"))?;
        } else {
            say(out, format_args!("would write {env} with a random ADMIN_PASSWORD"))?;
        }
        say(out, format_args!("would write {}/{}.service:", place.unit_dir.display(), place.name))?;
        return say(out, format_args!("{}", unit(place)));
    }
    let generations = Generations::open(&place.root())?;
    let before = generations.current();
    let name = generations.add(&program)?;
    let copy = backup::take(&place.data, &name)?;
    let fresh = systemd::write(place)?;
    generations.switch(&name)?;
    systemctl(&["daemon-reload"])?;
    let since = Timestamp::now();
    let started = systemctl(&["enable", &place.name])
        .and_then(|_| systemctl(&["restart", &place.name]))
        .map_err(|error| error.to_string())
        .and_then(|_| checks::well(place, since, 0));
    if let Err(why) = started {
        return Err(take_back(place, &generations, before.as_deref(), copy.as_ref(), &why));
    }
    say(out, format_args!("installed {name}; the service {} is active", place.name))?;
    say(out, format_args!("http://{} answers", place.listen))?;
    if fresh {
        let env = place.env_file.display();
        say(out, format_args!("the first administrator's name and password are in {env}"))?;
    }
    Ok(())
}

/// Replaces the program, and takes that back when the gateway is not well afterwards.
pub(super) fn upgrade(change: &Change, out: &mut dyn Write) -> Result<(), ServiceError> {
    let place = &change.place;
    let root = place.root();
    let Some(old) = current(&root) else { return Err(ServiceError::NotInstalled(root)) };
    let program = program(change)?;
    if change.dry_run {
        let data = place.data.display();
        say(out, format_args!("would replace {old} by {}", program.display()))?;
        say(out, format_args!("would copy the database in {data} first and check the copy"))?;
        say(
            out,
            format_args!(
                "would restart {} and check: active, /health, no panic, streams",
                place.name
            ),
        )?;
        return say(out, format_args!("would go back to {old} if any of these fails"));
    }
    let generations = Generations::open(&root)?;
    let name = generations.add(&program)?;
    let copy = backup::take(&place.data, &name)?;
    if let Some(copy) = &copy {
        say(out, format_args!("the database is saved in {}", copy.path.display()))?;
    }
    let streams = checks::streams(place).unwrap_or_default();
    generations.switch(&name)?;
    let since = Timestamp::now();
    let restarted = systemctl(&["restart", &place.name])
        .map_err(|error| error.to_string())
        .and_then(|_| checks::well(place, since, streams));
    if let Err(why) = restarted {
        return Err(take_back(place, &generations, Some(&old), copy.as_ref(), &why));
    }
    say(out, format_args!("{name} runs: active, /health answers, no panic, streams are back"))?;
    say(
        out,
        format_args!(
            "to go back: zcode-mail gateway upgrade --from {}",
            generations.path(&old).join(super::generation::PROGRAM).display()
        ),
    )?;
    prune::old(&generations, KEPT, out)
}

/// Goes back to what ran before.
fn take_back(
    place: &Place,
    generations: &Generations,
    old: Option<&str>,
    copy: Option<&Copy>,
    why: &str,
) -> ServiceError {
    let back = (|| {
        // The failed one must not write while the database is put back. It may have stopped itself.
        let stopped = systemctl(&["stop", &place.name]);
        let restored = copy.map(|copy| backup::restore(&place.data, copy)).transpose()?;
        let Some(old) = old else {
            generations.unlink()?;
            stopped?;
            return Ok("nothing ran before, so the service is stopped".to_owned());
        };
        generations.switch(old)?;
        let since = Timestamp::now();
        systemctl(&["restart", &place.name])?;
        checks::well(place, since, 0)
            .map_err(|why| ServiceError::Systemd(format!("{old} is not well either: {why}")))?;
        let database = if restored == Some(true) { " with the database of before" } else { "" };
        Ok(format!("{old} runs again{database}"))
    })();
    let then = back.unwrap_or_else(|error: ServiceError| format!("going back failed: {error}"));
    ServiceError::Unwell { why: why.to_owned(), then }
}

fn program(change: &Change) -> Result<PathBuf, ServiceError> {
    match &change.from {
        Some(path) => Ok(path.clone()),
        None => env::current_exe().map_err(ServiceError::io("this program")),
    }
}
