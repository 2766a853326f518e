"""The head of a fleet: one thread owns the study, and every host has a thread that asks it.

The code that measures (`Measurer`, `run_trial`, `PairSeries`) is that of one machine. A thread per
host runs it, with a runner that hands each run to the host and a store that hands each row to the
head. So the head alone reads and writes the study, one thing after the other, and a row counts only
while the lease holds under which it was measured.
"""

from __future__ import annotations

import queue
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

from lsmtune.driver.messages import Message
from lsmtune.driver.pair import OnPairMessage
from lsmtune.experiment.folder import StudyFolder
from lsmtune.experiment.measurer import Measurer
from lsmtune.experiment.observer import Observer
from lsmtune.experiment.store import MeasurementStore, Role, StoredMeasurement
from lsmtune.fleet.host import CANCEL_S, Answer, Host, HostLostError, Work
from lsmtune.model.measurement import Measurement
from lsmtune.model.request import PairMethod, RunRequest

T = TypeVar("T")

# Pairs of each host have numbers of their own: host i of the study has i, i + HOSTS_MAX, ...
HOSTS_MAX = 10_000
_TICK_S = 0.25
_PROOF = (Role.PROOF_BASELINE, Role.PROOF_CANDIDATE)
# Stored facts: the highest reserved token of a lease, and how much came too late.
_TOKENS, _DISCARDED = "fleet_tokens", "fleet_discarded"
_RESERVED = 1000  # tokens at once, so that a lease costs no transaction of its own


@dataclass(frozen=True)
class Step:
    """Something for one host to do: `work` in the thread of the host, all else in the head's.

    `lost` is called in the place of `ended` when the host was given up meanwhile. Errors of a step
    that is not `fatal` are the fault of its host.
    """

    work: Callable[[Measurer], Any]
    ended: Callable[[Any], object]
    lost: Callable[[], object] = lambda: None
    fatal: bool = True


@dataclass(eq=False)
class Member:
    """A host that takes part: number `index` of the study's hosts, and what measures on it.

    `ready`: its baseline is known. `token` is that of its lease, None while it has nothing to do.
    """

    host: Host
    index: int
    measurer: Measurer
    ready: bool = False
    token: int | None = None

    @property
    def name(self) -> str:
        """The host's."""
        return self.host.name


@dataclass(frozen=True)
class Ended:
    """The step that a member did is over: with a result, or with an error."""

    member: Member
    step: Step
    result: Any = None
    error: BaseException | None = None


class Leases:
    """The leases of one session, under which hosts work for the study. For one thread.

    Each has a token, a number that only rises, over all sessions of a study, and fences off a host
    that was given up: what comes under a token that was taken back, however late, is discarded and
    counted, in `discarded` over all sessions. (M. Kleppmann, "How to do distributed locking", 2016,
    has the idea of a fencing token; C. Gray, D. Cheriton, SOSP 1989, that of a lease.)
    """

    def __init__(self, store: MeasurementStore) -> None:
        self._store = store
        self._next = self._reserved = int(store.fact(_TOKENS) or 0)
        self._held: set[int] = set()
        self.discarded = int(store.fact(_DISCARDED) or 0)

    def grant(self) -> int:
        """A token, higher than all before it."""
        if self._next >= self._reserved:
            self._reserved = self._next + _RESERVED
            self._store.set_fact(_TOKENS, self._reserved)
        token, self._next = self._next, self._next + 1
        self._held.add(token)
        return token

    def holds(self, token: int | None) -> bool:
        """Whether what comes under `token` counts; without one nothing does."""
        return token in self._held

    def end(self, token: int) -> None:
        """Nothing counts under `token` from now on."""
        self._held.discard(token)

    def discard(self) -> None:
        """Something came under a token that had ended."""
        self.discarded += 1
        self._store.set_fact(_DISCARDED, self.discarded)


