//! `tamis ct backup`: a copy of the index, while another process writes it.

use indicatif::{ProgressBar, ProgressStyle};
use serde_json::json;

use crate::Outcome;
use crate::cli::BackupArgs;
use crate::ct::folder;
use crate::render::{document, row};

pub(crate) fn run(args: &BackupArgs) -> anyhow::Result<Outcome> {
    folder::check_readable(&args.data.data)?;
    let bar = ProgressBar::new_spinner().with_style(ProgressStyle::with_template("{spinner} {msg}")?);
    let done = tamis_ct_index::backup(&args.data.data, &args.dir, |path| {
        bar.set_message(format!("copy {}", path.display()));
        bar.tick();
    });
    bar.finish_and_clear();
    let done = done?;
    document(
        args.format.format,
        &row([
            ("folder", json!(args.dir.display().to_string())),
            ("files", json!(done.files)),
            ("bytes", json!(done.bytes)),
            ("linked", json!(done.linked)),
            ("rounds", json!(done.rounds)),
        ]),
    )?;
    Ok(Outcome::Success)
}
