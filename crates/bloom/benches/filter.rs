//! What a key costs and how often a new one is "maybe seen", beside fastbloom and a classic layout in the same
//! run: `cargo bench -p tamis-bloom`, or one part: `cargo bench -p tamis-bloom -- rates`.
//!
//! Rounds of all sides alternate, so that a busy machine slows all of them; medians are printed with their
//! ratios, and the best rounds, which other work on the machine disturbs least. The classic layout is the one everybody knows: probes all over the bitmap by double hashing
//! of the two halves of 128 bits, here on the same atomics. Keys are the same for all sides.

use std::fs::File;
use std::hint::black_box;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use tamis_bloom::{Filter, FilterView, Geometry};
use tamis_durable::{Advice, SharedMap};

/// 12.8 bits per key.
const RATE: f64 = 0.00236;
const ROUND_KEYS: u64 = 1 << 16;

fn main() {
    // `cargo test --benches` passes no `--bench`: small sizes show that it runs.
    let whole = std::env::args().any(|argument| argument == "--bench");
    let only = std::env::args()
        .skip(1)
        .find(|argument| !argument.starts_with("--"));
    let wanted = |part: &str| only.as_deref().is_none_or(|only| part.contains(only));
    if wanted("rates") {
        rates(if whole { 20_000_000 } else { 20_000 });
    }
    if wanted("keys") {
        let (small, large) = if whole {
            (128 << 20, 1 << 30)
        } else {
            (1 << 20, 2 << 20)
        };
        keys(small, 101);
        keys(large, 101);
    }
    if wanted("cold") {
        cold(if whole { 2 << 30 } else { 8 << 20 });
    }
}

/// Uniform, different and cheap: the n-th output of SplitMix64.
fn hash(number: u64) -> u64 {
    let mut z = number.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// Numbers of keys that are never set.
fn other(number: u64) -> u64 {
    hash(number | 1 << 63)
}

fn planned(bitmap_bytes: u64) -> Geometry {
    let bits = bitmap_bytes * 8;
    let one = Geometry::for_keys(bits, RATE).expect("a plan");
    // Keys such that the bitmap has about the bytes asked for.
    let keys = (u128::from(bits) * u128::from(bits) / u128::from(one.bits())) as u64;
    Geometry::for_keys(keys, RATE).expect("a plan")
}

/// The layout of the textbook, over atomics.
struct Classic<'a> {
    words: &'a [AtomicU64],
    probes: u32,
}

impl Classic<'_> {
    fn positions(&self, key: u64) -> impl Iterator<Item = u64> + use<> {
        let bits = self.words.len() as u64 * 64;
        let (first, step) = (hash(key), hash(key ^ 0x5bd1_e995) | 1);
        (0..u64::from(self.probes)).map(move |i| first.wrapping_add(i.wrapping_mul(step)) % bits)
    }

    fn check_and_set(&self, key: u64) -> bool {
        let mut seen = true;
        for position in self.positions(key) {
            let mask = 1 << (position % 64);
            let word = &self.words[(position / 64) as usize];
            if word.load(Ordering::Relaxed) & mask == 0 {
                word.fetch_or(mask, Ordering::Relaxed);
                seen = false;
            }
        }
        seen
    }

    fn may_hold(&self, key: u64) -> bool {
        self.positions(key).all(|position| {
            self.words[(position / 64) as usize].load(Ordering::Relaxed) & 1 << (position % 64) != 0
        })
    }
}

/// How positions within a page could be chosen otherwise, for the record.
#[derive(Clone, Copy)]
enum InPage {
    /// `a + i × b` modulo 2^15, `b` odd.
    Double15,
    /// The high 15 bits of `a + i × b` modulo 2^64.
    Double64,
}

struct OtherPaged {
    pages: Vec<[u64; 512]>,
    probes: u32,
    kind: InPage,
}

impl OtherPaged {
    fn locate(&self, key: u64) -> (usize, impl Iterator<Item = (usize, u64)> + use<>) {
        let page = (u128::from(hash(key)) * self.pages.len() as u128) >> 64;
        let (a, b) = (hash(key ^ 0x1234_5678), hash(key ^ 0x8765_4321) | 1);
        let kind = self.kind;
        let positions = (0..u64::from(self.probes)).map(move |i| {
            let position = match kind {
                InPage::Double15 => a.wrapping_add(i * (b & 0x7fff)) & 0x7fff,
                InPage::Double64 => a.wrapping_add(i.wrapping_mul(b)) >> 49,
            };
            ((position / 64) as usize, 1 << (position % 64))
        });
        (page as usize, positions)
    }

    fn set(&mut self, key: u64) {
        let (page, positions) = self.locate(key);
        for (word, mask) in positions {
            self.pages[page][word] |= mask;
        }
    }

    fn may_hold(&self, key: u64) -> bool {
        let (page, mut positions) = self.locate(key);
        positions.all(|(word, mask)| self.pages[page][word] & mask != 0)
    }
}

