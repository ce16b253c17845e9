//! `tamis ct follow`: reads Certificate Transparency logs into the index, as they grow.

use std::io::IsTerminal as _;
use std::net::{SocketAddr, TcpListener};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context;
use clap::Args;
use indicatif::ProgressBar;
use tamis_ct_index::{Index, Options};
use tamis_ct_log::key::{LogId, PublicKey};
use tamis_ct_log::log_list::{GOOGLE_KEY_PEM, is_loopback};
use tamis_engine::follow::{
    Error, FollowOptions, ListOptions, PressureLimits, SingleLog, Status, Summary, follow, is_archive,
};
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::watch;

use crate::Outcome;
use crate::cli::{DataArgs, FormatArgs, SuffixArgs};
use crate::ct::{folder, logs, suffixes};
use crate::render::counted;

/// Google's list, signed with the key that is built in.
const GOOGLE_LIST: &str = "https://www.gstatic.com/ct/log_list/v3/log_list.json";
/// A key file larger than this is none.
const KEY_BYTES_MAX: u64 = 64 << 10;

#[derive(Debug, Args)]
pub(crate) struct FollowArgs {
    /// List of logs (version 3), its signature beside it (`list.sig` or `list.json.sig` of `list.json`); if
    /// neither this nor --log is given, Google's list
    #[arg(long, value_name = "FILE|URL")]
    log_list: Option<String>,
    /// Key that signs the list: a PEM file, or the PEM itself; the default is Google's
    // A PEM starts with hyphens.
    #[arg(long, value_name = "PEM", requires = "log_list", allow_hyphen_values = true)]
    log_list_key: Option<String>,
    /// Take the list without a signature
    #[arg(long, conflicts_with = "log_list_key")]
    allow_unsigned_list: bool,
    /// How often a list from elsewhere is fetched; one on this machine is looked at with every poll
    #[arg(long, value_name = "TIME", default_value = "1h", value_parser = duration)]
    log_list_refresh: Duration,
    /// Log to follow whatever a list says: the address below which it is read, or archive+file:///path for an
    /// archive of zip files; more than once for more logs
    #[arg(long, value_name = "URL", value_parser = log_url)]
    log: Vec<String>,
    /// Key of the log named by the --log at the same place, base64 as log lists have it
    #[arg(long, value_name = "BASE64", value_parser = log_key)]
    key: Vec<PublicKey>,
    /// Log never to ask, by its id (base64)
    #[arg(long, value_name = "LOG_ID", value_parser = log_id)]
    exclude: Vec<LogId>,
    /// Follow logs too that are not accepted yet
    #[arg(long)]
    pending: bool,
    /// Who reads: an e-mail address or a page, told to the operators of logs; needed for public logs
    #[arg(long, value_name = "CONTACT", env = "TAMIS_CONTACT", value_parser = contact)]
    contact: Option<String>,
    /// Between two looks at a log for new entries
    #[arg(long, value_name = "TIME", default_value = "10s", value_parser = duration)]
    poll_interval: Duration,
    /// How long a tile of entries may wait to become full before it is read as it is
    #[arg(long, value_name = "TIME", default_value = "60s", value_parser = duration)]
    partial_delay: Duration,
    /// End once everything that the logs show is read. A log that fails for a minute is given up; exit code 1
    #[arg(long)]
    until_caught_up: bool,
    /// Serve metrics for Prometheus at this address, such as 127.0.0.1:9464; with port 0 at a free one,
    /// which is told
    #[arg(long, value_name = "ADDR")]
    metrics: Option<SocketAddr>,
    /// What operators and logs allow (TOML), read again whenever it changes
    #[arg(long, value_name = "FILE")]
    parameters: Option<PathBuf>,
    /// Pause while more than this part of the disk is used, in per cent
    #[arg(long, value_name = "PERCENT", default_value_t = 85, value_parser = clap::value_parser!(u8).range(1..=100))]
    disk_max: u8,
    /// Pause while a filter holds more than this part of the keys that it is made for, in per cent
    #[arg(long, value_name = "PERCENT", value_parser = clap::value_parser!(u8).range(1..))]
    filter_max: Option<u8>,
    /// Names of one certificate that are indexed; the rest is counted
    #[arg(long, value_name = "COUNT", default_value_t = 1_000, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    names_max: u32,
    /// Rows of the memtable before it becomes a segment
    #[arg(long, value_name = "ROWS", default_value_t = 200_000, value_parser = clap::value_parser!(u32).range(1..=100_000_000))]
    flush_rows: u32,
    #[command(flatten)]
    data: DataArgs,
    #[command(flatten)]
    format: FormatArgs,
    #[command(flatten)]
    suffixes: SuffixArgs,
}

