"""Reads in the middle of a run that miss what had been put are data loss."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from lsmtune.driver.collect import with_lost_reads
from lsmtune.driver.native import NativeRunner
from lsmtune.model.config import Config, EngineIdentity
from lsmtune.model.measurement import Measurement, Outcome
from lsmtune.model.request import LIMITS_DEFAULT, RunRequest
from lsmtune.model.workload import Phase, PhaseKind, Workload
from lsmtune.workloads.stated import make_workload
from made_up import made_up_phase
from troubles import why_not_ok

NUM = 1000


def phase(operation: str, operations: int = NUM) -> Phase:
    return Phase(operation, PhaseKind.MEASURE, operation, operations_per_thread=operations)


def seen(
    *phases: Phase, missing: int = 3, prepared: int = 0, engine: str = "rocksdb"
) -> Measurement:
    """A run of all but the first `prepared` phases, in which those that read missed keys."""
    measured = tuple(
        made_up_phase(
            each.name,
            operations=each.operations_whole or 0,
            keys_found=NUM - missing if each.name.startswith("read") else None,
            keys_missing=missing if each.name.startswith("read") else None,
        )
        for each in phases[prepared:]
    )
    return Measurement(Outcome.OK, EngineIdentity(engine), {}, "w", 1, 0.0, 1.0, measured)


def judged(*phases: Phase, missing: int = 3, prepared: int = 0) -> Measurement:
    run = seen(*phases, missing=missing, prepared=prepared)
    return with_lost_reads(run, Workload("w", phases, num=NUM))


def test_keys_that_an_earlier_run_put_count_too() -> None:
    load, read = phase("filluniquerandom"), phase("readrandom")
    assert judged(load, read, prepared=1).outcome is Outcome.DATA_LOSS
    for less in (phase("filluniquerandom", NUM - 1), replace(load, duration_s=1.0)):
        assert judged(less, read, prepared=1).outcome is Outcome.OK
    assert judged(load, phase("deleterandom"), read, prepared=1).outcome is Outcome.OK
    over_all = replace(load, operations_per_thread=None, operations=NUM, threads=3)
    assert judged(over_all, read, prepared=1).outcome is Outcome.DATA_LOSS


def test_threads_that_time_ended_need_not_have_put_every_key() -> None:
    # Of two threads one may be as fast as to put its half of the keys twice.
    load = replace(phase("filluniquerandom"), operations_per_thread=None, threads=2)
    timed, sized = replace(load, duration_s=1.0), replace(load, operations=2 * NUM)
    assert judged(timed, phase("readrandom")).outcome is Outcome.OK
    assert judged(sized, phase("readrandom")).outcome is Outcome.DATA_LOSS


@pytest.mark.parametrize("fill", ["filluniquerandom", "fillseq"])
@pytest.mark.parametrize("read", ["readuniquerandom", "readrandom", "readhot"])
def test_a_read_that_misses_a_key_that_was_put_is_data_loss(fill: str, read: str) -> None:
    found = judged(phase(fill), phase(read), phase("deleteuniquerandom"))
    assert found.outcome is Outcome.DATA_LOSS
    assert why_not_ok(found) == f"3 of 1000 lookups in {read} did not find a key that was put"
    assert len(found.phases) == 3


@pytest.mark.parametrize(
    ("phases", "missing"),
    [
        ((phase("filluniquerandom"), phase("readuniquerandom")), 0),
        ((phase("filluniquerandom"), phase("readmissing")), NUM),
        ((phase("filluniquerandom", NUM - 1), phase("readrandom")), 1),
        ((phase("fillrandom"), phase("readrandom")), 300),
        ((phase("filluniquerandom"), phase("deleterandom"), phase("readrandom")), 600),
    ],
)
def test_what_need_not_be_there_may_be_missing(phases: tuple[Phase, ...], missing: int) -> None:
    assert judged(*phases, missing=missing).outcome is Outcome.OK


def test_neither_an_engine_without_data_nor_another_outcome_is_judged() -> None:
    phases = (phase("filluniquerandom"), phase("readrandom"))
    workload = Workload("w", phases, num=NUM)
    assert with_lost_reads(seen(*phases, engine="noop"), workload).outcome is Outcome.OK
    timeout = replace(seen(*phases), outcome=Outcome.TIMEOUT)
    assert with_lost_reads(timeout, workload) is timeout


@pytest.mark.engine
def test_fifo_compaction_that_drops_data_fails_although_all_keys_are_deleted_in_the_end(
    driver: Path, rocksdb_library: Path, tmp_path: Path
) -> None:
    sizes = {"num": 2000, "value_bytes": 10240, "compression_ratio": 1.0}
    fifo = {
        "compaction_style": "kCompactionStyleFIFO",
        "compaction_options_fifo.max_table_files_size": 4 * 2**20,
        "write_buffer_size": 2**20,
    }
    request = RunRequest(
        EngineIdentity("rocksdb", library=str(rocksdb_library)),
        Config(fifo),
        make_workload("put-get-delete", sizes, "test"),
        1,
        tmp_path,
        LIMITS_DEFAULT,
    )
    measurement = NativeRunner(driver).run(request, lambda _message: None)
    assert measurement.outcome is Outcome.DATA_LOSS, measurement.error
    assert "was written, and a read did not find it" in why_not_ok(measurement)
