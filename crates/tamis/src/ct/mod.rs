//! `tamis ct …`: one file a command, and what they share.

mod backup;
mod certificate;
mod compact;
mod cursor;
mod files;
mod folder;
pub(crate) mod follow;
mod import;
mod inspect;
pub(crate) mod logs;
mod names;
mod numbering;
mod parse;
pub(crate) mod prune;
mod search;
mod show;
mod stats;
mod suffixes;
mod summary;
mod verify;

use std::collections::BTreeSet;
use std::path::Path;

use anyhow::Context;
use tamis_ct_index::{Options, Snapshot};
use tamis_hostname::Identifier;

use crate::Outcome;
use crate::cli::CtCommand;

/// Faults told in one go; a damaged segment can have thousands.
const FAULTS_TOLD_MAX: usize = 20;

pub(crate) fn run(command: CtCommand) -> anyhow::Result<Outcome> {
    match command {
        CtCommand::Import(args) => import::run(&args),
        CtCommand::Follow(args) => follow::run(&args),
        CtCommand::Logs(args) => logs::run(&args),
        CtCommand::Parse(args) => parse::run(&args),
        CtCommand::Names(args) => names::run(&args),
        CtCommand::Search(args) => search::run(&args),
        CtCommand::Show(args) => show::run(&args),
        CtCommand::Stats(args) => stats::run(&args),
        CtCommand::Compact(args) => compact::run(&args),
        CtCommand::Prune(args) => prune::run(&args),
        CtCommand::Backup(args) => backup::run(&args),
        CtCommand::Verify(args) => verify::run(&args),
        CtCommand::Inspect(args) => inspect::run(&args),
    }
}

/// A picture of the index for reading; damage found on opening is told at once.
fn open_snapshot(data: &Path) -> anyhow::Result<Snapshot> {
    folder::check_readable(data)?;
    let snapshot = Snapshot::open(data, &Options::default()).context("open the index")?;
    warn_of_faults(&snapshot);
    Ok(snapshot)
}

/// Tells the damage found on opening.
fn warn_of_faults(snapshot: &Snapshot) {
    tell_faults("warning: ", snapshot.faults());
}

/// Tells faults, each once and not more than anybody reads.
fn tell_faults<'f>(before: &str, faults: impl IntoIterator<Item = &'f tamis_ct_index::Error>) {
    let mut told = BTreeSet::new();
    for fault in faults {
        let fault = fault.to_string();
        if told.contains(&fault) {
            continue;
        }
        if told.len() == FAULTS_TOLD_MAX {
            talk!("{before}there is more damage; `tamis ct verify` lists all of it");
            return;
        }
        talk!("{before}{fault}");
        told.insert(fault);
    }
}

/// The host name that a person meant, in canonical form.
fn host_of(text: &str) -> anyhow::Result<String> {
    let trimmed = text.trim();
    match tamis_hostname::read(trimmed.as_bytes()) {
        Identifier::Host(host) => Ok(host.host().to_owned()),
        other => Err(no_host(trimmed, &other)),
    }
}

/// Why a text is no host name, and what to do with it.
fn no_host(text: &str, read: &Identifier<'_>) -> anyhow::Error {
    match read {
        Identifier::Ip(_) | Identifier::Email(_) => {
            anyhow::anyhow!("{text} is no domain; `tamis ct search {text}` finds its certificates")
        }
        _ => {
            anyhow::anyhow!("\"{text}\" is no domain name; write it like example.com, or com for a whole TLD")
        }
    }
}

/// Damage met while answering or on opening: where it took rows the command failed.
fn report_faults(snapshot: &Snapshot, met: &[tamis_ct_index::Error]) -> anyhow::Result<()> {
    tell_faults("", met);
    anyhow::ensure!(
        met.is_empty() && !snapshot.rows_lost(),
        "the answer is incomplete: what the damaged files held is missing"
    );
    Ok(())
}
