use super::*;

fn folder() -> (tempfile::TempDir, Roots) {
    let dir = tempfile::tempdir().unwrap();
    let work = dir.path().join("work");
    std::fs::create_dir(&work).unwrap();
    let roots = Roots::new(work, &[]);
    (dir, roots)
}

fn put(roots: &Roots, name: &str, content: &[u8]) {
    std::fs::write(roots.base.join(name), content).unwrap();
}

#[test]
fn an_ordinary_file_may_leave_by_relative_or_absolute_path() {
    let (_dir, roots) = folder();
    put(&roots, "报告 \"a\".txt", b"hello");
    let source = open_source("报告 \"a\".txt", &roots).unwrap();
    assert_eq!((source.size, source.name.as_str()), (5, "报告 \"a\".txt"));
    let absolute = roots.base.join("报告 \"a\".txt");
    assert!(open_source(absolute.to_str().unwrap(), &roots).is_ok());
}

#[test]
fn secrets_stay() {
    let (_dir, roots) = folder();
    std::fs::create_dir(roots.base.join(".ssh")).unwrap();
    put(&roots, ".ssh/config", b"x");
    for name in [".env", "server.PEM", "id_ed25519", "agent.key", "credentials"] {
        put(&roots, name, b"x");
    }
    put(&roots, "notes.txt", b"-----BEGIN OPENSSH PRIVATE KEY-----\n");
    put(&roots, "plain.txt", b"x");
    for name in
        [".env", "server.PEM", "id_ed25519", "agent.key", "credentials", ".ssh/config", "notes.txt"]
    {
        assert!(matches!(open_source(name, &roots), Err(FileFault::Secret(_))), "{name}");
    }
    assert!(open_source("plain.txt", &roots).is_ok());
}

#[test]
fn the_size_limit_holds_on_both_sides() {
    let (_dir, roots) = folder();
    for (size, allowed) in [(MAX_BYTES, true), (MAX_BYTES + 1, false)] {
        let file = File::create(roots.base.join("big.bin")).unwrap();
        file.set_len(size).unwrap();
        assert_eq!(open_source("big.bin", &roots).is_ok(), allowed, "{size}");
    }
}

#[test]
#[cfg(unix)]
fn links_out_directories_sockets_and_pipes_stay() {
    use std::os::unix::fs::symlink;
    let (dir, roots) = folder();
    std::fs::write(dir.path().join("outside.txt"), b"x").unwrap();
    put(&roots, "inside.txt", b"x");
    symlink(dir.path().join("outside.txt"), roots.base.join("out")).unwrap();
    symlink(roots.base.join("inside.txt"), roots.base.join("in")).unwrap();
    symlink("nowhere", roots.base.join("broken")).unwrap();
    std::fs::create_dir(roots.base.join("sub")).unwrap();
    let _socket = std::os::unix::net::UnixListener::bind(roots.base.join("socket")).unwrap();
    rustix::fs::mknodat(
        rustix::fs::CWD,
        roots.base.join("pipe"),
        rustix::fs::FileType::Fifo,
        rustix::fs::Mode::RUSR,
        0,
    )
    .unwrap();
    assert!(open_source("in", &roots).is_ok());
    for (name, expected) in [
        ("out", "Outside"),
        ("../outside.txt", "Outside"),
        ("/etc/passwd", "Outside"),
        ("broken", "NotFound"),
        ("missing", "NotFound"),
        ("sub", "NotRegular"),
        ("socket", "NotRegular"),
        ("pipe", "NotRegular"),
    ] {
        let fault = format!("{:?}", open_source(name, &roots).unwrap_err());
        assert!(fault.starts_with(expected), "{name}: {fault}");
    }
}

#[test]
fn the_whole_file_system_is_no_root() {
    let roots = Roots::new(PathBuf::from("/"), &[]);
    assert!(open_source("/etc/hostname", &roots).is_err());
}

#[test]
fn a_name_of_the_senders_becomes_safe() {
    for (name, expected) in [
        ("report.pdf", "report.pdf"),
        ("../../etc/passwd", "passwd"),
        ("C:\\x\\evil.exe", "evil.exe"),
        (".bashrc", "bashrc"),
        ("..", "attachment"),
        ("", "attachment"),
        ("a\r\nb\0.txt", "ab.txt"),
        ("gpj.\u{202e}exe", "gpj.exe"),
        ("会 议 🎈.txt", "会 议 🎈.txt"),
        ("con.txt", "_con.txt"),
        ("COM1", "_COM1"),
        ("communication.txt", "communication.txt"),
        ("a:b?.txt", "a_b_.txt"),
        (" . ", "attachment"),
    ] {
        assert_eq!(safe_name(name), expected, "{name:?}");
    }
    let long = safe_name(&format!("{}.txt", "长".repeat(300)));
    assert!(long.len() <= MAX_NAME && long.ends_with(".txt"), "{}", long.len());
}

#[test]
fn nothing_is_overwritten_and_a_broken_download_leaves_nothing() {
    let (_dir, roots) = folder();
    put(&roots, "a.txt", b"mine");
    let fault = make_destination(Some("a.txt"), "x", &roots).unwrap_err();
    assert!(matches!(fault, FileFault::Exists(_)));
    let (mut kept, _) = make_destination(None, "a.txt", &roots).unwrap();
    let path = kept.keep();
    assert!(Path::new(&path).is_absolute() && path.ends_with("a-2.txt"), "{path}");
    drop(kept);
    let (dropped, _) = make_destination(Some("b.txt"), "x", &roots).unwrap();
    assert!(roots.base.join("b.txt").exists());
    drop(dropped);
    assert!(!roots.base.join("b.txt").exists());
    assert_eq!(std::fs::read(roots.base.join("a.txt")).unwrap(), b"mine");
}

#[test]
#[cfg(unix)]
fn a_link_is_not_written_through_and_hidden_places_are_refused() {
    use std::os::unix::fs::symlink;
    let (dir, roots) = folder();
    symlink(dir.path().join("target"), roots.base.join("link.txt")).unwrap();
    symlink(dir.path(), roots.base.join("away")).unwrap();
    std::fs::create_dir(roots.base.join(".config")).unwrap();
    for (path, expected) in [
        ("link.txt", "Exists"),
        ("away/x.txt", "Outside"),
        ("../x.txt", "Outside"),
        (".hidden", "Unusable"),
        (".config/x", "Unusable"),
        ("no/such/folder/x", "NotFound"),
        ("..", "Outside"),
    ] {
        let fault = format!("{:?}", make_destination(Some(path), "n", &roots).unwrap_err());
        assert!(fault.starts_with(expected), "{path}: {fault}");
    }
    assert!(!dir.path().join("target").exists());
}
