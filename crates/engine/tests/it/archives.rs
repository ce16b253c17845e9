//! Logs that are gone and live on as zip files.

use std::fs;
use std::path::{Path, PathBuf};

use tamis_ct_log::key::PublicKey;
use tamis_engine::follow::{FollowOptions, LieKind, LogStatus, PressureLimits, SingleLog, Summary};
use tamis_testbed::ctlog::{Log, LogKind};
use tempfile::TempDir;

use crate::run::{Folder, log, single, world};

/// Archives of logs, in a folder each.
struct Archives(TempDir);

impl Archives {
    fn of<'l>(logs: impl IntoIterator<Item = &'l Log>) -> Self {
        let folder = tempfile::tempdir().unwrap();
        for log in logs {
            log.write_archive(folder.path()).unwrap();
        }
        Self(folder)
    }

    fn folder(&self, log: &Log) -> PathBuf {
        self.0.path().join(format!("ct_{}", log.name()))
    }

    fn file(&self, log: &Log) -> PathBuf {
        self.folder(log).join("000.zip")
    }

    /// Breaks the bytes of an entry, behind its header.
    fn damage(&self, log: &Log, entry: &str) {
        let path = self.file(log);
        let mut bytes = fs::read(&path).unwrap();
        let at = bytes
            .windows(entry.len())
            .position(|window| window == entry.as_bytes())
            .unwrap();
        for byte in &mut bytes[at + entry.len() + 20..at + entry.len() + 30] {
            *byte ^= 0x55;
        }
        fs::write(path, bytes).unwrap();
    }
}

fn url(path: &Path) -> String {
    format!("archive+file://{}", path.display())
}

fn archived(log: &Log, path: &Path) -> SingleLog {
    SingleLog {
        url: url(path),
        key: PublicKey::from_base64(&log.key_base64()).unwrap(),
    }
}

/// Follows archives until they end by themselves.
fn read(folder: &Folder, logs: Vec<SingleLog>) -> Summary {
    let options = FollowOptions {
        logs,
        ..FollowOptions::default()
    };
    folder.start(options).end()
}

#[track_caller]
fn status(summary: &Summary) -> &LogStatus {
    let [status] = summary.status.logs.as_slice() else {
        panic!("not one log: {summary:#?}");
    };
    status
}

#[test]
fn archives_are_read_whole_proved_and_end_by_themselves() {
    let world = world([
        log("old", LogKind::Rfc6962, 1_100).rsa(),
        log("static", LogKind::Static, 1_100),
        log("even", LogKind::Static, 512),
        log("one", LogKind::Rfc6962, 1),
        log("empty", LogKind::Static, 0),
    ]);
    let logs = world.logs();
    let archives = Archives::of(&logs);
    for log in &logs {
        log.reset_report();
    }
    let folder = Folder::new();
    let listed = logs.iter().map(|log| archived(log, &archives.folder(log)));
    let summary = read(&folder, listed.collect());
    assert_eq!(summary.failing, []);
    for log in &logs {
        let name = url(&archives.folder(log));
        let status = summary
            .status
            .logs
            .iter()
            .find(|status| status.url == name)
            .unwrap();
        assert_eq!(status.lies, []);
        assert_eq!(
            (
                status.verified,
                status.read,
                status.status.as_str(),
                &status.error
            ),
            (log.size(), log.size(), "finished", &None),
            "{status:#?}"
        );
        assert_eq!(status.root, Some(log.root().to_string()));
        if log.size() > 0 {
            folder.check_all_but(log, &name, |_| false);
        }
        assert_eq!(log.report().total(), 0, "nothing is asked over HTTP");
    }
    let issuers = fs::read_dir(folder.path().join("follow/issuers")).unwrap();
    assert!(issuers.count() > 3);
}

