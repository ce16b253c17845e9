#!/usr/bin/env bash
# Writes docs/scoreboard.md: Tamis beside published packages, which are put into a virtual environment.
#
# Needs python3 with venv, a network for pip the first time, and the data beside the repository
# (../shared/data, or SHARED_DATA).
set -euo pipefail
cd "$(dirname "$0")/.."

data=${SHARED_DATA:-../shared/data}
[ -d "$data/canon" ] || { echo "$data is missing; name the folder of vectors with SHARED_DATA" >&2; exit 2; }
target=${CARGO_TARGET_DIR:-target}
venv=${SCOREBOARD_VENV:-$target/scoreboard-venv}
if ! [ -x "$venv/bin/python" ]; then
  python3 -m venv "$venv"
  "$venv/bin/pip" install --quiet ada-url==4.0.0 w3lib==2.5.0 courlan==1.4.0 ural==1.6.2 surt==0.3.1 \
    urlcanon==0.3.1 url-normalize==3.1.0
fi
cargo build --release -p tamis
made=$(mktemp)
"$venv/bin/python" scripts/scoreboard.py "$target/release/tamis" "$data" >"$made"
mv "$made" docs/scoreboard.md
echo "docs/scoreboard.md is written"
