//! `tamis ct stats`: what the index holds and what it costs.

use serde_json::{Map, Value, json};
use tamis_ct_index::stats::Stats;
use tamis_ct_index::{FilterFiles, WindowFiles};
use tamis_ct_log::Deviation;

use crate::Outcome;
use crate::cli::{Format, StatsArgs};
use crate::ct::open_snapshot;
use crate::render::{Row, counted, document, row};

/// Questions that a measurement asks each filter window.
const QUESTIONS: u64 = 100_000;

pub(crate) fn run(args: &StatsArgs) -> anyhow::Result<Outcome> {
    let snapshot = open_snapshot(&args.data.data)?;
    let stats = snapshot.stats();
    let found = snapshot.filter_files(if args.measure { QUESTIONS } else { 0 });
    let totals = &stats.totals;
    let names_bytes = region_bytes(&stats, &["names", "domains", "meta"]);
    let issuance_bytes = stats.segment_bytes - names_bytes;
    let mut facts: Row = row([
        ("issuances", json!(totals.issuances)),
        ("certificates", json!(totals.certificates)),
        ("precertificates", json!(totals.precertificates)),
        ("name_rows", json!(totals.name_rows)),
        ("log_positions", json!(totals.positions)),
        ("static_only_issuances", json!(snapshot.known_apart())),
        ("issuers", json!(stats.issuers)),
        ("segments", json!(stats.segments)),
        ("segment_bytes", json!(stats.segment_bytes)),
        ("rows_not_in_segments", json!(stats.memtable_rows)),
        ("bytes_per_name_row", per(names_bytes, stats.segment_rows)),
        ("bytes_per_issuance", per(issuance_bytes, stats.segment_records)),
    ]);
    let deviations: Map<String, Value> = Deviation::ALL
        .iter()
        .filter_map(|&deviation| {
            let count = totals
                .deviations
                .get(deviation as usize)
                .copied()
                .filter(|&count| count > 0)?;
            Some((deviation.as_str().to_owned(), json!(count)))
        })
        .collect();
    facts.insert("deviations".to_owned(), Value::Object(deviations));
    facts.insert("logs".to_owned(), logs(&stats, args.format.format));
    facts.insert("regions".to_owned(), regions(&stats, args.format.format));
    facts.insert("costs".to_owned(), costs(&stats, args.format.format));
    facts.insert("tiers".to_owned(), tiers(&stats, args.format.format));
    facts.insert("filters".to_owned(), filters(&found, args.format.format));
    facts.insert("faults".to_owned(), json!(stats.faults));
    document(args.format.format, &facts)?;
    Ok(Outcome::Success)
}

/// Bytes for each of `count`, with a digit behind the point.
fn per(bytes: u64, count: u64) -> Value {
    if count == 0 {
        Value::Null
    } else {
        json!((bytes as f64 / count as f64 * 10.0).round() / 10.0)
    }
}

fn region_bytes(stats: &Stats, wanted: &[&str]) -> u64 {
    let regions = stats.regions.iter();
    regions
        .filter(|region| wanted.contains(&region.region))
        .map(|region| region.bytes)
        .sum()
}

/// What the regions of segments are for.
const PURPOSES: [(&str, &[&str]); 5] = [
    ("names", &["names", "organizations"]),
    ("records", &["records"]),
    ("look-ups", &["fingerprints", "serials", "issuances"]),
    ("indexes", &["index chunk", "index top", "position bounds"]),
    ("filters", &["domains", "meta", "issuance filter"]),
];

