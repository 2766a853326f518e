"""`lsmtune verify` and `bench` of configurations that put data at risk or take too much memory."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from lsmtune.cli.verify import objective_of
from lsmtune.driver import library_facts
from lsmtune.engines.ready import known_presets
from lsmtune.engines.safety import doubts
from lsmtune.errors import InputError
from lsmtune.model.config import Config, EngineIdentity
from lsmtune.model.goal import Direction
from lsmtune.model.metrics import TOTAL_METRICS
from lsmtune.model.request import LIMITS_DEFAULT, Limits
from lsmtune.model.workload import Durability
from lsmtune.workloads.stated import make_workload

WINNER = "rocksdb-gist-winner"
SIX = ("--pairs", "6")
ONE_PHASE = ("--workload", "fillrandom")  # the last one given counts
UNSAFE = ("compaction_style", "disable_auto_compactions")
ALLOW = [part for name in UNSAFE for part in ("--allow-unsafe", name)]


@pytest.fixture
def arguments(fake_driver: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[str, ...]:
    """Of `verify` and `bench`: a driver without an engine answers for a RocksDB 10.2.1."""
    identity = EngineIdentity("rocksdb", "10.2.1", library=str(fake_driver))
    monkeypatch.setattr(library_facts, "chosen_engine", lambda *_arguments: (identity, ()))
    return ("--engine", "rocksdb", "--workload", "put-get-delete", "-w", "num=1000")


def test_the_winner_of_the_gist_is_refused_with_every_reason(
    lsmtune: Any, arguments: tuple[str, ...], home: Path
) -> None:
    said = lsmtune("verify", *arguments, "--candidate", WINNER)
    assert said.status == 3, said.err
    first, *rest = said.out.splitlines()
    assert first == f"{WINNER}: no proven gain: refused as a recommendation, and not run:"
    fifo, compactions, memory, opt_in = rest
    assert "compaction_style=kCompactionStyleFIFO is unsafe under durability wal" in fifo
    assert "risk: data loss" in fifo
    assert "disable_auto_compactions=true is unsafe under durability wal" in compactions
    assert "by the memory model it may come to use 7.61GiB (memtables 7.57GiB" in memory
    assert "more than the limit of 4GiB (--memory)" in memory
    assert "--allow-unsafe NAME" in opt_in
    assert "pair" not in said.err
    assert "Traceback" not in said.err
    assert list(home.iterdir()) == []


def test_a_refusal_as_json(lsmtune: Any, arguments: tuple[str, ...]) -> None:
    said = lsmtune("verify", *arguments, "--candidate", WINNER, "--json")
    assert said.status == 3
    document = said.json()
    assert document["verdict"]["outcome"] == "not_proven"
    assert document["verdict"]["pairs"] == 0
    assert len(document["refused"]) == 3
    assert document["warnings"] == []
    (note,) = document["notes"]
    assert note == (
        "the last of several phases is judged, delete; --phase NAME judges another: put, get"
    )
    assert said.err == f"lsmtune: note: {note}\n"
    for reason in document["refused"]:
        assert reason in document["verdict"]["why"]


@pytest.mark.parametrize("flags", [("--phase", "put"), ("--metric", "total_elapsed_s"), ONE_PHASE])
def test_no_note_on_the_phase_where_none_was_chosen(
    lsmtune: Any, arguments: tuple[str, ...], flags: tuple[str, ...]
) -> None:
    said = lsmtune("verify", *arguments, "--candidate", WINNER, *flags, "--json")
    twice = "lsmtune: note: --workload: given 2 times; the last one counts\n"
    assert (said.status, said.err) == (3, twice if flags is ONE_PHASE else "")
    assert said.json()["notes"] == []


def test_what_is_allowed_runs_and_every_output_warns(
    lsmtune: Any, arguments: tuple[str, ...]
) -> None:
    allowed = ("verify", *arguments, *SIX, "--candidate", WINNER, "--memory", "16GiB", *ALLOW)
    said = lsmtune(*allowed)
    assert said.status == 3, said.err
    assert said.err.count(" baseline: 1") == said.err.count(" candidate: 1") == 6
    assert said.out.startswith(f"{WINNER}: no proven gain: 1.000x the baseline")
    document = lsmtune(*allowed, "--json").json()
    assert document["refused"] == []
    assert document["verdict"]["pairs"] == 6
    for name, told in zip(UNSAFE, document["warnings"], strict=True):
        assert f"the candidate: {name}=" in told
        assert f"warning: {told}" in said.out
        assert f"lsmtune: warning: {told}" in said.err


@pytest.mark.parametrize("left", UNSAFE)
def test_each_unsafe_option_must_be_allowed(
    lsmtune: Any, arguments: tuple[str, ...], left: str
) -> None:
    (given,) = set(UNSAFE) - {left}
    flags = ("--memory", "16GiB", "--allow-unsafe", given)
    said = lsmtune("verify", *arguments, "--candidate", WINNER, *flags, "--json")
    assert said.status == 3
    (reason,) = said.json()["refused"]
    assert reason.startswith(f"{left}=")


def test_memory_above_the_limit_is_reason_enough(lsmtune: Any, arguments: tuple[str, ...]) -> None:
    said = lsmtune("verify", *arguments, "--candidate", WINNER, *ALLOW, "--json")
    assert said.status == 3
    (reason,) = said.json()["refused"]
    assert "memory model" in reason
    large = "write_buffer_size=1GiB,max_write_buffer_number=8"
    said = lsmtune("verify", *arguments, "--candidate", large, "--memory", "2GiB", "--json")
    assert (said.status, len(said.json()["refused"])) == (3, 1)


def test_an_unsafe_baseline_is_only_warned_of(lsmtune: Any, arguments: tuple[str, ...]) -> None:
    said = lsmtune("verify", *arguments, *SIX, WINNER, "max_background_jobs=3", "--json")
    assert said.status == 3, said.err
    assert said.json()["verdict"]["pairs"] == 6
    told = said.json()["warnings"]
    assert len(told) == 3
    assert all(line.startswith("the baseline: ") for line in told)


@pytest.mark.parametrize(
    ("name", "line"),
    [
        ("compaction_stile", "did you mean compaction_style?"),
        ("paranoid_checks", "has no effect: no configuration here has it with an unsafe value"),
    ],
)
def test_an_allowance_without_effect(
    lsmtune: Any, arguments: tuple[str, ...], name: str, line: str
) -> None:
    refusal = lsmtune("verify", *arguments, "--candidate", WINNER, "--allow-unsafe", name).refusal
    assert refusal.startswith("lsmtune: --allow-unsafe: ")
    assert line in refusal


def test_bench_measures_anything_and_warns(lsmtune: Any, arguments: tuple[str, ...]) -> None:
    flags = ("-o", "compaction_style=kCompactionStyleFIFO", "-o", "write_buffer_size=3GiB")
    said = lsmtune("bench", *arguments, *flags, "--json")
    assert said.status == 0, said.err
    risk, memory = said.json()["warnings"][-2:]
    assert "risk: data loss" in risk
    assert "memory model" in memory
    assert f"lsmtune: warning: {risk}" in said.err
    assert "warning: compaction_style=" in lsmtune("bench", *arguments, *flags).out
    assert "memory model" not in lsmtune("bench", *arguments).err


def test_the_winner_fits_no_limit_that_is_less_than_its_data() -> None:
    winner = Config(known_presets()[WINNER].options)
    engine = EngineIdentity("rocksdb", "10.2.1")
    five_gb = Limits(600.0, 500_000 * 10_250, 2**40)
    found = doubts(engine, winner, Durability.WAL, five_gb, "test")
    assert len(found.reasons()) == 3
    assert found.warnings(UNSAFE) == found.reasons()[:2]
    assert doubts(engine, Config(), Durability.WAL, LIMITS_DEFAULT, "test").reasons() == []


def test_a_value_that_the_model_cannot_read_names_the_flag(
    lsmtune: Any, arguments: tuple[str, ...]
) -> None:
    refusal = lsmtune("verify", *arguments, "--candidate", "write_buffer_size=huge").refusal
    assert refusal.startswith("lsmtune: --candidate: ")


def test_every_metric_of_the_whole_run_can_be_compared(
    lsmtune: Any, arguments: tuple[str, ...]
) -> None:
    for metric in TOTAL_METRICS:
        flags = (*SIX, "--candidate", "max_background_jobs=3", "--metric", metric, "--json")
        verdict = lsmtune("verify", *arguments, *flags).json()["verdict"]
        assert (verdict["metric"], verdict["direction"]) == (metric, "minimize")
        assert verdict["ratio"] == 1.0


def test_both_configurations_get_the_options_of_direct_io(
    lsmtune: Any, arguments: tuple[str, ...]
) -> None:
    flags = (*SIX, "-w", "page_cache=direct", "--candidate", "max_background_jobs=3", "--json")
    document = lsmtune("verify", *arguments, *flags).json()
    for side in ("baseline", "candidate"):
        assert document[side]["options"]["use_direct_reads"] is True


def test_direct_io_of_an_engine_without_it_is_refused(
    lsmtune: Any, arguments: tuple[str, ...]
) -> None:
    leveldb = ("--engine", "leveldb", *arguments[2:], "-w", "page_cache=direct")
    refusal = lsmtune("verify", *leveldb, "--candidate", "block_size=16KiB").refusal
    assert "leveldb has no direct I/O" in refusal


def test_a_phase_is_one_of_the_workload_and_belongs_to_no_total() -> None:
    workload = make_workload("put-get-delete", {"num": 10}, "test")
    objective = objective_of("throughput_ops_s", "put", workload)
    assert (objective.phase, objective.direction) == ("put", Direction.MAXIMIZE)
    with pytest.raises(InputError, match=r"--phase: found 'putt'.*did you mean put"):
        objective_of("throughput_ops_s", "putt", workload)
    with pytest.raises(InputError, match="--phase: has no effect: total_elapsed_s is of all"):
        objective_of("total_elapsed_s", "put", workload)
