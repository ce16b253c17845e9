//! The same rows in PostgreSQL: a table of what a search answers, under a btree of reversed names.
//!
//! A key ends in the separator, `com.example.www.`, so that a domain and all below it are one range.

use std::fmt::Write as _;
use std::io::Write as _;
use std::time::Instant;

use postgres::{Client, Statement};

use crate::feed::{Feed, issuance_key};

const COPY_BYTES: usize = 1 << 20;
/// Copies of an issuance fold on the way, the rows come in the order of the key.
const LOAD: &str = "
CREATE TABLE names (
    name text COLLATE \"C\" NOT NULL,
    issuance bigint NOT NULL,
    first_seen bigint NOT NULL,
    not_before bigint,
    not_after bigint,
    issuer integer NOT NULL,
    exact boolean NOT NULL,
    wildcard boolean NOT NULL,
    organization text NOT NULL
);
INSERT INTO names
SELECT name, issuance, min(first_seen), min(not_before), min(not_after), min(issuer),
    bool_or(NOT wildcard), bool_or(wildcard), max(organization)
FROM copies GROUP BY name, issuance ORDER BY name, issuance;
ALTER TABLE names ADD PRIMARY KEY (name, issuance);
DROP TABLE copies;
";
const COPIES: &str = "
CREATE UNLOGGED TABLE copies (
    name text COLLATE \"C\", issuance bigint, first_seen bigint, not_before bigint, not_after bigint,
    issuer integer, wildcard boolean, organization text
)";
const QUESTION: &str = "
SELECT name, issuance, first_seen, not_before, not_after, issuer, exact, wildcard, organization
FROM names WHERE name >= $1 AND name < $2 ORDER BY name, issuance LIMIT 100";

/// A row as it is answered.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Answer {
    /// Reversed, with the separator at its end.
    pub(crate) name: String,
    pub(crate) issuance: u64,
    pub(crate) first_seen: i64,
    pub(crate) not_before: Option<i64>,
    pub(crate) not_after: Option<i64>,
    pub(crate) issuer: String,
    pub(crate) exact: bool,
    pub(crate) wildcard: bool,
    pub(crate) organization: String,
}

pub(crate) struct Peer {
    client: Client,
    question: Statement,
    nothing: Statement,
    /// By number: the client knows them, so that no question joins them.
    issuers: Vec<String>,
    pub(crate) rows: u64,
}

impl Peer {
    pub(crate) fn load(mut client: Client, names: u64) -> anyhow::Result<Self> {
        let start = Instant::now();
        client.batch_execute(COPIES)?;
        let issuers = copy(&mut client, names)?;
        let copied = start.elapsed();
        client.batch_execute(LOAD)?;
        client.batch_execute("VACUUM (FREEZE, ANALYZE) names")?;
        client.batch_execute("CHECKPOINT")?;
        println!(
            "   PostgreSQL: {:.1} s with generating until copied, folded and indexed after {:.1} s",
            copied.as_secs_f64(),
            start.elapsed().as_secs_f64()
        );
        let question = client.prepare(QUESTION)?;
        client.batch_execute(&format!(
            "PREPARE question (text, text) AS {QUESTION}; SET client_min_messages = error"
        ))?;
        let rows: i64 = client.query_one("SELECT count(*) FROM names", &[])?.try_get(0)?;
        Ok(Self {
            question,
            nothing: client.prepare("SELECT 1")?,
            issuers,
            rows: rows as u64,
            client,
        })
    }

    /// Bytes of the table and of its key.
    pub(crate) fn bytes(&mut self) -> anyhow::Result<(u64, u64)> {
        let row = self
            .client
            .query_one("SELECT pg_table_size('names'), pg_indexes_size('names')", &[])?;
        Ok((row.try_get::<_, i64>(0)? as u64, row.try_get::<_, i64>(1)? as u64))
    }

