//! Proving what was read against what the log signed, and finding the leaf that does not fit.

use std::cmp::Ordering;

use tamis_ct_log::merkle::{CompactRange, Hash, RangeError, Tree};

use super::ahead::fetch_page;
use super::lie::LieKind;
use super::progress::Span;
use super::reader::{Reader, lie};
use super::source::{Blame, Neighbours, SourceError};
use super::world::Fatal;

/// Wrong leaves told one by one; where there are more, the rest is told as one.
const WRONG_LEAVES_MAX: usize = 16;

/// The unproved part of a span, while a wrong leaf in it is looked for.
struct Search {
    tree: Tree,
    /// What is proved so far.
    proved: CompactRange,
    /// Of the leaves from `first` on.
    leaves: Vec<Hash>,
    first: u64,
}

impl Search {
    fn leaf(&self, index: u64) -> Option<Hash> {
        let place = usize::try_from(index.checked_sub(self.first)?).ok()?;
        self.leaves.get(place).copied()
    }

    fn end(&self) -> u64 {
        self.first + self.leaves.len() as u64
    }

    /// What is proved and the leaves behind it up to `end`, as they were read.
    fn with_leaves_to(&self, end: u64) -> Result<CompactRange, SourceError> {
        let mut range = self.proved.clone();
        for index in range.end()..end {
            range.push(self.leaf(index).ok_or(SourceError::NoSuchLeaf)?)?;
        }
        Ok(range)
    }
}

impl Reader {
    /// Proves what was read to `end`, as far as the log lets it be proved now.
    pub(super) async fn settle(&mut self, end: u64) -> Result<Result<(), SourceError>, Fatal> {
        let settled = self.settle_span(end).await;
        self.progress.join_proved();
        match settled {
            Err(Trouble::Fatal(fatal)) => Err(fatal),
            Err(Trouble::Source(error)) => Ok(Err(error)),
            Ok(()) => Ok(Ok(())),
        }
    }

    /// Proves whatever is not proved yet.
    pub(super) async fn settle_all(&mut self) -> Result<Result<(), SourceError>, Fatal> {
        let open = self
            .progress
            .spans
            .iter()
            .filter(|span| span.unproved() > 0 || span.frontier.is_none());
        let ends: Vec<u64> = open.map(Span::end).collect();
        for end in ends {
            let is_empty = self
                .progress
                .spans
                .iter()
                .any(|span| span.end() == end && span.begin == end);
            if is_empty || self.unprovable == Some(end) {
                continue;
            }
            if let Err(error) = self.settle(end).await? {
                return Ok(Err(error));
            }
        }
        self.progress.join_proved();
        Ok(Ok(()))
    }

    async fn settle_span(&mut self, end: u64) -> Result<(), Trouble> {
        let Some(place) = self.progress.place_of(end) else {
            return Ok(());
        };
        let Some(tree) = self.progress.head.as_ref().map(|head| head.tree) else {
            return Ok(());
        };
        if end > tree.size {
            return Ok(());
        }
        self.anchor(place, &tree).await?;
        let Some(span) = self.progress.spans.get(place) else {
            return Ok(());
        };
        let Some(whole) = span.whole().filter(|_| span.unproved() > 0) else {
            return Ok(());
        };
        let last = self
            .leaves
            .get(&span.proved_to())
            .and_then(|leaves| leaves.last());
        let neighbours = Neighbours {
            before: last.copied(),
            after: None,
        };
        if self.fits(&whole, &tree, neighbours).await? {
            self.proved(place, whole)?;
            return Ok(());
        }
        self.find_wrong(place, tree).await
    }

    /// Finds out what lies before a span that was begun in the middle of the log.
    async fn anchor(&mut self, place: usize, tree: &Tree) -> Result<(), Trouble> {
        let Some(span) = self
            .progress
            .spans
            .get(place)
            .filter(|span| span.frontier.is_none())
        else {
            return Ok(());
        };
        let (begin, key) = (span.begin, span.proved_to());
        let neighbours = Neighbours {
            before: None,
            after: span.first,
        };
        let frontier = match self.source.frontier(begin, tree, neighbours).await {
            Ok(frontier) => frontier,
            Err(error) if error.blame() == Blame::Absent && span.unproved() > 1 => {
                return self.anchor_behind_first(place, key, tree).await;
            }
            Err(error) => return Err(error.into()),
        };
        if let Some(span) = self.progress.spans.get_mut(place) {
            span.frontier = Some(frontier);
            self.is_dirty = true;
        }
        Ok(())
    }

