//! Metrics of following, as Prometheus text.
//!
//! Labels are closed: the logs that are followed, kinds of questions and answers, reasons to pause.

use std::fmt::Write as _;
use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;

use super::asked::{AnswerKind, Question};
use super::lie::LieKind;
use super::pressure::Pressure;
use super::status::LogStatus;
use super::world::World;

/// Scrapes at once; more wait.
const SCRAPES_MAX: usize = 8;
const REQUEST_BYTES_MAX: usize = 8 << 10;
const SCRAPE_MAX: std::time::Duration = std::time::Duration::from_secs(10);

/// Gives what serves at a socket that listens.
pub(crate) fn serve(
    listener: &std::net::TcpListener,
    world: Arc<World>,
) -> std::io::Result<impl Future<Output = ()> + Send + 'static> {
    let listener = listener.try_clone()?;
    listener.set_nonblocking(true)?;
    let listener = TcpListener::from_std(listener)?;
    let scrapes = Arc::new(Semaphore::new(SCRAPES_MAX));
    Ok(async move {
        loop {
            let Ok(permit) = Arc::clone(&scrapes).acquire_owned().await else {
                return;
            };
            let Ok((stream, _)) = listener.accept().await else {
                tokio::time::sleep(std::time::Duration::from_millis(100)).await;
                continue;
            };
            let world = Arc::clone(&world);
            tokio::spawn(async move {
                let _ = tokio::time::timeout(SCRAPE_MAX, answer(stream, &world)).await;
                drop(permit);
            });
        }
    })
}

/// One request a connection: all that a scraper needs.
async fn answer(mut stream: TcpStream, world: &World) -> std::io::Result<()> {
    let mut request = Vec::new();
    while !request.windows(4).any(|end| end == b"\r\n\r\n") {
        if request.len() > REQUEST_BYTES_MAX || stream.read_buf(&mut request).await? == 0 {
            return Ok(());
        }
    }
    let is_metrics = request.starts_with(b"GET /metrics ") || request.starts_with(b"GET /metrics?");
    let (status, body) = if is_metrics {
        ("200 OK", text(world))
    } else {
        ("404 Not Found", "metrics are at /metrics\n".to_owned())
    };
    let head = format!(
        "HTTP/1.1 {status}\r\nContent-Type: text/plain; version=0.0.4; charset=utf-8\r\nContent-Length: {}\r\nConnection: close\r\n\r\n",
        body.len()
    );
    stream.write_all(head.as_bytes()).await?;
    stream.write_all(body.as_bytes()).await?;
    stream.shutdown().await
}

/// Text under construction.
struct Text(String);

impl Text {
    fn family(&mut self, name: &str, kind: &str, help: &str) {
        // Writing to a String cannot fail.
        let _ = writeln!(self.0, "# HELP {name} {help}\n# TYPE {name} {kind}");
    }

    fn value(&mut self, name: &str, labels: &[(&str, &str)], value: impl std::fmt::Display) {
        self.0.push_str(name);
        for (nth, (label, value)) in labels.iter().enumerate() {
            let open = if nth == 0 { '{' } else { ',' };
            let value = value
                .replace('\\', "\\\\")
                .replace('"', "\\\"")
                .replace('\n', "\\n");
            let _ = write!(self.0, "{open}{label}=\"{value}\"");
        }
        if !labels.is_empty() {
            self.0.push('}');
        }
        let _ = writeln!(self.0, " {value}");
    }
}

/// A gauge of every log.
type Gauge = (&'static str, &'static str, fn(&LogStatus) -> f64);

const GAUGES: [Gauge; 14] = [
    (
        "tamis_follow_tree_size",
        "Leaves of the largest head that holds.",
        |log| log.tree_size as f64,
    ),
    (
        "tamis_follow_verified_leaves",
        "Leaves from 0 on that are read and proved without a gap.",
        |log| log.verified as f64,
    ),
    ("tamis_follow_read_leaves", "Leaves that are read.", |log| {
        log.read as f64
    }),
    (
        "tamis_follow_backlog_leaves",
        "Leaves that are not read.",
        |log| log.backlog as f64,
    ),
    (
        "tamis_follow_unproved_leaves",
        "Leaves that are read and not proved yet.",
        |log| log.unproved as f64,
    ),
    (
        "tamis_follow_unreadable_leaves",
        "Leaves that are no entries.",
        |log| log.unreadable as f64,
    ),
    (
        "tamis_follow_holes",
        "Gaps between leaves that are read.",
        |log| log.holes.len() as f64,
    ),
    (
        "tamis_follow_lag_seconds",
        "Since everything the log showed was read.",
        |log| log.lag_s as f64,
    ),
    (
        "tamis_follow_rate_leaves_per_second",
        "At which the log is read.",
        |log| log.rate,
    ),
    (
        "tamis_follow_growth_leaves_per_second",
        "At which the log grows.",
        |log| log.growth,
    ),
    (
        "tamis_follow_not_converging",
        "1 while the log grows faster than it lets itself be read.",
        |log| f64::from(u8::from(log.not_converging)),
    ),
    (
        "tamis_follow_accepted_roots",
        "Roots that the log accepts; 0 where it does not tell.",
        |log| log.roots.unwrap_or(0) as f64,
    ),
    (
        "tamis_follow_concurrency",
        "Requests at once that the operator allows now.",
        |log| f64::from(log.concurrency),
    ),
    (
        "tamis_follow_spacing_seconds",
        "Between the starts of two requests to the operator.",
        |log| log.spacing_ms as f64 / 1e3,
    ),
];

