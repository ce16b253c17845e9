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

/// Reads `2026-11-01`, `2026-11-01T12:00:00Z`, or a time ago such as `30d`, `12h`, `90m`.
pub(crate) fn parse(text: &str) -> Result<i64, String> {
    if let Ok(time) = OffsetDateTime::parse(text, &Rfc3339) {
        return Ok(time.unix_timestamp());
    }
    let day = time::macros::format_description!("[year]-[month]-[day]");
    if let Ok(date) = Date::parse(text, day) {
        return Ok(date.with_time(Time::MIDNIGHT).assume_utc().unix_timestamp());
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
        (Some(unit), Some(count)) => Ok(now() - unit * i64::from(count)),
        _ => Err(
            "write a day (2026-11-01), a time (2026-11-01T12:00:00Z) or an age (30d, 12h, 90m)".to_owned(),
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_form_is_read() {
        assert_eq!(parse("1970-01-02"), Ok(86_400));
        assert_eq!(parse("1970-01-01T01:00:00+01:00"), Ok(0));
        assert!((now() - 3_600 - parse("1h").unwrap()).abs() < 5);
        for wrong in ["", "d", "tomorrow", "2026-13-01", "1é"] {
            assert!(parse(wrong).is_err(), "{wrong}");
        }
        assert_eq!(rfc3339(0).as_deref(), Some("1970-01-01T00:00:00Z"));
        assert_eq!(rfc3339(i64::MAX), None);
    }
}
