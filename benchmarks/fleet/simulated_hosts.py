"""Simulated hosts: a runner that sleeps in the place of an engine."""

from __future__ import annotations

import json
import math
import os
import random
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from lsmtune.driver.messages import Message
from lsmtune.fleet.host import Host
from lsmtune.model.config import EngineIdentity, OptionValue
from lsmtune.model.measurement import Measurement, Outcome, PhaseMeasurement, RunError
from lsmtune.model.request import RunRequest

_TICK_S = 0.1


def hill(options: Mapping[str, OptionValue]) -> float:
    """Operations per second: the most with a write buffer of 16 MiB, half of that at 0 and 32."""
    away = float(options.get("write_buffer_size", 2 << 20)) / (16 << 20) - 1.0
    return 150_000.0 / (1.0 + away**2)


@dataclass
class SimulatedRunner:
    """A run that sleeps `run_s` seconds, and then has the throughput that `speed` says.

    `effect` multiplies it, as a faster or slower host does; `noise` is the standard deviation of
    its logarithm from run to run. What a run comes to follows from its seed and options alone.
    `log` is a file that gets a line when a run begins, about every tenth of a second while it
    lasts, and when it ends, by the wall clock.
    """

    speed: Callable[[Mapping[str, OptionValue]], float]
    run_s: float = 0.0
    effect: float = 1.0
    noise: float = 0.01
    log: Path | None = None
    engine: EngineIdentity = field(default_factory=lambda: EngineIdentity("memory", "1.0"))

    def run(
        self,
        request: RunRequest,
        on_message: Callable[[Message], None] | None = None,  # noqa: ARG002
        cancel: threading.Event | None = None,
    ) -> Measurement:
        """See `Runner`."""
        began_unix_s, until_s = time.time(), time.monotonic() + self.run_s
        cancel = cancel or threading.Event()
        self._note("began", request)
        while (left_s := until_s - time.monotonic()) > 0 and not cancel.is_set():
            time.sleep(min(left_s, _TICK_S))
            self._note("lasts", request)
        chance = random.Random(f"{request.seed} {sorted(request.config.options.items())}")
        chance.random()  # so that the noise of a seed stays what it was
        outcome = Outcome.CANCELLED if cancel.is_set() else Outcome.OK
        self._note(outcome.value, request)
        speed = self.speed(request.config.options)
        value = speed * self.effect * math.exp(chance.gauss(0.0, self.noise))
        last = request.workload.phases[-1]
        of = {"name": last.name, "kind": last.kind.value, "operation": last.name}
        return simulated_run(
            *(request, self.engine, outcome),
            simulated_phase(value, **of, threads=last.threads),
            began_unix_s=began_unix_s,
            elapsed_s=self.run_s,
        )

    def _note(self, what: str, request: RunRequest) -> None:
        if self.log is None:
            return
        line = {"what": what, "pid": os.getpid(), "unix_s": time.time(), "seed": request.seed}
        more = {"trial": request.trial, "directory": str(request.directory)}
        with self.log.open("a") as file:
            file.write(json.dumps({**line, **more}) + "\n")


class Hosts:
    """A fleet whose hosts are all there from the beginning."""

    def __init__(self, hosts: Sequence[Host]) -> None:
        self._new = hosts

    def hosts(self) -> Sequence[Host]:
        """Once."""
        new, self._new = self._new, ()
        return new

    def close(self) -> None:
        """Nothing."""


def simulated_phase(value: float, **figures: Any) -> PhaseMeasurement:
    """A phase of 1000 writes with `value` operations a second; `figures` in place of its own."""
    phase = PhaseMeasurement(
        *("fillrandom", "measure", "fillrandom", 1, 1000),
        elapsed_s=1000 / value,
        drain_s=0.0,
        throughput_ops_s=value,
        sustained_throughput_ops_s=value,
        cut_short=False,
        user_bytes_written=1000,
        user_bytes_read=0,
        rss_bytes_max=1,
        database_bytes=1,
        started_unix_us=0,
        finished_unix_us=1,
        stall_s=0.0,
    )
    return replace(phase, **figures)


def simulated_run(
    request: RunRequest,
    engine: EngineIdentity,
    outcome: Outcome,
    phase: PhaseMeasurement,
    *,
    began_unix_s: float,
    elapsed_s: float,
) -> Measurement:
    """A run of `request` that ended so: with its `phase`, or with an error."""
    failed = outcome is not Outcome.OK
    return Measurement(
        outcome=outcome,
        engine=engine,
        options=request.config.engine_options(),
        workload=request.workload.name,
        seed=request.seed,
        started_unix_s=began_unix_s,
        elapsed_s=elapsed_s,
        phases=() if failed else (phase,),
        error=RunError(outcome.value, f"made to end {outcome.value}") if failed else None,
    )
