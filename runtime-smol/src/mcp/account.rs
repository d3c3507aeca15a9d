//! Whose key goes where (wire 3.20, `B-1.1`).
//!
//! Order: `AGENTMAIL_AGENT_KEY`, the key file, `AGENTMAIL_AGENT_SECRET`, and last a key made here.
//! Only this program makes one. It is stored with mode 0600 and printed once in full on standard
//! error, because a person has to register it.

use std::io::{self, Read as _, Write as _};
use std::path::Path;
use std::rc::Rc;

use zcode_mail_core::config::{Credential, Secret};
use zcode_mail_core::tool::{ConnectOutcome, NeedConnect};

use super::perform::Context;
use super::presence;
use super::target::{Base, Target, is_sendable};

/// The agent's name when `AGENTMAIL_AGENT_NAME` is not set.
const DEFAULT_NAME: &str = "zcode";
/// Bytes of a key file that are read at most.
const MAX_KEY_FILE: u64 = 4096;
/// Random bytes of a new key.
const KEY_BYTES: usize = 32;

/// A credential, and the file that was made for it just now.
struct Found {
    credential: Credential,
    made: Option<String>,
}

/// The gateway and identity that the settings lead to.
///
/// # Errors
/// Why there is none, and what to set.
pub(super) async fn settled(context: &Context) -> Result<Target, String> {
    let settings = &context.settings;
    let base = Base::parse(&settings.gateway_url)
        .map_err(|why| format!("AGENTMAIL_GATEWAY_URL cannot be used: {why}"))?;
    let credential = stored(context).await?.credential;
    Ok(Target { base, credential, agent_name: own_name(context) })
}

fn own_name(context: &Context) -> String {
    context.settings.agent_name.clone().unwrap_or_else(|| DEFAULT_NAME.into())
}

/// The credential that belongs to the configured gateway, made here when there is none.
async fn stored(context: &Context) -> Result<Found, String> {
    let settings = &context.settings;
    let kept = |credential| Found { credential, made: None };
    if let Some(key) = &settings.agent_key {
        return usable(key.clone(), "AGENTMAIL_AGENT_KEY").map(Credential::Key).map(kept);
    }
    let place = settings.key_file();
    if let Ok(path) = &place {
        let file = path.clone();
        match blocking::unblock(move || read_key(Path::new(&file))).await {
            Ok(Some(key)) => return usable(key, path).map(Credential::Key).map(kept),
            Ok(None) => {}
            Err(error) => return Err(format!("the key file {path} cannot be used: {error}")),
        }
    }
    if let Some(secret) = &settings.agent_secret {
        let secret = usable(secret.clone(), "AGENTMAIL_AGENT_SECRET")?;
        return Ok(kept(Credential::Shared(secret)));
    }
    let path = place.map_err(|unsettled| format!("{unsettled}"))?;
    make_key(context, path).await
}

fn usable(secret: Secret, whence: &str) -> Result<Secret, String> {
    if is_sendable(&secret) {
        Ok(secret)
    } else {
        Err(format!("{whence} holds no usable key: one line of printable characters is expected"))
    }
}

/// Makes a key, stores it and prints it.
async fn make_key(context: &Context, path: String) -> Result<Found, String> {
    let file = path.clone();
    let made = blocking::unblock(move || -> io::Result<(Secret, bool)> {
        let mut bytes = [0; KEY_BYTES];
        getrandom::fill(&mut bytes).map_err(io::Error::other)?;
        let text: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
        let key = Secret::new(format!("am_{text}"));
        match store_key(Path::new(&file), &key) {
            Ok(()) => Ok((key, true)),
            // Another process was faster: its key counts.
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                read_key(Path::new(&file))?
                    .map(|key| (key, false))
                    .ok_or_else(|| io::Error::other("it is empty"))
            }
            Err(error) => Err(error),
        }
    });
    let (key, new) =
        made.await.map_err(|error| format!("the key file {path} cannot be made: {error}"))?;
    if new {
        let name = own_name(context);
        let url = &context.settings.gateway_url;
        context.log.must(&format!(
            "made a new agent key and stored it in {path}. An administrator registers it at {url} \
             (zcode-mail agent-key register {name} --owner USER --key-token KEY); KEY = {}",
            key.expose()
        ));
    }
    Ok(Found { credential: Credential::Key(key), made: new.then_some(path) })
}

/// Writes a key into a new file that only its owner can read.
fn store_key(path: &Path, key: &Secret) -> io::Result<()> {
    if let Some(folder) = path.parent() {
        let mut builder = std::fs::DirBuilder::new();
        builder.recursive(true);
        #[cfg(unix)]
        {
            use std::os::unix::fs::DirBuilderExt as _;
            builder.mode(0o700);
        }
        builder.create(folder)?;
    }
    let mut options = std::fs::OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    {
        use std::os::unix::fs::OpenOptionsExt as _;
        options.mode(0o600);
    }
    let mut file = options.open(path)?;
    file.write_all(format!("{}\n", key.expose()).as_bytes())?;
    file.sync_all()
}

