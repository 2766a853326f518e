"""A tuner that is killed leaves no program, although no program listens for that."""

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
from lsmtune.model.command import CommandSpec
from lsmtune.model.config import Config
from lsmtune.model.config import EngineIdentity
from lsmtune.model.request import Limits, RunRequest
from lsmtune.model.workload import Workload
from lsmtune.programs.command import CommandRunner

program, directory = sys.argv[1:]
CommandRunner(CommandSpec((sys.executable, "-S", program, "child"), Path("/"))).run(
    RunRequest(
        engine=EngineIdentity("program"),
        config=Config({}),
        workload=Workload("program", (), num=1),
        seed=1,
        directory=Path(directory),
        limits=Limits(60.0, 1 << 30, 1 << 30),
    ),
    on_message=lambda message: print(type(message).__name__, flush=True),
)
"""


def test_the_program_and_its_children_go_when_the_tuner_is_killed(tmp_path: Path) -> None:
    program = Path(__file__).parent / "program.py"
    parent = subprocess.Popen(
        [sys.executable, "-c", PARENT, str(program), str(tmp_path)],
        stdout=subprocess.PIPE,
        text=True,
    )
    with parent:
        assert parent.stdout is not None
        assert parent.stdout.readline().strip() == "Reported"
        tree = psutil.Process(parent.pid).children(recursive=True)
        assert len(tree) == 3  # the program, its child and the guard
        os.kill(parent.pid, signal.SIGKILL)
        parent.wait()
    wait_until_over(tree)
