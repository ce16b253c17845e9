//! Windows in a folder: life, damage, months, limits.

use std::path::{Path, PathBuf};

use super::*;

pub(super) const DAY: i64 = 86_400;
/// 15 November 2026.
pub(super) const NOW: i64 = 1_794_700_800;
pub(super) const NEVER: &[SegmentMark] = &[];

impl Windows {
    /// One question.
    pub(super) fn may_know(&self, issuance: u64, not_after: Option<i64>) -> Hint {
        self.may_know_batch(&[(issuance, not_after)])[0]
    }

    /// The end of a process that ends well.
    pub(super) fn close(self) {
        self.finish();
    }
}

pub(super) type Issuance = (u64, Option<i64>);

/// Uniform and different, as issuance hashes are.
pub(super) fn hash(number: u64) -> u64 {
    xxhash_rust::xxh3::xxh3_64(&number.to_le_bytes())
}

/// Dates in `days` days.
fn issuances(numbers: std::ops::Range<u64>, days: i64) -> Vec<Issuance> {
    numbers.map(|n| (hash(n), Some(NOW + days * DAY))).collect()
}

pub(super) fn mark(id: u64) -> SegmentMark {
    SegmentMark { id, stamp: hash(id) }
}

pub(super) fn small() -> FilterOptions {
    FilterOptions {
        bytes_max: 8 << 20,
        keys_first: 1_000,
        pending_keys: 2_000,
        ..FilterOptions::default()
    }
}

/// No segment to read.
pub(super) fn settle(windows: &Windows) {
    let settled = windows
        .catch_up(|mark| -> crate::Result<Option<std::iter::Empty<_>>> {
            panic!("segment {} is read again", mark.id)
        })
        .unwrap();
    assert_eq!(settled, Settled::default());
}

/// Inserts again what `segments` hold; gives the numbers of those read.
fn settle_from(windows: &Windows, segments: &[(SegmentMark, &[Issuance])]) -> Vec<u64> {
    let mut read = Vec::new();
    windows
        .catch_up(|mark| {
            read.push(mark.id);
            let found = segments.iter().find(|(found, _)| *found == mark);
            Ok(found.map(|(_, held)| held.iter().copied().map(Ok)))
        })
        .unwrap();
    read
}

#[track_caller]
pub(super) fn assert_maybe(windows: &Windows, held: &[Issuance]) {
    let hints = windows.may_know_batch(held);
    for (&(key, date), hint) in held.iter().zip(hints) {
        assert_eq!(windows.may_know(key, date), Hint::Maybe, "{key:x} {date:?}");
        assert_eq!(hint, Hint::Maybe, "{key:x} {date:?} in a batch");
    }
}

/// The part that is new, which one by one and in a batch must be the same.
#[track_caller]
fn part_new(windows: &Windows, asked: &[Issuance]) -> f64 {
    let hints = windows.may_know_batch(asked);
    for (&(key, date), &hint) in asked.iter().zip(&hints) {
        assert_eq!(windows.may_know(key, date), hint);
    }
    hints.iter().filter(|hint| **hint == Hint::New).count() as f64 / asked.len() as f64
}

pub(super) fn filter_files(dir: &Path) -> Vec<PathBuf> {
    let mut files: Vec<PathBuf> = std::fs::read_dir(dir.join("filters"))
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "bloom"))
        .collect();
    files.sort();
    files
}