/// False positives at full: every filter has the same bits, probes and keys.
fn rates(queries: u64) {
    println!(
        "false-positive rate at full, {queries} queries (at rate p the standard error is 1/√(p × queries))"
    );
    println!(
        "  planned     keys probes  expected      ours    classic  fastbloom  a+ib mod 2^15  a+ib mod 2^64"
    );
    for (keys, rate) in [
        (10_000_000, 0.1),
        (10_000_000, 0.01),
        (8_000_000, RATE),
        (5_000_000, 1e-4),
        (3_000_000, 1e-6),
    ] {
        let keys = if queries < 1_000_000 { keys / 100 } else { keys };
        let geometry = Geometry::for_keys(keys, rate).expect("a plan");
        let ours = Filter::in_memory(geometry).expect("memory");
        let classic: Vec<_> = (0..geometry.bits() / 64).map(|_| AtomicU64::new(0)).collect();
        let classic = Classic {
            words: &classic,
            probes: geometry.probes(),
        };
        let peer = peer(&geometry);
        let other = |kind| OtherPaged {
            pages: vec![[0; 512]; (geometry.bits() / 32_768) as usize],
            probes: geometry.probes(),
            kind,
        };
        let mut others = [other(InPage::Double15), other(InPage::Double64)];
        for number in 0..keys {
            ours.check_and_set(hash(number));
            classic.check_and_set(hash(number));
            peer.insert_hash(hash(number));
            others.iter_mut().for_each(|other| other.set(hash(number)));
        }
        let rate_of = |held: &dyn Fn(u64) -> bool| {
            (0..queries).filter(|&number| held(self::other(number))).count() as f64 / queries as f64
        };
        println!(
            "{rate:9.6} {keys:8} {:6} {:9.3e} {:9.3e}  {:9.3e}  {:9.3e}      {:9.3e}      {:9.3e}",
            geometry.probes(),
            geometry.false_positive_rate_at(keys),
            rate_of(&|key| ours.may_hold(key)),
            rate_of(&|key| classic.may_hold(key)),
            rate_of(&|key| peer.contains_hash(key)),
            rate_of(&|key| others[0].may_hold(key)),
            rate_of(&|key| others[1].may_hold(key)),
        );
    }
}

fn peer(geometry: &Geometry) -> fastbloom::AtomicBloomFilter {
    fastbloom::AtomicBloomFilter::with_num_bits(geometry.bits() as usize).hashes(geometry.probes())
}

/// What a key costs in memory, on filters that are half full in keys.
fn keys(bitmap_bytes: u64, rounds: u64) {
    let geometry = planned(bitmap_bytes);
    let ours = Filter::in_memory(geometry).expect("memory");
    let memory = SharedMap::in_memory(geometry.bits() / 8).expect("memory");
    let classic = Classic {
        words: memory.words(),
        probes: geometry.probes(),
    };
    let peer = peer(&geometry);
    // Half of the keys planned, so that about 3 in 10 bits are set: the middle of a filter's life. Keys that do
    // not count for the large one: an eighth touches every page.
    let held = if bitmap_bytes > 1 << 28 {
        geometry.keys_planned() / 8
    } else {
        geometry.keys_planned() / 2
    };
    for number in 0..held {
        ours.check_and_set(hash(number));
        classic.check_and_set(hash(number));
        peer.insert_hash(hash(number));
    }
    println!(
        "{} MiB, {} probes, {held} of {} keys held, {:.0} % of bits set; nanoseconds per key, median (best) of {rounds} rounds of {ROUND_KEYS}",
        bitmap_bytes >> 20,
        geometry.probes(),
        geometry.keys_planned(),
        ours.fill() * 100.0,
    );
    let mut batch = Vec::new();
    let mut seen = vec![false; ROUND_KEYS as usize];
    // Keys seen are spread over all that are held, so that they are in no cache either.
    let spread = |number: u64| hash(hash(number) % held);
    let kinds: [(&str, &dyn Fn(u64) -> u64); 2] = [
        ("set, new keys", &|n| hash(held + n)),
        ("set, keys seen", &spread),
    ];
    for (what, key) in kinds {
        let mut times: [Vec<f64>; 4] = Default::default();
        for round in 0..rounds {
            // Each side has its own new keys, made before the clock starts.
            batch.clear();
            batch.extend((0..ROUND_KEYS).map(|n| key(round * ROUND_KEYS * 2 + n)));
            times[0].push(timed(|| {
                batch.iter().filter(|&&key| ours.check_and_set(key)).count()
            }));
            times[2].push(timed(|| {
                batch.iter().filter(|&&key| classic.check_and_set(key)).count()
            }));
            times[3].push(timed(|| {
                batch.iter().filter(|&&key| peer.insert_hash(key)).count()
            }));
            batch.clear();
            batch.extend((0..ROUND_KEYS).map(|n| key(round * ROUND_KEYS * 2 + ROUND_KEYS + n)));
            times[1].push(timed(|| {
                ours.check_and_set_batch(&batch, &mut seen);
                seen.len()
            }));
        }
        report(what, &mut times);
    }
    let mut times: [Vec<f64>; 4] = Default::default();
    for round in 0..rounds {
        batch.clear();
        batch.extend((0..ROUND_KEYS).map(|n| other(round * ROUND_KEYS + n)));
        times[0].push(timed(|| batch.iter().filter(|&&key| ours.may_hold(key)).count()));
        times[2].push(timed(|| {
            batch.iter().filter(|&&key| classic.may_hold(key)).count()
        }));
        times[3].push(timed(|| {
            batch.iter().filter(|&&key| peer.contains_hash(key)).count()
        }));
        // The same number of keys, which are in no cache again.
        batch.iter_mut().for_each(|key| *key = hash(*key));
        times[1].push(timed(|| {
            ours.may_hold_batch(&batch, &mut seen);
            seen.len()
        }));
    }
    report("ask, new keys", &mut times);
}

