from __future__ import annotations

import math
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lsmtune.errors import InputError
from lsmtune.experiment.run_length import longer_by
from lsmtune.model.workload import Durability, Phase, PhaseKind, Replay
from lsmtune.workloads.db_bench import DB_BENCH_FAMILIES
from lsmtune.workloads.parameter import WORKLOAD_PARAMETERS
from lsmtune.workloads.stated import (
    complete_parameters,
    make_workload,
    size_advice,
    state_workload,
)

FILLS = ("fillseq", "fillrandom")


NAMED_WORKLOADS = {family.name: family for family in DB_BENCH_FAMILIES}
OF_ONE_PHASE = tuple(name for name in NAMED_WORKLOADS if name != "put-get-delete")


@pytest.mark.parametrize("name", OF_ONE_PHASE)
def test_defaults_are_those_of_db_bench(name: str) -> None:
    workload = make_workload(name, {}, "test")
    assert (workload.num, workload.key_bytes, workload.value_bytes) == (1_000_000, 16, 100)
    assert workload.compression_ratio == 0.5
    assert workload.durability is Durability.WAL
    measure = workload.phases[-1]
    assert (measure.kind, measure.name, measure.operation) == (PhaseKind.MEASURE, name, name)
    assert (measure.operations_per_thread, measure.duration_s) == (1_000_000, None)
    kinds = [phase.kind.value for phase in workload.phases]
    assert kinds == (["measure"] if name in FILLS else ["load", "settle", "measure"])


def test_put_get_delete_meets_every_key_once_in_each_of_its_phases() -> None:
    workload = make_workload("put-get-delete", {"num": 1000, "threads": 4}, "-w")
    assert [phase.name for phase in workload.phases] == ["put", "get", "delete"]
    assert {phase.kind for phase in workload.phases} == {PhaseKind.MEASURE}
    assert {(p.operations_per_thread, p.threads) for p in workload.phases} == {(250, 4)}
    assert [phase.operation for phase in workload.phases] == [
        "filluniquerandom",
        "readuniquerandom",
        "deleteuniquerandom",
    ]
    with pytest.raises(InputError, match=r"-w: threads: .* found 3; allowed: a divisor of num"):
        make_workload("put-get-delete", {"num": 1000, "threads": 3}, "-w")
    with pytest.raises(InputError, match="duration_s: has no effect in put-get-delete"):
        make_workload("put-get-delete", {"duration_s": "1m"}, "-w")


@given(threads=st.integers(1, 16), each=st.integers(1, 100_000), factor=st.floats(1.0, 100.0))
def test_longer_runs_of_it_meet_every_key_once_as_well(
    threads: int, each: int, factor: float
) -> None:
    """The operations of a thread were rounded up beside the keys: 130,000 keys by 8 threads were
    136,000 operations, and a thread began again with what the next one had done."""
    workload = make_workload("put-get-delete", {"num": threads * each, "threads": threads}, "-w")
    longer = longer_by(workload, factor)
    assert longer.num >= math.floor(threads * each * factor)
    assert {phase.operations_whole for phase in longer.phases} == {longer.num}


def test_a_loaded_workload_with_every_parameter() -> None:
    given_text = {
        "num": "1e4",
        "reads": "500",
        "value_bytes": "4KiB",
        "threads": "2",
        "rate_ops_s": "2500.5",
        "seek_nexts": "10",
        "warmup_operations": "100",
        "load": "fillseq",
        "durability": "none",
        "compression_ratio": "1",
    }
    workload = make_workload("seekrandom", given_text, "-w")
    load, settle, warmup, measure = workload.phases
    assert (load.operation, load.operations_per_thread, load.threads) == ("fillseq", 10_000, 1)
    assert (settle.kind, settle.operation) == (PhaseKind.SETTLE, None)
    assert (warmup.operations_per_thread, warmup.threads, warmup.rate_ops_s) == (100, 2, None)
    assert (measure.operations_per_thread, measure.threads, measure.seek_nexts) == (500, 2, 10)
    assert measure.rate_ops_s == 2500.5
    assert (workload.num, workload.value_bytes) == (10_000, 4096)
    assert workload.durability is Durability.NONE


def test_a_duration_replaces_the_number_of_operations() -> None:
    workload = make_workload("overwrite", {"num": 1000, "duration_s": "1m30s"}, "-w")
    assert workload.num == 1000
    assert workload.phases[0].operations_per_thread == 1000
    assert workload.phases[-1].operations_per_thread is None
    assert workload.phases[-1].duration_s == 90.0


def test_reads_and_a_duration_contradict_each_other() -> None:
    with pytest.raises(InputError, match="reads: has no effect together with duration_s"):
        make_workload("readrandom", {"reads": 5, "duration_s": 5}, "-w")