#[test]
fn what_was_inserted_is_maybe_and_the_rest_new_in_memory_in_files_and_after_reopening() {
    let dir = tempfile::tempdir().unwrap();
    let held: Vec<Issuance> = (-500..900)
        .step_by(7)
        .zip(0..)
        .flat_map(|(days, n)| issuances(n * 40..n * 40 + 40, days))
        .chain((1_000_000..1_000_020).map(|n| (hash(n), None)))
        .collect();
    let strangers: Vec<Issuance> = held.iter().map(|&(key, date)| (hash(key), date)).collect();
    let dated = strangers.len() - 20;
    let windows = Windows::open(dir.path(), &[], NOW, small());
    settle(&windows);
    assert_eq!(part_new(&windows, &held[..dated]), 1.0);

    windows.insert_batch(&held);
    assert_maybe(&windows, &held);
    assert_eq!(part_new(&windows, &strangers[..dated]), 1.0, "memory is exact");
    windows.cover(&[mark(1)]);
    assert_eq!(windows.stats().pending_keys, 0, "a checkpoint was worth it");
    assert_maybe(&windows, &held);
    assert!(part_new(&windows, &strangers[..dated]) > 0.98);
    assert_eq!(part_new(&windows, &strangers[dated..]), 0.0, "without a date");
    windows.close();

    let windows = Windows::open(dir.path(), &[mark(1)], NOW, small());
    assert_eq!(part_new(&windows, &strangers), 0.0, "files are not yet verified");
    settle(&windows);
    assert_maybe(&windows, &held);
    assert!(part_new(&windows, &strangers[..dated]) > 0.98);
    let stats = windows.stats();
    let names: Vec<_> = stats
        .windows
        .iter()
        .map(|window| window.window.as_str())
        .collect();
    assert_eq!(
        (names[0], names[14], names[15], names[16]),
        ("2026-11", "2028-01", "others", "undated")
    );
    assert!(
        stats
            .windows
            .iter()
            .all(|window| window.status == "complete" && window.keys > 0)
    );
    assert_eq!(
        (stats.off, stats.segments_covered, stats.segments_missing),
        (None, 1, 0)
    );
}

#[test]
fn segments_that_are_not_covered_are_read_again_and_everything_is_maybe_until_then() {
    let dir = tempfile::tempdir().unwrap();
    let (first, second, other) = (
        issuances(0..50, 60),
        issuances(50..90, 90),
        issuances(90..200, 60),
    );
    let windows = Windows::open(dir.path(), &[], NOW, small());
    windows.insert_batch(&first);
    windows.cover(&[mark(1)]);
    windows.checkpoint();
    windows.insert_batch(&second);
    windows.cover(&[mark(2)]);
    drop(windows); // no checkpoint: as a crash

    let live = [mark(1), mark(2)];
    let windows = Windows::open(dir.path(), &live, NOW, small());
    assert_eq!(windows.stats().segments_missing, 1);
    assert_eq!(part_new(&windows, &other), 0.0);
    let error = windows.catch_up(|_| -> crate::Result<Option<std::iter::Empty<_>>> {
        Err(crate::Error::Bug("unreadable".to_owned()))
    });
    assert!(error.is_err());
    assert_eq!(part_new(&windows, &other), 0.0, "nothing was settled");
    let read = settle_from(&windows, &[(mark(1), &first), (mark(2), &second)]);
    assert_eq!(read, [2]);
    assert_eq!(part_new(&windows, &other), 1.0);
    assert_maybe(&windows, &first);
    assert_maybe(&windows, &second);
    drop(windows);

    let windows = Windows::open(dir.path(), &live, NOW, small());
    settle(&windows);
    assert_maybe(&windows, &second);
    drop(windows);

    // The number was given again, to other content.
    let again = SegmentMark { id: 2, stamp: 7 };
    let windows = Windows::open(dir.path(), &[mark(1), again], NOW, small());
    assert_eq!(settle_from(&windows, &[(again, &other)]), [2]);
    assert_maybe(&windows, &other);
    drop(windows);

    // The folder was copied without its filters.
    std::fs::remove_dir_all(dir.path().join("filters")).unwrap();
    let windows = Windows::open(dir.path(), &[mark(1), again], NOW, small());
    let strangers = issuances(1_000..1_100, 60);
    windows.insert_batch(&second);
    windows.cover(&[mark(3)]);
    windows.checkpoint();
    assert_eq!(part_new(&windows, &strangers), 0.0);
    assert_eq!(
        settle_from(&windows, &[(mark(1), &first), (again, &other)]),
        [1, 2]
    );
    for held in [&first, &second, &other] {
        assert_maybe(&windows, held);
    }
    assert!(part_new(&windows, &strangers) > 0.9);
}

#[test]
fn filling_from_nothing_writes_no_state_before_all_is_in() {
    let dir = tempfile::tempdir().unwrap();
    let state = state::path(&dir.path().join("filters"));
    let options = FilterOptions {
        pending_keys: 1,
        ..small()
    };
    let segments: Vec<_> = (0..4)
        .map(|id| (mark(id), issuances(id * 50..id * 50 + 50, 60)))
        .collect();
    let live: Vec<_> = segments.iter().map(|(mark, _)| *mark).collect();
    let windows = Windows::open(dir.path(), &live, NOW, options);
    let mut read = segments.iter();
    let settled = windows.catch_up(|asked| {
        let (mark, held) = read.next().unwrap();
        assert!(asked == *mark && !state.exists());
        Ok(Some(held.iter().copied().map(Ok)))
    });
    let expected = Settled {
        segments: 4,
        issuances: 200,
        gone: 0,
    };
    assert_eq!(settled.unwrap(), expected);
    assert!(state.exists());
    for (_, held) in &segments {
        assert_maybe(&windows, held);
    }
}

