//! Random ids and tokens, their digests, and passwords.

use argon2::password_hash::phc::PasswordHash;
use argon2::password_hash::{PasswordHasher as _, PasswordVerifier as _};
use argon2::{Algorithm, Argon2, Params, Version};
use sha2::{Digest as _, Sha256};
use subtle::ConstantTimeEq as _;

use super::failure::Failure;

/// Bytes of randomness in a key, cookie or login code: far beyond guessing.
const TOKEN_BYTES: usize = 32;
/// Shortest key that an operator may register for an agent, in bytes. The official bridges make
/// 32 random bytes; anything under 20 printable characters is a word somebody made up.
pub(super) const MIN_TOKEN_LEN: usize = 20;
/// Longest key or password that is hashed, in bytes.
pub(super) const MAX_TOKEN_LEN: usize = 1024;
/// Shortest password (NIST SP 800-63B-4: 8 for a memorised secret).
pub(super) const MIN_PASSWORD_LEN: usize = 8;

/// A SHA-256 digest of a key, cookie or code. The only form in which they are stored.
#[derive(Clone, Copy)]
pub(super) struct TokenHash([u8; 32]);

impl TokenHash {
    /// The digest of `token`.
    #[must_use]
    pub(super) fn of(token: &str) -> Self {
        Self(Sha256::digest(token.as_bytes()).into())
    }

    /// The whole digest.
    #[must_use]
    pub(super) const fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    /// The part by which candidates are found; the rest is compared in constant time.
    #[must_use]
    pub(super) fn lookup(&self) -> &[u8] {
        &self.0[..8]
    }

    /// Whether `stored` is this digest, in time that does not depend on where they differ.
    #[must_use]
    pub(super) fn matches(&self, stored: &[u8]) -> bool {
        self.0.ct_eq(stored).into()
    }
}

/// Whether two secrets are equal, in time that depends on neither content nor length: their
/// digests are compared.
#[must_use]
pub(super) fn same(one: &str, other: &str) -> bool {
    TokenHash::of(one).matches(TokenHash::of(other).as_bytes())
}

/// A new secret of 256 random bits: `prefix`, then 64 hexadecimal digits.
///
/// # Errors
///
/// When the operating system gives no randomness.
pub(super) fn token(prefix: &str) -> Result<String, Failure> {
    let mut bytes = [0; TOKEN_BYTES];
    fill(&mut bytes)?;
    Ok(format!("{prefix}{}", hex(&bytes)))
}

/// A new random id (UUID version 4, RFC 9562).
///
/// # Errors
///
/// When the operating system gives no randomness.
pub(super) fn id() -> Result<String, Failure> {
    let mut bytes = [0; 16];
    fill(&mut bytes)?;
    bytes[6] = bytes[6] & 0x0f | 0x40;
    bytes[8] = bytes[8] & 0x3f | 0x80;
    let hex = hex(&bytes);
    Ok(format!("{}-{}-{}-{}-{}", &hex[..8], &hex[8..12], &hex[12..16], &hex[16..20], &hex[20..]))
}

/// The argon2id hash of a password as a PHC string, with OWASP's first choice of parameters
/// (19 MiB, two passes, one lane). Takes tens of milliseconds: call it off the executor.
///
/// # Errors
///
/// When the operating system gives no randomness.
pub(super) fn hash_password(password: &str) -> Result<String, Failure> {
    let hash = argon2()
        .hash_password(password.as_bytes())
        .map_err(|error| Failure::internal(format!("argon2: {error}")))?;
    Ok(hash.to_string())
}

/// Whether `password` belongs to `hash`. Without a hash (unknown user, or one who has no password)
/// the same work is done for nothing, so that the time does not tell which names exist.
#[must_use]
pub(super) fn verify_password(password: &str, hash: Option<&str>) -> bool {
    // A valid hash of a password that nobody knows.
    const NOBODY: &str = "$argon2id$v=19$m=19456,t=2,p=1$c29tZSByYW5kb20gc2FsdA\
                          $4vjGvIHYE4uXgIBrLtKKuEfoTTHJPGjfrn8zTUOJbpo";
    let Ok(parsed) = PasswordHash::new(hash.unwrap_or(NOBODY)) else { return false };
    argon2().verify_password(password.as_bytes(), &parsed).is_ok() && hash.is_some()
}

fn argon2() -> Argon2<'static> {
    Argon2::new(Algorithm::Argon2id, Version::V0x13, Params::default())
}

fn fill(bytes: &mut [u8]) -> Result<(), Failure> {
    getrandom::fill(bytes).map_err(|error| Failure::internal(format!("randomness: {error}")))
}

fn hex(bytes: &[u8]) -> String {
    use std::fmt::Write as _;
    let mut hex = String::with_capacity(bytes.len() * 2);
    for byte in bytes {
        // Writing to a String cannot fail.
        let _ = write!(hex, "{byte:02x}");
    }
    hex
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn passwords_verify_only_against_their_own_hash() {
        let hash = hash_password("correct horse").unwrap();
        assert!(hash.starts_with("$argon2id$v=19$m=19456,t=2,p=1$"), "{hash}");
        assert!(verify_password("correct horse", Some(&hash)));
        assert!(!verify_password("correct horse ", Some(&hash)));
        assert!(!verify_password("", Some(&hash)));
        assert!(!verify_password("correct horse", None));
        assert!(!verify_password("correct horse", Some("not a hash")));
        assert_ne!(hash, hash_password("correct horse").unwrap());
    }

    #[test]
    fn the_hash_for_nobody_parses_so_that_unknown_names_cost_the_same() {
        let before = std::time::Instant::now();
        assert!(!verify_password("x", None));
        assert!(before.elapsed() > std::time::Duration::from_millis(2));
    }

    #[test]
    fn ids_are_version_four_and_tokens_differ() {
        let one = id().unwrap();
        assert_eq!((one.len(), &one[14..15]), (36, "4"));
        assert!(matches!(&one[19..20], "8" | "9" | "a" | "b"));
        assert_ne!(one, id().unwrap());
        let token = token("amk_").unwrap();
        assert_eq!(token.len(), 4 + 64);
        assert!(same(&token, &token.clone()));
        assert!(!same(&token, &token[..67]));
    }
}
