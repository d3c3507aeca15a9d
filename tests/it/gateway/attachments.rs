//! Attachments: up, down, limits, names, orphans (`W-8`, fault 29).

use zcode_mail_core::api::attachment::{Multipart, disposition_name};

use super::*;

const UPLOAD: &str = "/api/v1/attachments";

/// Uploads a file and returns its id.
pub(super) fn upload(client: &Client, path: &str, name: &str, bytes: &[u8]) -> String {
    let reply = try_upload(client, path, name, bytes);
    assert_eq!(reply.status, 200, "{reply:?}");
    text(&reply.json(), "attachment_id")
}

fn try_upload(client: &Client, path: &str, name: &str, bytes: &[u8]) -> Reply {
    let frame = Multipart::new("b0undary0123456789", name);
    let body = [frame.head.as_bytes(), bytes, frame.tail.as_bytes()].concat();
    client.send(path, &frame.content_type, &body)
}

fn download(client: &Client, path: &str) -> (u16, String, Vec<u8>) {
    let request = client.http.get(format!("{}{path}", client.url));
    let mut response = request.header("Authorization", &client.headers[0].1).call().unwrap();
    let header = response.headers().get("content-disposition");
    let header = header.map(|value| value.to_str().unwrap().to_owned()).unwrap_or_default();
    let status = response.status().as_u16();
    let body = response.body_mut().with_config().limit(64 << 20).read_to_vec().unwrap();
    (status, header, body)
}

#[test]
fn a_file_goes_up_with_a_mail_and_comes_down_byte_for_byte() {
    let world = World::new();
    let bytes: Vec<u8> =
        (0..3_000_000_u32).map(|n| (n.wrapping_mul(2_654_435_761) >> 13) as u8).collect();
    let id = upload(&world.ann, "/api/v1/me/attachments", "报告 \"1\".bin", &bytes);
    world.ann.ok(
        "/api/v1/me/mail/send",
        &json!({
            "to": "zcode@/p.new", "subject": "s", "body": "b", "attachment_ids": [id],
        }),
    );
    let listed = world.zcode.look("/api/v1/mail/inbox")["mails"][0]["attachments"].clone();
    assert_eq!(listed[0]["attachment_id"], json!(id));
    assert_eq!(
        (&listed[0]["filename"], &listed[0]["size"]),
        (&json!("报告 %221%22.bin"), &json!(bytes.len()))
    );
    let (status, header, got) = download(&world.zcode, &format!("{UPLOAD}/{id}"));
    assert_eq!(status, 200);
    assert!(got == bytes, "the bytes differ");
    assert_eq!(disposition_name(&header).as_deref(), Some("报告 %221%22.bin"));
    let reply = world.zcode.get(&format!("{UPLOAD}/{id}x"));
    assert_eq!(reply.status, 404);
    assert_eq!(download(&world.pi, &format!("{UPLOAD}/{id}")).0, 404, "who has no part in it");
    assert_eq!(download(&world.bob, &format!("/api/v1/me/attachments/{id}")).0, 404);
}

#[test]
fn downloads_are_never_shown_as_what_they_claim_to_be() {
    let world = World::new();
    let id = upload(&world.zcode, UPLOAD, "page.html", b"<script>alert(1)</script>");
    let reply = world.zcode.get(&format!("{UPLOAD}/{id}"));
    assert_eq!(reply.header("content-type"), "application/octet-stream");
    assert_eq!(reply.header("x-content-type-options"), "nosniff");
    assert!(reply.header("content-disposition").starts_with("attachment;"));
}

#[test]
fn the_limit_is_inclusive_and_413_above() {
    let world = World::with(&[("AGENTMAIL_MAX_ATTACHMENT_BYTES", "100000")]);
    upload(&world.zcode, UPLOAD, "a", &[7; 100_000]);
    assert_eq!(try_upload(&world.zcode, UPLOAD, "a", &[7; 100_001]).status, 413);
    assert_eq!(try_upload(&world.zcode, UPLOAD, "a", &[7; 300_000]).status, 413);
    upload(&world.zcode, UPLOAD, "empty", b"");
    let incoming = world.gateway.data.join("attachments/incoming");
    assert_eq!(std::fs::read_dir(incoming).unwrap().count(), 0, "nothing half-written stays");
}

