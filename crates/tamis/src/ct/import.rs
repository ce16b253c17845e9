//! `tamis ct import`: files in, an index out.
//!
//! Files are taken in groups. A group is read and framed in parallel, decoded in parallel in chunks
//! that span small files, and appended in order while the next group is being decoded.
//!
//! # Invariants
//! A file is acknowledged only after everything in it is durable. One bad entry, certificate or file
//! never stops or drops the rest.

use std::sync::mpsc::sync_channel;

use anyhow::Context;
use indicatif::{ProgressBar, ProgressStyle};
use rayon::prelude::*;
use tamis_ct_index::batch::LogRange;
use tamis_ct_index::stats::Stats;
use tamis_ct_index::{Batch, Index, Options, Snapshot};
use tamis_ct_log::certificate::{IdentityKey, ReadOptions};
use tamis_ct_log::input::{Kind, RawEntry, Scratch};
use tamis_ct_log::{Deviation, EntryError, Input, Reading};
use tamis_engine::Observer;

use crate::Outcome;
use crate::cli::{Format, ImportArgs};
use crate::ct::files::{self, InputFile};
use crate::ct::numbering::{FileNumbering, Numbering};
use crate::ct::summary::{FileReport, Summary};
use crate::ct::{folder, suffixes};
use crate::render::counted;

/// Files of one group, in bytes and in number.
const GROUP_BYTES: u64 = 8 << 20;
const GROUP_FILES: usize = 512;
/// Entries of one chunk: one batch, one frame of the log.
const CHUNK_ENTRIES: usize = 1_024;
/// Certificates with too many names between two warnings about them.
const TRUNCATED_PER_WARNING: u64 = 100;
/// Entries without a number would be found under a wrong one.
const LOST: &str =
    "a file before it is not whole, so these entries cannot be counted; import them with their own --start";

pub(crate) fn run(args: &ImportArgs) -> anyhow::Result<Outcome> {
    let (files, errors) = files::expand(&args.paths);
    let options = Options {
        flush_rows: args.flush_rows as usize,
        public_suffixes: suffixes::read(&args.suffixes)?,
        ..Options::default()
    };
    let mut summary = Summary::default();
    for error in errors {
        summary.reject_path(&crate::talk::told(&error));
    }
    let data = &args.data.data;
    let stats = if files.is_empty() {
        // A path that was mistyped makes no index.
        Snapshot::open(data, &Options::default()).map(|snapshot| snapshot.stats())
    } else {
        folder::check_writable(data)?;
        import(args, options, &files, &mut summary)?;
        Snapshot::open(data, &Options::default()).map(|snapshot| snapshot.stats())
    };
    let stats = match stats {
        Err(tamis_ct_index::Error::NoIndex { .. }) if files.is_empty() => Stats::default(),
        stats => stats?,
    };
    match summary.print(args.format, &stats) {
        Err(error) if crate::is_broken_pipe(&error) => {}
        printed => printed?,
    }
    if summary.is_empty() {
        tell_nothing(args, files.len() as u64);
        return Ok(Outcome::Nothing);
    }
    Ok(if summary.is_clean() {
        Outcome::Success
    } else {
        Outcome::Nothing
    })
}

/// Says where nothing was found, and what would be.
fn tell_nothing(args: &ImportArgs, files: u64) {
    let paths = files::listed(&args.paths);
    let hint = format!("read are {}", files::KINDS);
    if files == 0 {
        talk!("nothing to import was found: {paths} holds no file; {hint}");
    } else {
        let count = counted(files, "file", "files");
        talk!(
            "nothing to import was found in {paths}: {count} passed over; {hint}; `tamis ct inspect FILE` tells what a file is"
        );
    }
}

fn import(
    args: &ImportArgs,
    options: Options,
    files: &[InputFile],
    summary: &mut Summary,
) -> anyhow::Result<()> {
    let index = Index::open(&args.data.data, options).context("open the index")?;
    crate::ct::warn_of_faults(&index.snapshot());
    let bar = progress(files.iter().map(|file| file.bytes).sum());
    let mut importer = Importer {
        numbering: Numbering::new(&index, args.log.as_deref(), args.start)?,
        args,
        index: &index,
        bar: &bar,
        now: crate::when::now(),
    };
    importer.run(files, summary)?;
    bar.finish_and_clear();
    Ok(index.close()?)
}

