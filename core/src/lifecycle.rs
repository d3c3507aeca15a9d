//! The life of a permission request.