    /// The first leaf of a span is not in the log's tree as it was served: the second one leads on.
    async fn anchor_behind_first(&mut self, place: usize, key: u64, tree: &Tree) -> Result<(), Trouble> {
        let leaves = self.leaves_of(place).await?;
        let Some((_, rest)) = leaves.split_first() else {
            return Ok(());
        };
        let neighbours = Neighbours {
            before: None,
            after: rest.first().copied(),
        };
        let frontier = self.source.frontier(key + 1, tree, neighbours).await?;
        let detail = format!(
            "leaf {key} as it was served is not in the tree of {} leaves",
            tree.size
        );
        self.note(lie(LieKind::Entry, [key, key + 1], detail));
        if let Some(span) = self.progress.spans.get_mut(place) {
            span.prove_by(frontier)?;
            span.push(rest)?;
        }
        self.leaves.remove(&key);
        self.leaves.insert(key + 1, rest.to_vec());
        Ok(())
    }

    /// Whether a range from 0 is the start of the tree.
    async fn fits(&self, range: &CompactRange, tree: &Tree, leaves: Neighbours) -> Result<bool, SourceError> {
        match range.end().cmp(&tree.size) {
            Ordering::Equal => Ok(range.root() == Some(tree.root)),
            Ordering::Greater => Ok(false),
            Ordering::Less => match self.source.frontier(range.end(), tree, leaves).await {
                Ok(frontier) => Ok(frontier == *range),
                Err(error) if error.blame() == Blame::Absent => Ok(false),
                Err(error) => Err(error),
            },
        }
    }

    fn proved(&mut self, place: usize, frontier: CompactRange) -> Result<(), SourceError> {
        let Some(span) = self.progress.spans.get_mut(place) else {
            return Ok(());
        };
        self.leaves.remove(&span.proved_to());
        span.prove_by(frontier)?;
        self.is_dirty = true;
        if self.unprovable == Some(span.end()) {
            self.unprovable = None;
        }
        Ok(())
    }

    /// Finds the leaves that do not hash to the signed root, notes them and proves the rest.
    async fn find_wrong(&mut self, place: usize, tree: Tree) -> Result<(), Trouble> {
        let leaves = self.leaves_of(place).await?;
        let Some(span) = self.progress.spans.get(place) else {
            return Ok(());
        };
        let Some(proved) = span.frontier.clone() else {
            return Ok(());
        };
        let mut search = Search {
            tree,
            first: proved.end(),
            proved,
            leaves,
        };
        let end = search.end();
        for _ in 0..WRONG_LEAVES_MAX {
            let whole = search.with_leaves_to(end)?;
            let before = search.leaf(end - 1);
            if self
                .fits(&whole, &tree, Neighbours { before, after: None })
                .await?
            {
                self.proved(place, whole)?;
                return Ok(());
            }
            let wrong = self.first_wrong(&search, end).await?;
            search.proved = search.with_leaves_to(wrong)?;
            let Some(behind) = self.judge_wrong(&search, wrong).await? else {
                return Ok(self.leave_unproved(place, &search, wrong)?);
            };
            search.proved = behind;
            if wrong + 1 == end {
                let frontier = search.proved.clone();
                self.proved(place, frontier)?;
                return Ok(());
            }
        }
        let at = search.proved.end();
        let detail = format!("too many leaves of {at} to {end} do not hash to the signed root to name each");
        self.note(lie(LieKind::Entry, [at, end], detail));
        Ok(self.leave_unproved(place, &search, at)?)
    }

    /// The first leaf with which what was read is no longer the start of the tree.
    async fn first_wrong(&self, search: &Search, end: u64) -> Result<u64, SourceError> {
        let (mut fits, mut fails) = (search.proved.end(), end);
        while fails - fits > 1 {
            let middle = fits + (fails - fits) / 2;
            let range = search.with_leaves_to(middle)?;
            let neighbours = Neighbours {
                before: search.leaf(middle - 1),
                after: search.leaf(middle),
            };
            if self.fits(&range, &search.tree, neighbours).await? {
                fits = middle;
            } else {
                fails = middle;
            }
        }
        Ok(fits)
    }