fn progress(bytes: u64) -> ProgressBar {
    let style =
        ProgressStyle::with_template("{bar:30} {bytes}/{total_bytes} {bytes_per_sec} {eta} left  {msg}");
    let bar = ProgressBar::new(bytes);
    match style {
        Ok(style) => bar.with_style(style),
        Err(_) => bar,
    }
}

/// Why a file as a whole is not used.
pub(crate) enum Refusal {
    /// It is none of ours, as folders hold some.
    Foreign(String),
    /// It cannot be read, or is damaged.
    Fault(String),
}

impl Refusal {
    fn of(error: tamis_ct_log::Error) -> Self {
        match error {
            tamis_ct_log::Error::NotRecognised { .. } => Self::Foreign(error.to_string()),
            error => Self::Fault(crate::talk::told(&anyhow::Error::new(error))),
        }
    }
}

/// Decoded entries on their way to the index.
struct Chunk {
    batch: Batch,
    /// What became of the entries, by file of the group.
    reports: Vec<FileReport>,
}

/// A decoded group: chunks in order, and what each file turned out to be.
struct Group {
    chunks: Vec<Chunk>,
    files: Vec<FileReport>,
}

struct Importer<'i> {
    args: &'i ImportArgs,
    index: &'i Index,
    bar: &'i ProgressBar,
    numbering: Numbering,
    now: i64,
}

impl Importer<'_> {
    fn run(&mut self, files: &[InputFile], summary: &mut Summary) -> anyhow::Result<()> {
        let (index, bar, format) = (self.index, self.bar, self.args.format);
        std::thread::scope(|scope| {
            // One group is appended while the next is decoded; a third would only hold memory.
            let (sender, receiver) = sync_channel::<Group>(1);
            let writer = scope.spawn(move || {
                let mut written = Summary::default();
                for group in receiver {
                    write(index, group, format, bar, &mut written)?;
                }
                anyhow::Ok(written)
            });
            let mut decoded = Ok(());
            for group in groups(files) {
                match self.decode(group) {
                    Ok(group) => {
                        // A writer that stopped says why when it is joined.
                        if sender.send(group).is_err() {
                            break;
                        }
                    }
                    Err(error) => {
                        decoded = Err(error);
                        break;
                    }
                }
            }
            drop(sender);
            let written = writer
                .join()
                .map_err(|_| anyhow::anyhow!("the writing thread panicked; this is a bug"))?;
            summary.add(written?);
            decoded
        })
    }

    fn decode(&mut self, files: &[InputFile]) -> anyhow::Result<Group> {
        let contents: Vec<anyhow::Result<Vec<u8>>> = files.par_iter().map(InputFile::read).collect();
        let inputs: Vec<Result<Input<'_>, Refusal>> = contents
            .par_iter()
            .map(|content| match content {
                Ok(bytes) => Input::open(bytes).map_err(Refusal::of),
                Err(error) => Err(Refusal::Fault(crate::talk::told(error))),
            })
            .collect();
        let framed: Vec<Vec<Result<RawEntry<'_>, EntryError>>> = inputs
            .par_iter()
            .map(|input| {
                input
                    .as_ref()
                    .map_or_else(|_| Vec::new(), |input| input.entries().collect())
            })
            .collect();
        let mut reports: Vec<FileReport> = files.iter().map(FileReport::new).collect();
        let mut entries = Vec::new();
        for (number, ((input, raws), report)) in inputs.iter().zip(framed).zip(&mut reports).enumerate() {
            let input = match input {
                Ok(input) => input,
                Err(refusal) => {
                    // It may be a page that came as an error message.
                    self.numbering.lose();
                    report.refuse(refusal);
                    continue;
                }
            };
            let lost = self.numbering.is_lost(self.args.start);
            let numbers = match input.kind() {
                // A tile tells where its entries are.
                Kind::Entries if lost => {
                    report.refuse(&Refusal::Fault(LOST.to_owned()));
                    continue;
                }
                Kind::Entries | Kind::DataTile => self
                    .numbering
                    .file(raws.len() as u64, raws.iter().all(Result::is_ok)),
                // Certificates that are no entries have no place in a log.
                _ => FileNumbering::default(),
            };
            for raw in raws {
                match raw {
                    Ok(raw) => entries.push((number, numbers, self.own_log(&raw)?, raw)),
                    Err(error) => report.reject(&error),
                }
            }
        }
        let options = ReadOptions {
            names_max: self.args.names_max as usize,
            identity_key: IdentityKey(self.index.identity_key()),
            ..ReadOptions::default()
        };
        let now = self.now;
        let chunks = entries
            .par_chunks(CHUNK_ENTRIES)
            .map_init(Worker::default, |worker, part| {
                decode_chunk(worker, part, files, &options, now)
            })
            .collect();
        Ok(Group {
            chunks,
            files: reports,
        })
    }

    /// The log that an input names beside an entry, unless `--log` decides.
    fn own_log(&mut self, raw: &RawEntry<'_>) -> anyhow::Result<Option<u16>> {
        match raw.log_url() {
            Some(url) if !self.numbering.is_fixed() => self.numbering.log_of(self.index, &url).map(Some),
            _ => Ok(None),
        }
    }
}

