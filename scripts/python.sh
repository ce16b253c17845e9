#!/usr/bin/env bash
# Builds the Python package into a virtual environment and holds it to the shared vectors, its examples and
# its types.
#
# Needs python3 (3.10 or newer) with venv, and a network for pip the first time.
set -euo pipefail
cd "$(dirname "$0")/.."

python=${PYTHON:-python3}
if ! "$python" -c 'import sys, venv, ensurepip; sys.exit(sys.version_info < (3, 10))' 2>/dev/null; then
  echo "python3 3.10 or newer with venv is missing; install it, for example with: sudo apt-get install python3-venv" >&2
  exit 2
fi
target=$(realpath -m "${CARGO_TARGET_DIR:-target}")
venv=$(realpath -m "${PYTHON_VENV:-$target/python-venv}")
if ! [ -x "$venv/bin/maturin" ]; then
  "$python" -m venv "$venv"
  "$venv/bin/pip" install --quiet --disable-pip-version-check 'maturin>=1.8,<2'
fi
# Its own folder: another workspace, which would rebuild what both share at every turn.
export CARGO_TARGET_DIR=$target/python VIRTUAL_ENV=$venv
cargo fmt --manifest-path bindings/python/Cargo.toml --check
cargo clippy --quiet --locked --manifest-path bindings/python/Cargo.toml -- -D warnings
"$venv/bin/maturin" develop --quiet --locked --manifest-path bindings/python/Cargo.toml
"$venv/bin/python" bindings/python/tests/vectors.py
