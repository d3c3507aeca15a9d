//! Settings that lead elsewhere than they look.

use std::fs;
use std::net::IpAddr;
use std::path::Path;

use ureq::http::Uri;
use zcode_mail_core::mode::PermissionMode;

use super::facts::Facts;
use super::{Finding, Fix, Report};
use crate::durable;

/// What user keys of the gateway begin with: they open a person's mailbox and no agent's door.
const USER_KEY_PREFIX: &str = "umk_";
/// Every variable with our prefix that some program of the bridge reads.
const KNOWN: [&str; 19] = [
    "AGENTMAIL_GATEWAY_URL",
    "AGENTMAIL_AGENT_NAME",
    "AGENTMAIL_AGENT_KEY",
    "AGENTMAIL_AGENT_SECRET",
    "AGENTMAIL_SESSION_ID",
    "AGENTMAIL_PERMISSION_MODE",
    "AGENTMAIL_PERMISSION_WAIT_MS",
    "AGENTMAIL_ZCODE_GRANTS_FILE",
    "AGENTMAIL_ZCODE_DIALECT",
    "AGENTMAIL_CONFIG_DIR",
    "AGENTMAIL_DATA_DIR",
    "AGENTMAIL_LANG",
    "AGENTMAIL_CA_FILE",
    "AGENTMAIL_PROXY",
    "AGENTMAIL_UPLOAD_ROOTS",
    "AGENTMAIL_DOWNLOAD_DIR",
    "AGENTMAIL_WORKSPACES",
    "AGENTMAIL_LOG",
    "AGENTMAIL_TURN_LOG",
];
/// Variables that name a proxy for other programs.
const PROXIES: [&str; 6] =
    ["HTTPS_PROXY", "https_proxy", "HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"];
/// Variables that name certificate authorities for other programs.
const AUTHORITIES: [&str; 4] =
    ["SSL_CERT_FILE", "SSL_CERT_DIR", "NODE_EXTRA_CA_CERTS", "CURL_CA_BUNDLE"];

pub(super) fn check(facts: &Facts, report: &mut Report) {
    if facts.settings.home.is_none() {
        report.add(Finding::error(
            "ZM-201",
            "没有设 HOME，找不到密钥和授权文件；systemd 单元里加 Environment=HOME=...",
            "HOME is not set, so keys and approvals have no place; a systemd unit needs Environment=HOME=...",
        ));
    }
    if let Some(host) = host(&facts.settings.gateway_url) {
        way(facts, &host, report);
    } else {
        let url = &facts.settings.gateway_url;
        report.add(Finding::error(
            "ZM-202",
            format!("AGENTMAIL_GATEWAY_URL={url} 不是 http:// 或 https:// 地址"),
            format!("AGENTMAIL_GATEWAY_URL={url} is no http:// or https:// address"),
        ));
    }
    key(facts, report);
    secrets(facts, report);
    values(facts, report);
}

/// The host of an `http://` or `https://` URL, without brackets.
pub(super) fn host(url: &str) -> Option<String> {
    let uri: Uri = url.parse().ok()?;
    if !matches!(uri.scheme_str(), Some("http" | "https")) {
        return None;
    }
    Some(uri.host()?.trim_matches(['[', ']']).to_ascii_lowercase())
}

/// Whether a host is this machine.
pub(super) fn is_loopback(host: &str) -> bool {
    let name = host.trim_end_matches('.');
    name == "localhost"
        || name.ends_with(".localhost")
        || name.parse::<IpAddr>().is_ok_and(|ip| ip.to_canonical().is_loopback())
}

fn set<'f>(facts: &'f Facts, names: &[&'static str]) -> Option<(&'static str, &'f str)> {
    names.iter().find_map(|name| {
        let value = facts.env.get(*name)?.trim();
        (!value.is_empty()).then_some((*name, value))
    })
}

fn way(facts: &Facts, host: &str, report: &mut Report) {
    let url = &facts.settings.gateway_url;
    if host == "localhost" {
        report.add(Finding::warning(
            "ZM-203",
            format!("AGENTMAIL_GATEWAY_URL={url} 里的 localhost 可能先解析到 ::1，而网关只听 127.0.0.1；写 127.0.0.1"),
            format!("localhost in AGENTMAIL_GATEWAY_URL={url} may lead to ::1 while the gateway listens on 127.0.0.1; write 127.0.0.1"),
        ));
    }
    let local = is_loopback(host);
    if let Some((name, _)) =
        set(facts, &PROXIES).filter(|_| !local && facts.settings.proxy.is_none())
    {
        report.add(Finding::warning(
            "ZM-204",
            format!("设了 {name}，但 ZCode 不传给钩子；要走代理就设 AGENTMAIL_PROXY"),
            format!("{name} is set, but ZCode hides it from the hook; set AGENTMAIL_PROXY to use a proxy"),
        ));
    }
    if let Some(path) = &facts.settings.ca_file {
        let pem = fs::read_to_string(path);
        if !pem.is_ok_and(|text| text.contains("-----BEGIN CERTIFICATE-----")) {
            report.add(Finding::error(
                "ZM-205",
                format!("AGENTMAIL_CA_FILE={path} 不是 PEM 证书文件"),
                format!("AGENTMAIL_CA_FILE={path} is no file with PEM certificates"),
            ));
        }
    } else if let Some((name, _)) = set(facts, &AUTHORITIES).filter(|_| url.starts_with("https:")) {
        report.add(Finding::warning(
            "ZM-205",
            format!("设了 {name}，但 ZCode 不传给钩子；私有证书要设 AGENTMAIL_CA_FILE"),
            format!("{name} is set, but ZCode hides it from the hook; for a private authority set AGENTMAIL_CA_FILE"),
        ));
    }
    if url.starts_with("http:") && !local {
        report.add(Finding::error(
            "ZM-206",
            format!("{url} 没有加密，密钥会明文经过网络；改用 https://"),
            format!("{url} is not encrypted, so the key travels in the clear; use https://"),
        ));
    }
}

