//! How a person gets in: passwords, one-time login codes, browser cookies.

use rusqlite::{Connection, OptionalExtension as _};

use super::super::failure::{Failure, said};
use super::super::secret::{self, TokenHash};
use super::super::store::Tx;

/// How long a login link can be opened, milliseconds: a quarter of an hour from the terminal to
/// the browser or the phone.
pub const CODE_LIFETIME: i64 = 15 * 60 * 1000;

/// The hash of a new password. Takes tens of milliseconds; call it outside a transaction.
///
/// # Errors
///
/// 400 when the password is too short or too long.
pub fn password_hash(password: &str) -> Result<String, Failure> {
    let (min, max) = (secret::MIN_PASSWORD_LEN, secret::MAX_TOKEN_LEN);
    if password.chars().count() < min || password.len() > max {
        return Err(Failure::bad_request(said!(
            "密码至少 {min} 个字符，至多 {max} 字节",
            "a password has at least {min} characters and at most {max} bytes"
        )));
    }
    secret::hash_password(password)
}

/// A one-time code with which the person `name` logs in within [`CODE_LIFETIME`].
///
/// # Errors
///
/// 404 for an unknown person.
pub fn issue_code(tx: &mut Tx<'_>, name: &str) -> Result<String, Failure> {
    super::require_user(tx, name)?;
    insert(tx, name, "code", CODE_LIFETIME)
}

/// Who a cookie belongs to.
pub(in crate::gateway) fn cookie_owner(
    db: &Connection,
    cookie: &str,
    now: i64,
) -> Result<Option<String>, Failure> {
    owner(db, cookie, "cookie", now)
}

fn insert(tx: &mut Tx<'_>, name: &str, kind: &str, lifetime: i64) -> Result<String, Failure> {
    let token = secret::token("")?;
    tx.execute(
        "INSERT INTO logins (hash, user_name, kind, expires_at, created_at)
         VALUES (?1, ?2, ?3, ?4, ?5)",
        (TokenHash::of(&token).as_bytes(), name, kind, tx.now() + lifetime, tx.now()),
    )?;
    Ok(token)
}

fn owner(db: &Connection, token: &str, kind: &str, now: i64) -> Result<Option<String>, Failure> {
    // The digest of 256 random bits is found by index: what an attacker can time is a digest.
    Ok(db
        .query_row(
            "SELECT user_name FROM logins WHERE hash = ?1 AND kind = ?2 AND expires_at > ?3",
            (TokenHash::of(token).as_bytes(), kind, now),
            |row| row.get(0),
        )
        .optional()?)
}
