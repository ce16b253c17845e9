//! A log's progress as bytes.
//!
//! # Format
//! `docs/formats/log-progress.md`.

use tamis_ct_log::key::LogId;
use tamis_ct_log::merkle::{CompactRange, Hash, Tree, format};

use super::lie::{Lie, LieKind};
use super::progress::{HEAD_BYTES_MAX, Head, LIES_MAX, Progress, SPANS_MAX, Span, TEXT_BYTES_MAX};

const MAGIC: [u8; 8] = *b"TAMISLOG";
const VERSION: u32 = 1;

/// Why bytes are no progress.
#[derive(Debug, thiserror::Error)]
pub(super) enum FormatError {
    /// They start with something else, break off, or hold what cannot be.
    #[error("what was kept of the log is damaged at byte {offset}; it is read from the start")]
    Corrupt {
        /// Where it shows.
        offset: usize,
    },
    /// A newer program wrote them.
    #[error(
        "what was kept of the log has version {found}, this program reads up to {VERSION}; use a newer one"
    )]
    FutureVersion {
        /// What stands there.
        found: u32,
    },
}

/// The bytes of a log's progress.
pub(crate) fn encode(progress: &Progress) -> Vec<u8> {
    let mut out = Vec::with_capacity(4_096);
    out.extend(MAGIC);
    out.extend(VERSION.to_le_bytes());
    out.extend(progress.log_id.0);
    out.extend(progress.lies_total.to_le_bytes());
    out.extend(progress.unreadable.to_le_bytes());
    out.push(u8::from(progress.head.is_some()));
    if let Some(head) = &progress.head {
        out.extend(head.tree.size.to_le_bytes());
        out.extend(head.tree.root.0);
        out.extend(head.timestamp_ms.to_le_bytes());
        let kept = Some(&head.bytes).filter(|bytes| bytes.len() <= HEAD_BYTES_MAX);
        put(&mut out, kept.map_or(&[], Vec::as_slice));
    }
    put_count(&mut out, progress.spans.len().min(SPANS_MAX));
    for span in progress.spans.iter().take(SPANS_MAX) {
        out.extend(span.begin.to_le_bytes());
        put(
            &mut out,
            &span.frontier.as_ref().map_or(Vec::new(), format::encode),
        );
        put(&mut out, &format::encode(&span.pending));
        put(&mut out, span.first.as_ref().map_or(&[], |hash| &hash.0));
    }
    put_count(&mut out, progress.lies.len().min(LIES_MAX));
    for lie in progress.lies.iter().take(LIES_MAX) {
        let kind = LieKind::ALL.iter().position(|kind| *kind == lie.kind);
        out.push(kind.and_then(|kind| u8::try_from(kind).ok()).unwrap_or(u8::MAX));
        out.push(u8::from(lie.healed));
        out.extend(lie.leaves[0].to_le_bytes());
        out.extend(lie.leaves[1].to_le_bytes());
        out.extend(lie.at_ms.to_le_bytes());
        put(&mut out, cut(&lie.detail).as_bytes());
    }
    out
}

/// The progress of these bytes, all of which must be its own.
///
/// # Errors
/// [`FormatError`].
pub(crate) fn decode(bytes: &[u8]) -> Result<Progress, FormatError> {
    let mut reader = Reader { all: bytes, at: 0 };
    if reader.array::<8>()? != MAGIC {
        return Err(FormatError::Corrupt { offset: 0 });
    }
    match u32::from_le_bytes(reader.array()?) {
        VERSION => {}
        0 => return Err(reader.corrupt()),
        found => return Err(FormatError::FutureVersion { found }),
    }
    let mut progress = Progress::new(LogId(reader.array()?));
    progress.lies_total = reader.number()?;
    progress.unreadable = reader.number()?;
    if reader.flag()? {
        progress.head = Some(head(&mut reader)?);
    }
    for _ in 0..reader.count(SPANS_MAX)? {
        let span = span(&mut reader)?;
        if progress.spans.last().is_some_and(|last| last.end() > span.begin) {
            return Err(reader.corrupt());
        }
        progress.spans.push(span);
    }
    for _ in 0..reader.count(LIES_MAX)? {
        progress.lies.push(lie(&mut reader)?);
    }
    if reader.at != bytes.len() {
        return Err(reader.corrupt());
    }
    Ok(progress)
}

fn head(reader: &mut Reader<'_>) -> Result<Head, FormatError> {
    Ok(Head {
        tree: Tree {
            size: reader.number()?,
            root: Hash(reader.array()?),
        },
        timestamp_ms: reader.number()?,
        bytes: reader.bytes(HEAD_BYTES_MAX)?.to_vec(),
    })
}

fn span(reader: &mut Reader<'_>) -> Result<Span, FormatError> {
    let begin = reader.number()?;
    let frontier = match reader.bytes(format::ENCODED_BYTES_MAX)? {
        [] => None,
        bytes => Some(range(reader, bytes)?),
    };
    let pending = reader.bytes(format::ENCODED_BYTES_MAX)?;
    let pending = range(reader, pending)?;
    let first = reader.bytes(32)?;
    let span = Span {
        begin,
        frontier,
        pending,
        first: <[u8; 32]>::try_from(first).ok().map(Hash),
    };
    let joins = |frontier: &CompactRange| frontier.begin() == 0 && frontier.end() == span.proved_to();
    let starts = span.proved_to() >= begin && (span.frontier.is_some() || span.proved_to() == begin);
    if starts && span.frontier.as_ref().is_none_or(joins) {
        Ok(span)
    } else {
        Err(reader.corrupt())
    }
}