/// Does something to a filter file of each kind of window and opens again.
#[track_caller]
fn check_damage(damage: impl Fn(&Path)) {
    for pick in 0..3 {
        let dir = tempfile::tempdir().unwrap();
        let held: Vec<Issuance> = issuances(0..100, 60)
            .into_iter()
            .chain(issuances(100..200, -60))
            .chain((200..230).map(|n| (hash(n), None)))
            .collect();
        let windows = Windows::open(dir.path(), &[], NOW, small());
        windows.insert_batch(&held);
        windows.cover(&[mark(1)]);
        windows.close();
        let file = &filter_files(dir.path())[pick];
        damage(file);
        let windows = Windows::open(dir.path(), &[mark(1)], NOW, small());
        assert_eq!(windows.stats().off, None);
        assert_maybe(&windows, &held);
        let read = settle_from(&windows, &[(mark(1), &held)]);
        assert_eq!(read, [1], "{} is filled again", file.display());
        assert_maybe(&windows, &held);
        let (near, past) = (issuances(1_000..1_100, 60), issuances(1_100..1_200, -60));
        assert!(part_new(&windows, &near) > 0.9 && part_new(&windows, &past) > 0.9);
        drop(windows);
        let windows = Windows::open(dir.path(), &[mark(1)], NOW, small());
        settle(&windows);
        assert_maybe(&windows, &held);
        assert_eq!(filter_files(dir.path()).len(), 3, "the damaged file is gone");
    }
}

#[test]
fn a_window_whose_file_is_not_the_recorded_one_is_filled_again() {
    let change = |path: &Path, change: &dyn Fn(&mut Vec<u8>)| {
        let mut bytes = std::fs::read(path).unwrap();
        change(&mut bytes);
        std::fs::write(path, bytes).unwrap();
    };
    check_damage(|path| std::fs::remove_file(path).unwrap());
    check_damage(|path| std::fs::write(path, "").unwrap());
    check_damage(|path| change(path, &|bytes| bytes.truncate(5_000)));
    check_damage(|path| change(path, &|bytes| bytes.push(0)));
    check_damage(|path| change(path, &|bytes| bytes[0] ^= 1));
    check_damage(|path| change(path, &|bytes| bytes[40] ^= 1));
    // One bit that was set is not any more: every other check would let it pass.
    check_damage(|path| {
        change(path, &|bytes| {
            let byte = bytes[4_096..].iter_mut().find(|byte| **byte != 0).unwrap();
            *byte &= *byte - 1;
        });
    });
    // A whole filter of the same shape and name, without a key.
    check_damage(|path| {
        let geometry = *tamis_bloom::Filter::open(path).unwrap().geometry();
        std::fs::remove_file(path).unwrap();
        tamis_bloom::Filter::create(path, geometry).unwrap();
    });
}

#[test]
fn a_damaged_state_starts_anew_and_a_newer_one_is_left_alone() {
    let dir = tempfile::tempdir().unwrap();
    let held = issuances(0..100, 60);
    let windows = Windows::open(dir.path(), &[], NOW, small());
    windows.insert_batch(&held);
    windows.cover(&[mark(1)]);
    windows.close();
    let path = state::path(&dir.path().join("filters"));
    let mut bytes = std::fs::read(&path).unwrap();
    let last = bytes.len() - 9;
    bytes[last] ^= 1;
    std::fs::write(&path, &bytes).unwrap();
    let windows = Windows::open(dir.path(), &[mark(1)], NOW, small());
    assert_eq!(filter_files(dir.path()), Vec::<PathBuf>::new());
    assert_eq!(settle_from(&windows, &[(mark(1), &held)]), [1]);
    assert_maybe(&windows, &held);
    windows.close();

    let format = tamis_durable::sealed::Format {
        magic: *b"TAMISWIN",
        version: 2,
    };
    tamis_durable::sealed::publish(&path, format, b"").unwrap();
    let windows = Windows::open(dir.path(), &[mark(1)], NOW, small());
    assert!(
        windows
            .stats()
            .off
            .is_some_and(|reason| reason.contains("version 2"))
    );
    assert_maybe(&windows, &issuances(500..510, 60));
    assert_eq!(filter_files(dir.path()).len(), 1);
}

