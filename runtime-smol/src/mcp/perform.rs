//! Performs the needs of a call until it is done.

use std::rc::Rc;
use std::time::Duration;

use async_channel::Sender;
use async_io::Timer;
use futures_lite::future;
use smol::LocalExecutor;
use zcode_mail_core::config::Settings;
use zcode_mail_core::http::{Fault, Method, Request};
use zcode_mail_core::rpc::CallId;
use zcode_mail_core::tool::{ConnectOutcome, Next, Output, TransferOutcome};

use super::account;
use super::client::{Answer, Client};
use super::log::Log;
use super::presence::Presence;
use super::target::Target;
use super::{transfer, turn_log};

/// Attempts of a request that changes nothing (`W-9`: limited retry).
const TRIES: u32 = 3;
/// Before the second attempt; the third waits three times as long.
const RETRY_PAUSE: Duration = Duration::from_millis(200);
/// How long a call waits for the first registration. A gateway that hangs must not eat the host's
/// whole patience before the call itself is tried.
const FIRST_CONTACT: Duration = Duration::from_secs(5);

/// What a call tells the loop.
pub(super) enum Report {
    /// It is over.
    Done(CallId, Output),
    /// A transfer moved on, in bytes.
    Progress { call: CallId, done: u64, total: u64 },
}

/// What all calls share. Cheap to clone.
#[derive(Clone)]
pub(super) struct Context {
    pub(super) executor: Rc<LocalExecutor<'static>>,
    pub(super) settings: Rc<Settings>,
    pub(super) client: Rc<Client>,
    pub(super) presence: Rc<Presence>,
    pub(super) log: Log,
    turn_log: Option<Rc<str>>,
}

/// Who hears of a transfer's progress.
#[derive(Clone)]
pub(super) struct Listener {
    call: CallId,
    reports: Sender<Report>,
}

impl Listener {
    /// Tells how far a transfer is; lost when the loop is busy, since the next one says more.
    pub(super) fn progress(&self, done: u64, total: u64) {
        let _ = self.reports.try_send(Report::Progress { call: self.call, done, total });
    }
}

impl Context {
    pub(super) fn new(
        executor: Rc<LocalExecutor<'static>>,
        settings: Settings,
        client: Client,
        log: Log,
        turn_log: Option<String>,
    ) -> Self {
        Self {
            executor,
            settings: Rc::new(settings),
            client: Rc::new(client),
            presence: Rc::default(),
            log,
            turn_log: turn_log.map(Rc::from),
        }
    }

    /// Runs a call to its end.
    pub(super) async fn perform(
        &self,
        call: CallId,
        mut next: Next,
        reports: &Sender<Report>,
    ) -> Output {
        let listener = Listener { call, reports: reports.clone() };
        loop {
            next = match next {
                Next::Done(output) => return output,
                Next::Http(need) => {
                    let answer = match self.target().await {
                        Ok(target) => self.exchange(&target, need.request()).await,
                        Err(answer) => answer,
                    };
                    need.answer(answer.outcome())
                }
                Next::Upload(need) => {
                    let outcome = match self.target().await {
                        Ok(target) => transfer::upload(self, &target, &need, &listener).await,
                        Err(answer) => TransferOutcome::Api(transfer::refusal(&answer)),
                    };
                    need.answer(outcome)
                }
                Next::Download(need) => {
                    let outcome = match self.target().await {
                        Ok(target) => transfer::download(self, &target, &need, &listener).await,
                        Err(answer) => TransferOutcome::Api(transfer::refusal(&answer)),
                    };
                    need.answer(outcome)
                }
                Next::Connect(need) => {
                    let outcome: ConnectOutcome = account::connect(self, &need).await;
                    need.answer(outcome)
                }
                Next::Record(need) => {
                    if let Some(path) = &self.turn_log {
                        turn_log::append(path, &need.record, self.log).await;
                    }
                    need.answer()
                }
            };
        }
    }

    /// The gateway to talk to, once the first registration there has been tried.
    ///
    /// Without one, the answer that stands for it.
    async fn target(&self) -> Result<Rc<Target>, Answer> {
        self.presence.begin(self);
        let patience = async {
            Timer::after(FIRST_CONTACT).await;
        };
        future::or(self.presence.tried(), patience).await;
        self.presence.target().ok_or_else(|| match self.presence.trouble() {
            // A local cause in the place of the gateway's word: permanent, with what to do.
            Some(why) => Answer::local(401, &why),
            None => Answer::Failed(Fault::TimedOut),
        })
    }

    /// One exchange; repeated when that is harmless and may help.
    pub(super) async fn exchange(&self, target: &Target, request: &Request) -> Answer {
        let mut pause = RETRY_PAUSE;
        let mut tries = if request.method == Method::Get { TRIES } else { 1 };
        loop {
            let answer = self.client.exchange(target, request).await;
            let path = request.path.split('?').next().unwrap_or_default();
            self.log.debug(&format!("{} {path}: {}", request.method.as_str(), answer.summary()));
            tries -= 1;
            let may_help = matches!(&answer, Answer::Reply { status: 500..=599, .. })
                || matches!(&answer, Answer::Failed(Fault::Truncated));
            if tries == 0 || !may_help {
                return answer;
            }
            Timer::after(pause).await;
            pause *= 3;
        }
    }
}
