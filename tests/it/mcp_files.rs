//! Attachments through the real mail server, in both directions.

use serde_json::json;
use zcode_mail_tests::fakes::mailbox::{Answer, Mailbox, Seen};
use zcode_mail_tests::fakes::mcp::Setup;

/// The largest attachment (25 MB).
const LIMIT: usize = 25 * 1024 * 1024;

fn stored() -> Answer {
    Answer::json(200, r#"{"attachment_id":"att-1"}"#)
}

/// The file inside a multipart body, and the head of its part.
fn part(seen: &Seen) -> (String, Vec<u8>) {
    let kind = &seen.headers["content-type"];
    let boundary = kind.strip_prefix("multipart/form-data; boundary=").expect("a boundary");
    let head_end = seen.body.windows(4).position(|w| w == b"\r\n\r\n").expect("a head") + 4;
    let tail = format!("\r\n--{boundary}--\r\n");
    let content = &seen.body[head_end..];
    let content = content.strip_suffix(tail.as_bytes()).expect("the closing boundary");
    let head = String::from_utf8(seen.body[..head_end].to_vec()).expect("a head is text");
    assert!(head.starts_with(&format!("--{boundary}\r\n")), "{head}");
    (head, content.to_vec())
}

/// Bytes without a pattern that compression or a short cut could hide.
fn noise(len: usize) -> Vec<u8> {
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    std::iter::repeat_with(|| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state.to_le_bytes()
    })
    .flatten()
    .take(len)
    .collect()
}

#[test]
fn a_file_goes_up_as_one_part_and_its_id_comes_back() {
    let gateway = Mailbox::start(|_| stored());
    let setup = Setup::new(&gateway.url);
    std::fs::write(setup.work().join("报告 \"x\".txt"), "内容\r\n--x--").unwrap();
    let mut server = setup.start();
    let (text, is_error) = server.text("upload_attachment", &json!({"path": "报告 \"x\".txt"}));
    assert!(!is_error && text.contains("attachment_id: att-1"), "{text}");
    let seen = gateway.nth("POST /api/v1/attachments", 0);
    let (head, content) = part(&seen);
    assert_eq!(content, "内容\r\n--x--".as_bytes());
    assert!(head.contains("form-data; name=\"file\"; filename=\"报告 %22x%22.txt\""), "{head}");
    assert_eq!(seen.headers["authorization"], "Bearer am_test");
    let arguments = json!({"file_path": "报告 \"x\".txt", "filename": "b.txt"});
    let _ = server.text("upload_attachment", &arguments);
    let (head, _) = part(&gateway.nth("POST /api/v1/attachments", 1));
    assert!(head.contains("filename=\"b.txt\""), "{head}");
}

#[test]
fn what_must_not_leave_stays_and_costs_no_exchange() {
    let gateway = Mailbox::start(|_| stored());
    let setup = Setup::new(&gateway.url);
    std::fs::write(setup.work().join(".env"), "x").unwrap();
    std::fs::write(setup.home().join("outside.txt"), "x").unwrap();
    let big = std::fs::File::create(setup.work().join("big.bin")).unwrap();
    big.set_len(LIMIT as u64 + 1).unwrap();
    // The temporary folder is allowed and holds this home, so it must not be.
    let setup = setup.set("TMPDIR", "/nonexistent");
    let mut server = setup.start();
    for (path, said) in [
        (".env", "hidden file"),
        ("../outside.txt", "outside the allowed folders"),
        ("big.bin", "over the limit"),
        ("missing", "no such file"),
        (".", "not a regular file"),
    ] {
        let (text, is_error) = server.text("upload_attachment", &json!({"file_path": path}));
        assert!(is_error && text.contains(said), "{path}: {text}");
    }
    assert!(gateway.lines("POST /api/v1/attachments").is_empty());
}

