"""Fleets of simulated hosts in this process, and a way to tune on them."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from dataclasses import replace
from functools import partial
from pathlib import Path

from fake_runner import ENGINE, default_speed
from simulated_hosts import SimulatedRunner
from study_parts import Recorder

from lsmtune.driver.messages import Message
from lsmtune.driver.runner import Runner
from lsmtune.fleet.host import (
    Answer,
    Fleet,
    Host,
    HostFacts,
    HostLostError,
    Work,
    Worker,
    host_facts,
)
from lsmtune.fleet.tuning import FleetParts, FleetTuning
from lsmtune.machine.awake import Clock
from lsmtune.model.config import EngineIdentity
from lsmtune.model.request import PairMethod
from lsmtune.study.loop import tune
from lsmtune.study.observer import TuneResult
from lsmtune.study.spec import Spec
from lsmtune.study.start import open_study
from patience import PATIENCE_S

TICK_S = 0.1


class LocalHost:
    """A host that is a thread of this process.

    `silent`: while it is set, nothing that the host says is heard; its answers come when it is
    cleared. `on_trial` is called before each of its runs of a trial, with how many these are.
    """

    def __init__(self, name: str, worker: Worker) -> None:
        self.name = name
        self.silent = threading.Event()
        self.alive = True
        self.on_trial: Callable[[int], object] = lambda _count: None
        self._trials = 0
        self._worker = worker

    def facts(self, engine: EngineIdentity) -> HostFacts:
        """See `Host`."""
        return self._worker.facts(engine)

    def submit(self, token: int, work: Work) -> Future[Answer]:
        """See `Host`."""
        if work.requests and work.requests[0].trial is not None:
            self._trials += 1
            self.on_trial(self._trials)
        future: Future[Answer] = Future()

        def perform() -> None:
            try:
                answer = self._worker.perform(token, work)
            except Exception as error:
                future.set_exception(HostLostError(str(error)))
                return
            while self.silent.is_set():
                time.sleep(TICK_S)
            if self.alive:
                future.set_result(answer)
            else:
                future.set_exception(HostLostError("its process was killed"))

        threading.Thread(target=perform, daemon=True, name=f"host {self.name}").start()
        return future

    def poll(self, token: int) -> Sequence[Message]:
        """See `Host`."""
        if self.silent.is_set() or not self.alive:
            raise HostLostError("it says nothing any more")
        return self._worker.poll(token)

    def cancel(self, token: int, number: int) -> None:
        """See `Host`."""
        self._worker.cancel(token, number)

    def give_up(self) -> None:
        """See `Host`: its worker goes on, as that of a host that cannot be reached."""

    def close(self) -> None:
        """Let the folder go."""
        self._worker.close()


class LocalFleet:
    """Hosts of this process; `add` may be called while a study runs."""

    def __init__(self, hosts: Sequence[LocalHost]) -> None:
        self._new = list(hosts)
        self._all = list(hosts)
        self._lock = threading.Lock()

    def add(self, host: LocalHost) -> None:
        """Another host came."""
        with self._lock:
            self._new.append(host)
            self._all.append(host)

    def hosts(self) -> Sequence[Host]:
        """See `Fleet`."""
        with self._lock:
            new, self._new = self._new, []
        return new

    def close(self) -> None:
        """See `Fleet`."""
        for host in self._all:
            host.close()


def speed(options: object) -> float:
    return default_speed(dict(options))  # type: ignore[call-overload]


def local_host(path: Path, name: str, **runner: object) -> LocalHost:
    made = SimulatedRunner(speed, engine=ENGINE, **runner)  # type: ignore[arg-type]
    return LocalHost(name, Worker(path / f"host-{name}", made))


def together(hosts: Sequence[LocalHost]) -> LocalFleet:
    """A fleet in which no host begins a second trial before each has measured one.

    Else one would measure all of them while the machine keeps the thread of another waiting.
    """
    each_had_one = threading.Barrier(len(hosts), timeout=PATIENCE_S)

    def meet(count: int) -> None:
        if count == 2:
            each_had_one.wait()

    for host in hosts:
        host.on_trial = meet
    return LocalFleet(hosts)


def hosts_of(
    path: Path, hosts: int, effect: Callable[[int], float] = lambda _: 1.0
) -> list[LocalHost]:
    """Hosts a, b, ...; each with a file `0.jsonl`, `1.jsonl`, ... of its runs in `path`."""
    return [
        local_host(path, chr(97 + n), run_s=0.02, effect=effect(n), log=path / f"{n}.jsonl")
        for n in range(hosts)
    ]


def fleet_of(path: Path, hosts: int) -> LocalFleet:
    """A fleet of `hosts_of`."""
    return LocalFleet(hosts_of(path, hosts))


def tuned_on(
    spec: Spec,
    folder: Path,
    fleet: Fleet,
    observer: Recorder | None = None,
    stop: threading.Event | None = None,
    like: Runner | None = None,
    clock: Clock = time.monotonic,
) -> tuple[TuneResult, FleetParts]:
    """One session of a fleet; what its hosts are is what this machine is.

    Its pairs are of whole runs: a simulated runner has no slices.
    """
    spec = replace(spec, proof=replace(spec.proof, method=PairMethod.WHOLE))
    observer = observer or Recorder()
    runner = like or SimulatedRunner(speed, engine=ENGINE)
    parts = FleetParts(fleet, host_facts(ENGINE, runner, folder.parent), look_s=0.0)
    try:
        with open_study(folder, spec) as opened:
            result = tune(
                *(spec, opened, runner, ENGINE, observer),
                stop=stop or observer.stop,
                clock=clock,
                make=partial(FleetTuning, parts),
            )
        return result, parts
    finally:
        fleet.close()
