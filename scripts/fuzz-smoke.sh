#!/usr/bin/env bash
# Runs each fuzz target for a few seconds (FUZZ_SECONDS, 10) on its kept corpus.
#
# No sanitizer: the code under test is safe Rust, so a bug shows as a panic or a hang, and the
# build stays one pass over the dependencies.
set -euo pipefail
cd "$(dirname "$0")/.."

seconds=${FUZZ_SECONDS:-10}
command -v cargo-fuzz >/dev/null || { echo "cargo-fuzz is missing; install it with: cargo install --locked cargo-fuzz" >&2; exit 2; }
# cargo-fuzz passes -Z flags; this lets the stable compiler take them.
export RUSTC_BOOTSTRAP=1

options=(--sanitizer none --target-dir "${FUZZ_TARGET_DIR:-fuzz/target}")
targets=$(cargo fuzz list)
cargo fuzz build "${options[@]}"
for target in $targets; do
  echo "fuzz: $target, ${seconds} s"
  # What a run finds stays out of the repository; what is kept in fuzz/corpus is only read.
  found=fuzz/corpus-local/$target
  mkdir -p "$found"
  kept=()
  [ -d "fuzz/corpus/$target" ] && kept=("fuzz/corpus/$target")
  log=$(mktemp)
  if ! cargo fuzz run "${options[@]}" "$target" "$found" "${kept[@]}" -- \
      -max_total_time="$seconds" -timeout=10 -rss_limit_mb=2048 -max_len=65536 -print_final_stats=1 >"$log" 2>&1; then
    tail -n 60 "$log"
    echo "fuzz: $target failed; the input is in fuzz/artifacts/$target" >&2
    exit 1
  fi
  awk '/stat::number_of_executed_units/{print "      " $2 " inputs"}' "$log"
  rm -f "$log"
done