    /// The first hundred rows of a domain.
    pub(crate) fn ask(&mut self, domain: &Domain) -> anyhow::Result<Vec<Answer>> {
        let rows = self.client.query(&self.question, &[&domain.from, &domain.to])?;
        let mut answers = Vec::with_capacity(rows.len());
        for row in &rows {
            let issuer: i32 = row.try_get(5)?;
            answers.push(Answer {
                name: row.try_get(0)?,
                issuance: row.try_get::<_, i64>(1)? as u64,
                first_seen: row.try_get(2)?,
                not_before: row.try_get(3)?,
                not_after: row.try_get(4)?,
                issuer: self.issuers.get(issuer as usize).cloned().unwrap_or_default(),
                exact: row.try_get(6)?,
                wildcard: row.try_get(7)?,
                organization: row.try_get(8)?,
            });
        }
        Ok(answers)
    }

    /// A question that costs the server nothing: the way there and back.
    pub(crate) fn round_trip(&mut self) -> anyhow::Result<()> {
        self.client.query_one(&self.nothing, &[])?;
        Ok(())
    }

    /// What the executor took for a question by its own clock, in µs: without planning, without turning
    /// rows into messages, without the way.
    pub(crate) fn executed(&mut self, domain: &Domain) -> anyhow::Result<f64> {
        let sql = format!(
            "EXPLAIN (ANALYZE, TIMING OFF, BUFFERS OFF) EXECUTE question ('{}', '{}')",
            domain.from, domain.to
        );
        let plan = self.client.query(&sql, &[])?;
        let line: String = plan
            .last()
            .map(|row| row.try_get(0))
            .transpose()?
            .unwrap_or_default();
        let ms = line
            .strip_prefix("Execution Time: ")
            .and_then(|line| line.strip_suffix(" ms"));
        let ms = ms.ok_or_else(|| anyhow::anyhow!("no time in: {line}"))?;
        Ok(ms.parse::<f64>()? * 1e3)
    }

    /// How the server answers.
    pub(crate) fn plan(&mut self, domain: &Domain) -> anyhow::Result<String> {
        let sql = format!(
            "EXPLAIN (COSTS OFF) EXECUTE question ('{}', '{}')",
            domain.from, domain.to
        );
        let mut plan = Vec::new();
        for row in self.client.query(&sql, &[])? {
            plan.push(row.try_get::<_, String>(0)?.trim().to_owned());
        }
        Ok(plan.join("; "))
    }
}

/// A domain as both ask for it.
#[derive(Debug, Clone)]
pub(crate) struct Domain {
    pub(crate) domain: String,
    from: String,
    to: String,
}

impl Domain {
    pub(crate) fn new(domain: &str) -> Self {
        let from = key(domain);
        let to = format!("{}/", from.trim_end_matches('.'));
        Self {
            domain: domain.to_owned(),
            from,
            to,
        }
    }
}

/// The key of a host name.
pub(crate) fn key(host: &str) -> String {
    let labels: Vec<&str> = host.rsplit('.').collect();
    labels.join(".") + "."
}

/// Copies every name of every entry; gives the issuers by number.
fn copy(client: &mut Client, names: u64) -> anyhow::Result<Vec<String>> {
    let mut feed = Feed::new(names);
    let mut issuers: Vec<String> = Vec::new();
    let mut out = client.copy_in("COPY copies FROM STDIN")?;
    let mut text = String::with_capacity(2 * COPY_BYTES);
    while let Some(entry) = feed.entry() {
        let issuance = &entry.issuance;
        if issuers.len() <= issuance.issuer {
            issuers.resize(issuance.issuer + 1, String::new());
        }
        if let Some(issuer) = issuers.get_mut(issuance.issuer) {
            feed.issuer(&entry).clone_into(issuer);
        }
        for name in &issuance.names {
            let host = name.strip_prefix("*.").unwrap_or(name);
            writeln!(
                text,
                "{}\t{}\t{}\t{}\t{}\t{}\t{}\t{}",
                key(host),
                issuance_key(&entry) as i64,
                entry.timestamp_ms / 1_000,
                issuance.not_before,
                issuance.not_after,
                issuance.issuer,
                host.len() < name.len(),
                escaped(issuance.organisation.as_deref().unwrap_or(""))
            )?;
        }
        if text.len() >= COPY_BYTES {
            out.write_all(text.as_bytes())?;
            text.clear();
        }
    }
    out.write_all(text.as_bytes())?;
    out.finish()?;
    Ok(issuers)
}

/// As the text format of COPY wants it.
fn escaped(text: &str) -> String {
    text.replace('\\', "\\\\")
        .replace('\t', "\\t")
        .replace('\n', "\\n")
}
