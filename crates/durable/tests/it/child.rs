//! This test binary as its own child: a process that a test may kill.

use std::io::{BufRead, BufReader, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

use tamis_durable::frames::FrameWriter;
use tamis_durable::{FolderLock, publish};

const ROLE: &str = "TAMIS_DURABLE_TEST_ROLE";
const DIR: &str = "TAMIS_DURABLE_TEST_DIR";
/// What a child writes before a line that is meant for its parent.
const MARK: &str = "to the parent: ";

/// Not a test of its own: in a child, the role; elsewhere only that no role leaked into the environment.
#[test]
fn child_entry() {
    let Ok(role) = std::env::var(ROLE) else {
        assert!(std::env::var_os(DIR).is_none());
        return;
    };
    let dir = PathBuf::from(std::env::var_os(DIR).expect("a child is given a folder"));
    match role.as_str() {
        "publish" => publish_for_ever(&dir),
        "append" => append_for_ever(&dir),
        "lock" => hold_lock(&dir),
        "fill" => super::faults::fill_disk(&dir),
        role => assert!(role.is_empty(), "unknown role {role}"),
    }
}

/// The command that runs `role` in `dir`.
pub(crate) fn arguments(
    role: &str,
    dir: &Path,
) -> (PathBuf, Vec<&'static str>, [(&'static str, PathBuf); 2]) {
    let program = std::env::current_exe().expect("the test binary knows where it is");
    let options = vec!["--exact", "child::child_entry", "--nocapture", "--test-threads=1"];
    (
        program,
        options,
        [(ROLE, PathBuf::from(role)), (DIR, dir.to_owned())],
    )
}

/// A child, killed and reaped when dropped.
pub(crate) struct Running {
    child: Child,
    lines: BufReader<ChildStdout>,
}

impl Running {
    pub(crate) fn start(role: &str, dir: &Path) -> Self {
        let (program, options, variables) = arguments(role, dir);
        let mut child = Command::new(program)
            .args(options)
            .envs(variables)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("start the test binary as a child");
        let lines = BufReader::new(child.stdout.take().expect("stdout is piped"));
        Self { child, lines }
    }

    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// The next line the child wrote for its parent.
    pub(crate) fn line(&mut self) -> String {
        self.next_line().expect("the child still talks")
    }

    fn next_line(&mut self) -> Option<String> {
        let mut line = String::new();
        while self.lines.read_line(&mut line).expect("read from the child") > 0 {
            if let (true, Some((_, text))) = (line.ends_with('\n'), line.split_once(MARK)) {
                return Some(text.trim_end().to_owned());
            }
            line.clear();
        }
        None
    }

    /// SIGKILL; gives the lines written and not read yet.
    pub(crate) fn kill(mut self) -> Vec<String> {
        self.stop();
        std::iter::from_fn(|| self.next_line()).collect()
    }

    fn stop(&mut self) {
        // It may have ended by itself.
        let _ = self.child.kill();
        self.child.wait().expect("reap the child");
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.stop();
    }
}

/// Numbers that differ enough, the same in every run.
pub(crate) struct Numbers(pub(crate) u64);

impl Numbers {
    pub(crate) fn below(&mut self, end: u64) -> u64 {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % end
    }

    /// Burns up to `end` microseconds, so that a kill hits anywhere in what the child does.
    pub(crate) fn spin_us(&mut self, end: u64) {
        let until = Instant::now() + Duration::from_micros(self.below(end));
        while Instant::now() < until {
            std::hint::spin_loop();
        }
    }
}

fn tell(text: impl std::fmt::Display) {
    println!("{MARK}{text}");
    std::io::stdout().flush().expect("the parent reads");
}

/// The file content of version `number`: whole exactly if [`version_of`] can read it.
pub(crate) fn version(number: u64) -> Vec<u8> {
    let mut content = format!("{number:016}").into_bytes();
    content = content.repeat(1 + (number as usize % 7) * 3_000);
    content.extend_from_slice(b"end");
    content
}

pub(crate) fn version_of(content: &[u8]) -> u64 {
    let number = content
        .get(..16)
        .and_then(|digits| std::str::from_utf8(digits).ok());
    let number = number
        .and_then(|digits| digits.parse().ok())
        .expect("a number starts the file");
    assert!(
        content == version(number),
        "version {number} is not whole: {} bytes",
        content.len()
    );
    number
}

fn publish_for_ever(dir: &Path) {
    for number in 1.. {
        publish(&dir.join("file"), &version(number)).expect("publish");
        tell(number);
    }
}

pub(crate) const FORMAT: tamis_durable::sealed::Format = tamis_durable::sealed::Format {
    magic: *b"CHILDWAL",
    version: 1,
};

fn append_for_ever(dir: &Path) {
    let mut writer = FrameWriter::create(&dir.join("log"), FORMAT, 9).expect("create");
    for number in 1.. {
        writer.append(&version(number)).expect("append");
        writer.commit().expect("commit");
        tell(number);
    }
}

fn hold_lock(dir: &Path) {
    let _lock = FolderLock::acquire(dir).expect("acquire");
    tell("locked");
    // Until the parent closes the pipe, or kills.
    let mut rest = Vec::new();
    let _ = std::io::stdin().read_to_end(&mut rest);
}
