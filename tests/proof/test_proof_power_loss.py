"""The power test: what each durability class promises, and what real engines keep of it."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from dataclasses import replace
from itertools import chain, count
from pathlib import Path
from types import SimpleNamespace

import pytest
from fake_runner import FakeRunner
from proof_parts import (
    BASELINE,
    WORKLOAD,
    Recorder,
    arm,
    interval,
    measurer_of,
    open_folder,
    said,
)

from lsmtune.driver.messages import PROTOCOL_VERSION
from lsmtune.driver.native import NativeRunner
from lsmtune.driver.runner import Runner
from lsmtune.experiment.measurer import Measurer
from lsmtune.experiment.schedule import Arm
from lsmtune.experiment.store import Role
from lsmtune.model.codec import decode, encode
from lsmtune.model.config import Config, EngineIdentity
from lsmtune.model.request import LIMITS_DEFAULT, RunRequest
from lsmtune.model.verdict import Verdict, VerdictOutcome
from lsmtune.model.workload import Durability, PhaseKind
from lsmtune.proof import power_loss
from lsmtune.proof.crash_test import CrashOutcome, kept_tests
from lsmtune.proof.file_log import history_of
from lsmtune.proof.power_loss import (
    POWER_TESTS,
    Breach,
    Held,
    PowerTest,
    PowerViolation,
    broken,
    judged,
    power_findings,
    power_line,
    power_test,
)
from lsmtune.proof.power_model import Cut, Model
from lsmtune.proof.recorded_load import Promises, find_library, recorded, small_request
from lsmtune.proof.survival import SurvivalPlan, survived
from patience import in_time

ALL = list(Durability)


@pytest.mark.parametrize(
    ("held", "breaches"),
    [
        (Held(120, 120), (None, None, None)),
        (Held(100, 100), (None, None, None)),
        (Held(99, 99), (Breach.LOST, None, None)),
        (Held(0, 0), (Breach.LOST, None, None)),
        (Held(99, 100), (Breach.LOST, Breach.GAP, None)),
        (Held(100, 101), (Breach.GAP, Breach.GAP, None)),
        (Held(100, 100, wrong=1), (Breach.WRONG,) * 3),
        (Held(message="no CURRENT"), (Breach.UNOPENABLE,) * 3),
    ],
)
def test_what_each_class_promises_after_100_acknowledged_writes(
    held: Held, breaches: tuple[Breach | None, ...]
) -> None:
    order = (Durability.SYNC, Durability.WAL, Durability.NONE)
    assert tuple(broken(durability, 100, held) for durability in order) == breaches


@pytest.mark.parametrize("durability", ALL)
def test_a_database_that_was_being_made_is_another_breach(durability: Durability) -> None:
    gone = Held(message="no")
    assert broken(durability, 0, gone, made=False) is Breach.HALF_MADE
    # But for a device that forgets, whose databases are never made: there are synced writes in it.
    written = broken(durability, 5, gone, made=False)
    assert written is (Breach.UNOPENABLE if durability is Durability.SYNC else Breach.HALF_MADE)


def violation(breach: Breach, model: Model = Model.ORDERED) -> PowerViolation:
    return PowerViolation(
        *(breach, model, "after a sync of MANIFEST (operation 12 of 900)", "only what was synced"),
        missing=("creation of 000008.log",),
        reduced=True,
        acknowledged=1000,
        keys_lost=7,
        keys_wrong=3,
        keys_after_gap=5,
        message="no MANIFEST",
    )


def outcome_of(
    *violations: PowerViolation, durability: Durability = Durability.SYNC, states: int = 60
) -> PowerTest:
    return judged(
        PowerTest(
            *(CrashOutcome.PASSED, "rocksdb", durability, states, 25, 900, 1000, 0.25),
            violations=violations,
        )
    )


@pytest.mark.parametrize("breach", list(Breach))
def test_only_what_was_synced_and_is_lost_on_a_usual_file_system_fails(breach: Breach) -> None:
    """Of the others the default configurations of both engines have some."""
    lost = breach in (Breach.LOST, Breach.WRONG, Breach.UNOPENABLE)
    told = violation(Breach.GAP)
    found = outcome_of(told, violation(breach), violation(breach), durability=Durability.WAL)
    assert found.outcome is (CrashOutcome.FAILED if lost else CrashOutcome.PASSED)
    number = {Breach.GAP: 3, Breach.HALF_MADE: 1}.get(breach, 2)
    assert found.why.endswith(f"in {number} of 60 states")
    only_posix = outcome_of(violation(breach, Model.POSIX))
    assert only_posix.outcome is CrashOutcome.PASSED
    assert only_posix.why.endswith("in 1 of 60 states, none of them such as ext4 leaves")


def test_a_log_without_states_is_not_done() -> None:
    found = outcome_of(states=0)
    assert power_line(found) == "not done: the log has no state to look at"


def test_the_result_in_words() -> None:
    assert power_line(outcome_of()) == (
        "passed (60 computed states after a power loss, 25 of them such as ext4 leaves; "
        "durability sync)"
    )
    lost = violation(Breach.LOST)
    found = outcome_of(lost, replace(lost, reduced=False), violation(Breach.GAP, Model.POSIX))
    assert power_findings(replace(found, refused=("mmap",))) == [
        "7 of 1,000 acknowledged writes lost under durability sync, on ext4 and others, after a "
        "sync of MANIFEST (operation 12 of 900): missing is creation of 000008.log (2 such "
        "states).",
        "5 writes kept after one that was lost, where only POSIX holds, after a sync of MANIFEST "
        "(operation 12 of 900): missing is creation of 000008.log (1 such states).",
        "Refused, because it cannot be followed: mmap.",
    ]
    assert power_findings(outcome_of(durability=Durability.WAL))[0] == (
        "Up to 25 % of the acknowledged writes were lost, which durability wal allows."
    )


def test_the_result_is_json() -> None:
    found = outcome_of(violation(Breach.WRONG))
    assert decode(PowerTest, json.loads(json.dumps(encode(found)))) == found


# --- what was promised


def test_a_write_is_acknowledged_once_the_driver_has_said_so() -> None:
    opened = {"type": "opened", "engine": {"name": "x", "version": None, "library": None}}
    text = json.dumps(interval(8)) + "\n"
    promises = Promises(
        history_of(
            said(
                {**opened, "options_not_taken": []},
                interval(5),
                "no JSON\n",
                text[:20],
                text[20:],
                interval(99, index=1),
            )
        )
    )
    cuts = [Cut(records) for records in range(8)]
    assert [promises.opened(cut) for cut in cuts] == [False, False, *[True] * 6]
    assert [promises.acknowledged(cut) for cut in cuts] == [0, 0, 0, 5, 5, 5, 8, 8]
    assert promises.writes == 8


# --- where it cannot be done


def fake_test(path: Path, runner: Runner, stop: threading.Event | None = None) -> PowerTest | None:
    observer = Recorder()
    observer.stop = stop or observer.stop
    with open_folder(path) as folder:
        measurer = measurer_of(folder, runner, observer, FakeRunner())
        return power_test(arm(BASELINE), measurer, study_seed=1, tries=3)


def test_a_program_that_is_not_ours_is_not_tested(tmp_path: Path) -> None:
    found = fake_test(tmp_path, FakeRunner())
    assert found is not None
    assert power_line(found).startswith("not done: of a program that is not lsmtune's own driver")


def test_without_the_library_it_is_not_done(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    named = tmp_path / "missing.so"
    monkeypatch.setattr(sys, "executable", str(tmp_path / "python"))
    for explicit, why in (
        ("", "lsmtune-files.so is not installed; `make setup` builds it"),
        (str(named), f"LSMTUNE_FILES: no such file: {named}"),
    ):
        monkeypatch.setenv("LSMTUNE_FILES", explicit)
        found = fake_test(tmp_path, NativeRunner(Path("/bin/true")))
        assert found is not None
        assert power_line(found) == f"not done: {why}"


def test_an_interrupt_ends_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LSMTUNE_FILES", sys.executable)
    stop = threading.Event()
    stop.set()
    assert fake_test(tmp_path, NativeRunner(Path("/bin/true")), stop) is None


def test_a_load_that_was_disturbed_is_recorded_anew(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever closed his laptop meanwhile had a verdict without the test."""
    monkeypatch.setenv("LSMTUNE_FILES", sys.executable)
    loads = iter(["the load ended disturbed: killed by SIGKILL", "no log"])
    monkeypatch.setattr(power_loss, "recorded", lambda *_: next(loads))
    found = fake_test(tmp_path, NativeRunner(Path("/bin/true")))
    assert found is not None
    assert power_line(found) == "not done: no log"


