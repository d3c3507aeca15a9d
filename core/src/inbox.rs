//! A growing buffer that is read from the front.
//!
//! What it is: the place where a runtime keeps bytes that it has read and a machine has not
//! consumed. What it promises: appending and consuming cost time linear in the bytes that pass
//! through, however small the steps, because live bytes move only when they are fewer than the
//! dead ones before them. It holds what the machine leaves, so a machine with a limit bounds it.
//!
//! ```text
//!   | dead (consumed) | live = pending() | spare capacity |
//!   0               start               len
//! ```

use alloc::vec::Vec;

/// The capacity that an emptied inbox keeps, in bytes: the reads of ordinary messages fit, and one
/// long message does not hold its memory for the life of the process.
pub const KEPT_CAPACITY: usize = 1024 * 1024;

/// Bytes read but not yet consumed.
#[derive(Clone, Debug, Default)]
pub struct Inbox {
    bytes: Vec<u8>,
    start: usize,
}

impl Inbox {
    /// An empty inbox; it allocates with the first byte.
    #[must_use]
    pub const fn new() -> Self {
        Self { bytes: Vec::new(), start: 0 }
    }

    /// Appends what was just read.
    pub fn extend(&mut self, read: &[u8]) {
        if self.start > self.bytes.len() / 2 {
            self.bytes.drain(..self.start);
            self.start = 0;
        }
        self.bytes.extend_from_slice(read);
    }

    /// The bytes that nobody has consumed, oldest first.
    #[must_use]
    pub fn pending(&self) -> &[u8] {
        &self.bytes[self.start..]
    }

    /// Drops the oldest `count` bytes of [`pending`](Self::pending); more than there are drops all.
    pub fn consume(&mut self, count: usize) {
        self.start = self.start.saturating_add(count).min(self.bytes.len());
        if self.start == self.bytes.len() {
            self.bytes.clear();
            self.bytes.shrink_to(KEPT_CAPACITY);
            self.start = 0;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_come_out_in_the_order_they_went_in() {
        let mut inbox = Inbox::new();
        let (mut written, mut read) = (0_u32, 0_u32);
        for round in 0..1000_u32 {
            for _ in 0..(round * 7 % 13) {
                inbox.extend(&[(written % 251) as u8]);
                written += 1;
            }
            let take = (round * 5 % 11) as usize;
            for &byte in inbox.pending().iter().take(take) {
                assert_eq!(u32::from(byte), read % 251);
                read += 1;
            }
            inbox.consume(take);
            assert_eq!(inbox.pending().len(), (written - read) as usize);
        }
    }

    #[test]
    fn dead_bytes_never_outweigh_live_ones_after_growing() {
        let mut inbox = Inbox::new();
        inbox.extend(&[0; 100]);
        for _ in 0..10_000 {
            inbox.consume(10);
            inbox.extend(&[0; 10]);
            assert_eq!(inbox.pending().len(), 100);
            assert!(inbox.bytes.len() <= 220, "{} bytes for 100 live ones", inbox.bytes.len());
        }
    }

    #[test]
    fn an_emptied_inbox_gives_back_what_a_long_message_took() {
        let mut inbox = Inbox::new();
        inbox.extend(&[0; KEPT_CAPACITY]);
        inbox.extend(&[0; 1]);
        inbox.consume(1);
        assert!(inbox.bytes.capacity() > KEPT_CAPACITY);
        inbox.consume(KEPT_CAPACITY);
        assert_eq!(inbox.bytes.capacity(), KEPT_CAPACITY);
    }

    #[test]
    fn consuming_more_than_there_is_empties_it() {
        let mut inbox = Inbox::new();
        inbox.extend(b"abc");
        inbox.consume(usize::MAX);
        assert_eq!(inbox.pending(), b"");
        inbox.extend(b"d");
        assert_eq!(inbox.pending(), b"d");
    }
}
