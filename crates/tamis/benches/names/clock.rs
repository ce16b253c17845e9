//! Processor time of threads and of the process, and where it went.

use std::time::{Duration, Instant};

use rustix::time::{ClockId, clock_gettime};

/// Processor time of this thread.
pub(crate) fn thread_cpu() -> Duration {
    read(ClockId::ThreadCPUTime)
}

/// Processor time of all threads that this process has or had.
pub(crate) fn process_cpu() -> Duration {
    read(ClockId::ProcessCPUTime)
}

fn read(clock: ClockId) -> Duration {
    let time = clock_gettime(clock);
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}

/// What one stage of the work took on this thread.
#[derive(Default, Clone, Copy)]
pub(crate) struct Stage {
    pub(crate) cpu: Duration,
    pub(crate) wall: Duration,
}

impl Stage {
    pub(crate) fn time<T>(&mut self, work: impl FnOnce() -> T) -> T {
        let (cpu, wall) = (thread_cpu(), Instant::now());
        let done = work();
        self.cpu += thread_cpu().saturating_sub(cpu);
        self.wall += wall.elapsed();
        done
    }
}

/// Processor time that other threads of the process spend between two moments.
pub(crate) struct Others {
    process: Duration,
    thread: Duration,
}

impl Others {
    pub(crate) fn since_now() -> Self {
        Self {
            process: process_cpu(),
            thread: thread_cpu(),
        }
    }

    pub(crate) fn cpu(&self) -> Duration {
        let process = process_cpu().saturating_sub(self.process);
        process.saturating_sub(thread_cpu().saturating_sub(self.thread))
    }
}
