//! Golden bytes of format version 1: what was written then is read now, and is still written so.
//!
//! `TAMIS_BLESS=1` writes `testdata/index/v1` anew; its README says when that is right.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Once;

use tamis_ct_index::batch::LogRange;
use tamis_ct_index::compact::Policy;
use tamis_ct_index::key::Identifier;
use tamis_ct_index::record::{CertRecord, CertificateKind, Fingerprint, Issuance, NameBits, Position};
use tamis_ct_index::{Batch, Index, Observation, Snapshot};
use tamis_durable::frames::FrameReader;
use tamis_durable::sealed::Format;

use crate::world::{all_names, assert_whole, options};

/// Names, records and look-ups of the first merge.
const SEGMENTS: [&str; 3] = [
    "2025-11/seg-00000003.tamis",
    "2025-11/seg-00000004.tamis",
    "2025-11/seg-00000005.tamis",
];
const WAL: &str = "wal/00000003.wal";
/// Every file of the folder; the lock file is no part of the format.
const FILES: [&str; 7] = [
    "MANIFEST",
    "MANIFEST.copy",
    "issuers.tamis",
    SEGMENTS[0],
    SEGMENTS[1],
    SEGMENTS[2],
    WAL,
];
/// Two flushes, merged into the segments; issuances behind are in the write-ahead log only.
const FLUSHES: [u64; 2] = [100, 150];
const ISSUANCES: u64 = 160;
const START: i64 = 1_760_000_000;
const SEEN_EARLIER: u64 = 14;
const LOGS: [&str; 2] = ["https://log-a.example/2026h1", "https://log-b.example/2026h1"];
const PRECERTIFICATE: CertificateKind = CertificateKind::Precertificate;
const CERTIFICATE: CertificateKind = CertificateKind::Certificate;

fn golden() -> PathBuf {
    static BLESSED: Once = Once::new();
    BLESSED.call_once(|| {
        if std::env::var_os("TAMIS_BLESS").is_some() {
            bless();
        }
    });
    folder()
}

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/index/v1")
}

/// One certificate of the golden world; its number decides everything about it.
struct Golden(u64);

/// How a name is meant.
type Kind = fn(&str) -> Identifier<'_>;

impl Golden {
    fn hash(&self) -> u64 {
        // Two issuances share a hash and differ in their serials: they stay apart.
        let number = if self.0 == 48 { 45 } else { self.0 };
        (number + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15)
    }

    fn serial(&self) -> Vec<u8> {
        // Four to twenty bytes; every tenth starts like a negative number.
        let mut serial =
            vec![if self.0.is_multiple_of(10) { 0xff } else { 0x01 }; 4 + (self.0 % 17) as usize];
        serial[2..4].copy_from_slice(&(self.0 as u16).to_be_bytes());
        serial
    }

    fn sha256(&self, kind: CertificateKind) -> [u8; 32] {
        let mut sha256 = [0; 32];
        for (step, part) in sha256.chunks_exact_mut(8).enumerate() {
            let word = (self.0 * 8 + step as u64 * 2 + u64::from(kind == CERTIFICATE) + 1)
                .wrapping_mul(0xd6e8_feb8_6659_fd93);
            part.copy_from_slice(&word.to_be_bytes());
        }
        sha256
    }

    fn first_seen(&self) -> i64 {
        START + self.0 as i64 * 40
    }

    /// One is seen late at first.
    fn seen_later(&self) -> i64 {
        if self.0 == SEEN_EARLIER { 500 } else { 0 }
    }

    fn organization(&self) -> String {
        match self.0 % 3 {
            0 => format!("Example Trading {} Ltd", self.0 / 6),
            1 => String::new(),
            _ => "Müller & Söhne".to_owned(),
        }
    }

