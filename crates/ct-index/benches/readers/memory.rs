//! What stays in memory after many questions, each way in a process of its own.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::Context;

use crate::questions::{Kind, Questions};
use crate::{CACHE_MIB, process, ways};

/// Says to a copy of this program what to do: way, MiB, questions, folder.
const ASKED: &str = "TAMIS_BENCH_MEMORY";

pub(crate) fn run(dir: &Path, count: usize) -> anyhow::Result<()> {
    println!("\n== resident after {count} questions (2 of 5 names, 2 search, 1 by SHA-256)");
    for cache_mib in CACHE_MIB {
        println!(
            "   {:30} {:>10} {:>10} {:>10} {:>14}",
            format!("{cache_mib} MiB"),
            "own MB",
            "files MB",
            "CPU µs",
            "MB from disk"
        );
        for way in 0..ways(cache_mib).len() {
            let asked = format!("{way} {cache_mib} {count} {}", dir.display());
            let status = Command::new(std::env::current_exe()?)
                .env(ASKED, asked)
                .status()?;
            anyhow::ensure!(status.success(), "the copy that measures memory failed");
        }
    }
    Ok(())
}

/// True when this process is such a copy, which then has measured.
pub(crate) fn asked() -> anyhow::Result<bool> {
    let Ok(asked) = std::env::var(ASKED) else {
        return Ok(false);
    };
    let mut words = asked.splitn(4, ' ');
    let mut number = || {
        words
            .next()
            .context("a number is missing")?
            .parse::<usize>()
            .map_err(anyhow::Error::from)
    };
    let (way, cache_mib, count) = (number()?, number()?, number()?);
    let dir = PathBuf::from(words.next().context("the folder is missing")?);
    measure(way, cache_mib, count, &dir)?;
    Ok(true)
}

fn measure(way: usize, cache_mib: usize, count: usize, dir: &Path) -> anyhow::Result<()> {
    let ways = ways(cache_mib);
    let way = ways.get(way).context("no such way")?;
    let questions = Questions::read(&dir.join("questions"))?;
    let snapshot = way.open(dir)?;
    let (before, before_bytes) = (process::resident_mb()?, process::bytes_from_disk()?);
    let start = process::cpu_us();
    for number in 0..count {
        let kind = match number % 5 {
            0 | 1 => Kind::Names,
            2 | 3 => Kind::Search,
            _ => Kind::BySha256,
        };
        // A stride without a common factor: each is asked for, in no order.
        questions.ask(&snapshot, kind, number.wrapping_mul(7_919))?;
    }
    let each = (process::cpu_us() - start) / count as f64;
    let (own, files) = process::resident_mb()?;
    println!(
        "   {:30} {own:10.1} {files:10.1} {each:10.1} {:14.1}   (own {:.1} and files {:.1} before)",
        way.name,
        (process::bytes_from_disk()? - before_bytes) as f64 / 1e6,
        before.0,
        before.1,
    );
    Ok(())
}
