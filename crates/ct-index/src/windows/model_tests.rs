//! Windows against a model: whatever is done to the folder, no issuance of a live segment is ever "new".

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use proptest::prelude::*;
use tempfile::TempDir;

use super::tests::{DAY, Issuance, NOW, assert_maybe, filter_files, hash};
use super::*;

const PAGE: usize = 4_096;

#[derive(Debug, Clone)]
enum Op {
    /// A segment is written; an older program inserts and covers nothing, until the next opening.
    Flush {
        numbers: Vec<u16>,
        covered: bool,
    },
    Checkpoint,
    /// Segments can be read, or so many of them.
    CatchUp(Option<u8>),
    Roll(u8),
    /// Two segments are merged; the windows are told or not.
    Compact {
        pick: u8,
        told: bool,
    },
    /// In order, or as a kill.
    Reopen {
        closed: bool,
        damage: Vec<Damage>,
    },
    /// An older program writes and merges segments without filters.
    OlderProgram {
        numbers: Vec<u16>,
        merge: bool,
    },
    Backup,
    /// Two copies of the folder go on from here, with segments of equal numbers, and the filters of one come
    /// to the other.
    Fork {
        numbers: [Vec<u16>; 2],
        told: bool,
    },
    /// Of a backup: all, or the filters alone, or their state alone.
    Restore(Restored),
    /// Killed in a checkpoint: files are changed, the state is not. Pages may be of before where not synced.
    KillInCheckpoint {
        old_pages: u64,
    },
}

#[derive(Debug, Clone)]
enum Damage {
    Lose(u8),
    Cut(u8, u16),
    Flip(u8, u32),
    /// Two files change places.
    Swap(u8, u8),
    /// The file, or those pages of it, are those of the backup.
    Old(u8, u64),
    LoseState,
    FlipState(u16),
}

#[derive(Debug, Clone, Copy)]
enum Restored {
    All,
    Filters,
    State,
}

type Segments = BTreeMap<SegmentMark, Vec<Issuance>>;

struct World {
    dir: TempDir,
    backup: Option<(TempDir, Segments)>,
    live: Segments,
    next_id: u64,
    now: i64,
    options: FilterOptions,
    windows: Option<Windows>,
}

fn numbers() -> impl Strategy<Value = Vec<u16>> {
    prop::collection::vec(0_u16..600, 1..60)
}

fn damage() -> impl Strategy<Value = Damage> {
    let pages = prop_oneof![Just(u64::MAX), any::<u64>()];
    prop_oneof![
        1 => any::<u8>().prop_map(Damage::Lose),
        1 => (any::<u8>(), any::<u16>()).prop_map(|(file, at)| Damage::Cut(file, at)),
        3 => (any::<u8>(), any::<u32>()).prop_map(|(file, bit)| Damage::Flip(file, bit)),
        1 => (any::<u8>(), any::<u8>()).prop_map(|(a, b)| Damage::Swap(a, b)),
        3 => (any::<u8>(), pages).prop_map(|(file, pages)| Damage::Old(file, pages)),
        1 => Just(Damage::LoseState),
        1 => any::<u16>().prop_map(Damage::FlipState),
    ]
}

fn op() -> impl Strategy<Value = Op> {
    let restored = prop_oneof![
        Just(Restored::All),
        Just(Restored::Filters),
        Just(Restored::State)
    ];
    let picked_damage = prop_oneof![Just(Vec::new()), prop::collection::vec(damage(), 1..3)];
    prop_oneof![
        6 => (numbers(), prop::bool::weighted(0.8)).prop_map(|(numbers, covered)| Op::Flush { numbers, covered }),
        2 => Just(Op::Checkpoint),
        4 => prop_oneof![3 => Just(None), 1 => (0_u8..4).prop_map(Some)].prop_map(Op::CatchUp),
        1 => (0_u8..4).prop_map(Op::Roll),
        2 => (any::<u8>(), any::<bool>()).prop_map(|(pick, told)| Op::Compact { pick, told }),
        4 => (any::<bool>(), picked_damage).prop_map(|(closed, damage)| Op::Reopen { closed, damage }),
        1 => (numbers(), any::<bool>()).prop_map(|(numbers, merge)| Op::OlderProgram { numbers, merge }),
        1 => Just(Op::Backup),
        1 => (numbers(), numbers(), any::<bool>()).prop_map(|(a, b, told)| Op::Fork { numbers: [a, b], told }),
        2 => restored.prop_map(Op::Restore),
        2 => any::<u64>().prop_map(|old_pages| Op::KillInCheckpoint { old_pages }),
    ]
}

