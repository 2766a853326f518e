"""Studies of a fleet on a recorded landscape: hours of 1, 4 and 8 hosts in seconds, many seeds.

    .venv/bin/python benchmarks/landscape/on_hosts.py docs/benchmarks/landscape/*.jsonl \
        --seeds 12 --trials 60 --sampler random --kinds equal effects \
        --output docs/benchmarks/fleet/landscape.jsonl
    .venv/bin/python benchmarks/landscape/on_hosts.py --table docs/benchmarks/fleet/landscape.jsonl

The study is the fleet's own code: `FleetTuning` with its leases, anchors, repeats and proof. What a
run shows and how long it takes is that of the surrogate of `replay.py`, and the clock is simulated.
Every study has as many trials, however many hosts it has.

Each seed has eight hosts. With `effects` each has a factor to its speed, lognormal with a standard
deviation of 20 %, and one of the eight is twice as slow again. A factor divides the time of a run
as it multiplies the value. A study on fewer hosts has the first of the eight, in the seed's order.

A line of the output is one study: the simulated seconds until the trial that counts as the best
has 95 % of the landscape's best value, and until it has 95 % of the best of the study's own trials,
each for good (null: not so); and the true value of what is recommended, over these two. With
`--sampler random` all studies of a seed try the same configurations, whatever their hosts: then two
recommendations differ by how the trials are judged, and by nothing else.
"""

from __future__ import annotations

import argparse
import heapq
import itertools
import json
import math
import statistics
import sys
import tempfile
import threading
from collections import defaultdict
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

sys.path.append(str(Path(__file__).resolve().parents[1] / "fleet"))

import numpy as np
from optuna.storages import InMemoryStorage
from record import read_rows
from replay import Landscape, landscape_of
from simulated_hosts import Hosts, SimulatedRunner

from lsmtune.driver.messages import Message
from lsmtune.experiment.folder import StudyFolder
from lsmtune.experiment.store import Role
from lsmtune.fleet.head import Ended, Head, Member, Step
from lsmtune.fleet.host import Answer, HostFacts, Work
from lsmtune.fleet.tuning import FleetParts, FleetTuning
from lsmtune.model.config import Build, EngineIdentity
from lsmtune.stats.intervals import mean_interval
from lsmtune.study.loop import tune
from lsmtune.study.observer import TuneObserver
from lsmtune.study.stored import trial_runs
from workloads import UNIT, Options, accepts, default_of, problem_of, study_of

HOSTS = 8
EFFECT_SD, SLOW = 0.20, 0.5
WITHIN = 1.05
SAME = 0.02  # two recommendations are alike where their true values differ by less
KINDS = ("equal", "effects")
ENGINE = EngineIdentity("rocksdb", "10.10.1", None, Build.RELEASE)


class Surface:
    """A landscape as a function of the options of a run: the logarithm of the value, and seconds.

    `log_best` is the best value of 20,000 configurations that the memory holds.
    """

    def __init__(self, landscape: Landscape) -> None:
        self.name, self.noise_sd = landscape.name, landscape.noise_sd
        self._landscape = landscape
        self._default = default_of(problem_of(landscape.name, landscape.version))
        self._known: dict[str, tuple[float, float]] = {}
        drawn = UNIT.sample(np.random.default_rng(1), 20_000)
        values = landscape.log_value(UNIT.distance_features(drawn))
        held = (
            float(values[index])
            for index in np.argsort(-values)
            if not accepts(self.name, UNIT.values_at(drawn[index]))
        )
        self.log_best = next(held)

    def __call__(self, options: Options) -> tuple[float, float]:
        """Of a configuration; what it does not name has its default."""
        key = str(sorted(options.items()))
        if key not in self._known:
            values = {name: options.get(name, value) for name, value in self._default.items()}
            self._known[key] = self._landscape.at(values)
        return self._known[key]


# --- The fleet, and its clock.


