"""A Runner without an engine, a known function of options and seed; an observer that remembers."""

from __future__ import annotations

import random
import sys
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

# What plays hosts and engines is a benchmark's, and no part of the package.
sys.path.append(str(Path(__file__).resolve().parents[2] / "benchmarks" / "fleet"))

from simulated_hosts import simulated_phase, simulated_run

from lsmtune.driver.messages import Hello, Message
from lsmtune.experiment.observer import Observer
from lsmtune.model.config import Build, EngineIdentity
from lsmtune.model.measurement import Measurement, Outcome, PhaseMeasurement, RunError
from lsmtune.model.request import RunRequest

ENGINE = EngineIdentity("memory", "1.0", None, Build.RELEASE)
MIB = 1 << 20
NEVER: Callable[[RunRequest], Outcome | None] = lambda _request: None  # noqa: E731


def default_speed(options: dict[str, object]) -> float:
    """Ops/s: best at 8 MiB, 1.5 times what 2 MiB (the engine's default) gives."""
    size = float(str(options.get("write_buffer_size", 2 * MIB))) / MIB
    return 100_000.0 * (1.0 + 0.5 * (1.0 - ((size - 8.0) / 6.0) ** 2))


@dataclass
class FakeRunner:
    """`fails` names the outcome of a run that does not end `ok`; `hangs` those that never end.

    A run takes `run_s` seconds of the wall and `fake_s` seconds of `clock`; of its phase `figures`
    are as they say.
    """

    speed: Callable[[dict[str, object]], float] = default_speed
    noise: float = 0.01
    fails: Callable[[RunRequest], Outcome | None] = NEVER
    hangs: Callable[[RunRequest], bool] = lambda _request: False
    run_s: float = 0.0
    fake_s: float = 1.0
    engine: EngineIdentity = ENGINE
    figures: Callable[[RunRequest], Mapping[str, float]] = lambda _request: {}
    requests: list[RunRequest] = field(default_factory=list)
    now_s: float = 0.0

    def clock(self) -> float:
        """The clock to give to the loop."""
        return self.now_s

    def run(
        self,
        request: RunRequest,
        on_message: Callable[[Message], None] | None = None,
        cancel: threading.Event | None = None,
    ) -> Measurement:
        """One run; a database is left in the directory for the caller to remove."""
        self.requests.append(request)
        (request.directory / "db").mkdir()
        (request.directory / "db" / "000004.log").write_text("keys")
        if on_message is not None:
            on_message(Hello(1, "fake"))
        cancel = cancel or threading.Event()
        if self.hangs(request):
            # Not `cancel.wait()`, which would not see that the study stops, or that the time is up.
            end_s = time.monotonic() + 600.0
            while not cancel.is_set() and time.monotonic() < end_s:
                time.sleep(0.005)
        elif self.run_s:
            time.sleep(self.run_s)
        self.now_s += self.fake_s
        outcome = Outcome.CANCELLED if cancel.is_set() else self.fails(request)
        return self._measurement(request, outcome or Outcome.OK)

    def _measurement(self, request: RunRequest, outcome: Outcome) -> Measurement:
        noise = random.Random(f"{request.seed} {request.config.options}").gauss(1.0, self.noise)
        value = self.speed(dict(request.config.options)) * noise
        began_unix_s = 1_795_226_400.0
        times = {"began_unix_s": began_unix_s, "elapsed_s": self.fake_s}
        measured = replace(phase(value), **self.figures(request))  # type: ignore[arg-type]
        return simulated_run(request, self.engine, outcome, measured, **times)


class Noisy(FakeRunner):
    """Runs flush 4 times, and each is off by a factor: log-normal of deviation `log_sd`."""

    def __init__(self, log_sd: float = 0.1, **named: Any) -> None:
        super().__init__(**named)
        self._log_sd = log_sd
        self._random = random.Random(1)

    def _measurement(self, request: RunRequest, outcome: Outcome) -> Measurement:
        found = super()._measurement(request, outcome)
        value = 1e5 * self._random.lognormvariate(0.0, self._log_sd)
        phases = tuple(replace(phase(value), flushes=4) for _ in found.phases)
        return replace(found, phases=phases)


class SpeedBySeed(FakeRunner):
    """Runs of some seeds are faster by a factor."""

    def __init__(self, factors: dict[int, float]) -> None:
        super().__init__()
        self._factors = factors

    def _measurement(self, request: RunRequest, outcome: Outcome) -> Measurement:
        found = super()._measurement(request, outcome)
        factor = self._factors.get(request.seed, 1.0)
        return replace(
            found, phases=tuple(phase(p.throughput_ops_s * factor) for p in found.phases)
        )


class Refusing(FakeRunner):
    """An engine without the option `name`."""

    def __init__(self, name: str) -> None:
        super().__init__(fails=lambda r: Outcome.INVALID if name in r.config.options else None)
        self._name = name

    def _measurement(self, request: RunRequest, outcome: Outcome) -> Measurement:
        found = super()._measurement(request, outcome)
        field = f"options.{self._name}"
        error = RunError("unknown_option", "no", field, self._name, None, ("nearest_one",))
        return found if found.error is None else replace(found, error=error)


def phase(value: float) -> PhaseMeasurement:
    """With a throughput that does not follow from its time."""
    return simulated_phase(value, elapsed_s=1.0)


class Recording(Observer):
    """Remembers what it was told; `stop` is set when it is told something that begins `stop_at`."""

    def __init__(self) -> None:
        self.told: list[tuple[object, ...]] = []
        self.stop = threading.Event()
        self.stop_at: tuple[object, ...] | None = None

    def _note(self, *what: object) -> None:
        self.told.append(what)
        if self.stop_at and self.stop_at == what[: len(self.stop_at)]:
            self.stop.set()

    def of(self, kind: str) -> list[tuple[object, ...]]:
        return [what[1:] for what in self.told if what[0] == kind]

    def names(self) -> list[object]:
        return [what[0] for what in self.told]

    @property
    def warnings(self) -> list[str]:
        return [str(text) for (text,) in self.of("warning")]

    def run_message(self, message: Message) -> None:
        self._note("run_message", message)

    def proof_started(self, pairs: int) -> None:
        self._note("proof_started", pairs)

    def warning(self, text: str) -> None:
        self._note("warning", text)
