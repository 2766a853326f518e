"""Mixes that miss records which the phases before them had put."""

from __future__ import annotations

from dataclasses import replace

import pytest

from lsmtune.driver.collect import with_lost_reads
from lsmtune.driver.pair import slices_obstacle
from lsmtune.model.config import EngineIdentity
from lsmtune.model.measurement import Measurement, Outcome
from lsmtune.model.workload import Companion, Mix, Phase, PhaseKind, Replay, StepRate, Workload
from lsmtune.workloads.stated import make_workload
from made_up import made_up_phase
from troubles import why_not_ok


def measured(workload: Workload, missing: int) -> Measurement:
    phases = tuple(
        made_up_phase(
            phase.name,
            kind=phase.kind.value,
            operation=None,
            operations=phase.operations or 0,
            keys_found=500 - missing if phase.name.startswith("run") else None,
            keys_missing=missing if phase.name.startswith("run") else None,
        )
        for phase in workload.phases
    )
    engine = EngineIdentity("rocksdb")
    return Measurement(Outcome.OK, engine, {}, workload.name, 1, 0.0, 1.0, phases=phases)


def judged(workload: Workload, missing: int = 3, prepared: int = 0) -> Measurement:
    seen = measured(workload, missing)
    seen = replace(seen, phases=seen.phases[prepared:])
    return with_lost_reads(seen, workload)


@pytest.mark.parametrize("name", ["ycsb-a", "ycsb-d", "contest", "zippydb"])
def test_records_that_were_loaded_and_are_missed_are_lost(name: str) -> None:
    workload = make_workload(name, {}, "test")
    lost = judged(workload)
    assert lost.outcome is Outcome.DATA_LOSS
    assert why_not_ok(lost).startswith("3 of 500 lookups in run")  # the others write
    assert judged(workload, missing=0).outcome is Outcome.OK


def test_a_load_on_an_earlier_run_counts() -> None:
    assert judged(make_workload("ycsb-b", {}, "test"), prepared=2).outcome is Outcome.DATA_LOSS


def changed(workload: Workload, **fields: object) -> Workload:
    """`workload` with other fields in the mix of its last phase."""
    *before, run = workload.phases
    assert run.mix is not None
    mix = replace(run.mix, **fields)  # type: ignore[arg-type]
    return replace(workload, phases=(*before, replace(run, mix=mix)))


def test_what_may_be_missing_is_no_loss() -> None:
    workload = make_workload("ycsb-a", {}, "test")
    deletes = changed(workload, operations=(("get", 1.0), ("delete", 1.0)))
    assert judged(deletes).outcome is Outcome.OK
    assert judged(changed(workload, records=100_001)).outcome is Outcome.OK
    assert judged(changed(workload, insert_from=200_000)).outcome is Outcome.OK
    half = replace(workload.phases[0], operations=50_000)
    assert judged(replace(workload, phases=(half, *workload.phases[1:]))).outcome is Outcome.OK
    beside = Companion("gone", mix=Mix((("delete_oldest", 1.0),), records=100_000))
    with_it = replace(workload.phases[-1], companions=(beside,))
    one = replace(workload, phases=(*workload.phases[:-1], with_it))
    assert judged(one).outcome is Outcome.OK


def test_each_thread_of_a_fillseq_begins_with_the_first_key() -> None:
    """Four threads put the same quarter of the keys, and an engine lost the others."""
    mix = Mix((("get", 1.0),), records=1000)
    read = Phase("run", PhaseKind.MEASURE, mix=mix, operations=1000)
    load = Phase("load", PhaseKind.LOAD, "fillseq", operations_per_thread=250, threads=4)
    for fill, outcome in (
        (load, Outcome.OK),
        (replace(load, operations_per_thread=None, operations=1000), Outcome.OK),
        (replace(load, operations_per_thread=1000), Outcome.DATA_LOSS),
        (replace(load, operations_per_thread=1000, threads=1), Outcome.DATA_LOSS),
        (replace(load, operation="filluniquerandom"), Outcome.DATA_LOSS),
        (replace(load, operation="filluniquerandom", threads=3), Outcome.OK),
    ):
        assert judged(Workload("w", (fill, read), num=1000)).outcome is outcome


def test_reads_by_name_after_a_mix_that_deletes_may_miss() -> None:
    # It was called data loss: only deletes by db_bench's names were known to remove keys.
    load = Phase("load", PhaseKind.LOAD, "filluniquerandom", operations_per_thread=1000)
    read = Phase("run", PhaseKind.MEASURE, "readrandom", operations_per_thread=1000)
    mix = Mix((("delete", 1.0),), records=1000)
    drop = Phase("drop", PhaseKind.WARMUP, mix=mix, operations=100)
    for phases, outcome in (
        ((load, read), Outcome.DATA_LOSS),
        ((load, drop, read), Outcome.OK),
        ((load, replace(read, companions=(Companion("gone", mix=mix),))), Outcome.OK),
    ):
        assert judged(Workload("w", phases, num=1000)).outcome is outcome


def with_last(workload: Workload, **fields: object) -> Workload:
    last: Phase = replace(workload.phases[-1], **fields)  # type: ignore[arg-type]
    return replace(workload, phases=(*workload.phases[:-1], last))


def test_phases_that_go_by_the_clock_cannot_take_turns() -> None:
    workload = make_workload("ycsb-a", {}, "test")
    assert slices_obstacle(workload) == ""
    assert "(rate_ops_s)" in slices_obstacle(with_last(workload, rate_ops_s=5.0))
    assert "at given times" in slices_obstacle(with_last(workload, rate=StepRate(((1.0, 5.0),))))
    replayed = with_last(workload, mix=None, operations=None, replay=Replay("a.trace"))
    assert "phase run replays a trace" in slices_obstacle(replayed)
    paced = Companion("scans", operation="readseq", rate_ops_s=1.0)
    assert "phase run starts" in slices_obstacle(with_last(workload, companions=(paced,)))
