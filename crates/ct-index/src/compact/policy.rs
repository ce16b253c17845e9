//! Which segments are merged next.
//!
//! Flushes of a month (tier 0) are merged into parts of tier 1: names by ranges of keys, records by
//! `seq`, look-ups by ranges of hashes. From there each kind goes on by itself: where enough runs of one
//! tier overlap, they become one run of the next. Parts of a tier are cut where parts of the tiers
//! before it were, and then finer, so that they nest and a merge is never larger than the coarsest part
//! in it allows.

use std::collections::{BTreeMap, BTreeSet};

use crate::manifest::{HashPart, Holds, KeyPart, SegmentEntry};

/// When which segments are merged.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Policy {
    /// Segments of one tier in a month that are worth a merge. Default 6.
    pub batch: usize,
    /// Segments merged at once when a month has many. Default 12.
    pub surge_batch: usize,
    /// What counts as many. Default 16.
    pub surge_at: usize,
    /// Months that one cycle looks at, the newest first. Default 3.
    pub months: usize,
    /// Most records of flushes that are merged at once: their look-ups are sorted in memory, about 60
    /// bytes a record. Default 2 million.
    pub records_max: u64,
    /// Rows of names, or entries of look-ups, at which a part is cut. Default 4 million.
    pub part_rows: u64,
    /// Records of a file that is not merged any more. Default 8 million, about a gigabyte.
    pub file_records: u64,
    /// Merge whatever is more than one run, as an operator asks for.
    pub everything: bool,
}

impl Default for Policy {
    fn default() -> Self {
        Self {
            batch: 6,
            surge_batch: 12,
            surge_at: 16,
            months: 3,
            records_max: 2_000_000,
            part_rows: 4_000_000,
            file_records: 8_000_000,
            everything: false,
        }
    }
}

/// A merge to do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Job {
    /// [`Holds::Everything`] for flushes.
    pub(crate) holds: Holds,
    /// By age.
    pub(crate) inputs: Vec<SegmentEntry>,
    /// Tier of the outputs.
    pub(crate) tier: u32,
}

impl Policy {
    /// Merges whatever can be merged.
    pub fn everything() -> Self {
        Self {
            months: usize::MAX,
            everything: true,
            ..Self::default()
        }
    }

    /// The next merge, if any is worth it.
    pub(crate) fn choose(&self, segments: &[SegmentEntry]) -> Option<Job> {
        let mut months: BTreeMap<&str, Vec<&SegmentEntry>> = BTreeMap::new();
        for segment in segments {
            months.entry(&segment.month).or_default().push(segment);
        }
        months.values_mut().rev().take(self.months).find_map(|segments| {
            segments.sort_unstable_by_key(|segment| (segment.run, segment.id));
            self.choose_in_month(segments)
        })
    }

    fn choose_in_month(&self, segments: &[&SegmentEntry]) -> Option<Job> {
        let of = |holds: Holds| -> Vec<&SegmentEntry> {
            let kind = segments.iter().filter(|segment| segment.holds == holds);
            kind.copied().collect()
        };
        self.flushes(&of(Holds::Everything), segments.len())
            .or_else(|| self.records(&of(Holds::Records)))
            .or_else(|| self.parts(Holds::Names, &of(Holds::Names), key_cells))
            .or_else(|| self.parts(Holds::Lookups, &of(Holds::Lookups), hash_cells))
    }

    /// Runs merged at once, of so many that could be; `None` when they are too few.
    fn most(&self, runs: usize) -> Option<usize> {
        if self.everything {
            return (runs >= 2).then_some(usize::MAX);
        }
        (runs >= self.batch).then_some(if runs >= self.surge_at {
            self.surge_batch
        } else {
            self.batch
        })
    }

    fn flushes(&self, flushes: &[&SegmentEntry], in_month: usize) -> Option<Job> {
        let lonely = self.everything && flushes.len() == 1 && in_month > 1;
        let most = if lonely { 1 } else { self.most(flushes.len())? };
        let mut records = 0;
        let fits = |segment: &&&SegmentEntry| {
            records += segment.records;
            records <= self.records_max
        };
        let mut inputs: Vec<SegmentEntry> = flushes
            .iter()
            .take(most)
            .take_while(fits)
            .copied()
            .cloned()
            .collect();
        if inputs.is_empty() {
            // One that is too large for company still has to become parts.
            inputs.extend(flushes.first().copied().cloned());
        }
        (!inputs.is_empty()).then_some(Job {
            holds: Holds::Everything,
            inputs,
            tier: 1,
        })
    }

