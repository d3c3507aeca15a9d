//! The asynchronous runtime of zcode-mail-bridge.
