//! What a frames file gives back after flips, cuts, zeros and garbage, against a model.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use proptest::collection::vec;
use proptest::prelude::*;
use tamis_durable::frames::{
    Damage, DamageKind, FRAME_HEADER_BYTES, FrameReader, FrameWriter, HEADER_BYTES, PAYLOAD_BYTES_MAX,
    truncate,
};
use tamis_durable::sealed::Format;
use tamis_durable::{Advice, Blame, Disk, Error, Map};
use tempfile::{TempDir, tempdir};

use crate::child::{FORMAT as CHILD_FORMAT, Numbers, Running, version};

const FORMAT: Format = Format {
    magic: *b"FRAMTEST",
    version: 1,
};
const NUMBER: u64 = 42;

/// Most tests here kill nobody, and syncing thousands of small files takes minutes.
struct Unsynced;

impl Disk for Unsynced {
    fn sync_data(&self, _: &File) -> io::Result<()> {
        Ok(())
    }

    fn sync_all(&self, _: &File) -> io::Result<()> {
        Ok(())
    }
}

/// A frames file in memory, and where its frames are.
struct Written {
    dir: TempDir,
    file: Vec<u8>,
    payloads: Vec<Vec<u8>>,
    offsets: Vec<u64>,
}

impl Written {
    fn of(payloads: Vec<Vec<u8>>) -> Self {
        let dir = tempdir().expect("a folder");
        let path = dir.path().join("log");
        let mut writer = FrameWriter::create_on(Arc::new(Unsynced), &path, FORMAT, NUMBER).expect("create");
        let offsets = payloads
            .iter()
            .map(|payload| writer.append(payload).expect("append"))
            .collect();
        let bytes = writer.commit().expect("commit");
        let file = fs::read(&path).expect("read");
        assert_eq!(file.len() as u64, bytes);
        Self {
            dir,
            file,
            payloads,
            offsets,
        }
    }

    fn path(&self) -> PathBuf {
        self.dir.path().join("log")
    }

    fn end(&self, index: usize) -> u64 {
        self.offsets[index] + FRAME_HEADER_BYTES + self.payloads[index].len() as u64
    }

    /// The frames of which `keep` says that they must have survived.
    fn expected(&self, keep: impl Fn(usize) -> bool) -> Vec<(u64, &[u8])> {
        (0..self.payloads.len())
            .filter(|&index| keep(index))
            .map(|index| (self.offsets[index], &self.payloads[index][..]))
            .collect()
    }

    /// The frames whose bytes stand in `file` where they were written.
    fn untouched_in(&self, file: &[u8]) -> Vec<(u64, &[u8])> {
        self.expected(|index| {
            let range = self.offsets[index] as usize..self.end(index) as usize;
            file.get(range.clone()) == self.file.get(range)
        })
    }
}

struct Read<'a> {
    frames: Vec<(u64, &'a [u8])>,
    damages: Vec<Damage>,
    append_offset: u64,
}

/// Reads everything, and checks that frames and damage cover the file without gap or overlap.
#[track_caller]
fn read(file: &[u8]) -> Read<'_> {
    let mut reader = FrameReader::new(Path::new("log"), file, FORMAT).expect("the file header is whole");
    assert_eq!(reader.number(), NUMBER);
    let (mut frames, mut damages, mut at) = (Vec::new(), Vec::<Damage>::new(), HEADER_BYTES);
    for item in &mut reader {
        let (offset, bytes) = match item {
            Ok(frame) => {
                frames.push((frame.offset, frame.payload));
                (frame.offset, FRAME_HEADER_BYTES + frame.payload.len() as u64)
            }
            Err(damage) => {
                let place = (damage.offset, damage.bytes);
                damages.push(damage);
                place
            }
        };
        assert_eq!(offset, at);
        assert!(bytes > 0);
        at = offset + bytes;
    }
    assert_eq!(at, file.len() as u64);
    let torn = damages.iter().position(|damage| damage.kind == DamageKind::Torn);
    assert!(
        torn.is_none_or(|index| index + 1 == damages.len()),
        "only the last can be torn: {damages:?}"
    );
    let append_offset = reader.append_offset();
    assert_eq!(append_offset, torn.map_or(at, |index| damages[index].offset));
    Read {
        frames,
        damages,
        append_offset,
    }
}

