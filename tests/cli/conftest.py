"""The command line in this process, on a driver without an engine."""

from __future__ import annotations

import json
import signal
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from lsmtune.cli.main import main
from made_up import write_program

HERE = Path(__file__).parent
FAKE = HERE.parent / "driver" / "fake_driver.py"
GOLDEN = HERE.parents[1] / "protocol" / "golden"

STUDY = """\
version: 1
name: smoke
engine: {name: memory}
workload: {name: fillrandom, num: 1000}
space:
  write_buffer_size: {type: int, low: 64KiB, high: 16MiB}
budget: {trials: 2}
proof: {pairs: 6}
noise: {calibration: 0}
"""


@dataclass(frozen=True)
class Said:
    """How a command ended, and what it said."""

    status: int
    out: str
    err: str

    def json(self) -> Any:
        return json.loads(self.out)

    @property
    def refusal(self) -> str:
        """The one line on input that is wrong, which is all that was said."""
        assert (self.status, self.out, self.err.count("\n")) == (2, "", 1), self.err
        return self.err


Lsmtune = Callable[..., Said]


@pytest.fixture
def fake_driver(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """LSMTUNE_DRIVER is a driver without an engine; the option `fake` says how it misbehaves."""
    path = write_program(tmp_path / "lsmtune-driver", FAKE.read_text())
    monkeypatch.setenv("LSMTUNE_TEST_GOLDEN", str(GOLDEN))
    monkeypatch.setenv("LSMTUNE_DRIVER", str(path))
    return path


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty LSMTUNE_HOME, and an empty current folder that is returned."""
    monkeypatch.setenv("LSMTUNE_HOME", str(tmp_path / "home"))
    here = tmp_path / "here"
    here.mkdir()
    monkeypatch.chdir(here)
    return here


@pytest.fixture
def lsmtune(home: Path, capsys: pytest.CaptureFixture[str]) -> Iterator[Lsmtune]:
    """Runs the command line here: `lsmtune("bench", "--json").out`."""
    assert home.is_dir()
    before = signal.getsignal(signal.SIGTERM)

    def run(*arguments: str) -> Said:
        capsys.readouterr()
        status = main(arguments)
        said = capsys.readouterr()
        return Said(int(status), said.out, said.err)

    yield run
    signal.signal(signal.SIGTERM, before)


@pytest.fixture
def study(home: Path) -> Path:
    """A small study file in the current folder."""
    path = home / "study.yaml"
    path.write_text(STUDY)
    return path
