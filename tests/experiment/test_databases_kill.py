"""Kill -9 before each single step that the cache takes on the disk, one after the other."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from database_parts import FakeRunner, Requests, contents

from lsmtune.experiment.database_files import goldens_in
from lsmtune.experiment.databases import DatabaseCache
from lsmtune.experiment.files import MARKER

pytestmark = pytest.mark.usefixtures("synced")

SIZE_BYTES = 45_000  # of one golden database, and not of two
# What Python's audit hooks call the steps that change something on the disk.
STEPS = frozenset(
    {"open", "os.mkdir", "os.rmdir", "os.remove", "os.rename", "os.link", "os.chmod", "os.utime"}
)
STEPS_MAX = 400


def killed_before(step: int, folder: Path, work: Callable[[], object]) -> bool:
    """Does `work` in a process that dies before its step number `step` in `folder`."""
    child = os.fork()
    if child == 0:
        try:
            die_before(step, folder)
            work()
        finally:
            os._exit(0)
    _, status = os.waitpid(child, 0)
    return os.WIFSIGNALED(status)


def die_before(step: int, folder: Path) -> None:
    left = step

    def hook(event: str, arguments: tuple[object, ...]) -> None:
        nonlocal left
        if event not in STEPS or not str(arguments[0]).startswith(str(folder)):
            return
        left -= 1
        if left < 0:
            os.kill(os.getpid(), signal.SIGKILL)

    sys.addaudithook(hook)


def check(directory: Path, make_request: Requests) -> None:
    """The next tuner finds what it asks for, whole, and nothing is left of the last one."""
    runner = FakeRunner()
    cache = DatabaseCache(directory, runner, SIZE_BYTES)
    request = make_request(write_buffer_size=1 << 20)
    ready = cache.prepare(request)
    assert ready.prepared is not None
    assert ready.prepared.ledger.read_text() == f"ledger of {ready.load_seed}"
    original = make_request(write_buffer_size=1 << 20)
    DatabaseCache(directory / "other", FakeRunner(), SIZE_BYTES).prepare(original)
    assert contents(request.directory / "db") == contents(original.directory / "db")
    (golden,) = goldens_in(directory)
    names = {entry.name for entry in directory.iterdir()} - {"other"}
    assert names == {MARKER, golden.path.name}


@pytest.mark.parametrize("evicts", [False, True])
def test_a_kill_at_any_moment_leaves_no_half_database(
    tmp_path: Path, make_request: Requests, evicts: bool
) -> None:
    for step in range(STEPS_MAX):
        directory = tmp_path / f"databases-{step}"
        if evicts:
            before = DatabaseCache(directory, FakeRunner(), SIZE_BYTES)
            before.prepare(make_request(write_buffer_size=2 << 20))
        request = make_request(write_buffer_size=1 << 20)
        cache = DatabaseCache(directory, FakeRunner(), SIZE_BYTES)
        killed = killed_before(step, directory, lambda: cache.prepare(request))  # noqa: B023
        check(directory, make_request)
        if not killed:
            assert step > 20, "the steps were seen"
            return
    pytest.fail(f"more than {STEPS_MAX} steps")
