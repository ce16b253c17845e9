//! Disks that fail: injected errors, and disks that are full.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use tamis_durable::frames::{FrameReader, FrameWriter};
use tamis_durable::sealed::Format;
use tamis_durable::{Blame, Disk, Error, NewFile, publish};
use tempfile::tempdir;

use crate::publish::names;

const FORMAT: Format = Format {
    magic: *b"FAULTEST",
    version: 1,
};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Call {
    Write,
    SyncData,
    SyncAll,
}

/// Fails the `number`th call of a kind, from 1, and works before and after.
struct FailingDisk {
    call: Call,
    number: u32,
    seen: AtomicU32,
    /// What a failed call does to the file first: a failed fsync can have persisted, a write can be partial.
    half: bool,
}

impl FailingDisk {
    fn new(call: Call, number: u32) -> Arc<Self> {
        Arc::new(Self {
            call,
            number,
            seen: AtomicU32::new(0),
            half: true,
        })
    }

    fn fails(&self, call: Call) -> bool {
        call == self.call && self.seen.fetch_add(1, Ordering::Relaxed) + 1 == self.number
    }

    fn error() -> io::Error {
        io::Error::from_raw_os_error(5)
    }
}

impl Disk for FailingDisk {
    fn write_all_at(&self, file: &File, bytes: &[u8], offset: u64) -> io::Result<()> {
        use std::os::unix::fs::FileExt;
        if self.fails(Call::Write) {
            let partial = if self.half { bytes.len() / 2 } else { 0 };
            file.write_all_at(&bytes[..partial], offset)?;
            return Err(Self::error());
        }
        file.write_all_at(bytes, offset)
    }

    fn sync_data(&self, file: &File) -> io::Result<()> {
        if self.fails(Call::SyncData) {
            Err(Self::error())
        } else {
            file.sync_data()
        }
    }

    fn sync_all(&self, file: &File) -> io::Result<()> {
        if self.fails(Call::SyncAll) {
            Err(Self::error())
        } else {
            file.sync_all()
        }
    }
}

/// Every commit but the failing one is acknowledged, the writer refuses from then on, and a restart finds all
/// that was acknowledged.
#[track_caller]
fn check_refusal(call: Call, number: u32, acknowledged: &[&[u8]]) {
    let dir = tempdir().expect("a folder");
    let path = dir.path().join("log");
    let mut writer =
        FrameWriter::create_on(FailingDisk::new(call, number), &path, FORMAT, 1).expect("create");
    for payload in acknowledged {
        writer.append(payload).expect("append");
        writer.commit().expect("commit");
    }
    let bytes = writer.bytes();
    writer.append(b"the one that fails").expect("append");
    let error = writer.commit().expect_err("the injected failure");
    assert!(matches!(error, Error::Io { .. }), "{error}");
    assert!(
        error
            .to_string()
            .contains("the device failed; check the kernel log"),
        "{error}"
    );

    for error in [
        writer.append(b"more").map(drop).expect_err("refuses"),
        writer.commit().map(drop).expect_err("refuses"),
        writer.commit().map(drop).expect_err("still refuses"),
    ] {
        assert!(
            matches!(error, Error::Refusing { path: ref refusing } if *refusing == path),
            "{error}"
        );
        assert_eq!(error.kind(), Blame::Environment);
    }
    assert_eq!((writer.bytes(), writer.pending_bytes()), (bytes, 0));
    drop(writer);

    let file = fs::read(&path).expect("read");
    let mut reader = FrameReader::new(&path, &file, FORMAT).expect("the header is whole");
    let found: Vec<_> = reader
        .by_ref()
        .filter_map(Result::ok)
        .map(|frame| frame.payload)
        .collect();
    assert!(
        found.starts_with(acknowledged) && found.len() <= acknowledged.len() + 1,
        "{found:?}"
    );
    let at = reader.append_offset();
    let mut writer = FrameWriter::open_append(&path, FORMAT, at).expect("a restart goes on");
    writer.append(b"after the restart").expect("append");
    writer.commit().expect("commit");
}

#[test]
fn a_failed_sync_or_write_makes_the_writer_refuse() {
    check_refusal(Call::SyncData, 1, &[]);
    check_refusal(Call::SyncData, 3, &[b"one", b"two"]);
    // The first write is the file header's.
    check_refusal(Call::Write, 2, &[]);
    check_refusal(Call::Write, 4, &[b"one", b"two"]);
}

#[test]
fn a_file_that_cannot_be_made_durable_is_not_created() {
    for (call, number) in [(Call::Write, 1), (Call::SyncAll, 1), (Call::SyncAll, 2)] {
        let dir = tempdir().expect("a folder");
        let path = dir.path().join("log");
        let disk = FailingDisk::new(call, number);
        FrameWriter::create_on(disk, &path, FORMAT, 1).expect_err("the injected failure");
        assert_eq!(names(dir.path()), [""; 0], "{call:?} {number}");
        FrameWriter::create(&path, FORMAT, 1).expect("nothing stands in the way of another try");
    }
}

