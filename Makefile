# Entry points of the repository; `make` lists them.
.DEFAULT_GOAL := help
SHELL := /bin/bash

.PHONY: help demo test bench lint fmt fuzz-smoke scoreboard python dist tools

help: ## list these targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## /{printf "  make %-11s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

demo: tools ## build, import the real entries in testdata, search them, follow simulated logs
	@scripts/demo.sh

test: tools ## all tests of the workspace
	cargo test --workspace

bench: tools ## all benches; each prints its ratio to a named peer
	cargo bench --workspace

lint: tools ## format, clippy, tidy, docs: what .ci/run checks before the tests
	cargo fmt --all --check
	scripts/clippy.sh
	cargo xtask tidy
	RUSTDOCFLAGS="-D warnings" cargo doc --workspace --no-deps

fmt: ## format the code
	cargo fmt --all

fuzz-smoke: tools ## each fuzz target for ten seconds
	@scripts/fuzz-smoke.sh

scoreboard: tools ## URL keys beside those of other tools, into docs/scoreboard.md
	@scripts/scoreboard.sh

python: tools ## the Python package, built and tested in a virtual environment
	@scripts/python.sh

dist: tools ## the binary that users get: fat LTO, one codegen unit, target/dist/tamis
	cargo build --profile dist -p tamis

tools:
	@scripts/tools.sh