#[test]
fn a_folder_has_one_owner_and_the_other_is_off() {
    let dir = tempfile::tempdir().unwrap();
    let owner = Windows::open(dir.path(), &[], NOW, small());
    let other = Windows::open(dir.path(), &[], NOW, small());
    assert!(other.stats().off.is_some_and(|reason| reason.contains("in use")));
    let held = issuances(0..10, 60);
    other.insert_batch(&held);
    other.cover(&[mark(9)]);
    other.replaced(&[mark(9)], &[mark(10)]);
    other.roll(NOW + 900 * DAY);
    other.checkpoint();
    settle(&other);
    assert_maybe(&other, &held);
    other.close();
    settle(&owner);
    assert_eq!(part_new(&owner, &held), 1.0);
    drop(owner);
    let next = Windows::open(dir.path(), NEVER, NOW, small());
    assert_eq!(next.stats().off, None);
}

#[test]
fn made_to_answer_maybe_it_does_and_keeps_nothing() {
    for windows in [Windows::off(), Windows::always_maybe()] {
        let asked = issuances(0..10, 60);
        windows.insert_batch(&asked);
        windows.cover(&[mark(1)]);
        windows.checkpoint();
        assert_eq!(part_new(&windows, &issuances(10..20, 60)), 0.0);
        let stats = windows.stats();
        assert!(stats.off.is_some() && stats.pending_keys == 0 && stats.windows.is_empty());
        assert_eq!(windows.measure_rates(10), []);
    }
}

#[test]
fn months_that_pass_are_dropped_and_maybe_for_good() {
    let dir = tempfile::tempdir().unwrap();
    let (soon, later) = (issuances(0..100, 5), issuances(100..200, 100));
    let (far, past) = (issuances(200..300, 500), issuances(300..400, -100));
    let windows = Windows::open(dir.path(), &[], NOW, small());
    for held in [&soon, &later, &far, &past] {
        windows.insert_batch(held);
    }
    windows.cover(&[mark(1)]);
    windows.checkpoint();
    assert_eq!(filter_files(dir.path()).len(), 3);
    windows.roll(NOW + 20 * DAY);
    assert_eq!(filter_files(dir.path()).len(), 2, "the file of November is gone");
    windows.roll(NOW); // a clock set back changes nothing
    assert_eq!(windows.stats().months_dropped, 1);
    windows.roll(NOW + 90 * DAY);
    let strangers = |days| issuances(1_000..1_200, days);
    let check = |windows: &Windows| {
        for held in [&soon, &later, &far, &past] {
            assert_maybe(windows, held);
        }
        assert_eq!(part_new(windows, &strangers(5)), 0.0, "dropped");
        assert_eq!(
            part_new(windows, &strangers(40)),
            0.0,
            "dropped before it had a key"
        );
        for days in [100, 500, 900, -100] {
            assert!(part_new(windows, &strangers(days)) > 0.9, "{days}");
        }
    };
    check(&windows);
    windows.insert_batch(&strangers(5));
    windows.close();
    assert_eq!(
        filter_files(dir.path()).len(),
        2,
        "no window for months that passed"
    );
    let reopened = Windows::open(dir.path(), &[mark(1)], NOW + 90 * DAY, small());
    settle(&reopened);
    check(&reopened);
    drop(reopened);

    // Off for months, and then a clock that was set back by years: filters start anew.
    let windows = Windows::open(dir.path(), &[mark(1)], NOW + 490 * DAY, small());
    settle(&windows);
    assert_maybe(&windows, &far);
    assert_eq!(filter_files(dir.path()).len(), 1);
    windows.close();
    let windows = Windows::open(dir.path(), &[mark(1)], NOW, small());
    assert_eq!(settle_from(&windows, &[(mark(1), &soon)]), [1]);
    assert!(part_new(&windows, &strangers(5)) > 0.9);
    assert_maybe(&windows, &soon);
}

