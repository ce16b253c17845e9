//! Names that mean something on too many sites to be dropped everywhere.

/// Names that a rule set may drop at the sites it lists and never everywhere. Each decides on some site
/// what the page is: `ref` a ticket, `feature` a search, `id`, `s` and `m` most of the web.
pub const NEVER_GLOBAL: &[&str] = &[
    "a", "action", "area", "article", "b", "c", "campaign", "cat", "category", "cid", "code", "d", "e",
    "eid", "f", "feature", "from", "g", "game", "global", "h", "i", "id", "item", "j", "k", "key", "keyword",
    "keywords", "l", "lang", "m", "medium", "mode", "n", "name", "o", "offset", "origin", "p", "page",
    "partner", "pid", "product", "q", "query", "r", "redirect", "ref", "ref_", "referer", "referrer", "s",
    "search", "section", "seen", "session", "sid", "site", "sort", "source", "src", "start", "t", "tab",
    "tag", "tags", "target", "term", "title", "token", "topic", "type", "u", "uid", "url", "user", "v",
    "var", "view", "w", "x", "y", "z",
];

/// Whether a name must never be dropped everywhere, in whatever case.
pub(super) fn is_denied(name: &str) -> bool {
    NEVER_GLOBAL
        .iter()
        .any(|denied| denied.eq_ignore_ascii_case(name))
}
