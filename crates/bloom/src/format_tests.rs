//! Tests of the header: it round-trips, and every other header is refused with the place of the damage.

use super::*;
use crate::Blame;

fn header() -> Header {
    Header {
        geometry: Geometry::for_keys(1_000, 0.01).expect("a plan"),
        keys: 77,
        state: State::Closed,
    }
}

fn decode(start: &[u8]) -> Result<Header> {
    Header::decode(Path::new("file"), start, header().geometry.file_bytes())
}

/// The header with `bytes` at `at` and a checksum that holds.
fn forged(at: usize, bytes: &[u8]) -> [u8; HEADER_LENGTH] {
    let mut forged = header().encode();
    forged[at..at + bytes.len()].copy_from_slice(bytes);
    let sum = checksum(&forged, array_at(&forged, 0), u32_at(&forged, VERSION_AT));
    forged[CHECKSUM_AT..CHECKSUM_AT + 8].copy_from_slice(&sum.to_le_bytes());
    forged
}

#[test]
fn a_header_round_trips() {
    for state in [State::Closed, State::Open] {
        let header = Header {
            state,
            geometry: header().geometry.with_seeds([1, u64::MAX]),
            keys: u64::MAX,
        };
        assert_eq!(decode(&header.encode()).expect("it is whole"), header);
    }
}

#[test]
fn every_flipped_bit_is_damage() {
    let whole = header().encode();
    for at in 0..whole.len() {
        for bit in 0..8 {
            let mut flipped = whole;
            flipped[at] ^= 1 << bit;
            let error = decode(&flipped).expect_err("it is flipped");
            assert_eq!(error.kind(), Blame::Corrupt, "byte {at} bit {bit}: {error}");
        }
    }
}

#[test]
fn every_truncation_is_damage() {
    let whole = header().encode();
    for length in 0..whole.len() {
        let error =
            Header::decode(Path::new("file"), &whole[..length], length as u64).expect_err("it is cut");
        assert_eq!(error.kind(), Blame::Corrupt, "{length} bytes: {error}");
    }
    let bytes = header().geometry.file_bytes();
    for wrong in [4_096, bytes - 1, bytes + 1, bytes + 4_096, u64::MAX] {
        let error = Header::decode(Path::new("file"), &whole, wrong).expect_err("it has another length");
        assert!(
            matches!(error, Error::Corrupt { offset, .. } if offset == wrong.min(bytes)),
            "{error}"
        );
    }
}

#[test]
fn other_files_and_newer_versions_are_told_apart_from_damage() {
    for other in [&b"SQLite format 3\0"[..], &[0; 5_000], &[0xff; 4_096]] {
        let error = decode(other).expect_err("another file");
        assert!(
            matches!(&error, Error::WrongMagic { found, .. } if *found == other[..8]),
            "{error}"
        );
        assert!(
            error
                .to_string()
                .ends_with("check that this is the file you mean"),
            "{error}"
        );
    }
    let error = decode(&forged(VERSION_AT, &2_u32.to_le_bytes())).expect_err("a newer version");
    assert!(
        matches!(
            error,
            Error::FutureVersion {
                found: 2,
                supported: 1,
                ..
            }
        ),
        "{error}"
    );
    assert!(
        error.to_string().contains("run the Tamis that wrote it"),
        "{error}"
    );
    assert_eq!(error.path(), Some(Path::new("file")));
}

#[test]
fn fields_that_no_writer_writes_are_damage_though_the_checksum_holds() {
    assert!(decode(&forged(KEYS_AT, &[5])).is_ok(), "a forged checksum holds");
    #[track_caller]
    fn check(at: usize, bytes: &[u8]) {
        let error = decode(&forged(at, bytes)).expect_err("a wrong field");
        assert!(
            matches!(error, Error::Corrupt { offset, .. } if offset == at as u64),
            "{error}"
        );
        assert!(
            error.to_string().ends_with("it is a hint, no record is lost"),
            "{error}"
        );
    }
    check(VERSION_AT, &[0]);
    check(PROBES_AT, &[0]);
    check(PROBES_AT, &[33]);
    check(BITS_AT, &[1]);
    check(BITS_AT, &[0; 8]);
    check(BITS_AT, &(PAGE_BITS * (PAGES_MAX + 1)).to_le_bytes());
    check(KEYS_PLANNED_AT, &[0; 8]);
    check(RATE_PLANNED_AT, &f64::NAN.to_le_bytes());
    check(RATE_PLANNED_AT, &1.0_f64.to_le_bytes());
    check(RATE_PLANNED_AT, &(-0.0_f64).to_le_bytes());
    check(STATE_AT, &[2]);
    check(STATE_AT + 4, &[1]);
    let error = decode(&forged(FIELDS_END, &[1])).expect_err("a byte behind the fields");
    assert_eq!(error.kind(), Blame::Corrupt);
}
