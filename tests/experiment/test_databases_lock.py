from __future__ import annotations

import fcntl
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from database_parts import FakeRunner, Requests, contents

from lsmtune.experiment.database_files import lock_path
from lsmtune.experiment.databases import DatabaseCache
from lsmtune.machine.files import Lock, try_lock, wait_for_lock
from lsmtune.model.request import Limits
from patience import PATIENCE_S

pytestmark = pytest.mark.usefixtures("synced")


def locked(golden: Path) -> Lock:
    lock = try_lock(lock_path(golden))
    assert lock is not None
    return lock


def test_one_holds_it_and_the_next_one_gets_it(tmp_path: Path) -> None:
    golden = tmp_path / "golden"
    first = locked(golden)
    assert try_lock(lock_path(golden)) is None
    first.release()
    first.release()
    locked(golden).release()


def test_a_lock_file_that_its_holder_deleted_locks_nothing(tmp_path: Path) -> None:
    golden = tmp_path / "golden"
    first = locked(golden)
    first.forget()
    second = locked(golden)
    assert try_lock(lock_path(golden)) is None
    first.release()
    assert try_lock(lock_path(golden)) is None, "it is the second one's file that is there"
    second.release()


def test_a_lock_file_deleted_while_it_is_being_locked_is_not_taken(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    golden, kernel_lock = tmp_path / "golden", fcntl.flock
    deletions = iter([True, False])

    def lock(descriptor: int, operation: int) -> None:
        kernel_lock(descriptor, operation)
        if next(deletions):
            lock_path(golden).unlink()

    monkeypatch.setattr(fcntl, "flock", lock)
    held = locked(golden)
    monkeypatch.undo()
    assert lock_path(golden).exists()
    assert try_lock(lock_path(golden)) is None
    held.release()


def test_waiting_ends_with_patience_and_with_a_cancel(tmp_path: Path) -> None:
    golden = tmp_path / "golden"
    lock = locked(golden)
    assert wait_for_lock(lock_path(golden), None, 0.1) is None
    cancel = threading.Event()
    threading.Timer(0.1, cancel.set).start()
    started_s = time.monotonic()
    assert wait_for_lock(lock_path(golden), cancel, 2 * PATIENCE_S) is None
    assert time.monotonic() - started_s < PATIENCE_S
    lock.release()


def test_waiting_ends_with_a_cancel_that_something_else_sets(tmp_path: Path) -> None:
    """That of a measurer is set by the user's stop: Ctrl-C was heard when the patience was over."""
    stop = threading.Event()

    class Cancel(threading.Event):
        def is_set(self) -> bool:
            return stop.is_set()

    with locked(tmp_path / "golden"):
        threading.Timer(0.1, stop.set).start()
        started_s = time.monotonic()
        assert wait_for_lock(lock_path(tmp_path / "golden"), Cancel(), 2 * PATIENCE_S) is None
        assert time.monotonic() - started_s < PATIENCE_S


def test_two_tuners_at_once_load_once(tmp_path: Path, make_request: Requests) -> None:
    runner = FakeRunner(takes_s=0.3)
    requests = [make_request() for _ in range(4)]

    def prepare(number: int) -> bool:
        cache = DatabaseCache(tmp_path / "databases", runner, 1 << 30)
        return cache.prepare(requests[number]).prepared is not None

    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(prepare, range(4))) == [True] * 4
    assert len(runner.requests) == 1
    copies = [contents(request.directory / "db") for request in requests]
    assert all(copy == copies[0] for copy in copies)


def test_who_cannot_wait_longer_does_without(tmp_path: Path, make_request: Requests) -> None:
    runner = FakeRunner()
    cache = DatabaseCache(tmp_path / "databases", runner, 1 << 30)
    cache.prepare(make_request())
    (golden,) = (path for path in cache.directory.iterdir() if path.is_dir())
    with locked(golden):
        request = make_request(limits=Limits(0.1, 1 << 30, 1 << 30))
        assert cache.prepare(request) is request