    /// Files of records that follow one another.
    fn records(&self, files: &[&SegmentEntry]) -> Option<Job> {
        let mut tiers: BTreeMap<u32, Vec<&SegmentEntry>> = BTreeMap::new();
        for file in files.iter().filter(|file| file.records < self.file_records) {
            let tier = if self.everything { 0 } else { file.tier };
            tiers.entry(tier).or_default().push(file);
        }
        tiers.values().find_map(|files| {
            let most = self.most(files.len())?;
            // One that is too large for its neighbour must not keep those behind it apart.
            (0..files.len()).find_map(|start| self.neighbours(files.get(start..)?, most))
        })
    }

    /// The first files, as far as they make one.
    fn neighbours(&self, files: &[&SegmentEntry], most: usize) -> Option<Job> {
        let mut records = 0;
        let fits = |file: &&&SegmentEntry| {
            records += file.records;
            records <= self.file_records
        };
        let inputs: Vec<SegmentEntry> = files
            .iter()
            .take(most)
            .take_while(fits)
            .copied()
            .cloned()
            .collect();
        let tier = inputs.iter().map(|file| file.tier).max().unwrap_or(0) + 1;
        (inputs.len() >= 2).then_some(Job {
            holds: Holds::Records,
            inputs,
            tier,
        })
    }

    fn parts(
        &self,
        holds: Holds,
        parts: &[&SegmentEntry],
        cells: impl Fn(&[&SegmentEntry]) -> Vec<Vec<SegmentEntry>>,
    ) -> Option<Job> {
        let mut tiers: BTreeMap<u32, Vec<&SegmentEntry>> = BTreeMap::new();
        for part in parts {
            let tier = if self.everything { 0 } else { part.tier };
            tiers.entry(tier).or_default().push(part);
        }
        tiers.values().find_map(|parts| {
            cells(parts).into_iter().find_map(|mut inputs| {
                let runs: BTreeSet<u64> = inputs.iter().map(|part| part.run).collect();
                let most = self.most(runs.len())?;
                let oldest: BTreeSet<u64> = runs.into_iter().take(most).collect();
                inputs.retain(|part| oldest.contains(&part.run));
                inputs.sort_unstable_by_key(|part| (part.run, part.id));
                let tier = inputs.iter().map(|part| part.tier).max().unwrap_or(0) + 1;
                Some(Job { holds, inputs, tier })
            })
        })
    }
}

/// Parts gathered by the coarsest range that encloses them.
fn key_cells(parts: &[&SegmentEntry]) -> Vec<Vec<SegmentEntry>> {
    let mut parts = parts.to_vec();
    // Of those that start together the longest comes first.
    parts.sort_by(|a, b| (&a.keys.from, b.keys.end()).cmp(&(&b.keys.from, a.keys.end())));
    let mut cells: Vec<(KeyPart, Vec<SegmentEntry>)> = Vec::new();
    for part in parts {
        match cells.last_mut() {
            Some((range, cell)) if range.encloses(&part.keys) => cell.push(part.clone()),
            _ => cells.push((part.keys.clone(), vec![part.clone()])),
        }
    }
    cells.into_iter().map(|(_, cell)| cell).collect()
}

