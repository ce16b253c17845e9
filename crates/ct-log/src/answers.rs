//! Answers of RFC 6962 logs that are not entries: proofs, roots, and the bodies that come instead.
//!
//! Servers in front of a log answer with web pages, also with status 200, and logs that are overloaded
//! cut bodies off. [`AnswerError::is_retryable`] tells these from an answer that will not change.
//!
//! # Limits
//! [`ANSWER_BYTES_MAX`], [`ROOTS_BYTES_MAX`] and [`ROOTS_MAX`]; proofs as [`PATH_HASHES_MAX`]; 200
//! characters of a body are shown.

use std::borrow::Cow;
use std::fmt;

use memchr::memmem;
use serde::Deserialize;

use crate::merkle::{Hash, PATH_HASHES_MAX};

/// Of a head or a proof; the largest real one has about 4 KiB.
pub const ANSWER_BYTES_MAX: usize = 64 << 10;
/// Of a get-roots body; real ones have about 2 MiB. As JSON of nothing but empty strings it takes sixteen
/// times its length in memory.
pub const ROOTS_BYTES_MAX: usize = 8 << 20;
/// Of accepted roots; real logs accept up to a few thousand.
pub const ROOTS_MAX: usize = 50_000;
const SHOWN_CHARS_MAX: usize = 200;

/// Why a body is not the answer that was asked for.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum AnswerError {
    /// It is longer than any such answer.
    #[error("the answer has {bytes} bytes, more than the limit of {limit} for this question")]
    TooLarge {
        /// Of the body.
        bytes: usize,
        /// For this kind of answer.
        limit: usize,
    },
    /// It is something else.
    #[error("the answer is {body}; the log, or a server before it, could not answer: try again later")]
    NotJson {
        /// What it is.
        body: Body,
    },
    /// It is JSON of another shape: other fields, or values of another type.
    #[error("the answer is JSON of another shape than RFC 6962 has ({problem}): {body}")]
    Shape {
        /// What it is.
        body: Body,
        /// What is missing or wrong, and where.
        problem: serde_json::Error,
    },
    /// A field that should hold base64 does not, or holds another number of bytes.
    #[error("{field} is not base64 of the right length")]
    Field {
        /// The field, as the RFC calls it.
        field: &'static str,
    },
    /// There are more elements than any such answer has.
    #[error("{field} has more than {limit} elements")]
    TooMany {
        /// The field, as the RFC calls it.
        field: &'static str,
        /// How many it may have.
        limit: usize,
    },
}

impl AnswerError {
    /// Whether asking again may help: the body was no JSON, or was cut off.
    #[must_use]
    pub fn is_retryable(&self) -> bool {
        matches!(self, Self::NotJson { .. })
    }
}

/// What a body looks like.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum BodyKind {
    /// Nothing, or white space.
    Empty,
    /// A web page.
    Html,
    /// Whole JSON.
    Json,
    /// The start of JSON, cut off.
    CutJson,
    /// Some text.
    Text,
    /// Bytes that are no text; compressed ones, for example.
    Binary,
}

/// A body that is not what was asked for, as far as a person needs to see it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Body {
    /// What it looks like.
    pub kind: BodyKind,
    /// A web page's title, the message of a JSON error, or the start of the text: at most 200
    /// characters on one line, nothing that a terminal would obey.
    pub text: String,
}

impl Body {
    /// Looks at the body of an answer with any status.
    #[must_use]
    pub fn of(bytes: &[u8]) -> Self {
        let bytes = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes).trim_ascii();
        let bytes = bytes.get(..ANSWER_BYTES_MAX).unwrap_or(bytes);
        let kind = match bytes {
            [] => BodyKind::Empty,
            [b'<', ..] => BodyKind::Html,
            [b'{' | b'[', ..] => match serde_json::from_slice::<serde::de::IgnoredAny>(bytes) {
                Ok(_) => BodyKind::Json,
                Err(error) if error.is_eof() => BodyKind::CutJson,
                Err(_) => BodyKind::Text,
            },
            _ if bytes.iter().take(512).any(|byte| matches!(byte, 0..=8 | 14..=31)) => BodyKind::Binary,
            _ => BodyKind::Text,
        };
        let text = match kind {
            BodyKind::Html => title(bytes).map_or(Cow::Borrowed(""), String::from_utf8_lossy),
            BodyKind::Json => message(bytes).map_or_else(|| String::from_utf8_lossy(bytes), Cow::Owned),
            _ => String::from_utf8_lossy(bytes),
        };
        let text = shown(&text);
        Self { kind, text }
    }
}