    fn issuer(&self) -> &'static str {
        [
            "CN=R10,O=Let's Encrypt,C=US",
            "CN=Beispiel CA,O=Müller & Söhne,C=DE",
            "CN=WE1,O=Google Trust Services,C=US",
        ][(self.0 % 3) as usize]
    }

    fn not_before(&self) -> Option<i64> {
        (self.0 % 11 != 5).then_some(START + self.0 as i64 * 40 - 3_600)
    }

    fn not_after(&self) -> Option<i64> {
        (self.0 % 13 != 5).then_some(START + self.0 as i64 * 40 + 90 * 86_400)
    }

    /// Names as people write them, and which kind of identifier each is.
    fn names(&self) -> Vec<(String, NameBits, Kind)> {
        let host: Kind = |text| Identifier::Host(text);
        let number = self.0;
        match number % 10 {
            9 => vec![],
            8 => vec![
                (format!("192.0.2.{}", number % 5), 1, ip),
                ("2001:db8::1".to_owned(), 1, ip),
            ],
            7 => vec![(format!("admin{number}@mail.example.org"), 1, |text| {
                Identifier::Email(text)
            })],
            6 => vec![("*.*.example.com".to_owned(), 1, |text| Identifier::Text(text))],
            5 => vec![
                ("localhost".to_owned(), 1, host),
                ("example.co.uk".to_owned(), 2, host),
            ],
            digit => {
                let base = format!(
                    "shop{}.example.{}",
                    number / 7,
                    ["com", "net"][(digit % 2) as usize]
                );
                vec![
                    (format!("www.{base}"), 1, host),
                    (base, 1 + (digit % 3) as u8, host),
                    ("xn--mller-kva.example".to_owned(), 3, host),
                ]
            }
        }
    }

    fn common_names(&self) -> Vec<String> {
        let first = self.names().first().map(|(name, ..)| name.clone());
        match self.0 % 4 {
            0 => first.into_iter().collect(),
            1 => first.map(|name| format!("*.{name}")).into_iter().collect(),
            2 => vec!["Example Root CA".to_owned(), "WWW.Example.COM".to_owned()],
            _ => vec![],
        }
    }

    fn deviations(&self) -> u64 {
        u64::from(self.0.is_multiple_of(9)) << 3 | u64::from(self.0 % 50 == 7) << 63
    }

    fn names_total(&self) -> u64 {
        self.names().len() as u64 + if self.0 % 20 == 3 { 1_000 } else { 0 }
    }

    fn push(&self, batch: &mut Batch, kind: CertificateKind, position: Option<Position>, first_seen: i64) {
        let (serial, organization) = (self.serial(), self.organization());
        let names = self.names();
        let common_names = self.common_names();
        let common_names: Vec<&str> = common_names.iter().map(String::as_str).collect();
        let seen = Observation {
            issuance: Issuance(self.hash()),
            serial: &serial,
            fingerprint: Some(Fingerprint {
                kind,
                sha256: self.sha256(kind),
            }),
            position,
            first_seen,
            not_before: self.not_before(),
            not_after: self.not_after(),
            issuer: self.issuer(),
            organization: &organization,
            names_total: self.names_total(),
            deviations: self.deviations(),
        };
        let names = names.iter().map(|(text, bits, of)| (of(text), *bits));
        batch.push(&seen, common_names.iter().copied(), names);
    }

    /// Log 1 holds every precertificate but each seventh; log 2 each second certificate.
    fn position(&self, kind: CertificateKind) -> Option<Position> {
        let (log, index, present) = match kind {
            PRECERTIFICATE => (1, 1_000 + self.0, self.0 % 7 != 6),
            CERTIFICATE => (2, (1 << 40) + self.0 * 3, self.0.is_multiple_of(2)),
        };
        let timestamp_ms = self.first_seen() as u64 * 1_000 + u64::from(log) * 60_007;
        present.then_some(Position {
            log,
            index,
            timestamp_ms,
        })
    }

    /// What an index must say of it.
    fn record(&self, seq: u64, issuer: u32) -> CertRecord {
        let kinds = [PRECERTIFICATE, CERTIFICATE];
        let mut names: Vec<(Vec<u8>, NameBits)> = self
            .names()
            .iter()
            .map(|(text, bits, of)| {
                let mut key = Vec::new();
                of(text).encode_into(&mut key);
                (key, *bits)
            })
            .collect();
        names.sort();
        CertRecord {
            issuance: self.hash(),
            seq,
            copy_of: None,
            slim: false,
            serial: self.serial(),
            fingerprints: kinds
                .map(|kind| Fingerprint {
                    kind,
                    sha256: self.sha256(kind),
                })
                .to_vec(),
            positions: kinds.iter().filter_map(|&kind| self.position(kind)).collect(),
            first_seen: self.first_seen(),
            not_before: self.not_before(),
            not_after: self.not_after(),
            issuer,
            organization: self.organization(),
            common_names: self.common_names(),
            names_total: self.names_total(),
            deviations: self.deviations(),
            names,
        }
    }
}