def test_a_stop_that_kills_the_driver_too_ends_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A shutdown in the middle of the test left a final verdict, "better", that was not tested."""
    monkeypatch.setenv("LSMTUNE_FILES", sys.executable)
    monkeypatch.setattr(power_loss, "recorded", lambda *_: SimpleNamespace())
    stop = threading.Event()

    def killed(_tries: int) -> PowerTest:
        stop.set()
        raise power_loss._NotDone("looking at what was left ended disturbed: killed by SIGTERM")

    monkeypatch.setattr(power_loss, "_Tester", lambda *_: SimpleNamespace(test=killed))
    assert fake_test(tmp_path, NativeRunner(Path("/bin/true")), stop) is None


def test_where_the_library_is_looked_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folders = [tmp_path / name for name in ("named", "driver", "python")]
    places = [folder / "lsmtune-files.so" for folder in folders]
    named, driver, python = places

    def found(explicit: str = "") -> Path | None:
        monkeypatch.setenv("LSMTUNE_FILES", explicit)
        return find_library(driver.parent / "lsmtune-driver")

    monkeypatch.setattr(sys, "executable", str(python.parent / "python"))
    assert found() is None
    for place in reversed(places[1:]):
        place.parent.mkdir()
        place.touch()
        assert found() == place
        assert found(str(named)) is None
    named.parent.mkdir()
    named.touch()
    assert found(str(named)) == named


FAKE_DRIVER = """#!/bin/sh
exec 3> "/proc/self/fd/$2"
echo '{"type": "hello", "protocol_version": VERSION, "driver_version": "1"}' >&3
cd "$LSMTUNE_FILES_BELOW"
echo text > one
WORK
echo '{"type": "finished", "outcome": "ok", "elapsed_s": 1, "cpu_s": 1,' \
    '"rss_bytes_max": 1, "database_bytes": 1}' >&3
