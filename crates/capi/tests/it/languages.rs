//! Programs in other languages that call the library.

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::{repository, vectors};

/// Where cargo puts the library that belongs to this test.
fn library(name: &str) -> PathBuf {
    let test = std::env::current_exe().unwrap();
    let path = test.parent().unwrap().join(name);
    assert!(path.exists(), "cargo has not built {}", path.display());
    path
}

/// Runs a program over the vectors; it must say how many it had.
#[track_caller]
fn check(program: &mut Command) {
    let (count, lines) = vectors();
    let mut child = program
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    // What a program that ends early leaves unread shows in its output.
    let _ = child.stdin.take().unwrap().write_all(lines.as_bytes());
    let output = child.wait_with_output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    let complaints = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{}: {said}{complaints}", output.status);
    assert_eq!(said.trim(), format!("{count} vectors"), "{complaints}");
}

/// Compiles the smoke test and runs it.
fn check_c(library: &Path, libraries: &[&str]) {
    let folder = tempfile::tempdir().unwrap();
    let program = folder.path().join("smoke");
    let output = Command::new(std::env::var_os("CC").unwrap_or_else(|| "cc".into()))
        .args([
            "-std=c99",
            "-Wall",
            "-Wextra",
            "-Wpedantic",
            "-Werror",
            "-O1",
            "-I",
        ])
        .arg(repository("crates/capi/include"))
        .arg(repository("crates/capi/tests/smoke.c"))
        .arg(library)
        .args(libraries)
        .arg("-o")
        .arg(&program)
        .output()
        .unwrap();
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    let mut command = Command::new(program);
    command.arg(repository("testdata/urls/rules/tracking.json"));
    check(command.env("LD_LIBRARY_PATH", library.parent().unwrap()));
}

#[test]
fn c_with_the_shared_library() {
    check_c(&library("libtamis_capi.so"), &[]);
}

#[test]
fn c_with_the_static_library() {
    check_c(&library("libtamis_capi.a"), &["-lpthread", "-ldl", "-lm"]);
}

#[test]
fn lua() {
    let found = Command::new("luajit").arg("-v").output();
    if found.is_err() {
        // Written past the harness, which hides what a test that passes prints.
        let said =
            "SKIPPED: luajit is not there, so bindings/lua was not tested; scripts/tools.sh installs it\n";
        std::io::stderr().write_all(said.as_bytes()).unwrap();
        return;
    }
    let folder = repository("bindings/lua");
    let mut command = Command::new("luajit");
    command
        .arg(folder.join("test.lua"))
        .arg(library("libtamis_capi.so"))
        .arg(repository("testdata/urls/rules/tracking.json"));
    check(command.env("LUA_PATH", format!("{}/?.lua;;", folder.display())));
}