#[test]
fn a_large_archive_is_read_from_its_tail_and_again_reads_nothing() {
    let world = world([log("large", LogKind::Rfc6962, 40_000)]);
    let log = world.log("large");
    let archives = Archives::of([&log]);
    // One of the files does as well as the folder.
    let single = || vec![archived(&log, &archives.file(&log))];
    let folder = Folder::new();
    let summary = read(&folder, single());
    assert_eq!((summary.entries, status(&summary).verified), (40_000, 40_000));
    assert_eq!(status(&summary).ranges, [[0, 40_000]]);
    let again = read(&folder, single());
    assert_eq!((again.entries, again.failing), (0, vec![]));
}

#[test]
fn what_was_read_while_the_log_lived_is_not_read_again() {
    for kind in [LogKind::Rfc6962, LogKind::Static] {
        let world = world([log("mortal", kind, 700)]);
        let log = world.log("mortal");
        let folder = Folder::new();
        folder.catch_up(FollowOptions {
            logs: vec![single(&log)],
            ..FollowOptions::default()
        });
        log.grow(600);
        let archives = Archives::of([&log]);
        let summary = read(&folder, vec![archived(&log, &archives.folder(&log))]);
        assert_eq!((summary.entries, status(&summary).verified), (600, 1_300));
        folder.check_whole([&log]);
    }
}

#[test]
fn damaged_tiles_are_passed_over_and_all_others_read() {
    let world = world([log("hurt", LogKind::Rfc6962, 2_000)]);
    let log = world.log("hurt");
    for damaged in [
        vec![0, 3],
        vec![0, 1],
        vec![4],
        vec![7],
        (0..8).collect::<Vec<u64>>(),
    ] {
        let archives = Archives::of([&log]);
        for tile in &damaged {
            let part = if *tile == 7 { ".p/208" } else { "" };
            archives.damage(&log, &format!("tile/data/{tile:03}{part}"));
        }
        let single = || vec![archived(&log, &archives.folder(&log))];
        let folder = Folder::new();
        let summary = read(&folder, single());
        let is_lost = |index: u64| damaged.contains(&(index / 256));
        let lost = (0..2_000).filter(|index| is_lost(*index)).count() as u64;
        let told = status(&summary);
        assert_eq!((told.backlog, told.unproved), (lost, 0), "{damaged:?}: {told:#?}");
        assert_eq!((told.status.as_str(), &told.lies), ("finished", &vec![]));
        let (_, why) = &summary.failing[0];
        assert!(
            why.contains("damaged") && why.contains(&format!("{lost} leaves")) && why.contains("tile/data/0"),
            "{why}"
        );
        folder.check_all_but(&log, &url(&archives.folder(&log)), is_lost);
        // Once the file is whole, the rest comes.
        log.write_archive(archives.0.path()).unwrap();
        let healed = read(&folder, single());
        assert_eq!((healed.entries, status(&healed).verified), (lost, 2_000));
        folder.check_all_but(&log, &url(&archives.folder(&log)), |_| false);
    }
}

#[test]
fn entries_prove_themselves_where_tiles_of_hashes_are_damaged() {
    let world = world([log("hurt", LogKind::Static, 40_000)]);
    let log = world.log("hurt");
    let archives = Archives::of([&log]);
    archives.damage(&log, "tile/1/000.p/156");
    let folder = Folder::new();
    let summary = read(&folder, vec![archived(&log, &archives.folder(&log))]);
    let told = status(&summary);
    assert_eq!(
        (told.read, told.backlog, told.status.as_str()),
        (40_000, 0, "finished")
    );
    // The tail begins in the middle and cannot be joined without that tile.
    assert!(
        told.error.as_ref().unwrap().contains("tile/1/000.p/156"),
        "{told:#?}"
    );
    assert_eq!(summary.failing.len(), 1);
}

