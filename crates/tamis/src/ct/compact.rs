//! `tamis ct compact`: fewer, larger segments, copies folded for good.

use anyhow::Context;
use indicatif::{ProgressBar, ProgressStyle};
use serde_json::json;
use tamis_ct_index::compact::Policy;
use tamis_ct_index::{Index, Options};

use crate::Outcome;
use crate::cli::CompactArgs;
use crate::ct::suffixes;
use crate::render::{counted, document, row};

pub(crate) fn run(args: &CompactArgs) -> anyhow::Result<Outcome> {
    let data = &args.data.data;
    // Opening would make an index where there is none.
    crate::ct::open_snapshot(data)?;
    let options = Options {
        public_suffixes: suffixes::read(&args.suffixes)?,
        ..Options::default()
    };
    let index = Index::open(data, options).context("open the index")?;
    index.flush()?;
    let bar =
        ProgressBar::new_spinner().with_style(ProgressStyle::with_template("{spinner} {elapsed} {msg}")?);
    bar.enable_steady_tick(std::time::Duration::from_millis(200));
    bar.set_message("merging");
    let done = index.compact_with(&Policy::everything(), |done| {
        bar.set_message(counted(done.segments, "segment merged", "segments merged"));
    })?;
    bar.finish_and_clear();
    index.close()?;
    let stats = crate::ct::open_snapshot(data)?.stats();
    document(
        args.format.format,
        &row([
            ("merges", json!(done.merges)),
            ("segments_merged", json!(done.segments)),
            ("bytes_before", json!(done.bytes_before)),
            ("bytes_after", json!(done.bytes_after)),
            ("rows_folded", json!(done.rows_folded)),
            ("records_folded", json!(done.records_folded)),
            ("segments", json!(stats.segments)),
        ]),
    )?;
    Ok(Outcome::Success)
}
