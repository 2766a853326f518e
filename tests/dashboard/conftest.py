"""Live pages of sample studies."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent.parent / "report"))

from live_page import Server, say
from sample_study import SampleStudy, fill, finished

from lsmtune.dashboard.server import LOOPBACK


@pytest.fixture
def serve() -> Iterator[Callable[..., Server]]:
    servers = []

    def start(*paths: Path, hosts: tuple[str, ...] = LOOPBACK, token: str = "") -> Server:
        servers.append(Server(list(paths), hosts, token))
        return servers[-1]

    yield start
    for server in servers:
        server.stop()


@pytest.fixture(scope="module")
def done(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a study with a verdict."""
    sample = finished(tmp_path_factory.mktemp("done"))
    sample.close()
    return sample.path


@pytest.fixture
def study(tmp_path: Path) -> Iterator[SampleStudy]:
    """A study with eight trials, whose tuner is this process."""
    sample = SampleStudy(tmp_path)
    fill(sample, trials=8)
    say(sample.path)
    yield sample
    sample.close()
