//! The public suffix list to use: shipped, or the one that was named.

use std::io::Read;
use std::path::Path;

use anyhow::Context;
use tamis_ct_index::SuffixList;
use tamis_hostname::PublicSuffixes;

use crate::cli::SuffixArgs;

/// A file larger than this is no list; the real one has 0.3 MB.
const LIST_BYTES_MAX: u64 = 16 << 20;

/// Reads what `--psl` names.
///
/// A wrong list is refused as a whole: with it, names would count under domains that nobody registered.
pub(crate) fn read(args: &SuffixArgs) -> anyhow::Result<SuffixList> {
    let Some(path) = &args.psl else {
        return Ok(SuffixList::default());
    };
    let list = list(&load(path)?).with_context(|| {
        format!(
            "{} is no public suffix list (https://publicsuffix.org/list/public_suffix_list.dat is one)",
            path.display()
        )
    });
    list.map(SuffixList::refreshed)
}

fn load(path: &Path) -> anyhow::Result<Vec<u8>> {
    let told = || format!("read the public suffix list {}", path.display());
    let mut bytes = Vec::new();
    let file = std::fs::File::open(path).with_context(told)?;
    file.take(LIST_BYTES_MAX + 1)
        .read_to_end(&mut bytes)
        .with_context(told)?;
    Ok(bytes)
}

fn list(bytes: &[u8]) -> anyhow::Result<PublicSuffixes> {
    anyhow::ensure!(
        bytes.len() as u64 <= LIST_BYTES_MAX,
        "it has more than {LIST_BYTES_MAX} bytes"
    );
    let start = bytes.trim_ascii_start();
    anyhow::ensure!(!start.is_empty(), "it is empty");
    anyhow::ensure!(
        !start.starts_with(b"<"),
        "it looks like a web page, perhaps a server's error page"
    );
    let text = match std::str::from_utf8(bytes) {
        Ok(text) if !text.contains('\0') => text,
        read => {
            let nul = bytes.iter().position(|&byte| byte == 0).unwrap_or(bytes.len());
            let end = read.err().map_or(nul, |error| error.valid_up_to().min(nul));
            let before = bytes.get(..end).unwrap_or_default();
            let line = 1 + before.iter().filter(|&&byte| byte == b'\n').count();
            anyhow::bail!("line {line} is no text in UTF-8, so this may be a binary file");
        }
    };
    let list = PublicSuffixes::parse(text)?;
    list.check_plausible()?;
    Ok(list)
}