"""


def request_in(path: Path) -> RunRequest:
    engine = EngineIdentity("memory")
    request = RunRequest(engine, BASELINE, WORKLOAD, 5, path, replace(LIMITS_DEFAULT, deadline_s=9))
    return small_request(request, WORKLOAD, 1 << 20)


def fake_driver(path: Path, work: str = "") -> Path:
    driver = path / "driver"
    text = FAKE_DRIVER.replace("WORK", work).replace("VERSION", str(PROTOCOL_VERSION))
    driver.write_text(text)
    driver.chmod(0o700)
    (path / "db").mkdir()
    return driver


def test_what_nothing_noticed_is_found_out(tmp_path: Path, files_library: Path) -> None:
    """A process that the driver starts is not followed."""
    driver = fake_driver(tmp_path, work='sh -c "echo text > two; echo more >> one"')
    why = recorded(driver, files_library, request_in(tmp_path), threading.Event())
    assert why == "files changed in a way that was not noticed: one, two"


def test_a_driver_that_ends_badly_is_not_judged(tmp_path: Path, files_library: Path) -> None:
    driver = fake_driver(tmp_path, work="exit 3")
    why = recorded(driver, files_library, request_in(tmp_path), threading.Event())
    assert isinstance(why, str)
    assert why.startswith("the load ended crashed: exited with status 3 before it had finished")


def test_a_static_driver_is_not_recorded(tmp_path: Path, files_library: Path) -> None:
    compiler = shutil.which("cc") or shutil.which("gcc")
    source, driver = tmp_path / "driver.c", tmp_path / "driver"
    source.write_text("int main(void) { return 0; }\n")
    command = [str(compiler), "-static", str(source), "-o", str(driver)]
    if subprocess.run(command, capture_output=True, check=False).returncode != 0:
        pytest.skip("no static C library here")
    why = recorded(driver, files_library, request_in(tmp_path), threading.Event())
    assert why == "lsmtune-files.so was not loaded: the driver is static, or of another C library"


def test_a_path_that_cannot_be_preloaded_is_told(tmp_path: Path, files_library: Path) -> None:
    odd = tmp_path / "a folder" / files_library.name
    why = recorded(tmp_path / "driver", odd, request_in(tmp_path), threading.Event())
    assert why == f"{odd}: the dynamic linker takes no path with a space or a colon"


def test_the_load_is_small_and_fills_its_buffers_often(tmp_path: Path) -> None:
    request = request_in(tmp_path)
    of = replace(request, config=Config({"write_buffer_size": 1 << 30, "arena_block_size": 9}))
    small = small_request(of, replace(WORKLOAD, value_bytes=400), 4 << 20)
    assert small.config.options == {"write_buffer_size": 256 << 10}
    assert small.interval_ms == 1
    (load,) = small.workload.phases
    assert (load.kind, load.threads, load.operations_per_thread) == (
        *(PhaseKind.LOAD, 1),
        small.workload.num,
    )
    assert small.workload.num * 416 <= 4 << 20


def folders(first: Path) -> Iterator[Path]:
    """One for each attempt."""
    return chain([first], (first / f"{number}" for number in count()))


@pytest.mark.engine
class TestEngines:
    """The real driver on real engines; two megabytes, and a few states."""

    @pytest.fixture(autouse=True)
    def nothing_is_left(
        self, tmp_path: Path, files_library: Path, monkeypatch: pytest.MonkeyPatch
    ) -> Iterator[None]:
        monkeypatch.setenv("LSMTUNE_FILES", str(files_library))
        yield
        assert list((tmp_path / "runs").iterdir()) == []

    def result(
        self,
        path: Path,
        driver: Path,
        library: Path,
        durability: Durability,
        options: dict[str, str | int | float | bool] | None = None,
        *,
        tries: int = 12,
    ) -> PowerTest:
        engine = EngineIdentity(
            "leveldb" if "leveldb" in library.name else "rocksdb", library=str(library)
        )
        workload = replace(WORKLOAD, durability=durability, value_bytes=400)
        observer, runner = Recorder(), NativeRunner(driver)
        with open_folder(path) as folder:
            measurer = Measurer(
                *(folder, runner, (workload,), LIMITS_DEFAULT, observer),
                *(observer.stop, time.monotonic),
            )

            def once() -> PowerTest | None:
                return power_test(
                    *(Arm(engine, Config(options or {})), measurer),
                    study_seed=3,
                    load_bytes=2 << 20,
                    tries=tries,
                )

            found = once()
            assert found is not None
            if found.outcome is not CrashOutcome.NOT_DONE:
                assert once() == found  # kept in the folder
                kept = kept_tests(folder.measurements, POWER_TESTS, PowerTest)
                assert [test for _, test in kept] == [found]
                assert [told[0] for told in observer.of("run_started")] == [Role.CRASH]
        return found

    @pytest.mark.parametrize("durability", ALL)
    def test_rocksdb_keeps_what_was_synced(
        self, driver: Path, rocksdb_library: Path, tmp_path: Path, durability: Durability
    ) -> None:
        places = folders(tmp_path)

        def loses_only_the_rest() -> bool:
            found = self.result(next(places), driver, rocksdb_library, durability)
            assert found.states == 12
            assert found.states_ordered >= 3
            assert found.acknowledged == (2 << 20) // 416
            assert found.outcome is CrashOutcome.PASSED, power_findings(found)
            if durability is Durability.SYNC:
                assert found.lost_share_max == 0.0
                return True
            # Such a load takes 20 ms. Where the machine lets the driver say nothing meanwhile, no
            # write is known to have returned before the last flush, and none can be lost.
            return found.lost_share_max > 0.0

        in_time(loses_only_the_rest)

    @pytest.mark.parametrize("durability", [Durability.SYNC, Durability.WAL])
    def test_leveldb_keeps_what_was_synced_on_a_usual_file_system(
        self, driver: Path, leveldb_library: Path, tmp_path: Path, durability: Durability
    ) -> None:
        places = folders(tmp_path)

        def loses_only_the_rest() -> bool:
            found = self.result(next(places), driver, leveldb_library, durability)
            assert found.states == 12
            assert found.outcome is CrashOutcome.PASSED, power_findings(found)
            return durability is Durability.SYNC or found.lost_share_max > 0.0  # as above

        in_time(loses_only_the_rest)

    @pytest.mark.parametrize("engine", ["rocksdb", "leveldb"])
    def test_a_device_that_forgets_what_was_synced_is_found(
        self,
        driver: Path,
        engine: str,
        tmp_path: Path,
        request: pytest.FixtureRequest,
        monkeypatch: pytest.MonkeyPatch,
    ) -> None:
        monkeypatch.setenv("LSMTUNE_FILES_FAULT", "ignore-sync")
        library, places = request.getfixturevalue(f"{engine}_library"), folders(tmp_path)

        def is_found() -> bool:
            """Not where the driver could say nothing while it wrote: then it promised nothing."""
            found = self.result(next(places), driver, library, Durability.SYNC, tries=8)
            ordered = [each for each in found.violations if each.model is Model.ORDERED]
            assert all(each.missing for each in ordered[:1])
            is_enough = len(found.violations) >= 4 and bool(ordered)
            return found.outcome is CrashOutcome.FAILED and is_enough

        in_time(is_found)

    @pytest.mark.parametrize("fault", ["", "ignore-sync"])
    def test_what_loses_synced_writes_is_not_recommended_however_fast_it_is(
        self,
        driver: Path,
        leveldb_library: Path,
        tmp_path: Path,
        monkeypatch: pytest.MonkeyPatch,
        fault: str,
    ) -> None:
        monkeypatch.setenv("LSMTUNE_FILES_FAULT", fault)
        better = Verdict(VerdictOutcome.BETTER, "throughput_ops_s", "maximize", 0.95, 9, why="fast")
        candidate = Arm(EngineIdentity("leveldb", library=str(leveldb_library)), BASELINE)
        workload = replace(WORKLOAD, durability=Durability.SYNC, value_bytes=400)
        places = folders(tmp_path)

        def is_judged() -> bool:
            """As the fault deserves; not where nothing was promised, as above."""
            observer = Recorder()
            with open_folder(next(places)) as folder:
                measurer = Measurer(
                    *(folder, NativeRunner(driver), (workload,), LIMITS_DEFAULT, observer),
                    *(observer.stop, time.monotonic),
                )
                plan = SurvivalPlan(no_crash_test="left out here", power_states=4)
                found = survived(better, candidate, measurer, study_seed=3, plan=plan)
            assert found is not None
            assert found.survival.power is not None
            assert found.survival.power.states == 4
            if not fault:
                assert found.verdict == better
                return True
            lost = f"{found.survival.power.why} (power loss); fast"
            return found.verdict == replace(better, outcome=VerdictOutcome.WORSE, why=lost)

        in_time(is_judged)

    def test_an_engine_that_writes_past_the_log_is_refused(
        self, driver: Path, rocksdb_library: Path, tmp_path: Path
    ) -> None:
        options = {"allow_mmap_writes": True}
        found = self.result(tmp_path, driver, rocksdb_library, Durability.SYNC, options)
        assert found.outcome is CrashOutcome.NOT_DONE
        assert "refused: mmap" in found.why
