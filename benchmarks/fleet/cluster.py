"""A fleet on this machine: Ray's daemons as `lsmtune worker` starts them, each host simulated."""

from __future__ import annotations

import json
import os
import secrets
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from functools import partial
from pathlib import Path

os.environ.setdefault("RAY_AUTH_MODE", "token")
os.environ.setdefault("RAY_AUTH_TOKEN", secrets.token_hex(32))
os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")

from network import Network
from simulated_hosts import SimulatedRunner, hill

from lsmtune.cli.worker import own_address, ray_arguments
from lsmtune.driver.runner import Runner
from lsmtune.errors import LsmtuneError
from lsmtune.fleet.host import Fleet, host_facts
from lsmtune.fleet.on_ray import DIRECTORY, RayFleet
from lsmtune.fleet.tuning import FleetParts, FleetTuning
from lsmtune.model.config import Build, EngineIdentity
from lsmtune.study.build import parse_spec
from lsmtune.study.loop import tune
from lsmtune.study.observer import TuneObserver, TuneResult
from lsmtune.study.start import open_study

ENGINE = EngineIdentity("memory", "1.0", None, Build.RELEASE)
STUDY = """\
version: 1
name: simulated
engine: {{name: rocksdb}}
workload: {{name: fillrandom, num: 1000}}
space:
  write_buffer_size: {{type: int, low: 2MiB, high: 64MiB, step: 1MiB, default: 2MiB}}
  level0_file_num_compaction_trigger: {{type: int, low: 2, high: 64, default: 4}}
sampler: {{name: random}}
budget: {{trials: {trials}}}
proof: {{pairs: 6}}
noise: {{calibration: 0, anchors: 0, repeats: 1}}
"""

BEYOND = "192.0.2.1:9"  # an address of nobody: Ray does not take a loopback
# A session of its own has a priority of its own, too, where the kernel groups processes so.
_LOW = ["sh", "-c", '(echo 10 >/proc/self/autogroup) 2>&-; exec nice -n 19 "$0" "$@"']
# Of two nodes that begin on one machine at once, one may end: they look for free ports alike.
_APART_S = 3.0


class Cluster:
    """A context with a head and nodes, all of which are ended when it is left.

    With a `network` each has a namespace of its own there; else they share this machine's. They
    have a low priority.
    """

    def __init__(self, base: Path, port: int, network: Network | None = None) -> None:
        self.base, self.port, self.network = base, port, network
        self.address = own_address(BEYOND) if network is None else network.add("head")
        self.daemons: dict[str, subprocess.Popen[bytes]] = {}
        self._addresses = {"head": self.address}
        self._started = 0

    @property
    def join(self) -> str:
        """HOST:PORT."""
        return f"{self.address}:{self.port}"

    def start(self, name: str) -> None:
        """One more: `head`, or a host of that name."""
        if name not in self._addresses:
            new = self.address if self.network is None else self.network.add(name)
            self._addresses[name] = new
        join, agent = None if name == "head" else self.join, []
        if self.network is None:
            if self._started > 1:
                time.sleep(_APART_S)
            # Of one machine's nodes each has an agent, which by default all listen on one port.
            self._started += 1
            agent = [f"--dashboard-agent-listen-port={self.port + self._started}"]
        arguments = ray_arguments(join, self._addresses[name], self.port, name)
        ray = [sys.executable, "-m", "ray.scripts.scripts", *arguments, *agent]
        self.daemons[name] = subprocess.Popen(
            self.on(name, [*_LOW, *ray]),
            env=os.environ | {DIRECTORY: str(self.base / "hosts")},
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )

    def on(self, name: str, command: list[str]) -> list[str]:
        """`command` as it is run on the host of that name."""
        return command if self.network is None else self.network.inside(name, command)

    def start_again(self) -> None:
        """Whatever has ended."""
        for name in [n for n, daemon in self.daemons.items() if daemon.poll() is not None]:
            self.start(name)

    def __enter__(self) -> Cluster:
        self.start("head")
        time.sleep(5.0)
        return self

    def __exit__(self, *_error: object) -> None:
        for daemon in reversed(self.daemons.values()):
            daemon.terminate()
        for daemon in self.daemons.values():
            try:
                daemon.wait(45.0)
            except subprocess.TimeoutExpired:
                daemon.kill()


def fleet_at(address: str, runner: Runner) -> RayFleet:
    """Connects to it, once it answers."""
    until_s = time.monotonic() + 600.0
    while True:
        try:
            return RayFleet(address, runner)
        except LsmtuneError:
            if time.monotonic() > until_s:
                raise
            time.sleep(1.0)


def simulated(run_s: float, log: Path) -> SimulatedRunner:
    """A run of `run_s` seconds, noted in `log`."""
    return SimulatedRunner(hill, run_s=run_s, engine=ENGINE, log=log)


class Warnings(TuneObserver):
    """Keeps what the user would be told, with its time in the file `log`.

    Ends the study with its search where `search_only`.
    """

    def __init__(self, log: Path, *, search_only: bool) -> None:
        self.told: list[str] = []
        self._log = log
        self.stop = threading.Event()
        self._search_only = search_only

    def warning(self, text: str) -> None:
        """See `Observer`."""
        self.told.append(text)
        with self._log.open("a") as file:
            file.write(json.dumps({"unix_s": time.time(), "text": text}) + "\n")

    def search_finished(self, reason: str) -> None:
        """See `TuneObserver`."""
        self.told.append(reason)
        if self._search_only:
            self.stop.set()


def tuned(
    base: Path, fleet: Fleet, runner: Runner, *, trials: int, search_only: bool = False
) -> tuple[TuneResult, FleetParts, Sequence[str]]:
    """One session of a study in `base / "study"`."""
    spec = parse_spec(STUDY.format(trials=trials), base / "study.yaml")
    parts = FleetParts(fleet, host_facts(ENGINE, runner, base), look_s=1.0)
    observer = Warnings(base / "told.jsonl", search_only=search_only)
    with open_study(base / "study", spec) as folder:
        make = partial(FleetTuning, parts)
        known = (spec, folder, runner, ENGINE, observer)
        result = tune(*known, stop=observer.stop, make=make)
    return result, parts, observer.told
