//! Frames PEM: certificates between their lines, in whatever text.

use memchr::memmem;

use super::Framed;
use super::decode::{Form, RawEntry};
use crate::error::Reason;

const BEGIN: &[u8] = b"-----BEGIN ";
const END: &[u8] = b"-----END ";
const DASHES: &[u8] = b"-----";
/// Longer ones are no labels.
const LABEL_BYTES_MAX: usize = 64;

#[derive(Debug)]
pub(super) struct Framer<'a> {
    all: &'a [u8],
    at: usize,
    skipped: u64,
}

/// One block.
struct Block<'a> {
    label: &'a [u8],
    /// The text between the lines; `None` where the second is missing.
    body: Option<&'a [u8]>,
    start: usize,
    end: usize,
}

pub(super) fn is_pem(bytes: &[u8]) -> bool {
    next_block(bytes, 0).is_some()
}

fn next_block(all: &[u8], mut at: usize) -> Option<Block<'_>> {
    loop {
        let start = at + memmem::find(all.get(at..)?, BEGIN)?;
        let after = start + BEGIN.len();
        let text = all.get(after..)?;
        let window = text.get(..LABEL_BYTES_MAX).unwrap_or(text);
        let label_bytes = memmem::find(window, DASHES);
        let Some(label) = label_bytes
            .and_then(|bytes| text.get(..bytes))
            .filter(|label| is_label(label))
        else {
            at = after;
            continue;
        };
        let body_start = after + label.len() + DASHES.len();
        let body = all.get(body_start..)?;
        // The next dashes of either kind end it.
        let (bytes, ended) = match memmem::find(body, DASHES) {
            Some(bytes) => (bytes, body.get(bytes..).is_some_and(|rest| rest.starts_with(END))),
            None => (body.len(), false),
        };
        let text = body.get(..bytes)?;
        let end = body_start + bytes + if ended { END.len() } else { 0 };
        return Some(Block {
            label,
            body: ended.then_some(text),
            start,
            end,
        });
    }
}

fn is_label(label: &[u8]) -> bool {
    label.iter().all(|byte| byte.is_ascii_graphic() || *byte == b' ')
}

fn is_certificate(label: &[u8]) -> bool {
    matches!(
        label,
        b"CERTIFICATE" | b"X509 CERTIFICATE" | b"TRUSTED CERTIFICATE"
    )
}

impl<'a> Framer<'a> {
    pub(super) fn new(bytes: &'a [u8]) -> Self {
        Self {
            all: bytes,
            at: 0,
            skipped: 0,
        }
    }

    pub(super) fn skipped(&self) -> u64 {
        self.skipped
    }

    pub(super) fn next(&mut self) -> Option<Framed<'a>> {
        loop {
            let block = next_block(self.all, self.at)?;
            self.at = block.end;
            if !is_certificate(block.label) {
                self.skipped += 1;
                continue;
            }
            let Some(body) = block.body else {
                return Some(Err((block.start, Reason::CutOff { field: "a PEM block" })));
            };
            let following = self.all.get(block.end..).unwrap_or_default();
            let trusted = block.label.starts_with(b"TRUSTED");
            return Some(Ok(RawEntry::new(
                block.start,
                Form::Pem {
                    body,
                    trusted,
                    following,
                },
            )));
        }
    }
}

/// The text of the first certificate of what follows another.
pub(super) fn first(following: &[u8]) -> Option<&[u8]> {
    let mut at = 0;
    loop {
        let block = next_block(following, at)?;
        if is_certificate(block.label) {
            return block.body;
        }
        at = block.end;
    }
}

/// The text without the headers that RFC 1421 allows before an empty line.
pub(super) fn without_headers(body: &[u8]) -> &[u8] {
    if memchr::memchr(b':', body).is_none() {
        return body;
    }
    let end = memmem::find(body, b"\n\n").or_else(|| memmem::find(body, b"\n\r\n"));
    end.and_then(|end| body.get(end..)).unwrap_or(body)
}
