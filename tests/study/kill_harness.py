"""Tunes a study in child processes and kills them at random moments, then lets one finish.

Usage: kill_harness.py FOLDER KILLS SEED TRIALS PAIRS STORAGE, which is empty for files. A program
of its own, so that what it forks is a plain process without threads. Each child appends the runs it
was told are stored to `told.log`. Prints one JSON object: how the children ended, and how many runs
were stored by then.
"""

from __future__ import annotations

import json
import math
import os
import random
import signal
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path

from fake_runner import ENGINE, MIB, FakeRunner
from study_parts import make_spec

from lsmtune.experiment.store import StoredMeasurement
from lsmtune.study.loop import tune
from lsmtune.study.observer import TuneObserver
from lsmtune.study.start import open_study

RUN_S = 0.03
# A child lives until it stored up to MOST_RUNS runs and then up to LONGEST_S longer, in which it
# stores MOST_AFTER more at most: on any machine the kills fall in the middle of the study, and none
# comes after its end.
MOST_RUNS = 2
LONGEST_S = 0.1
MOST_AFTER = 3


class Log(TuneObserver):
    """Writes down each stored run at once, with a system call that a kill cannot take back.

    After `runs_max` of them it waits to be killed.
    """

    def __init__(self, path: Path, runs_max: float) -> None:
        self._descriptor = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
        self._left = runs_max

    def run_finished(self, stored: StoredMeasurement) -> None:
        place = f"{stored.role} {stored.trial} {stored.pair} {stored.repeat}\n"
        os.write(self._descriptor, place.encode())
        self._left -= 1
        while self._left <= 0:
            signal.pause()


def larger_is_faster(gain: float) -> Callable[[dict[str, object]], float]:
    """A speed that each MiB raises by `gain`."""

    def speed(options: dict[str, object]) -> float:
        return 1e5 * (1.0 + gain * float(str(options.get("write_buffer_size", 2 * MIB))) / MIB)

    return speed


def session(home: Path, trials: int, pairs: int, storage: str, runs_max: float = math.inf) -> None:
    noise = "{calibration: 1, anchors: 8, repeats: 3}"
    spec = make_spec(home, budget=f"{{trials: {trials}}}", pairs=pairs, noise=noise)
    # A search among trials of which several may be the best; or a proof that is not soon over,
    # because the difference is less than a few pairs can show.
    speed = larger_is_faster(0.002 if trials > pairs else 0.0002)
    runner = FakeRunner(speed=speed, run_s=RUN_S)
    with open_study(home / "s", spec, storage=storage) as folder:
        log = Log(home / "told.log", runs_max)
        tune(spec, folder, runner, ENGINE, log, stop=threading.Event())


def child(home: Path, trials: int, pairs: int, storage: str, runs_max: float = math.inf) -> int:
    pid = os.fork()
    if pid:
        return pid
    try:
        session(home, trials, pairs, storage, runs_max)
    except BaseException as error:
        os.write(2, f"{type(error).__name__}: {error}\n".encode())
        os._exit(1)
    os._exit(0)


def told(home: Path) -> int:
    return (home / "told.log").read_bytes().count(b"\n")


def main(home: Path, kills: int, seed: int, trials: int, pairs: int, storage: str) -> int:
    moments = random.Random(seed)
    (home / "told.log").touch()
    ends: list[int] = []
    progress: list[int] = []
    # Optuna imports its parts when they are first used; done here, the children inherit them.
    with tempfile.TemporaryDirectory(dir=home) as warm:
        session(Path(warm), trials=2, pairs=6, storage=storage)
    for _ in range(kills):
        before, runs = told(home), moments.randint(0, MOST_RUNS)
        pid = child(home, trials, pairs, storage, runs + MOST_AFTER)
        while told(home) < before + runs:
            time.sleep(0.001)
        time.sleep(moments.uniform(0.0, LONGEST_S))
        os.kill(pid, signal.SIGKILL)
        ends.append(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
        progress.append(told(home))
    last = os.waitstatus_to_exitcode(os.waitpid(child(home, trials, pairs, storage), 0)[1])
    print(json.dumps({"ends": ends, "progress": progress, "last": last}))
    return last


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]), *map(int, sys.argv[2:6]), storage=sys.argv[6]))
