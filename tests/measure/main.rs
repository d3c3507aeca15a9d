//! `./tests/bench`: figures of the programs beside their peers.
//!
//! Nothing here passes or fails. Every section interleaves the candidates, so that a change of the
//! machine's speed meets all of them alike, and prints medians and ratios.

mod hook;
mod mcp;
mod stats;
mod stream;

use std::process::ExitCode;

const SECTIONS: [(&str, fn()); 8] = [
    ("start", hook::start),
    ("exchange", hook::exchange),
    ("click", hook::click),
    ("wait", hook::wait),
    ("size", hook::size),
    ("stream", stream::throughput),
    ("mcp", mcp::servers),
    ("inbox", mcp::inbox),
];

fn main() -> ExitCode {
    let wanted: Vec<String> = std::env::args().skip(1).collect();
    if let Some(unknown) = wanted.iter().find(|w| SECTIONS.iter().all(|(name, _)| name != w)) {
        let names = SECTIONS.map(|(name, _)| name).join(" ");
        eprintln!("no section {unknown}; there are: {names}");
        return ExitCode::from(2);
    }
    for (name, run) in SECTIONS {
        if wanted.is_empty() || wanted.iter().any(|w| w == name) {
            println!("\n== {name}");
            run();
        }
    }
    ExitCode::SUCCESS
}