#[test]
fn the_root_proves_what_a_damaged_tile_of_hashes_cannot() {
    // A log that is read from its start and settled once on the way.
    let world = world([log("small", LogKind::Static, 20_000)]);
    let log = world.log("small");
    let archives = Archives::of([&log]);
    archives.damage(&log, "tile/1/000.p/78");
    let folder = Folder::new();
    // What waits for the end of an archive is no reason to wait.
    let options = FollowOptions {
        logs: vec![archived(&log, &archives.folder(&log))],
        pressure: PressureLimits {
            unproved: 1_000,
            ..PressureLimits::default()
        },
        ..FollowOptions::default()
    };
    let summary = folder.start(options).end();
    assert_eq!((status(&summary).verified, summary.failing), (20_000, vec![]));
}

#[test]
fn entries_that_are_not_those_that_were_signed_are_found() {
    let world = world([log("liar", LogKind::Static, 1_000)]);
    let log = world.log("liar");
    let archives = Archives::of([&log]);
    forge_tile(&archives.file(&log));
    let folder = Folder::new();
    let summary = read(&folder, vec![archived(&log, &archives.folder(&log))]);
    let told = status(&summary);
    assert_eq!(
        (told.read, told.verified, told.unproved, told.status.as_str()),
        (1_000, 256, 0, "finished")
    );
    let [lie] = told.lies.as_slice() else {
        panic!("{told:#?}");
    };
    assert_eq!(
        (lie.kind, lie.leaves, lie.healed),
        (LieKind::Entry, [256, 257], false)
    );
}

/// Changes a byte in a certificate of `tile/data/001`, under a right checksum.
fn forge_tile(path: &Path) {
    use std::io::{Read as _, Write as _};
    const NAME: &str = "tile/data/001";
    let mut old = zip::ZipArchive::new(std::io::Cursor::new(fs::read(path).unwrap())).unwrap();
    let mut tile = Vec::new();
    old.by_name(NAME).unwrap().read_to_end(&mut tile).unwrap();
    tile[200] ^= 1;
    let mut new = zip::ZipWriter::new(fs::File::create(path).unwrap());
    for place in 0..old.len() {
        let entry = old.by_index_raw(place).unwrap();
        if entry.name() != NAME {
            new.raw_copy_file(entry).unwrap();
        }
    }
    new.start_file(NAME, zip::write::SimpleFileOptions::default())
        .unwrap();
    new.write_all(&tile).unwrap();
    new.finish().unwrap();
}

#[test]
fn a_file_that_is_not_there_is_one_hole() {
    let world = world([log("parted", LogKind::Static, 1_000)]);
    let log = world.log("parted");
    let archives = Archives::of([&log]);
    let first = archives.file(&log);
    fs::rename(&first, first.with_file_name("001.zip")).unwrap();
    let folder = Folder::new();
    let summary = read(&folder, vec![archived(&log, &archives.folder(&log))]);
    let told = status(&summary);
    assert_eq!((told.tree_size, told.backlog, told.requests), (1_000, 1_000, 1));
    assert!(
        summary.failing[0].1.contains("has no file 000.zip"),
        "{:?}",
        summary.failing
    );
}

#[test]
fn what_is_no_archive_of_this_log_says_so_and_ends() {
    let world = world([
        log("alpha", LogKind::Static, 300),
        log("beta", LogKind::Static, 300),
    ]);
    let (alpha, beta) = (world.log("alpha"), world.log("beta"));
    let archives = Archives::of([&alpha]);
    let check = |single: SingleLog, expected: &str| {
        let folder = Folder::new();
        let summary = read(&folder, vec![single]);
        assert_eq!(summary.entries, 0);
        let (_, why) = &summary.failing[0];
        assert!(why.contains(expected), "{why}");
    };
    check(archived(&beta, &archives.folder(&alpha)), "signature");
    check(archived(&alpha, Path::new("/nowhere")), "holds no archive");
    check(archived(&alpha, archives.0.path()), "holds no archive");
    let file = archives.file(&alpha);
    let whole = fs::read(&file).unwrap();
    fs::write(&file, &whole[..whole.len() - 30]).unwrap();
    check(archived(&alpha, &archives.folder(&alpha)), "no whole zip file");
    fs::write(&file, b"").unwrap();
    check(archived(&alpha, &archives.folder(&alpha)), "no whole zip file");
}