class Timeline:
    """A clock that goes on when all hosts measure, to the moment at which the first one ends."""

    def __init__(self) -> None:
        self.now_s = 0.0
        self.wake: Callable[[], None] = lambda: None
        self._lock = threading.Lock()
        self._ends: list[tuple[float, int, Future[Answer], Answer]] = []
        self._count = 0

    def clock(self) -> float:
        """Simulated seconds since the study began."""
        return self.now_s

    def add(self, seconds: float, future: Future[Answer], answer: Answer) -> None:
        """`future` becomes `answer` after so many seconds."""
        with self._lock:
            self._count += 1
            heapq.heappush(self._ends, (self.now_s + seconds, self._count, future, answer))
        self.wake()

    def under_way(self) -> int:
        """How many hosts measure."""
        with self._lock:
            return len(self._ends)

    def advance(self) -> None:
        """To the end of the next run."""
        with self._lock:
            self.now_s, _, future, answer = heapq.heappop(self._ends)
        future.set_result(answer)


class TimelineHead(Head):
    """A Head that lets the clock go on where all its hosts wait for the end of a run."""

    def __init__(self, folder: StudyFolder, timeline: Timeline) -> None:
        super().__init__(folder)
        self._timeline = timeline
        self._busy = 0
        # A run that begins ends the wait for what the threads ask for.
        timeline.wake = lambda: self._events.put(lambda: None)

    def start(self, member: Member, step: Step) -> None:
        """See `Head`."""
        self._busy += 1
        super().start(member, step)

    def attend(self, timeout_s: float) -> Ended | None:
        """See `Head`. A host's thread measures, is about to ask for something, or has ended."""
        if self._timeline.under_way() == self._busy:
            self._timeline.advance()
        ended = super().attend(timeout_s)
        self._busy -= ended is not None
        return ended


class TimelineTuning(FleetTuning):
    """A FleetTuning with such a head."""

    def __init__(self, timeline: Timeline, parts: FleetParts, *args: Any) -> None:
        super().__init__(parts, *args)
        self._head = TimelineHead(self._folder, timeline)


class SurfaceHost:
    """A host whose runs are those of a surface, times its `effect`, with noise of its own."""

    def __init__(
        self, name: str, surface: Surface, timeline: Timeline, effect: float, seed: int
    ) -> None:
        self.name = name
        self._surface, self._timeline, self._effect = surface, timeline, effect
        self._rng = np.random.default_rng(seed)

    def facts(self, engine: EngineIdentity) -> HostFacts:  # noqa: ARG002
        """All are the same."""
        return HostFacts({}, {})

    def submit(self, token: int, work: Work) -> Future[Answer]:  # noqa: ARG002
        """See `Host`."""
        future: Future[Answer] = Future()
        measured, seconds = [], 0.0
        for request in work.requests:
            log_value, run_s = self._surface(request.config.options)
            effect = self._effect * math.exp(self._rng.normal() * self._surface.noise_sd)
            value = math.exp(log_value) * effect
            runner = SimulatedRunner(lambda _, value=value: value, noise=0.0, engine=ENGINE)
            measured.append(replace(runner.run(request), elapsed_s=run_s / self._effect))
            seconds += run_s / self._effect
        self._timeline.add(seconds, future, Answer(tuple(measured)))
        return future

    def poll(self, token: int) -> Sequence[Message]:  # noqa: ARG002
        """Nothing."""
        return ()

    def cancel(self, token: int, number: int) -> None:
        """Its runs are as good as over."""

    def give_up(self) -> None:
        """Nothing."""


# --- One study.


class MemoryFolder(StudyFolder):
    """Optuna's part is in memory: its SQL is most of what a simulated trial costs."""

    def _optuna_storage(self) -> Any:
        if not hasattr(self, "_memory"):
            self._memory = InMemoryStorage()
        return self._memory


