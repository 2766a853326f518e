"""Faults of engine, machine and driver in the middle of a study, with the real driver.

Each test names one fault, and looks at three things: the outcome of the run that met it, that the
study went on to its end, and that nothing is left on the machine.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import shutil
import signal
import sqlite3
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil
import pytest

import lsmtune
from lsmtune.cli.main import main
from lsmtune.experiment.folder import StudyFolder, default_folder
from lsmtune.experiment.store import Role, StoredMeasurement
from made_up import write_program
from patience import PATIENCE_S, wait_until
from troubles import why_not_ok

pytestmark = pytest.mark.engine

HERE = Path(__file__).parent
TAG = "LSMTUNE_FAULT_TEST"
GOOD = 2 << 20
CRASH_ON_OPEN, CRASH_IN_MID_RUN, HANG, EAT_MEMORY, FILL_DISK = range(1048577, 1048582)

STUDY = """\
version: 1
name: faults
engine: {{name: leveldb, library: {library}}}
workload: {{name: fillrandom, num: {num}, value_bytes: 100}}
burst: true
space:
  write_buffer_size: {{type: int, low: 64KiB, high: 16MiB}}
sampler:
  name: manual
  configs: [{configs}]
budget: {{trials: {trials}}}
limits: {{deadline: {deadline}, memory: 256MiB, disk: 1GiB}}
proof: {{pairs: 6, method: {method}, power_states: 0}}
noise: {{calibration: 0, anchors: 0, repeats: 1}}
"""


@dataclass
class Tuning:
    """One study in a folder of its own, tuned by the real command.

    In this process, which has loaded what it takes; in one of its own where the fault is one of the
    tuner's process, or where all its files have to be closed.
    """

    folder: Path
    library: Path
    environment: dict[str, str]
    capsys: pytest.CaptureFixture[str]
    own_process: bool = False
    deadline: str = "2m"
    method: str = "auto"
    num: int = 20_000

    @property
    def study(self) -> Path:
        return self.folder / "study.yaml"

    def write(self, *faults: int) -> None:
        """The study: the default is trial 0; then comes one with each fault, and one without."""
        sizes = [*faults, GOOD]
        self.study.write_text(
            STUDY.format(
                library=self.library,
                configs=", ".join(f"{{write_buffer_size: {size}}}" for size in sizes),
                trials=1 + len(sizes),
                deadline=self.deadline,
                method=self.method,
                num=self.num,
            )
        )

    def run(self, meanwhile: Callable[[], None] | None = None) -> tuple[int, Any, str]:
        """Exit status, the result, and what was said beside it."""
        helper = threading.Thread(target=meanwhile or (lambda: None))
        helper.start()
        status, out, err = (self._elsewhere if self.own_process else self._here)()
        helper.join()
        return status, json.loads(out) if out.strip() else None, err

    def _here(self) -> tuple[int, str, str]:
        before = signal.getsignal(signal.SIGTERM)
        with pytest.MonkeyPatch.context() as patch:
            for name, value in self.environment.items():
                patch.setenv(name, value)
            status = main(["tune", str(self.study), "--json"])
        signal.signal(signal.SIGTERM, before)
        return status, *self.capsys.readouterr()

    def _elsewhere(self) -> tuple[int, str, str]:
        path = str(Path(lsmtune.__file__).parent.parent)
        ended = subprocess.run(
            [sys.executable, "-m", "lsmtune.cli.main", "tune", str(self.study), "--json"],
            env={**os.environ, "PYTHONPATH": path, **self.environment},
            capture_output=True,
            text=True,
            timeout=PATIENCE_S,
            check=False,
        )
        return ended.returncode, ended.stdout, ended.stderr

    def trials(self) -> list[StoredMeasurement]:
        """The stored runs of trials."""
        with StudyFolder.open(default_folder(self.study)) as folder:
            return folder.measurements.of(Role.TRIAL)

    def drivers(self) -> list[psutil.Process]:
        """Every living process that this study's tuner has started."""
        return [p for p in psutil.process_iter() if _tag(p) == self.environment[TAG]]

    def check_clean(self) -> None:
        """No process and no folder of a run is left."""
        wait_until(lambda: not self.drivers())
        runs = default_folder(self.study) / "runs"
        assert not runs.exists() or list(runs.iterdir()) == []

    def check_went_on(self, *outcomes: str) -> list[str]:
        """Tune with a fault in each trial but the first and the last, which end well.

        Returns what was said of each fault.
        """
        ended, result, err = self.run()
        assert ended == 0, err
        assert "Traceback" not in err
        rows = self.trials()
        assert [row.measurement.outcome.value for row in rows] == ["ok", *outcomes, "ok"]
        assert result["outcomes"] == {**Counter(outcomes), "ok": 2}
        assert result["verdict"]["outcome"] in ("better", "worse", "not_proven")
        self.check_clean()
        return [why_not_ok(row.measurement) for row in rows[1:-1]]


