"""A fleet on Ray: an actor on each node that has a slot. Ray is imported when one is made.

`lsmtune worker` starts Ray's daemons with the resources that this file reads: `lsmtune_slot`, of
which a measuring host has one, and `lsmtune_host:NAME`, its name. The actor takes the whole slot,
so that two studies never measure on one host, and its Worker a lock on the host, so that not even
an actor that nobody can reach any more has one beside it.
"""

from __future__ import annotations

import importlib
import os
import socket
import time
from collections import Counter
from collections.abc import Sequence
from concurrent.futures import Future
from pathlib import Path
from typing import Any

from lsmtune.driver.conversation import find_driver
from lsmtune.driver.messages import Message
from lsmtune.driver.native import NativeRunner
from lsmtune.driver.runner import Runner
from lsmtune.engines.library import lsmtune_home
from lsmtune.errors import LsmtuneError
from lsmtune.fleet.host import SILENCE_S, Answer, HostFacts, HostLostError, Work, Worker
from lsmtune.machine.awake import Clock
from lsmtune.model.config import EngineIdentity

SLOT, NAME = "lsmtune_slot", "lsmtune_host:"
DIRECTORY = "LSMTUNE_WORKER_DIR"  # where a host measures, in the environment of its daemons
# How often a host is asked for a sign of life while it measures: a call takes it a millisecond.
_POLL_S = 1.0
# A host that was lost so often, and did nothing between, is left alone.
_LOSSES_MAX = 5
_KNOCK_S = 2.0
# So long an actor that was given up at work may still answer; then it is killed.
LATE_S = 60.0


class _Actor(Worker):
    """A Worker in a process of Ray's on its host."""

    def __init__(self, name: str, runner: Runner | None) -> None:
        parent = Path(os.environ.get(DIRECTORY) or lsmtune_home() / "worker")
        super().__init__(parent / name, runner or NativeRunner(find_driver()))

    def ready(self) -> None:
        """Answers once the host's lock is held."""


class RayHost:
    """See `Host`."""

    def __init__(self, name: str, node: str, actor: Any, fleet: RayFleet, clock: Clock) -> None:
        self.name = name
        self._node = node
        self._actor = actor
        self._fleet = fleet
        self._clock = clock
        self._polled_s = clock()
        self._answer: Future[Answer] = Future()
        self._answer.cancel()  # nothing was asked
        self._is_given_up = False

    def facts(self, engine: EngineIdentity) -> HostFacts:
        """See `Host`."""
        facts: HostFacts = self._asked(self._actor.facts.remote(engine))
        return facts

    def submit(self, token: int, work: Work) -> Future[Answer]:
        """See `Host`."""
        outer = self._answer = Future()
        self._polled_s = self._clock()

        def done(inner: Future[Answer]) -> None:
            try:
                answer = inner.result()
            except Exception as error:
                outer.set_exception(HostLostError(_line(error)))
                return
            if not self._is_given_up:  # an answer that comes too late is of no use
                self._fleet.worked(self._node)
            outer.set_result(answer)

        self._actor.perform.remote(token, work).future().add_done_callback(done)
        return outer

    def poll(self, token: int) -> Sequence[Message]:
        """See `Host`."""
        if self._clock() - self._polled_s < _POLL_S:
            return ()
        said: Sequence[Message] = self._asked(self._actor.poll.remote(token))
        self._polled_s = self._clock()
        return said

    def cancel(self, token: int, number: int) -> None:
        """See `Host`."""
        self._asked(self._actor.cancel.remote(token, number))

    def give_up(self) -> None:
        """See `Host`: its actor is killed, after it could answer once more."""
        self._is_given_up = True
        self._fleet.gave_up(self._node, self._actor, self._answer)

    def _asked(self, answer: Any) -> Any:
        ray = _ray()
        try:
            return ray.get(answer, timeout=SILENCE_S)
        except ray.exceptions.GetTimeoutError:
            raise HostLostError(f"it said nothing for {SILENCE_S:g} s") from None
        except ray.exceptions.RayError as error:
            raise HostLostError(_line(error)) from None