class Best(TuneObserver):
    """When which trial became the best."""

    def __init__(self, timeline: Timeline) -> None:
        self._timeline = timeline
        self.changes: list[tuple[float, int]] = []
        self.search_s = math.inf

    def best_changed(self, trial: int, value: float, ratio_to_baseline: float | None) -> None:  # noqa: ARG002
        """See `TuneObserver`."""
        self.changes.append((self._timeline.now_s, trial))

    def search_finished(self, reason: str) -> None:  # noqa: ARG002
        """See `TuneObserver`."""
        self.search_s = self._timeline.now_s


def effects_of(seed: int, kind: str) -> list[float]:
    """The factor of each of the eight hosts of `seed`."""
    if kind != "effects":
        return [1.0] * HOSTS
    rng = np.random.default_rng([seed, 20])
    effects = np.exp(EFFECT_SD * rng.normal(size=HOSTS))
    effects[rng.integers(HOSTS)] *= SLOW
    return [float(effect) for effect in effects]


def study(
    surface: Surface, kind: str, hosts: int, seed: int, trials: int, sampler: str
) -> dict[str, Any]:
    """One study: `kind` is "equal" or "effects"."""
    timeline, effects = Timeline(), effects_of(seed, kind)
    made = [
        SurfaceHost(
            f"h{n}", surface, timeline, effects[n], 1000 * seed + n + 500 * (kind != "equal")
        )
        for n in range(hosts)
    ]
    observer, parts = Best(timeline), FleetParts(Hosts(made), HostFacts({}, {}), look_s=0.0)
    with tempfile.TemporaryDirectory(prefix="landscape-") as name:
        spec = study_of(surface.name, sampler, trials, seed)
        with MemoryFolder.create_or_resume(
            *(Path(name) / "study", spec.comparable_parts()),
            text=spec.text,
            directions=spec.goal.directions,
        ) as folder:
            runner = SimulatedRunner(lambda _: 1.0, engine=ENGINE)
            known = (spec, folder, runner, ENGINE, observer)
            make = partial(TimelineTuning, timeline, parts)
            result = tune(*known, stop=threading.Event(), clock=timeline.clock, make=make)
            rows = folder.measurements.all()
    verdict = result.verdict
    if result.best is None or verdict is None:
        raise SystemExit(f"{surface.name}, seed {seed}: no trial ended well")
    configs = {number: trial.config for number, trial in trial_runs(rows).items()}
    truths = {number: surface(config.options)[0] for number, config in configs.items()}

    def reached_s(log_best: float) -> float | None:
        """Since when the best trial is within 95 % of `log_best`, for good."""
        since_s = None
        for at_s, number in observer.changes:
            good = log_best - truths[number] <= math.log(WITHIN)
            since_s = None if not good else at_s if since_s is None else since_s
        return since_s

    log_tried, log_value = max(truths.values()), surface(result.best.options)[0]
    searched = [row for row in rows if row.role is Role.TRIAL]
    return {
        "workload": surface.name,
        "kind": kind,
        "hosts": hosts,
        "seed": seed,
        "sampler": sampler,
        "trials": result.trials,
        "runs": len(rows),
        "repeats": len(searched) - result.trials,
        "effects": [round(effect, 4) for effect in effects[:hosts]],
        "reached_s": reached_s(surface.log_best),
        "reached_tried_s": reached_s(log_tried),
        "search_s": observer.search_s,
        "all_s": timeline.now_s,
        "share_of_best": math.exp(log_value - surface.log_best),
        "share_of_tried": math.exp(log_value - log_tried),
        "verdict": verdict.outcome.value,
        "ratio": verdict.ratio,
        "unstable": "unstable" in verdict.why,
    }


# --- All of them, and what they say.


