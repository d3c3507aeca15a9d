//! The slow twin of the grants: a list, searched from the front, with every rule spelled out.

/// Seven days.
const UNUSED_MS: i64 = 604_800_000;
/// One day.
const SKEW_MS: i64 = 86_400_000;
/// One hour.
const TOUCH_MS: i64 = 3_600_000;

/// One remembered approval.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Row {
    /// The session.
    pub session: String,
    /// The tool.
    pub tool: String,
    /// When it was granted, Unix milliseconds.
    pub granted: i64,
    /// When it was last used, Unix milliseconds.
    pub used: i64,
}

/// The list.
#[derive(Clone, Debug, Default)]
pub struct Rows(pub Vec<Row>);

impl Rows {
    /// Whether the pair is covered.
    #[must_use]
    pub fn covers(&self, session: &str, tool: &str, now: i64) -> bool {
        self.0.iter().any(|row| row.session == session && row.tool == tool && counts(row, now))
    }

    /// Remembers an approval.
    pub fn add(&mut self, session: &str, tool: &str, now: i64) {
        self.0.retain(|row| counts(row, now));
        let row = Row { session: session.into(), tool: tool.into(), granted: now, used: now };
        self.put(row);
    }

    /// Notes a use; whether the stamp moved.
    pub fn touch(&mut self, session: &str, tool: &str, now: i64) -> bool {
        if !self.covers(session, tool, now) {
            return false;
        }
        for row in &mut self.0 {
            if row.session == session && row.tool == tool && (now - row.used).abs() >= TOUCH_MS {
                row.used = now;
                return true;
            }
        }
        false
    }

    /// Takes all of a session back.
    pub fn revoke_session(&mut self, session: &str) {
        self.0.retain(|row| row.session != session);
    }

    /// Takes one back.
    pub fn revoke(&mut self, session: &str, tool: &str) {
        self.0.retain(|row| row.session != session || row.tool != tool);
    }

    /// Adds all of another list.
    pub fn merge(&mut self, other: &Self) {
        for row in &other.0 {
            self.put(row.clone());
        }
    }

    fn put(&mut self, new: Row) {
        for row in &mut self.0 {
            if row.session == new.session && row.tool == new.tool {
                row.granted = row.granted.max(new.granted);
                row.used = row.used.max(new.used);
                return;
            }
        }
        self.0.push(new);
    }
}

fn counts(row: &Row, now: i64) -> bool {
    now - row.used <= UNUSED_MS && row.used - now <= SKEW_MS
}
