//! Risk hints: what a person should look at twice.
//!
//! What it is: a small table over [`crate::shell`] and the paths of an edit, each row a sentence in
//! two languages.
//!
//! What it promises: hints never decide. [`of`] gives sentences and nothing else; no decision in
//! this crate takes a [`Hint`], so a wrong or missing one changes what is read, never what runs.
//!
//! | hint | found by |
//! |---|---|
//! | [`Hint::DestructiveGit`] | `git reset --hard`, `clean -f`, `checkout -- .`, `restore`, `branch -D`, `stash drop` |
//! | [`Hint::RewritesHistory`] | `git push --force`, `rebase`, `commit --amend`, `filter-branch`, `reflog expire` |
//! | [`Hint::DeletesTree`] | `rm -r`, `find -delete`, `shred`, `rsync --delete` |
//! | [`Hint::NetworkToShell`] | a downloader piped into a shell or interpreter |
//! | [`Hint::WritesOutside`] | a redirection, `cp`, `mv`, `tee`, `rm` or an edit with a path outside of the working directory |
//! | [`Hint::Credentials`] | a path that usually holds keys or passwords |
//! | [`Hint::ControlsServices`] | `systemctl`, `service`, `kill`, `shutdown`, `launchctl`, `crontab` |
//! | [`Hint::RunsAsOther`] | `sudo`, `su`, `doas` |
//! | [`Hint::ChangesDisk`] | `dd`, `mkfs`, `fdisk`, `mount`, a write to `/dev/sd...` |
//! | [`Hint::NotRead`] | a command line that could not be read to its end |

use alloc::vec::Vec;

use crate::exact::Value;
use crate::lang::Lang;
use crate::shell::{Command, Joint, Script, read};

/// Something to look at twice.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Hint {
    /// Throws away uncommitted or unmerged work.
    DestructiveGit,
    /// Changes history that others may have.
    RewritesHistory,
    /// Deletes whole directories.
    DeletesTree,
    /// Runs what a server sends.
    NetworkToShell,
    /// Changes something outside of the working directory.
    WritesOutside,
    /// Touches keys or passwords.
    Credentials,
    /// Starts, stops or schedules programs.
    ControlsServices,
    /// Runs as another user.
    RunsAsOther,
    /// Changes disks or file systems.
    ChangesDisk,
    /// Could not be read to its end, so other hints may be missing.
    NotRead,
}

impl Hint {
    /// All hints, in the order in which they are shown.
    pub const ALL: [Self; 10] = [
        Self::NetworkToShell,
        Self::DeletesTree,
        Self::DestructiveGit,
        Self::RewritesHistory,
        Self::Credentials,
        Self::WritesOutside,
        Self::RunsAsOther,
        Self::ChangesDisk,
        Self::ControlsServices,
        Self::NotRead,
    ];

    /// The sentence that people read.
    #[must_use]
    pub const fn text(self, lang: Lang) -> &'static str {
        let (zh, en) = match self {
            Self::DestructiveGit => {
                ("会丢弃未提交或未合并的工作", "throws away uncommitted or unmerged work")
            }
            Self::RewritesHistory => ("会改写 git 历史", "rewrites git history"),
            Self::DeletesTree => ("会删除整个目录", "deletes whole directories"),
            Self::NetworkToShell => ("会直接执行从网络下载的内容", "runs what it downloads"),
            Self::WritesOutside => {
                ("会改动工作目录之外的文件", "changes files outside of the working directory")
            }
            Self::Credentials => ("涉及密钥或密码文件", "touches files with keys or passwords"),
            Self::ControlsServices => {
                ("会启动、停止或定时运行程序", "starts, stops or schedules programs")
            }
            Self::RunsAsOther => ("会以其它用户身份运行", "runs as another user"),
            Self::ChangesDisk => ("会改动磁盘或文件系统", "changes disks or file systems"),
            Self::NotRead => (
                "命令没有读懂全部，提示可能不全",
                "the command could not be read to its end; hints may be missing",
            ),
        };
        lang.pick(zh, en)
    }
}

/// The hints about a call, each once.
#[must_use]
pub fn of(tool: &str, input: &Value, cwd: &str) -> Vec<Hint> {
    let mut found = Vec::new();
    let text = |key: &str| input.get(key).and_then(Value::as_text);
    for path in ["file_path", "notebook_path"].into_iter().filter_map(text) {
        found.extend(is_outside(path, cwd).then_some(Hint::WritesOutside));
        found.extend(is_credential(path).then_some(Hint::Credentials));
    }
    if let Some(patch) = text("patch_text") {
        for path in patch.lines().filter_map(patched) {
            found.extend(is_outside(path, cwd).then_some(Hint::WritesOutside));
            found.extend(is_credential(path).then_some(Hint::Credentials));
        }
    }
    if let Some(command) = text("command").filter(|_| tool == "Bash") {
        of_script(&read(command), cwd, 0, &mut found);
    }
    Hint::ALL.into_iter().filter(|hint| found.contains(hint)).collect()
}

