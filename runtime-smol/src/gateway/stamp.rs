//! Wall-clock stamps: Unix milliseconds in the database, RFC 3339 with milliseconds on the wire
//! (`W-3`).

use std::time::{SystemTime, UNIX_EPOCH};

/// The present time in Unix milliseconds; 0 on a clock set before 1970.
#[must_use]
pub fn now() -> i64 {
    SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .map_or(0, |since| i64::try_from(since.as_millis()).unwrap_or(i64::MAX))
}

/// `2026-09-02T11:41:16.744Z`. A stamp outside the years 0 to 9999 shows as the epoch.
#[must_use]
pub fn rfc3339(millis: i64) -> String {
    let stamp = jiff::Timestamp::from_millisecond(millis).unwrap_or(jiff::Timestamp::UNIX_EPOCH);
    format!("{stamp:.3}")
}

#[cfg(test)]
mod tests {
    #[test]
    fn stamps_have_three_decimals_and_end_in_z() {
        assert_eq!(super::rfc3339(0), "1970-01-01T00:00:00.000Z");
        assert_eq!(super::rfc3339(1_788_349_276_744), "2026-09-02T11:41:16.744Z");
        assert_eq!(super::rfc3339(i64::MAX), "1970-01-01T00:00:00.000Z");
    }
}
