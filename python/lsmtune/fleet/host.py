"""A host of a fleet: what it is asked to do, how it proves to be the same, and its Worker."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Mapping, Sequence
from concurrent.futures import Future
from contextlib import ExitStack, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Protocol

from filelock import Timeout

import lsmtune
from lsmtune.driver.messages import Message
from lsmtune.driver.native import NativeRunner
from lsmtune.driver.pair import run_pair
from lsmtune.driver.runner import Runner
from lsmtune.engines.library import file_sha256, snappy_beside
from lsmtune.errors import LsmtuneError
from lsmtune.experiment.databases import DatabaseCache
from lsmtune.experiment.files import claim, run_directory
from lsmtune.experiment.observer import Observer
from lsmtune.machine.files import file_lock
from lsmtune.machine.findings import OF_THE_MOMENT, machine_facts
from lsmtune.model.config import EngineIdentity
from lsmtune.model.measurement import Measurement
from lsmtune.model.request import PairMethod, RunRequest

# So long may a host say nothing while it measures; then it is given up.
SILENCE_S = 30.0
# So long may it take to end a run that was cancelled.
CANCEL_S = 15.0
_PURPOSE = "fleet"
_LOCK = "slot.lock"
# A worker that was killed lets its lock go at once; its driver ends by itself within 0.3 s.
PATIENCE_S = 60.0
_MESSAGES_MAX = 10_000  # of one run that nobody has asked for


class HostLostError(LsmtuneError):
    """A host answers no more, or cannot measure; the text says why. Its work is done elsewhere."""


@dataclass(frozen=True)
class Work:
    """What one host is asked to do: one run, or with a `method` the two of a pair that share it.

    The folders of the `requests` are the host's own. It keeps loaded databases of up to
    `databases_bytes`; 0 for none. Each Work of a lease has a higher `number` than the one before.
    """

    requests: tuple[RunRequest, ...]
    method: PairMethod | None = None
    databases_bytes: int = 0
    number: int = 0


@dataclass(frozen=True)
class Answer:
    """What the runs of a Work observed; `notes` is what is out of the ordinary, a line each.

    `said` is what no poll has fetched.
    """

    measurements: tuple[Measurement, ...]
    notes: tuple[str, ...] = ()
    said: tuple[Message, ...] = ()


@dataclass(frozen=True)
class HostFacts:
    """What a host consists of, by name: `software` has to be the same on all, `hardware` may not.

    What is not known is left out.
    """

    software: Mapping[str, str]
    hardware: Mapping[str, str]


class Host(Protocol):
    """One machine, which performs one Work at a time.

    `token` belongs to the lease under which it works (`fleet.head`); a host refuses one that is
    lower than one it has seen. All methods but `submit` raise HostLostError for a host that does
    not answer. Not for several threads, but for `give_up`.
    """

    name: str

    def facts(self, engine: EngineIdentity) -> HostFacts:
        """What it is, for runs of `engine`."""

    def submit(self, token: int, work: Work) -> Future[Answer]:
        """Begin `work`. The future raises HostLostError where the host cannot do it."""

    def poll(self, token: int) -> Sequence[Message]:
        """What the runs said since the last call: a sign of life."""

    def cancel(self, token: int, number: int) -> None:
        """End the Work of `token` with this number or a lower one, which then answers soon."""

    def give_up(self) -> None:
        """Never ask it again, and let its slot go as far as that can be done from here."""


class Fleet(Protocol):
    """The hosts that there are. For one thread."""

    def hosts(self) -> Sequence[Host]:
        """Those that came since the last call, each with its slot.

        Raises LsmtuneError where there are no hosts any more, and no way to learn of new ones.
        """

    def close(self) -> None:
        """Let all slots go."""


# --- Proof that a host is the same.


def host_facts(engine: EngineIdentity, runner: Runner, directory: Path) -> HostFacts:
    """Of the machine that this runs on. Raises OSError for a library that cannot be read."""
    software = {"lsmtune": lsmtune.__version__, "runner": type(runner).__name__}
    if isinstance(runner, NativeRunner):
        software["driver"] = file_sha256(runner.driver)
    if engine.library is not None:
        library = Path(engine.library)
        software["library"] = file_sha256(library)
        beside = snappy_beside(library)
        software["Snappy"] = file_sha256(beside) if beside else "its own"
    hardware = {name: v for name, v in machine_facts(directory).items() if name != OF_THE_MOMENT}
    return HostFacts(software, hardware)


def refusal(host: HostFacts, reference: HostFacts) -> str:
    """Why runs of a host say nothing beside those of the `reference`, in one line; or empty."""
    unlike = [
        f"{name} is {_shown(host.software.get(name))} and not {_shown(wanted)}"
        for name, wanted in reference.software.items()
        if host.software.get(name) != wanted
    ]
    return f"is refused: {', '.join(unlike)}" if unlike else ""


def differences(host: HostFacts, reference: HostFacts) -> str:
    """What hardware differs, in one line; empty for nothing. It has a baseline of its own."""
    names = dict.fromkeys([*reference.hardware, *host.hardware])
    unlike = [
        f"{name} {host.hardware.get(name, 'not known')} "
        f"(elsewhere {reference.hardware.get(name, 'not known')})"
        for name in names
        if host.hardware.get(name) != reference.hardware.get(name)
    ]
    return f"differs, and is compared with its own baseline: {', '.join(unlike)}" if unlike else ""


def _shown(value: str | None) -> str:
    """A digest by its beginning."""
    return "not there" if value is None else value[:12]


# --- What a host does: one Work at a time in its own folder, and no other of lsmtune's beside it.


class Worker:
    """Performs Work in `directory`, which one Worker of one process has at a time.

    `perform` is for one thread; `poll` and `cancel` may be called meanwhile.
    """

    def __init__(self, directory: Path, runner: Runner) -> None:
        """Raises HostLostError where another worker has this host, InputError for a bad folder."""
        directory.mkdir(parents=True, exist_ok=True)
        claim(directory, _PURPOSE)
        self._lock = file_lock(directory / _LOCK)
        try:
            self._lock.acquire(timeout=PATIENCE_S)
        except Timeout:
            raise HostLostError(f"{directory}: another worker measures here") from None
        self._directory = directory
        self._runner = runner
        self._caches: dict[int, DatabaseCache] = {}
        self._token = -1
        self._cancelled = (-1, -1)  # token and number of the last Work that was
        self._work = ((-1, -1), threading.Event())  # those of the Work at hand, and what ends it
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
        self._work = ((token, work.number), cancel)
        if (token, work.number) <= self._cancelled:
            cancel.set()
        self._messages.clear()
        runs = self._directory / "runs"
        runs.mkdir(exist_ok=True)
        with ExitStack() as stack:
            requests = []
            for request in work.requests:
                directory = stack.enter_context(run_directory(runs))
                own = replace(request, directory=directory)
                requests.append(self._prepared(own, work.databases_bytes, cancel))
            if work.method is None:
                run = self._runner.run(requests[0], self._messages.append, cancel)
                measured: Sequence[Measurement] = [run]
            elif isinstance(self._runner, NativeRunner):
                first, second = requests
                measured = run_pair(self._runner, first, second, work.method, cancel=cancel)
            else:
                raise LsmtuneError(f"no pairs by {work.method.value} without lsmtune's own driver")
        notes, self._notes.lines = tuple(self._notes.lines), []
        return Answer(tuple(measured), notes, tuple(self.poll(token)))

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
        work, ends = self._work
        if work <= self._cancelled:
            ends.set()

    def close(self) -> None:
        """Let the next worker in."""
        self._lock.release()

    def _prepared(
        self, request: RunRequest, databases_bytes: int, cancel: threading.Event
    ) -> RunRequest:
        if not databases_bytes:
            return request
        if databases_bytes not in self._caches:
            folder = self._directory / "databases"
            cache = DatabaseCache(folder, self._runner, databases_bytes, observer=self._notes)
            self._caches[databases_bytes] = cache
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
