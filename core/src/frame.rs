//! Line framing of a byte stream.
