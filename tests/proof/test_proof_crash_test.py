"""The crash test: what each durability class allows, on a fake runner and on real engines."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from fake_runner import FakeRunner
from hypothesis import given
from hypothesis import strategies as st
from killable_runner import KillableRunner, left
from proof_parts import (
    BASELINE,
    CANDIDATE,
    WORKLOAD,
    Recorder,
    arm,
    measurer_of,
    open_folder,
)

from lsmtune.driver.native import CrashCheck, KilledRun, NativeRunner
from lsmtune.errors import InputError
from lsmtune.experiment.measurer import Measurer
from lsmtune.experiment.schedule import Arm
from lsmtune.experiment.store import Role
from lsmtune.model.config import Config, EngineIdentity
from lsmtune.model.measurement import Outcome
from lsmtune.model.request import LIMITS_DEFAULT, Limits
from lsmtune.model.workload import Durability, PageCache, PhaseKind
from lsmtune.proof.crash_test import (
    LOAD_BYTES,
    LOAD_S,
    CrashOutcome,
    CrashTest,
    crash_line,
    crash_test,
    judged_crash,
    load_of,
)


def fake_test(
    path: Path,
    runner: FakeRunner,
    observer: Recorder | None = None,
    seed: int = 1,
    load_bytes: int = LOAD_BYTES,
) -> CrashTest | None:
    observer = observer or Recorder()
    with open_folder(path) as folder:
        measurer = measurer_of(folder, runner, observer, runner)
        return crash_test(arm(CANDIDATE), measurer, study_seed=seed, load_bytes=load_bytes)


@pytest.mark.parametrize("durability", [Durability.SYNC, Durability.WAL])
def test_a_class_that_promises_its_writes_loses_none(durability: Durability) -> None:
    good = judged_crash(durability, 1000, left())
    assert good == CrashTest(CrashOutcome.PASSED, durability, 1000, 1000)
    bad = judged_crash(durability, 1000, left(lost=3))
    assert bad is not None
    assert (bad.outcome, bad.keys_lost) == (CrashOutcome.FAILED, 3)
    assert bad.why == "lost 3 of 1,000 acknowledged writes after a crash"


def test_the_class_none_may_lose_but_tells_how_much() -> None:
    found = judged_crash(Durability.NONE, 1000, left(lost=250))
    assert found is not None
    assert found.outcome is CrashOutcome.PASSED
    assert "lost 250 of 1,000 acknowledged writes after a crash (25 %)" in found.why
    assert "allows" in crash_line(found)


@pytest.mark.parametrize("durability", list(Durability))
def test_a_wrong_value_is_a_failure_in_every_class(durability: Durability) -> None:
    found = judged_crash(durability, 1000, left(lost=1, wrong=2))
    assert found is not None
    assert (found.outcome, found.keys_wrong) == (CrashOutcome.FAILED, 2)
    assert "2 keys with values that nobody wrote after a crash" in found.why


@pytest.mark.parametrize("durability", list(Durability))
def test_a_database_that_does_not_open_again_is_a_failure(durability: Durability) -> None:
    found = judged_crash(durability, 1000, left(outcome=Outcome.CRASHED))
    assert found is not None
    assert found.outcome is CrashOutcome.FAILED
    assert "no MANIFEST" in found.why


@pytest.mark.parametrize("outcome", [Outcome.TIMEOUT, Outcome.OUT_OF_MEMORY, Outcome.DISK_FULL])
def test_what_could_not_be_looked_at_is_not_done(outcome: Outcome) -> None:
    found = judged_crash(Durability.WAL, 1000, left(outcome=outcome))
    assert found is not None
    assert found.outcome is CrashOutcome.NOT_DONE
    assert outcome.value in crash_line(found)
    assert judged_crash(Durability.WAL, 1000, left(outcome=Outcome.CANCELLED)) is None


def test_it_is_said_that_it_is_no_power_loss(tmp_path: Path) -> None:
    found = fake_test(tmp_path, KillableRunner())
    assert found is not None
    assert crash_line(found) == (
        "passed (1,000 acknowledged writes under durability wal; process crash)"
    )


def test_the_place_follows_from_the_seed_and_is_about_the_half(tmp_path: Path) -> None:
    places = set()
    for seed in range(6):
        runner = KillableRunner()
        fake_test(tmp_path / str(seed), runner, seed=seed)
        again = KillableRunner()
        fake_test(tmp_path / f"again {seed}", again, seed=seed)
        ((request, place, after_s),) = runner.kills
        assert again.kills[0][1] == place
        assert after_s == LOAD_S
        assert 0.4 <= place / request.workload.num <= 0.6
        places.add(place)
    assert len(places) > 3


def test_the_load_is_of_one_thread_on_one_database_and_as_large_as_is_asked_for(
    tmp_path: Path,
) -> None:
    runner = KillableRunner()
    fake_test(tmp_path, runner, load_bytes=1 << 20)
    ((request, _, _),) = runner.kills
    asked = request.workload
    assert asked.num == (1 << 20) // (asked.key_bytes + asked.value_bytes)
    assert (asked.name, asked.durability) == ("crash test", Durability.WAL)
    assert (asked.databases, asked.column_families, asked.page_cache) == (1, 1, PageCache.WARM)
    assert (asked.keys, asked.key_sizes) == (None, None)
    # What reads on while the driver is not yet dead writes nothing.
    load, hold = asked.phases
    assert (load.kind, load.operation) == (PhaseKind.LOAD, "filluniquerandom")
    assert (hold.name, hold.kind, hold.operation) == ("hold", PhaseKind.WARMUP, "readrandom")
    assert hold.duration_s == 60.0


def test_the_result_is_kept_and_found_again(tmp_path: Path) -> None:
    runner, observer = KillableRunner(leaves=lambda _config: left(lost=7)), Recorder()
    first = fake_test(tmp_path, runner, observer)
    assert fake_test(tmp_path, runner, observer) == first
    assert len(runner.kills) == 1
    assert [told[0] for told in observer.of("run_started")] == [Role.CRASH]


def test_what_was_not_done_is_tried_again(tmp_path: Path) -> None:
    runner = KillableRunner(leaves=lambda _config: left(outcome=Outcome.TIMEOUT))
    assert fake_test(tmp_path, runner) is not None
    runner.leaves = lambda _config: left()
    found = fake_test(tmp_path, runner)
    assert found is not None
    assert found.outcome is CrashOutcome.PASSED
    assert len(runner.kills) == 2


def test_a_program_that_is_not_ours_is_not_killed(tmp_path: Path) -> None:
    found = fake_test(tmp_path, FakeRunner())
    assert found is not None
    assert found.outcome is CrashOutcome.NOT_DONE
    assert crash_line(found).startswith("not done: a program that is not lsmtune's own driver")


@pytest.mark.parametrize(
    ("killed", "why"),
    [
        (KilledRun(0, Outcome.CRASHED, "segfault"), "the load ended crashed before"),
        (KilledRun(0), "no write was acknowledged within 5 s"),
    ],
)
def test_a_load_that_was_not_killed_in_the_middle(
    tmp_path: Path, killed: KilledRun, why: str
) -> None:
    found = fake_test(tmp_path, KillableRunner(killed=killed))
    assert found is not None
    assert found == CrashTest(CrashOutcome.NOT_DONE, Durability.WAL, why=found.why)
    assert found.why.startswith(why)


def test_an_engine_that_keeps_nothing_is_told(tmp_path: Path) -> None:
    def refuse(_config: Config) -> CrashCheck:
        raise InputError("crash check", "engine.name", found="memory", allowed="one that keeps")

    found = fake_test(tmp_path, KillableRunner(leaves=refuse))
    assert found is not None
    assert found.outcome is CrashOutcome.NOT_DONE
    assert "found 'memory'" in found.why


def test_of_several_workloads_the_one_that_promises_most_is_tested(tmp_path: Path) -> None:
    weak = replace(WORKLOAD, durability=Durability.NONE)
    strong = replace(WORKLOAD, durability=Durability.SYNC, value_bytes=777)
    runner, observer = KillableRunner(), Recorder()
    with open_folder(tmp_path) as folder:
        measurer = measurer_of(folder, runner, observer, runner, (weak, WORKLOAD, strong))
        found = crash_test(arm(CANDIDATE), measurer, study_seed=1)
    assert found is not None
    assert found.durability is Durability.SYNC
    assert runner.kills[0][0].workload.value_bytes == 777


def test_an_interrupt_ends_it_and_keeps_nothing(tmp_path: Path) -> None:
    observer, runner = Recorder(), KillableRunner()
    observer.stop_at = ("run_started", Role.CRASH, None, 0)
    assert fake_test(tmp_path, runner, observer) is None
    assert fake_test(tmp_path, runner) is not None
    assert len(runner.kills) == 2


@given(
    value_bytes=st.integers(0, 1 << 20),
    memory=st.integers(1 << 20, 1 << 40),
    disk=st.integers(1 << 20, 1 << 40),
)
def test_a_load_is_small_against_every_limit(value_bytes: int, memory: int, disk: int) -> None:
    of = replace(WORKLOAD, value_bytes=value_bytes)
    load = load_of(of, Limits(60.0, memory, disk))
    first = load.phases[0]
    assert (first.kind, first.threads, first.operations_per_thread) == (PhaseKind.LOAD, 1, load.num)
    assert (load.key_bytes, load.value_bytes) == (of.key_bytes, value_bytes)
    size = load.num * (load.key_bytes + load.value_bytes)
    assert load.num == 1 or size <= min(LOAD_BYTES, memory // 8, disk // 8)


@pytest.mark.engine
class TestEngines:
    """The real driver on real engines; a few megabytes, killed at their half."""

    @pytest.fixture(autouse=True)
    def nothing_is_left(self, tmp_path: Path) -> Iterator[None]:
        yield
        assert list((tmp_path / "runs").iterdir()) == []

    @pytest.fixture(params=["rocksdb", "leveldb"])
    def engine(self, request: pytest.FixtureRequest) -> EngineIdentity:
        name = str(request.param)
        return EngineIdentity(name, library=str(request.getfixturevalue(f"{name}_library")))

    def crashed(
        self,
        path: Path,
        driver: Path,
        engine: EngineIdentity,
        durability: Durability = Durability.WAL,
        config: Config = BASELINE,
    ) -> CrashTest:
        observer = Recorder()
        workload = replace(WORKLOAD, durability=durability, value_bytes=400)
        with open_folder(path) as folder:
            measurer = Measurer(
                folder,
                NativeRunner(driver),
                (workload,),
                LIMITS_DEFAULT,
                observer,
                observer.stop,
                time.monotonic,
            )
            found = crash_test(Arm(engine, config), measurer, study_seed=3, load_bytes=32 << 20)
        assert found is not None
        return found

    def test_what_was_acknowledged_is_there(
        self, driver: Path, engine: EngineIdentity, tmp_path: Path
    ) -> None:
        found = self.crashed(tmp_path, driver, engine)
        assert found.outcome is CrashOutcome.PASSED, found.why
        assert found.keys_checked == found.acknowledged > 1000
        assert (found.keys_lost, found.keys_wrong, found.why) == (0, 0, "")

    def test_a_log_that_is_flushed_by_hand_loses_what_was_acknowledged(
        self, driver: Path, rocksdb_library: Path, tmp_path: Path
    ) -> None:
        """Its buffer is so large here that nothing of it was written by chance."""
        engine = EngineIdentity("rocksdb", library=str(rocksdb_library))
        options = {"manual_wal_flush": True, "writable_file_max_buffer_size": 64 << 20}
        found = self.crashed(tmp_path, driver, engine, config=Config(options))
        assert found.outcome is CrashOutcome.FAILED
        assert 0 < found.keys_lost <= found.acknowledged
        assert found.why == (
            f"lost {found.keys_lost:,} of {found.acknowledged:,} acknowledged writes after a crash"
        )

    def test_without_a_log_the_loss_is_told_and_allowed(
        self, driver: Path, rocksdb_library: Path, tmp_path: Path
    ) -> None:
        engine = EngineIdentity("rocksdb", library=str(rocksdb_library))
        found = self.crashed(tmp_path, driver, engine, Durability.NONE)
        assert found.outcome is CrashOutcome.PASSED
        assert found.keys_lost > 0
        assert "which durability none allows" in found.why