fn small() -> Written {
    Written::of(vec![
        b"first".to_vec(),
        Vec::new(),
        b"third, longer".to_vec(),
        b"x\0\0".to_vec(),
    ])
}

#[test]
fn frames_come_back_in_order() {
    let written = small();
    let read = read(&written.file);
    assert_eq!(read.frames, written.expected(|_| true));
    assert_eq!(read.damages, []);
}

#[test]
fn a_flipped_bit_costs_its_frame_and_no_other() {
    let written = small();
    for at in HEADER_BYTES as usize..written.file.len() {
        let hit = (0..written.payloads.len()).find(|&index| (at as u64) < written.end(index));
        let hit = hit.expect("every byte after the header belongs to a frame");
        for bit in 0..8 {
            let mut file = written.file.clone();
            file[at] ^= 1 << bit;
            let read = read(&file);
            assert_eq!(
                read.frames,
                written.expected(|index| index != hit),
                "byte {at}, bit {bit}"
            );
            // Frames and damage cover the file, so the damage is the frame that was hit. A length that lost a
            // bit leaves the zeros that end the last payload over, which look like a torn tail behind it.
            let damage = &read.damages[0];
            assert_eq!(damage.offset, written.offsets[hit]);
            assert_eq!(damage.kind, DamageKind::Damaged, "byte {at}, bit {bit}: {damage}");
            let (in_length, last) = (4..8, written.payloads.len() - 1);
            let may_split = hit == last && in_length.contains(&(at as u64 - damage.offset));
            assert!(read.damages.len() == 1 || may_split, "{:?}", read.damages);
            assert_eq!(damage.to_error(Path::new("log")).kind(), Blame::Corrupt);
        }
    }
}

#[test]
fn a_flipped_bit_in_the_file_header_is_told_with_its_place() {
    let written = small();
    for at in 0..HEADER_BYTES as usize {
        for bit in 0..8 {
            let mut file = written.file.clone();
            file[at] ^= 1 << bit;
            let error = FrameReader::new(Path::new("log"), &file, FORMAT).expect_err("a damaged header");
            let expected = [0, 8, 28][usize::from(at >= 8) + usize::from(at >= 12)];
            assert!(
                matches!(error, Error::Corrupt { offset, .. } if offset == expected),
                "byte {at}: {error}"
            );
        }
    }
}

#[test]
fn a_truncation_tears_at_most_the_frame_it_cuts() {
    let written = small();
    for length in 0..written.file.len() {
        let file = &written.file[..length];
        if (length as u64) < HEADER_BYTES {
            let error = FrameReader::new(Path::new("log"), file, FORMAT).expect_err("a cut header");
            assert!(
                matches!(error, Error::Corrupt { offset, .. } if offset == length as u64),
                "{error}"
            );
            continue;
        }
        let read = read(file);
        assert_eq!(
            read.frames,
            written.expected(|index| written.end(index) <= length as u64)
        );
        let whole = read.frames.len();
        let at_boundary = length as u64 == written.offsets[whole];
        assert_eq!(read.damages.len(), usize::from(!at_boundary));
        assert!(read.damages.iter().all(|damage| damage.kind == DamageKind::Torn));
        assert_eq!(read.append_offset, written.offsets[whole]);
    }
}

#[test]
fn other_formats_are_refused() {
    let written = small();
    let open =
        |format| FrameReader::new(Path::new("log"), &written.file, format).map(|reader| reader.number());
    assert!(matches!(
        open(Format {
            magic: *b"OTHERONE",
            version: 1
        }),
        Err(Error::WrongMagic { .. })
    ));
    assert!(matches!(
        open(Format { version: 0, ..FORMAT }),
        Err(Error::FutureVersion { found: 1, .. })
    ));
    assert!(matches!(
        open(Format { version: 2, ..FORMAT }),
        Err(Error::OldVersion { found: 1, .. })
    ));
}

