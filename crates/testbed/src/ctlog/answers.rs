//! What a log answers, with the faults that are in the content: wrong heads, wrong bytes, less than was
//! asked for. How an answer is carried wrongly is in `serve`.

use std::io::Write as _;

use anyhow::Result;
use base64_simd::STANDARD as BASE64;
use flate2::Compression;
use flate2::write::GzEncoder;
use serde_json::json;
use tamis_ct_log::certificate::{self, ReadOptions, Reading};
use tamis_ct_log::merkle::{Hash, TILE_WIDTH};

use super::faults::Fault;
use super::head::SignedHead;
use super::http::Answer;
use super::list;
use super::log::{SimulatedLog, State, Stored};
use super::options::LogKind;
use super::report::RequestKind;
use super::request::{Asked, Tile, TileOf};
use super::wire::{self, Body, Held};

const JSON: &str = "application/json; charset=utf-8";
const BINARY: &str = "application/octet-stream";

impl SimulatedLog {
    /// Fills the body and says what it is.
    pub(super) fn answer(&self, asked: &Asked, body: &mut Body) -> Result<Answer> {
        let kind = asked.kind();
        match *asked {
            Asked::Sth => {
                self.shown_head(kind)?.push_json(&mut body.bytes);
                Ok(Answer::ok(JSON))
            }
            Asked::Checkpoint => {
                let head = self.shown_head(kind)?;
                let cosignatures = self.options.cosignatures;
                head.push_checkpoint(&self.origin(), &self.key.id(), cosignatures, &mut body.bytes);
                Ok(Answer::ok("text/plain; charset=utf-8").header("Cache-Control", "no-store"))
            }
            Asked::Entries { start, end } => Ok(self.entries(start, end, body)),
            Asked::Consistency { first, second } => Ok(self.consistency(first, second, body)),
            Asked::Proof { hash, tree_size } => Ok(self.proof(&hash, tree_size, body)),
            Asked::EntryAndProof { index, tree_size } => Ok(self.entry_and_proof(index, tree_size, body)),
            Asked::Roots => Ok(self.roots(body)),
            Asked::Tile(tile) => self.tile(kind, tile, body),
            Asked::Issuer(fingerprint) => Ok(self.issuer(&fingerprint, body)),
            Asked::Metadata => {
                let metadata = list::log_entry(self);
                body.bytes.extend_from_slice(metadata.to_string().as_bytes());
                Ok(Answer::ok(JSON))
            }
            Asked::Malformed(_) => Ok(refuse(400, "a parameter is missing or no number", body)),
            Asked::Unknown => Ok(refuse(404, "there is nothing here", body)),
        }
    }

    /// The head, or the wrong one that a fault has in its place.
    fn shown_head(&self, kind: RequestKind) -> Result<SignedHead> {
        let wrong = self.faults.show(kind, |fault| match fault {
            Fault::Lagging { .. } | Fault::WrongKey | Fault::Fork { .. } => Some(fault.clone()),
            _ => None,
        });
        match wrong {
            Some(Fault::Lagging { leaves }) => self.earlier_head(leaves),
            Some(Fault::WrongKey) => self.forged_head(),
            Some(Fault::Fork { extra }) => self.fork_head(extra),
            _ => self.head(),
        }
    }

    /// How many entries are served: all, or fewer where heads lead.
    fn visible(&self, kind: RequestKind, state: &State, last_asked: u64) -> u64 {
        let size = state.size();
        let hidden = self.faults.show(kind, |fault| match fault {
            Fault::EntriesBehind { leaves } if last_asked >= size.saturating_sub(*leaves) => Some(*leaves),
            _ => None,
        });
        size.saturating_sub(hidden.unwrap_or(0))
    }

    fn entries(&self, start: u64, end: u64, body: &mut Body) -> Answer {
        let kind = RequestKind::Entries;
        let state = self.read();
        let visible = self.visible(kind, &state, end);
        let asked = (end - start).saturating_add(1);
        let refused = self.faults.show(kind, |fault| match fault {
            Fault::RefuseLongRange { entries, status } if asked > *entries => Some(*status),
            _ => None,
        });
        if let Some(status) = refused {
            return refuse(status, "the range is too long", body);
        }
        if start >= visible {
            return refuse(400, "the tree does not reach so far", body);
        }
        let end = end.min(visible - 1);
        let count = (end - start) + 1;
        let capped = self.faults.show(kind, |fault| match fault {
            Fault::PageCap { entries, aligned } if page(start, count, *entries, *aligned) < count => {
                Some((*entries, *aligned))
            }
            _ => None,
        });
        let (cap, aligned) = capped.unwrap_or((self.options.page, self.options.page_aligned));
        let count = page(start, count, cap, aligned);
        let held = self.held_range(kind, &state, start, count);
        wire::push_page(held.into_iter(), body);
        Answer::ok(JSON)
    }