fn report(what: &str, times: &mut [Vec<f64>; 4]) {
    let [one, batch, classic, peer] = times.each_mut().map(|times| {
        times.sort_unstable_by(f64::total_cmp);
        (times[times.len() / 2], times[0])
    });
    println!(
        "  {what:15} one {:6.1} ({:5.1})   batch {:6.1} ({:5.1})   classic {:6.1} ({:5.1})   fastbloom {:6.1} ({:5.1})   fastbloom/one {:4.1}, /batch {:4.1}; classic/one {:4.1}, /batch {:4.1}",
        one.0,
        one.1,
        batch.0,
        batch.1,
        classic.0,
        classic.1,
        peer.0,
        peer.1,
        peer.0 / one.0,
        peer.0 / batch.0,
        classic.0 / one.0,
        classic.0 / batch.0,
    );
}

fn timed(work: impl FnOnce() -> usize) -> f64 {
    let start = Instant::now();
    black_box(work());
    start.elapsed().as_nanos() as f64 / ROUND_KEYS as f64
}

/// Pages read from the disk per question, on files that are in no cache.
fn cold(bitmap_bytes: u64) {
    const QUESTIONS: u64 = 2_000;
    let geometry = planned(bitmap_bytes);
    let dir = tempfile::tempdir().expect("a folder");
    let (ours, classic) = (dir.path().join("ours"), dir.path().join("classic"));
    let filter = Filter::create(&ours, geometry).expect("create");
    let map = SharedMap::create(&classic, &[], geometry.bits() / 8).expect("create");
    // Values do not matter, only that the disk holds every page.
    for word in map.words().iter().step_by(512) {
        word.store(u64::MAX, Ordering::Relaxed);
    }
    let keys = geometry.keys_planned() / 100;
    let mut seen = vec![false; 1 << 16];
    for start in (0..keys).step_by(1 << 16) {
        let batch: Vec<_> = (start..start + (1 << 16)).map(hash).collect();
        filter.check_and_set_batch(&batch, &mut seen);
    }
    filter.sync().expect("sync");
    map.flush().expect("flush");
    drop((filter, map));
    println!(
        "{} MiB in a file, in no cache, {QUESTIONS} keys asked",
        bitmap_bytes >> 20
    );

    drop_from_cache(&ours);
    let view = FilterView::open(&ours).expect("open");
    measure_cold("ours", QUESTIONS, 1.0, |number| view.may_hold(other(number)));

    drop_from_cache(&classic);
    let map = SharedMap::open(&classic).expect("open");
    map.advise(Advice::Random).expect("advise");
    let classic = Classic {
        words: map.words(),
        probes: geometry.probes(),
    };
    let mut distinct = 0;
    for number in 0..QUESTIONS {
        let mut pages: Vec<_> = classic
            .positions(other(number))
            .map(|position| position / 32_768)
            .collect();
        pages.sort_unstable();
        pages.dedup();
        distinct += pages.len();
    }
    // Setting reads them all; a question alone stops at the first bit unset.
    measure_cold(
        "classic",
        QUESTIONS,
        distinct as f64 / QUESTIONS as f64,
        |number| classic.check_and_set(other(number)),
    );
}

fn measure_cold(what: &str, questions: u64, distinct: f64, ask: impl Fn(u64) -> bool) {
    let (faults, start) = (major_faults(), Instant::now());
    for number in 0..questions {
        black_box(ask(number));
    }
    let us = start.elapsed().as_micros() as f64 / questions as f64;
    let faults = (major_faults() - faults) as f64 / questions as f64;
    println!("  {what:8} {distinct:5.2} pages by arithmetic, {faults:5.2} major faults, {us:6.0} µs per key");
}

fn drop_from_cache(path: &Path) {
    let file = File::open(path).expect("open");
    file.sync_all().expect("sync");
    rustix::fs::fadvise(&file, 0, None, rustix::fs::Advice::DontNeed).expect("drop from the page cache");
}

/// Pages that this process waited for a disk for; 0 where the system does not say.
fn major_faults() -> u64 {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    let fields = stat.rsplit_once(')').map_or("", |(_, fields)| fields);
    fields
        .split_ascii_whitespace()
        .nth(9)
        .and_then(|faults| faults.parse().ok())
        .unwrap_or(0)
}
