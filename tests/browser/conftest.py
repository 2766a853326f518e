"""A browser for all tests of this folder."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

sys.path += [
    str(Path(__file__).parents[1] / room) for room in ("report", "dashboard", "experiment")
]

from chromium import Browser
from live_page import Server

from lsmtune.dashboard.server import LOOPBACK

BUILD = Path(__file__).parents[2] / "build"


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    """It ends with the file: other tests look at what their process has started."""
    program = shutil.which("chromium") or shutil.which("google-chrome")
    if program is None:
        pytest.skip("no chromium here; `make test-tools` installs it")
    started = Browser(program, tmp_path_factory.mktemp("profile"))
    yield started
    started.close()


@pytest.fixture(scope="session")
def pictures() -> Path:
    """Where the pages are kept as they were drawn."""
    folder = BUILD / "pictures"
    folder.mkdir(parents=True, exist_ok=True)
    return folder


@pytest.fixture(scope="session")
def axe() -> str:
    """The script that looks for what keeps people out: https://github.com/dequelabs/axe-core."""
    script = BUILD / "axe-core" / "package" / "axe.min.js"
    if not script.is_file():
        pytest.skip("no axe-core here; `make test-tools` fetches it")
    return script.read_text(encoding="utf-8") + ";undefined"


@pytest.fixture
def server(live_study: Path) -> Iterator[Server]:
    started = Server([live_study], LOOPBACK, "")
    yield started
    started.stop()
