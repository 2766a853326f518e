"""What is left after a driver was killed in a load, of the real driver on real engines."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from lsmtune.driver.native import NativeRunner
from lsmtune.errors import InputError
from lsmtune.model.config import Config, EngineIdentity
from lsmtune.model.measurement import Outcome
from lsmtune.model.request import Limits, RunRequest
from lsmtune.model.workload import Durability, Phase, PhaseKind, Workload

pytestmark = pytest.mark.engine

NUM = 4_000_000  # so many that no load ends before it is killed
ASKED = 400_000
LOAD = Phase("load", PhaseKind.LOAD, "filluniquerandom", operations_per_thread=NUM)


@pytest.fixture(params=["rocksdb", "leveldb"])
def request_(request: pytest.FixtureRequest, tmp_path: Path) -> RunRequest:
    name = str(request.param)
    engine = EngineIdentity(name, library=str(request.getfixturevalue(f"{name}_library")))
    workload = Workload("load", (LOAD,), num=NUM)
    limits = Limits(60.0, 2 << 30, 2 << 30)
    return RunRequest(engine, Config(), workload, 5, tmp_path, limits, load_seed=4)


def test_what_was_reported_survives_a_kill(driver: Path, request_: RunRequest) -> None:
    killed = NativeRunner(driver).kill_in_load(request_, 20_000)
    assert killed.outcome is None, killed.message
    assert 20_000 <= killed.acknowledged < NUM
    check = NativeRunner(driver).check_after_crash(request_, killed.acknowledged)
    assert check.outcome is Outcome.OK, check.message
    assert check.verified is not None
    assert (check.verified.keys_lost, check.verified.keys_wrong) == (0, 0)
    assert check.verified.keys_checked == killed.acknowledged
    assert check.message == f"all {killed.acknowledged} reported keys are there"


def test_what_was_never_written_is_missed(driver: Path, request_: RunRequest) -> None:
    """Many more are asked for than were written: the check is able to fail."""
    killed = NativeRunner(driver).kill_in_load(request_, 20_000)
    asked = max(ASKED, 2 * killed.acknowledged)
    check = NativeRunner(driver).check_after_crash(request_, asked)
    assert check.outcome is Outcome.DATA_LOSS
    assert check.verified is not None
    assert 0 < check.verified.keys_lost <= asked - killed.acknowledged
    assert "keys lost" in check.message


def test_without_a_log_what_was_in_memory_is_lost(
    driver: Path, rocksdb_library: Path, tmp_path: Path
) -> None:
    workload = Workload("load", (LOAD,), num=NUM, durability=Durability.NONE)
    engine = EngineIdentity("rocksdb", library=str(rocksdb_library))
    limits = Limits(60.0, 2 << 30, 2 << 30)
    # As large as the whole load: a tuner that the machine keeps from killing lets it fill a usual
    # one, and what was flushed is not lost.
    config = Config({"write_buffer_size": 1 << 30})
    request = RunRequest(engine, config, workload, 5, tmp_path, limits)
    killed = NativeRunner(driver).kill_in_load(request, 20_000)
    check = NativeRunner(driver).check_after_crash(request, killed.acknowledged)
    assert check.outcome is Outcome.DATA_LOSS
    assert check.verified is not None
    assert check.verified.keys_lost == killed.acknowledged


def test_a_database_that_does_not_open_is_said(driver: Path, request_: RunRequest) -> None:
    killed = NativeRunner(driver).kill_in_load(request_, 20_000)
    (request_.directory / "db" / "CURRENT").write_text("MANIFEST-424242\n")
    check = NativeRunner(driver).check_after_crash(request_, killed.acknowledged)
    assert check.outcome is Outcome.CRASHED
    assert check.verified is None
    assert check.message


def test_a_load_that_is_over_too_soon_is_killed_at_its_end(
    driver: Path, request_: RunRequest
) -> None:
    short = replace(LOAD, operations_per_thread=2000)
    overwrite = Phase("overwrite", PhaseKind.MEASURE, "overwrite", duration_s=60.0)
    workload = replace(request_.workload, phases=(short, overwrite))
    request = replace(request_, workload=workload)
    killed = NativeRunner(driver).kill_in_load(request, NUM)
    assert (killed.outcome, killed.acknowledged) == (None, 2000)


def test_a_run_that_ends_before_it_can_be_killed_says_how(
    driver: Path, request_: RunRequest
) -> None:
    killed = NativeRunner(driver).kill_in_load(
        replace(request_, config=Config({"no_such_option": 1})), 10
    )
    assert killed.outcome is Outcome.INVALID
    assert "no_such_option" in killed.message


def test_what_cannot_be_checked_is_refused(driver: Path, request_: RunRequest) -> None:
    threads = replace(request_.workload, phases=(replace(LOAD, threads=2),))
    with pytest.raises(InputError, match=r"crash check of load: workload.phases\[0\].threads"):
        NativeRunner(driver).check_after_crash(replace(request_, workload=threads), 10)
    measure = replace(request_.workload, phases=(replace(LOAD, kind=PhaseKind.MEASURE),))
    with pytest.raises(ValueError, match="not a load"):
        NativeRunner(driver).kill_in_load(replace(request_, workload=measure), 10)
