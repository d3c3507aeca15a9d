//! The names of the events on the streams. Agents get the three of the contract; people get
//! `new_mail` and one of this project's own.

use zcode_mail_core::api::events;

pub(super) use events::{NEW_MAIL, PERMISSION_DECISION};

/// A person's permission request came, was decided or ended: `{request_id, session_id, agent_name,
/// status}`.
pub(super) const PERMISSION_REQUEST: &str = "permission_request";

/// The static name equal to a stored one.
pub(super) fn known(name: &str) -> Option<&'static str> {
    [NEW_MAIL, PERMISSION_DECISION, events::SESSION_ARCHIVED, PERMISSION_REQUEST]
        .into_iter()
        .find(|known| *known == name)
}
