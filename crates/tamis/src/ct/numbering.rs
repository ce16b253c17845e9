//! Which leaf of which log an imported entry is.

use std::collections::HashMap;

use tamis_ct_index::Index;

/// Numbers entries over the files of an import.
#[derive(Debug, Default)]
pub(crate) struct Numbering {
    log: Option<u16>,
    /// Index of the next file's first entry; `None` when it is not known (any more).
    next: Option<u64>,
    by_url: HashMap<String, u16>,
}

impl Numbering {
    pub(crate) fn new(index: &Index, log: Option<&str>, start: Option<u64>) -> anyhow::Result<Self> {
        let log = log.map(|name| index.register_log(name)).transpose()?;
        Ok(Self {
            log,
            next: start,
            by_url: HashMap::new(),
        })
    }

    /// Takes the numbers of one file with `entries` entries; `whole` tells that none is missing.
    pub(crate) fn file(&mut self, entries: u64, whole: bool) -> FileNumbering {
        let start = self.next;
        self.next = start
            .filter(|_| whole)
            .and_then(|start| start.checked_add(entries));
        FileNumbering { log: self.log, start }
    }

    /// Nobody knows how many entries the next file holds or held, so no later one can be counted.
    pub(crate) fn lose(&mut self) {
        self.next = None;
    }

    /// True when files are numbered by hand but one made the numbers of the rest unknown.
    pub(crate) fn is_lost(&self, asked: Option<u64>) -> bool {
        asked.is_some() && self.next.is_none()
    }

    /// The number of a log that an input names beside its entries.
    pub(crate) fn log_of(&mut self, index: &Index, url: &str) -> anyhow::Result<u16> {
        if let Some(&number) = self.by_url.get(url) {
            return Ok(number);
        }
        let number = index.register_log(url)?;
        self.by_url.insert(url.to_owned(), number);
        Ok(number)
    }

    /// True when `--log` decides for all entries.
    pub(crate) fn is_fixed(&self) -> bool {
        self.log.is_some()
    }
}

/// Numbers of the entries of one file.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct FileNumbering {
    pub(crate) log: Option<u16>,
    start: Option<u64>,
}

impl FileNumbering {
    /// Where an entry lies. The index that the log signed wins over counting.
    pub(crate) fn position(
        &self,
        own_log: Option<u16>,
        own_index: Option<u64>,
        ordinal: u64,
    ) -> Option<(u16, u64)> {
        let log = self.log.or(own_log)?;
        let counted = self.start.and_then(|start| start.checked_add(ordinal));
        let index = own_index.or(counted)?;
        (index < 1 << 48).then_some((log, index))
    }
}

#[cfg(test)]
mod tests {
    use super::FileNumbering;

    #[test]
    fn signed_indexes_win_and_unknown_logs_have_no_position() {
        let counted = FileNumbering {
            log: Some(3),
            start: Some(100),
        };
        assert_eq!(counted.position(None, None, 7), Some((3, 107)));
        assert_eq!(counted.position(Some(9), Some(5), 7), Some((3, 5)));
        assert_eq!(FileNumbering::default().position(None, Some(5), 7), None);
        assert_eq!(
            FileNumbering::default().position(Some(9), Some(5), 7),
            Some((9, 5))
        );
        assert_eq!(counted.position(None, Some(u64::MAX), 7), None);
    }
}