class Head:
    """Starts steps on hosts, and does one after the other what their threads ask for."""

    def __init__(self, folder: StudyFolder) -> None:
        self.leases = Leases(folder.measurements)
        # What the head is to do next; it returns what ended by that, if something did.
        self._events: queue.SimpleQueue[Callable[[], Ended | None]] = queue.SimpleQueue()

    def start(self, member: Member, step: Step) -> None:
        """Let an idle member do `step`."""
        member.token = token = self.leases.grant()
        # What the host did not do is not charged to it.
        measurer = replace(member.measurer)

        def perform() -> None:
            try:
                ended = Ended(member, step, step.work(measurer))
            except BaseException as error:
                ended = Ended(member, step, error=error)
            self._events.put(partial(free, ended))

        def free(ended: Ended) -> Ended:
            self.leases.end(token)
            member.token = None
            return ended

        threading.Thread(target=perform, daemon=True, name=f"for {member.name}").start()

    def call(self, token: int | None, what: Callable[[], T]) -> T:
        """Have the head do `what`, in any thread; raises HostLostError when the lease has ended."""
        result: Future[T] = Future()

        def answer() -> None:
            try:
                if not self.leases.holds(token):
                    raise HostLostError("its lease has ended")
                result.set_result(what())
            except BaseException as error:
                result.set_exception(error)

        self._events.put(answer)
        return result.result()

    def attend(self, timeout_s: float) -> Ended | None:
        """Do the next thing that is asked, waiting for it; what ended, if something did."""
        try:
            event = self._events.get(timeout=timeout_s)
        except queue.Empty:
            return None
        return event()

    def drain(self) -> None:
        """Do what was asked until now, and wait for nothing."""
        while not self._events.empty():
            self.attend(0.0)

    def release(self, member: Member) -> None:
        """End what a member does, if it does something: nothing of it counts from now on."""
        if member.token is not None:
            self.leases.end(member.token)
            with suppress(HostLostError):
                member.host.cancel(member.token, sys.maxsize)

    def discard_late(self, answer: Future[Answer]) -> None:
        """Count what `answer` brings after its lease has ended, if anything; in any thread."""

        def came(late: Future[Answer]) -> None:
            if not late.cancelled() and late.exception() is None:
                self._events.put(self.leases.discard)

        answer.add_done_callback(came)


# --- What a Measurer of one host works with.


class HostStore(MeasurementStore):
    """The rows of one host, for the thread of that host; the head reads and writes them.

    `rows` are those that it has already; what is stored is appended, since no other adds rows of
    this host: so nothing is read for a host that joins, or after a run. Numbers of pairs are the
    host's own here, from 0. Has what a Measurer, a calibration, a promotion and a proof need of a
    store.
    """

    def __init__(
        self, head: Head, store: MeasurementStore, member: Member, rows: list[StoredMeasurement]
    ) -> None:
        self._head = head
        self._store = store
        self._member = member
        self._own = rows

    def _ask(self, what: Callable[[], T]) -> T:
        return self._head.call(self._member.token, what)

    def insert(self, run: StoredMeasurement) -> StoredMeasurement:
        """As in the study, with the host's name."""
        member = self._member
        measurement = replace(run.measurement, host=member.name)
        pair = None if run.pair is None else run.pair * HOSTS_MAX + member.index
        row = replace(run, measurement=measurement, pair=pair)
        stored = replace(self._ask(lambda: self._store.insert(row)), pair=run.pair)
        self._own.append(stored)
        return stored

    def all(self) -> list[StoredMeasurement]:
        """Every row of the host."""
        return list(self._own)

    def of(self, role: Role, after: int = 0) -> list[StoredMeasurement]:
        """Those of one role, stored `after` a row."""
        return [row for row in self.all() if row.role is role and row.id > after]

    def last_pair(self) -> int | None:
        """The host's last pair of a proof."""
        pairs = [row.pair for role in _PROOF for row in self.of(role) if row.pair is not None]
        return max(pairs, default=None)

    def fact(self, key: str) -> Any:
        """The study's."""
        return self._ask(lambda: self._store.fact(key))

    def set_fact(self, key: str, value: object) -> None:
        """The study's."""
        self._ask(lambda: self._store.set_fact(key, value))

    def note_lost(self, wall_s: float) -> None:
        """The study's."""
        self._ask(lambda: self._store.note_lost(wall_s))

    def spent_s(self) -> float:
        """What all hosts together took."""
        return self._ask(self._store.spent_s)