fn ip(text: &str) -> Identifier<'_> {
    Identifier::Ip(text.parse::<IpAddr>().unwrap())
}

/// Writes the golden world: an issuance a batch, as precertificate and as certificate.
fn write(dir: &Path) {
    let index = Index::open(dir, options(1_000_000)).unwrap();
    for log in LOGS {
        index.register_log(log).unwrap();
    }
    for number in 0..ISSUANCES {
        if FLUSHES.contains(&number) {
            index.flush().unwrap();
        }
        if number == FLUSHES[1] {
            index.compact(&Policy::everything()).unwrap();
        }
        let (golden, mut batch) = (Golden(number), Batch::new());
        let at = golden.first_seen() + golden.seen_later();
        for (kind, later) in [(PRECERTIFICATE, 0), (CERTIFICATE, 60)] {
            let position = golden.position(kind);
            golden.push(&mut batch, kind, position, at + later);
            if let Some(Position { log, index, .. }) = position {
                let (start, end) = (index, index + 1);
                batch.cover(LogRange { log, start, end });
            }
        }
        index.append(&batch).unwrap();
        index.commit().unwrap();
    }
    // What the segment holds was seen earlier after all: its rows are written again.
    let mut batch = Batch::new();
    let early = Golden(SEEN_EARLIER);
    early.push(&mut batch, CERTIFICATE, None, early.first_seen());
    index.append(&batch).unwrap();
    index.commit().unwrap();
}

fn copied() -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    for file in FILES {
        let to = dir.path().join(file);
        std::fs::create_dir_all(to.parent().unwrap()).unwrap();
        std::fs::copy(golden().join(file), to).unwrap();
    }
    dir
}

/// Host names below `top`, and what an index must say of each.
fn names_below(top: &str) -> BTreeMap<String, (u8, u64, i64, i64)> {
    let mut names = BTreeMap::new();
    for golden in (0..ISSUANCES).map(Golden) {
        for (name, bits, of) in golden.names() {
            if !matches!(of(&name), Identifier::Host(_)) || !name.ends_with(&format!(".{top}")) {
                continue;
            }
            let told = names.entry(name).or_insert((0, 0, i64::MAX, i64::MIN));
            told.0 |= bits;
            told.1 += 1;
            told.2 = told.2.min(golden.first_seen());
            told.3 = told.3.max(golden.first_seen());
        }
    }
    names
}

#[track_caller]
fn check(snapshot: &Snapshot) {
    let faults: Vec<String> = snapshot.faults().map(ToString::to_string).collect();
    assert!(faults.is_empty(), "{faults:?}");
    for top in ["com", "net", "example", "uk"] {
        assert_eq!(all_names(snapshot, top, 7), names_below(top), "names below {top}");
    }
    for number in 0..ISSUANCES {
        let golden = Golden(number);
        let found = snapshot.by_sha256(&golden.sha256(CERTIFICATE)).unwrap();
        let [record] = found.as_slice() else {
            panic!("issuance {number}: {found:#?}")
        };
        assert_eq!(*record, golden.record(2 * number, record.issuer));
        assert_eq!(snapshot.issuer(record.issuer).as_ref(), golden.issuer());
        assert_eq!(snapshot.by_sha256(&golden.sha256(PRECERTIFICATE)).unwrap(), found);
        assert_eq!(snapshot.by_serial(&golden.serial()).unwrap(), found);
        assert_eq!(snapshot.by_id(record.id()).unwrap(), found, "id {}", record.id());
    }
    assert_eq!(
        snapshot.by_issuance(Issuance(Golden(45).hash())).unwrap().len(),
        2
    );
    let stats = snapshot.stats();
    let rows: usize = (0..ISSUANCES).map(|number| Golden(number).names().len()).sum();
    assert_eq!(
        (
            stats.totals.issuances,
            stats.totals.certificates,
            stats.totals.precertificates
        ),
        (ISSUANCES, 2 * ISSUANCES, ISSUANCES)
    );
    assert_eq!(stats.totals.name_rows, rows as u64);
    assert_eq!(
        stats.logs.iter().map(|log| log.name.as_str()).collect::<Vec<_>>(),
        LOGS
    );
    assert_eq!(stats.logs[0].ranges[..2], [[1_000, 1_006], [1_007, 1_013]]);
}