class RayFleet:
    """The nodes of a Ray cluster that have a slot; see `Fleet`."""

    def __init__(
        self, address: str, runner: Runner | None = None, clock: Clock = time.monotonic
    ) -> None:
        """Join the cluster at `address`, HOST:PORT.

        `runner` is what hosts measure with, None for lsmtune's own driver. Raises LsmtuneError
        where there is none.
        """
        self._runner, self._clock, self._ray = runner, clock, _ray()
        self._error = (self._ray.exceptions.RayError, RuntimeError, ConnectionError)
        self._address = address
        try:
            self._ray.init(address=address, log_to_driver=False, configure_logging=False)
        except (*self._error, ValueError) as error:
            raise LsmtuneError(
                f"--fleet {address}: no fleet answers here: {_line(error)}; start it with "
                "`lsmtune worker` on this machine"
            ) from None
        self._actors: dict[str, tuple[str, Any, Any]] = {}  # by node: those that start
        self._given_up: list[tuple[float, str, Any, Future[Answer]]] = []
        self._taken: set[str] = set()
        self._losses: Counter[str] = Counter()

    def hosts(self) -> Sequence[RayHost]:
        """See `Fleet`."""
        try:
            self._knock()
            nodes = [node for node in self._ray.nodes() if node["Alive"]]
        except self._error as error:
            raise LsmtuneError(
                f"the fleet is gone ({_line(error)}); the study is kept: start the fleet again, "
                "and repeat the command"
            ) from None
        self._let_go()
        for node in nodes:
            key, resources = str(node["NodeID"]), node["Resources"]
            if key not in self._taken and resources.get(SLOT) and self._losses[key] < _LOSSES_MAX:
                named = (r.removeprefix(NAME) for r in resources if r.startswith(NAME))
                self._begin(key, next(named, key[:12]))
        return self._started({str(node["NodeID"]) for node in nodes})

    def _knock(self) -> None:
        """Raises ConnectionRefusedError where the daemon of the head has ended.

        Ray would wait a minute for it, and then end this process without a word of ours. All else
        (the head is busy, or no way leads to it for a while) is left to Ray's patience.
        """
        host, port = self._address.rsplit(":", 1)
        try:
            socket.create_connection((host, int(port)), _KNOCK_S).close()
        except ConnectionRefusedError:
            raise
        except OSError:
            return

    def gave_up(self, node: str, actor: Any, answer: Future[Answer]) -> None:
        """The host at `node` is lost; it may come back with a new actor.

        Of an actor that is killed Ray passes no answer on, so that nobody could count it. One that
        works still gets the time for it, and keeps its host's slot.
        """
        self._given_up.append((self._clock(), node, actor, answer))
        self._let_go()

    def _let_go(self) -> None:
        """Kill the actors that were given up and answered, or did not for too long."""
        for given_up in list(self._given_up):
            since_s, node, actor, answer = given_up
            if answer.done() or self._clock() - since_s > LATE_S:
                self._given_up.remove(given_up)
                self._lost(node, actor)

    def _lost(self, node: str, actor: Any) -> None:
        self._ray.kill(actor, no_restart=True)
        self._losses[node] += 1
        self._taken.discard(node)

    def worked(self, node: str) -> None:
        """The host at `node` answered in time; in any thread."""
        self._losses.pop(node, None)

    def close(self) -> None:
        """See `Fleet`."""
        self._ray.shutdown()

    def _begin(self, node: str, name: str) -> None:
        made = self._ray.remote(
            num_cpus=0, resources={SLOT: 1}, max_concurrency=4, max_restarts=0, max_task_retries=0
        )(_Actor)
        strategies = importlib.import_module("ray.util.scheduling_strategies")
        strategy = strategies.NodeAffinitySchedulingStrategy(node, soft=False)
        actor = made.options(scheduling_strategy=strategy).remote(name, self._runner)
        self._actors[node] = (name, actor, actor.ready.remote())
        self._taken.add(node)

    def _started(self, alive: set[str]) -> list[RayHost]:
        """Those whose actors answer now; one whose slot is taken by another study waits for it.

        One whose actor could not begin says why when it is asked what it is.
        """
        started = []
        for node, (name, actor, ready) in list(self._actors.items()):
            if self._ray.wait([ready], timeout=0)[0]:
                del self._actors[node]
                started.append(RayHost(name, node, actor, self, self._clock))
            elif node not in alive:
                del self._actors[node]
                self._lost(node, actor)
        return started


def _ray() -> Any:
    return importlib.import_module("ray")


def _line(error: BaseException) -> str:
    """What went wrong on a host, in one line."""
    cause = getattr(error, "cause", None) or error  # of a task of Ray's that raised something
    if isinstance(cause, LsmtuneError):
        return str(cause)
    lines = [line.strip() for line in str(cause).splitlines() if line.strip()]
    if lines and getattr(cause, "actor_init_failed", False):  # a traceback, which ends with it
        return lines[-1].partition(": ")[2] or lines[-1]
    return f"{type(cause).__name__}: {lines[0]}" if lines else type(cause).__name__
