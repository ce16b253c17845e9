//! Times on the command line and in results.

use time::format_description::well_known::Rfc3339;
use time::{Date, OffsetDateTime, Time};

/// Seconds since 1970, now.
pub(crate) fn now() -> i64 {
    OffsetDateTime::now_utc().unix_timestamp()
}

/// RFC 3339, or `None` for times beyond the year 9999.
pub(crate) fn rfc3339(seconds: i64) -> Option<String> {
    OffsetDateTime::from_unix_timestamp(seconds)
        .ok()?
        .format(&Rfc3339)
        .ok()
}

/// A time that somebody wrote.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Moment {
    /// Seconds since 1970.
    pub(crate) seconds: i64,
    /// What it is called from run to run: an age means another second each time it is read.
    pub(crate) called: String,
}

/// Reads `2026-11-01`, `2026-11-01T12:00:00Z`, or a time ago such as `30d`, `12h`, `90m`.
pub(crate) fn parse(text: &str) -> Result<Moment, String> {
    if let Some(seconds) = absolute(text) {
        return Ok(Moment {
            seconds,
            called: seconds.to_string(),
        });
    }
    let unit = text.chars().last().and_then(|unit| match unit {
        'd' => Some(86_400),
        'h' => Some(3_600),
        'm' => Some(60),
        _ => None,
    });
    let count = text
        .get(..text.len().saturating_sub(1))
        .and_then(|count| count.parse::<u32>().ok());
    match (unit, count) {
        (Some(unit), Some(count)) => Ok(Moment {
            seconds: now() - unit * i64::from(count),
            called: text.to_owned(),
        }),
        _ => Err(
            "write a day (2026-11-01), a time (2026-11-01T12:00:00Z) or an age (30d, 12h, 90m)".to_owned(),
        ),
    }
}

fn absolute(text: &str) -> Option<i64> {
    if let Ok(time) = OffsetDateTime::parse(text, &Rfc3339) {
        return Some(time.unix_timestamp());
    }
    let day = time::macros::format_description!("[year]-[month]-[day]");
    let date = Date::parse(text, day).ok()?;
    Some(date.with_time(Time::MIDNIGHT).assume_utc().unix_timestamp())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_form_is_read() {
        let seconds = |text: &str| parse(text).unwrap().seconds;
        assert_eq!(seconds("1970-01-02"), 86_400);
        assert_eq!(seconds("1970-01-01T01:00:00+01:00"), 0);
        assert!((now() - 3_600 - seconds("1h")).abs() < 5);
        assert_eq!(parse("1970-01-02"), parse("1970-01-02T00:00:00Z"));
        assert_eq!(parse("1h").unwrap().called, "1h");
        for wrong in ["", "d", "tomorrow", "2026-13-01", "1é"] {
            assert!(parse(wrong).is_err(), "{wrong}");
        }
        assert_eq!(rfc3339(0).as_deref(), Some("1970-01-01T00:00:00Z"));
        assert_eq!(rfc3339(i64::MAX), None);
    }
}