#[test]
fn the_same_content_is_stored_once_and_survives_until_its_last_mail() {
    let world = World::new();
    let one = upload(&world.zcode, UPLOAD, "a", b"same");
    let two = upload(&world.zcode, UPLOAD, "b", b"same");
    assert_ne!(one, two);
    let files = || -> Vec<_> {
        let shelf = std::fs::read_dir(world.gateway.data.join("attachments")).unwrap();
        shelf
            .flatten()
            .filter(|entry| entry.file_name() != "incoming")
            .flat_map(|entry| std::fs::read_dir(entry.path()).unwrap().flatten())
            .map(|entry| entry.path())
            .collect()
    };
    assert_eq!(files().len(), 1);
    world.zcode.ok(
        "/api/v1/mail/send",
        &json!({
            "to": "ann", "subject": "s", "body": "b", "attachment_ids": [one],
        }),
    );
    let lone = upload(&world.zcode, UPLOAD, "c", b"lone");
    world
        .database()
        .execute("UPDATE attachments SET created_at = created_at - 86400001", [])
        .unwrap();
    let world = world.restart();
    // The sweep runs at the start.
    eventually("orphans are gone", || {
        (world.zcode.get(&format!("{UPLOAD}/{lone}")).status == 404).then_some(())
    });
    assert_eq!(world.zcode.get(&format!("{UPLOAD}/{two}")).status, 404);
    assert_eq!(download(&world.zcode, &format!("{UPLOAD}/{one}")).2, b"same");
}

#[test]
fn other_bodies_and_foreign_files_are_refused() {
    let world = World::new();
    assert_eq!(world.zcode.post(UPLOAD, &json!({})).status, 400);
    let head = "--b\r\nContent-Disposition: form-data; name=\"other\"\r\n\r\nx\r\n--b--\r\n";
    let reply = world.zcode.send(UPLOAD, "multipart/form-data; boundary=b", head.as_bytes());
    assert_eq!(reply.status, 400);
    let cut = "--b\r\nContent-Disposition: form-data; name=\"file\"\r\n\r\nx";
    let reply = world.zcode.send(UPLOAD, "multipart/form-data; boundary=b", cut.as_bytes());
    assert_eq!(reply.status, 400);
    let foreign = upload(&world.pi, UPLOAD, "a", b"secret");
    let body = json!({"to": "ann", "subject": "s", "body": "b", "attachment_ids": [foreign]});
    assert_eq!(world.zcode.refused("/api/v1/mail/send", &body).0, 404);
    assert_eq!(world.count("SELECT count(*) FROM mails"), 0);
}

#[test]
fn a_full_size_file_passes_without_being_held_in_memory() {
    let world = World::new();
    let peak = || -> u64 {
        let status = std::fs::read_to_string(format!("/proc/{}/status", world.gateway.id()));
        let status = status.unwrap_or_default();
        let line = status.lines().find(|line| line.starts_with("VmHWM:")).unwrap_or("VmHWM: 0 kB");
        line.split_whitespace().nth(1).unwrap().parse().unwrap()
    };
    world.zcode.ok("/api/v1/agent/heartbeat", &json!({}));
    let before = peak();
    let bytes = vec![b'x'; 25 * 1024 * 1024];
    let id = upload(&world.zcode, UPLOAD, "big", &bytes);
    assert!(download(&world.zcode, &format!("{UPLOAD}/{id}")).2 == bytes);
    assert!(peak() - before < 16 * 1024, "{} KiB more", peak() - before);
    assert_eq!(
        try_upload(&world.zcode, UPLOAD, "big", &vec![b'x'; 25 * 1024 * 1024 + 1]).status,
        413
    );
}
