//! The note that a hook of a mail-driven session waits.
//!
//! A decision that nobody waits for has to be told to the model by the driver (`B-4.2`). The driver
//! sees that a hook waits by `pending/<sha256 of the key>.json` in the state directory, with the
//! hook's process id; a file whose process is gone counts as absent.

use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};

use zcode_mail_core::config::Settings;
use zcode_mail_core::relay_key::sha256_hex;

use crate::clock::unix_now;
use crate::files::{make_private_dir, open_private};

/// The note; gone when dropped.
#[derive(Debug)]
pub(crate) struct Pending {
    path: PathBuf,
}

impl Pending {
    /// Writes the note. Without it the hook works as well, so a failure is told and no more.
    pub(crate) fn note(settings: &Settings, relay_key: &str) -> Option<Self> {
        let folder = settings.state_folder().map_err(|unsettled| unsettled.to_string());
        let written = folder.and_then(|folder| {
            let dir = Path::new(&folder).join("pending");
            let path = dir.join(format!("{}.json", sha256_hex(relay_key.as_bytes())));
            let text = format!("{{\"pid\":{},\"since\":{}}}\n", std::process::id(), unix_now().0);
            make_private_dir(&dir)
                .and_then(|()| {
                    // A hook that was killed left its note behind.
                    let _ = fs::remove_file(&path);
                    open_private(&path, true)?.write_all(text.as_bytes())
                })
                .map_err(|error| format!("{}: {error}", path.display()))?;
            Ok(Self { path })
        });
        written
            .inspect_err(|what| crate::log(&format!("no note of the pending question: {what}")))
            .ok()
    }
}

impl Drop for Pending {
    fn drop(&mut self) {
        // Somebody may have cleaned up; gone is gone.
        let _ = fs::remove_file(&self.path);
    }
}
