//! UTCTime and GeneralizedTime to seconds, in every form that was ever met in a log.

/// A date that was read, and whether its form is one that RFC 5280 does not allow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Moment {
    pub(crate) unix_seconds: i64,
    pub(crate) odd_form: bool,
}

/// `YYMMDDhhmm[ss][Z|±hhmm]`, the century by the rule of RFC 5280.
pub(crate) fn utc(text: &[u8]) -> Option<Moment> {
    let mut digits = Digits { rest: text };
    let year = digits.pair()?;
    let year = if year < 50 { 2000 + year } else { 1900 + year };
    let month_to_minute = [digits.pair()?, digits.pair()?, digits.pair()?, digits.pair()?];
    let second = digits.pair();
    finish(year, month_to_minute, second, second.is_none(), digits.rest)
}

/// `YYYYMMDDhh[mm[ss[(.|,)fraction]]][Z|±hhmm]`; the fraction is dropped.
pub(crate) fn generalized(text: &[u8]) -> Option<Moment> {
    let mut digits = Digits { rest: text };
    let year = digits.pair()? * 100 + digits.pair()?;
    let (month, day, hour) = (digits.pair()?, digits.pair()?, digits.pair()?);
    let minute = digits.pair();
    let second = minute.and_then(|_| digits.pair());
    let mut odd = second.is_none();
    if let [b'.' | b',', b'0'..=b'9', ..] = digits.rest {
        odd = true;
        let fraction = digits
            .rest
            .iter()
            .skip(1)
            .take_while(|byte| byte.is_ascii_digit())
            .count();
        digits.rest = digits.rest.get(1 + fraction..)?;
    }
    finish(
        year,
        [month, day, hour, minute.unwrap_or(0)],
        second,
        odd,
        digits.rest,
    )
}

struct Digits<'a> {
    rest: &'a [u8],
}

impl Digits<'_> {
    fn pair(&mut self) -> Option<i64> {
        let [tens @ b'0'..=b'9', ones @ b'0'..=b'9', rest @ ..] = self.rest else {
            return None;
        };
        let pair = i64::from(tens - b'0') * 10 + i64::from(ones - b'0');
        self.rest = rest;
        Some(pair)
    }
}

fn finish(
    year: i64,
    [month, day, hour, minute]: [i64; 4],
    second: Option<i64>,
    odd: bool,
    zone: &[u8],
) -> Option<Moment> {
    let second = second.unwrap_or(0);
    let (offset, plain_zone) = offset_seconds(zone)?;
    let valid = (1..=12).contains(&month)
        && (1..=days_in_month(year, month)).contains(&day)
        && hour < 24
        && minute < 60
        && second < 60;
    if !valid {
        return None;
    }
    let seconds = days_from_civil(year, month, day) * 86_400 + hour * 3_600 + minute * 60 + second;
    Some(Moment {
        unix_seconds: seconds - offset,
        odd_form: odd || !plain_zone,
    })
}

/// Seconds east of UTC, and whether it was the plain `Z`.
fn offset_seconds(zone: &[u8]) -> Option<(i64, bool)> {
    match zone {
        b"Z" => Some((0, true)),
        b"" => Some((0, false)),
        [sign @ (b'+' | b'-'), hours_and_minutes @ ..] => {
            let mut digits = Digits {
                rest: hours_and_minutes,
            };
            let (hours, minutes) = (digits.pair()?, digits.pair()?);
            if hours > 23 || minutes > 59 || !digits.rest.is_empty() {
                return None;
            }
            let seconds = hours * 3_600 + minutes * 60;
            Some((if *sign == b'-' { -seconds } else { seconds }, false))
        }
        _ => None,
    }
}

fn days_in_month(year: i64, month: i64) -> i64 {
    match month {
        2 if year % 4 == 0 && (year % 100 != 0 || year % 400 == 0) => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

/// Days since 1970-01-01, by Howard Hinnant's `days_from_civil`.
fn days_from_civil(year: i64, month: i64, day: i64) -> i64 {
    let year = if month <= 2 { year - 1 } else { year };
    let era = year.div_euclid(400);
    let year_of_era = year.rem_euclid(400);
    let day_of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    era * 146_097 + year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year - 719_468
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A text, and its seconds and whether its form is odd.
    type Case = (&'static [u8], Option<(i64, bool)>);

    #[test]
    fn utc_time_in_all_its_forms() {
        let cases: [Case; 11] = [
            (b"700101000000Z", Some((0, false))),
            (b"491231235959Z", Some((2_524_607_999, false))),
            (b"500101000000Z", Some((-631_152_000, false))),
            (b"7001010000Z", Some((0, true))),
            (b"700101000000", Some((0, true))),
            (b"7001010000", Some((0, true))),
            (b"700101010000+0100", Some((0, true))),
            (b"691231230000-0100", Some((0, true))),
            (b"230230000000Z", None),
            (b"700101000000ZZ", None),
            (b"19020701025736Z", None),
        ];
        for (text, expected) in cases {
            let got = utc(text).map(|moment| (moment.unix_seconds, moment.odd_form));
            assert_eq!(got, expected, "{}", text.escape_ascii());
        }
    }

    #[test]
    fn generalized_time_in_all_its_forms() {
        let cases: [Case; 8] = [
            (b"20500101000000Z", Some((2_524_608_000, false))),
            (b"99981130000000Z", Some((253_368_000_000, false))),
            (b"19700101000000.5Z", Some((0, true))),
            (b"19700101000001,25Z", Some((1, true))),
            (b"1970010100Z", Some((0, true))),
            (b"00000101000000Z", Some((-62_167_219_200, false))),
            (b"19701301000000Z", None),
            (b"19700101000000.Z", None),
        ];
        for (text, expected) in cases {
            let got = generalized(text).map(|moment| (moment.unix_seconds, moment.odd_form));
            assert_eq!(got, expected, "{}", text.escape_ascii());
        }
    }
}
