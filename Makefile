# What a developer and a newcomer type. `make help` lists it.
#
# Everything installed for this checkout goes into .venv; compiled Rust goes into a cache outside
# the checkout; engine libraries go where `lsmtune engines` keeps them.

SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
MAKEFLAGS += --no-print-directory

# rustup puts cargo here, and a shell that did not read the profile does not know it.
export PATH := $(HOME)/.cargo/bin:$(PATH)
export CARGO_TARGET_DIR ?= $(or $(XDG_CACHE_HOME),$(HOME)/.cache)/lsmtune/target

VENV := .venv
BIN := $(VENV)/bin
DRIVER := $(BIN)/lsmtune-driver
PACKAGE_STAMP := $(VENV)/.installed
DRIVER_SOURCES := $(shell find driver -type f \( -name '*.rs' -o -name 'Cargo.*' \) -not -path '*/tests/*')
TIMED := scripts/timed
BENCHED := build/benchmarks

.PHONY: help quickstart setup system fetch engines test test-tools lint bench clean

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-12s %s\n", $$1, $$2}' Makefile

quickstart: setup ## set up, then tune RocksDB for two minutes
	@$(TIMED) "tuning RocksDB fillrandom" $(BIN)/lsmtune tune examples/quickstart/study.yaml

# Three independent things take most of the time: compiling the driver, installing Python
# packages and fetching engines. They run side by side; registering an engine needs all three.
setup: ## install what is missing, build the driver, install release engines
	@$(MAKE) -s system
	@$(MAKE) -s -j3 $(DRIVER) $(PACKAGE_STAMP) fetch
	@$(MAKE) -s engines

system:
	@scripts/system-packages cmake c++ mvn python-venv cargo

$(BIN)/python:
	@$(TIMED) "creating $(VENV)" "$$(scripts/find-python)" -m venv $(VENV)

$(PACKAGE_STAMP): pyproject.toml | $(BIN)/python
	@$(TIMED) "installing Python packages" $(BIN)/python -m pip install --quiet --editable '.[dev]'
	@touch $@

$(DRIVER): $(DRIVER_SOURCES) | $(BIN)/python
	@$(TIMED) "compiling the driver" cargo build --quiet --release --locked --manifest-path driver/Cargo.toml
	@install -m 755 "$(CARGO_TARGET_DIR)/release/lsmtune-driver" $@

fetch: $(PACKAGE_STAMP)
	@$(TIMED) "fetching engines" $(BIN)/python -m lsmtune.engines.install

engines: $(DRIVER) $(PACKAGE_STAMP)
	@$(TIMED) "registering engines" $(BIN)/lsmtune engines install

# The libraries are named before any test runs, because tests have a home of their own.
test: setup test-tools lint ## lint, then every test of both languages
	@export LSMTUNE_TEST_ROCKSDB="$$($(BIN)/lsmtune engines path rocksdb)"; \
	export LSMTUNE_TEST_LEVELDB="$$($(BIN)/lsmtune engines path leveldb)"; \
	for engine in rocksdb leveldb; do \
	  library="$$(scripts/distribution-library $$engine)"; \
	  if [ -n "$$library" ]; then export "LSMTUNE_TEST_$${engine^^}_DEBIAN=$$library"; fi; \
	done; \
	$(TIMED) "testing the driver" cargo test --quiet --locked --manifest-path driver/Cargo.toml; \
	$(TIMED) "testing the tuner" $(BIN)/python -m pytest -n 2 -q

# Programs and libraries that tests compare with. A test that misses one says so and is skipped.
test-tools:
	@scripts/system-packages --optional db_bench libleveldb

lint: $(PACKAGE_STAMP) ## formatting, lints and types of both languages
	@$(TIMED) "linting Python" $(BIN)/ruff check .
	@$(BIN)/ruff format --check --quiet .
	@$(TIMED) "checking types" $(BIN)/mypy
	@cargo fmt --check --manifest-path driver/Cargo.toml
	@$(TIMED) "linting Rust" cargo clippy --quiet --locked --all-targets --manifest-path driver/Cargo.toml -- -D warnings

bench: setup test-tools ## measure driver, samplers and proofs, beside their peers, small sizes
	@$(TIMED) "overhead of the driver" $(BIN)/python benchmarks/driver/overhead.py --operations 2000000
	@$(TIMED) "driver beside db_bench" $(BIN)/python benchmarks/driver/against_db_bench.py --num 100000 --reads 100000
	@$(TIMED) "overhead of the samplers" $(BIN)/python benchmarks/overhead/suggest_and_record.py --trials 100 --repeat 3
	@$(TIMED) "regret of the samplers" $(BIN)/python benchmarks/samplers/regret.py --quick
	@$(TIMED) "start of a read run" $(BIN)/python benchmarks/databases/start_of_read_run.py --num 100000 --repeat 3
	@$(TIMED) "ways to run a pair" $(BIN)/python benchmarks/variance/collect.py --rounds 2 --output $(BENCHED)/pairs.jsonl
	@$(TIMED) "verdicts on the same configuration" $(BIN)/python benchmarks/verdicts/same_configuration.py --count 5 --output $(BENCHED)/same_configuration.jsonl
	@$(TIMED) "verdicts on simulated machines" $(BIN)/python benchmarks/verdicts/simulated.py --studies 200

clean: ## remove what was built in this checkout (engines and studies stay)
	rm -rf $(VENV) build .pytest_cache .mypy_cache .ruff_cache .hypothesis
