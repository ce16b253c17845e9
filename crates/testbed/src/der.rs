//! A writer of DER that puts lengths in after the content is known.

pub(crate) const SEQUENCE: u8 = 0x30;
pub(crate) const SET: u8 = 0x31;
pub(crate) const INTEGER: u8 = 0x02;
pub(crate) const BIT_STRING: u8 = 0x03;
pub(crate) const OCTET_STRING: u8 = 0x04;
pub(crate) const OBJECT_IDENTIFIER: u8 = 0x06;
pub(crate) const UTF8_STRING: u8 = 0x0c;
pub(crate) const PRINTABLE_STRING: u8 = 0x13;
pub(crate) const UTC_TIME: u8 = 0x17;
pub(crate) const TRUE: &[u8] = &[0x01, 0x01, 0xff];
pub(crate) const NULL: &[u8] = &[0x05, 0x00];

/// Appends DER to a buffer.
pub(crate) struct Der<'a>(pub(crate) &'a mut Vec<u8>);

impl Der<'_> {
    /// Bytes that are DER already.
    pub(crate) fn verbatim(&mut self, bytes: &[u8]) {
        self.0.extend_from_slice(bytes);
    }

    pub(crate) fn value(&mut self, tag: u8, content: &[u8]) {
        self.header(tag, content.len());
        self.0.extend_from_slice(content);
    }

    /// Tag and length of content that the caller appends.
    pub(crate) fn header(&mut self, tag: u8, length: usize) {
        self.0.push(tag);
        match length {
            0..=0x7f => self.0.push(length as u8),
            0x80..=0xff => self.0.extend_from_slice(&[0x81, length as u8]),
            0x100..=0xffff => self
                .0
                .extend_from_slice(&[0x82, (length >> 8) as u8, length as u8]),
            _ => self
                .0
                .extend_from_slice(&[0x83, (length >> 16) as u8, (length >> 8) as u8, length as u8]),
        }
    }

    /// Content written by `write`; the length is put in afterwards, which moves long content by
    /// one to three bytes. That is cheaper than computing lengths ahead, and hard to get wrong.
    pub(crate) fn nest(&mut self, tag: u8, write: impl FnOnce(&mut Der<'_>)) {
        self.0.extend_from_slice(&[tag, 0]);
        let start = self.0.len();
        write(self);
        let length = self.0.len() - start;
        if length < 0x80 {
            self.0[start - 1] = length as u8;
            return;
        }
        let count = length.to_be_bytes().iter().skip_while(|byte| **byte == 0).count();
        let length = length.to_be_bytes();
        self.0[start - 1] = 0x80 | count as u8;
        let end = self.0.len();
        self.0.resize(end + count, 0);
        self.0.copy_within(start..end, start + count);
        self.0[start..start + count].copy_from_slice(&length[length.len() - count..]);
    }

    /// A non-negative integer of big-endian `magnitude`, which must not start with 0.
    pub(crate) fn positive(&mut self, magnitude: &[u8]) {
        let pad = magnitude.first().is_none_or(|first| first & 0x80 != 0);
        self.header(INTEGER, magnitude.len() + usize::from(pad));
        if pad {
            self.0.push(0);
        }
        self.0.extend_from_slice(magnitude);
    }

    /// A bit string without unused bits.
    pub(crate) fn bits(&mut self, write: impl FnOnce(&mut Der<'_>)) {
        self.nest(BIT_STRING, |der| {
            der.0.push(0);
            write(der);
        });
    }

    pub(crate) fn extension(&mut self, id: &[u8], critical: Critical, write: impl FnOnce(&mut Der<'_>)) {
        self.nest(SEQUENCE, |der| {
            der.value(OBJECT_IDENTIFIER, id);
            if matches!(critical, Critical::Yes) {
                der.verbatim(TRUE);
            }
            der.nest(OCTET_STRING, write);
        });
    }

    pub(crate) fn utc_time(&mut self, unix_seconds: u64) {
        self.value(UTC_TIME, &utc_time(unix_seconds));
    }
}

/// Whether a reader that does not know an extension must refuse the certificate.
#[derive(Clone, Copy)]
pub(crate) enum Critical {
    Yes,
    No,
}

/// `YYMMDDHHMMSSZ`, for the years 1970 to 2049 (RFC 5280, 4.1.2.5.1).
fn utc_time(unix_seconds: u64) -> [u8; 13] {
    let (days, second) = (unix_seconds / 86_400, unix_seconds % 86_400);
    let (year, month, day) = civil_from_days(days);
    let mut text = *b"000000000000Z";
    let fields = [
        year % 100,
        month,
        day,
        second / 3600,
        second / 60 % 60,
        second % 60,
    ];
    for (index, field) in fields.into_iter().enumerate() {
        text[2 * index] += (field / 10) as u8;
        text[2 * index + 1] += (field % 10) as u8;
    }
    text
}

/// Year, month and day of a count of days since 1970-01-01 (Howard Hinnant, `civil_from_days`).
pub(crate) fn civil_from_days(days: u64) -> (u64, u64, u64) {
    let shifted = days + 719_468;
    let (era, day_of_era) = (shifted / 146_097, shifted % 146_097);
    let year_of_era = (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted_month = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * shifted_month + 2) / 5 + 1;
    let month = if shifted_month < 10 {
        shifted_month + 3
    } else {
        shifted_month - 9
    };
    (year_of_era + era * 400 + u64::from(month <= 2), month, day)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check_nested(length: usize, header: &[u8]) {
        let mut bytes = Vec::new();
        Der(&mut bytes).nest(OCTET_STRING, |der| der.verbatim(&vec![7; length]));
        assert_eq!(&bytes[..header.len()], header);
        assert_eq!(bytes.len(), header.len() + length);
        assert!(bytes[header.len()..].iter().all(|byte| *byte == 7));
    }

    #[test]
    fn lengths_are_minimal() {
        check_nested(0, &[4, 0]);
        check_nested(127, &[4, 127]);
        check_nested(128, &[4, 0x81, 128]);
        check_nested(255, &[4, 0x81, 255]);
        check_nested(256, &[4, 0x82, 1, 0]);
        check_nested(65_536, &[4, 0x83, 1, 0, 0]);
    }

    #[test]
    fn dates_are_civil() {
        assert_eq!(&utc_time(0), b"700101000000Z");
        assert_eq!(&utc_time(951_782_399), b"000228235959Z");
        assert_eq!(&utc_time(951_868_800), b"000301000000Z");
        assert_eq!(&utc_time(1_780_272_000), b"260601000000Z");
    }

    #[test]
    fn integers_stay_positive() {
        let mut bytes = Vec::new();
        Der(&mut bytes).positive(&[0x80]);
        Der(&mut bytes).positive(&[0x7f]);
        assert_eq!(bytes, [2, 2, 0, 0x80, 2, 1, 0x7f]);
    }
}
