//! `tamis-testbed ctlog`: simulated logs until the process is ended.

use anyhow::{Context as _, Result};
use clap::Args;
use serde_json::json;
use std::io::Write as _;
use std::net::IpAddr;
use std::path::PathBuf;
use tamis_testbed::ctlog::{CONTROL_HELP, FaultRule, LogKind, LogOptions, World, WorldOptions};

/// Entries of each log where no logs are named.
const ENTRIES: u64 = 2_000;

const FAULTS: &str = "\
Faults (--fault NAME=KIND[,FIELD=VALUE]…), each also with on=KIND+KIND, chance=P, every=N, times=N:
  too_many_requests,probability=P[,retry_after_s=N]   rate_limit,per_s=N[,retry_after_s=N]
  server_error,status=N        html_page,status=N             stall
  latency,ms=N                 slow_head,ms=N                 slow_body,bytes_per_s=N
  cut_body,per_mille=N         reset[,after_bytes=N]          huge_body,bytes=N
  gzip_unasked                 gzip_bomb,inflated_bytes=N
  page_cap,entries=N[,aligned=true]                           refuse_long_range,entries=N,status=N
  refuse_large_body,bytes=N,status=N
  lagging,leaves=N             entries_behind,leaves=N        idle
  wrong_key                    fork,extra=N                   bit_flip,index=N
  bad_hash_tile,level=N,index=N  reordered_data_tile,index=N  wrong_leaf_index,index=N
  wrong_issuer                 missing_issuer
  partials_deleted             partials_missing
Requests (on=): sth entries consistency proof entry_and_proof roots checkpoint level_tile
  partial_level_tile data_tile partial_data_tile names_tile partial_names_tile issuer metadata other
";

const EXAMPLES: &str = "\
Examples:
  tamis-testbed ctlog --dir list
  tamis-testbed ctlog --log alpha,entries=50000,rate=20 --log beta,kind=static,operator=Beta,entries=9000 \\
      --fault alpha=too_many_requests,probability=0.2,on=entries --fault beta=partials_missing
  tamis-testbed ctlog --entries testdata/ct --log alpha,entries=300 --archive archive
";

/// Serve simulated Certificate Transparency logs and their signed list.
///
/// Prints one line of JSON once it listens: the address, where the list and its key are, and the logs. Runs
/// until SIGINT or SIGTERM. Trees and signatures of heads are real; the keys are public and the generated
/// certificates verify nowhere.
#[derive(Args)]
#[command(after_long_help = after_help())]
pub(crate) struct SimulateArguments {
    /// A log: NAME[,FIELD=VALUE]… with kind (rfc6962, static, hybrid), operator, entries, rate (entries/s),
    /// page, page_aligned, rsa, gzip, cosignatures, share_per_mille, state (pending, qualified, usable,
    /// readonly, retired, retired_without_tree, rejected, unlisted). Without any, four logs of all kinds.
    #[arg(long = "log", value_name = "LOG", value_parser = parse_log)]
    logs: Vec<LogOptions>,
    /// What a log does wrong; see below.
    #[arg(long = "fault", value_name = "NAME=FAULT", value_parser = parse_fault)]
    faults: Vec<(String, FaultRule)>,
    /// A JSON file with the fields of a world (seed, logs, address, port, base_url, entries, folder,
    /// clock_ms); options add to it.
    #[arg(long, value_name = "FILE")]
    world: Option<PathBuf>,
    /// Files or folders with real entries, which the logs hold before generated ones.
    #[arg(long, value_name = "PATH", num_args = 1..)]
    entries: Vec<PathBuf>,
    /// The same seed makes the same keys and certificates.
    #[arg(long)]
    seed: Option<u64>,
    /// Address to listen on; loopback if not given.
    #[arg(long)]
    address: Option<IpAddr>,
    /// Port to listen on; any free one if not given.
    #[arg(long)]
    port: Option<u16>,
    /// What the list calls the address, where a proxy stands before it.
    #[arg(long, value_name = "URL")]
    base_url: Option<String>,
    /// Folder to write the list, its signature and its key to, at the start and at each change.
    #[arg(long, value_name = "FOLDER")]
    dir: Option<PathBuf>,
    /// Folder to write each log to as zip files, as public archives of logs are.
    #[arg(long, value_name = "FOLDER")]
    archive: Option<PathBuf>,
}

