//! The unit, its environment, and the commands to systemd.
//!
//! `systemctl` and `journalctl` are found on `PATH`.

use std::path::Path;
use std::process::{Command, Stdio};

use jiff::Timestamp;

use super::Place;
use super::error::ServiceError;
use super::generation::{CURRENT, PROGRAM};
use crate::durable;

/// Characters of a password: none that an `EnvironmentFile` or a shell would take for its own, and
/// none that two people would read differently.
const ALPHABET: &[u8; 56] = b"23456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnpqrstuvwxyz";
/// 24 of 56 characters are 139 bits.
const PASSWORD_LENGTH: usize = 24;

/// The text of the unit.
pub(super) fn unit(place: &Place) -> String {
    let program = place.root().join(CURRENT).join(PROGRAM);
    let (program, data) = (quoted(&program), quoted(&place.data));
    let (listen, env_file) = (place.listen, escaped(&place.env_file));
    // systemd makes and owns /var/lib/agentmail for a user of its own that exists only while the
    // service runs; any other folder belongs to whoever runs the service.
    let own = if place.data == Path::new("/var/lib/agentmail") {
        "DynamicUser=yes\nStateDirectory=agentmail\nStateDirectoryMode=0700\n".to_owned()
    } else {
        format!("ReadWritePaths={data}\n")
    };
    format!(
        "[Unit]\n\
         Description=AgentMail gateway (zcode-mail)\n\
         Wants=network-online.target\n\
         After=network-online.target\n\
         \n\
         [Service]\n\
         Type=exec\n\
         ExecStart={program} gateway --data {data} --listen {listen}\n\
         EnvironmentFile={env_file}\n\
         Environment={home}\n\
         {own}\
         Restart=on-failure\n\
         RestartSec=2\n\
         TimeoutStopSec=15\n\
         UMask=0077\n\
         NoNewPrivileges=yes\n\
         PrivateDevices=yes\n\
         PrivateTmp=yes\n\
         ProtectHome=yes\n\
         ProtectSystem=strict\n\
         ProtectKernelTunables=yes\n\
         ProtectControlGroups=yes\n\
         RestrictAddressFamilies=AF_UNIX AF_INET AF_INET6\n\
         RestrictSUIDSGID=yes\n\
         SystemCallArchitectures=native\n\
         \n\
         [Install]\n\
         WantedBy=multi-user.target\n",
        home = quoted_text(&format!("HOME={}", place.data.display())),
    )
}

/// Refuses a place that a unit cannot name: systemd takes no quote, backslash or control character
/// in the name of a program.
pub(super) fn nameable(place: &Place) -> Result<(), ServiceError> {
    let program = place.root().join(CURRENT).join(PROGRAM);
    let text = program.display().to_string();
    if text.contains(['"', '\'', '\\']) || text.contains(char::is_control) {
        return Err(ServiceError::Systemd(format!(
            "systemd starts no program named {text}; choose a --prefix without quotes and backslashes"
        )));
    }
    if !program.is_absolute() {
        return Err(ServiceError::Systemd(format!(
            "systemd needs an absolute --prefix, not {text}"
        )));
    }
    Ok(())
}

/// Writes the unit and, if there is none, the environment file. Returns whether the environment
/// file is new.
pub(super) fn write(place: &Place) -> Result<bool, ServiceError> {
    let fresh = !place.env_file.exists();
    if fresh {
        let parent = place.env_file.parent().unwrap_or(Path::new("/"));
        durable::create_directories(parent).map_err(ServiceError::io(parent))?;
        let text = format!(
            "# The first start makes this administrator. Change the password on the page, or here \
             before the first start.\nADMIN_USER=admin\nADMIN_PASSWORD={}\n",
            password()?
        );
        durable::write(&place.env_file, text.as_bytes(), durable::PRIVATE_FILE)
            .map_err(ServiceError::io(&place.env_file))?;
    }
    let path = place.unit_dir.join(format!("{}.service", place.name));
    durable::create_directories(&place.unit_dir).map_err(ServiceError::io(&place.unit_dir))?;
    let text = unit(place);
    if std::fs::read(&path).ok().as_deref() != Some(text.as_bytes()) {
        durable::write(&path, text.as_bytes(), durable::PUBLIC_FILE)
            .map_err(ServiceError::io(&path))?;
    }
    Ok(fresh)
}

/// Runs `systemctl` and returns what it printed.
pub(super) fn systemctl(args: &[&str]) -> Result<String, ServiceError> {
    durable::step();
    run("systemctl", args)
}

/// The lines of the service's log since a moment.
pub(super) fn journal(name: &str, since: Timestamp) -> Result<String, ServiceError> {
    // With its fraction: a panic of the program before may be of the same second.
    let since = format!("@{}.{:06}", since.as_second(), since.subsec_microsecond());
    run("journalctl", &["--unit", name, "--since", &since, "--no-pager", "--output", "cat"])
}

fn run(program: &str, args: &[&str]) -> Result<String, ServiceError> {
    let line = format!("{program} {}", args.join(" "));
    let out = Command::new(program)
        .args(args)
        .stdin(Stdio::null())
        .output()
        .map_err(|error| ServiceError::Systemd(format!("{line}: {error}")))?;
    let text = String::from_utf8_lossy(&out.stdout).into_owned();
    if out.status.success() {
        return Ok(text);
    }
    let stderr = String::from_utf8_lossy(&out.stderr).into_owned();
    let said = if stderr.trim().is_empty() { text } else { stderr };
    Err(ServiceError::Systemd(format!("{line}: {}", said.trim())))
}

fn password() -> Result<String, ServiceError> {
    let mut out = String::new();
    while out.len() < PASSWORD_LENGTH {
        let mut bytes = [0; 64];
        getrandom::fill(&mut bytes).map_err(|error| {
            ServiceError::Systemd(format!("the system gives no random numbers: {error}"))
        })?;
        // Above the largest multiple of 56 some characters would come more often.
        let fair = bytes.iter().filter(|byte| **byte < 224);
        let chosen = fair.map(|byte| char::from(ALPHABET[usize::from(*byte) % ALPHABET.len()]));
        out.extend(chosen.take(PASSWORD_LENGTH - out.len()));
    }
    Ok(out)
}

/// A path as one word of a unit's command line.
fn quoted(path: &Path) -> String {
    quoted_text(&path.display().to_string())
}

fn quoted_text(text: &str) -> String {
    let text =
        text.replace('\\', "\\\\").replace('"', "\\\"").replace('%', "%%").replace('$', "$$");
    format!("\"{text}\"")
}

/// A path as the value of a setting that takes exactly one.
fn escaped(path: &Path) -> String {
    path.display().to_string().replace('%', "%%")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_password_is_long_plain_and_never_the_same() {
        let one = password().unwrap();
        assert_eq!(one.len(), PASSWORD_LENGTH);
        assert!(one.bytes().all(|b| ALPHABET.contains(&b)));
        assert_ne!(one, password().unwrap());
    }

    #[test]
    fn a_path_with_spaces_quotes_and_percent_signs_is_one_word() {
        assert_eq!(quoted(Path::new("/a b/\"c\"/100%/$x")), r#""/a b/\"c\"/100%%/$$x""#);
    }
}
