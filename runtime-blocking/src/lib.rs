//! The runtime of `zcode-mail-hook`: one process, one event, one answer.
//!
//! In scope: stdin, files, the network, time, signals, the process. Every decision is made by
//! [`zcode_mail_core::hook`].
//!
//! ```text
//!  args, env ─► stdin (8 MiB, 5 s) ─► rules ─┬─► answer                      no file, no thread
//!                                            └─► grants ─► credential ─► loop ─► answer
//!                                                                        ▲ ▲
//!                               signal thread, stream and exchange threads ┘ (one channel)
//! ```
//!
//! What it promises: stdout is written once, at the very end, with one line or nothing. The exit
//! status is 0; it is 2 when a panic was caught, or stdout could not be written, and the answer is
//! a refusal: ZCode then takes the reason from stderr. Any other status would mean "no opinion".
//!
//! Limits: SIGKILL gives no notice. Aborts (memory exhausted, stack overflow) cannot be caught.

use std::env;
use std::io::Write as _;
use std::panic;
use std::process::ExitCode;
use std::sync::Mutex;

use zcode_mail_core::config::Settings;
use zcode_mail_core::hook::answer::{bounded, encode};
use zcode_mail_core::hook::event::Kind;
use zcode_mail_core::hook::outcome::{Answer, Because, Verdict};
use zcode_mail_core::hook::{Opening, open, unreadable};

mod answered;
mod args;
mod ask;
mod binding;
mod client;
mod clock;
mod credential;
mod event_loop;
mod files;
mod grants_file;
mod inject;
mod pending;
mod signals;
mod stdin;

use args::Run;
use signals::Flag;
use stdin::NoEvent;

/// Exit status of a refusal that ZCode has to read from stderr.
const REFUSED: u8 = 2;

/// What the process ends with.
struct End {
    kind: Option<Kind>,
    verdict: Verdict,
}

/// Runs the hook with the arguments and the environment of this process.
#[must_use]
pub fn main() -> ExitCode {
    // ZCode reads exit status 2 together with all of stderr, so a panic must not write there.
    panic::set_hook(Box::new(note_panic));
    let settings = Settings::from_env(|name| {
        // A value that is no UTF-8 still counts as set: a session id must never turn a mail-driven
        // hook into an interactive one.
        env::var_os(name).map(|value| value.to_string_lossy().into_owned())
    });
    let args = match args::parse(env::args_os().skip(1)) {
        Run::Hook(args) => args,
        Run::Print(text) => return print(&text),
    };
    for warning in args.warnings.iter().chain(&settings.warnings) {
        log(warning);
    }
    let dialect = args.dialect(&settings);
    let caught = panic::catch_unwind(|| run(&settings));
    let (end, panicked) = match caught {
        Ok(end) => (end, false),
        Err(_) => (internal(&settings), true),
    };
    let line = panic::catch_unwind(|| {
        inject::here("answer");
        encode(dialect, end.kind, &end.verdict)
    });
    match line {
        Ok(line) => deliver(&line, &end.verdict, panicked),
        Err(_) => {
            let end = internal(&settings);
            deliver(&encode(dialect, end.kind, &end.verdict), &end.verdict, true)
        }
    }
}

fn run(settings: &Settings) -> End {
    let signals = Flag::register();
    inject::here("read");
    let opening = match stdin::read(&signals) {
        Ok(bytes) => {
            inject::here("rules");
            open(&bytes, settings)
        }
        Err(NoEvent::Unreadable(error)) => unreadable(error, None, settings),
        Err(NoEvent::Signal) => {
            let driven = settings.mail_driven();
            let verdict = Verdict::new(Because::Signal, driven, None, settings.lang);
            Opening::Done { kind: None, verdict }
        }
    };
    match opening {
        Opening::Done { kind, verdict } => {
            if let Because::Unreadable(error) = &verdict.because {
                log(&error.to_string());
            }
            End { kind, verdict }
        }
        Opening::Ask(call) => {
            note_kind(call.event.kind);
            let verdict = ask::ask(&call, settings, &signals);
            log(&format!("{} {}", call.event.tool, summary(&verdict)));
            End { kind: Some(call.event.kind), verdict }
        }
    }
}

/// The answer, then the exit status.
fn deliver(line: &str, verdict: &Verdict, panicked: bool) -> ExitCode {
    let mut stdout = std::io::stdout().lock();
    let written = stdout.write_all(line.as_bytes()).and_then(|()| stdout.flush());
    match &verdict.answer {
        Answer::Block(reason) if panicked || written.is_err() => {
            log_plain(&bounded(reason));
            ExitCode::from(REFUSED)
        }
        _ => ExitCode::SUCCESS,
    }
}

fn print(text: &str) -> ExitCode {
    // Whoever asked for help and closed the pipe does not want it any more.
    let _ = std::io::stdout().write_all(text.as_bytes());
    ExitCode::SUCCESS
}

fn summary(verdict: &Verdict) -> String {
    let said = match verdict.answer {
        Answer::Approve => "approved",
        Answer::Block(_) => "blocked",
        Answer::NoOpinion => "no opinion",
    };
    let detail = match &verdict.because {
        Because::GatewayRefused { status, message, suggestion } => {
            let advice = suggestion.as_ref().map_or_else(String::new, |text| format!(" ({text})"));
            format!(": permanent failure, HTTP {status}: {message}{advice}")
        }
        Because::Unreachable(cause) => format!(": temporary failure: {cause}"),
        Because::NotConfigured(detail) | Because::Internal(detail) => format!(": {detail}"),
        _ => String::new(),
    };
    format!("{said} ({}){detail}", verdict.because.code())
}

/// One line on stderr.
pub(crate) fn log(text: &str) {
    log_plain(&format!("zcode-mail-hook: {}", text.replace('\n', " ")));
}

fn log_plain(text: &str) {
    // A closed stderr is no reason to fail.
    let _ = writeln!(std::io::stderr(), "{text}");
}

/// What is known when a panic is caught.
static CAUGHT: Mutex<Caught> = Mutex::new(Caught { message: None, kind: None });

struct Caught {
    message: Option<String>,
    kind: Option<Kind>,
}

fn caught() -> std::sync::MutexGuard<'static, Caught> {
    CAUGHT.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}

fn note_panic(info: &panic::PanicHookInfo<'_>) {
    let payload = info.payload();
    let message = payload
        .downcast_ref::<&str>()
        .map(ToString::to_string)
        .or_else(|| payload.downcast_ref::<String>().cloned())
        .unwrap_or_else(|| "panic".to_owned());
    let place = info.location().map_or_else(String::new, |at| format!(" at {at}"));
    // The first panic is the cause; later ones are its consequences.
    caught().message.get_or_insert(format!("{message}{place}"));
}

/// Remembers which event is being answered, in case a panic comes.
fn note_kind(kind: Kind) {
    caught().kind = Some(kind);
}

/// The end of an own error.
fn internal(settings: &Settings) -> End {
    let (message, kind) = {
        let mut caught = caught();
        (caught.message.take(), caught.kind)
    };
    let because = Because::Internal(message.unwrap_or_else(|| "panic".to_owned()));
    End { kind, verdict: Verdict::new(because, settings.mail_driven(), None, settings.lang) }
}