#[test]
fn zeros_behind_the_frames_are_a_torn_tail() {
    let written = small();
    for zeros in [1, 3, 4, 15, 16, 100, 5_000] {
        let mut file = written.file.clone();
        file.resize(written.file.len() + zeros, 0);
        let read = read(&file);
        assert_eq!(read.frames, written.expected(|_| true));
        assert_eq!(read.damages.len(), 1);
        assert_eq!(read.damages[0].kind, DamageKind::Torn);
        assert_eq!(read.append_offset, written.file.len() as u64);
    }
}

#[test]
fn a_sector_boundary_can_fall_anywhere_in_a_frame() {
    for before in 400..520 {
        let written = Written::of(vec![
            vec![0xAA; before - HEADER_BYTES as usize - 16],
            vec![0xBB; 200],
        ]);
        let mut file = written.file.clone();
        file[512..].fill(0);
        let read = read(&file);
        let whole = usize::from(written.end(0) <= 512);
        assert_eq!(read.frames, written.expected(|index| index < whole));
        let kinds: Vec<_> = read
            .damages
            .iter()
            .map(|damage| (damage.offset, damage.kind))
            .collect();
        assert_eq!(
            kinds,
            [(written.offsets[whole], DamageKind::Torn)],
            "second frame at {before}"
        );
    }
}

#[test]
fn garbage_behind_the_frames_is_damage_and_can_be_appended_behind() {
    for length in 1..20 {
        let written = small();
        let mut file = written.file.clone();
        file.extend_from_slice(&b"garbage of somebody"[..length]);
        fs::write(written.path(), &file).expect("write");
        assert_eq!(read(&file).damages[0].kind, DamageKind::Damaged);

        let end = file.len() as u64;
        let mut writer =
            FrameWriter::open_append_on(Arc::new(Unsynced), &written.path(), FORMAT, end).expect("open");
        writer.append(b"after").expect("append");
        writer.commit().expect("commit");
        let file = fs::read(written.path()).expect("read");
        let read = read(&file);
        assert_eq!(read.frames.last(), Some(&(end, &b"after"[..])), "{length} bytes");
        assert_eq!(read.frames.len(), written.payloads.len() + 1);
        assert_eq!(
            (read.damages[0].bytes, read.damages[0].kind),
            (length as u64, DamageKind::Damaged)
        );
    }
}

#[test]
fn a_length_over_the_limit_is_damage() {
    let written = small();
    let mut file = written.file.clone();
    file.extend_from_slice(&written.file[HEADER_BYTES as usize..][..4]);
    file.extend((PAYLOAD_BYTES_MAX as u32 + 1).to_le_bytes());
    file.extend([0x11; 100]);
    let damages = read(&file).damages;
    assert_eq!((damages.len(), damages[0].kind), (1, DamageKind::Damaged));
    assert_eq!(damages[0].reason, "a frame of 268435457 bytes is over 268435456");
}

#[test]
fn damage_before_a_torn_tail_keeps_its_name() {
    let written = small();
    let third = written.offsets[2] as usize;
    let mut file = written.file[..written.file.len() - 1].to_vec();
    file[third + FRAME_HEADER_BYTES as usize] ^= 1;
    let kinds: Vec<_> = read(&file)
        .damages
        .iter()
        .map(|damage| (damage.offset, damage.kind))
        .collect();
    assert_eq!(
        kinds,
        [
            (written.offsets[2], DamageKind::Damaged),
            (written.offsets[3], DamageKind::Torn)
        ]
    );
}

#[test]
fn a_length_that_points_at_a_later_frame_hides_none() {
    // Frames of 32 bytes: one bit of the length turns 16 into 48, which ends exactly where a frame starts.
    let written = Written::of(vec![vec![7; 16]; 4]);
    let mut file = written.file.clone();
    file[written.offsets[0] as usize + 4] ^= 32;
    let read = read(&file);
    assert_eq!(read.frames, written.expected(|index| index != 0));
}

