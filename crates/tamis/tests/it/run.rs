//! The binary under test: how it is started, what it is fed, and what came back.

use std::ffi::OsStr;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use serde_json::Value;
use tempfile::TempDir;

/// A file or folder of the real data.
pub(crate) fn testdata(path: &str) -> PathBuf {
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../testdata")
        .join(path);
    assert!(path.exists(), "{} is missing", path.display());
    path
}

/// `tamis ARGS`, not started yet.
pub(crate) fn tamis<S: AsRef<OsStr>>(args: &[S]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_tamis"));
    command.args(args).stdin(Stdio::null());
    command
}

/// What a run left.
#[derive(Debug)]
pub(crate) struct Run {
    what: String,
    pub(crate) code: Option<i32>,
    pub(crate) out: String,
    pub(crate) err: String,
}

impl Run {
    pub(crate) fn of(command: &mut Command) -> Self {
        let output = command.output().unwrap();
        Self::ended(format!("{command:?}"), output)
    }

    /// Feeds stdin, too.
    pub(crate) fn fed(command: &mut Command, bytes: &[u8]) -> Self {
        let mut child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        child.stdin.take().unwrap().write_all(bytes).unwrap();
        Self::ended(format!("{command:?}"), child.wait_with_output().unwrap())
    }

    /// A run that ended by itself.
    pub(crate) fn ended(what: String, output: Output) -> Self {
        Self {
            what,
            code: output.status.code(),
            out: String::from_utf8(output.stdout).expect("stdout is UTF-8"),
            err: String::from_utf8(output.stderr).expect("stderr is UTF-8"),
        }
    }

    /// A run that somebody else watched.
    pub(crate) fn told(what: &str, code: Option<i32>, out: String, err: String) -> Self {
        Self {
            what: what.to_owned(),
            code,
            out,
            err,
        }
    }

    /// Asserts how it ended.
    #[track_caller]
    pub(crate) fn code(self, code: i32) -> Self {
        assert!(
            self.code == Some(code),
            "exit {:?} instead of {code}: {}\n{}\n{}",
            self.code,
            self.what,
            self.out,
            self.err
        );
        self
    }

    /// Asserts that it failed with `code` and said each of `parts`.
    #[track_caller]
    pub(crate) fn says(self, code: i32, parts: &[&str]) -> Self {
        let run = self.code(code);
        for part in parts {
            assert!(run.err.contains(part), "{}: no {part:?} in {}", run.what, run.err);
        }
        run
    }

    /// stdout as one JSON document.
    #[track_caller]
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.out).unwrap_or_else(|error| panic!("{}: {error}: {}", self.what, self.out))
    }

    /// stdout as NDJSON.
    #[track_caller]
    pub(crate) fn rows(&self) -> Vec<Value> {
        self.out
            .lines()
            .map(|line| {
                serde_json::from_str(line).unwrap_or_else(|error| panic!("{}: {error}: {line}", self.what))
            })
            .collect()
    }
}

/// A folder of its own for one test: inputs, and an index in `data`.
pub(crate) struct Home(TempDir);

impl Home {
    pub(crate) fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    /// A home with everything of `paths` imported.
    #[track_caller]
    pub(crate) fn with<P: AsRef<OsStr>>(args: &[P]) -> Self {
        let home = Self::new();
        home.import(args);
        home
    }

    /// Another home with the same index.
    pub(crate) fn copy(&self) -> Self {
        let copy = Self::new();
        copy_folder(&self.data(), &copy.data());
        copy
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    /// The folder of the index.
    pub(crate) fn data(&self) -> PathBuf {
        self.path("data")
    }

    /// Writes an input file.
    pub(crate) fn file(&self, name: &str, bytes: &[u8]) -> PathBuf {
        let path = self.path(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, bytes).unwrap();
        path
    }

    /// `tamis ct ARGS --data …`, not started yet.
    pub(crate) fn command<S: AsRef<OsStr>>(&self, args: &[S]) -> Command {
        let mut command = tamis(&["ct"]);
        command.args(args).arg("--data").arg(self.data());
        command
    }

    pub(crate) fn ct<S: AsRef<OsStr>>(&self, args: &[S]) -> Run {
        Run::of(&mut self.command(args))
    }

    /// Imports, whatever becomes of it.
    pub(crate) fn try_import<S: AsRef<OsStr>>(&self, args: &[S]) -> Run {
        Run::of(self.command(&["import", "--format", "json"]).args(args))
    }

    /// Imports what must be imported whole, and gives the summary.
    #[track_caller]
    pub(crate) fn import<S: AsRef<OsStr>>(&self, args: &[S]) -> Value {
        self.try_import(args).code(0).json()
    }

    /// The rows of an answer that is not empty.
    #[track_caller]
    pub(crate) fn ask(&self, args: &[&str]) -> Vec<Value> {
        Run::of(self.command(args).args(["--format", "ndjson"]))
            .code(0)
            .rows()
    }

    /// What `stats` counts of certificates, apart from how they are stored.
    #[track_caller]
    pub(crate) fn totals(&self) -> Vec<(String, Value)> {
        let stats = self.ct(&["stats", "--format", "json"]).code(0).json();
        TOTALS
            .iter()
            .map(|&key| (key.to_owned(), stats[key].clone()))
            .inspect(|(key, value)| assert!(!value.is_null(), "stats have no {key}"))
            .collect()
    }

    /// Asserts that nothing is damaged.
    #[track_caller]
    pub(crate) fn assert_whole(&self) {
        self.ct(&["verify"]).code(0);
    }
}

const TOTALS: [&str; 8] = [
    "issuances",
    "certificates",
    "precertificates",
    "name_rows",
    "log_positions",
    "issuers",
    "deviations",
    "logs",
];

pub(crate) fn copy_folder(from: &Path, to: &Path) {
    std::fs::create_dir(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap() {
        let (from, to) = (
            entry.as_ref().unwrap().path(),
            to.join(entry.unwrap().file_name()),
        );
        if from.is_dir() {
            copy_folder(&from, &to);
        } else {
            std::fs::copy(from, to).unwrap();
        }
    }
}

/// The text under a key.
#[track_caller]
pub(crate) fn text<'v>(value: &'v Value, key: &str) -> &'v str {
    value[key]
        .as_str()
        .unwrap_or_else(|| panic!("no text under {key} in {value}"))
}

/// The texts in the list under a key.
#[track_caller]
pub(crate) fn texts(value: &Value, key: &str) -> Vec<String> {
    let list = value[key]
        .as_array()
        .unwrap_or_else(|| panic!("no list under {key} in {value}"));
    list.iter()
        .map(|text| text.as_str().unwrap().to_owned())
        .collect()
}

/// Inflates a whole gzip file.
pub(crate) fn inflate(bytes: &[u8]) -> Vec<u8> {
    let mut inflated = Vec::new();
    std::io::Read::read_to_end(&mut flate2::read::MultiGzDecoder::new(bytes), &mut inflated).unwrap();
    inflated
}

pub(crate) fn deflate(bytes: &[u8]) -> Vec<u8> {
    let mut writer = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    writer.write_all(bytes).unwrap();
    writer.finish().unwrap()
}
