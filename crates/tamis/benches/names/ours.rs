//! Tamis's own way from pages to flushed segments, on one thread beside the flusher, timed by stage.

use std::path::Path;
use std::time::Duration;

use tamis_ct_index::batch::LogRange;
use tamis_ct_index::{Batch, Index, Options, Outcome};
use tamis_ct_log::certificate::{Hashes, IdentityKey, ReadOptions};
use tamis_ct_log::input::{RawEntry, Scratch};
use tamis_ct_log::{Input, Reading};

use crate::clock::{Others, Stage};
use crate::feed::Page;
use tamis_engine::Observer;

/// Input bytes between two commits, as `tamis ct import` groups files.
const COMMIT_INPUT_BYTES: u64 = 8 << 20;
/// One chunk in so many is decoded again with parts left out, to tell what each part costs.
const CHUNKS_PER_SAMPLE: u64 = 8;

/// Where the time went.
#[derive(Default)]
pub(crate) struct Stages {
    pub(crate) framing: Stage,
    pub(crate) decode: Stage,
    pub(crate) append: Stage,
    pub(crate) commit: Stage,
    /// Processor time of the flusher's thread.
    pub(crate) flush: Stage,
    parts: Parts,
}

/// The sampled chunks, decoded ever more completely.
#[derive(Default)]
struct Parts {
    base64: Stage,
    names: Stage,
    hashes: Stage,
    batch: Stage,
}

/// How much of an entry's decoding is done.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Depth {
    Base64,
    Names,
    Hashes,
    Batch,
}

impl Stages {
    pub(crate) fn rows(&self) -> [(&'static str, Stage); 8] {
        let parts = &self.parts;
        let all = parts.batch.cpu.as_secs_f64().max(f64::MIN_POSITIVE);
        let part = |stage: Stage, before: Stage| {
            let share = (stage.cpu.as_secs_f64() - before.cpu.as_secs_f64()).max(0.0) / all;
            Stage {
                cpu: self.decode.cpu.mul_f64(share),
                wall: self.decode.wall.mul_f64(share),
            }
        };
        [
            ("framing", self.framing),
            ("base64, leaf structures", part(parts.base64, Stage::default())),
            ("read: walk and names", part(parts.names, parts.base64)),
            ("hashes: fingerprint, issuance", part(parts.hashes, parts.names)),
            ("batch encode", part(parts.batch, parts.hashes)),
            ("append: judge, log frame, run build", self.append),
            ("commit: write, fdatasync, run merges", self.commit),
            ("flush: merge, encode, zstd, write", self.flush),
        ]
    }
}

pub(crate) struct Pipeline {
    pub(crate) index: Index,
    pub(crate) stages: Stages,
    pub(crate) outcome: Outcome,
    others: Others,
    decoder: Decoder,
    bytes_uncommitted: u64,
    chunks: u64,
}

#[derive(Default)]
struct Decoder {
    identity_key: IdentityKey,
    scratch: Scratch,
    reading: Reading,
    observer: Observer,
}

pub(crate) fn options(flush_rows: usize) -> Options {
    Options {
        flush_rows,
        // Time passes while pages are generated; what is timed must not depend on it.
        commit_interval: Duration::from_secs(3_600),
        // Merges are measured apart.
        compaction: None,
        ..Options::default()
    }
}

impl Pipeline {
    pub(crate) fn create(dir: &Path, flush_rows: usize) -> anyhow::Result<Self> {
        let others = Others::since_now();
        let index = Index::open(dir, options(flush_rows))?;
        for log in 1..=2 {
            index.register_log(&format!("log-{log}.example"))?;
        }
        let decoder = Decoder {
            identity_key: IdentityKey(index.identity_key()),
            ..Decoder::default()
        };
        Ok(Self {
            index,
            stages: Stages::default(),
            outcome: Outcome::default(),
            others,
            decoder,
            bytes_uncommitted: 0,
            chunks: 0,
        })
    }