/// Splits the files into groups that fit into memory.
fn groups(files: &[InputFile]) -> impl Iterator<Item = &[InputFile]> {
    let mut rest = files;
    std::iter::from_fn(move || {
        let (mut bytes, mut count) = (0, 0);
        for file in rest.iter().take(GROUP_FILES) {
            if count > 0 && bytes + file.bytes > GROUP_BYTES {
                break;
            }
            bytes += file.bytes;
            count += 1;
        }
        let (group, left) = rest.split_at_checked(count)?;
        rest = left;
        (count > 0).then_some(group)
    })
}

type NumberedEntry<'a> = (usize, FileNumbering, Option<u16>, RawEntry<'a>);

/// Buffers of one decoding thread.
#[derive(Default)]
struct Worker {
    scratch: Scratch,
    reading: Reading,
    observer: Observer,
}

fn decode_chunk(
    worker: &mut Worker,
    entries: &[NumberedEntry<'_>],
    files: &[InputFile],
    options: &ReadOptions,
    now: i64,
) -> Chunk {
    let Worker {
        scratch,
        reading,
        observer,
    } = worker;
    let mut batch = Batch::with_capacity(entries.len());
    let mut reports: Vec<FileReport> = Vec::new();
    let mut covered: Option<LogRange> = None;
    for (file, numbers, own_log, raw) in entries {
        if reports.last().is_none_or(|report| report.number != *file) {
            reports.extend(files.get(*file).map(|input| FileReport::part(*file, input)));
        }
        let Some(report) = reports.last_mut() else {
            continue;
        };
        let read = raw.decode(scratch).and_then(|entry| entry.read(options, reading));
        let index = if read.is_ok() { reading.log_index } else { None };
        let position = numbers.position(*own_log, index, raw.ordinal());
        if let (Some((log, index)), Some(_)) = (position, numbers.log) {
            cover(&mut batch, &mut covered, log, index);
        }
        match read {
            Ok(()) => {
                report.count(reading);
                observer.push(reading, position, now, &mut batch);
            }
            Err(error) => report.reject(&error),
        }
    }
    if let Some(range) = covered {
        batch.cover(range);
    }
    Chunk { batch, reports }
}

/// Widens the range that the batch covers, or starts another.
fn cover(batch: &mut Batch, covered: &mut Option<LogRange>, log: u16, index: u64) {
    match covered {
        Some(range) if range.log == log && range.end == index => range.end += 1,
        _ => {
            if let Some(range) = covered.replace(LogRange {
                log,
                start: index,
                end: index + 1,
            }) {
                batch.cover(range);
            }
        }
    }
}

/// Appends a group, makes it durable, and only then acknowledges its files.
fn write(
    index: &Index,
    group: Group,
    format: Format,
    bar: &ProgressBar,
    summary: &mut Summary,
) -> anyhow::Result<()> {
    let Group { chunks, mut files } = group;
    for chunk in chunks {
        summary.outcome += index.append(&chunk.batch)?;
        for report in chunk.reports {
            if let Some(file) = files.get_mut(report.number) {
                file.add(report);
            }
        }
    }
    index.commit()?;
    for file in files {
        bar.inc(file.bytes);
        let before = summary.truncated / TRUNCATED_PER_WARNING;
        let first = summary.truncated == 0;
        summary.file(&file, format)?;
        if summary.truncated > 0 && (first || summary.truncated / TRUNCATED_PER_WARNING > before) {
            let reason = Deviation::NamesTruncated.as_str();
            let count = counted(summary.truncated, "certificate has", "certificates have");
            bar.suspend(|| {
                talk!(
                    "warning: {count} more names than are indexed ({reason}); --names-max raises the limit"
                );
            });
        }
    }
    bar.set_message(counted(summary.outcome.new, "new issuance", "new issuances"));
    Ok(())
}
