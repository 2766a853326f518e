"""What a host does: one Work at a time in its own folder, and no other of lsmtune's beside it."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Sequence
from contextlib import ExitStack, suppress
from dataclasses import replace
from pathlib import Path

from lsmtune.driver.messages import Message
from lsmtune.driver.native import NativeRunner
from lsmtune.driver.pair import run_pair
from lsmtune.driver.runner import Runner
from lsmtune.errors import LsmtuneError
from lsmtune.experiment.databases import DatabaseCache
from lsmtune.experiment.files import claim, run_directory
from lsmtune.experiment.observer import Observer
from lsmtune.fleet.host import Answer, HostFacts, HostLostError, Work, host_facts
from lsmtune.machine.files import wait_for_lock
from lsmtune.model.config import EngineIdentity
from lsmtune.model.measurement import Measurement
from lsmtune.model.request import RunRequest

_PURPOSE = "fleet"
_LOCK = "slot.lock"
# A worker that was killed lets its lock go at once; its driver ends by itself within 0.3 s.
PATIENCE_S = 60.0
_MESSAGES_MAX = 10_000  # of one run that nobody has asked for


class Worker:
    """Performs Work in `directory`, which one Worker of one process has at a time.

    `perform` is for one thread; `poll` and `cancel` may be called meanwhile.
    """

    def __init__(self, directory: Path, runner: Runner) -> None:
        """Raises HostLostError where another worker has this host, InputError for a bad folder."""
        directory.mkdir(parents=True, exist_ok=True)
        claim(directory, _PURPOSE)
        lock = wait_for_lock(directory / _LOCK, None, PATIENCE_S)
        if lock is None:
            raise HostLostError(f"{directory}: another worker measures here")
        self._lock = lock
        self._directory = directory
        self._runner = runner
        self._caches: dict[int, DatabaseCache] = {}
        self._token = -1
        self._cancelled = (-1, -1)  # the last Work that was: its token and its number
        self._work = (-1, -1, threading.Event())  # what is performed, and what ends it
        self._messages: deque[Message] = deque(maxlen=_MESSAGES_MAX)
        self._notes = _Notes(self._messages)

    def facts(self, engine: EngineIdentity) -> HostFacts:
        """What this host is."""
        return host_facts(engine, self._runner, self._directory)

    def perform(self, token: int, work: Work) -> Answer:
        """The runs of `work`; raises HostLostError for a stale token, LsmtuneError as a runner."""
        if token < self._token:
            raise HostLostError(f"lease {token} ended: this host works for lease {self._token}")
        self._token = token
        cancel = threading.Event()
        self._work = token, work.number, cancel
        if (token, work.number) <= self._cancelled:
            cancel.set()
        self._messages.clear()
        with ExitStack() as stack:
            requests = []
            for request in work.requests:
                runs = self._directory / "runs"
                runs.mkdir(exist_ok=True)
                directory = stack.enter_context(run_directory(runs))
                own = replace(request, directory=directory)
                requests.append(self._prepared(own, work.databases_bytes, cancel))
            measured: Sequence[Measurement]
            if work.method is None:
                run = (requests[0], self._messages.append, cancel)
                measured = [self._runner.run(*run)]
            elif isinstance(self._runner, NativeRunner):
                first, second = requests
                measured = run_pair(self._runner, first, second, work.method, cancel=cancel)
            else:
                raise LsmtuneError(f"no pairs by {work.method.value} without lsmtune's own driver")
        notes, self._notes.lines = tuple(self._notes.lines), []
        return Answer(token, tuple(measured), notes, tuple(self.poll(token)))

    def poll(self, token: int) -> list[Message]:
        """What was said since the last call, while `token` is at work."""
        said: list[Message] = []
        with suppress(IndexError):  # empty: another thread may fetch, too
            while token == self._token:
                said.append(self._messages.popleft())
        return said

    def cancel(self, token: int, number: int) -> None:
        """End the Work of `token` up to this number, now or when it begins; none after it."""
        self._cancelled = max(self._cancelled, (token, number))
        *work, cancel = self._work
        if tuple(work) <= self._cancelled:
            cancel.set()

    def close(self) -> None:
        """Let the next worker in."""
        self._lock.release()

    def _prepared(
        self, request: RunRequest, databases_bytes: int, cancel: threading.Event
    ) -> RunRequest:
        if not databases_bytes:
            return request
        if databases_bytes not in self._caches:
            self._caches[databases_bytes] = DatabaseCache(
                *(self._directory / "databases", self._runner, databases_bytes),
                observer=self._notes,
            )
        return self._caches[databases_bytes].prepare(request, cancel)


class _Notes(Observer):
    """Keeps warnings for the answer, and what a load says for `poll`."""

    def __init__(self, messages: deque[Message]) -> None:
        self.lines: list[str] = []
        self._messages = messages

    def warning(self, text: str) -> None:
        """Something the user should know."""
        self.lines.append(text)

    def run_message(self, message: Message) -> None:
        """The load of a database said something."""
        self._messages.append(message)