/// Thousands of syncs: in memory where there is such a file system.
fn folder() -> TempDir {
    tempfile::tempdir_in("/dev/shm").unwrap_or_else(|_| tempfile::tempdir().unwrap())
}

/// Near, past, far ahead, at the ends of time or unreadable; some hashes come with two dates.
fn issuance(number: u16) -> Issuance {
    let days = match number % 12 {
        0 => return (hash(u64::from(number)), None),
        1 => -400,
        2 => 480 + i64::from(number),
        3 => return (hash(u64::from(number)), Some(i64::MAX)),
        4 => 20,
        _ => i64::from(number) % 430,
    };
    (hash(u64::from(number / 2)), Some(NOW + days * DAY))
}

fn copy_folder(from: &Path, to: &Path) {
    let _ = fs::remove_dir_all(to);
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).into_iter().flatten() {
        let entry = entry.unwrap();
        fs::copy(entry.path(), to.join(entry.file_name())).unwrap();
    }
}

/// Puts the pages of `old` that the bits of `pages` name into the file at `path`.
fn put_old_pages(path: &Path, old: &Path, pages: u64) {
    let (Ok(mut bytes), Ok(old)) = (fs::read(path), fs::read(old)) else {
        return;
    };
    for (number, (page, old)) in bytes.chunks_mut(PAGE).zip(old.chunks(PAGE)).enumerate() {
        if pages >> (number % 64) & 1 == 1 && page.len() == old.len() {
            page.copy_from_slice(old);
        }
    }
    fs::write(path, bytes).unwrap();
}

fn flip(path: &Path, bit: usize) {
    if let Ok(mut bytes) = fs::read(path)
        && !bytes.is_empty()
    {
        let at = bit / 8 % bytes.len();
        bytes[at] ^= 1 << (bit % 8);
        fs::write(path, bytes).unwrap();
    }
}

impl World {
    fn new(options: FilterOptions) -> Self {
        let mut world = Self {
            dir: folder(),
            backup: None,
            live: Segments::new(),
            next_id: 1,
            now: NOW,
            options,
            windows: None,
        };
        world.open();
        world
    }

    fn windows(&self) -> &Windows {
        self.windows.as_ref().unwrap()
    }

    fn filters(&self) -> std::path::PathBuf {
        self.dir.path().join("filters")
    }

    fn open(&mut self) {
        self.windows = None;
        let live: Vec<_> = self.live.keys().copied().collect();
        self.windows = Some(Windows::open(self.dir.path(), &live, self.now, self.options));
    }

    /// Ends the process as a kill does: what is in the files now is in them afterwards.
    fn kill(&mut self) {
        let left = folder();
        copy_folder(&self.filters(), left.path());
        self.windows = None;
        copy_folder(left.path(), &self.filters());
    }

    fn new_segment(&mut self, issuances: Vec<Issuance>) -> SegmentMark {
        let text = format!("{issuances:?}");
        let stamp = xxhash_rust::xxh3::xxh3_64(text.as_bytes());
        let mark = SegmentMark {
            id: self.next_id,
            stamp,
        };
        self.next_id += 1;
        self.live.insert(mark, issuances);
        mark
    }

