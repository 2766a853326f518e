"""Every option of RocksDB's catalogue, opened by real engines at every value that it names.

The defaults, both ends of every range, every special value and every choice. The driver reads the
options back from what the engine wrote: one that did not take fails its test.
"""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from pathlib import Path

import pytest
from engine_parts import distribution_library
from option_cases import Case, Rules, batches, cases_of, rules_of, settle
from option_runs import DIRECT, LIMITS, TINY, has_direct_io

from lsmtune.driver.native import NativeRunner, probe
from lsmtune.engines.catalogue import option_catalogue
from lsmtune.engines.option_names import split_structure
from lsmtune.model.config import Config, OptionValue, option_text
from lsmtune.model.measurement import Measurement, Outcome
from lsmtune.model.request import RunRequest

pytestmark = pytest.mark.engine

CATALOGUE = option_catalogue("rocksdb")
# Which compression of a library a value needs, by RocksDB's own names.
CODECS = {
    "kSnappyCompression": "snappy",
    "kZlibCompression": "zlib",
    "kLZ4Compression": "lz4",
    "kLZ4HCCompression": "lz4hc",
    "kZSTD": "zstd",
}
# RocksDB says of a rate limiter only, in its LOG, that there is one.
NOT_SAID = "rate_limiter_bytes_per_sec"


class Bench:
    """One engine library, and why each case that was opened with it failed (or an empty text)."""

    def __init__(self, driver: Path, library: Path, folder: Path) -> None:
        self._folder = folder
        self._runner = NativeRunner(driver)
        found = probe(driver, "rocksdb", library, folder)
        self.engine = found.engine
        self.compressions = found.compressions
        self.probed = {option.name: option.default for option in found.options}
        self.rules = rules_of(CATALOGUE, found.engine.version or "")
        self.results = self._run_all(self.rules)

    def _run_all(self, rules: Rules) -> dict[tuple[str, str], str]:
        cases = [case for info in rules.catalogue.values() for case in cases_of(rules, info)]
        able = [case for case in cases if not self.lacks(case)]
        results: dict[tuple[str, str], str] = {}
        for together in batches(rules, able):
            results |= self._judge(together)
        return results

    def _judge(self, together: list[Case]) -> dict[tuple[str, str], str]:
        """Why each case failed: where they fail together, halves of them tell who is at fault."""
        options = {name: v for case in together for name, v in case.options.items()}
        why = self._open(options)
        if not why or len(together) == 1:
            return {(case.name, repr(case.value)): why for case in together}
        half = len(together) // 2
        return self._judge(together[:half]) | self._judge(together[half:])

    def lacks(self, case: Case) -> str:
        """What this machine or this library needs for the case and does not have."""
        for value in case.options.values():
            for codec in str(value).split(":"):
                if codec in CODECS and CODECS[codec] not in self.compressions:
                    return f"the library has no {CODECS[codec]}"
        if any(case.options.get(name) is True for name in DIRECT) and not has_direct_io(
            self._folder
        ):
            return "the file system of the test has no direct input and output"
        return ""

    def written(self, options: Mapping[str, OptionValue]) -> dict[str, str]:
        """The options of the database and of its column family as the engine wrote them."""
        with tempfile.TemporaryDirectory(dir=self._folder) as folder:
            measurement = self._run(options, Path(folder))
            assert measurement.outcome is Outcome.OK, measurement.error
            text = sorted((Path(folder) / "db").glob("OPTIONS-*"))[-1].read_text()
        lines = (line.strip().partition("=") for line in text.splitlines() if "=" in line)
        return {name: value for name, _, value in lines}

    def _run(self, options: Mapping[str, OptionValue], folder: Path) -> Measurement:
        request = RunRequest(self.engine, Config(options), TINY, 1, folder, LIMITS)
        return self._runner.run(request)

    def _open(self, options: Mapping[str, OptionValue]) -> str:
        with tempfile.TemporaryDirectory(dir=self._folder) as folder:
            measurement = self._run(options, Path(folder))
            if measurement.outcome is not Outcome.OK:
                error = measurement.error
                return f"{measurement.outcome}: {error and error.message}"
            log = (Path(folder) / "db" / "LOG").read_text(errors="replace")
            limited = "Options.rate_limiter: 0x" in log
            return "; ".join(
                f"{option.name}={option.requested}: {option.effective}"
                for option in measurement.options_not_taken
                if not (option.name == NOT_SAID and limited)
            )


@pytest.fixture(scope="module")
def release(driver: Path, rocksdb_library: Path, tmp_path_factory: pytest.TempPathFactory) -> Bench:
    return Bench(driver, rocksdb_library, tmp_path_factory.mktemp("release"))


@pytest.fixture(scope="module")
def distribution(driver: Path, tmp_path_factory: pytest.TempPathFactory) -> Bench:
    library = distribution_library("rocksdb")
    return Bench(driver, library, tmp_path_factory.mktemp("distribution"))


@pytest.mark.parametrize("name", CATALOGUE)
def test_the_release_library_takes_every_value(release: Bench, name: str) -> None:
    check(release, name)


@pytest.mark.parametrize("name", CATALOGUE)
def test_the_library_of_the_distribution_takes_every_value(distribution: Bench, name: str) -> None:
    check(distribution, name)


def check(bench: Bench, name: str) -> None:
    info = CATALOGUE[name]
    version = bench.engine.version
    if name not in bench.rules.catalogue:
        assert name not in bench.probed, f"{version} has it: since and until are wrong"
        pytest.skip(f"not in {version} ({info.since or '7.0'} to {info.until or 'now'})")
    cases = cases_of(bench.rules, info)
    lacking = {bench.lacks(case) for case in cases} - {""}
    failed = {
        repr(case.value): f"{why} (opened with {dict(case.options)})"
        for case in cases
        if not bench.lacks(case) and (why := bench.results[name, repr(case.value)])
    }
    assert failed == {}
    if len(lacking) == len(cases):
        pytest.skip("; ".join(sorted(lacking)))


@pytest.mark.parametrize("kind", ["vector", "prefix_hash", "hash_linkedlist"])
def test_the_parts_of_a_memtable_have_the_defaults_of_the_catalogue(
    release: Bench, kind: str
) -> None:
    options = settle(release.rules, "memtable_factory.id", kind)
    parts = split_structure(release.written(options)["memtable_factory"])
    for name, info in CATALOGUE.items():
        if kind in info.condition.get("memtable_factory.id", ()) and info.default is not None:
            assert option_text(info.default) == parts[name.removeprefix("memtable_factory.")]


def test_the_size_of_the_block_cache_has_the_default_of_the_catalogue(
    release: Bench, distribution: Bench
) -> None:
    info = CATALOGUE["block_based_table_factory.block_cache"]
    for bench in (release, distribution):
        default = info.default_in(bench.engine.version)
        assert bench.probed[f"{info.name}.capacity"] == str(default)


def test_almost_everything_was_tried(release: Bench) -> None:
    assert len({name for name, _ in release.results}) >= 160
    assert len(release.results) >= 450


def test_a_value_that_the_engine_changes_fails(release: Bench) -> None:
    changed = Case("max_open_files", 5, {"max_open_files": 5})
    taken = Case("max_background_jobs", 3, {"max_background_jobs": 3})
    refused = Case("write_buffer_size", "x", {"write_buffer_size": "x"})
    judged = release._judge([taken, changed, refused])
    assert judged["max_background_jobs", "3"] == ""
    assert judged["max_open_files", "5"] == "max_open_files=5: 20"
    assert judged["write_buffer_size", "'x'"].startswith("invalid: ")