    /// The entries as they are sent, so with their bits flipped.
    fn held_range<'a>(&self, kind: RequestKind, state: &'a State, start: u64, count: u64) -> Vec<Held<'a>> {
        let flipped = self.faults.show_all(kind, |fault| match fault {
            Fault::BitFlip { index } if (start..start + count).contains(index) => Some(*index),
            _ => None,
        });
        let stored: &[Stored] = &state.entries[start as usize..(start + count) as usize];
        let held = stored.iter().zip(start..).map(|(stored, index)| Held {
            flipped: flipped.contains(&index),
            ..self.held(stored, index)
        });
        held.collect()
    }

    fn consistency(&self, first: u64, second: u64, body: &mut Body) -> Answer {
        let state = self.read();
        let Some(tree) = state.tree_of_size(second) else {
            return refuse(400, "the tree is not so large", body);
        };
        let proof = tree.consistency(first, second);
        answer_json(&json!({ "consistency": base64(&proof) }), body)
    }

    fn proof(&self, hash: &Hash, tree_size: u64, body: &mut Body) -> Answer {
        let state = self.read();
        let Some(tree) = state.tree_of_size(tree_size) else {
            return refuse(400, "the tree is not so large", body);
        };
        let Some(index) = (0..tree_size).find(|index| tree.leaf(*index).as_ref() == Some(hash)) else {
            return refuse(404, "no leaf of the tree has this hash", body);
        };
        let path = tree.inclusion(index, tree_size);
        answer_json(&json!({ "leaf_index": index, "audit_path": base64(&path) }), body)
    }

    fn entry_and_proof(&self, index: u64, tree_size: u64, body: &mut Body) -> Answer {
        let state = self.read();
        if index >= tree_size || tree_size > state.size() {
            return refuse(400, "the tree is not so large", body);
        }
        let held = self.held_range(RequestKind::EntryAndProof, &state, index, 1);
        let (mut leaf, mut extra) = (Vec::new(), Vec::new());
        for held in &held {
            wire::push_leaf_base64(held, &mut leaf);
            wire::push_extra_base64(held.submission, &mut extra);
        }
        let path = base64(&state.tree.inclusion(index, tree_size));
        let [leaf, extra] = [leaf, extra].map(|text| String::from_utf8_lossy(&text).into_owned());
        answer_json(
            &json!({ "leaf_input": leaf, "extra_data": extra, "audit_path": path }),
            body,
        )
    }

    fn roots(&self, body: &mut Body) -> Answer {
        let roots = self.pool().chains.roots();
        let roots: Vec<_> = roots.iter().map(|der| BASE64.encode_to_string(der)).collect();
        answer_json(&json!({ "certificates": roots }), body)
    }

    fn tile(&self, kind: RequestKind, tile: Tile, body: &mut Body) -> Result<Answer> {
        let state = self.read();
        if !self.has_tile(kind, &state, tile) {
            return Ok(refuse(404, "the log has no such tile", body));
        }
        let first = tile.index * u64::from(TILE_WIDTH);
        let width = u64::from(tile.width);
        match tile.of {
            TileOf::Hashes(level) => {
                let hashes = state.tree.tile(level, tile.index, tile.width).unwrap_or_default();
                hashes
                    .iter()
                    .for_each(|hash| body.bytes.extend_from_slice(&hash.0));
                let bad = self.faults.show(kind, |fault| match fault {
                    Fault::BadHashTile { level: bad, index } if (*bad, *index) == (level, tile.index) => {
                        Some(())
                    }
                    _ => None,
                });
                if bad.is_some()
                    && let Some(byte) = body.bytes.first_mut()
                {
                    *byte ^= 1;
                }
            }
            TileOf::Entries => {
                let mut held = self.held_range(kind, &state, first, width);
                self.misplace(kind, tile, &mut held);
                held.iter()
                    .for_each(|held| wire::push_tile_leaf(held, &mut body.bytes));
            }
            TileOf::Names => {
                let held = self.held_range(kind, &state, first, width);
                push_names(&held, &mut body.bytes)?;
                return Ok(Answer::ok("application/jsonl; charset=utf-8").header("Content-Encoding", "gzip"));
            }
        }
        Ok(Answer::ok(BINARY))
    }

    /// Entries elsewhere than where they belong.
    fn misplace(&self, kind: RequestKind, tile: Tile, held: &mut [Held<'_>]) {
        let reordered = |fault: &Fault| match fault {
            Fault::ReorderedDataTile { index } if *index == tile.index && tile.width > 1 => Some(()),
            _ => None,
        };
        if self.faults.show(kind, reordered).is_some() {
            held.swap(0, 1);
        }
        let wrong_index = |fault: &Fault| match fault {
            Fault::WrongLeafIndex { index } if *index == tile.index => Some(()),
            _ => None,
        };
        if self.faults.show(kind, wrong_index).is_some() {
            for held in held {
                held.leaf_index = held.leaf_index.map(|index| index + 1);
            }
        }
    }

    fn has_tile(&self, kind: RequestKind, state: &State, tile: Tile) -> bool {
        let hashes = tile
            .index
            .saturating_mul(TILE_WIDTH.into())
            .saturating_add(tile.width.into());
        let shift = u32::from(tile.level()) * 8;
        let last_leaf = hashes.saturating_mul(1 << shift).saturating_sub(1);
        let visible = self.visible(kind, state, last_leaf) >> shift;
        if visible < hashes {
            return false;
        }
        if !tile.is_partial() {
            return true;
        }
        let full_exists = visible >= (tile.index + 1).saturating_mul(TILE_WIDTH.into());
        let missing = self.faults.show(kind, |fault| match fault {
            Fault::PartialsMissing => Some(()),
            Fault::PartialsDeleted if full_exists => Some(()),
            _ => None,
        });
        missing.is_none() && state.has_partial(tile.level(), tile.index, tile.width)
    }

    fn issuer(&self, fingerprint: &[u8; 32], body: &mut Body) -> Answer {
        let kind = RequestKind::Issuer;
        let missing = self
            .faults
            .show(kind, |fault| matches!(fault, Fault::MissingIssuer).then_some(()));
        let known = self.pool().chains.issuer(fingerprint);
        let Some(der) = known.filter(|_| missing.is_none()) else {
            return refuse(404, "no such issuer", body);
        };
        body.bytes.extend_from_slice(&der);
        let wrong = self
            .faults
            .show(kind, |fault| matches!(fault, Fault::WrongIssuer).then_some(()));
        if wrong.is_some()
            && let Some(byte) = body.bytes.last_mut()
        {
            *byte ^= 1;
        }
        Answer::ok("application/pkix-cert")
    }

    /// Whether its answers may be compressed when the reader takes that.
    pub(super) fn compresses(&self) -> bool {
        self.options.gzip
    }

    /// Whether it serves issuers and `log.v3.json`.
    pub(super) fn is_tiled(&self) -> bool {
        self.options.kind == LogKind::Static
    }
}

