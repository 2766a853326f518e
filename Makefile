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
FILES_LIBRARY := $(BIN)/lsmtune-files.so
SNAPPY_LIBRARY := $(BIN)/lsmtune-snappy.so
SNAPPY_MANIFEST := driver/preload/snappy/Cargo.toml
PACKAGE_STAMP := $(VENV)/.installed
TOOLS_STAMP := $(VENV)/.installed-dev
WHEEL_STAMP := $(VENV)/.installed-wheel
DRIVER_SOURCES := $(shell find driver -type f \( -name '*.rs' -o -name 'Cargo.*' \) -not -path '*/tests/*')
TIMED := scripts/timed
BENCHED := build/benchmarks
SITE_PAGES := build/site-pages

# Which engines to install, and the programs that each takes.
ENGINES := rocksdb leveldb
ENGINE_PROGRAMS = $(if $(filter rocksdb,$(ENGINES)),mvn) $(if $(filter leveldb,$(ENGINES)),cmake c++)

.PHONY: help quickstart setup system engine-programs fetch engines dev test test-tools plugins lint lint-python lint-rust docs
.PHONY: compile-driver-tests test-driver test-tuner bench wheel release fresh fresh-wheel clean

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-12s %s\n", $$1, $$2}' Makefile

quickstart: ## install what tuning RocksDB takes, then tune it for three minutes
	@$(MAKE) -s setup ENGINES=rocksdb
	@$(TIMED) "tuning RocksDB" $(BIN)/lsmtune tune examples/quickstart/study.yaml

# Compiling the driver takes longest. Whatever does not wait for it runs beside it; registering an
# engine needs all of it.
setup: ## install what is missing, build the driver, install release engines
	@$(MAKE) -s system
	@$(MAKE) -s -j3 $(DRIVER) $(FILES_LIBRARY) fetch
	@$(MAKE) -s engines

system:
	@scripts/system-packages cc python-venv cargo

engine-programs: system
	@scripts/system-packages $(ENGINE_PROGRAMS)

$(BIN)/python:
	@$(TIMED) "creating $(VENV)" "$$(scripts/find-python)" -m venv $(VENV)

$(PACKAGE_STAMP): pyproject.toml | $(BIN)/python
	@$(TIMED) "installing Python packages" $(BIN)/python scripts/python_packages.py
	@touch $@

$(TOOLS_STAMP): $(PACKAGE_STAMP)
	@$(TIMED) "installing development tools" $(BIN)/python scripts/python_packages.py dev
	@touch $@

$(WHEEL_STAMP): $(PACKAGE_STAMP)
	@$(TIMED) "installing tools that make wheels" $(BIN)/python scripts/python_packages.py wheel
	@touch $@

$(DRIVER): $(DRIVER_SOURCES)
	@$(TIMED) "compiling the driver" cargo build --quiet --release --locked --manifest-path driver/Cargo.toml
	@cargo build --quiet --release --locked --manifest-path $(SNAPPY_MANIFEST)
	@install -D -m 755 "$(CARGO_TARGET_DIR)/release/liblsmtune_snappy.so" $(SNAPPY_LIBRARY)
	@install -D -m 755 "$(CARGO_TARGET_DIR)/release/lsmtune-driver" $@

# Without it lsmtune says that power losses were not computed, and does all else.
$(FILES_LIBRARY): driver/preload/files.c | $(BIN)/python
	@cc -O2 -shared -fPIC -o $@.part $< -ldl -lpthread && mv $@.part $@ || \
	  echo "== no library that notes changes of files: power losses are not computed" >&2

fetch: $(PACKAGE_STAMP) engine-programs
	@$(TIMED) "fetching $(ENGINES)" $(BIN)/python -m lsmtune.engines.install $(ENGINES)

engines: $(DRIVER) $(PACKAGE_STAMP)
	@$(TIMED) "registering $(ENGINES)" $(BIN)/lsmtune engines install $(ENGINES)

dev: setup $(TOOLS_STAMP) ## set up, and install what tests and lints need

