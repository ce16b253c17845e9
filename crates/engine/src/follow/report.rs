//! How logs stand, for another process than the one that follows them.

use std::path::Path;

use tamis_ct_index::{Options, Snapshot};

use super::progress_format;
use super::status::{LogStatus, Status};
use super::world::now_ms;

/// A status that was not written anew for so long is of a process that is gone.
const FRESH_MS: u64 = 10_000;

/// How the logs of a folder stand.
#[derive(Debug, Clone, PartialEq)]
pub struct Report {
    /// Whether somebody follows them now.
    pub is_followed: bool,
    /// Of a process that follows them, as of a second ago; otherwise what is kept.
    pub status: Status,
}

/// Tells how the logs of the index in `data` stand.
///
/// # Errors
/// The folder holds no index, or it cannot be read.
pub fn report(data: &Path) -> tamis_ct_index::Result<Report> {
    let written = Status::read(data);
    if let Some(status) = &written
        && now_ms().saturating_sub(status.written_ms) < FRESH_MS
        && Path::new("/proc").join(status.pid.to_string()).exists()
    {
        return Ok(Report {
            is_followed: true,
            status: status.clone(),
        });
    }
    let snapshot = Snapshot::open(data, &Options::default())?;
    let mut status = written.unwrap_or(Status {
        written_ms: 0,
        pid: 0,
        paused: None,
        list: None,
        static_only: 0,
        logs: Vec::new(),
    });
    status.paused = None;
    status.static_only = snapshot.known_apart();
    for log in snapshot.logs().iter().filter(|log| !log.progress.is_empty()) {
        let Ok(progress) = progress_format::decode(&log.progress) else {
            continue;
        };
        let id = progress.log_id.to_string();
        let place = match status.logs.iter().position(|log| log.log_id == id) {
            Some(place) => place,
            None => {
                status.logs.push(LogStatus::unknown(&log.name, &log.name, id));
                status.logs.len() - 1
            }
        };
        if let Some(told) = status.logs.get_mut(place) {
            told.take(&progress);
            "not_followed".clone_into(&mut told.status);
            told.rate = 0.0;
            told.growth = 0.0;
            told.eta_s = None;
            told.not_converging = false;
        }
    }
    Ok(Report {
        is_followed: false,
        status,
    })
}
