//! `tamis`: the one binary. Reads arguments, runs a command, turns its outcome into an exit code.
//!
//! Exit codes: 0 success, 1 nothing found or some inputs rejected, 2 failed or misused.

#![forbid(unsafe_code)]
#![cfg_attr(test, allow(clippy::unwrap_used, clippy::panic))]

#[macro_use]
mod talk;

mod cli;
mod ct;
mod render;
mod urls;
mod when;

use std::process::ExitCode;

use anyhow::Context;
use clap::{CommandFactory, Parser};

use cli::{Cli, Command};

#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

/// How a command that did not fail ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// All is well.
    Success,
    /// Nothing was found, or some inputs were rejected.
    Nothing,
}

fn main() -> ExitCode {
    let cli = Cli::parse();
    tracing_subscriber::fmt()
        .with_writer(std::io::stderr)
        .with_ansi(false)
        .without_time()
        .with_target(false)
        // Else a closed stderr would be reported on stderr, which panics.
        .log_internal_errors(false)
        .with_max_level(if cli.verbose {
            tracing::Level::DEBUG
        } else {
            tracing::Level::WARN
        })
        .init();
    match run(cli) {
        Ok(Outcome::Success) => ExitCode::SUCCESS,
        Ok(Outcome::Nothing) => ExitCode::from(1),
        // The reader of our output went away (`tamis … | head`): it has what it wanted.
        Err(error) if is_broken_pipe(&error) => ExitCode::SUCCESS,
        Err(error) => {
            talk!("{}", talk::told(&error));
            ExitCode::from(2)
        }
    }
}

fn run(cli: Cli) -> anyhow::Result<Outcome> {
    match cli.command {
        Command::Ct(command) => ct::run(command),
        Command::Urls(command) => urls::run(&command),
        Command::Completions { shell } => {
            // Written in one go: the generator panics where its writer fails.
            let mut script = Vec::new();
            clap_complete::generate(shell, &mut Cli::command(), "tamis", &mut script);
            render::raw(&script)?;
            Ok(Outcome::Success)
        }
        Command::Man { dir } => {
            std::fs::create_dir_all(&dir).with_context(|| format!("create {}", dir.display()))?;
            clap_mangen::generate_to(Cli::command(), &dir)
                .with_context(|| format!("write manual pages to {}", dir.display()))?;
            Ok(Outcome::Success)
        }
    }
}

fn is_broken_pipe(error: &anyhow::Error) -> bool {
    error.chain().any(|cause| {
        let io = cause.downcast_ref::<std::io::Error>();
        let json = cause
            .downcast_ref::<serde_json::Error>()
            .and_then(serde_json::Error::io_error_kind);
        io.map(std::io::Error::kind).or(json) == Some(std::io::ErrorKind::BrokenPipe)
    })
}