# Compiling the driver's tests takes longest of what comes before them. What waits for the network or
# for one core runs beside it. Then many tests of either language wait for engines and processes, so
# that both run at once. The libraries are named before, because tests have a home of their own.
test: setup ## lint, build the site, then every test of both languages
	@$(MAKE) -s -j3 -o setup compile-driver-tests test-tools lint docs plugins
	@export LSMTUNE_TEST_ROCKSDB="$$($(BIN)/lsmtune engines path rocksdb)"; \
	export LSMTUNE_TEST_LEVELDB="$$($(BIN)/lsmtune engines path leveldb)"; \
	for engine in rocksdb leveldb; do \
	  library="$$(scripts/distribution-library $$engine)"; \
	  if [ -n "$$library" ]; then export "LSMTUNE_TEST_$${engine^^}_DEBIAN=$$library"; fi; \
	done; \
	$(MAKE) -s -j2 test-driver test-tuner

CARGO_TEST := cargo test --quiet --locked --manifest-path driver/Cargo.toml

# After the lints, which say sooner what is wrong.
compile-driver-tests: lint-rust
	@$(TIMED) "compiling the driver's tests" $(CARGO_TEST) --no-run

# The tuner's tests print meanwhile.
test-driver:
	@cargo test --quiet --locked --manifest-path $(SNAPPY_MANIFEST) | sed -u 's/^/driver: /'
	@$(TIMED) "testing the driver" $(CARGO_TEST) --no-fail-fast | sed -u 's/^/driver: /'

test-tuner:
	@$(TIMED) "testing the tuner" $(BIN)/python -m pytest -n 2 --dist worksteal --durations 20 -q

# The packages lie in a folder of their own, so that lsmtune's tests see lsmtune alone. An engine that
# is only tested is compiled without optimisation: 21 s of a processor in the place of 57.
QUICK_CARGO := CARGO_PROFILE_RELEASE_LTO=off CARGO_PROFILE_RELEASE_OPT_LEVEL=0
PLUGIN_ENGINE := LSMTUNE_TEST_PLUGIN_NAME=fjall LSMTUNE_TEST_PLUGIN_LIBRARY=$(CURDIR)/build/plugins/lsmtune_fjall/libfjall_lsmtune.so \
  LSMTUNE_TEST_PLUGIN_SMALL=max_memtable_size=1048576 LSMTUNE_TEST_PLUGIN_DURABILITIES=sync,wal \
  LSMTUNE_TEST_PLUGIN_MISTYPED=max_memtabel_size=max_memtable_size LSMTUNE_TEST_PLUGIN_BAD_VALUES=block_size=1000,compression=snappy
