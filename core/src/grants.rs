//! Remembered approvals as data.
