"""A fake driver, and requests for it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import psutil
import pytest

from lsmtune.model.config import Build, Config, EngineIdentity
from lsmtune.model.request import Limits, RunRequest
from lsmtune.model.workload import Phase, PhaseKind, Workload
from made_up import write_program
from patience import PATIENCE_S

HERE = Path(__file__).parent
GOLDEN = HERE.parents[1] / "protocol" / "golden"

MakeRequest = Callable[..., RunRequest]


@pytest.fixture
def fake_driver(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An executable that speaks the protocol; the option `fake` says how it misbehaves."""
    return _executable(HERE / "fake_driver.py", tmp_path, monkeypatch)


@pytest.fixture
def fake_sliced_driver(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """One that takes turns."""
    return _executable(HERE / "fake_sliced_driver.py", tmp_path, monkeypatch)


def _executable(script: Path, folder: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("LSMTUNE_TEST_GOLDEN", str(GOLDEN))
    return write_program(folder / "lsmtune-driver", script.read_text())


@pytest.fixture(params=["memory", "rocksdb", "leveldb"])
def engine(request: pytest.FixtureRequest) -> EngineIdentity:
    name = str(request.param)
    if name == "memory":
        return EngineIdentity(name)
    return EngineIdentity(name, library=str(request.getfixturevalue(f"{name}_library")))


@pytest.fixture
def make_request(tmp_path: Path) -> MakeRequest:
    """Builds a request for the fake driver: `make_request("hang", deadline_s=1.0)`."""

    def make(
        behaviour: str = "ok",
        *,
        deadline_s: float = PATIENCE_S,
        memory_bytes: int = 1 << 30,
        disk_bytes: int = 1 << 30,
        **options: int,
    ) -> RunRequest:
        directory = tmp_path / "run-1"
        directory.mkdir()
        phase = Phase("fillrandom", PhaseKind.MEASURE, "fillrandom", operations_per_thread=1000)
        return RunRequest(
            engine=EngineIdentity("rocksdb", build=Build.RELEASE),
            config=Config({"fake": behaviour, **options}),
            workload=Workload("fillrandom", (phase,), num=1000),
            seed=7,
            directory=directory,
            limits=Limits(deadline_s, memory_bytes, disk_bytes),
        )

    return make


@pytest.fixture(autouse=True)
def nothing_is_left() -> Iterator[None]:
    """No process and no open file by the time that a run is over, however it ended."""
    open_files = Path("/proc/self/fd")
    before = len(list(open_files.iterdir()))
    yield
    descendants = psutil.Process().children(recursive=True)
    assert [" ".join(each.cmdline()) for each in descendants] == []
    assert len(list(open_files.iterdir())) <= before
