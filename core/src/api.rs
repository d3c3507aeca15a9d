//! The gateway's endpoints, one struct each.