fn after_help() -> String {
    format!("{FAULTS}\nControl requests:\n{CONTROL_HELP}\n{EXAMPLES}")
}

fn parse_log(text: &str) -> Result<LogOptions, String> {
    LogOptions::parse(text).map_err(|error| format!("{error:#}"))
}

fn parse_fault(text: &str) -> Result<(String, FaultRule), String> {
    let (name, rule) = text.split_once('=').ok_or("it is not NAME=FAULT")?;
    let rule = FaultRule::parse(rule).map_err(|error| format!("{error:#}"))?;
    Ok((name.to_owned(), rule))
}

/// Serves until the process is ended: there is nothing to put away, so a signal may simply end it.
pub(crate) fn simulate(arguments: SimulateArguments) -> Result<()> {
    let archive = arguments.archive.clone();
    let world = World::start(options(arguments)?)?;
    if world.skipped_entries() > 0 {
        eprintln!(
            "{} entries of the files could not be taken: unreadable, or precertificates without their log entry",
            world.skipped_entries()
        );
    }
    if let Some(folder) = &archive {
        for log in world.logs() {
            for file in log.write_archive(folder)? {
                eprintln!("wrote {}", file.display());
            }
        }
    }
    let logs: Vec<_> = world
        .logs()
        .iter()
        .map(|log| {
            json!({
                "name": log.name(),
                "url": log.url(),
                "submission_url": log.submission_url(),
                "log_id": log.log_id().to_string(),
                "size": log.size(),
            })
        })
        .collect();
    let listening = json!({
        "url": world.url(),
        "log_list": world.list_url(),
        "log_list_sig": world.list_signature_url(),
        "key": format!("{}/log_list_key.pem", world.url()),
        "control": format!("{}/_sim/", world.url()),
        "logs": logs,
    });
    let mut stdout = std::io::stdout().lock();
    writeln!(stdout, "{listening}")
        .and_then(|()| stdout.flush())
        .context("say where it listens")?;
    loop {
        std::thread::park();
    }
}

fn options(arguments: SimulateArguments) -> Result<WorldOptions> {
    let mut options = match &arguments.world {
        None => WorldOptions::default(),
        Some(path) => {
            let context = || format!("read {}", path.display());
            let text = std::fs::read(path).with_context(context)?;
            serde_json::from_slice(&text).with_context(context)?
        }
    };
    options.logs.extend(arguments.logs);
    if options.logs.is_empty() {
        options.logs = default_logs();
    }
    options.entries.extend(arguments.entries);
    options.seed = arguments.seed.unwrap_or(options.seed);
    options.address = arguments.address.unwrap_or(options.address);
    options.port = arguments.port.unwrap_or(options.port);
    options.base_url = arguments.base_url.or(options.base_url);
    options.folder = arguments.dir.or(options.folder);
    for (name, rule) in arguments.faults {
        let log = options.logs.iter_mut().find(|log| log.name == name);
        let log = log.with_context(|| format!("there is no log {name:?} to give a fault to"))?;
        log.faults.push(rule);
    }
    Ok(options)
}

/// One of each kind, of operators that need not agree.
fn default_logs() -> Vec<LogOptions> {
    [
        ("alpha", LogKind::Rfc6962, "Alpha"),
        ("beta", LogKind::Static, "Beta"),
        ("gamma", LogKind::Hybrid, "Gamma"),
        ("delta", LogKind::Rfc6962, "Alpha"),
    ]
    .map(|(name, kind, operator)| LogOptions::new(name, kind).operator(operator).entries(ENTRIES))
    .into()
}