fn of_script(script: &Script, cwd: &str, nested: usize, found: &mut Vec<Hint>) {
    for (at, command) in script.commands.iter().enumerate() {
        of_command(command, cwd, found);
        let before = at.checked_sub(1).and_then(|at| script.commands.get(at));
        if command.joint == Joint::Pipe
            && name(command).is_some_and(is_interpreter)
            && before
                .and_then(name)
                .is_some_and(|name| matches!(name, "curl" | "wget" | "fetch" | "nc" | "ssh"))
        {
            found.push(Hint::NetworkToShell);
        }
        let raw =
            |word: &crate::shell::Word| word.raw.contains("$(curl") || word.raw.contains("$(wget");
        if command.words.iter().any(raw) {
            found.push(Hint::NetworkToShell);
        }
        // The text of `bash -c`, which is a command line itself.
        let words = arguments(command);
        if name(command).is_some_and(is_interpreter)
            && let Some(at) = words.iter().position(|word| matches!(*word, "-c" | "-lc" | "-ec"))
            && let Some(text) = words.get(at + 1)
            && nested < 3
        {
            of_script(&read(text), cwd, nested + 1, found);
        }
    }
    if script.unread.is_some() {
        found.push(Hint::NotRead);
    }
}

fn of_command(command: &Command, cwd: &str, found: &mut Vec<Hint>) {
    for redirection in command.redirections.iter().filter(|r| r.operator.contains('>')) {
        let target = &redirection.target;
        // Also one that is expanded: ~/.bashrc says enough.
        let target = target.literal.as_deref().unwrap_or(&target.raw);
        found.extend(is_outside(target, cwd).then_some(Hint::WritesOutside));
        found.extend(target.starts_with("/dev/sd").then_some(Hint::ChangesDisk));
    }
    for word in &command.words {
        // Also words that are expanded: ~/.ssh/id_rsa says enough.
        let text = word.literal.as_deref().unwrap_or(&word.raw);
        found.extend(is_credential(text).then_some(Hint::Credentials));
    }
    if command.words.iter().any(|w| matches!(w.literal.as_deref(), Some("sudo" | "su" | "doas"))) {
        found.push(Hint::RunsAsOther);
    }
    let Some(name) = name(command) else { return };
    let words = arguments(command);
    let has = |option: &str| words.contains(&option);
    let short =
        |c: char| words.iter().any(|w| w.starts_with('-') && !w.starts_with("--") && w.contains(c));
    match name {
        "git" => of_git(&words, found),
        "rm" if short('r') || short('R') || has("--recursive") => found.push(Hint::DeletesTree),
        "find" if has("-delete") => found.push(Hint::DeletesTree),
        "rsync" if words.iter().any(|w| w.starts_with("--delete")) => found.push(Hint::DeletesTree),
        "shred" | "wipefs" => found.push(Hint::DeletesTree),
        "systemctl" | "service" | "launchctl" | "kill" | "pkill" | "killall" | "shutdown"
        | "reboot" | "crontab" | "at" | "initctl" | "rc-service" => {
            found.push(Hint::ControlsServices)
        }
        "dd" | "fdisk" | "parted" | "mount" | "umount" | "mkswap" => found.push(Hint::ChangesDisk),
        name if name.starts_with("mkfs") => found.push(Hint::ChangesDisk),
        _ => {}
    }
    if matches!(
        name,
        "cp" | "mv"
            | "tee"
            | "rm"
            | "rmdir"
            | "ln"
            | "install"
            | "touch"
            | "mkdir"
            | "chmod"
            | "chown"
            | "truncate"
            | "unlink"
    ) && words.iter().any(|word| !word.starts_with('-') && is_outside(word, cwd))
    {
        found.push(Hint::WritesOutside);
    }
}

fn of_git(words: &[&str], found: &mut Vec<Hint>) {
    let has = |option: &str| words.contains(&option);
    let Some(verb) = words.iter().find(|word| !word.starts_with('-')) else { return };
    let force = has("--force")
        || words.iter().any(|w| w.starts_with('-') && !w.starts_with("--") && w.contains('f'));
    match *verb {
        "reset" if has("--hard") || has("--merge") => found.push(Hint::DestructiveGit),
        "clean" if force => found.push(Hint::DestructiveGit),
        "checkout" if has("--") || has(".") || force => found.push(Hint::DestructiveGit),
        "restore" => found.push(Hint::DestructiveGit),
        "branch" if has("-D") || (has("-d") && force) => found.push(Hint::DestructiveGit),
        "stash" if has("drop") || has("clear") => found.push(Hint::DestructiveGit),
        "push"
            if force
                || words.iter().any(|w| w.starts_with("--force") || w.starts_with('+'))
                || has("--mirror")
                || has("--delete") =>
        {
            found.push(Hint::RewritesHistory);
        }
        "rebase" | "filter-branch" | "filter-repo" | "replace" => found.push(Hint::RewritesHistory),
        "commit" if has("--amend") => found.push(Hint::RewritesHistory),
        "reflog" if has("expire") || has("delete") => found.push(Hint::RewritesHistory),
        _ => {}
    }
}

