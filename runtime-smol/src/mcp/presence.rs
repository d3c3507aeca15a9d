//! Being there: register (`B-1.2`), heartbeat at once (`B-1.3`) and every 30 seconds (`B-2`).
//!
//! ```text
//!  begin ─▶ resolve key ─▶ register ─┬─ ok ─▶ heartbeat ─▶ 30 s ─▶ heartbeat ...
//!                                    ├─ temporary ─▶ 30 s ─▶ register ...
//!                                    └─ 401 or another refusal ─▶ one line, stop
//! ```
//!
//! A failed heartbeat is neither repeated nor reported (`B-2.1`) and touches no tool call
//! (`B-2.5`). A 401 stops it with one line (`W-9`). Both lists of the heartbeat are left out, since
//! absent means "keep" and several processes of one agent may beat at once (`N-7`, gap G-3).

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::time::Duration;

use async_io::Timer;
use smol::Task;
use smol::lock::OnceCell;
use zcode_mail_core::api::heartbeat::{self, INTERVAL_MS};
use zcode_mail_core::api::{ApiError, register};
use zcode_mail_core::mode::Enforcement;

use super::account;
use super::perform::Context;
use super::target::Target;

/// The name that AgentMail shows as this agent's platform.
const PLATFORM: &str = "zcode";

/// The state of being there.
#[derive(Default)]
pub(super) struct Presence {
    begun: Cell<bool>,
    /// The first registration has been tried.
    tried: OnceCell<()>,
    target: RefCell<Option<Rc<Target>>>,
    trouble: RefCell<Option<String>>,
    task: RefCell<Option<Task<()>>>,
    /// The gateway named `mode_enforcement` among the fields it does not know (`B-2.U`).
    no_enforcement: Cell<bool>,
}

impl Presence {
    /// Begins, unless that has happened already.
    pub(super) fn begin(&self, context: &Context) {
        if !self.begun.replace(true) {
            let context = context.clone();
            let task = context.executor.clone().spawn(async move { first(&context).await });
            self.task.replace(Some(task));
        }
    }

    /// Waits until the first registration has been tried.
    pub(super) async fn tried(&self) {
        self.tried.wait().await;
    }

    /// The gateway to talk to; `None` before it is settled or when no key can be had.
    pub(super) fn target(&self) -> Option<Rc<Target>> {
        self.target.borrow().clone()
    }

    /// Why there is no gateway to talk to.
    pub(super) fn trouble(&self) -> Option<String> {
        self.trouble.borrow().clone()
    }

    /// Goes on with another gateway, at which this process has just registered.
    pub(super) async fn settle(&self, context: &Context, target: Rc<Target>) {
        self.begun.set(true);
        let before = self.target.replace(Some(target.clone()));
        if before.is_none_or(|before| before.base != target.base) {
            self.no_enforcement.set(false);
        }
        self.trouble.replace(None);
        // Nobody waits for a registration that another one overtook.
        let _ = self.tried.set(()).await;
        let context = context.clone();
        let task = context.executor.clone().spawn(async move {
            beat(&context, &target, true).await;
        });
        self.task.replace(Some(task));
    }
}

/// The first contact and everything after it.
async fn first(context: &Context) {
    let presence = &context.presence;
    let target = match account::settled(context).await {
        Ok(target) => Rc::new(target),
        Err(why) => {
            context.log.error(&why);
            presence.trouble.replace(Some(why));
            let _ = presence.tried.set(()).await;
            return;
        }
    };
    presence.target.replace(Some(target.clone()));
    let registered = register(context, &target).await;
    let _ = presence.tried.set(()).await;
    if let Err(error) = &registered
        && error.is_permanent()
    {
        return refused(context, &target, error);
    }
    beat(context, &target, registered.is_ok()).await;
}

/// Registers once.
pub(super) async fn register(context: &Context, target: &Target) -> Result<String, ApiError> {
    let request = register::Request {
        name: target.agent_name.clone(),
        platform: PLATFORM.into(),
        workspaces: Vec::new(),
    };
    let answer = context.client.exchange(target, &request.request()).await;
    let registered = register::Request::parse(answer.outcome())?;
    let name = registered.agent_name.unwrap_or_else(|| target.agent_name.clone());
    context.log.info(&format!("connected to {} as {name}", target.base.url()));
    Ok(name)
}

/// Heartbeats until a refusal.
async fn beat(context: &Context, target: &Target, mut registered: bool) {
    let no_enforcement = &context.presence.no_enforcement;
    loop {
        if !registered {
            match register(context, target).await {
                Ok(_) => registered = true,
                Err(error) if error.is_permanent() => return refused(context, target, &error),
                Err(_) => {}
            }
        }
        if registered {
            let request = heartbeat::Request {
                platform_sessions: None,
                models: None,
                mode_enforcement: (!no_enforcement.get()).then_some(Enforcement::Advisory),
            };
            let answer = context.client.exchange(target, &request.request()).await;
            match heartbeat::Request::parse(answer.outcome()) {
                Ok(beat) if beat.unknown_fields.iter().any(|name| name == "mode_enforcement") => {
                    context.log.info("the gateway does not know mode_enforcement; leaving it out");
                    no_enforcement.set(true);
                }
                Err(error) if error.status() == Some(401) => {
                    return refused(context, target, &error);
                }
                Ok(_) | Err(_) => {}
            }
        }
        Timer::after(Duration::from_millis(INTERVAL_MS)).await;
    }
}

/// Says once that the gateway does not take us, and stops.
fn refused(context: &Context, target: &Target, error: &ApiError) {
    let (url, name) = (target.base.url(), &target.agent_name);
    context.log.error(&format!(
        "{url} does not accept {name}: {error}; no more heartbeats until connect_to_server succeeds"
    ));
}