pub(crate) fn run(args: &FollowArgs) -> anyhow::Result<Outcome> {
    let mut options = options(args)?;
    // Before there is a folder: who is refused leaves nothing behind.
    options.check()?;
    let data = &args.data.data;
    folder::check_writable(data)?;
    if let Some(address) = args.metrics {
        options.metrics = Some(Arc::new(listen(address)?));
    }
    let index = Index::open(
        data,
        Options {
            flush_rows: args.flush_rows as usize,
            public_suffixes: suffixes::read(&args.suffixes)?,
            ..Options::default()
        },
    )
    .context("open the index")?;
    crate::ct::warn_of_faults(&index.snapshot());
    let index = Arc::new(index);
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .thread_name("tamis-follow")
        .build()
        .context("start the threads")?;
    let followed = runtime.block_on(until_told(Arc::clone(&index), options, data));
    // Tasks that did not stop hold the index no longer than this.
    runtime.shutdown_timeout(Duration::from_secs(2));
    // Somebody holds it still only where the disk stalls: then closing would wait as long as it does.
    let closed = Arc::try_unwrap(index).map_or(Ok(()), Index::close);
    let summary = followed.map_err(|error| with_hint(error, args))?;
    closed.context("close the index")?;
    tell(&summary);
    match logs::print(&summary.status, args.format.format) {
        Err(error) if crate::is_broken_pipe(&error) => {}
        printed => printed?,
    }
    Ok(if summary.failing.is_empty() {
        Outcome::Success
    } else {
        Outcome::Nothing
    })
}

/// Follows until a signal, or the end that was asked for.
async fn until_told(index: Arc<Index>, options: FollowOptions, data: &Path) -> anyhow::Result<Summary> {
    let mut terminate = signal(SignalKind::terminate()).context("listen for signals")?;
    let mut interrupt = signal(SignalKind::interrupt()).context("listen for signals")?;
    let (stop, stopped) = watch::channel(false);
    let bar = progress(data);
    let following = follow(index, options, stopped);
    tokio::pin!(following);
    let followed = loop {
        tokio::select! {
            followed = &mut following => break followed,
            _ = terminate.recv() => { stop.send_replace(true); }
            _ = interrupt.recv() => { stop.send_replace(true); }
        }
    };
    if let Some((bar, showing)) = bar {
        showing.abort();
        bar.finish_and_clear();
    }
    Ok(followed?)
}

fn listen(address: SocketAddr) -> anyhow::Result<TcpListener> {
    let listener = TcpListener::bind(address)
        .with_context(|| format!("serve metrics at {address}; name a free address of this machine"))?;
    let address = listener
        .local_addr()
        .context("ask for the address of the metrics")?;
    talk!("metrics are at http://{address}/metrics");
    Ok(listener)
}

/// What to do where no list was taken.
fn with_hint(error: anyhow::Error, args: &FollowArgs) -> anyhow::Error {
    if !matches!(error.downcast_ref(), Some(Error::NoList { .. })) {
        return error;
    }
    let is_own = args.log_list.is_some() && args.log_list_key.is_none() && !args.allow_unsigned_list;
    let hint = if is_own {
        "a list that is not Google's needs its own key (--log-list-key PEM)"
    } else {
        "check --log-list and what lies there"
    };
    anyhow::anyhow!("{error}; {hint}")
}

