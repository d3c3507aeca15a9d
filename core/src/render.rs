//! The one renderer: what a person is shown of a tool call, in mail, on the page, in a terminal.
//!
//! What it is: a [`Request`] becomes a [`Document`] of lines with kinds (for colours) and segments
//! (for marks), and the document has one plain text, which is what travels in `context`.
//! [`Document::parse`] makes the same document of the text again, so a page that only has the text
//! shows the same; [`unrender()`] makes the request of it again.
//!
//! What it promises:
//! - Complete or not at all: all of the input is in the text, or [`render`] says [`TooLong`].
//! - Nothing hides: no character that [`marks::danger`] names is in any output; each stands as a
//!   mark with a warning line (faults row 12).
//! - Nothing is made up: `unrender(render(x).text())` is `x`, so two inputs never look alike, and
//!   no input can forge a heading, because each of its lines stands behind a gutter.
//!
//! ```text
//!   工具: Bash                              facts, in the reader's language
//!   目录: /home/u/project
//!   ⚠ 3 个改变文字方向的字符 (U+202E) ...    warnings, then hints (⚑) and notes (ⓘ)
//!   [command]                               a field of the input
//!   | rm -rf build                            its lines, behind the gutter
//!   [timeout] 120000                        a field that is no text, as JSON
//!   [old_string → new_string]               two fields as one diff, all context shown
//!     same
//!   - old
//!   + new
//!   [@ → content]                           a field as a diff against the file on disk
//!   bound sha256:... ./run.sh               files that the decision is bound to
//!   zcode-mail-digest v1 sha256:... code:1234-5678
//! ```
//!
//! Seed 003 `B-8.4`; design "complete or not at all"; faults rows 12 and 13.

mod diff;
mod document;
pub mod marks;
mod pages;
mod request;
mod unrender;

pub use document::{Document, Kind, Line};
pub use pages::{Row, pages};
pub use request::{Label, Request, TooLong, render};
pub use unrender::{NoRendering, Unrendered, unrender};

/// Most bytes of a rendering. As a JSON string it may double, and the gateway takes bodies of one
/// mebibyte; a person who is to read more than this needs another way to work.
pub const LIMIT: usize = 448 * 1024;

/// Makes `text` safe for one line of any output: marks, and nothing raw.
#[must_use]
pub fn visible(text: &str) -> alloc::string::String {
    let segments = marks::mark(text, &[], &mut marks::Tally::default());
    segments.into_iter().map(|segment| segment.text).collect()
}
