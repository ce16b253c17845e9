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