impl fmt::Display for Body {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.kind {
            BodyKind::Empty => "empty",
            BodyKind::Html => "a web page",
            BodyKind::Json => "JSON",
            BodyKind::CutJson => "JSON that is cut off",
            BodyKind::Text => "text",
            BodyKind::Binary => "no text",
        })?;
        if self.text.is_empty() {
            Ok(())
        } else {
            write!(f, " (\"{}\")", self.text)
        }
    }
}

fn title(html: &[u8]) -> Option<&[u8]> {
    let head = html.get(..8 << 10).unwrap_or(html);
    let lower = head.to_ascii_lowercase();
    let start = memmem::find(&lower, b"<title>")? + b"<title>".len();
    let end = start + memmem::find(lower.get(start..)?, b"</title>")?;
    head.get(start..end)
}

/// What the logs that answer with JSON call the reason.
fn message(json: &[u8]) -> Option<String> {
    let value: serde_json::Value = serde_json::from_slice(json).ok()?;
    let keys = [
        "error_message",
        "error",
        "message",
        "detail",
        "title",
        "error_code",
    ];
    let found = keys.iter().find_map(|key| value.get(key)?.as_str());
    found.map(str::to_owned)
}

fn shown(text: &str) -> String {
    let mut shown = String::new();
    let words = text.split_whitespace().flat_map(|word| word.chars().chain([' ']));
    let visible = words.map(|char| if char.is_control() { '\u{fffd}' } else { char });
    shown.extend(visible.take(SHOWN_CHARS_MAX));
    shown.truncate(shown.trim_end().len());
    shown
}

/// Reads JSON of a known shape, or says what came instead.
pub(crate) fn json<'a, T: Deserialize<'a>>(bytes: &'a [u8], limit: usize) -> Result<T, AnswerError> {
    if bytes.len() > limit {
        return Err(AnswerError::TooLarge {
            bytes: bytes.len(),
            limit,
        });
    }
    serde_json::from_slice(bytes).map_err(|problem| {
        let body = Body::of(bytes);
        // A body that is cut off behind the part that is shown is not seen as such there.
        if problem.is_data() || (body.kind == BodyKind::Json && !problem.is_eof()) {
            AnswerError::Shape { body, problem }
        } else {
            AnswerError::NotJson { body }
        }
    })
}

/// An array of hashes, or `null`, which some logs write for an empty one. Being a structure of its own,
/// it must be there.
#[derive(Deserialize)]
struct Path<'a>(#[serde(borrow)] Option<Vec<Cow<'a, str>>>);

#[derive(Deserialize)]
struct Consistency<'a> {
    #[serde(borrow)]
    consistency: Path<'a>,
}

#[derive(Deserialize)]
struct Inclusion<'a> {
    leaf_index: u64,
    #[serde(borrow)]
    audit_path: Path<'a>,
}

#[derive(Deserialize)]
struct Roots<'a> {
    #[serde(borrow)]
    certificates: Vec<Cow<'a, str>>,
}

/// The path in a get-sth-consistency answer (RFC 6962 section 4.4), for
/// [`crate::merkle::verify_consistency`].
///
/// # Errors
/// [`AnswerError`].
pub fn consistency(body: &[u8]) -> Result<Vec<Hash>, AnswerError> {
    let answer: Consistency<'_> = json(body, ANSWER_BYTES_MAX)?;
    path("consistency", answer.consistency)
}

/// The index and the path in a get-proof-by-hash answer (section 4.5), for
/// [`crate::merkle::verify_inclusion`].
///
/// # Errors
/// [`AnswerError`].
pub fn proof_by_hash(body: &[u8]) -> Result<(u64, Vec<Hash>), AnswerError> {
    let answer: Inclusion<'_> = json(body, ANSWER_BYTES_MAX)?;
    Ok((answer.leaf_index, path("audit_path", answer.audit_path)?))
}

/// The certificates in a get-roots answer (section 4.7), in DER.
///
/// # Errors
/// [`AnswerError`].
pub fn roots(body: &[u8]) -> Result<Vec<Vec<u8>>, AnswerError> {
    let field = "certificates";
    let answer: Roots<'_> = json(body, ROOTS_BYTES_MAX)?;
    if answer.certificates.len() > ROOTS_MAX {
        return Err(AnswerError::TooMany {
            field,
            limit: ROOTS_MAX,
        });
    }
    let decoded = answer.certificates.iter().map(|text| {
        let der = crate::base64::decode(text, body.len());
        der.ok_or(AnswerError::Field { field })
    });
    decoded.collect()
}