    fn merge(&mut self, pick: u8) -> Option<([SegmentMark; 2], SegmentMark)> {
        let marks: Vec<_> = self.live.keys().copied().collect();
        if marks.len() < 2 {
            return None;
        }
        let old = [0, 1].map(|next| marks[(usize::from(pick) + next) % marks.len()]);
        let merged = old
            .iter()
            .filter_map(|mark| self.live.remove(mark))
            .flatten()
            .collect();
        Some((old, self.new_segment(merged)))
    }

    fn damage(&self, damage: &Damage) {
        let files = filter_files(self.dir.path());
        let state = state::path(&self.filters());
        let of = |pick: &u8| files.get(usize::from(*pick) % files.len().max(1));
        match damage {
            Damage::LoseState => drop(fs::remove_file(state)),
            Damage::FlipState(bit) => flip(&state, usize::from(*bit)),
            Damage::Lose(pick) => drop(of(pick).map(fs::remove_file)),
            Damage::Cut(pick, at) => drop(of(pick).map(|path| {
                let bytes = fs::read(path).unwrap();
                fs::write(path, &bytes[..usize::from(*at) % bytes.len().max(1)]).unwrap();
            })),
            // The first pages, where a bit matters.
            Damage::Flip(pick, bit) => drop(of(pick).map(|path| flip(path, *bit as usize))),
            Damage::Swap(a, b) => {
                if let (Some(a), Some(b)) = (of(a), of(b)) {
                    let (left, right) = (fs::read(a).unwrap(), fs::read(b).unwrap());
                    fs::write(a, right).unwrap();
                    fs::write(b, left).unwrap();
                }
            }
            Damage::Old(pick, pages) => {
                if let (Some(path), Some((backup, _))) = (of(pick), &self.backup) {
                    put_old_pages(path, &backup.path().join(path.file_name().unwrap()), *pages);
                }
            }
        }
    }

    fn apply(&mut self, op: &Op) {
        match op {
            Op::Flush { numbers, covered } => {
                let issuances: Vec<_> = numbers.iter().map(|number| issuance(*number)).collect();
                self.windows().insert_batch(&issuances);
                let mark = self.new_segment(issuances);
                if *covered {
                    self.windows().cover(&[mark]);
                }
            }
            Op::Checkpoint => self.windows().checkpoint(),
            Op::CatchUp(most) => self.catch_up(*most),
            Op::Roll(months) => {
                self.now += i64::from(*months) * 30 * DAY;
                self.windows().roll(self.now);
            }
            Op::Compact { pick, told } => {
                if let (Some((old, new)), true) = (self.merge(*pick), *told) {
                    self.windows().replaced(&old, &[new]);
                }
            }
            Op::Reopen { closed, damage } => {
                self.end(*closed);
                for damage in damage {
                    self.damage(damage);
                }
                self.open();
            }
            Op::OlderProgram { numbers, merge } => {
                self.end(true);
                self.new_segment(numbers.iter().map(|number| issuance(*number)).collect());
                if *merge {
                    self.merge(numbers.len() as u8);
                }
                self.open();
            }
            Op::Backup => {
                let backup = folder();
                copy_folder(&self.filters(), backup.path());
                self.backup = Some((backup, self.live.clone()));
            }
            Op::Fork {
                numbers: [a, b],
                told,
            } => {
                let flush = |numbers: &[u16], covered| Op::Flush {
                    numbers: numbers.to_vec(),
                    covered,
                };
                self.apply(&Op::Backup);
                self.apply(&flush(a, true));
                self.apply(&Op::Checkpoint);
                self.restore(Restored::All);
                self.apply(&flush(b, *told));
                self.restore(Restored::Filters);
            }
            Op::Restore(what) => self.restore(*what),
            Op::KillInCheckpoint { old_pages } => self.kill_in_checkpoint(*old_pages),
        }
    }

    fn end(&mut self, closed: bool) {
        if closed {
            self.windows.take().unwrap().close();
        } else {
            self.kill();
        }
    }