#[test]
fn a_frame_inside_a_payload_or_from_another_file_is_no_frame() {
    let inner = small();
    // The other file, frames and all, stored in a frame of this one, whose header is then destroyed.
    let mut written = Written::of(vec![inner.file.clone(), b"last".to_vec()]);
    written.file[HEADER_BYTES as usize] ^= 1;
    let found = read(&written.file);
    assert_eq!(found.frames, written.expected(|index| index == 1));

    // Frames of one file moved into another, at the offsets they had.
    let mut moved = small().file;
    let frames_at = HEADER_BYTES as usize;
    moved[frames_at..].copy_from_slice(&inner.file[frames_at..]);
    assert_eq!(read(&moved).frames, []);
}

#[test]
fn a_file_of_markers_is_read_in_bounded_time() {
    let written = small();
    let mut file = written.file[..HEADER_BYTES as usize].to_vec();
    let marker = written.file[HEADER_BYTES as usize..][..4].to_vec();
    // Chains of frames with wrong checksums, each pointing at the next: 40,000 of them.
    for _ in 0..40_000 {
        file.extend_from_slice(&marker);
        file.extend(8_u32.to_le_bytes());
        file.extend([0x11; 16]);
    }
    let found = read(&file);
    assert_eq!(found.frames, []);
    assert!(
        found
            .damages
            .iter()
            .all(|damage| damage.kind == DamageKind::Damaged)
    );
}

#[test]
fn appending_goes_on_behind_a_torn_tail_that_was_cut() {
    let written = small();
    let cut = written.file.len() - 1;
    fs::write(written.path(), &written.file[..cut]).expect("write");
    let at = read(&written.file[..cut]).append_offset;
    let mut writer = FrameWriter::open_append(&written.path(), FORMAT, at).expect("open");
    assert_eq!(
        (writer.bytes(), writer.number(), writer.pending_bytes()),
        (at, NUMBER, 0)
    );
    assert_eq!(writer.append(b"again").expect("append"), at);
    assert_eq!(writer.pending_bytes(), FRAME_HEADER_BYTES + 5);
    assert_eq!(writer.commit().expect("commit"), at + FRAME_HEADER_BYTES + 5);
    assert_eq!(writer.commit().expect("nothing to do"), writer.bytes());

    let map = Map::open(&written.path(), Advice::Sequential).expect("map");
    let read = read(&map);
    let mut expected = written.expected(|index| index != 3);
    expected.push((at, b"again"));
    assert_eq!((read.frames, read.damages), (expected, vec![]));
}

#[test]
fn truncation_is_checked() {
    let written = small();
    let path = written.path();
    truncate(&path, written.offsets[2]).expect("cut");
    let file = fs::read(&path).expect("read");
    assert_eq!(read(&file).frames, written.expected(|index| index < 2));

    let error = truncate(&path, written.offsets[2] + 1).expect_err("the file is shorter");
    assert!(
        matches!(error, Error::Corrupt { offset, .. } if offset == written.offsets[2]),
        "{error}"
    );
    let error = truncate(&path, HEADER_BYTES - 1).expect_err("inside the header");
    assert_eq!(error.kind(), Blame::Bug);
    let error = FrameWriter::open_append(&path, FORMAT, 10_000).expect_err("the file is shorter");
    assert_eq!(error.kind(), Blame::Corrupt);
}

#[test]
fn a_file_is_not_created_over_another() {
    let written = small();
    let error = FrameWriter::create(&written.path(), FORMAT, 1).expect_err("it exists");
    assert!(
        matches!(error, Error::Io { ref source, .. } if source.kind() == std::io::ErrorKind::AlreadyExists)
    );
    assert_eq!(fs::read(written.path()).expect("read"), written.file);
    assert_eq!(super::publish::names(written.dir.path()), ["log"]);
}

#[test]
fn a_payload_over_the_limit_is_refused_and_the_writer_goes_on() {
    let written = small();
    let mut writer =
        FrameWriter::open_append(&written.path(), FORMAT, written.file.len() as u64).expect("open");
    let zeros = vec![0; PAYLOAD_BYTES_MAX as usize + 1];
    let error = writer.append(&zeros).expect_err("over the limit");
    assert!(
        matches!(
            error,
            Error::TooLarge {
                bytes_max: PAYLOAD_BYTES_MAX,
                ..
            }
        ),
        "{error}"
    );
    assert_eq!(writer.pending_bytes(), 0);
    writer.append(b"small").expect("append");
    writer.commit().expect("commit");
}

