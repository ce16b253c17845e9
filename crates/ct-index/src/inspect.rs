//! Telling what a file of an index is, region by region, without its folder.

use std::path::Path;

use serde::Serialize;
use tamis_durable::frames::FrameReader;
use tamis_durable::sealed;

use crate::coding::Reader;
use crate::commit::CommitHead;
use crate::manifest::Manifest;
use crate::recover::WAL_FORMAT;
use crate::segment::block::BlockAt;
use crate::segment::layout::{self, FRAME_BYTES};
use crate::segment::{BlockCache, Segment};
use crate::{Error, Result, dictionary, manifest};

/// What a file is.
#[derive(Debug, Clone, Serialize)]
pub struct Inspection {
    /// Kind of the file.
    pub kind: &'static str,
    /// Size in bytes.
    pub bytes: u64,
    /// Facts about the file as a whole.
    pub facts: Vec<(String, String)>,
    /// Its parts, in order.
    pub parts: Vec<Part>,
    /// What is damaged.
    pub faults: Vec<String>,
}

/// One region or frame of a file.
#[derive(Debug, Clone, Serialize)]
pub struct Part {
    /// What it holds.
    pub part: String,
    /// Where it starts, if it lies in one place.
    pub offset: Option<u64>,
    /// Its size in bytes.
    pub bytes: u64,
    /// Rows, records or entries.
    pub rows: u64,
}

/// Recognises a file of an index by its content; `None` when it is none of ours.
pub fn inspect(path: &Path) -> Result<Option<Inspection>> {
    let mut head = [0u8; 8];
    let mut file = std::fs::File::open(path).map_err(Error::io("open", path))?;
    let length = file
        .metadata()
        .map_err(Error::io("read the size of", path))?
        .len();
    let read = std::io::Read::read(&mut file, &mut head).map_err(Error::io("read", path))?;
    drop(file);
    let empty = |kind| Inspection {
        kind,
        bytes: length,
        facts: Vec::new(),
        parts: Vec::new(),
        faults: Vec::new(),
    };
    match head {
        _ if read < 8 => Ok(None),
        layout::MAGIC => segment(path, empty("segment")).map(Some),
        crate::commit::MAGIC => wal(path, empty("write-ahead log")).map(Some),
        manifest::MAGIC => manifest_file(path, empty("manifest")).map(Some),
        dictionary::MAGIC => frames(
            path,
            dictionary::MAGIC,
            dictionary::VERSION,
            empty("issuer dictionary"),
        )
        .map(Some),
        crate::segment::check::MAGIC => Ok(Some(empty("rebuilt segment meta"))),
        _ => Ok(None),
    }
}

fn segment(path: &Path, mut told: Inspection) -> Result<Inspection> {
    let file = crate::segment::block::BlockFile::open(path)?;
    let id = layout::read_header(&file.raw(0, FRAME_BYTES)?).map_or(0, |(_, id)| id);
    let opened = Segment::open(path, id, &BlockCache::new(1 << 20))?;
    told.facts.push(("segment".to_owned(), id.to_string()));
    told.facts
        .push(("format version".to_owned(), layout::VERSION.to_string()));
    if let Some(meta) = &opened.meta {
        told.facts
            .push(("first key".to_owned(), crate::key::display(&meta.first_key)));
        told.facts
            .push(("last key".to_owned(), crate::key::display(&meta.last_key)));
        let range = meta
            .seqs
            .map_or("none".to_owned(), |(low, high)| format!("{low} to {high}"));
        told.facts.push(("seq".to_owned(), range));
    }
    let domains = crate::segment::check::domains(&opened).map_or(0, |domains| domains.len());
    told.facts
        .push(("registrable domains".to_owned(), domains.to_string()));
    for table in &opened.footer.tables {
        let part = format!("{} ({} blocks)", table.kind.name(), table.blocks);
        told.parts.push(Part {
            part,
            offset: None,
            bytes: table.bytes,
            rows: table.rows,
        });
        let BlockAt { offset, bytes } = table.top;
        let part = format!("{} index top", table.kind.name());
        told.parts.push(Part {
            part,
            offset: Some(offset),
            bytes: u64::from(bytes),
            rows: table.blocks,
        });
    }
    for (kind, at) in &opened.footer.singles {
        told.parts.push(Part {
            part: kind.name().to_owned(),
            offset: Some(at.offset),
            bytes: u64::from(at.bytes),
            rows: 1,
        });
    }
    told.faults.extend(opened.faults.iter().map(ToString::to_string));
    Ok(told)
}

fn wal(path: &Path, mut told: Inspection) -> Result<Inspection> {
    let bytes = std::fs::read(path).map_err(Error::io("read", path))?;
    let reader = FrameReader::new(path, &bytes, WAL_FORMAT)?;
    told.facts
        .push(("number".to_owned(), reader.number().to_string()));
    for frame in reader {
        match frame {
            Ok(frame) => match CommitHead::read(&mut Reader::new(frame.payload)) {
                Ok(head) => told.parts.push(Part {
                    part: format!(
                        "commit from seq {}, {} new issuers",
                        head.first_seq,
                        head.new_issuers.len()
                    ),
                    offset: Some(frame.offset),
                    bytes: frame.payload.len() as u64,
                    rows: head.records,
                }),
                Err(malformed) => told
                    .faults
                    .push(Error::malformed(path, frame.offset)(malformed).to_string()),
            },
            Err(damage) => told.faults.push(damage.to_error(path).to_string()),
        }
    }
    Ok(told)
}

fn frames(path: &Path, magic: [u8; 8], version: u32, mut told: Inspection) -> Result<Inspection> {
    let bytes = std::fs::read(path).map_err(Error::io("read", path))?;
    let reader = FrameReader::new(path, &bytes, sealed::Format { magic, version })?;
    for frame in reader {
        match frame {
            Ok(frame) => {
                let mut payload = Reader::new(frame.payload);
                let (first, rows) = (payload.varint().unwrap_or(0), payload.varint().unwrap_or(0));
                let bytes = frame.payload.len() as u64;
                told.parts.push(Part {
                    part: format!("issuers from {first}"),
                    offset: Some(frame.offset),
                    bytes,
                    rows,
                });
            }
            Err(damage) => told.faults.push(damage.to_error(path).to_string()),
        }
    }
    Ok(told)
}

fn manifest_file(path: &Path, mut told: Inspection) -> Result<Inspection> {
    let manifest = Manifest::read_copy(path)?;
    let facts = [
        ("generation", manifest.generation),
        ("segments", manifest.segments.len() as u64),
        ("logs", manifest.logs.len() as u64),
        ("issuers", u64::from(manifest.issuers)),
        ("next seq", manifest.next_seq),
        ("first write-ahead log", manifest.first_wal),
        ("issuances", manifest.totals.issuances),
        ("certificates", manifest.totals.certificates),
        ("name rows", manifest.totals.name_rows),
    ];
    told.facts = facts
        .map(|(name, value)| (name.to_owned(), value.to_string()))
        .to_vec();
    for entry in &manifest.segments {
        let part = format!("{}/{}", entry.month, manifest::file_name(entry.id));
        told.parts.push(Part {
            part,
            offset: None,
            bytes: entry.bytes,
            rows: entry.rows,
        });
    }
    Ok(told)
}
