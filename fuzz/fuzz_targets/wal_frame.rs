//! Whatever happens to a frames file, its reader covers it whole and loses no untouched frame.
//!
//! The input is a script: frames to write, then changes to make, then bytes to append.
#![no_main]

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use libfuzzer_sys::fuzz_target;
use tamis_durable::Disk;
use tamis_durable::frames::{DamageKind, FRAME_HEADER_BYTES, FrameReader, FrameWriter, HEADER_BYTES};
use tamis_durable::sealed::Format;

const FORMAT: Format = Format {
    magic: *b"FUZZFRAM",
    version: 1,
};
const FRAMES_MAX: u8 = 8;
const CHANGES_MAX: u8 = 6;

struct Unsynced;

impl Disk for Unsynced {
    fn sync_data(&self, _: &File) -> io::Result<()> {
        Ok(())
    }

    fn sync_all(&self, _: &File) -> io::Result<()> {
        Ok(())
    }
}

fuzz_target!(|script: &[u8]| {
    // Foreign headers first: any bytes are a file.
    let _ = FrameReader::new(Path::new("fuzz"), script, FORMAT);

    let mut script = script.iter().copied();
    let (mut file, frames) = write(&mut script);
    let whole = file.clone();
    change(&mut file, &mut script);
    file.extend(script);

    let mut reader = FrameReader::new(Path::new("fuzz"), &file, FORMAT).expect("the header is untouched");
    let (mut at, mut found, mut torn) = (HEADER_BYTES, Vec::new(), None);
    for item in &mut reader {
        assert_eq!(torn, None, "nothing follows a torn tail");
        let (offset, bytes) = match item {
            Ok(frame) => {
                found.push(frame.offset);
                (frame.offset, FRAME_HEADER_BYTES + frame.payload.len() as u64)
            }
            Err(damage) => {
                torn = (damage.kind == DamageKind::Torn).then_some(damage.offset);
                (damage.offset, damage.bytes)
            }
        };
        assert!(offset == at && bytes > 0);
        at += bytes;
    }
    assert_eq!(at, file.len() as u64);
    assert_eq!(reader.append_offset(), torn.unwrap_or(at));

    let untouched = |&(start, end): &(u64, u64)| {
        let range = start as usize..end as usize;
        file.get(range.clone()) == whole.get(range)
    };
    // The fuzzer sees frames as it compares, and can append one at its place: more may be found than untouched.
    for (start, _) in frames.into_iter().filter(untouched) {
        assert!(found.contains(&start), "the frame at {start} is lost");
    }
});

/// Writes the frames that the script starts with; gives the file and where each frame starts and ends.
fn write(script: &mut impl Iterator<Item = u8>) -> (Vec<u8>, Vec<(u64, u64)>) {
    static PATH: OnceLock<PathBuf> = OnceLock::new();
    let path = PATH.get_or_init(|| {
        let path = std::env::temp_dir().join(format!("tamis-fuzz-wal-frame-{}", std::process::id()));
        let _ = fs::remove_file(&path);
        FrameWriter::create(&path, FORMAT, 1).expect("create");
        path
    });
    let mut writer =
        FrameWriter::open_append_on(Arc::new(Unsynced), path, FORMAT, HEADER_BYTES).expect("open");
    let mut frames = Vec::new();
    for _ in 0..script.next().unwrap_or(0) % FRAMES_MAX {
        // Some lengths are large enough for the frame to cross a sector.
        let length = script.next().unwrap_or(0);
        let length = if length > 200 {
            usize::from(length - 200) * 40
        } else {
            usize::from(length)
        };
        let fill = script.next().unwrap_or(0);
        let mut payload: Vec<u8> = script.by_ref().take(length.min(16)).collect();
        payload.resize(length, fill);
        let start = writer.append(&payload).expect("append");
        frames.push((start, start + FRAME_HEADER_BYTES + length as u64));
    }
    writer.commit().expect("commit");
    (fs::read(path).expect("read"), frames)
}

/// Flips, zero-fills and cuts behind the file header, as the script says.
fn change(file: &mut Vec<u8>, script: &mut impl Iterator<Item = u8>) {
    for _ in 0..script.next().unwrap_or(0) % CHANGES_MAX {
        let [kind, low, high, value] = [(); 4].map(|()| script.next().unwrap_or(0));
        let body = file.len() - HEADER_BYTES as usize;
        if body == 0 {
            return;
        }
        let at = HEADER_BYTES as usize + usize::from(u16::from_le_bytes([low, high])) % body;
        match kind % 4 {
            0 => file[at] ^= value,
            1 => file[at] = value,
            2 => file[at..].fill(0),
            _ => file.truncate(at),
        }
    }
}