#[test]
fn strays_are_filled_again_where_they_were_lost() {
    let dir = tempfile::tempdir().unwrap();
    let far = issuances(0..100, 500);
    let windows = Windows::open(dir.path(), &[], NOW, small());
    windows.insert_batch(&far);
    windows.cover(&[mark(1)]);
    windows.close();
    std::fs::remove_file(&filter_files(dir.path())[0]).unwrap();
    // Their month has a window now, which is complete and never held them.
    let windows = Windows::open(dir.path(), &[mark(1)], NOW + 90 * DAY, small());
    windows.insert_batch(&issuances(100..101, 500));
    windows.checkpoint();
    assert_eq!(settle_from(&windows, &[(mark(1), &far)]), [1]);
    assert_maybe(&windows, &far);
    assert!(part_new(&windows, &issuances(200..300, 500)) > 0.9);
}

#[test]
fn an_issuance_stored_without_a_date_is_maybe_whatever_date_is_asked() {
    let dir = tempfile::tempdir().unwrap();
    let windows = Windows::open(dir.path(), &[], NOW, small());
    windows.insert_batch(&[(hash(1), None)]);
    windows.cover(&[mark(1)]);
    for _ in 0..2 {
        for days in [-900, 0, 60, 400, 900] {
            assert_maybe(&windows, &issuances(1..2, days));
        }
        assert_eq!(part_new(&windows, &issuances(2..12, 60)), 1.0);
        windows.checkpoint();
    }
}

#[test]
fn merged_segments_inherit_and_a_merge_nobody_told_of_is_read_again() {
    let dir = tempfile::tempdir().unwrap();
    let (first, second) = (issuances(0..50, 60), issuances(50..90, 90));
    let windows = Windows::open(dir.path(), &[], NOW, small());
    for (id, held) in [(1, &first), (2, &second)] {
        windows.insert_batch(held);
        windows.cover(&[mark(id)]);
    }
    windows.replaced(&[mark(1), mark(2)], &[mark(3)]);
    windows.close();
    let windows = Windows::open(dir.path(), &[mark(3)], NOW, small());
    settle(&windows);
    assert_maybe(&windows, &first);
    drop(windows);

    let all = [first, second].concat();
    let windows = Windows::open(dir.path(), &[mark(4)], NOW, small());
    // Replaced while it waits: what replaced it waits in its place.
    windows.replaced(&[mark(4)], &[mark(5)]);
    assert_eq!(windows.stats().segments_missing, 1);
    assert_eq!(settle_from(&windows, &[(mark(5), &all)]), [5]);
    assert_maybe(&windows, &all);
    // Removed: nothing to inherit.
    windows.replaced(&[mark(5)], &[]);
    windows.close();
    let windows = Windows::open(dir.path(), &[], NOW, small());
    settle(&windows);
    assert_eq!(windows.stats().segments_covered, 0);
}

#[test]
fn windows_grow_within_the_rate_and_the_measured_rate_is_the_expected() {
    let dir = tempfile::tempdir().unwrap();
    let options = FilterOptions {
        rate: 0.1,
        bytes_max: 1 << 20,
        ..small()
    };
    let windows = Windows::open(dir.path(), &[], NOW, options);
    windows.insert_batch(&issuances(0..100_000, 60));
    windows.insert_batch(&issuances(200_000..203_000, 90));
    windows.checkpoint();
    let (stats, measured) = (windows.stats(), windows.measure_rates(200_000));
    assert!(stats.bytes <= options.bytes_max, "{stats:?}");
    assert_eq!(measured.len(), 2);
    for (window, (name, measured)) in stats.windows.iter().zip(&measured) {
        assert_eq!(window.window, *name);
        assert!(window.files > 1 && window.keys <= window.planned, "{window:?}");
        assert!(
            window.saturation() <= 1.0 && window.expected_rate < 0.1,
            "{window:?}"
        );
        // Six standard deviations of 200,000 questions, and 2 % for keys that were taken for seen.
        let expected = window.expected_rate;
        let tolerance = 6.0 * (expected / 200_000.0).sqrt() + expected * 0.02;
        assert!(
            (measured - expected).abs() < tolerance,
            "{window:?} measured {measured}"
        );
    }
}