/// The key in a file; `None` when there is no such file.
///
/// A link, a file of another user and anything but a regular file are refused: somebody else could
/// choose the key, and with it the identity.
fn read_key(path: &Path) -> io::Result<Option<Secret>> {
    let mut options = std::fs::OpenOptions::new();
    options.read(true);
    #[cfg(unix)]
    {
        use std::os::unix::fs::OpenOptionsExt as _;
        let flags = rustix::fs::OFlags::NOFOLLOW | rustix::fs::OFlags::NONBLOCK;
        options.custom_flags(i32::try_from(flags.bits()).unwrap_or(0));
    }
    let file = match options.open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error),
    };
    let about = file.metadata()?;
    if !about.is_file() {
        return Err(io::Error::other("it is not a regular file"));
    }
    #[cfg(unix)]
    {
        use std::os::unix::fs::MetadataExt as _;
        if about.uid() != rustix::process::geteuid().as_raw() {
            return Err(io::Error::other("it belongs to another user"));
        }
    }
    let mut text = String::new();
    file.take(MAX_KEY_FILE).read_to_string(&mut text)?;
    Ok(Some(Secret::new(text.trim().to_owned())))
}

/// `connect_to_server`: settles address and identity, registers, and goes on there.
///
/// A stored credential only ever goes to the gateway that the settings name. For another host the
/// call has to bring a key, and not the stored one.
pub(super) async fn connect(context: &Context, need: &NeedConnect) -> ConnectOutcome {
    let own = match Base::parse(&context.settings.gateway_url) {
        Ok(own) => Some(own),
        Err(why) if need.url.is_none() => return ConnectOutcome::BadUrl(why),
        Err(_) => None,
    };
    let current = context.presence.target();
    let base = match &need.url {
        Some(url) => match Base::parse(url) {
            Ok(base) => base,
            Err(why) => return ConnectOutcome::BadUrl(why),
        },
        None => match current.as_ref().map(|target| &target.base).or(own.as_ref()) {
            Some(base) => base.clone(),
            None => return ConnectOutcome::BadUrl("no gateway is configured".into()),
        },
    };
    let at_home = own.as_ref().is_some_and(|own| own.same_origin(&base));
    let url = base.url();
    let (credential, made) = match &need.agent_key {
        Some(key) if !is_sendable(key) => {
            return ConnectOutcome::NoKey("agent_key is not one line of printable text".into());
        }
        Some(key) if at_home || !is_stored(context, key).await => {
            (Credential::Key(key.clone()), None)
        }
        Some(_) => return ConnectOutcome::KeyStays { url },
        // A key that was given for this host earlier goes there again.
        None => match current.filter(|target| target.base.same_origin(&base)) {
            Some(target) => (target.credential.clone(), None),
            None if at_home => match stored(context).await {
                Ok(found) => (found.credential, found.made),
                Err(why) => return ConnectOutcome::NoKey(why),
            },
            None => return ConnectOutcome::KeyStays { url },
        },
    };
    let agent_name = need.agent_name.clone().unwrap_or_else(|| own_name(context));
    let target = Rc::new(Target { base, credential, agent_name });
    match presence::register(context, &target).await {
        Ok(agent_name) => {
            let stored = match &need.agent_key {
                Some(key) if at_home => keep(context, key).await,
                _ => None,
            };
            context.presence.settle(context, target).await;
            ConnectOutcome::Connected { url, agent_name, stored, only_this_process: !at_home }
        }
        Err(error) => ConnectOutcome::Refused { url, error, new_key: made },
    }
}

/// Whether a key is one of those that this machine stores.
async fn is_stored(context: &Context, key: &Secret) -> bool {
    let settings = &context.settings;
    if settings.agent_key.as_ref() == Some(key) || settings.agent_secret.as_ref() == Some(key) {
        return true;
    }
    let Ok(path) = settings.key_file() else { return false };
    let read = blocking::unblock(move || read_key(Path::new(&path))).await;
    // A file that cannot be read may hold it.
    read.map_or(true, |stored| stored.as_ref() == Some(key))
}

/// Stores a key that works, if the settings name none and no file exists; gives back where.
async fn keep(context: &Context, key: &Secret) -> Option<String> {
    if context.settings.agent_key.is_some() {
        return None;
    }
    let (path, key) = (context.settings.key_file().ok()?, key.clone());
    let file = path.clone();
    let stored = blocking::unblock(move || store_key(Path::new(&file), &key)).await;
    stored.is_ok().then_some(path)
}
