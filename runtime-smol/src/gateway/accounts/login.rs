//! How a person gets in: passwords, one-time login codes, browser cookies.

use rusqlite::{Connection, OptionalExtension as _};

use zcode_mail_core::audit::Event;

use super::super::audit::{self, Entry};
use super::super::failure::{Failure, said};
use super::super::secret::{self, TokenHash};
use super::super::store::Tx;

/// How long a browser stays logged in, milliseconds: thirty days.
pub const COOKIE_LIFETIME: i64 = 30 * 24 * 3600 * 1000;
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

/// The hash of the password of `name`; `None` for who has none or does not exist.
pub(in crate::gateway) fn stored_password(
    db: &Connection,
    name: &str,
) -> Result<Option<String>, Failure> {
    let hash = db
        .query_row("SELECT password_hash FROM users WHERE name = ?1", [name], |row| row.get(0))
        .optional()?;
    Ok(hash.flatten())
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

/// Who the code belongs to, without using it up.
pub(in crate::gateway) fn code_owner(
    db: &Connection,
    code: &str,
    now: i64,
) -> Result<Option<String>, Failure> {
    owner(db, code, "code", now)
}

/// Uses a code up; `None` when it is unknown, over, or used.
pub(in crate::gateway) fn redeem_code(
    tx: &mut Tx<'_>,
    code: &str,
) -> Result<Option<String>, Failure> {
    let found = owner(tx, code, "code", tx.now())?;
    if found.is_some() {
        delete(tx, code)?;
    }
    Ok(found)
}

/// A new browser session; the text is the cookie's value.
pub(in crate::gateway) fn start_cookie(
    tx: &mut Tx<'_>,
    name: &str,
    how: &str,
) -> Result<String, Failure> {
    let entry =
        Entry { event: Event::Login, who: name, how, subject: name, digest: None, detail: "" };
    audit::append(tx, &entry)?;
    tx.execute("DELETE FROM logins WHERE expires_at <= ?1", [tx.now()])?;
    insert(tx, name, "cookie", COOKIE_LIFETIME)
}

/// Who a cookie belongs to.
pub(in crate::gateway) fn cookie_owner(
    db: &Connection,
    cookie: &str,
    now: i64,
) -> Result<Option<String>, Failure> {
    owner(db, cookie, "cookie", now)
}

/// Ends a browser session.
pub(in crate::gateway) fn end_cookie(tx: &mut Tx<'_>, cookie: &str) -> Result<(), Failure> {
    delete(tx, cookie)
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

fn delete(tx: &mut Tx<'_>, token: &str) -> Result<(), Failure> {
    tx.execute("DELETE FROM logins WHERE hash = ?1", [TokenHash::of(token).as_bytes()])?;
    Ok(())
}