/// The name of the program, prefixes such as `sudo` skipped.
fn name(command: &Command) -> Option<&str> {
    let words = command.words.iter().filter_map(|word| word.literal.as_deref()).map(base);
    words.into_iter().find(|word| {
        !matches!(*word, "sudo" | "doas" | "env" | "nohup" | "time" | "exec" | "command")
            && !word.contains('=')
    })
}

/// Everything behind the program's name that is known.
fn arguments(command: &Command) -> Vec<&str> {
    let known: Vec<&str> =
        command.words.iter().filter_map(|word| word.literal.as_deref()).collect();
    let name = name(command);
    let at =
        known.iter().position(|word| Some(base(word)) == name).map_or(known.len(), |at| at + 1);
    known[at..].to_vec()
}

fn is_interpreter(name: &str) -> bool {
    matches!(
        name,
        "sh" | "bash" | "zsh" | "dash" | "ksh" | "python" | "python3" | "perl" | "ruby" | "node"
    )
}

fn base(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}

/// Whether `path` leads out of `cwd`, by its text alone: links are not followed.
fn is_outside(path: &str, cwd: &str) -> bool {
    if path.starts_with("/dev/null") || path.starts_with("/dev/std") || path.starts_with('&') {
        return false;
    }
    if path.starts_with('~') {
        return true;
    }
    let mut depth: Vec<&str> = Vec::new();
    let base = cwd.split('/').filter(|part| !part.is_empty());
    let whole = path.split('/').filter(|part| !part.is_empty() && *part != ".");
    let start = if path.starts_with('/') { Vec::new() } else { base.clone().collect() };
    depth.extend(start);
    for part in whole {
        if part == ".." {
            depth.pop();
        } else {
            depth.push(part);
        }
    }
    let base: Vec<&str> = base.collect();
    !depth.starts_with(&base)
}

fn is_credential(path: &str) -> bool {
    const PARTS: [&str; 9] = [
        ".ssh",
        ".gnupg",
        ".aws",
        ".kube",
        ".docker",
        ".netrc",
        ".npmrc",
        ".pypirc",
        ".git-credentials",
    ];
    const NAMES: [&str; 8] = [
        "id_rsa",
        "id_ed25519",
        "id_ecdsa",
        "credentials",
        "shadow",
        ".env",
        ".htpasswd",
        "agent.key",
    ];
    const ENDS: [&str; 4] = [".pem", ".key", ".p12", ".pfx"];
    let mut parts = path.split(['/', ':', '=']);
    let name = base(path);
    parts.any(|part| PARTS.contains(&part))
        || NAMES.contains(&name)
        || name.starts_with(".env.")
        || ENDS.iter().any(|end| name.len() > end.len() && name.ends_with(end))
}

/// The path in a patch's file header.
fn patched(line: &str) -> Option<&str> {
    [
        "*** Add File: ",
        "*** Update File: ",
        "*** Delete File: ",
        "*** Move to: ",
        "+++ b/",
        "--- a/",
    ]
    .into_iter()
    .find_map(|start| line.strip_prefix(start))
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::string::String;
    use alloc::vec;

    fn bash(command: &str) -> Vec<Hint> {
        let input = Value::object(vec![("command".into(), Value::Text(command.into()))]);
        of("Bash", &input, "/home/u/p")
    }

    #[test]
    fn the_table_of_commands_holds() {
        for line in include_str!("hints/table.txt").lines() {
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            let (command, expected) = line.split_once(" =>").unwrap();
            let found: Vec<String> =
                bash(command).iter().map(|hint| alloc::format!("{hint:?}")).collect();
            assert_eq!(found.join(" "), expected.trim(), "{command}");
        }
    }

    #[test]
    fn paths_of_edits_and_patches_are_looked_at() {
        let of = |tool, key: &str, text: &str| {
            of(tool, &Value::object(vec![(key.into(), Value::Text(text.into()))]), "/home/u/p")
        };
        assert_eq!(of("Write", "file_path", "/home/u/p/src/a.rs"), []);
        assert_eq!(of("Write", "file_path", "/home/u/project/a"), [Hint::WritesOutside]);
        assert_eq!(of("Edit", "file_path", "../p/a"), []);
        assert_eq!(of("Edit", "file_path", ".env"), [Hint::Credentials]);
        let patch = "*** Begin Patch\n*** Update File: /etc/hosts\n*** End Patch";
        assert_eq!(of("ApplyPatch", "patch_text", patch), [Hint::WritesOutside]);
    }

    #[test]
    fn every_hint_has_a_sentence_in_both_languages_and_its_place() {
        for hint in Hint::ALL {
            assert_ne!(hint.text(Lang::Zh), hint.text(Lang::En));
        }
        let mut all = Hint::ALL.to_vec();
        all.sort();
        all.dedup();
        assert_eq!(all.len(), Hint::ALL.len());
    }
}
