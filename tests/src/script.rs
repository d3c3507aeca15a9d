//! Scripts: what a machine is put through, decoded from bytes.
//!
//! A script is read from one [`Unstructured`] front to back, without looking ahead: first the
//! configuration, then steps until the bytes end. Truncated bytes are a shorter script, never an
//! error, so a fuzzer can flip, cut and splice bytes and change one thing at a time.
//!
//! The byte format is a format: committed corpora are read with it. Choices are taken from tables
//! of fixed length; whoever changes an entry or the meaning of a byte makes the corpora anew
//! (`tests/fuzz --keep`) in the same commit.

pub mod bodies;
pub mod document;
pub mod events;
pub mod framer;
pub mod grants;
pub mod hook_event;
pub mod hook_machine;
pub mod render;
pub mod replies;
pub mod rpc_session;
pub mod sse;
pub mod sse_writer;
pub mod tool_args;
pub mod tool_render;

use arbitrary::Unstructured;

/// What a stream is made of: pieces that matter to the machine. Exactly 32, so that five bits name
/// one.
pub type Vocabulary = [&'static [u8]; 32];

/// One step of a byte stream.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step {
    /// These bytes arrive.
    Bytes(Vec<u8>),
    /// A read ends here.
    Cut,
    /// The connection ends here and a new one begins. Machines without connections take it as a
    /// cut.
    Restart,
}

impl Step {
    /// Reads one step; `None` at the end of the bytes.
    ///
    /// The top three bits of a byte choose the kind, the other five its argument: 0 to 4 a piece of
    /// the vocabulary, 5 that many raw bytes and one, 6 a cut (31: a restart), 7 a piece named by
    /// the next byte, repeated that many times and one.
    pub fn decode(u: &mut Unstructured<'_>, vocabulary: &Vocabulary) -> Option<Self> {
        let code = byte(u)?;
        let argument = usize::from(code & 0x1F);
        Some(match code >> 5 {
            0..=4 => Self::Bytes(vocabulary[argument].to_vec()),
            5 => Self::Bytes(up_to(u, argument + 1).to_vec()),
            6 if argument == 31 => Self::Restart,
            6 => Self::Cut,
            _ => {
                let piece = vocabulary[usize::from(byte(u).unwrap_or(0) & 0x1F)];
                Self::Bytes(piece.repeat(argument + 1))
            }
        })
    }
}

/// The next byte, if there is one.
pub fn byte(u: &mut Unstructured<'_>) -> Option<u8> {
    u.bytes(1).ok().map(|bytes| bytes[0])
}

/// The next `count` bytes, or those that are left.
pub fn up_to<'a>(u: &mut Unstructured<'a>, count: usize) -> &'a [u8] {
    let count = count.min(u.len());
    u.bytes(count).unwrap_or_default()
}
