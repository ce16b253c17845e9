#!/usr/bin/env bash
# Checks for what a build needs (a C compiler for zstd and jemalloc, a C++ one for ada, the peer of tests of
# url-canon, make, git, cargo) and installs
# the missing Debian packages when it may; else says what to install.
set -euo pipefail

missing=()
command -v cc >/dev/null || missing+=(gcc libc6-dev)
command -v c++ >/dev/null || missing+=(g++)
command -v make >/dev/null || missing+=(make)
command -v git >/dev/null || missing+=(git)

# Tests of the Lua module and of the Python package only: without these they say that they did not run.
wanted=()
command -v luajit >/dev/null || wanted+=(luajit)
python3 -c 'import venv, ensurepip' 2>/dev/null || wanted+=(python3 python3-venv)

if [ ${#missing[@]} -gt 0 ]; then
  if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
    echo "installing: ${missing[*]}" >&2
    apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "${missing[@]}" >&2
  else
    echo "missing: ${missing[*]}; install them, for example with: sudo apt-get install ${missing[*]}" >&2
    exit 2
  fi
fi
if [ ${#wanted[@]} -gt 0 ]; then
  echo "not needed, but tests skip what uses them: ${wanted[*]}" >&2
  if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
    { apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "${wanted[@]}"; } >&2 ||
      echo "they could not be installed; going on without" >&2
  fi
fi

if ! command -v cargo >/dev/null; then
  if [ -x "$HOME/.cargo/bin/cargo" ]; then
    echo "cargo is not on PATH; run: export PATH=\"\$HOME/.cargo/bin:\$PATH\"" >&2
  else
    echo "cargo is missing; install Rust with rustup: https://rustup.rs" >&2
  fi
  exit 2
fi
