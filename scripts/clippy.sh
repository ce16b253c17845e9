#!/usr/bin/env bash
# Clippy over everything. What must not reach users (unwrap, panic) is a test's way to fail, so
# tests are checked without those two lints.
set -euo pipefail
cd "$(dirname "$0")/.."
cargo clippy --workspace --locked -- -D warnings
cargo clippy --workspace --all-targets --locked -- -D warnings -A clippy::unwrap_used -A clippy::panic
cargo clippy -p tamis-ct-index -p tamis-durable --features tamis-ct-index/readers --all-targets --locked -- \
  -D warnings -A clippy::unwrap_used -A clippy::panic