#[test]
fn twenty_five_megabytes_go_up_and_come_down_bit_for_bit_in_little_memory() {
    let file = noise(LIMIT);
    let served = file.clone();
    let gateway = Mailbox::start(move |seen| match seen.line.starts_with("POST") {
        true => stored(),
        false => {
            let name = "attachment; filename=\"x\"; filename*=UTF-8''%E4%BC%9A.bin".to_owned();
            Answer::Reply(200, vec![("content-disposition", name)], served.clone())
        }
    });
    let setup = Setup::new(&gateway.url);
    std::fs::write(setup.work().join("up.bin"), &file).unwrap();
    let mut server = setup.start();
    let (text, is_error) = server.text("upload_attachment", &json!({"file_path": "up.bin"}));
    assert!(!is_error, "{text}");
    assert!(part(&gateway.nth("POST /api/v1/attachments", 0)).1 == file, "changed on the way up");
    let (text, is_error) = server.text("download_attachment", &json!({"attachment_id": "att/1"}));
    assert!(!is_error, "{text}");
    let saved = setup.work().join("会.bin");
    assert!(text.contains(saved.canonicalize().unwrap().to_str().unwrap()), "{text}");
    assert!(std::fs::read(saved).unwrap() == file, "changed on the way down");
    assert_eq!(gateway.lines("GET"), ["GET /api/v1/attachments/att%2F1"]);
    if let Some(peak) = server.peak_kib() {
        assert!(peak < 16 * 1024, "{peak} KiB");
    }
}

#[test]
fn progress_is_told_for_the_callers_token_only_and_never_at_the_end() {
    let gateway = Mailbox::start(|_| stored());
    let setup = Setup::new(&gateway.url);
    std::fs::write(setup.work().join("a.bin"), noise(1024 * 1024)).unwrap();
    let mut server = setup.start();
    let call = |token: bool| {
        let mut params = json!({"name": "upload_attachment", "arguments": {"file_path": "a.bin"}});
        if token {
            params["_meta"] = json!({"progressToken": "t1"});
        }
        params
    };
    let silent = server.request("tools/call", &call(false));
    assert_eq!(server.message()["id"], silent);
    let told = server.request("tools/call", &call(true));
    let (mut last, mut count) = (0, 0);
    loop {
        let message = server.message();
        if message["id"] == told {
            break;
        }
        let params = &message["params"];
        assert_eq!(message["method"], "notifications/progress");
        assert_eq!(
            (&params["progressToken"], &params["total"]),
            (&json!("t1"), &json!(1024 * 1024))
        );
        let done = params["progress"].as_u64().unwrap();
        assert!(done > last && done < 1024 * 1024, "{done} after {last}");
        (last, count) = (done, count + 1);
    }
    assert!(count > 0);
}

#[test]
fn a_download_that_breaks_or_is_refused_leaves_no_file() {
    let gateway = Mailbox::start(|seen| match seen.line.as_str() {
        "GET /api/v1/attachments/short" => {
            Answer::Raw(b"HTTP/1.1 200 OK\r\ncontent-length: 100000\r\n\r\nabc".to_vec())
        }
        _ => Answer::json(404, r#"{"error":"no such attachment"}"#),
    });
    let setup = Setup::new(&gateway.url);
    let mut server = setup.start();
    for (id, said) in [("short", "broke before"), ("gone", "no such attachment")] {
        let (text, is_error) = server.text("download_attachment", &json!({"attachment_id": id}));
        assert!(is_error && text.contains(said), "{id}: {text}");
    }
    assert_eq!(std::fs::read_dir(setup.work()).unwrap().count(), 0);
}

#[test]
fn a_name_of_the_senders_is_made_safe_and_nothing_is_overwritten() {
    let gateway = Mailbox::start(|_| {
        let name = "attachment; filename=\"../../.bashrc\"".to_owned();
        Answer::Reply(200, vec![("content-disposition", name)], b"new".to_vec())
    });
    let setup = Setup::new(&gateway.url);
    std::fs::write(setup.work().join("bashrc"), "mine").unwrap();
    let mut server = setup.start();
    let (text, is_error) = server.text("download_attachment", &json!({"attachment_id": "a"}));
    assert!(!is_error && text.contains("bashrc-2"), "{text}");
    let arguments = json!({"attachment_id": "a", "save_to": "bashrc"});
    let (text, is_error) = server.text("download_attachment", &arguments);
    assert!(is_error && text.contains("never overwritten"), "{text}");
    assert_eq!(std::fs::read(setup.work().join("bashrc")).unwrap(), b"mine");
    assert_eq!(std::fs::read(setup.work().join("bashrc-2")).unwrap(), b"new");
    std::fs::create_dir(setup.work().join("sub")).unwrap();
    let arguments = json!({"attachment_id": "a", "save_path": "sub"});
    let (text, is_error) = server.text("download_attachment", &arguments);
    assert!(!is_error && text.contains("sub/bashrc"), "{text}");
}
