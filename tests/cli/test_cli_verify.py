"""`lsmtune verify`: its flags on a driver without an engine, and its verdicts on a real one."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from lsmtune.experiment.folder import StudyFolder
from lsmtune.experiment.store import Role
from patience import in_time

MEMORY = ("verify", "--engine", "memory", "--workload", "fillrandom", "-w", "num=1000")
# Runs of a second, which nobody kills, on an engine that is none.
UNTESTED = ("--pairs", "6", "--burst", "--no-guards", "--no-crash-test", "--no-power-test")


@pytest.mark.usefixtures("fake_driver")
class TestFlags:
    def test_two_names_are_baseline_and_candidate(self, lsmtune: Any) -> None:
        said = lsmtune(*MEMORY, "--pairs", "6", "a=1", "a=2", "--json")
        assert said.status == 3, said.err
        document = said.json()
        assert document["baseline"]["options"] == {"a": 1}
        assert document["candidate"]["options"] == {"a": 2}

    def test_a_small_difference_is_called_equivalent_where_it_does_not_matter(
        self, lsmtune: Any
    ) -> None:
        flags = ("--candidate", "a=1", "--smallest-effect", "3%", "--json")
        said = lsmtune(*MEMORY, *flags)
        assert said.status == 3, said.err
        gate = lsmtune(*MEMORY, *flags, "--fail-if", "worse")
        assert (gate.status, gate.json()) == (0, said.json())
        verdict = said.json()["verdict"]
        assert verdict["outcome"] == "equivalent"
        assert verdict["pairs"] < 30
        assert 1 / 1.03 <= verdict["ratio_low"] <= 1 <= verdict["ratio_high"] <= 1.03

    @pytest.mark.parametrize(
        ("pace", "outcome", "status"), [(0.5, "worse", 4), (2, "better", 0), (1, "not_proven", 3)]
    )
    def test_the_exit_status_tells_worse_from_not_proven(
        self, lsmtune: Any, pace: float, outcome: str, status: int
    ) -> None:
        """All that was not better once ended with 3, and a gate could not tell them apart."""
        paced = f"fake=paced,pace={pace}"
        for flags in ((), ("--fail-if", "worse")):
            said = lsmtune(*MEMORY, *UNTESTED, "--candidate", paced, "--json", *flags)
            assert (said.json()["verdict"]["outcome"], said.status) == (outcome, status)
        assert "without --smallest-effect nothing is proved equivalent" in said.err

    def test_the_document_has_all_that_was_judged(self, lsmtune: Any) -> None:
        flags = ("--pairs", "8", "--confidence", "0.99", "--method", "whole", "--candidate", "a=1")
        said = lsmtune(*MEMORY, *flags, "--json")
        verdict = said.json()["verdict"]
        assert (verdict["confidence"], verdict["pairs"], verdict["method"]) == (0.99, 8, "whole")
        assert verdict["correction"] == "bonferroni"
        count = len(verdict["others"])
        assert count > 3
        assert 0.99 < verdict["confidence_each"] <= 1 - 0.01 / count
        assert "latency_us_p99" in {other["metric"] for other in verdict["others"]}
        assert {"pairs_wanted", "what_it_takes", "why", "notes"} <= verdict.keys()

    def test_bounds_that_are_not_known_are_null(self, lsmtune: Any) -> None:
        said = lsmtune(*MEMORY, "--candidate", "a=1", "--budget", "1ms", "--json")
        assert said.status == 3, said.err
        verdict = said.json()["verdict"]
        assert (verdict["outcome"], verdict["pairs"]) == ("not_proven", 0)
        assert (verdict["ratio"], verdict["ratio_low"], verdict["ratio_high"]) == (None,) * 3
        assert verdict["why"] == "the time budget allowed 0 of 30 pairs"
        assert verdict["pairs_wanted"] == 6

    def test_what_the_pairs_say_is_shown_after_each(self, lsmtune: Any) -> None:
        said = lsmtune(*MEMORY, "--pairs", "6", "--candidate", "a=1")
        told = [line for line in said.err.splitlines() if line.startswith("after ")]
        assert told[1] == "after 2 pairs: 1.000x, no interval"
        assert told[-1].startswith("after 6 pairs: 1.000x, 95 % CI 0.9")
        assert said.out.splitlines()[0].startswith("a=1: no proven gain: 1.000x the baseline")

    @pytest.mark.parametrize(
        ("arguments", "line"),
        [
            (["a=1"], "BASELINE CANDIDATE: found 'a=1'; allowed: two, or --candidate CONFIG"),
            (["a=1", "a=2", "a=3"], "BASELINE CANDIDATE: found 'a=1 a=2 a=3'; allowed: two, or"),
            (["a=1", "a=2", "--candidate", "a=3"], "--candidate: has no effect beside BASELINE"),
            (["a=1", "a=2", "--baseline", "a=3"], "--baseline: has no effect beside BASELINE"),
            (["a=1", "nonsense"], "--candidate: "),
            (["--baseline", "a=1"], "--candidate: is missing: name what is to be proved better"),
            (["default", "a=1", "--fail-if", "wors"], "did you mean worse?"),
            (["default", "a=1", "--method", "slice"], "did you mean slices?"),
            (["default", "a=1", "--smallest-effect", "3"], "--smallest-effect: found '3'; allowed"),
            (["default", "a=1", "--confidence", "high"], "--confidence: found 'high'; allowed: a"),
            (["default", "a=1", "--confidence", "20%"], "--confidence: found '20%'; allowed: from"),
            (
                ["default", "a=1", "--pairs", "7", "--confidence", "99%"],
                "--pairs: found 7; allowed: at least 8, without which nothing is proved at 0.99",
            ),
        ],
    )
    def test_what_cannot_be_meant(
        self, lsmtune: Any, home: Path, arguments: list[str], line: str
    ) -> None:
        assert line in lsmtune(*MEMORY, *arguments).refusal
        assert list(home.iterdir()) == []


@pytest.mark.engine
class TestTwoBuilds:
    """One engine, two libraries: may I upgrade?"""

    @pytest.fixture
    def libraries(
        self, driver: Path, rocksdb_library: Path, monkeypatch: pytest.MonkeyPatch
    ) -> tuple[str, ...]:
        other = os.environ.get("LSMTUNE_TEST_ROCKSDB_DEBIAN")
        if not other:
            pytest.skip("LSMTUNE_TEST_ROCKSDB_DEBIAN names no second build of RocksDB")
        monkeypatch.setenv("LSMTUNE_DRIVER", str(driver))
        return "--baseline-library", other, "--candidate-library", str(rocksdb_library)

    def test_both_are_measured_named_and_kept_apart(
        self, lsmtune: Any, libraries: tuple[str, ...], tmp_path: Path
    ) -> None:
        command = ("verify", "--engine", "rocksdb", *libraries, "--workload", "readrandom")
        flags = ("-w", "num=5000", "--dir", str(tmp_path / "proof"), "--pairs", "6")
        said = lsmtune(*command, *flags, "--no-crash-test", "--json")
        assert said.status in (0, 3), said.err
        document = said.json()
        assert document["verdict"]["pairs"] == 6
        sides = document["baseline"], document["candidate"]
        assert [side["options"] for side in sides] == [{}, {}]
        engines = [side["engine"] for side in sides]
        assert engines[0]["version"] != engines[1]["version"]
        assert [engine["library"] for engine in engines] == [libraries[1], libraries[3]]
        with StudyFolder.open(tmp_path / "proof") as folder:
            rows = folder.measurements.of(Role.PROOF_BASELINE)
            assert {row.library for row in rows} == {libraries[1]}
            assert {row.measurement.engine.version for row in rows} == {engines[0]["version"]}
        repeated = lsmtune(*command, *flags, "--no-crash-test")
        assert repeated.status == said.status, repeated.err
        for side, engine in zip(("baseline", "candidate"), engines, strict=True):
            named = f"{side}: default on rocksdb {engine['version']}, {engine['library']}"
            assert named in repeated.out
        with StudyFolder.open(tmp_path / "proof") as folder:
            assert len(folder.measurements.of(Role.PROOF_BASELINE)) == len(rows), "all counted"
        own = ("--library", libraries[3], "--candidate", "default")
        other = lsmtune(*command[:3], *own, *command[7:], *flags)
        assert other.status == 2
        assert "cannot be compared" in other.err

    def test_an_option_that_one_of_the_builds_does_not_have_names_its_side(
        self, lsmtune: Any, libraries: tuple[str, ...]
    ) -> None:
        command = ("verify", "--engine", "rocksdb", *libraries, "--workload", "fillrandom")
        said = lsmtune(*command, "-w", "num=1000", "--candidate", "no_such_option=1")
        assert said.status == 2
        assert said.err.splitlines()[-1].startswith("lsmtune: --candidate: ")

    def test_libraries_that_say_it_twice_or_are_none(
        self, lsmtune: Any, libraries: tuple[str, ...]
    ) -> None:
        command = ("verify", "--engine", "rocksdb", "--workload", "fillrandom")
        said = lsmtune(*command, *libraries, "--library", libraries[3])
        assert (said.status, said.err.count("\n")) == (2, 1)
        why = "has no effect beside --baseline-library and --candidate-library"
        assert said.err.startswith(f"lsmtune: --library: {why}; found ")
        refusal = lsmtune(*command, "--candidate-library", "/nowhere.so").refusal
        assert refusal.startswith("lsmtune: --candidate-library: ")
        assert "'/nowhere.so'" in refusal


@pytest.mark.engine
class TestLevelDB:
    """Sizes so small that a verdict takes seconds; what it says is what larger ones say."""

    @pytest.fixture
    def arguments(
        self, driver: Path, leveldb_library: Path, monkeypatch: pytest.MonkeyPatch
    ) -> tuple[str, ...]:
        monkeypatch.setenv("LSMTUNE_DRIVER", str(driver))
        engine = ("--engine", "leveldb", "--library", str(leveldb_library))
        return ("verify", *engine, "--workload", "fillrandom", "-w", "num=20000", "--json")

    def test_a_tiny_write_buffer_is_worse(self, lsmtune: Any, arguments: tuple[str, ...]) -> None:
        def is_told() -> bool:
            """Not where a busy machine took a second from some of the runs, which take a tenth."""
            said = lsmtune(*arguments, "--candidate", "write_buffer_size=64KiB")
            verdict = said.json()["verdict"]
            told = (said.status, verdict["outcome"])
            assert told in ((4, "worse"), (3, "not_proven")), said.err
            return said.status == 4 and verdict["ratio_high"] < 1 and verdict["pairs"] < 30

        in_time(is_told)

    def test_the_default_is_never_proved_better_than_itself(
        self, lsmtune: Any, arguments: tuple[str, ...]
    ) -> None:
        said = lsmtune(*arguments, "default", "default", "--pairs", "8")
        assert said.status == 3, said.err
        assert said.json()["verdict"]["outcome"] == "not_proven"
