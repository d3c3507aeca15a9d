//! What `--fix` does. Each fix is tried on its own; one that fails is told and the others go on.

use std::fs;
use std::path::Path;

use zcode_mail_core::grants::Grants;

use super::state::now;
use super::{Finding, Fix};
use crate::durable;
use crate::install::{InstallArgs, Where, install};

/// Applies every fix once and says what was done.
pub(super) fn apply(findings: &[Finding], place: &Where) -> Vec<String> {
    let mut fixes: Vec<&Fix> = Vec::new();
    for fix in findings.iter().filter_map(|finding| finding.fix.as_ref()) {
        if !fixes.contains(&fix) {
            fixes.push(fix);
        }
    }
    fixes.into_iter().map(|fix| one(fix, place)).collect()
}

fn one(fix: &Fix, place: &Where) -> String {
    let done = match fix {
        Fix::Install => {
            let args = InstallArgs { place: place.clone(), ..InstallArgs::default() };
            install(&args, &mut std::io::sink())
                .map(|()| "installed again".to_owned())
                .map_err(|error| error.to_string())
        }
        Fix::Mode(path, mode) => set_mode(path, *mode)
            .map(|()| format!("{} has mode {mode:o}", path.display()))
            .map_err(|error| format!("{}: {error}", path.display())),
        Fix::Remove(path) => fs::remove_file(path)
            .map(|()| format!("removed {}", path.display()))
            .map_err(|error| format!("{}: {error}", path.display())),
        Fix::PruneGrants(path) => prune(path),
    };
    done.unwrap_or_else(|error| format!("not repaired: {error}"))
}

fn prune(path: &Path) -> Result<String, String> {
    let shown = path.display();
    let bytes = fs::read(path).map_err(|error| format!("{shown}: {error}"))?;
    let mut grants = Grants::parse(&bytes).map_err(|error| format!("{shown}: {error}"))?;
    let ended = grants.prune(now());
    durable::write(path, grants.to_json().as_bytes(), durable::PRIVATE_FILE)
        .map_err(|error| format!("{shown}: {error}"))?;
    Ok(format!("dropped {ended} ended approvals from {shown}"))
}

#[cfg(unix)]
fn set_mode(path: &Path, mode: u32) -> std::io::Result<()> {
    use std::os::unix::fs::PermissionsExt as _;
    fs::set_permissions(path, fs::Permissions::from_mode(mode))
}

#[cfg(not(unix))]
fn set_mode(_path: &Path, _mode: u32) -> std::io::Result<()> {
    Ok(())
}
