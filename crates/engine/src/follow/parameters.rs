//! What a person sets for operators and logs, in a file that is read again whenever it changes.
//!
//! # Format
//! TOML:
//! ```toml
//! [operator."DigiCert"]
//! concurrency = 1        # requests at once; an upper limit
//! spacing_ms = 6000      # between the starts of two requests; a lower limit
//!
//! [log."https://ct.example/2026h2/"]
//! page = 256             # entries of a get-entries request
//! keep_alive = false     # close the connection after each request
//! follow = false         # do not read this log
//! ```

use std::collections::BTreeMap;
use std::time::Duration;

use serde::Deserialize;

use super::pace::Limits;

/// All of the file.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Parameters {
    #[serde(default)]
    operator: BTreeMap<String, OperatorParameters>,
    #[serde(default)]
    log: BTreeMap<String, LogParameters>,
}

/// Of one operator.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
struct OperatorParameters {
    concurrency: Option<u32>,
    spacing_ms: Option<u64>,
}

/// Of one log.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct LogParameters {
    pub(crate) page: Option<u64>,
    pub(crate) keep_alive: Option<bool>,
    pub(crate) follow: Option<bool>,
}

impl Parameters {
    /// Reads the text of a file.
    ///
    /// # Errors
    /// What is wrong with it, and where.
    pub fn parse(text: &str) -> Result<Self, String> {
        toml::from_str(text).map_err(|error| error.to_string())
    }

    /// Operators are compared without regard to case.
    pub(crate) fn of_operator(&self, operator: &str) -> Limits {
        let found = self
            .operator
            .iter()
            .find(|(name, _)| name.eq_ignore_ascii_case(operator));
        found.map_or(Limits::default(), |(_, set)| Limits {
            concurrency: set.concurrency,
            spacing: set.spacing_ms.map(Duration::from_millis),
        })
    }

    /// Logs are named by the prefix below which they are read, with or without the last slash.
    pub(crate) fn of_log(&self, url: &str) -> LogParameters {
        let same = |other: &str| other.trim_end_matches('/') == url.trim_end_matches('/');
        let found = self.log.iter().find(|(name, _)| same(name));
        found.map(|(_, set)| set.clone()).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_set_is_found_and_what_is_unknown_is_refused() {
        let text = "[operator.DigiCert]\nconcurrency = 1\nspacing_ms = 6000\n[log.\"https://ct.example/a\"]\npage = 32\nkeep_alive = false\n";
        let parameters = Parameters::parse(text).unwrap();
        let limits = parameters.of_operator("digicert");
        assert_eq!(limits.spacing, Some(Duration::from_secs(6)));
        assert_eq!(parameters.of_log("https://ct.example/a/").page, Some(32));
        assert_eq!(
            parameters.of_log("https://ct.example/b/"),
            LogParameters::default()
        );
        let error = Parameters::parse("[operator.x]\nconcurency = 1").unwrap_err();
        assert!(
            error.contains("concurency") && error.contains("expected"),
            "{error}"
        );
    }
}