def rows_by_host(rows: Iterable[StoredMeasurement]) -> dict[str, list[StoredMeasurement]]:
    """What each host measured, with its own numbers of pairs; hosts in the order of their rows."""
    by_host: dict[str, list[StoredMeasurement]] = {}
    for row in rows:
        own = row if row.pair is None else replace(row, pair=row.pair // HOSTS_MAX)
        by_host.setdefault(row.measurement.host, []).append(own)
    return by_host


class HostFolder(StudyFolder):
    """The study's folder for the thread of one host: rows, and no place to run."""

    def __init__(self, path: Path, store: HostStore) -> None:
        self.path = path
        self.measurements = store

    @contextmanager
    def run_directory(self) -> Iterator[Path]:
        """A name: the host makes a folder of its own."""
        yield self.path / "on-the-host"


@dataclass(eq=False)
class HostRunner:
    """Performs runs on the host of `member`, under its lease; see `Runner` and `PairRunner`."""

    head: Head
    member: Member
    databases_bytes: int
    warn: Callable[[str], None]
    works: int = 0  # the number of the last Work

    def run(
        self,
        request: RunRequest,
        on_message: Callable[[Message], None] | None = None,
        cancel: threading.Event | None = None,
    ) -> Measurement:
        """One run. Raises HostLostError when the host does not answer."""
        (measurement,) = self._done(Work((request,)), on_message, cancel)
        return measurement

    def run_pair(
        self,
        first: RunRequest,
        second: RunRequest,
        method: PairMethod,
        *,
        on_message: OnPairMessage | None = None,  # noqa: ARG002
        cancel: threading.Event | None = None,
    ) -> tuple[Measurement, Measurement]:
        """Both runs of a pair, on the host; what they say meanwhile is not passed on."""
        one, other = self._done(Work((first, second), method), None, cancel)
        return one, other

    def _done(
        self,
        work: Work,
        on_message: Callable[[Message], None] | None,
        cancel: threading.Event | None,
    ) -> tuple[Measurement, ...]:
        if (token := self.member.token) is None:
            raise HostLostError("its lease has ended")
        self.works += 1
        host, number, cancelled_s = self.member.host, self.works, None
        asked = replace(work, databases_bytes=self.databases_bytes, number=number)
        future = host.submit(token, asked)
        try:
            while True:
                try:
                    answer = future.result(timeout=_TICK_S)
                    break
                except TimeoutError:
                    _tell(host.poll(token), on_message)
                if cancelled_s is None and cancel is not None and cancel.is_set():
                    cancelled_s = time.monotonic()
                    host.cancel(token, number)
                if cancelled_s is not None and time.monotonic() - cancelled_s > CANCEL_S:
                    raise HostLostError("it does not end a run that was cancelled")
        except BaseException:
            self.head.discard_late(future)
            raise
        _tell(answer.said, on_message)
        for note in answer.notes:
            self.warn(note)
        return answer.measurements


def _tell(said: Sequence[Message], on_message: Callable[[Message], None] | None) -> None:
    if on_message is not None:
        for message in said:
            on_message(message)


class HostObserver(Observer):
    """What is said of one host: lines, told by the head with the name of the host."""

    def __init__(self, tell: Callable[[str], None]) -> None:
        self._tell = tell

    def warning(self, text: str) -> None:
        """Something the user should know."""
        self._tell(text)

    def calibrated(self, line: str) -> None:
        """See `Observer`."""
        self._tell(line)