/// A line that lives, where somebody looks.
fn progress(data: &Path) -> Option<(ProgressBar, tokio::task::JoinHandle<()>)> {
    if !std::io::stderr().is_terminal() {
        return None;
    }
    let bar = ProgressBar::new_spinner();
    let (shown, data) = (bar.clone(), data.to_owned());
    let showing = tokio::spawn(async move {
        loop {
            tokio::time::sleep(Duration::from_secs(1)).await;
            if let Some(status) = Status::read(&data) {
                shown.set_message(line(&status));
                shown.tick();
            }
        }
    });
    Some((bar, showing))
}

/// All logs in one line.
fn line(status: &Status) -> String {
    let sum = |of: fn(&tamis_engine::follow::LogStatus) -> u64| -> u64 { status.logs.iter().map(of).sum() };
    let rate: f64 = status.logs.iter().map(|log| log.rate).sum();
    let eta = status.logs.iter().filter_map(|log| log.eta_s).max();
    let failing = status.logs.iter().filter(|log| log.status == "waiting").count();
    let mut line = format!(
        "{}: {} read, {} behind, {rate:.0}/s",
        counted(status.logs.len() as u64, "log", "logs"),
        sum(|log| log.read),
        sum(|log| log.backlog),
    );
    if let Some(eta) = eta {
        line.push_str(&format!(", about {} left", logs::span(eta)));
    }
    if failing > 0 {
        line.push_str(&format!(", {failing} failing"));
    }
    let lies = sum(|log| log.lies_total);
    if lies > 0 {
        line.push_str(&format!(", {}", counted(lies, "lie", "lies")));
    }
    if let Some(paused) = status.paused {
        line.push_str(&format!(", paused: {}", logs::pause(paused)));
    }
    line
}

fn tell(summary: &Summary) {
    talk!(
        "{} read: {}, {} that brought something",
        counted(summary.entries, "entry", "entries"),
        counted(summary.new, "new issuance", "new issuances"),
        counted(summary.copies, "copy", "copies"),
    );
    for (log, why) in &summary.failing {
        talk!("{log} was not read to its end: {why}");
    }
}

fn options(args: &FollowArgs) -> anyhow::Result<FollowOptions> {
    anyhow::ensure!(
        args.log.len() == args.key.len(),
        "each --log needs a --key, and each --key a --log: there are {} and {}",
        args.log.len(),
        args.key.len()
    );
    let source = match (&args.log_list, args.log.is_empty()) {
        (Some(source), _) => Some(source.clone()),
        (None, true) => Some(GOOGLE_LIST.to_owned()),
        (None, false) => None,
    };
    let list = source
        .map(|source| -> anyhow::Result<ListOptions> {
            Ok(ListOptions {
                source,
                key: list_key(args)?,
                refresh: args.log_list_refresh,
                excluded: args.exclude.clone(),
                pending: args.pending,
            })
        })
        .transpose()?;
    let logs = args.log.iter().zip(&args.key);
    Ok(FollowOptions {
        list,
        logs: logs
            .map(|(url, key)| SingleLog {
                url: url.clone(),
                key: key.clone(),
            })
            .collect(),
        contact: args.contact.clone(),
        poll_interval: args.poll_interval,
        partial_delay: args.partial_delay,
        until_caught_up: args.until_caught_up,
        metrics: None,
        parameters: args.parameters.clone(),
        pressure: PressureLimits {
            disk: f64::from(args.disk_max) / 100.0,
            filter: args.filter_max.map(|percent| f64::from(percent) / 100.0),
            ..PressureLimits::default()
        },
        names_max: args.names_max as usize,
    })
}

/// The key whose signature the list must have.
fn list_key(args: &FollowArgs) -> anyhow::Result<Option<PublicKey>> {
    if args.allow_unsigned_list {
        return Ok(None);
    }
    let pem = match &args.log_list_key {
        None => GOOGLE_KEY_PEM.as_bytes().to_vec(),
        Some(pem) if pem.contains("-----BEGIN") => pem.clone().into_bytes(),
        Some(path) => {
            let told = || format!("read the key of the log list {path}");
            let length = std::fs::metadata(path).with_context(told)?.len();
            anyhow::ensure!(length <= KEY_BYTES_MAX, "{path} is no key: it has {length} bytes");
            std::fs::read(path).with_context(told)?
        }
    };
    let key =
        PublicKey::from_pem(&pem).context("the key of the log list is none; it is a PUBLIC KEY in PEM")?;
    Ok(Some(key))
}