/// As [`key_cells`], of hashes.
fn hash_cells(parts: &[&SegmentEntry]) -> Vec<Vec<SegmentEntry>> {
    let mut parts = parts.to_vec();
    parts.sort_by_key(|part| part.hashes.bits);
    let mut cells: Vec<(HashPart, Vec<SegmentEntry>)> = Vec::new();
    for part in parts {
        match cells.iter_mut().find(|(range, _)| range.encloses(part.hashes)) {
            Some((_, cell)) => cell.push(part.clone()),
            None => cells.push((part.hashes, vec![part.clone()])),
        }
    }
    cells.into_iter().map(|(_, cell)| cell).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(id: u64, holds: Holds, tier: u32, records: u64) -> SegmentEntry {
        SegmentEntry {
            id,
            month: "2026-11".to_owned(),
            holds,
            tier,
            run: id,
            keys: KeyPart::default(),
            hashes: HashPart::default(),
            bytes: records * 100,
            rows: records * 2,
            records,
        }
    }

    fn flushes(count: u64) -> Vec<SegmentEntry> {
        (0..count)
            .map(|id| entry(id, Holds::Everything, 0, 90_000 + id))
            .collect()
    }

    #[track_caller]
    fn check(segments: &[SegmentEntry], policy: Policy, expected: Option<(Holds, &[u64], u32)>) {
        let job = policy.choose(segments);
        let found = job.as_ref().map(|job| {
            let ids: Vec<u64> = job.inputs.iter().map(|input| input.id).collect();
            (job.holds, ids, job.tier)
        });
        assert_eq!(
            found,
            expected.map(|(holds, ids, tier)| (holds, ids.to_vec(), tier))
        );
    }

    #[test]
    fn flushes_wait_for_enough_of_a_month() {
        let first = |count: u64| (0..count).collect::<Vec<_>>();
        check(&flushes(5), Policy::default(), None);
        for count in [6, 7, 15] {
            check(
                &flushes(count),
                Policy::default(),
                Some((Holds::Everything, &first(6), 1)),
            );
        }
        check(
            &flushes(16),
            Policy::default(),
            Some((Holds::Everything, &first(12), 1)),
        );
        check(
            &flushes(2),
            Policy::everything(),
            Some((Holds::Everything, &first(2), 1)),
        );
        check(&flushes(1), Policy::everything(), None);
        let mut mixed = flushes(5);
        mixed.push(SegmentEntry {
            month: "2026-12".to_owned(),
            ..entry(9, Holds::Everything, 0, 90_000)
        });
        check(&mixed, Policy::default(), None);
    }

    #[test]
    fn flushes_merged_at_once_are_bounded_in_records() {
        let large: Vec<SegmentEntry> = (0..6)
            .map(|id| entry(id, Holds::Everything, 0, 900_000))
            .collect();
        check(&large, Policy::default(), Some((Holds::Everything, &[0, 1], 1)));
        let huge: Vec<SegmentEntry> = (0..6)
            .map(|id| entry(id, Holds::Everything, 0, 3_000_000))
            .collect();
        check(&huge, Policy::default(), Some((Holds::Everything, &[0], 1)));
    }

    #[test]
    fn full_files_of_records_are_left_alone() {
        let file = |id, records| entry(id, Holds::Records, 1, records);
        let mut files: Vec<SegmentEntry> = (0..6).map(|id| file(id, 3_000_000)).collect();
        files.iter_mut().for_each(|file| file.run += 10);
        check(&files, Policy::default(), Some((Holds::Records, &[0, 1], 2)));
        files.insert(0, file(9, 7_900_000));
        check(&files, Policy::default(), Some((Holds::Records, &[0, 1], 2)));
        files.iter_mut().for_each(|file| file.records = 8_000_000);
        check(&files, Policy::everything(), None);
    }

    #[test]
    fn only_parts_that_overlap_are_merged() {
        let part = |id: u64, run: u64, from: &str, until: Option<&str>| SegmentEntry {
            run,
            keys: KeyPart {
                from: from.to_owned(),
                until: until.map(str::to_owned),
            },
            ..entry(id, Holds::Names, 2, 10)
        };
        let mut parts = Vec::new();
        for run in 0..6 {
            parts.push(part(10 * run, run, "", Some("com.m")));
            if run < 5 {
                parts.push(part(10 * run + 1, run, "com.m", None));
            }
        }
        check(
            &parts,
            Policy::default(),
            Some((Holds::Names, &[0, 10, 20, 30, 40, 50], 3)),
        );
        // The sixth run cut the second half in two: both belong to its cell.
        parts.retain(|part| part.keys.from == "com.m");
        check(&parts, Policy::default(), None);
        parts.push(part(51, 5, "com.m", Some("net")));
        parts.push(part(52, 5, "net", None));
        check(
            &parts,
            Policy::default(),
            Some((Holds::Names, &[1, 11, 21, 31, 41, 51, 52], 3)),
        );
    }

    #[test]
    fn only_hashes_that_overlap_are_merged() {
        let part = |id: u64, run: u64, bits: u32, prefix: u64| SegmentEntry {
            run,
            hashes: HashPart { bits, prefix },
            ..entry(id, Holds::Lookups, 2, 10)
        };
        let mut parts: Vec<SegmentEntry> = (0..5).map(|run| part(run, run, 1, 1)).collect();
        parts.push(part(5, 5, 1, 0));
        check(&parts, Policy::default(), None);
        parts.push(part(6, 6, 3, 0b101));
        check(
            &parts,
            Policy::default(),
            Some((Holds::Lookups, &[0, 1, 2, 3, 4, 6], 3)),
        );
    }
}