/// All series.
pub(crate) fn text(world: &World) -> String {
    let mut text = Text(String::with_capacity(64 << 10));
    let logs = world.board.asked();
    for (name, help, gauge) in GAUGES {
        text.family(name, "gauge", help);
        for (log, _) in &logs {
            text.value(name, &[("log", &log.url)], gauge(log));
        }
    }
    let name = "tamis_follow_lies_total";
    text.family(name, "counter", "Contradictions that the log was caught in.");
    for (log, _) in &logs {
        for kind in LieKind::ALL {
            let count = log.lies.iter().filter(|lie| lie.kind == kind).count();
            text.value(name, &[("log", &log.url), ("kind", kind.as_str())], count);
        }
    }
    let name = "tamis_follow_requests_total";
    text.family(
        name,
        "counter",
        "Requests by what was asked and how it was answered.",
    );
    for (log, asked) in &logs {
        for question in Question::ALL {
            for kind in AnswerKind::ALL {
                let count = asked.count(question, kind);
                if count > 0 {
                    let labels = [
                        ("log", log.url.as_str()),
                        ("question", question.as_str()),
                        ("answer", kind.as_str()),
                    ];
                    text.value(name, &labels, count);
                }
            }
        }
    }
    let name = "tamis_follow_received_bytes_total";
    text.family(name, "counter", "Bytes of answers, as they came.");
    for (log, asked) in &logs {
        text.value(name, &[("log", &log.url)], asked.bytes());
    }
    let name = "tamis_follow_request_seconds";
    text.family(name, "summary", "How long answers took.");
    for (log, asked) in &logs {
        let (sum, count) = asked.latency();
        text.value(&format!("{name}_sum"), &[("log", &log.url)], sum);
        text.value(&format!("{name}_count"), &[("log", &log.url)], count);
    }
    shared(world, &mut text);
    text.0
}

/// What is no log's alone.
fn shared(world: &World, text: &mut Text) {
    let counts = &world.counts;
    let name = "tamis_follow_entries_total";
    text.family(name, "counter", "Leaves read since the start, by protocol.");
    let of = |count: &std::sync::atomic::AtomicU64| count.load(Ordering::Relaxed);
    text.value(name, &[("protocol", "rfc6962")], of(&counts.entries_rfc6962));
    text.value(name, &[("protocol", "static")], of(&counts.entries_static));
    let name = "tamis_follow_issuances_total";
    text.family(name, "counter", "Entries since the start, by what they brought.");
    text.value(name, &[("outcome", "new")], of(&counts.new));
    text.value(name, &[("outcome", "copy")], of(&counts.copies));
    text.value(name, &[("outcome", "duplicate")], of(&counts.duplicates));
    let name = "tamis_follow_static_only_issuances";
    text.family(
        name,
        "gauge",
        "Issuances that only static logs have, as far as logs were read.",
    );
    text.value(name, &[], world.static_only());
    let name = "tamis_follow_paused";
    text.family(name, "gauge", "1 while reading pauses for this reason.");
    for pressure in Pressure::ALL {
        let is_paused = world.pressure() == Some(pressure);
        text.value(name, &[("reason", pressure.as_str())], u8::from(is_paused));
    }
    let name = "tamis_follow_issuers";
    text.family(name, "gauge", "Certificates of issuers that are kept.");
    text.value(name, &[], world.issuers.count());
    let name = "tamis_follow_list_refused_total";
    text.family(name, "counter", "Log lists that were not taken.");
    text.value(name, &[], of(&counts.lists_refused));
    if let Some(list) = world.board.list() {
        let name = "tamis_follow_list_timestamp_seconds";
        text.family(name, "gauge", "When the log list was made.");
        text.value(name, &[], list.timestamp_ms / 1_000);
    }
}