/// `500ms`, `10s`, `2m`, `1h`, or seconds.
fn duration(text: &str) -> Result<Duration, String> {
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    let (count, unit) = text.split_at(digits);
    let milliseconds = match unit {
        "ms" => 1,
        "" | "s" => 1_000,
        "m" => 60_000,
        "h" => 3_600_000,
        "d" => 86_400_000,
        _ => 0,
    };
    let count: u32 = count.parse().unwrap_or(0);
    let duration = Duration::from_millis(u64::from(count) * milliseconds);
    if duration.is_zero() {
        return Err(format!(
            "\"{text}\" is no time; write it like 10s, 500ms, 2m or 1h"
        ));
    }
    Ok(duration)
}

fn log_url(text: &str) -> Result<String, String> {
    if is_archive(text) {
        return archive_url(text);
    }
    let is_near = text.starts_with("http://") && is_loopback(text);
    if !(is_near || text.starts_with("https://")) {
        return Err("a log is named by its https:// address (http:// on this machine only), an archive of one by archive+file:///path".to_owned());
    }
    if text.contains(['?', '#', '@', ' ']) {
        return Err("the address of a log has no query, no fragment and no user".to_owned());
    }
    Ok(format!("{}/", text.trim_end_matches('/')))
}

/// An archive has to be there: a wrong path would only show as a log that fails.
fn archive_url(text: &str) -> Result<String, String> {
    let path = text.split_once("://").map_or("", |(_, path)| path);
    if !path.starts_with('/') {
        return Err("an archive is named by its whole path: archive+file:///path/to/ct_NAME".to_owned());
    }
    if !Path::new(path).exists() {
        return Err(format!(
            "{path} does not exist; it is the folder of an archive (000.zip and so on), or one such file"
        ));
    }
    Ok(text.trim_end_matches('/').to_owned())
}

fn log_key(text: &str) -> Result<PublicKey, String> {
    PublicKey::from_base64(text)
        .map_err(|error| format!("it is no key of a log ({error}); log lists have it as \"key\""))
}

fn log_id(text: &str) -> Result<LogId, String> {
    LogId::from_base64(text).ok_or_else(|| "it is no log id; log lists have it as \"log_id\"".to_owned())
}

fn contact(text: &str) -> Result<String, String> {
    let is_plain = text.len() <= 200 && text.chars().all(|char| (' '..='~').contains(&char));
    let is_contact = text.contains('@') || text.contains("://");
    if !is_plain || !is_contact {
        return Err("write an e-mail address or the https:// address of a page".to_owned());
    }
    Ok(text.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_read() {
        let check = |text: &str, ms: Option<u64>| {
            assert_eq!(duration(text).ok(), ms.map(Duration::from_millis), "{text}");
        };
        check("10s", Some(10_000));
        check("500ms", Some(500));
        check("2m", Some(120_000));
        check("7", Some(7_000));
        for other in ["", "s", "0s", "-1s", "1.5s", "10 s", "1y", "99999999999s"] {
            check(other, None);
        }
    }

    #[test]
    fn addresses_of_logs_are_secure_or_near() {
        assert_eq!(log_url("https://ct.example/a").unwrap(), "https://ct.example/a/");
        assert!(log_url("http://127.0.0.1:80/a/").is_ok());
        for other in [
            "http://ct.example/",
            "ftp://ct.example/",
            "ct.example",
            "https://a@b/",
            "https://a/?b",
        ] {
            assert!(log_url(other).is_err(), "{other}");
        }
    }

    #[test]
    fn archives_are_named_by_paths_that_exist() {
        let folder = tempfile::tempdir().unwrap();
        let url = format!("archive+file://{}", folder.path().display());
        assert_eq!(log_url(&url), Ok(url.clone()));
        assert_eq!(log_url(&format!("{url}/")), Ok(url.clone()));
        assert!(
            log_url(&format!("{url}/000.zip"))
                .unwrap_err()
                .contains("does not exist")
        );
        assert!(
            log_url("archive+file://ct_name")
                .unwrap_err()
                .contains("whole path")
        );
    }
}