#[test]
fn a_new_file_that_fails_is_removed() {
    for (call, number) in [(Call::Write, 1), (Call::SyncAll, 1), (Call::SyncAll, 2)] {
        let dir = tempdir().expect("a folder");
        let path = dir.path().join("segment");
        let mut file = NewFile::create_on(FailingDisk::new(call, number), &path).expect("create");
        file.write_all(b"content").expect("buffered");
        let error = file.finish().expect_err("the injected failure");
        assert!(matches!(error, Error::Io { .. }), "{error}");
        assert_eq!(names(dir.path()), [""; 0], "{call:?} {number}");
    }
}

#[test]
fn a_new_file_refuses_after_a_failed_write() {
    let dir = tempdir().expect("a folder");
    let path = dir.path().join("segment");
    let mut file = NewFile::create_on(FailingDisk::new(Call::Write, 1), &path).expect("create");
    file.write_all(&vec![1; 3 << 20])
        .expect_err("the injected failure");
    assert!(matches!(file.write_all(b"more"), Err(Error::Refusing { .. })));
    assert!(matches!(file.finish(), Err(Error::Refusing { .. })));
    assert_eq!(names(dir.path()), [""; 0]);
}

/// Writes go to a device that is always full, as the kernel tells it.
struct FullDisk;

impl Disk for FullDisk {
    fn write_all_at(&self, _: &File, bytes: &[u8], _: u64) -> io::Result<()> {
        OpenOptions::new().write(true).open("/dev/full")?.write_all(bytes)
    }
}

#[test]
fn a_full_disk_is_said_to_be_full() {
    let dir = tempdir().expect("a folder");
    let path = dir.path().join("log");
    let mut file = NewFile::create_on(Arc::new(FullDisk), &path).expect("create");
    file.write_all(b"content").expect("buffered");
    let error = file.finish().expect_err("the disk is full");
    assert_eq!(
        error.to_string(),
        format!(
            "cannot write {}: the disk is full; free some space or move the folder to a larger disk",
            path.display()
        )
    );
    assert_eq!(error.kind(), Blame::Environment);
    FrameWriter::create_on(Arc::new(FullDisk), &path, FORMAT, 1).expect_err("the disk is full");
    assert_eq!(names(dir.path()), [""; 0]);
}

/// The same on a real file system of 256 KiB, in a mount namespace that dies with the child.
#[test]
fn a_full_file_system_keeps_what_it_held() {
    let dir = tempdir().expect("a folder");
    let (program, options, variables) = crate::child::arguments("fill", dir.path());
    let script = "mount -t tmpfs -o size=256k tmpfs \"$0\" || exit 99; exec \"$@\"";
    let output = Command::new("unshare")
        .args(["--map-root-user", "--mount", "sh", "-c", script])
        .arg(dir.path())
        .arg(program)
        .args(options)
        .envs(variables)
        .output();
    match output {
        Ok(output) if output.status.success() => {}
        Ok(output) if output.status.code() == Some(101) => {
            let (out, err) = (
                String::from_utf8_lossy(&output.stdout),
                String::from_utf8_lossy(&output.stderr),
            );
            assert!(output.status.success(), "{out}{err}");
        }
        // Mounting is not permitted everywhere; /dev/full above stands in for it.
        Ok(output) => eprintln!("no tmpfs here: {}", String::from_utf8_lossy(&output.stderr)),
        Err(error) => eprintln!("no tmpfs here: {error}"),
    }
}

/// The child's part: fills the file system in `dir` in each way.
pub(crate) fn fill_disk(dir: &Path) {
    let full = |error: &Error| {
        assert!(
            error.to_string().contains("the disk is full; free some space"),
            "{error}"
        );
    };
    let path = dir.join("file");
    publish(&path, b"old").expect("there is room");
    full(&publish(&path, &vec![1; 1 << 20]).expect_err("there is no room"));
    assert_eq!(fs::read(&path).expect("read"), b"old");
    assert_eq!(names(dir), ["file"]);

    let mut file = NewFile::create(&dir.join("segment")).expect("create");
    full(&file.write_all(&vec![1; 2 << 20]).expect_err("there is no room"));
    drop(file);
    assert_eq!(names(dir), ["file"]);

    let log = dir.join("log");
    let mut writer = FrameWriter::create(&log, FORMAT, 1).expect("create");
    let payload = vec![7; 50_000];
    let mut committed = 0;
    let error = loop {
        writer.append(&payload).expect("append");
        match writer.commit() {
            Ok(_) => committed += 1,
            Err(error) => break error,
        }
    };
    full(&error);
    assert!(matches!(writer.commit(), Err(Error::Refusing { .. })));
    let bytes = fs::read(&log).expect("read");
    let mut reader = FrameReader::new(&log, &bytes, FORMAT).expect("the header is whole");
    assert_eq!(reader.by_ref().filter_map(Result::ok).count(), committed);
    assert!(committed >= 3, "{committed} commits fit");
    // With the torn tail cut off there is room again for a little.
    let mut writer = FrameWriter::open_append(&log, FORMAT, reader.append_offset()).expect("open");
    writer.append(b"little").expect("append");
    writer.commit().expect("commit");
}