#[test]
fn a_budget_that_is_used_up_closes_a_window_and_not_the_others() {
    let dir = tempfile::tempdir().unwrap();
    let options = FilterOptions {
        bytes_max: 100_000,
        ..small()
    };
    let windows = Windows::open(dir.path(), &[], NOW, options);
    let near = issuances(0..1_000, 60);
    windows.insert_batch(&near);
    windows.checkpoint();
    let past = issuances(10_000..400_000, -60);
    windows.insert_batch(&past);
    windows.cover(&[mark(1)]);
    let stats = windows.stats();
    let statuses: Vec<_> = stats
        .windows
        .iter()
        .map(|window| (window.window.as_str(), window.status))
        .collect();
    assert_eq!(statuses, [("2027-01", "complete"), ("others", "closed")]);
    assert_maybe(&windows, &past[..1_000]);
    assert_eq!(part_new(&windows, &issuances(500_000..500_100, -60)), 0.0);
    assert!(part_new(&windows, &issuances(500_000..500_100, 60)) > 0.9);
    windows.close();
    let windows = Windows::open(dir.path(), &[mark(1)], NOW, options);
    settle(&windows);
    assert_maybe(&windows, &past[..1_000]);
    assert_maybe(&windows, &near);
    assert!(part_new(&windows, &issuances(500_000..500_100, 60)) > 0.9);

    let nothing = FilterOptions {
        bytes_max: 0,
        ..small()
    };
    let dir = tempfile::tempdir().unwrap();
    let windows = Windows::open(dir.path(), &[], NOW, nothing);
    windows.insert_batch(&near);
    windows.checkpoint();
    assert_maybe(&windows, &near);
    assert_eq!((filter_files(dir.path()).len(), windows.stats().off), (0, None));
}

#[test]
fn a_disk_that_fails_turns_filters_off_and_nothing_else() {
    let dir = tempfile::tempdir().unwrap();
    let held = issuances(0..100, 60);
    let windows = Windows::open(dir.path(), &[], NOW, small());
    windows.insert_batch(&held);
    windows.checkpoint();
    // No new file can be made there, and none be published.
    std::fs::remove_dir_all(dir.path().join("filters")).unwrap();
    windows.insert_batch(&issuances(100..200, 90));
    windows.cover(&[mark(1)]);
    windows.checkpoint();
    let stats = windows.stats();
    assert!(
        stats
            .off
            .as_deref()
            .is_some_and(|reason| reason.contains("does not exist")),
        "{stats:?}"
    );
    assert_maybe(&windows, &issuances(1_000..1_010, 60));
    windows.insert_batch(&held);
    windows.roll(NOW + 60 * DAY);
    windows.close();
    let file = dir.path().join("file");
    std::fs::write(&file, "").unwrap();
    assert!(Windows::open(&file, &[], NOW, small()).stats().off.is_some());
}

#[test]
fn impossible_settings_are_made_possible() {
    let dir = tempfile::tempdir().unwrap();
    let options = FilterOptions {
        rate: f64::NAN,
        keys_first: 0,
        pending_keys: 0,
        bytes_max: 1 << 20,
    };
    let held = issuances(0..100, 60);
    let windows = Windows::open(dir.path(), &[], i64::MAX, options);
    windows.insert_batch(&held);
    drop(windows);
    let windows = Windows::open(&dir.path().join("other"), &[], NOW, options);
    windows.insert_batch(&held);
    assert_maybe(&windows, &held);
    assert_eq!(windows.stats().pending_keys, 0);
    assert!(windows.stats().windows[0].expected_rate < 0.01);
}

#[test]
fn questions_and_inserts_go_on_while_checkpoints_are_made() {
    let dir = tempfile::tempdir().unwrap();
    let windows = Windows::open(dir.path(), &[], NOW, small());
    let all = issuances(0..20_000, 60);
    std::thread::scope(|scope| {
        // Ends with the sender, even if this thread panics.
        let (going_on, ended) = std::sync::mpsc::channel::<()>();
        let windows = &windows;
        scope.spawn(move || {
            while ended.try_recv() == Err(std::sync::mpsc::TryRecvError::Empty) {
                windows.checkpoint();
            }
        });
        for (id, held) in all.chunks(500).enumerate() {
            windows.insert_batch(held);
            windows.cover(&[mark(id as u64)]);
            assert_maybe(windows, held);
            assert_maybe(windows, &all[..500]);
        }
        drop(going_on);
    });
    assert_maybe(&windows, &all);
    windows.close();
    let live: Vec<_> = (0..40).map(mark).collect();
    let windows = Windows::open(dir.path(), &live, NOW, small());
    settle(&windows);
    assert_maybe(&windows, &all);
}
