//! Files that the hook keeps: remembered approvals and notes of questions that wait.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use zcode_mail_core::grants::Grants;
use zcode_mail_core::time::UnixMillis;

use super::facts::{Facts, json_file};
use super::settings::trouble;
use super::{Finding, Fix, Report};
use crate::durable;

/// Mode of a folder that only its owner may enter.
const PRIVATE_FOLDER: u32 = 0o700;

pub(super) fn check(facts: &Facts, report: &mut Report) {
    let Ok(folder) = facts.settings.state_folder() else { return };
    let folder = PathBuf::from(folder);
    if folder.is_dir() {
        own_folder(&folder, report);
    }
    if let Ok(grants) = facts.settings.grants_file() {
        remembered(Path::new(&grants), report);
    }
    waiting(&folder.join("pending"), report);
}

fn own_folder(folder: &Path, report: &mut Report) {
    let shown = folder.display();
    // Reading names does no harm; whoever may write here may put a grants file of their own.
    if let Some((zh, en, by_mode)) = trouble(folder, 0o022) {
        let finding = Finding::error(
            "ZM-401",
            format!("状态目录 {shown} 有问题：{zh}"),
            format!("the state folder {shown} {en}"),
        );
        let fix = Fix::Mode(folder.to_owned(), PRIVATE_FOLDER);
        report.add(if by_mode { finding.fix(fix) } else { finding });
    }
}

fn remembered(path: &Path, report: &mut Report) {
    let Ok(bytes) = fs::read(path) else { return };
    let shown = path.display();
    if let Some((zh, en, by_mode)) = trouble(path, 0o022) {
        let finding = Finding::error(
            "ZM-402",
            format!("授权文件 {shown} 有问题：{zh}"),
            format!("the approvals in {shown} do not count: the file {en}"),
        );
        let fix = Fix::Mode(path.to_owned(), durable::PRIVATE_FILE);
        report.add(if by_mode { finding.fix(fix) } else { finding });
    }
    match Grants::parse(&bytes) {
        Err(error) => report.add(Finding::error(
            "ZM-402",
            format!("授权文件 {shown} 坏了（{error}），里面的「一直同意」都不算数；移走它"),
            format!("the approvals in {shown} do not count ({error}); move the file away"),
        )),
        Ok(mut grants) => {
            let ended = grants.prune(now());
            if ended > 0 {
                report.add(
                    Finding::warning(
                        "ZM-403",
                        format!("{shown} 里有 {ended} 条「一直同意」已经过期"),
                        format!("{ended} remembered approvals in {shown} have ended"),
                    )
                    .fix(Fix::PruneGrants(path.to_owned())),
                );
            }
        }
    }
}

/// Notes of hooks that are gone: a question without anybody who waits for its answer.
fn waiting(folder: &Path, report: &mut Report) {
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = entry.path();
        let pid = json_file(&path).ok().and_then(|note| note["pid"].as_u64());
        if pid.is_some_and(alive) {
            continue;
        }
        let shown = path.display();
        report.add(
            Finding::warning(
                "ZM-403",
                format!("{shown} 说有钩子在等人，但那个进程已经不在；对应的请求没有人等了"),
                format!("{shown} says that a hook waits, but its process is gone, so nobody waits for that request"),
            )
            .fix(Fix::Remove(path.clone())),
        );
    }
}

#[cfg(unix)]
fn alive(pid: u64) -> bool {
    let pid = i32::try_from(pid).ok().and_then(rustix::process::Pid::from_raw);
    // A process of another user answers "not permitted", and it lives.
    pid.is_some_and(|pid| {
        !matches!(rustix::process::test_kill_process(pid), Err(rustix::io::Errno::SRCH))
    })
}

#[cfg(not(unix))]
fn alive(_pid: u64) -> bool {
    true
}

/// The wall clock.
pub(super) fn now() -> UnixMillis {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    UnixMillis(i64::try_from(since.as_millis()).unwrap_or(i64::MAX))
}