/// What each purpose costs a name row and an issuance; together they are all bytes of segments.
fn costs(stats: &Stats, format: Format) -> Value {
    let told = PURPOSES.iter().map(|(purpose, regions)| {
        let bytes = region_bytes(stats, regions);
        let (row, issuance) = (per(bytes, stats.segment_rows), per(bytes, stats.segment_records));
        if format == Format::Table {
            let [row, issuance] = [row, issuance].map(|bytes| bytes.as_f64().unwrap_or(0.0));
            return json!(format!(
                "{purpose:16} {bytes:>14} bytes {row:>8} a name row {issuance:>8} an issuance"
            ));
        }
        json!({ "purpose": purpose, "bytes": bytes, "bytes_per_name_row": row, "bytes_per_issuance": issuance })
    });
    Value::Array(told.collect())
}

/// How many merges the segments lie behind.
fn tiers(stats: &Stats, format: Format) -> Value {
    let told = stats.tiers.iter().map(|tier| {
        if format == Format::Table {
            return json!(format!(
                "{:>2} {:9} {:>6} segments {:>6} runs {:>14} bytes",
                tier.tier, tier.kind, tier.segments, tier.runs, tier.bytes
            ));
        }
        json!(tier)
    });
    Value::Array(told.collect())
}

/// Logs and which of their leaves were read.
fn logs(stats: &Stats, format: Format) -> Value {
    let told = stats.logs.iter().map(|log| {
        if format == Format::Table {
            let ranges: Vec<String> = log
                .ranges
                .iter()
                .map(|[start, end]| format!("{start}..{end}"))
                .collect();
            // A log whose entries came without their places has no range.
            return if ranges.is_empty() {
                json!(log.name)
            } else {
                json!(format!("{} ({})", log.name, ranges.join(", ")))
            };
        }
        json!({ "number": log.number, "name": log.name, "ranges": log.ranges })
    });
    Value::Array(told.collect())
}

/// What each region of the segments costs.
fn regions(stats: &Stats, format: Format) -> Value {
    let told = stats.regions.iter().map(|region| {
        if format == Format::Table {
            return json!(format!(
                "{:16} {:>12} rows {:>14} bytes",
                region.region, region.rows, region.bytes
            ));
        }
        json!({ "region": region.region, "rows": region.rows, "bytes": region.bytes })
    });
    Value::Array(told.collect())
}

/// The filter windows: how full they are, and how often they are of no use.
fn filters(found: &FilterFiles, format: Format) -> Value {
    if format != Format::Table {
        return json!({
            "state": found.state.name(),
            "reason": found.reason,
            "bytes": found.bytes,
            "segments_covered": found.segments_covered,
            "segments_missing": found.segments_missing,
            "windows": found.windows.iter().map(window).collect::<Vec<_>>(),
        });
    }
    let mut lines = vec![format!(
        "{}: {} bytes, {} covered, {} missing",
        found.state.name(),
        found.bytes,
        counted(found.segments_covered, "segment", "segments"),
        found.segments_missing
    )];
    lines.extend(found.reason.clone());
    for WindowFiles {
        stats,
        measured_rate,
        fault,
    } in &found.windows
    {
        let measured = measured_rate.map_or(String::new(), |rate| format!(", measured {}", percent(rate)));
        lines.push(format!(
            "{:10} {:10} {:>3} files {:>12} bytes {:>11} of {:>11} keys {:>5.0} % full, maybe for nothing {}{measured}",
            stats.window,
            stats.status,
            stats.files,
            stats.bytes,
            stats.keys,
            stats.planned,
            stats.saturation() * 100.0,
            percent(stats.expected_rate),
        ));
        lines.extend(fault.clone());
    }
    json!(lines)
}

fn percent(rate: f64) -> String {
    format!("{:.3} %", rate * 100.0)
}

fn window(found: &WindowFiles) -> Value {
    let stats = &found.stats;
    json!({
        "window": stats.window,
        "status": stats.status,
        "files": stats.files,
        "bytes": stats.bytes,
        "keys": stats.keys,
        "keys_planned": stats.planned,
        "saturation": stats.saturation(),
        "expected_rate": stats.expected_rate,
        "measured_rate": found.measured_rate,
        "fault": found.fault,
    })
}
