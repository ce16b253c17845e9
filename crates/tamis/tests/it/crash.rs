//! kill -9 at any moment: what was acknowledged is there, once, and the rest can be imported again.

use std::collections::BTreeSet;
use std::io::{BufRead, BufReader, Read};
use std::path::Path;
use std::process::{ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::corpus::{Corpus, Numbers};
use crate::run::{Home, Run};

/// Kills in a run of the tests; `TAMIS_CRASH_RUNS` asks for more.
const RUNS: u64 = 50;
/// Rows of a memtable: many flushes, some, and none.
const FLUSH_ROWS: [&str; 3] = ["300", "2000", "1000000"];
const ENTRIES: u64 = 3_000;

#[test]
fn fresh_folders_survive_kill_9() {
    campaign("kills of fresh folders", 2, 1);
}

#[test]
fn continued_folders_survive_kill_9() {
    campaign("kills of continued folders", 3, 6);
}

/// Kills `fifths` of all runs; after each `kills_per_folder` the folder is finished and compared with one
/// that was never disturbed.
fn campaign(what: &str, fifths: u64, kills_per_folder: u64) {
    let runs = crash_runs() * fifths / 5;
    let mut random = Numbers::told(what);
    let corpus_home = Home::new();
    let corpus = Corpus::write(&corpus_home.path("corpus"), ENTRIES, 3);
    let everything: BTreeSet<String> = corpus.files.keys().cloned().collect();
    let undisturbed = Home::new();
    let started = Instant::now();
    Run::of(&mut import(&undisturbed, &corpus, FLUSH_ROWS[0])).code(0);
    let whole = started.elapsed();
    let expected = answers(&undisturbed, &corpus, &everything);
    let (mut home, mut acknowledged, mut killed, mut told) = (Home::new(), BTreeSet::new(), 0, 0);
    for run in 0..runs {
        let flush_rows = FLUSH_ROWS[(run % 3) as usize];
        let outcome = kill(
            import(&home, &corpus, flush_rows),
            &corpus.folder,
            whole,
            &mut random,
        );
        killed += u64::from(outcome.killed);
        told += outcome.acknowledged.len();
        acknowledged.extend(outcome.acknowledged);
        // Killed before there was a manifest, there is no index yet, and nothing was promised.
        if home.data().join("MANIFEST").exists() {
            home.assert_whole();
            corpus.assert_held(&home.data(), &acknowledged);
        } else {
            assert!(acknowledged.is_empty());
        }
        if run % kills_per_folder == kills_per_folder - 1 || run == runs - 1 {
            Run::of(&mut import(&home, &corpus, flush_rows)).code(0);
            assert_eq!(answers(&home, &corpus, &everything), expected);
            (home, acknowledged) = (Home::new(), BTreeSet::new());
        }
    }
    eprintln!("{what}: {killed} of {runs}, {told} files acknowledged before; an import takes {whole:?}");
    assert!(
        2 * killed > runs,
        "only {killed} of {runs} imports were killed: the delays do not fit"
    );
}

/// Compaction changes no answer, wherever it stops.
#[test]
fn compaction_survives_kill_9() {
    let mut random = Numbers::told("kills of compactions");
    let corpus_home = Home::new();
    let corpus = Corpus::write(&corpus_home.path("corpus"), ENTRIES, 3);
    let everything: BTreeSet<String> = corpus.files.keys().cloned().collect();
    let whole = Home::new();
    Run::of(&mut import(&whole, &corpus, FLUSH_ROWS[0])).code(0);
    let expected = answers(&whole, &corpus, &everything);
    let started = Instant::now();
    let home = whole.copy();
    let before = home.ct(&["compact", "--format", "json"]).code(0).json();
    let lasts = started.elapsed();
    assert!(before["segments_merged"].as_u64() > Some(2), "{before}");
    assert_eq!(answers(&home, &corpus, &everything), expected);
    let (runs, mut killed) = (crash_runs() / 5, 0);
    for _ in 0..runs {
        let home = whole.copy();
        let mut child = home.command(&["compact"]).stdout(Stdio::null()).spawn().unwrap();
        std::thread::sleep(Duration::from_micros(
            random.below(lasts.as_micros() as u64 * 2 / 3),
        ));
        child.kill().unwrap();
        killed += u64::from(!child.wait().unwrap().success());
        home.assert_whole();
        corpus.assert_held(&home.data(), &everything);
        let after = home.ct(&["compact", "--format", "json"]).code(0).json();
        assert_eq!(after["segments"], before["segments"]);
        assert_eq!(answers(&home, &corpus, &everything), expected);
    }
    eprintln!("kills of compactions: {killed} of {runs}; one takes {lasts:?}");
    assert!(
        2 * killed > runs,
        "only {killed} of {runs} were killed: the delays do not fit"
    );
}

/// A prune removes all that it names or nothing, wherever it stops.
#[test]
fn prunes_survive_kill_9() {
    let mut random = Numbers::told("kills of prunes");
    let corpus_home = Home::new();
    let corpus = Corpus::write(&corpus_home.path("corpus"), ENTRIES, 3);
    let whole = Home::new();
    Run::of(&mut import(&whole, &corpus, FLUSH_ROWS[0])).code(0);
    let merged = whole.copy();
    merged.ct(&["compact"]).code(0);
    let before = state(&whole, &corpus);
    let mut ends: Vec<&str> = before
        .1
        .iter()
        .filter_map(|row| row["not_after"].as_str())
        .collect();
    ends.sort_unstable();
    let arguments = ["prune", "--expired", ends[ends.len() / 2], "--format", "json"];
    let started = Instant::now();
    let home = merged.copy();
    let done = home.ct(&arguments).code(0).json();
    let mut lasts = started.elapsed();
    assert!(done["issuances"].as_u64() > Some(100), "{done}");
    let after = state(&home, &corpus);
    assert_ne!(before, after);
    let (runs, mut killed, mut finished) = (crash_runs() / 5, 0, 0);
    for run in 0..runs {
        let home = if run % 2 == 0 { &whole } else { &merged }.copy();
        let mut child = home.command(&arguments).stdout(Stdio::null()).spawn().unwrap();
        std::thread::sleep(Duration::from_micros(random.below(lasts.as_micros() as u64)));
        child.kill().unwrap();
        if child.wait().unwrap().success() {
            // The machine was busier when it was measured.
            lasts = lasts * 2 / 3;
        } else {
            killed += 1;
        }
        let found = state(&home, &corpus);
        finished += u64::from(found == after);
        assert!(found == before || found == after, "neither whole nor gone");
        home.ct(&arguments).code(0);
        assert!(state(&home, &corpus) == after);
        Run::of(&mut import(&home, &corpus, FLUSH_ROWS[0])).code(0);
        assert!(state(&home, &corpus) == before);
    }
    eprintln!(
        "kills of prunes: {killed} of {runs}, {finished} of them had come to the end; one takes {lasts:?}"
    );
    assert!(
        4 * killed > runs,
        "only {killed} of {runs} were killed: the delays do not fit"
    );
}

/// A backup is there whole or not at all, and the index is what it was.
#[test]
fn backups_survive_kill_9() {
    let mut random = Numbers::told("kills of backups");
    let corpus_home = Home::new();
    let corpus = Corpus::write(&corpus_home.path("corpus"), ENTRIES, 3);
    let everything: BTreeSet<String> = corpus.files.keys().cloned().collect();
    let home = Home::new();
    Run::of(&mut import(&home, &corpus, "150")).code(0);
    let expected = answers(&home, &corpus, &everything);
    let back_up = |number: u64| {
        let to = home.path(&format!("copy-{number}"));
        let command = home.command(&["backup", to.to_str().unwrap()]);
        (to, command)
    };
    let started = Instant::now();
    Run::of(&mut back_up(u64::MAX).1).code(0);
    let mut lasts = started.elapsed();
    let (runs, mut killed, mut there) = (crash_runs() / 5, 0, 0);
    for run in 0..runs {
        let (to, mut command) = back_up(run);
        let mut child = command.stdout(Stdio::null()).spawn().unwrap();
        std::thread::sleep(Duration::from_micros(
            random.below(lasts.as_micros() as u64 * 2 / 3),
        ));
        child.kill().unwrap();
        if child.wait().unwrap().success() {
            // The machine was busier when it was measured.
            lasts = lasts * 2 / 3;
        } else {
            killed += 1;
        }
        assert!(answers(&home, &corpus, &everything) == expected);
        if to.exists() {
            there += 1;
        } else {
            // What the killed one left is in nobody's way.
            Run::of(&mut back_up(run).1).code(0);
        }
        assert!(!home.path(&format!("copy-{run}.partial")).exists());
        assert_eq!(corpus.assert_held(&to, &everything) as u64, ENTRIES);
        Run::of(crate::run::tamis(&["ct", "verify", "--data"]).arg(&to)).code(0);
    }
    eprintln!(
        "kills of backups: {killed} of {runs}, {there} of them had come to the end; one takes {lasts:?}"
    );
    assert!(
        4 * killed > runs,
        "only {killed} of {runs} were killed: the delays do not fit"
    );
}

/// Totals and rows of a folder that is whole.
fn state(home: &Home, corpus: &Corpus) -> (Vec<(String, Value)>, Vec<Value>) {
    home.assert_whole();
    (home.totals(), crate::prune::rows(home, &corpus.endings()))
}

fn crash_runs() -> u64 {
    std::env::var("TAMIS_CRASH_RUNS").map_or(RUNS, |runs| runs.parse().expect("a number of runs"))
}

/// Totals and all names of a folder that holds everything.
fn answers(
    home: &Home,
    corpus: &Corpus,
    everything: &BTreeSet<String>,
) -> (Vec<(String, Value)>, Vec<Value>) {
    home.assert_whole();
    assert_eq!(corpus.assert_held(&home.data(), everything) as u64, ENTRIES);
    let names = corpus
        .endings()
        .into_iter()
        .flat_map(|ending| home.ask(&["names", ending]));
    (home.totals(), names.collect())
}

fn import(home: &Home, corpus: &Corpus, flush_rows: &str) -> Command {
    let mut command = home.command(&["import", "--format", "ndjson", "--flush-rows", flush_rows]);
    command.args(corpus.arguments());
    command
}

struct Killed {
    killed: bool,
    /// Names of the files that were told to be durable.
    acknowledged: BTreeSet<String>,
}

/// Starts the import and kills it: half of the times after a random time, half of the times right
/// behind an acknowledgement.
fn kill(mut command: Command, folder: &Path, whole: Duration, random: &mut Numbers) -> Killed {
    let mut child = command
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap());
    let mut acknowledged = BTreeSet::new();
    if random.below(2) == 0 {
        let delay = Duration::from_micros(random.below(whole.as_micros() as u64));
        std::thread::sleep(delay);
    } else {
        for _ in 0..=random.below(600) {
            acknowledged.extend(next(&mut lines, folder));
        }
        std::thread::sleep(Duration::from_micros(random.below(20_000)));
    }
    child.kill().unwrap();
    while let Some(file) = next(&mut lines, folder) {
        acknowledged.insert(file);
    }
    let status = child.wait().unwrap();
    let mut err = String::new();
    child.stderr.take().unwrap().read_to_string(&mut err).unwrap();
    let killed = std::os::unix::process::ExitStatusExt::signal(&status) == Some(9);
    assert!(killed || status.success(), "it ended by itself: {status} {err}");
    Killed { killed, acknowledged }
}

/// The file of the next whole line that promises one.
fn next(lines: &mut BufReader<ChildStdout>, folder: &Path) -> Option<String> {
    loop {
        let mut line = String::new();
        lines.read_line(&mut line).unwrap();
        if !line.ends_with('\n') {
            return None;
        }
        let told: Value = serde_json::from_str(&line).unwrap();
        if told["durable"] == Value::Bool(true) {
            assert_eq!(told["refused"], Value::Null, "{told}");
            let file = Path::new(told["file"].as_str().unwrap());
            assert_eq!(file.parent(), Some(folder));
            return Some(file.file_name().unwrap().to_str().unwrap().to_owned());
        }
    }
}
