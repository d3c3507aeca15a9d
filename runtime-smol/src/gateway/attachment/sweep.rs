//! Removing what was uploaded and never sent.

use std::fs;
use std::time::Duration;

use super::super::failure::Failure;
use super::super::log;
use super::super::store::Store;
use super::Shelf;

/// How long a file may wait for its mail, milliseconds.
const ORPHAN_AGE: i64 = 24 * 3600 * 1000;
/// How often orphans are looked for.
const SWEEP_EVERY: Duration = Duration::from_secs(3600);

/// Removes, now and every hour, what was uploaded and never sent.
pub(in crate::gateway) async fn sweep_for_ever(store: Store, shelf: Shelf) {
    loop {
        if let Err(failure) = sweep(&store, &shelf).await {
            let cause = failure.cause.as_deref().unwrap_or(&failure.message.en);
            log::line(format_args!("sweeping attachments: {cause}"));
        }
        smol::Timer::after(SWEEP_EVERY).await;
    }
}

async fn sweep(store: &Store, shelf: &Shelf) -> Result<(), Failure> {
    let orphans = store
        .write(|tx| {
            let before = tx.now() - ORPHAN_AGE;
            let mut statement = tx.prepare(
                "DELETE FROM attachments WHERE created_at < ?1 AND id NOT IN
                   (SELECT attachment_id FROM mail_attachments) RETURNING sha256",
            )?;
            let rows = statement.query_map([before], |row| row.get(0))?;
            Ok(rows.collect::<Result<Vec<String>, _>>()?)
        })
        .await?;
    if orphans.is_empty() {
        return Ok(());
    }
    log::line(format_args!("removed {} attachments that no mail took", orphans.len()));
    let shelf = shelf.clone();
    store
        .write(move |tx| {
            for sha256 in orphans {
                let used: bool = tx.query_row(
                    "SELECT EXISTS (SELECT 1 FROM attachments WHERE sha256 = ?1)",
                    [&sha256],
                    |row| row.get(0),
                )?;
                if !used {
                    // A file that is gone already is what was wanted.
                    let _ = fs::remove_file(shelf.stored(&sha256));
                }
            }
            Ok(())
        })
        .await
}