    /// What was there becomes the backup, so that a later one can bring back what is then the future.
    fn restore(&mut self, what: Restored) {
        let Some((backup, live)) = self.backup.take() else {
            return;
        };
        self.kill();
        let present = folder();
        copy_folder(&self.filters(), present.path());
        self.backup = Some((present, self.live.clone()));
        match what {
            Restored::State => {
                let _ = fs::copy(state::path(backup.path()), state::path(&self.filters()));
            }
            Restored::Filters => copy_folder(backup.path(), &self.filters()),
            Restored::All => {
                copy_folder(backup.path(), &self.filters());
                // Numbers are given again from here on, to other segments.
                self.next_id = live.keys().map(|mark| mark.id + 1).max().unwrap_or(1);
                self.live = live;
            }
        }
        self.open();
    }

    fn kill_in_checkpoint(&mut self, old_pages: u64) {
        let before = folder();
        copy_folder(&self.filters(), before.path());
        self.windows().checkpoint();
        self.kill();
        // Removal of files comes after the state: those that were there are there.
        for entry in fs::read_dir(before.path()).unwrap() {
            let entry = entry.unwrap();
            let now = self.filters().join(entry.file_name());
            if !now.exists() || now == state::path(&self.filters()) {
                fs::copy(entry.path(), now).unwrap();
            } else {
                put_old_pages(&now, &entry.path(), old_pages);
            }
        }
        if !state::path(before.path()).exists() {
            let _ = fs::remove_file(state::path(&self.filters()));
        }
        self.open();
    }

    fn catch_up(&self, most: Option<u8>) {
        let mut left = most.map_or(usize::MAX, usize::from);
        let settled = self.windows().catch_up(|mark| {
            if left == 0 {
                return Err(crate::Error::Bug("no more".to_owned()));
            }
            left -= 1;
            Ok(self.live.get(&mark).map(|held| held.iter().copied().map(Ok)))
        });
        if settled.is_ok_and(|settled| settled.gone == 0) {
            self.check_usefulness();
        }
    }

    /// Answering "maybe" to everything would pass every other check.
    fn check_usefulness(&self) {
        let stats = self.windows().stats();
        if let Some(reason) = stats.off {
            // Two flips may make a newer version of a damaged state; nothing else turns filters off here.
            assert!(reason.contains("format version"), "{reason}");
            return;
        }
        assert_eq!((stats.segments_missing, stats.segments_to_read), (0, 0));
        if stats.windows.iter().any(|window| window.status == "closed") {
            return;
        }
        assert!(stats.windows.iter().all(|window| window.status == "complete"));
        let strangers: Vec<Issuance> = (0..40)
            .map(|n| (hash(1_000_000 + n), Some(self.now + 60 * DAY)))
            .collect();
        let hints = self.windows().may_know_batch(&strangers);
        let new = hints.iter().filter(|hint| **hint == Hint::New).count();
        assert!(new > 0, "{:?}", self.windows().stats());
    }

    fn check(&self) {
        for held in self.live.values() {
            assert_maybe(self.windows(), held);
            // Stored without a date, and asked by a program that can read it.
            let undated = held.iter().filter(|(_, date)| date.is_none());
            let dates = [-400, 60, 500].map(|days| Some(NOW + days * DAY));
            let dated: Vec<Issuance> = undated
                .flat_map(|(key, _)| dates.map(|date| (*key, date)))
                .collect();
            assert_maybe(self.windows(), &dated);
        }
    }
}

fn run(options: FilterOptions, ops: &[Op]) {
    let mut world = World::new(options);
    for op in ops {
        world.apply(op);
        world.check();
    }
    // Whatever happened, it ends well.
    if world.windows().stats().off.is_none() {
        world.catch_up(None);
        world.check();
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    #[test]
    fn no_issuance_of_a_live_segment_is_ever_new(
        ops in prop::collection::vec(op(), 1..30),
        bytes_max in prop_oneof![Just(100_000), Just(1 << 20)],
        pending_keys in prop_oneof![Just(1), Just(64), Just(100_000)],
    ) {
        run(FilterOptions { bytes_max, keys_first: 8, rate: 0.05, pending_keys }, &ops);
    }
}