# After the site, which copies their folders and fails if these change meanwhile.
plugins: dev | docs ## build and test the packages of examples/plugins
	@rm -rf build/plugins
	@$(QUICK_CARGO) $(TIMED) "building the plugins" $(BIN)/python -m pip install --quiet --no-deps --no-build-isolation --target build/plugins examples/plugins/*/
	@PYTHONPATH=build/plugins $(TIMED) "testing the plugins" $(BIN)/python -m pytest -n 2 -q examples/plugins
	@$(PLUGIN_ENGINE) $(TIMED) "testing the plugin's engine" \
	  $(CARGO_TEST) --test conformance plugin

# Programs and libraries that tests compare with. A test that misses one says so and is skipped.
test-tools: dev
	@scripts/system-packages --optional db_bench git libleveldb mount javac rocksdb-headers leveldb-headers chromium go time postgresql
	@test -e build/axe-core/package || $(BIN)/python scripts/fetch_axe.py build/axe-core || echo "== no axe-core" >&2
	@library="$$($(BIN)/lsmtune engines path rocksdb)"; with="$(BIN)/python scripts/with_rocksdb.py $$library"; \
	$(TIMED) "building the crate rocksdb" $$with tests/engines/bindings/rust cargo --quiet build --locked --package=rocksdb || \
	  echo "== no crate rocksdb" >&2; \
	$(TIMED) "building grocksdb" $$with tests/engines/bindings/go go build github.com/linxGnu/grocksdb || echo "== no grocksdb" >&2

lint: lint-python lint-rust ## formatting, lints and types of both languages

lint-python: $(TOOLS_STAMP)
	@$(TIMED) "linting Python" $(BIN)/ruff check .
	@$(BIN)/ruff format --check --quiet .
	@$(TIMED) "checking types" $(BIN)/mypy

lint-rust:
	@cargo fmt --check --manifest-path driver/Cargo.toml
	@cargo fmt --check --manifest-path $(SNAPPY_MANIFEST)
	@cargo clippy --quiet --locked --all-targets --manifest-path $(SNAPPY_MANIFEST) -- -D warnings
	@$(TIMED) "linting Rust" cargo clippy --quiet --locked --all-targets --manifest-path driver/Cargo.toml -- -D warnings

# The pages lie in the site as in the checkout, so that their links are right in both. A dead one is
# an error.
docs: $(TOOLS_STAMP) ## build the site of the documents into build/site
	@rm -rf $(SITE_PAGES) && mkdir -p $(SITE_PAGES)
	@tar --exclude='*.lsmtune' --exclude='*.json' --exclude='*.jsonl' -c *.md docs examples | tar -x -C $(SITE_PAGES)
	@$(BIN)/python scripts/reference.py $(SITE_PAGES)/docs/reference
	@NO_MKDOCS_2_WARNING=1 $(TIMED) "building the site" $(BIN)/mkdocs build --strict --quiet

bench: dev test-tools ## measure driver, samplers and proofs, beside their peers, small sizes
	@$(TIMED) "overhead of the driver" $(BIN)/python benchmarks/driver/overhead.py --operations 2000000
	@$(TIMED) "driver beside db_bench" $(BIN)/python benchmarks/driver/against_db_bench.py --num 100000 --reads 100000
	@$(TIMED) "overhead of the samplers" $(BIN)/python benchmarks/overhead/suggest_and_record.py --trials 100 --repeat 3
	@$(TIMED) "regret of the samplers" $(BIN)/python benchmarks/samplers/regret.py --quick
	@$(TIMED) "start of a read run" $(BIN)/python benchmarks/databases/start_of_read_run.py --num 100000 --repeat 3
	@$(TIMED) "ways to run a pair" $(BIN)/python benchmarks/variance/collect.py --rounds 2 --output $(BENCHED)/pairs.jsonl
	@$(TIMED) "verdicts on the same configuration" $(BIN)/python benchmarks/verdicts/same_configuration.py --count 5 --output $(BENCHED)/same_configuration.jsonl
	@$(TIMED) "verdicts on simulated machines" $(BIN)/python benchmarks/verdicts/simulated.py --studies 200

wheel: system $(WHEEL_STAMP) ## wheels for any Linux, x86-64 and aarch64, into build/wheels
	@scripts/system-packages mvn cmake
	@PATH="$(abspath $(BIN)):$$PATH" $(BIN)/python scripts/wheel.py $(ARCHES)

release: $(PACKAGE_STAMP) ## set the version, date the changelog, commit and tag: make release VERSION=0.2.0
	@$(BIN)/python scripts/release.py $(VERSION)

fresh: ## quickstart and test in a new root file system of Debian 12 (needs root)
	@scripts/fresh quickstart test

# Debian 11 has Python 3.9: there the wheel gets the Python that uv brings.
fresh-wheel: ## the wheel and its quickstart where there is Python and nothing else (needs root)
	@mkdir -p build/fresh-wheel
	@for suite in $(or $(SUITES),bullseye bookworm trixie); do \
	  $(TIMED) "the wheel on Debian ($$suite)" scripts/fresh --wheel build/wheels/lsmtune-*_$$(uname -m).whl $$suite $(BUDGET) > build/fresh-wheel/$$suite.json; \
	done

clean: ## remove what was built in this checkout (engines and studies stay)
	rm -rf $(VENV) build .pytest_cache .mypy_cache .ruff_cache .hypothesis
