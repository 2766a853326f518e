"""Reads in the middle of a run that miss what had been put are data loss."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from lsmtune.driver.collect import with_lost_reads
from lsmtune.driver.native import NativeRunner
from lsmtune.model.config import Config, EngineIdentity
from lsmtune.model.measurement import Measurement, Outcome, PhaseMeasurement
from lsmtune.model.request import LIMITS_DEFAULT, RunRequest
from lsmtune.model.workload import Phase, PhaseKind
from lsmtune.workloads.stated import make_workload
from made_up import made_up_phase
from troubles import why_not_ok

NUM = 1000


def phase(operation: str, operations: int = NUM, missing: int | None = None) -> PhaseMeasurement:
    return made_up_phase(operation, operations=operations, keys_missing=missing)


def run(*phases: PhaseMeasurement, engine: str = "rocksdb") -> Measurement:
    return Measurement(Outcome.OK, EngineIdentity(engine), {}, "w", 1, 0.0, 1.0, phases)


def test_keys_that_an_earlier_run_put_count_too() -> None:
    load = Phase("load", PhaseKind.LOAD, "filluniquerandom", operations_per_thread=NUM)
    fewer = replace(load, operations_per_thread=NUM - 1)
    measured = run(phase("readrandom", missing=3))
    assert with_lost_reads(measured, NUM, [load]).outcome is Outcome.DATA_LOSS
    for before in ([], [fewer], [replace(load, duration_s=1.0)]):
        assert with_lost_reads(measured, NUM, before) == measured
    deleted = run(phase("deleterandom"), phase("readrandom", missing=3))
    assert with_lost_reads(deleted, NUM, [load]) == deleted
    over_all = replace(load, operations_per_thread=None, operations=NUM, threads=3)
    assert with_lost_reads(measured, NUM, [over_all]).outcome is Outcome.DATA_LOSS


def test_threads_that_time_ended_need_not_have_put_every_key() -> None:
    # Of two threads one may be as fast as to put its half of the keys twice.
    load = Phase("filluniquerandom", PhaseKind.LOAD, "filluniquerandom", duration_s=1.0, threads=2)
    seen = run(phase("filluniquerandom", 2 * NUM), phase("readrandom", missing=3))
    assert with_lost_reads(seen, NUM, (), [load]) == seen
    sized = replace(load, duration_s=None, operations=2 * NUM)
    assert with_lost_reads(seen, NUM, (), [sized]).outcome is Outcome.DATA_LOSS


@pytest.mark.parametrize("read", ["readuniquerandom", "readrandom", "readhot"])
def test_a_read_that_misses_a_key_that_was_put_is_data_loss(read: str) -> None:
    delete = phase("deleteuniquerandom")
    judged = with_lost_reads(run(phase("filluniquerandom"), phase(read, missing=3), delete), NUM)
    assert judged.outcome is Outcome.DATA_LOSS
    assert why_not_ok(judged) == f"3 of 1000 keys that were put not found in {read}"
    assert len(judged.phases) == 3


@pytest.mark.parametrize(
    "phases",
    [
        (phase("filluniquerandom"), phase("readuniquerandom", missing=0)),
        (phase("filluniquerandom"), phase("readmissing", missing=NUM)),
        (phase("filluniquerandom", NUM - 1), phase("readrandom", missing=1)),
        (phase("fillrandom"), phase("readrandom", missing=300)),
        (phase("filluniquerandom"), phase("deleterandom"), phase("readrandom", missing=600)),
    ],
)
def test_what_need_not_be_there_may_be_missing(phases: tuple[PhaseMeasurement, ...]) -> None:
    assert with_lost_reads(run(*phases), NUM).outcome is Outcome.OK


def test_neither_an_engine_without_data_nor_another_outcome_is_judged() -> None:
    phases = (phase("filluniquerandom"), phase("readrandom", missing=NUM))
    assert with_lost_reads(run(*phases, engine="noop"), NUM).outcome is Outcome.OK
    timeout = replace(run(*phases), outcome=Outcome.TIMEOUT)
    assert with_lost_reads(timeout, NUM) is timeout


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