fn path(field: &'static str, path: Path<'_>) -> Result<Vec<Hash>, AnswerError> {
    let hashes = path.0.unwrap_or_default();
    if hashes.len() > PATH_HASHES_MAX {
        return Err(AnswerError::TooMany {
            field,
            limit: PATH_HASHES_MAX,
        });
    }
    let read = hashes.iter().map(|hash| Hash::from_base64(hash));
    read.map(|hash| hash.ok_or(AnswerError::Field { field }))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(body: &[u8], kind: BodyKind, text: &str) {
        let text = text.to_owned();
        assert_eq!(Body::of(body), Body { kind, text });
    }

    #[test]
    fn bodies_are_told_apart() {
        check(b" \r\n", BodyKind::Empty, "");
        check(
            b"<!DOCTYPE html>\n<html><head><TITLE>\n 502 Bad\tGateway</title>",
            BodyKind::Html,
            "502 Bad Gateway",
        );
        check(b"<html>nothing", BodyKind::Html, "");
        check(
            br#"{"error_message":"backend error","success":false}"#,
            BodyKind::Json,
            "backend error",
        );
        check(br#"{"a":1}"#, BodyKind::Json, r#"{"a":1}"#);
        check(br#"{"consistency":["#, BodyKind::CutJson, r#"{"consistency":["#);
        check(b"{oops", BodyKind::Text, "{oops");
        check(b"rate limit exceeded\n", BodyKind::Text, "rate limit exceeded");
        check(
            b"\x1f\x8b\x08\x00",
            BodyKind::Binary,
            "\u{fffd}\u{fffd}\u{fffd}\u{fffd}",
        );
        check(b"a\x1b[31mred", BodyKind::Binary, "a\u{fffd}[31mred");
        let long = Body::of("\u{e9}".repeat(300).as_bytes());
        assert_eq!(long.text.chars().count(), SHOWN_CHARS_MAX);
    }

    #[test]
    fn proofs_are_read() {
        let hash = Hash::EMPTY_ROOT.to_string();
        let body = format!(r#"{{"consistency":["{hash}","{hash}"],"more":{{}}}}"#);
        assert_eq!(consistency(body.as_bytes()).unwrap(), [Hash::EMPTY_ROOT; 2]);
        for empty in [r#"{"consistency":[]}"#, r#"{"consistency":null}"#] {
            assert_eq!(consistency(empty.as_bytes()).unwrap(), []);
        }
        let other = consistency(br#"{"error":"not found"}"#).unwrap_err();
        assert!(
            other.to_string().contains("missing field `consistency`"),
            "{other}"
        );
        let escaped = hash.replace('/', "\\/");
        let body = format!(r#"{{"leaf_index":7,"audit_path":["{escaped}"]}}"#);
        assert_eq!(
            proof_by_hash(body.as_bytes()).unwrap(),
            (7, vec![Hash::EMPTY_ROOT])
        );
    }

    #[test]
    fn what_is_no_proof_says_why() {
        let retryable = |body: &[u8]| proof_by_hash(body).unwrap_err().is_retryable();
        assert!(retryable(b"<html><title>Just a moment...</title>"));
        assert!(retryable(b""));
        assert!(retryable(br#"{"leaf_index":7,"audit_path":["#));
        assert!(!retryable(br#"{"leaf_index":-7,"audit_path":[]}"#));
        assert!(!retryable(br#"{"error":"not found"}"#));
        assert!(!retryable(br#"[]"#));
        let error = |body: &[u8]| proof_by_hash(body).unwrap_err().to_string();
        assert!(error(br#"{"error":"hash unknown"}"#).contains("hash unknown"));
        assert!(error(br#"{"leaf_index":7,"audit_path":["AAAA"]}"#).starts_with("audit_path is not base64"));
        let many = vec![Hash::EMPTY_ROOT.to_string(); PATH_HASHES_MAX + 1];
        let many = format!(r#"{{"consistency":{many:?}}}"#);
        assert!(matches!(
            consistency(many.as_bytes()),
            Err(AnswerError::TooMany {
                limit: PATH_HASHES_MAX,
                ..
            })
        ));
        assert!(matches!(
            consistency(&vec![b' '; ANSWER_BYTES_MAX + 1]),
            Err(AnswerError::TooLarge { .. })
        ));
        assert!(roots(br#"{"certificates":["*"]}"#).is_err());
        assert_eq!(roots(br#"{"certificates":["AAEC"]}"#).unwrap(), [[0, 1, 2]]);
    }
}
