//! Frames DER certificates one behind the other.

use super::Framed;
use super::decode::{Form, RawEntry};
use crate::der::{Header, SEQUENCE};
use crate::error::Reason;

#[derive(Debug)]
pub(super) struct Framer<'a> {
    all: &'a [u8],
    rest: &'a [u8],
}

/// Whether this starts with a SEQUENCE that is long enough for a certificate.
pub(super) fn is_der(bytes: &[u8]) -> bool {
    matches!(bytes, [SEQUENCE, 0x80..=0x84, ..])
}

impl<'a> Framer<'a> {
    pub(super) fn new(bytes: &'a [u8]) -> Self {
        Self {
            all: bytes,
            rest: bytes,
        }
    }

    pub(super) fn next(&mut self) -> Option<Framed<'a>> {
        // Line ends and padding between them do no harm.
        let padding = self
            .rest
            .iter()
            .take_while(|byte| matches!(byte, 0 | b'\r' | b'\n' | b' '))
            .count();
        let rest = self.rest.get(padding..).filter(|rest| !rest.is_empty())?;
        let offset = self.all.len() - rest.len();
        if rest.first() != Some(&SEQUENCE) {
            self.rest = &[];
            return Some(Err((
                offset,
                Reason::Unexpected {
                    expected: "the start of a certificate",
                },
            )));
        }
        // One that is cut off is still read as far as it goes.
        let (certificate, rest) = match Header::element_bytes(rest) {
            Some(bytes) => rest.split_at_checked(bytes)?,
            None => (rest, &[][..]),
        };
        self.rest = rest;
        Some(Ok(RawEntry::new(
            offset,
            Form::Der {
                certificate,
                following: rest,
            },
        )))
    }
}

/// The first certificate of what follows another.
pub(super) fn first(following: &[u8]) -> Option<&[u8]> {
    match Framer::new(following).next()? {
        Ok(entry) => entry.der_certificate(),
        Err(_) => None,
    }
}