#[test]
fn a_killed_writer_loses_nothing_it_acknowledged() {
    let mut numbers = Numbers(2);
    for _ in 0..30 {
        let dir = tempdir().expect("a folder");
        let mut child = Running::start("append", dir.path());
        let mut acknowledged = 0;
        for _ in 0..1 + numbers.below(6) {
            acknowledged = child.line().parse().expect("a number");
        }
        numbers.spin_us(3_000);
        if let Some(line) = child.kill().last() {
            acknowledged = line.parse().expect("a number");
        }
        let path = dir.path().join("log");
        let file = fs::read(&path).expect("read");
        let reader = FrameReader::new(&path, &file, CHILD_FORMAT).expect("the header is whole");
        let mut whole = 0;
        for item in reader {
            match item {
                Ok(frame) => {
                    whole += 1;
                    assert!(frame.payload == version(whole), "frame {whole}");
                }
                Err(damage) => assert_eq!(damage.kind, DamageKind::Torn, "{damage}"),
            }
        }
        assert!(
            whole == acknowledged || whole == acknowledged + 1,
            "{whole} of {acknowledged}"
        );
    }
}

/// Payloads with a taste for what confuses: markers, zeros, nothing.
fn payloads() -> impl Strategy<Value = Vec<Vec<u8>>> {
    let payload = prop_oneof![
        4 => vec(any::<u8>(), 0..60),
        2 => vec(prop_oneof![Just(0xF5), Just(0x9D), Just(0xC3), Just(0x1E), Just(0_u8)], 0..60),
        1 => vec(any::<u8>(), 500..1_500),
        1 => (0_usize..1_500).prop_map(|length| vec![0; length]),
    ];
    vec(payload, 0..8)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(192))]

    /// Overwrites at several places cost the frames they touch and no other.
    #[test]
    fn overwrites_are_confined(
        payloads in payloads(),
        overwrites in vec((any::<proptest::sample::Index>(), vec(any::<u8>(), 1..40)), 0..4),
    ) {
        let written = Written::of(payloads);
        let body = written.file.len() - HEADER_BYTES as usize;
        let mut file = written.file.clone();
        for (at, bytes) in overwrites.iter().filter(|_| body > 0) {
            let at = HEADER_BYTES as usize + at.index(body);
            for (to, from) in file[at..].iter_mut().zip(bytes) {
                *to = *from;
            }
        }
        prop_assert_eq!(read(&file).frames, written.untouched_in(&file));
    }

    /// Bytes put in shift what follows, which is then lost; what is the same at its place is not.
    #[test]
    fn shifts_lose_only_what_follows(
        payloads in payloads(),
        at in any::<proptest::sample::Index>(),
        inserted in vec(any::<u8>(), 1..20),
    ) {
        let written = Written::of(payloads);
        let at = HEADER_BYTES as usize + at.index(written.file.len() - HEADER_BYTES as usize + 1);
        let mut file = written.file.clone();
        file.splice(at..at, inserted);
        prop_assert_eq!(read(&file).frames, written.untouched_in(&file));
    }

    /// A write cut off by a power loss: the length is there, the content only up to some sector.
    #[test]
    fn unwritten_sectors_are_a_torn_tail(payloads in payloads(), sector in any::<proptest::sample::Index>()) {
        let written = Written::of(payloads);
        let at = (512 * (1 + sector.index(written.file.len() / 512 + 1))).min(written.file.len());
        let mut file = written.file.clone();
        file[at..].fill(0);
        let read = read(&file);
        prop_assert_eq!(&read.frames, &written.untouched_in(&file));
        prop_assert!(read.damages.len() <= 1);
        prop_assert!(read.damages.iter().all(|damage| damage.kind == DamageKind::Torn), "{:?}", read.damages);
    }

    /// Any bytes at all behind the file header.
    #[test]
    fn any_tail_is_covered(tail in vec(any::<u8>(), 0..200), zeros in 0_usize..40) {
        let mut file = Written::of(vec![b"one".to_vec()]).file;
        file.extend_from_slice(&tail);
        file.resize(file.len() + zeros, 0);
        prop_assert_eq!(read(&file).frames.len(), 1);
    }
}