@pytest.fixture(scope="session")
def faulty(leveldb_library: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """LevelDB with faults."""
    folder = tmp_path_factory.mktemp("faulty")
    # The name by which the library knows itself is what the linker notes and the loader looks for.
    real = folder / "libleveldb.so.1"
    real.symlink_to(leveldb_library)
    library, source = folder / "faulty_leveldb.so", HERE / "faulty_leveldb.c"
    # Needed, although nothing in it is named before it is looked for by dlsym.
    behind = ["-Wl,--no-as-needed", str(real), f"-Wl,-rpath,{folder}"]
    _compile(source, library, behind)
    return library


def _compile(source: Path, library: Path, behind: list[str]) -> None:
    compiler = shutil.which("cc") or shutil.which("gcc")
    if compiler is None:
        pytest.skip("no C compiler here to make a library with faults")
    command = [compiler, "-shared", "-fPIC", "-O1", "-Wall", "-Werror", str(source), "-ldl"]
    subprocess.run([*command, *behind, "-o", str(library)], check=True)


@pytest.fixture
def tuning(
    faulty: Path, driver: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> Tuning:
    environment = {"LSMTUNE_DRIVER": str(driver), TAG: str(tmp_path)}
    return Tuning(tmp_path, faulty, environment, capsys)


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A filesystem of 160 MiB: a run needs 64."""
    yield from _mounted(tmp_path / "small", "size=160m")


def _mounted(place: Path, options: str) -> Iterator[Path]:
    if shutil.which("mount") is None:
        pytest.skip("no mount command here; `make test-tools` installs it")
    place.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", options, "tmpfs", str(place)]
    if subprocess.run(command, capture_output=True, check=False).returncode != 0:
        pytest.skip("no right to mount a filesystem here")
    try:
        yield place
    finally:
        subprocess.run(["umount", str(place)], check=True)


def _tag(process: psutil.Process) -> str | None:
    with contextlib.suppress(psutil.Error):
        if process.status() != psutil.STATUS_ZOMBIE:
            return process.environ().get(TAG)
    return None


def test_engine_crashes_on_open_and_in_mid_run_and_runs_out_of_memory(tuning: Tuning) -> None:
    tuning.write(CRASH_ON_OPEN, CRASH_IN_MID_RUN, EAT_MEMORY)
    said = tuning.check_went_on("crashed", "crashed", "out_of_memory")
    for words, line in zip(("SIGABRT", "SIGSEGV", "limit of 256MiB"), said, strict=True):
        assert words in line


def test_disk_is_full(tuning: Tuning, small_disk: Path) -> None:
    """The run that filled the disk is gone before its row is written: there is room for it."""
    tuning.folder, tuning.own_process = small_disk, True
    tuning.write(FILL_DISK)
    tuning.check_went_on("disk_full")


def test_filesystem_is_read_only_from_the_start(tuning: Tuning, small_disk: Path) -> None:
    tuning.folder, tuning.own_process = small_disk, True
    tuning.write(GOOD + 1)
    subprocess.run(["mount", "-o", "remount,ro", str(small_disk)], check=True)
    status, _, err = tuning.run()
    assert status in (1, 2)
    assert "ead-only" in err
    assert len(err.strip().splitlines()) == 1
    subprocess.run(["mount", "-o", "remount,rw", str(small_disk)], check=True)
    status, result, err = tuning.run()
    assert (status, result["outcomes"]) == (0, {"ok": 3}), err
    tuning.check_clean()


def test_filesystem_becomes_read_only_in_mid_study(tuning: Tuning, small_disk: Path) -> None:
    """As after an error of the device. What was measured before is there when it can be written."""
    tuning.folder, tuning.own_process = small_disk, True
    tuning.write(GOOD + 1)

    def remount() -> None:
        wait_until(lambda: _rows(tuning) >= 2)
        # Files that are open for writing keep a filesystem from it, until there is a moment
        # without one: the kernel does it to a broken device at any time.
        wait_until(lambda: _remounted(small_disk, "ro"))

    status, _, err = tuning.run(remount)
    assert status in (0, 1), err
    assert "Traceback" not in err
    stored = _rows(tuning)
    assert stored >= 2
    assert _remounted(small_disk, "rw")
    status, result, err = tuning.run()
    assert (status, result["outcomes"]) == (0, {"ok": 3}), err
    assert _rows(tuning) >= stored
    tuning.check_clean()


def test_wall_clock_steps(tuning: Tuning, tmp_path: Path) -> None:
    """Throughput and deadline come from a clock that nobody sets."""
    library = tmp_path / "clock_step.so"
    _compile(HERE / "clock_step.c", library, [])
    tuning.own_process = True
    tuning.write(GOOD + 1)
    tuning.environment["LD_PRELOAD"] = str(library)
    status, result, err = tuning.run()
    assert (status, result["outcomes"]) == (0, {"ok": 3}), err
    for row in tuning.trials():
        (phase,) = row.measurement.phases
        assert 0 < phase.elapsed_s < 60
        assert 0 <= phase.drain_s < 60
        assert 0 < row.wall_s < 60
        assert phase.flushes is None or phase.flushes >= 0
    tuning.check_clean()


@pytest.mark.parametrize(
    ("number", "said"),
    [
        (signal.SIGSTOP, "stopped by a signal from outside"),
        (signal.SIGKILL, "killed by SIGKILL in phase fillrandom, by whom is not known"),
    ],
)
def test_driver_is_stopped_or_killed_by_a_stranger(
    tuning: Tuning, number: signal.Signals, said: str
) -> None:
    """The run is measured again; that its engine hangs is its own fault."""
    tuning.deadline = "5s"
    tuning.write(HANG)

    def signal_the_hanging_one() -> None:
        wait_until(lambda: _rows(tuning) >= 2)
        wait_until(lambda: bool(_signal_idle(tuning, number)))

    status, result, err = tuning.run(signal_the_hanging_one)
    assert status == 0, err
    assert err.count("measured again") == 1
    assert said in err
    runs = [row.measurement for row in tuning.trials()]
    assert [run.outcome.value for run in runs] == ["ok", "timeout", "ok"]
    assert "deadline of 5s" in why_not_ok(runs[1])
    assert result["outcomes"] == {"timeout": 1, "ok": 2}
    tuning.check_clean()


def _has_written(driver: psutil.Process, least_bytes: int) -> bool:
    """Whether its measure phase has begun: so much of its log is there."""
    with contextlib.suppress(psutil.NoSuchProcess):
        return bool(driver.io_counters().write_chars >= least_bytes)
    return False


def test_machine_stands_still_in_mid_run(tuning: Tuning) -> None:
    """As far as the tuner and the driver can see: both are stopped, and continued."""
    tuning.num, tuning.own_process = 100_000, True
    tuning.write(GOOD + 1)

    def stop_both() -> None:
        wait_until(lambda: _rows(tuning) >= 2)
        wait_until(lambda: _stood_still(tuning))

    status, result, err = tuning.run(stop_both)
    assert (status, result["outcomes"]) == (0, {"ok": 3}), err
    # The tuner is continued first: it finds its driver stopped still, or continued as well.
    assert re.search("(stopped|continued) by a signal from outside", err)
    assert err.count("measured again") == 1
    tuning.check_clean()


def test_message_is_truncated(tuning: Tuning, tmp_path: Path, driver: Path) -> None:
    _misspeaking(tuning, tmp_path, driver, "truncate")
    tuning.write(GOOD + 1)
    status, _, err = tuning.run()
    assert status == 0, err
    assert "Traceback" not in err
    with StudyFolder.open(default_folder(tuning.study)) as folder:
        runs = [row.measurement for row in folder.measurements.all()]
    (spoilt,) = (run for run in runs if run.outcome.value != "ok")
    assert spoilt.outcome.value == "crashed"
    assert "message" in why_not_ok(spoilt)
    tuning.check_clean()


def test_driver_is_of_another_version(tuning: Tuning, tmp_path: Path, driver: Path) -> None:
    """Nothing that it measured could be believed: one line, and the study is as it was."""
    _misspeaking(tuning, tmp_path, driver, "version")
    tuning.write(GOOD + 1)
    status, _, err = tuning.run()
    assert status == 2
    assert "999" in err
    assert len(err.strip().splitlines()) == 1
    tuning.environment["LSMTUNE_DRIVER"] = str(driver)
    status, result, err = tuning.run()
    assert (status, result["outcomes"]) == (0, {"ok": 3}), err
    tuning.check_clean()


def _misspeaking(tuning: Tuning, folder: Path, driver: Path, how: str) -> None:
    # Runs that take turns are stopped by their driver, and continued by its number, which is not
    # the one of a program in front of it.
    tuning.method = "whole"
    text = (HERE / "misspeaking_driver.py").read_text()
    tuning.environment |= {
        "REAL_DRIVER": str(driver),
        "LSMTUNE_DRIVER": str(write_program(folder / "lsmtune-driver", text)),
        "MISSPEAK": how,
        "MISSPEAK_RUNS": str(folder / "runs"),
    }


def _rows(tuning: Tuning) -> int:
    path = default_folder(tuning.study) / "measurements.db"
    with contextlib.suppress(sqlite3.Error):
        with contextlib.closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True)) as database:
            (rows,) = database.execute("SELECT count(*) FROM runs").fetchone()
        return int(rows)
    return 0


def _remounted(place: Path, mode: str) -> bool:
    command = ["mount", "-o", f"remount,{mode}", str(place)]
    return subprocess.run(command, capture_output=True, check=False).returncode == 0


def _drivers(tuning: Tuning) -> list[psutil.Process]:
    found = []
    for process in tuning.drivers():
        with contextlib.suppress(psutil.NoSuchProcess):  # it may end meanwhile
            if process.name() == "lsmtune-driver":
                found.append(process)
    return found


def _signal_idle(tuning: Tuning, number: signal.Signals) -> list[int]:
    """Signals the driver of a run that hangs: it has begun, and used no processor lately."""
    signalled = []
    for process in _drivers(tuning):
        with contextlib.suppress(psutil.NoSuchProcess):
            before = sum(process.cpu_times()[:2])
            time.sleep(0.3)
            # It hangs at its 1,000th write, of more than a hundred bytes each.
            idle = sum(process.cpu_times()[:2]) == before and _has_written(process, 64 << 10)
            if idle and process.is_running():
                process.send_signal(number)
                signalled.append(process.pid)
    return signalled


def _stood_still(tuning: Tuning) -> bool:
    """Stops the tuner and a driver in the middle of its run, and continues both.

    False where no run has begun, or it was over before its driver stopped.
    """
    begun = [each for each in _drivers(tuning) if _has_written(each, 1 << 20)]
    tuner: psutil.Process | None = None
    with contextlib.suppress(psutil.NoSuchProcess):
        tuner = begun[0].parent() if begun else None
    if tuner is None or _tag(tuner) != tuning.environment[TAG]:
        return False
    both = tuner, begun[0]
    stopped = [_has_stopped(each) for each in both]
    time.sleep(0.3)
    for each in both:
        with contextlib.suppress(psutil.NoSuchProcess):
            each.send_signal(signal.SIGCONT)
    return all(stopped)


def _has_stopped(process: psutil.Process) -> bool:
    """Stops it; False where it has ended."""
    with contextlib.suppress(psutil.NoSuchProcess):
        process.send_signal(signal.SIGSTOP)
        wait_until(lambda: process.status() in (psutil.STATUS_STOPPED, psutil.STATUS_ZOMBIE))
        return bool(process.status() == psutil.STATUS_STOPPED)
    return False
