"""Fleets of simulated hosts in this process, and a way to tune on them."""

from __future__ import annotations

import threading
from collections.abc import Callable
from functools import partial
from pathlib import Path

from fake_runner import ENGINE, default_speed
from study_parts import Recorder

from lsmtune.driver.runner import Runner
from lsmtune.experiment.folder import StudyFolder
from lsmtune.fleet.host import Fleet, host_facts
from lsmtune.fleet.simulated import LocalFleet, LocalHost, SimulatedRunner
from lsmtune.fleet.tuning import FleetParts, FleetTuning
from lsmtune.fleet.worker import Worker
from lsmtune.study.loop import tune
from lsmtune.study.observer import TuneResult
from lsmtune.study.spec import Spec


def speed(options: object) -> float:
    return default_speed(dict(options))  # type: ignore[call-overload]


def local_host(path: Path, name: str, **runner: object) -> LocalHost:
    made = SimulatedRunner(speed, engine=ENGINE, **runner)  # type: ignore[arg-type]
    return LocalHost(name, Worker(path / f"host-{name}", made))


def fleet_of(path: Path, hosts: int, effect: Callable[[int], float] = lambda _: 1.0) -> LocalFleet:
    """Hosts a, b, ...; each with a file `a.jsonl` of its runs in `path`."""
    return LocalFleet(
        [
            local_host(path, chr(97 + n), run_s=0.02, effect=effect(n), log=path / f"{n}.jsonl")
            for n in range(hosts)
        ]
    )


def tuned_on(
    spec: Spec,
    folder: Path,
    fleet: Fleet,
    observer: Recorder | None = None,
    stop: threading.Event | None = None,
    like: Runner | None = None,
) -> tuple[TuneResult, FleetParts]:
    """One session of a fleet; what its hosts are is what this machine is."""
    observer = observer or Recorder()
    runner = like or SimulatedRunner(speed, engine=ENGINE)
    parts = FleetParts(fleet, host_facts(ENGINE, runner, folder.parent), look_s=0.0)
    try:
        with StudyFolder.create_or_resume(folder, spec) as opened:
            result = tune(
                *(spec, opened, runner, ENGINE, observer),
                stop=stop or observer.stop,
                make=partial(FleetTuning, parts),
            )
        return result, parts
    finally:
        fleet.close()
