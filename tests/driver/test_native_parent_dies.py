"""A tuner that is killed leaves no driver: end of file on its stdin tells it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import psutil

from patience import wait_until_over

PARENT = """
import sys
from pathlib import Path
from lsmtune.model.config import Config
from lsmtune.model.config import EngineIdentity
from lsmtune.model.request import Limits, RunRequest
from lsmtune.model.workload import Phase, PhaseKind, Workload
from lsmtune.driver.native import NativeRunner

driver, directory = map(Path, sys.argv[1:])
phase = Phase("fillrandom", PhaseKind.MEASURE, "fillrandom", operations_per_thread=1000)
NativeRunner(driver).run(
    RunRequest(
        engine=EngineIdentity("rocksdb"),
        config=Config({"fake": "hang"}),
        workload=Workload("fillrandom", (phase,), num=1000),
        seed=1,
        directory=directory,
        limits=Limits(60.0, 1 << 30, 1 << 30),
    ),
    on_message=lambda message: print(type(message).__name__, flush=True),
)
"""


def test_the_driver_goes_when_the_tuner_is_killed(fake_driver: Path, tmp_path: Path) -> None:
    directory = tmp_path / "run-1"
    directory.mkdir()
    parent = subprocess.Popen(
        [sys.executable, "-c", PARENT, str(fake_driver), str(directory)],
        stdout=subprocess.PIPE,
        text=True,
    )
    with parent:
        assert parent.stdout is not None
        assert parent.stdout.readline().strip() == "Hello"
        (driver,) = psutil.Process(parent.pid).children()
        os.kill(parent.pid, signal.SIGKILL)
        parent.wait()
    wait_until_over([driver])