    /// Asks for a wrong leaf once more, notes what comes of it, and gives what is true up to behind it; `None`
    /// where the log cannot say yet.
    async fn judge_wrong(&mut self, search: &Search, wrong: u64) -> Result<Option<CompactRange>, Trouble> {
        let behind = Neighbours {
            before: None,
            after: search.leaf(wrong + 1),
        };
        let behind = match self.source.frontier(wrong + 1, &search.tree, behind).await {
            Ok(frontier) => Some(frontier),
            Err(error) if error.blame() == Blame::Absent => None,
            Err(error) => return Err(error.into()),
        };
        if behind.is_some() && behind == search.with_leaves_to(wrong + 1).ok() {
            // The leaf is right; only the question for it went wrong.
            return Ok(behind);
        }
        let again = fetch_page(
            &self.world,
            &self.source,
            self.number,
            wrong,
            wrong + 1,
            search.tree.size,
        )
        .await?;
        let mut healed = None;
        if let Some(hash) = again.hashes.first().copied() {
            let mut range = search.proved.clone();
            range.push(hash)?;
            let neighbours = Neighbours {
                before: Some(hash),
                after: search.leaf(wrong + 1),
            };
            if self.fits(&range, &search.tree, neighbours).await? {
                healed = Some(range);
            }
        }
        let served = search.leaf(wrong).map_or(String::new(), |hash| hash.to_string());
        let detail = format!(
            "leaf {wrong} was served with the hash {served}, which does not lead to the root {} of {} leaves{}",
            search.tree.root,
            search.tree.size,
            if healed.is_some() {
                "; asked again, it did"
            } else {
                ""
            }
        );
        let mut told = lie(LieKind::Entry, [wrong, wrong + 1], detail);
        told.healed = healed.is_some();
        self.note(told);
        if healed.is_some() {
            // The right entry joins the wrong one, which is kept as evidence.
            self.world.append(again.batch).await?;
        }
        Ok(healed.or(behind))
    }

    /// What cannot be proved until the log has more leaves.
    fn leave_unproved(&mut self, place: usize, search: &Search, from: u64) -> Result<(), SourceError> {
        let rest: Vec<Hash> = (from..search.end())
            .filter_map(|index| search.leaf(index))
            .collect();
        let Some(span) = self.progress.spans.get_mut(place) else {
            return Ok(());
        };
        self.leaves.remove(&span.proved_to());
        span.prove_by(search.proved.clone())?;
        span.push(&rest)?;
        self.unprovable = Some(span.end());
        self.leaves.insert(from, rest);
        self.is_dirty = true;
        Ok(())
    }

    /// Hashes of the unproved leaves of a span; read again where they are not kept.
    async fn leaves_of(&mut self, place: usize) -> Result<Vec<Hash>, Trouble> {
        let Some(span) = self.progress.spans.get(place) else {
            return Ok(Vec::new());
        };
        let (start, end) = (span.proved_to(), span.end());
        let kept = self.leaves.get(&start);
        if let Some(kept) = kept.filter(|kept| kept.len() as u64 == end - start) {
            return Ok(kept.clone());
        }
        let size = self.progress.tree_size();
        let mut hashes = Vec::new();
        let mut at = start;
        while at < end {
            let page_end = self.page_end(at, end);
            let page = fetch_page(&self.world, &self.source, self.number, at, page_end, size).await?;
            if page.hashes.is_empty() {
                let why = page.blocked.unwrap_or_default();
                return Err(SourceError::Unhashable { why }.into());
            }
            at = page.end();
            hashes.extend_from_slice(&page.hashes);
            // What comes now may differ from what came first: known entries change nothing, others join.
            self.world.append(page.batch).await?;
        }
        Ok(hashes)
    }
}

/// Why settling stopped.
pub(super) enum Trouble {
    Source(SourceError),
    Fatal(Fatal),
}

impl From<SourceError> for Trouble {
    fn from(error: SourceError) -> Self {
        Self::Source(error)
    }
}

impl From<RangeError> for Trouble {
    fn from(error: RangeError) -> Self {
        Self::Source(error.into())
    }
}

impl From<Fatal> for Trouble {
    fn from(fatal: Fatal) -> Self {
        Self::Fatal(fatal)
    }
}