    /// Takes a chunk of pages.
    pub(crate) fn chunk(&mut self, pages: &[Page]) -> anyhow::Result<()> {
        let Self { stages, decoder, .. } = self;
        let inputs = stages.framing.time(|| {
            let inputs = pages.iter().map(|page| Input::open(&page.bytes));
            inputs.collect::<Result<Vec<_>, _>>()
        })?;
        let framed: Vec<Vec<RawEntry<'_>>> = stages.framing.time(|| {
            let framed = inputs.iter().map(|input| input.entries().collect());
            framed.collect::<Result<_, _>>()
        })?;
        let batch = stages.decode.time(|| decoder.run(pages, &framed, Depth::Batch))?;
        if self.chunks.is_multiple_of(CHUNKS_PER_SAMPLE) {
            decoder.sample(pages, &framed, &mut stages.parts)?;
        }
        self.chunks += 1;
        self.outcome += stages.append.time(|| self.index.append(&batch))?;
        self.bytes_uncommitted += pages.iter().map(|page| page.bytes.len() as u64).sum::<u64>();
        if self.bytes_uncommitted >= COMMIT_INPUT_BYTES {
            self.bytes_uncommitted = 0;
            stages.commit.time(|| self.index.commit())?;
        }
        Ok(())
    }

    /// Waits for the last segment.
    pub(crate) fn finish(&mut self) -> anyhow::Result<()> {
        self.stages.commit.time(|| self.index.commit())?;
        self.index.flush()?;
        self.stages.flush = Stage {
            cpu: self.others.cpu(),
            wall: Duration::ZERO,
        };
        Ok(())
    }
}

impl Decoder {
    /// Decodes once more with parts left out. Never inlined, so that a profile can leave it out.
    #[inline(never)]
    fn sample(
        &mut self,
        pages: &[Page],
        framed: &[Vec<RawEntry<'_>>],
        parts: &mut Parts,
    ) -> anyhow::Result<()> {
        for (depth, stage) in [
            (Depth::Base64, &mut parts.base64),
            (Depth::Names, &mut parts.names),
            (Depth::Hashes, &mut parts.hashes),
            (Depth::Batch, &mut parts.batch),
        ] {
            stage.time(|| self.run(pages, framed, depth))?;
        }
        Ok(())
    }

    fn run(&mut self, pages: &[Page], framed: &[Vec<RawEntry<'_>>], depth: Depth) -> anyhow::Result<Batch> {
        let options = ReadOptions {
            hashes: if depth == Depth::Names {
                Hashes::Neither
            } else {
                Hashes::Both
            },
            identity_key: self.identity_key,
            ..ReadOptions::default()
        };
        let mut batch = Batch::new();
        for (page, raws) in pages.iter().zip(framed) {
            for raw in raws {
                let entry = raw.decode(&mut self.scratch)?;
                if depth == Depth::Base64 {
                    std::hint::black_box(&entry);
                    continue;
                }
                entry.read(&options, &mut self.reading)?;
                if depth == Depth::Batch {
                    let position = (page.log, page.first + raw.ordinal());
                    self.observer.push(&self.reading, Some(position), 0, &mut batch);
                } else {
                    std::hint::black_box(&self.reading);
                }
            }
            batch.cover(LogRange {
                log: page.log,
                start: page.first,
                end: page.first + page.entries,
            });
        }
        Ok(batch)
    }
}

/// The pages as one batch, for a bench of what takes batches.
pub(crate) fn batch(pages: &[Page]) -> anyhow::Result<Batch> {
    let inputs = pages.iter().map(|page| Input::open(&page.bytes));
    let inputs = inputs.collect::<Result<Vec<_>, _>>()?;
    let framed = inputs.iter().map(|input| input.entries().collect());
    let framed = framed.collect::<Result<Vec<_>, _>>()?;
    Decoder::default().run(pages, &framed, Depth::Batch)
}
