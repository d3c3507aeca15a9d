//! Laws of masking and of showing any text; see [`super::render`].

/// Checks all laws on the text that `bytes` spell.
///
/// # Panics
/// When one does not hold.
pub fn check(bytes: &[u8]) {
    super::render::check_any_text(&String::from_utf8_lossy(bytes));
}
