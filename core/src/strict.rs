//! Strict JSON decoding with errors that name the field.
