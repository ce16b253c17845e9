//! What the kernel knows of this process and its files.

use std::fs::File;
use std::path::Path;

use anyhow::Context;
use rustix::time::{ClockId, clock_gettime};

/// Bytes that disks gave this process, page faults included and the page cache not.
pub(crate) fn bytes_from_disk() -> anyhow::Result<u64> {
    number("/proc/self/io", "read_bytes:")
}

/// Processor time of all threads of this process, in microseconds.
pub(crate) fn cpu_us() -> f64 {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    time.tv_sec as f64 * 1e6 + time.tv_nsec as f64 / 1e3
}

/// Resident memory in MB: the process's own, and pages of files.
pub(crate) fn resident_mb() -> anyhow::Result<(f64, f64)> {
    let mb = |name| Ok::<_, anyhow::Error>(number("/proc/self/status", name)? as f64 * 1024.0 / 1e6);
    Ok((mb("RssAnon:")?, mb("RssFile:")?))
}

fn number(path: &str, name: &str) -> anyhow::Result<u64> {
    let text = std::fs::read_to_string(path)?;
    let line = text.lines().find_map(|line| line.strip_prefix(name));
    let word = line.and_then(|line| line.split_whitespace().next());
    Ok(word.with_context(|| format!("no {name} in {path}"))?.parse()?)
}

/// Drops what the page cache holds of every file below a folder. Pages that are mapped stay.
pub(crate) fn drop_cached(dir: &Path) -> anyhow::Result<()> {
    for entry in std::fs::read_dir(dir)? {
        let entry = entry?;
        if entry.file_type()?.is_dir() {
            drop_cached(&entry.path())?;
        } else {
            tamis_durable::drop_cached(&File::open(entry.path())?);
        }
    }
    Ok(())
}
