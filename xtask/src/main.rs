//! Tasks of the workspace that need more than a shell line; today: `cargo xtask tidy`.
#![forbid(unsafe_code)]

mod tidy;

use std::process::ExitCode;

const USAGE: &str = "usage: cargo xtask tidy\n\n  tidy   check that documents, limits and code agree (prints path:line: what, and how to mend it)";

fn main() -> ExitCode {
    let mut arguments = std::env::args().skip(1);
    match (arguments.next().as_deref(), arguments.next()) {
        (Some("tidy"), None) => run_tidy(),
        (Some("help" | "--help" | "-h"), None) => {
            println!("{USAGE}");
            ExitCode::SUCCESS
        }
        _ => {
            eprintln!("{USAGE}");
            ExitCode::from(2)
        }
    }
}

fn run_tidy() -> ExitCode {
    match tidy::run() {
        Ok(findings) if findings.is_empty() => {
            eprintln!("tidy: clean");
            ExitCode::SUCCESS
        }
        Ok(findings) => {
            for finding in &findings {
                println!("{finding}");
            }
            eprintln!("tidy: {} to mend", findings.len());
            ExitCode::FAILURE
        }
        Err(error) => {
            eprintln!("tidy: {error:#}");
            ExitCode::from(2)
        }
    }
}