fn range(reader: &Reader<'_>, bytes: &[u8]) -> Result<CompactRange, FormatError> {
    format::decode(bytes).map_err(|_| reader.corrupt())
}

fn lie(reader: &mut Reader<'_>) -> Result<Lie, FormatError> {
    let [kind] = reader.array()?;
    let kind = LieKind::ALL.get(usize::from(kind)).copied();
    Ok(Lie {
        kind: kind.ok_or(reader.corrupt())?,
        healed: reader.flag()?,
        leaves: [reader.number()?, reader.number()?],
        at_ms: reader.number()?,
        detail: String::from_utf8_lossy(reader.bytes(TEXT_BYTES_MAX)?).into_owned(),
    })
}

/// A text up to its limit, and whole characters.
fn cut(text: &str) -> &str {
    let ends = (0..=TEXT_BYTES_MAX).rev();
    ends.into_iter()
        .find_map(|end| text.get(..end.min(text.len())))
        .unwrap_or_default()
}

fn put(out: &mut Vec<u8>, bytes: &[u8]) {
    put_count(out, bytes.len());
    out.extend(bytes);
}

fn put_count(out: &mut Vec<u8>, count: usize) {
    // All counts here have limits far below 2^32.
    out.extend(u32::try_from(count).unwrap_or(u32::MAX).to_le_bytes());
}

struct Reader<'a> {
    all: &'a [u8],
    at: usize,
}

impl<'a> Reader<'a> {
    fn corrupt(&self) -> FormatError {
        FormatError::Corrupt { offset: self.at }
    }

    fn take(&mut self, length: usize) -> Result<&'a [u8], FormatError> {
        let end = self.at.checked_add(length);
        let taken = end.and_then(|end| self.all.get(self.at..end));
        let taken = taken.ok_or(self.corrupt())?;
        self.at += length;
        Ok(taken)
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], FormatError> {
        let bytes = self.take(N)?;
        bytes.try_into().map_err(|_| self.corrupt())
    }

    fn number(&mut self) -> Result<u64, FormatError> {
        Ok(u64::from_le_bytes(self.array()?))
    }

    fn flag(&mut self) -> Result<bool, FormatError> {
        match self.array()? {
            [0] => Ok(false),
            [1] => Ok(true),
            _ => Err(self.corrupt()),
        }
    }

    fn count(&mut self, limit: usize) -> Result<usize, FormatError> {
        let count = u32::from_le_bytes(self.array()?) as usize;
        if count > limit {
            return Err(self.corrupt());
        }
        Ok(count)
    }

    fn bytes(&mut self, limit: usize) -> Result<&'a [u8], FormatError> {
        let length = self.count(limit)?;
        self.take(length)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn range(begin: u64, leaves: u64) -> CompactRange {
        let mut range = CompactRange::empty(begin).unwrap();
        for leaf in 0..leaves {
            range.push(Hash([leaf as u8; 32])).unwrap();
        }
        range
    }

    fn progress() -> Progress {
        let mut tail = Span::at(700).unwrap();
        tail.frontier = Some(range(0, 700));
        tail.push(&[Hash([1; 32]), Hash([2; 32])]).unwrap();
        Progress {
            log_id: LogId([7; 32]),
            head: Some(Head {
                tree: Tree {
                    size: 702,
                    root: Hash([9; 32]),
                },
                timestamp_ms: 1_790_000_000_000,
                bytes: b"{}".to_vec(),
            }),
            spans: vec![
                Span::at(0).unwrap(),
                Span {
                    begin: 10,
                    frontier: None,
                    pending: range(10, 90),
                    first: Some(Hash([0; 32])),
                },
                tail,
            ],
            lies: vec![Lie {
                kind: LieKind::Issuer,
                leaves: [3, 4],
                at_ms: 5,
                healed: true,
                detail: "\u{fc}".to_owned(),
            }],
            lies_total: 70,
            unreadable: 1,
        }
    }

    #[test]
    fn round_trip() {
        for progress in [progress(), Progress::new(LogId([0; 32]))] {
            assert_eq!(decode(&encode(&progress)).unwrap(), progress);
        }
    }

    #[test]
    fn truncation_and_added_bytes_are_told() {
        let bytes = encode(&progress());
        for length in 0..bytes.len() {
            assert!(decode(&bytes[..length]).is_err(), "{length}");
        }
        assert!(decode(&[&bytes[..], &[0]].concat()).is_err());
        let mut newer = bytes;
        newer[8] = 2;
        assert!(matches!(
            decode(&newer),
            Err(FormatError::FutureVersion { found: 2 })
        ));
    }

    #[test]
    fn spans_that_cannot_be_are_damage() {
        let mut overlapping = progress();
        overlapping.spans.swap(1, 2);
        assert!(decode(&encode(&overlapping)).is_err());
        let mut torn = progress();
        torn.spans[2].pending = range(701, 1);
        assert!(decode(&encode(&torn)).is_err());
        let mut long = progress();
        long.lies[0].detail = "\u{fc}".repeat(TEXT_BYTES_MAX);
        let read = decode(&encode(&long)).unwrap();
        assert_eq!(read.lies[0].detail.len(), TEXT_BYTES_MAX);
    }
}