@pytest.mark.parametrize("name", NAMED_WORKLOADS)
def test_a_parameter_without_effect_is_refused(name: str) -> None:
    for parameter in NAMED_WORKLOADS[name].no_effect:
        with pytest.raises(InputError, match=f"^-w: {parameter}: has no effect in {name}: "):
            make_workload(name, {parameter: "1"}, "-w")
        assert parameter not in complete_parameters(name, {}, "-w")


@pytest.mark.parametrize(
    ("name", "value", "told"),
    [
        ("key_bytes", "7", "found '7'; allowed: 8 to 65535 bytes"),
        ("key_bytes", 65536, "found 65536; allowed: 8 to 65535 bytes"),
        ("value_bytes", "2MiB", "found '2MiB'; allowed: 1 to 1048576 bytes"),
        ("value_bytes", "4K", "did you mean 4KiB?"),
        ("num", 0, "found 0"),
        ("num", True, "found true"),
        ("num", "1.5", "found '1.5'"),
        ("num", float("nan"), "found nan"),
        ("threads", 1025, "allowed: a whole number from 1 to 1024"),
        ("compression_ratio", 0, "allowed: a number above 0, at most 1"),
        ("compression_ratio", 1.01, "allowed: a number above 0, at most 1"),
        ("rate_ops_s", "fast", "found 'fast'"),
        ("duration_s", "0s", "allowed: a duration above 0"),
        ("durability", "Sync", "allowed: sync, wal, none"),
        ("value_size", 100, "did you mean value_bytes?"),
        ("num", None, "num: "),
        ("num", [1], "found [1]"),
    ],
)
def test_bad_parameters(name: str, value: object, told: str) -> None:
    with pytest.raises(InputError) as caught:
        make_workload("overwrite", {name: value}, "-w")
    line = str(caught.value)
    assert line.startswith(f"-w: {name}: ")
    assert told in line
    assert "\n" not in line


def test_an_unknown_workload_names_the_nearest() -> None:
    with pytest.raises(
        InputError, match=r"^x: name: found 'fillrandum'.*did you mean fillrandom\?"
    ):
        make_workload("fillrandum", {}, "x")


@given(st.sampled_from(sorted(WORKLOAD_PARAMETERS)), st.text() | st.integers() | st.floats())
def test_any_value_is_taken_or_refused_in_one_line(name: str, value: object) -> None:
    try:
        workload = make_workload("seekrandom", {name: value}, "-w")
    except InputError as error:
        line = str(error)
        workload = None
    if workload is None:
        assert "\n" not in line
        return
    assert 8 <= workload.key_bytes <= 65535
    assert 1 <= workload.value_bytes <= 2**20
    assert 0 < workload.compression_ratio <= 1
    assert workload.num >= 1


def test_what_would_do_is_said_in_the_words_of_the_workload() -> None:
    """By whether it has parameters: a file may have the name of a family, as exported ones have."""
    stated = state_workload("ycsb-a", {"recordcount": 1000, "operationcount": 500}, "-w")
    workload = stated.workload
    assert size_advice(workload, 4000, stated.parameters) == (
        "-w recordcount=4000 -w operationcount=2000"
    )
    in_its_file = "4 times num and the operations of the phases in its file"
    assert size_advice(workload, 4000, {}) == in_its_file
    # With more keys alone, what a duration ends is no longer.
    cases: list[tuple[str, dict[str, object], str]] = [
        ("overwrite", {"num": 1000, "duration_s": 5}, "-w duration_s=20"),
        ("zippydb", {"num": 1000, "duration_s": "1500ms"}, "-w duration_s=6"),
        ("readwhilewriting", {"num": 1000, "reads": 333}, "-w num=4000 -w reads=1400"),
        (
            "ycsb-a",
            {"recordcount": 1000, "operationcount": 0, "maxexecutiontime": 9},
            "-w maxexecutiontime=36",
        ),
        (
            "ycsb-a",
            {"recordcount": 1000, "operationcount": 500, "maxexecutiontime": 9},
            "-w recordcount=4000 -w operationcount=2000 -w maxexecutiontime=36",
        ),
    ]
    for name, parameters, advice in cases:
        stated = state_workload(name, parameters, "-w")
        assert size_advice(stated.workload, 4000, stated.parameters) == advice
    *before, run = workload.phases
    both = replace(workload, phases=(*before, replace(run, duration_s=5.0)))
    in_its_file = "4 times num, the operations and the durations of the phases in its file"
    assert size_advice(both, 4000, {}) == in_its_file
    lasting = replace(workload, phases=(*before, replace(run, duration_s=5.0, operations=None)))
    assert size_advice(lasting, 4000, {}) == "4 times the durations of the phases in its file"
    # A plugin may call its duration otherwise: "; would do" was said, without a word of what.
    assert size_advice(lasting, 4000, {"seconds": 5}) == "-w recordcount=4000"
    replay = Phase("replay", PhaseKind.MEASURE, replay=Replay("t.trace"))
    replayed = replace(workload, phases=(*workload.phases[:2], replay))
    assert size_advice(replayed, 2500, {}) == "a trace 2.5 times as long"