/// How many of `count` entries from `start` on go into one page.
fn page(start: u64, count: u64, cap: u64, aligned: bool) -> u64 {
    let cap = cap.max(1);
    if count <= cap && !aligned {
        return count;
    }
    // As Trillian does: up to the next multiple, so that what follows can be asked for page by page.
    let room = if aligned { cap - start % cap } else { cap };
    count.min(room)
}

fn answer_json(value: &serde_json::Value, body: &mut Body) -> Answer {
    body.bytes.extend_from_slice(value.to_string().as_bytes());
    Answer::ok(JSON)
}

pub(super) fn refuse(status: u16, why: &str, body: &mut Body) -> Answer {
    body.clear();
    let text = json!({ "error_message": why, "success": false }).to_string();
    body.bytes.extend_from_slice(text.as_bytes());
    Answer::status(status, JSON)
}

fn base64(hashes: &[Hash]) -> Vec<String> {
    hashes.iter().map(Hash::to_string).collect()
}

/// A names tile as Sunlight writes them: an object a line, compressed.
fn push_names(held: &[Held<'_>], out: &mut Vec<u8>) -> Result<()> {
    let mut encoder = GzEncoder::new(out, Compression::fast());
    let (options, mut reading) = (ReadOptions::default(), Reading::new());
    for held in held {
        let mut object = serde_json::Map::new();
        object.insert("Timestamp".to_owned(), held.timestamp_ms.into());
        // What Sunlight cannot read it leaves out too.
        if certificate::read(held.submission.certificate(), None, &options, &mut reading).is_ok() {
            let mut subject = serde_json::Map::new();
            if let Some(name) = reading.common_names().next() {
                subject.insert("CommonName".to_owned(), name.into());
            }
            if let Some(organisation) = reading.subject_organisation() {
                subject.insert("Organization".to_owned(), json!([organisation]));
            }
            if !subject.is_empty() {
                object.insert("Subject".to_owned(), subject.into());
            }
        }
        let is_ip = |name: &&str| name.parse::<std::net::IpAddr>().is_ok();
        let (ips, dns): (Vec<_>, Vec<_>) = held.submission.names().partition(is_ip);
        for (key, names) in [("DNS", dns), ("IP", ips)] {
            if !names.is_empty() {
                object.insert(key.to_owned(), json!(names));
            }
        }
        serde_json::to_writer(&mut encoder, &object)?;
        encoder.write_all(b"\n")?;
    }
    encoder.finish()?;
    Ok(())
}