def table(lines: Sequence[dict[str, Any]]) -> str:
    """Markdown: one line for each landscape, kind and number of hosts."""
    columns = (
        "landscape, hosts",
        "kind",
        "median search, s",
        "95 % of the landscape's best: seeds, median s",
        "95 % of the best tried: seeds, median s",
        "recommended over the best tried: mean, least",
        "recommended over that on equal hosts",
        f"within {100 * SAME:.0f} %",
        "unstable",
    )
    text, pooled = [f"| {' | '.join(columns)} |", f"|{'---|' * len(columns)}"], []
    groups: dict[tuple[str, int, str], dict[int, dict[str, Any]]] = defaultdict(dict)  # by seed
    for line in lines:
        groups[line["workload"], line["hosts"], line["kind"]][line["seed"]] = line
    for name in dict.fromkeys(line["workload"] for line in lines):
        of_several: list[float] = []
        for hosts in sorted({hosts for workload, hosts, _ in groups if workload == name}):
            equal = groups[name, hosts, "equal"]
            for kind in KINDS:
                if not (own := groups[name, hosts, kind]):
                    continue
                shares = [row["share_of_tried"] for row in own.values()]
                # Of the logarithms of the recommended values.
                differences = [
                    math.log(row["share_of_best"] / equal[seed]["share_of_best"])
                    for seed, row in own.items()
                    if seed in equal and kind != "equal"
                ]
                of_several += differences if hosts > 1 else []
                alike = sum(abs(difference) < SAME for difference in differences)
                cells = [
                    *(f"{name}, {hosts}", kind),
                    f"{statistics.median(row['search_s'] for row in own.values()):,.0f}",
                    _times([row["reached_s"] for row in own.values()]),
                    _times([row["reached_tried_s"] for row in own.values()]),
                    f"{100 * statistics.fmean(shares):.1f} %, {100 * min(shares):.1f} %",
                    _percent(differences),
                    f"{alike} of {len(differences)}" if differences else "",
                    str(sum(row["unstable"] for row in own.values())),
                ]
                text.append(f"| {' | '.join(cells)} |")
        pooled.append(f"{name}, all of several hosts: effects over equal: {_percent(of_several)}")
    return "\n".join([*text, "", *pooled])


def _times(times_s: Sequence[float | None]) -> str:
    """How many there are, and their median, where one that is not counts as endless."""
    median_s = statistics.median(math.inf if each is None else each for each in times_s)
    known = sum(each is not None for each in times_s)
    return f"{known} of {len(times_s)}" + (f", {median_s:,.0f}" if math.isfinite(median_s) else "")


def _percent(logs: Sequence[float]) -> str:
    """The mean, and its interval where there are two or more."""
    if len(logs) < 2:
        return ""
    found = mean_interval(logs)
    mean, low, high = (100 * math.expm1(v) for v in (found.mean, found.low, found.high))
    return f"{mean:+.1f} % ({low:+.1f} to {high:+.1f})"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("raw", type=Path, nargs="*")
    parser.add_argument("--output", type=Path)
    parser.add_argument("--table", type=Path, help="show what a file of studies says")
    parser.add_argument("--hosts", type=int, nargs="+", default=[1, 4, 8])
    parser.add_argument("--kinds", nargs="+", choices=KINDS, default=KINDS)
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--trials", type=int, default=160)
    parser.add_argument("--sampler", default="auto")
    arguments = parser.parse_args()
    surfaces = [Surface(landscape_of(read_rows(raw))) for raw in arguments.raw]
    for seed, surface in itertools.product(range(arguments.seeds), surfaces):
        for hosts, kind in itertools.product(arguments.hosts, arguments.kinds):
            found = study(surface, kind, hosts, seed, arguments.trials, arguments.sampler)
            line = json.dumps(found)
            print(line, flush=True)
            if arguments.output is not None:
                with arguments.output.open("a") as file:
                    file.write(line + "\n")
    if arguments.table is not None:
        print(table([json.loads(line) for line in arguments.table.read_text().splitlines()]))


if __name__ == "__main__":
    main()
