"""What a study costs beside its runs as it grows: asking, storing, loading, drawing its report.

    .venv/bin/python benchmarks/scale/growth.py --trials 1000 10000 --output growth.jsonl
    .venv/bin/python benchmarks/scale/growth.py --table growth.jsonl

A study of RocksDB's ten basic options on a simulated runner, whose rows have the size of real ones
(7 KB each). It begins with twenty real trials of the study's loop. The others, one anchor after
every ten of them, are written to the two databases directly, since nobody waits for 10,000 trials
of the loop. Then `tune` goes on with it: what it takes to begin again is one figure, each of the
next trials another, with everything between the end of one run and the begin of the next. Then the
page of the study is drawn. Judging and asking are also measured alone, in memory, on more trials.

Processor time of this process (`time.process_time`), not the wall's: the machine is shared. Each
figure is one line of the output, with the largest memory of the process so far; what is there
already is not measured again. `--directory` is best a file system in memory.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import random
import resource
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import cache
from itertools import pairwise
from pathlib import Path
from statistics import median
from typing import Any

sys.path.append(str(Path(__file__).resolve().parents[1] / "fleet"))

import numpy as np
from hdrh.histogram import HdrHistogram
from optuna.trial import FrozenTrial, TrialState, create_trial
from simulated_hosts import simulated_phase

from lsmtune.dashboard.watch import Watched
from lsmtune.driver.messages import Message
from lsmtune.experiment.folder import StudyFolder
from lsmtune.experiment.schedule import Arm, Slot
from lsmtune.experiment.store import Role, StoredMeasurement
from lsmtune.model.config import Build, Config, EngineIdentity, OptionValue
from lsmtune.model.measurement import Interval, Latency, Measurement, Outcome
from lsmtune.model.request import RunRequest
from lsmtune.model.workload import Workload
from lsmtune.report.analysis import StudyAnalysis
from lsmtune.report.importance import Method
from lsmtune.report.render import to_html
from lsmtune.report.source import read_study
from lsmtune.report.study import study_document
from lsmtune.search.sampler import Suggestion, suggestion_of
from lsmtune.search.unit_space import make_unit_space
from lsmtune.study.build import parse_spec
from lsmtune.study.judging import Observations
from lsmtune.study.loop import tune
from lsmtune.study.observer import TuneObserver
from lsmtune.study.spec import Spec
from lsmtune.study.start import baseline_config, candidate_config, make_searcher, open_study
from lsmtune.study.stored import Round, TrialRounds
from lsmtune.study.trials import TrialEnd

ENGINE = EngineIdentity("rocksdb", "10.10.1", None, Build.RELEASE)
STUDY = """\
version: 1
name: grown
engine: {{name: rocksdb}}
workload: {{name: fillrandom, num: 1000000}}
objective: {{metric: sustained_throughput_ops_s}}
space: rocksdb-basic
sampler: {{name: {sampler}}}
budget: {{trials: {trials}}}
noise: {{calibration: 0}}
limits: {{memory: 8GiB}}
databases: {{reuse: false}}
burst: true
seed: 1
"""
BEGUN = 20  # trials of the loop itself, before the others are written
ANCHOR_EVERY = 10
TIMED = 25  # trials of the loop, two anchors or three among them


# --- What plays the engine


@dataclass
class SimulatedRunner:
    """Knows at once what a run came to; a run takes `run_s` seconds of `clock`."""

    run_s: float = 10.0
    now_s: float = 0.0

    def clock(self) -> float:
        """The clock to give to the loop."""
        return self.now_s

    def run(
        self,
        request: RunRequest,
        on_message: Callable[[Message], None] | None = None,  # noqa: ARG002
        cancel: threading.Event | None = None,  # noqa: ARG002
    ) -> Measurement:
        """See `Runner`."""
        self.now_s += self.run_s
        return self.measured(request.config, request.seed)

    def measured(self, config: Config, seed: int) -> Measurement:
        """A run that ended well, as large on the disk as a real one."""
        rate = speed_of(config.options) * random.Random(seed).gauss(1.0, 0.02)
        latency = Latency(1_000_000, 8.0, 9000.0, _histogram(), **dict.fromkeys(_PERCENTILES, 9.0))
        steps = (Interval(k / 4, 0.25, 25_000, 25_000 * k, rate, 150_000_000) for k in range(1, 13))
        phase = simulated_phase(
            rate,
            operations=1_000_000,
            elapsed_s=self.run_s,
            drain_s=0.1,
            user_bytes_written=116_000_000,
            rss_bytes_max=200_000_000,
            database_bytes=74_000_000,
            latencies={"put": latency},
            intervals=tuple(steps),
            stall_s=0.1,
            flushes=30,
            compactions=12,
            **dict.fromkeys(_PERCENTILES, 9.0),
        )
        return Measurement(
            outcome=Outcome.OK,
            engine=ENGINE,
            options=config.engine_options(),
            workload="fillrandom",
            seed=seed,
            started_unix_s=1_795_226_400.0,
            elapsed_s=self.run_s,
            phases=(phase,),
        )


_PERCENTILES = [f"latency_us_{name}" for name in ("p50", "p95", "p99", "p999")]


def stored(role: Role, number: int | None, config: Config, run: Measurement) -> StoredMeasurement:
    """`run` as a row of trial `number`."""
    return StoredMeasurement(0, role, number, None, config, run, run.elapsed_s)


@cache
def _histogram() -> str:
    """One of some thousand latencies, as the driver stores it."""
    histogram, draws = HdrHistogram(1, 3_600_000_000_000, 3), random.Random(1)
    for _ in range(3000):
        histogram.record_value(int(5000 * draws.paretovariate(1.6)))
    return str(histogram.encode().decode())


def speed_of(options: dict[str, OptionValue]) -> float:
    """Operations per second: a hill in the logarithms of what is a number."""
    numbers = [float(v) for v in options.values() if isinstance(v, int | float) and v > 0]
    return 1e5 * math.exp(-sum((math.log2(number) % 5 - 2) ** 2 for number in numbers) / 60)


# --- A study of any size


def spec_of(path: Path, trials: int, sampler: str = "random") -> Spec:
    """The study at `path` with a budget of `trials`."""
    return parse_spec(STUDY.format(trials=trials, sampler=sampler), path / "study.yaml")


def grown(directory: Path, count: int) -> Path:
    """The folder of a study with `count` trials, which is made where it is missing."""
    path, part = directory / f"{count}.lsmtune", directory / f"{count}.part"
    if path.is_dir():
        return path
    shutil.rmtree(part, ignore_errors=True)
    spec, runner = spec_of(directory, count), SimulatedRunner()
    with open_study(part, spec) as folder:
        ended = Ended(BEGUN)
        tune(spec, folder, runner, ENGINE, ended, stop=ended.stop, clock=runner.clock)
        fill(spec, folder, runner, count)
    return part.rename(path)


def random_points(spec: Spec, count: int) -> Iterator[Suggestion]:
    """Configurations of the space, as quickly as can be."""
    unit_space = make_unit_space(spec.space)
    for point in unit_space.sample(np.random.default_rng(1), count):
        yield suggestion_of(spec.space, unit_space.decode(point))


def finished_trial(spec: Spec, drawn: Suggestion, value: float | None) -> FrozenTrial:
    """A trial of `drawn` that ended well."""
    known = spec.space.distributions()
    distributions = {name: known[name] for name in drawn.params}
    return create_trial(params=dict(drawn.params), distributions=distributions, value=value)


def fill(spec: Spec, folder: StudyFolder, runner: SimulatedRunner, count: int) -> None:
    """Adds random trials that ended well up to `count`, and their anchors."""
    store, baseline, draws = folder.measurements, baseline_config(spec), random.Random(1)
    first = len({row.trial for row in store.of(Role.TRIAL)})
    anchors = len(store.of(Role.ANCHOR))
    for number, drawn in enumerate(random_points(spec, count - first), first):
        if number % ANCHOR_EVERY == 0:
            run = runner.measured(baseline, draws.getrandbits(32))
            store.insert(replace(stored(Role.ANCHOR, None, baseline, run), repeat=anchors))
            anchors += 1
        config = candidate_config(spec, number, drawn.values)
        run = runner.measured(config, draws.getrandbits(32))
        store.insert(stored(Role.TRIAL, number, config, run))
        folder.begin_trial(finished_trial(spec, drawn, spec.goal.value([run])))


# --- The figures


@dataclass
class Ended(TuneObserver):
    """Stops a study after `trials` trials of this session, and times what each cost."""

    trials: int
    stop: threading.Event = field(default_factory=threading.Event)
    began_s: float = field(default_factory=time.process_time)
    resumed_s: float = 0.0
    each_s: list[float] = field(default_factory=list)
    asked_s: list[float] = field(default_factory=list)
    _last_s: float = 0.0

    def study_started(self, spec: Spec, resumed: int) -> None:  # noqa: ARG002
        """The folder is ready."""
        self.resumed_s = time.process_time() - self.began_s
        self._last_s = time.process_time()

    def run_started(self, place: Slot, arm: Arm, workload: Workload) -> None:  # noqa: ARG002
        """All before the run of a new trial was asking for it, and judging those before."""
        if place.role is Role.TRIAL and not place.repeat:
            self.asked_s.append(time.process_time() - self._last_s)

    def trial_finished(self, number: int, end: TrialEnd, *, best: bool) -> None:  # noqa: ARG002
        """All since the last one was for this one."""
        self.each_s.append(time.process_time() - self._last_s)
        self._last_s = time.process_time()
        if len(self.each_s) >= self.trials:
            self.stop.set()


@contextmanager
def copied(path: Path) -> Iterator[Path]:
    """A copy of a study that may be changed."""
    copy = path.with_suffix(f".{os.getpid()}")
    shutil.copytree(path, copy)
    try:
        yield copy
    finally:
        shutil.rmtree(copy)


def of_loop(path: Path, count: int, sampler: str) -> dict[str, Any]:
    """Going on with a study: to begin again, and each trial."""
    spec, runner = spec_of(path.parent, count + 10 * TIMED, sampler), SimulatedRunner()
    with copied(path) as copy:
        ended = Ended(TIMED)
        with open_study(copy, spec) as folder:
            tune(spec, folder, runner, ENGINE, ended, stop=ended.stop, clock=runner.clock)
    # The first one pays for imports, and for what is remembered later.
    return {"resume_s": ended.resumed_s, "trial_s": ended.each_s[1:], "ask_s": ended.asked_s[1:]}


def of_row(path: Path, count: int, repeat: int = 50) -> dict[str, Any]:
    """Storing a row."""
    spec, runner, took_s = spec_of(path.parent, count), SimulatedRunner(), []
    with copied(path) as copy, open_study(copy, spec) as folder:
        for number in range(count, count + repeat):
            config = candidate_config(spec, number, {})
            run = runner.measured(config, number)
            began_s = time.process_time()
            folder.measurements.insert(stored(Role.TRIAL, number, config, run))
            took_s.append(time.process_time() - began_s)
    return {"row_s": took_s[1:]}


def of_report(path: Path) -> dict[str, Any]:
    """Reading a study, and drawing its page."""
    began_s = time.process_time()
    with StudyFolder.open(path) as folder:
        records = read_study(folder)
    read_s = time.process_time()
    analysis = StudyAnalysis(records, Method.PED_ANOVA)
    analysed_s = time.process_time()
    page = to_html(study_document(analysis))
    drawn_s = time.process_time()
    return {
        "load_s": read_s - began_s,
        "analyse_s": analysed_s - read_s,
        "draw_s": drawn_s - analysed_s,
        "page_bytes": len(page.encode()),
    }


def of_page(path: Path) -> dict[str, Any]:
    """The live page: reading the study, and drawing it."""
    began_s = time.process_time()
    Watched("0", path).page()
    return {"live_page_s": time.process_time() - began_s}


def of_judging(count: int, hosts: int, repeat: int = 20) -> dict[str, Any]:
    """Judging a trial, and an anchor, of a study of `count` trials on so many hosts; in memory."""
    goal, draws = spec_of(Path(), 1).goal, random.Random(1)
    names = [f"host-{number}" if hosts > 1 else "" for number in range(hosts)]

    def run(row: int, host: str, value: float) -> Round:
        value *= draws.gauss(1.0, 0.02)
        return Round(row, row, Outcome.OK, 10.0, (value,), run_s=10.0, host=host)

    seen = Observations(goal)
    anchors = [run(row, host, 1e5) for row, host in enumerate(names)]
    rows = range(hosts, hosts + count + count // ANCHOR_EVERY)
    trials = []
    for row in rows:
        host, value = names[row % hosts], draws.gauss(1e5, 1e4)
        if row % (ANCHOR_EVERY + 1) == 0:
            anchors.append(run(row, host, 1e5))
        else:
            trials.append(TrialRounds(len(trials), Config({"x": row}), (run(row, host, value),)))
    seen.use_anchors(anchors)
    for trial in trials:
        seen.add_trial(trial)
    judged: dict[str, list[float]] = {"trial_s": [], "anchor_s": []}
    for number in range(len(trials), len(trials) + repeat):
        for kind in judged:
            row, host = rows.stop + 2 * number, draws.choice(names)
            began_s = time.process_time()
            if kind == "trial_s":
                one = TrialRounds(number, Config({"x": row}), (run(row, host, 1e5),))
                seen.add_trial(one)
            else:
                anchors.append(run(row, host, 1e5))
                seen.use_anchors(anchors)
            seen.judgement.next_repeat(3)
            seen.for_searcher()
            judged[kind].append(time.process_time() - began_s)
    return {kind: each[1:] for kind, each in judged.items()}


def of_asking(count: int, repeat: int = 12) -> dict[str, Any]:
    """Asking `auto` for trials after `count` of them; in memory."""
    spec, draws, trials = spec_of(Path(), 1, "auto"), random.Random(1), []
    for number, drawn in enumerate(random_points(spec, count)):
        value = speed_of(dict(drawn.values)) * draws.gauss(1.0, 0.02)
        trial = finished_trial(spec, drawn, value)
        trial.number = number
        trials.append(trial)
    searcher = make_searcher(spec, lambda _: "")
    began_s = time.process_time()
    searcher.restore(trials)
    restored_s, asked_s = time.process_time() - began_s, []
    del trials
    for _ in range(repeat):
        began_s = time.process_time()
        proposal = searcher.ask()
        asked_s.append(time.process_time() - began_s)
        searcher.tell(proposal.number, TrialState.COMPLETE, [speed_of(dict(proposal.values))])
    # The first one reads all trials.
    return {"restore_s": restored_s, "first_s": asked_s[0], "ask_s": asked_s[1:]}


FIGURES: dict[str, Callable[[Path, int], dict[str, Any]]] = {
    "row": of_row,
    "report": lambda path, _count: of_report(path),
    "live page": lambda path, _count: of_page(path),
    "judging, 1 host": lambda _path, count: of_judging(count, 1),
    "judging, 1,000 hosts": lambda _path, count: of_judging(count, 1000),
    "asking auto": lambda _path, count: of_asking(count),
    **{
        f"loop {sampler}": lambda path, count, name=sampler: of_loop(path, count, name)
        for sampler in ("random", "tpe", "auto", "forest", "gp")
    },
}


def measure(arguments: argparse.Namespace) -> None:
    """Adds to the output what is not there yet, each figure in a process of its own."""
    output: Path = arguments.output
    output.parent.mkdir(parents=True, exist_ok=True)
    lines = output.read_text().splitlines() if output.is_file() else []
    known = {(each["of"], each["trials"], each["code"]) for each in map(json.loads, lines)}
    for count in arguments.trials:
        for name in arguments.figures:
            if (name, count, arguments.code) in known:
                continue
            # Of its own: what one figure remembers is not for the next, and memory is told apart.
            command = [sys.executable, __file__, "--one", name, "--trials", str(count)]
            command += ["--directory", str(arguments.directory)]
            done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=False)
            if done.returncode:
                raise SystemExit(f"{name} at {count:,} trials failed")
            line = {"of": name, "trials": count, "code": arguments.code}
            line |= json.loads(done.stdout.splitlines()[-1])
            print(json.dumps(line), flush=True)
            with output.open("a") as file:
                file.write(json.dumps(line) + "\n")


def one(arguments: argparse.Namespace) -> None:
    """One figure, as a line of JSON."""
    (count,), name = arguments.trials, arguments.one
    in_memory = name.startswith(("judging", "asking"))
    path = arguments.directory if in_memory else grown(arguments.directory, count)
    found = FIGURES[name](path, count)
    kib = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    rounded = {
        key: [round(each, 5) for each in value] if isinstance(value, list) else round(value, 5)
        for key, value in found.items()
    }
    print(json.dumps({"load": round(os.getloadavg()[0], 1), "memory_mib": kib >> 10, **rounded}))


def table(path: Path, code: str) -> None:
    """Prints each figure by the number of trials, and the exponents between these."""
    found: dict[tuple[str, str], dict[int, float]] = {}
    for line in map(json.loads, path.read_text().splitlines()):
        for key, value in line.items():
            if line["code"] == code and (key.endswith("_s") or key.endswith(("bytes", "mib"))):
                middle = median(value) if isinstance(value, list) else value
                found.setdefault((line["of"], key), {})[line["trials"]] = middle
    sizes = sorted({size for each in found.values() for size in each})
    print("| figure | " + " | ".join(f"{size:,}" for size in sizes) + " | exponents |")
    print("|---|" + "---|" * (len(sizes) + 1))
    for (of, key), each in found.items():
        cells = [f"{each[size]:.3g}" if size in each else "not run" for size in sizes]
        known = [(size, each[size]) for size in sizes if each.get(size)]
        slopes = [f"{math.log(b / a) / math.log(m / n):.2f}" for (n, a), (m, b) in pairwise(known)]
        print(f"| {of}: {key} | " + " | ".join(cells) + f" | {', '.join(slopes)} |")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--trials", type=int, nargs="+", default=[1000, 10_000])
    parser.add_argument("--figures", nargs="+", default=list(FIGURES), choices=FIGURES)
    parser.add_argument("--directory", type=Path, default=Path("/dev/shm/lsmtune-scale"))
    parser.add_argument("--output", type=Path, default=Path("docs/benchmarks/scale/growth.jsonl"))
    parser.add_argument("--code", default="now", help="a name for the code that is measured")
    parser.add_argument("--one", help=argparse.SUPPRESS)
    parser.add_argument(
        "--table", type=Path, help="print what this file holds, and measure nothing"
    )
    arguments = parser.parse_args()
    arguments.directory.mkdir(parents=True, exist_ok=True)
    if arguments.table:
        table(arguments.table, arguments.code)
    elif arguments.one:
        one(arguments)
    else:
        measure(arguments)


if __name__ == "__main__":
    main()