fn key(facts: &Facts, report: &mut Report) {
    let file = facts.settings.key_file().ok();
    if let Some(path) = file.as_deref().filter(|path| Path::new(path).exists())
        && let Some(what) = trouble(Path::new(path), 0o077)
    {
        let finding = Finding::error(
            "ZM-211",
            format!("密钥文件 {path} 有问题：{}", what.0),
            format!("the key file {path} {}", what.1),
        );
        report.add(if what.2 {
            finding.fix(Fix::Mode(path.into(), durable::PRIVATE_FILE))
        } else {
            finding
        });
    }
    match &facts.key {
        None if facts.settings.agent_secret.is_none() => report.add(Finding::error(
            "ZM-207",
            "没有密钥：设 AGENTMAIL_AGENT_KEY，或把密钥写进 ~/.agentmail/agent.key",
            "there is no key: set AGENTMAIL_AGENT_KEY or write the key to ~/.agentmail/agent.key",
        )),
        Some((key, whence)) if key.expose().starts_with(USER_KEY_PREFIX) => {
            report.add(Finding::error(
                "ZM-208",
                format!("{whence} 里是用户密钥，钩子要 Agent 密钥；zcode-mail agent-key create"),
                format!("{whence} holds a user key, but the hook needs an agent key; zcode-mail agent-key create"),
            ));
        }
        _ => {}
    }
}

/// What is wrong with whose file this is, and whether a change of mode repairs it.
#[cfg(unix)]
pub(super) fn trouble(path: &Path, forbidden: u32) -> Option<(String, String, bool)> {
    use std::os::unix::fs::MetadataExt as _;
    let found = fs::symlink_metadata(path).ok()?;
    if found.is_symlink() {
        return Some(("它是符号链接".to_owned(), "is a symbolic link".to_owned(), false));
    }
    let uid = found.uid();
    if uid != rustix::process::geteuid().as_raw() {
        let zh = format!("它属于别的用户（编号 {uid}）");
        return Some((zh, format!("belongs to another user (number {uid})"), false));
    }
    let mode = found.mode() & 0o777;
    if mode & forbidden != 0 {
        let zh = format!("权限是 {mode:o}，别人也能用");
        return Some((zh, format!("has mode {mode:o}, so others can use it"), true));
    }
    None
}

#[cfg(not(unix))]
pub(super) fn trouble(_path: &Path, _forbidden: u32) -> Option<(String, String, bool)> {
    None
}

fn secrets(facts: &Facts, report: &mut Report) {
    let key = facts.key.as_ref().map(|(key, _)| key.expose());
    let shared = facts.settings.agent_secret.as_ref().map(|secret| secret.expose());
    let known: Vec<&str> = [key, shared].into_iter().flatten().collect();
    if known.iter().any(|secret| facts.config_text.contains(secret)) {
        let shown = facts.paths.config.display();
        report.add(Finding::error(
            "ZM-212",
            format!("{shown} 里写着密钥；改放 ZCode 进程的环境变量"),
            format!("{shown} holds a key; put it into the environment of ZCode's process"),
        ));
    }
    for (pid, line) in command_lines() {
        if known.iter().any(|secret| line.contains(secret)) {
            report.add(Finding::error(
                "ZM-212",
                format!("进程 {pid} 的命令行里有密钥，同机的人都看得到；改用环境变量或标准输入"),
                format!("the command line of process {pid} holds a key, which everybody here can see; use the environment or standard input"),
            ));
        }
    }
}

/// The command lines of all processes that this user may see.
pub(super) fn command_lines() -> Vec<(u32, String)> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    let numbered = entries.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    numbered
        .filter_map(|pid| {
            let bytes = fs::read(format!("/proc/{pid}/cmdline")).ok()?;
            Some((pid, String::from_utf8_lossy(&bytes).replace('\0', " ")))
        })
        .collect()
}

fn values(facts: &Facts, report: &mut Report) {
    let ours = facts.env.iter().filter(|(name, _)| name.starts_with("AGENTMAIL_"));
    for (name, _) in ours.filter(|(name, _)| !KNOWN.contains(&name.as_str())) {
        report.add(Finding::warning(
            "ZM-213",
            format!("没有程序读 {name}；是不是写错了名字"),
            format!("nothing reads {name}; is the name misspelt?"),
        ));
    }
    let given =
        |name: &str| facts.env.get(name).map(|value| value.trim()).filter(|v| !v.is_empty());
    if let Some(mode) =
        given("AGENTMAIL_PERMISSION_MODE").filter(|m| PermissionMode::parse(m).is_none())
    {
        report.add(Finding::warning(
            "ZM-213",
            format!("AGENTMAIL_PERMISSION_MODE={mode} 不是 plan、workspace 或 full，按 workspace 处理"),
            format!("AGENTMAIL_PERMISSION_MODE={mode} is none of plan, workspace, full and counts as workspace"),
        ));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_this_machine_is_loopback() {
        for url in
            ["http://127.0.0.1:8180", "http://localhost", "https://[::1]:1", "http://a.localhost"]
        {
            assert!(is_loopback(&host(url).unwrap()), "{url}");
        }
        for url in ["http://10.0.0.1", "https://mail.example", "http://localhost.example"] {
            assert!(!is_loopback(&host(url).unwrap()), "{url}");
        }
        for url in ["", "127.0.0.1:8180", "ftp://x", "file:///etc/passwd"] {
            assert_eq!(host(url), None, "{url}");
        }
    }
}