#[test]
fn version_1_is_read() {
    let dir = copied();
    assert_whole(dir.path());
    check(&Snapshot::open(dir.path(), &options(1_000_000)).unwrap());
    // An owner reads it too, and turns the log into a second segment.
    let index = Index::open(dir.path(), options(1_000_000)).unwrap();
    check(&index.snapshot());
    index.flush().unwrap();
    check(&index.snapshot());
    index.close().unwrap();
    assert_whole(dir.path());
}

#[test]
fn version_1_is_written() {
    let dir = tempfile::tempdir().unwrap();
    write(dir.path());
    check(&Snapshot::open(dir.path(), &options(1_000_000)).unwrap());
    for segment in SEGMENTS {
        let written = std::fs::read(dir.path().join(segment)).unwrap();
        let differs = std::fs::read(golden().join(segment)).unwrap() != written;
        assert!(
            !differs,
            "the bytes of {segment} changed: raise its version, or see testdata/index/README.md"
        );
    }
    // Frames files carry a random salt: the same payloads lie at the same places.
    for file in ["issuers.tamis", WAL] {
        let payloads = |folder: &Path| {
            let path = folder.join(file);
            let bytes = std::fs::read(&path).unwrap();
            let magic = bytes[..8].try_into().unwrap();
            let frames = FrameReader::new(&path, &bytes, Format { magic, version: 1 }).unwrap();
            frames
                .map(|frame| frame.unwrap().payload.to_vec())
                .collect::<Vec<_>>()
        };
        assert_eq!(
            payloads(dir.path()),
            payloads(&golden()),
            "payloads of {file} changed"
        );
    }
    let manifest = |folder: &Path| std::fs::read(folder.join("MANIFEST")).unwrap();
    assert_eq!(manifest(dir.path()), manifest(&golden()), "the manifest changed");
}

fn bless() {
    let dir = tempfile::tempdir().unwrap();
    write(dir.path());
    for file in FILES {
        let to = folder().join(file);
        std::fs::create_dir_all(to.parent().unwrap()).unwrap();
        std::fs::copy(dir.path().join(file), to).unwrap();
    }
}

/// Raises the version at `at` of a file to 2 and puts the XXH3-64 of the parts that `sealed` names at
/// `place`, as a newer Tamis would.
fn raise(dir: &Path, file: &str, at: usize, sealed: &[Range<usize>], place: usize) {
    let path = dir.join(file);
    let mut bytes = std::fs::read(&path).unwrap();
    bytes[at] = 2;
    let end = bytes.len();
    let parts: Vec<&[u8]> = sealed
        .iter()
        .map(|part| &bytes[part.start..part.end.min(end)])
        .collect();
    let sum = xxhash_rust::xxh3::xxh3_64(&parts.concat());
    bytes[place..place + 8].copy_from_slice(&sum.to_le_bytes());
    std::fs::write(path, bytes).unwrap();
}

#[test]
fn version_2_is_refused_with_advice() {
    let segment = SEGMENTS[1];
    let trailer = std::fs::metadata(golden().join(segment)).unwrap().len() as usize - 32;
    type Change<'c> = &'c dyn Fn(&Path);
    let cases: [(&str, Change<'_>); 4] = [
        ("MANIFEST", &|dir| {
            raise(dir, "MANIFEST", 8, &[0..20, 28..usize::MAX], 20);
            raise(dir, "MANIFEST.copy", 8, &[0..20, 28..usize::MAX], 20);
        }),
        (WAL, &|dir| raise(dir, WAL, 8, std::slice::from_ref(&(0..28)), 28)),
        (segment, &|dir| {
            raise(dir, segment, 8, std::slice::from_ref(&(0..24)), 24)
        }),
        (segment, &|dir| {
            raise(
                dir,
                segment,
                trailer + 12,
                std::slice::from_ref(&(trailer..trailer + 16)),
                trailer + 16,
            );
        }),
    ];
    for (file, change) in cases {
        let dir = copied();
        change(dir.path());
        let untouched = std::fs::read(dir.path().join(file)).unwrap();
        let errors = [
            Index::open(dir.path(), options(1)).err(),
            Snapshot::open(dir.path(), &options(1)).err(),
        ];
        for error in errors {
            let told = error.map(|error| error.to_string()).unwrap_or_default();
            for part in [file.rsplit('/').next().unwrap(), "version 2", "newer"] {
                assert!(told.contains(part), "{file}: {told}");
            }
        }
        assert_eq!(
            std::fs::read(dir.path().join(file)).unwrap(),
            untouched,
            "{file} is left alone"
        );
    }
}
