//! The tables that the bench prints.

use tamis_ct_index::Index;
use tamis_ct_index::compact::Policy;

use crate::clock::{Others, Stage};
use crate::feed::{Framing, Truth};
use crate::original::{FLUSH_RECORDS, Original};
use crate::ours::Pipeline;
use crate::total;

pub(crate) fn ours(framing: Framing, flush_rows: usize, pipeline: &Pipeline, truth: &Truth) {
    println!(
        "\n== Tamis, {}, segments of {} rows: {} entries, {} names, {:.2} GB",
        framing.name(),
        grouped(flush_rows as u64),
        grouped(truth.entries),
        grouped(truth.names),
        truth.bytes as f64 / 1e9,
    );
    stages(&pipeline.stages.rows(), truth.entries);
    let stats = pipeline.index.snapshot().stats();
    let (outcome, segments) = (pipeline.outcome, stats.segments);
    println!(
        "   {} rows of {} issuances ({} and {} expected); {} copies, {} duplicates; {} rows in {segments} segments",
        grouped(outcome.rows),
        grouped(outcome.new),
        grouped(truth.rows),
        grouped(truth.issuances),
        grouped(outcome.copies),
        grouped(outcome.duplicates),
        grouped(stats.segment_rows),
    );
}

pub(crate) fn original(framing: Framing, original: &Original, truth: &Truth) {
    println!(
        "\n== original layout, {}, segments of {} records",
        framing.name(),
        grouped(FLUSH_RECORDS as u64)
    );
    stages(&original.stages.rows(), truth.entries);
    println!(
        "   {} records of {} certificates ({} expected, so {} lost to the Bloom filter); {} refused by x509-parser; {} segments",
        grouped(original.records),
        grouped(truth.certificates),
        grouped(truth.records),
        grouped(truth.records.saturating_sub(original.records)),
        grouped(original.refused),
        original.segments.len(),
    );
}

fn stages(rows: &[(&'static str, Stage)], entries: u64) {
    println!(
        "   {:42} {:>11} {:>7} {:>11}",
        "", "CPU µs/entry", "share", "wall µs"
    );
    let all = total(rows);
    let each = |time: std::time::Duration| time.as_secs_f64() * 1e6 / entries as f64;
    for (name, stage) in rows {
        println!(
            "   {name:42} {:12.3} {:6.1}% {:11.3}",
            each(stage.cpu),
            100.0 * stage.cpu.as_secs_f64() / all.cpu.as_secs_f64(),
            each(stage.wall)
        );
    }
    println!(
        "   {:42} {:12.3} {:6.1}% {:11.3}   {} entries/s per core",
        "all",
        each(all.cpu),
        100.0,
        each(all.wall),
        grouped((entries as f64 / all.cpu.as_secs_f64()) as u64)
    );
}

pub(crate) fn ratio(flush_rows: usize, ours: &Pipeline, original: &Original, truth: &Truth) {
    let per_core = |stages: &[(&'static str, Stage)]| truth.entries as f64 / total(stages).cpu.as_secs_f64();
    let (tamis, theirs) = (per_core(&ours.stages.rows()), per_core(&original.stages.rows()));
    println!(
        "\n-- entries/s per core, segments of {} rows: Tamis {}, original {}, ratio {:.2}",
        grouped(flush_rows as u64),
        grouped(tamis as u64),
        grouped(theirs as u64),
        tamis / theirs
    );
}

pub(crate) fn sizes(flush_rows: usize, ours: &Pipeline, original: &Original) {
    let stats = ours.index.snapshot().stats();
    let bytes = |name: &str| {
        let region = stats.regions.iter().find(|region| region.region == name);
        region.map_or(0, |region| region.bytes)
    };
    let (names, rows) = (bytes("names"), stats.segment_rows.max(1) as f64);
    let domains = bytes("domains") + bytes("meta");
    let issuances = stats.totals.issuances.max(1) as f64;
    let rest = stats.segment_bytes.saturating_sub(names + domains);
    println!("-- bytes, segments of {} rows", grouped(flush_rows as u64));
    println!(
        "   Tamis: {:.1} a name row (names {:.1}, domains and meta {:.1}), {:.1} an issuance for the rest, {:.1} an issuance in all",
        (names + domains) as f64 / rows,
        names as f64 / rows,
        domains as f64 / rows,
        rest as f64 / issuances,
        stats.segment_bytes as f64 / issuances
    );
    let part = |region: &tamis_ct_index::stats::Region| {
        format!("{} {:.2}", region.region, region.bytes as f64 / issuances)
    };
    let parts: Vec<String> = stats.regions.iter().map(part).collect();
    println!("   Tamis, an issuance by region: {}", parts.join(", "));
    let [rows, index, filter] = original.segments.iter().fold([0; 3], |sum, segment| {
        let bytes = segment.bytes();
        std::array::from_fn(|at| sum[at] + bytes[at])
    });
    let records = original.records.max(1) as f64;
    println!(
        "   original: {:.1} a record (row {:.1}, FST {:.1}, filter {:.1}), {:.1} an issuance; ratio in all {:.2}",
        (rows + index + filter) as f64 / records,
        rows as f64 / records,
        index as f64 / records,
        filter as f64 / records,
        (rows + index + filter) as f64 / issuances,
        (rows + index + filter) as f64 / stats.segment_bytes.max(1) as f64
    );
}

/// Merges all segments and tells what that took; the peer has no such thing.
pub(crate) fn merge(index: &Index, entries: u64) -> anyhow::Result<()> {
    let (mut here, others) = (Stage::default(), Others::since_now());
    let done = here.time(|| index.compact(&Policy::everything()))?;
    let cpu = here.cpu + others.cpu();
    println!(
        "-- after merging all: {} segments in {} merges, {} rows and {} records folded, {:.3} CPU µs an entry, {:.0} MB to {:.0} MB",
        done.segments,
        done.merges,
        grouped(done.rows_folded),
        grouped(done.records_folded),
        cpu.as_secs_f64() * 1e6 / entries as f64,
        done.bytes_before as f64 / 1e6,
        done.bytes_after as f64 / 1e6,
    );
    Ok(())
}

/// 1,234,567.
pub(crate) fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::with_capacity(digits.len() + digits.len() / 3);
    for (at, digit) in digits.char_indices() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}
