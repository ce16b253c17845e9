//! Lines in, records out: read, worked on by all cores, and written in order.
//!
//! # Concurrency
//! A thread reads batches of chunks, the caller has all cores work on a batch, a thread writes. Channels
//! of [`BATCHES_MAX`] batches lie between them.
//!
//! # Limits
//! A chunk is about [`CHUNK_BYTES`]; a line over [`LINE_BYTES_MAX`] is handed on as its beginning and its
//! length, and never lies in memory as a whole.

use std::fs::File;
use std::io::{Read, Write};
use std::path::Path;

use anyhow::Context;
use crossbeam_channel::{Receiver, Sender, bounded};
use rayon::prelude::*;

use crate::Outcome;

const CHUNK_BYTES: usize = 256 << 10;
const BATCHES_MAX: usize = 2;
/// No URL is that long.
const LINE_BYTES_MAX: usize = 1 << 20;
/// What is shown of a line that long.
const LINE_SHOWN_BYTES: usize = 4 << 10;

/// A line as it is handed on.
#[derive(Debug, Clone, Copy)]
pub(super) enum Line<'a> {
    /// All of it, without its line feed.
    Whole(&'a [u8]),
    /// The beginning of a line over [`LINE_BYTES_MAX`], and how long it is.
    TooLong(&'a [u8], usize),
}

/// Makes records of lines; one a core.
pub(super) trait Work: Send {
    /// Appends a record. Says whether the URL was taken.
    fn line(&mut self, line: Line<'_>, out: &mut Vec<u8>) -> bool;
}

enum Chunk {
    Lines(Vec<u8>),
    TooLong(Vec<u8>, usize),
}

/// What became of the lines.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Counts {
    pub(super) lines: u64,
    pub(super) rejected: u64,
}

impl Counts {
    pub(super) fn outcome(self) -> Outcome {
        if self.rejected == 0 {
            Outcome::Success
        } else {
            Outcome::Nothing
        }
    }

    fn count(&mut self, taken: bool) {
        self.lines += 1;
        self.rejected += u64::from(!taken);
    }

    fn add(&mut self, other: Self) {
        self.lines += other.lines;
        self.rejected += other.rejected;
    }
}

/// Works on all lines of a file, or of stdin for `-`.
pub(super) fn each<W: Work>(file: &Path, work: impl Fn() -> W + Sync) -> anyhow::Result<Counts> {
    let input: Box<dyn Read + Send> = if file == Path::new("-") {
        Box::new(std::io::stdin())
    } else {
        Box::new(File::open(file).with_context(|| format!("open {}", file.display()))?)
    };
    std::thread::scope(|scope| {
        let (read_to, batches) = bounded(BATCHES_MAX);
        let (write_to, records) = bounded::<Vec<Vec<u8>>>(BATCHES_MAX);
        let reader = scope.spawn(move || read(input, &read_to));
        let writer = scope.spawn(move || write(&records));
        let counts = work_on(&batches, &write_to, &work);
        drop((batches, write_to));
        let written = writer
            .join()
            .unwrap_or_else(|_| anyhow::bail!("the writer panicked"));
        let read = reader
            .join()
            .unwrap_or_else(|_| anyhow::bail!("the reader panicked"));
        written?;
        read.with_context(|| format!("read {}", file.display()))?;
        Ok(counts)
    })
}

fn work_on<W: Work>(
    batches: &Receiver<Vec<Chunk>>,
    write_to: &Sender<Vec<Vec<u8>>>,
    work: &(impl Fn() -> W + Sync),
) -> Counts {
    let mut counts = Counts::default();
    for batch in batches {
        let done: Vec<(Vec<u8>, Counts)> = batch
            .par_iter()
            .map_init(work, |work, chunk| chunk_done(work, chunk))
            .collect();
        done.iter().for_each(|(_, of_chunk)| counts.add(*of_chunk));
        let records = done.into_iter().map(|(records, _)| records).collect();
        // The writer is gone: it says why.
        if write_to.send(records).is_err() {
            break;
        }
    }
    counts
}

fn chunk_done(work: &mut impl Work, chunk: &Chunk) -> (Vec<u8>, Counts) {
    let (mut out, mut counts) = (Vec::new(), Counts::default());
    match chunk {
        Chunk::Lines(bytes) => {
            out.reserve(bytes.len() * 3);
            for line in bytes.split(|&byte| byte == b'\n').filter(|line| !line.is_empty()) {
                counts.count(work.line(Line::Whole(line), &mut out));
            }
        }
        Chunk::TooLong(shown, bytes) => counts.count(work.line(Line::TooLong(shown, *bytes), &mut out)),
    }
    (out, counts)
}

fn read(mut input: impl Read, batches: &Sender<Vec<Chunk>>) -> anyhow::Result<()> {
    let chunks = rayon::current_num_threads() * 2;
    let mut rest = Vec::new();
    let mut ended = false;
    while !ended {
        let mut batch = Vec::with_capacity(chunks);
        while batch.len() < chunks && !ended {
            let mut chunk = std::mem::take(&mut rest);
            ended = fill(&mut input, &mut chunk)?;
            match memchr::memrchr(b'\n', &chunk) {
                Some(last) => rest = chunk.split_off(last + 1),
                None if !ended && chunk.len() > LINE_BYTES_MAX => {
                    let (bytes, behind, end) = skip(&mut input, chunk.len())?;
                    (rest, ended) = (behind, end);
                    chunk.truncate(LINE_SHOWN_BYTES);
                    batch.push(Chunk::TooLong(chunk, bytes));
                    continue;
                }
                None if !ended => {
                    rest = chunk;
                    continue;
                }
                None => {}
            }
            batch.push(Chunk::Lines(chunk));
        }
        if ended && !rest.is_empty() {
            batch.push(Chunk::Lines(std::mem::take(&mut rest)));
        }
        // Whoever worked on them is gone: it says why.
        if batches.send(batch).is_err() {
            break;
        }
    }
    Ok(())
}

/// Reads a chunk more. Says whether that was the end.
fn fill(input: &mut impl Read, chunk: &mut Vec<u8>) -> std::io::Result<bool> {
    let wanted = CHUNK_BYTES as u64;
    Ok((input.take(wanted).read_to_end(chunk)? as u64) < wanted)
}

/// Skips the rest of a line. Returns the length of the whole line, what was read behind it, and whether
/// the input ended.
fn skip(input: &mut impl Read, mut bytes: usize) -> std::io::Result<(usize, Vec<u8>, bool)> {
    let mut chunk = Vec::with_capacity(CHUNK_BYTES);
    loop {
        chunk.clear();
        let ended = fill(input, &mut chunk)?;
        if let Some(at) = memchr::memchr(b'\n', &chunk) {
            return Ok((bytes + at, chunk.split_off(at + 1), ended));
        }
        bytes += chunk.len();
        if ended {
            return Ok((bytes, Vec::new(), true));
        }
    }
}

fn write(records: &Receiver<Vec<Vec<u8>>>) -> anyhow::Result<()> {
    let mut out = std::io::stdout().lock();
    for batch in records {
        for bytes in batch {
            out.write_all(&bytes).context("write to stdout")?;
        }
    }
    out.flush().context("write to stdout")
}
