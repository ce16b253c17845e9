//! What the process takes of the machine.

use std::fmt;
use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};

/// Processor time of this thread.
pub(crate) fn thread_cpu() -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}

/// Resident memory in KiB, as the kernel tells it.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Memory {
    anonymous: u64,
    file: u64,
    peak: u64,
}

impl Memory {
    pub(crate) fn now() -> Self {
        let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
        let kib = |name: &str| {
            let line = status.lines().find_map(|line| line.strip_prefix(name));
            line.and_then(|line| line.split_whitespace().next()?.parse().ok())
                .unwrap_or(0)
        };
        Self {
            anonymous: kib("RssAnon:"),
            file: kib("RssFile:"),
            peak: kib("VmHWM:"),
        }
    }
}

impl fmt::Display for Memory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} MiB anonymous, {} MiB of files, peak {} MiB",
            self.anonymous >> 10,
            self.file >> 10,
            self.peak >> 10
        )
    }
}

/// Bytes that this process had read from disk so far.
pub(crate) fn disk_bytes() -> u64 {
    let io = std::fs::read_to_string("/proc/self/io").unwrap_or_default();
    let line = io.lines().find_map(|line| line.strip_prefix("read_bytes: "));
    line.and_then(|bytes| bytes.parse().ok()).unwrap_or(0)
}
