"""Raw A/A pairs, run in every way that lsmtune knows, for `analyse.py` to compare.

    .venv/bin/python benchmarks/variance/collect.py --output docs/benchmarks/variance/pairs.jsonl

Both sides of a pair are the engine's defaults on the same seed, so whatever their ratio says is
noise. Each round runs, in an order that a coin decides, two pairs of whole runs (one in either
order, which together are an ABBA block), one pair of runs that are four times as long, one duet and
one pair in slices. Every line of the output is one pair; the file may be added to, and other work
on the machine is no trouble, because all ways meet the same of it.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

from lsmtune.driver.conversation import find_driver
from lsmtune.driver.library_facts import chosen_engine
from lsmtune.driver.messages import Message, Paused
from lsmtune.driver.native import NativeRunner
from lsmtune.driver.pair import run_pair
from lsmtune.model.config import Config, EngineIdentity
from lsmtune.model.measurement import Measurement, Outcome
from lsmtune.model.request import Limits, PairMethod, RunRequest, slices_for
from lsmtune.model.workload import Workload
from lsmtune.workloads.stated import make_workload

LIMITS = Limits(deadline_s=300.0, memory_bytes=8 << 30, disk_bytes=40 << 30)
LONGER = 4
# What `analyse.py` looks at.
OBSERVED = ("sustained_throughput_ops_s", "elapsed_s", "drain_s", "cpu_us_per_operation", "steal_s")

# Sizes that take a second or two on the machine of docs/benchmarks.
CASES: dict[str, tuple[str, str, dict[str, object]]] = {
    "rocksdb-fillrandom": ("rocksdb", "fillrandom", {"num": 400_000}),
    "rocksdb-readrandom": ("rocksdb", "readrandom", {"num": 100_000, "reads": 400_000}),
    "leveldb-fillrandom": ("leveldb", "fillrandom", {"num": 400_000}),
}


@dataclass(frozen=True)
class Way:
    """One way to run a pair: `longer` times as many operations, `swapped` for B before A."""

    name: str
    method: PairMethod
    longer: int = 1
    swapped: bool = False


WAYS = (
    Way("whole AB", PairMethod.WHOLE),
    Way("whole BA", PairMethod.WHOLE, swapped=True),
    Way("longer", PairMethod.WHOLE, longer=LONGER),
    Way("duet", PairMethod.DUET),
    Way("slices", PairMethod.SLICES),
)


def workload_of(case: str, longer: int) -> Workload:
    """The workload of `case`, its measured operations multiplied by `longer`."""
    _, name, parameters = CASES[case]
    size = "reads" if "reads" in parameters else "num"
    scaled = {**parameters, size: int(str(parameters[size])) * longer}
    return make_workload(name, scaled, case)


def run(case: str, way: Way, engine: EngineIdentity, seed: int, measure_s: float) -> dict[str, Any]:
    """One pair, as a line of the output; `measure_s` is how long a run measures, about."""
    workload = workload_of(case, way.longer)
    slices = slices_for(measure_s) if way.method is PairMethod.SLICES else 0
    runner = NativeRunner(find_driver())
    with tempfile.TemporaryDirectory(dir=Path.cwd()) as scratch:
        requests = []
        for side in ("first", "second"):
            directory = Path(scratch) / side
            directory.mkdir()
            requests.append(
                RunRequest(engine, Config(), workload, seed, directory, LIMITS, slices=slices)
            )
        pauses: tuple[list[Paused], list[Paused]] = ([], [])

        def on_message(arm: int, message: Message) -> None:
            if isinstance(message, Paused):
                pauses[arm].append(message)

        started_s = time.monotonic()
        measured: Sequence[Measurement]
        if way.method is PairMethod.WHOLE:
            measured = [runner.run(request) for request in requests]
        else:
            measured = run_pair(runner, requests[0], requests[1], way.method, on_message=on_message)
        wall_s = time.monotonic() - started_s
    first, second = (_side(*side) for side in zip(measured, pauses, strict=True))
    a, b = (second, first) if way.swapped else (first, second)
    return {
        "case": case,
        "way": way.name,
        "slices": slices,
        "wall_s": wall_s,
        "load": os.getloadavg()[0],
        "a": a,
        "b": b,
    }


def _side(measurement: Measurement, pauses: Sequence[Paused]) -> dict[str, Any]:
    if measurement.outcome is not Outcome.OK:
        raise SystemExit(f"a run ended {measurement.outcome}: {measurement.error}")
    phase = measurement.phases[-1]
    steps = _slices([pause for pause in pauses if pause.index == len(measurement.phases) - 1])
    return {name: getattr(phase, name) for name in OBSERVED} | {
        "steps": steps
        or [[step.elapsed_s, step.operations, step.cpu_s, step.steal_s] for step in phase.intervals]
    }


def _slices(pauses: Sequence[Paused]) -> list[list[float | None]]:
    """Each slice of a phase alone: seconds, operations, CPU and stolen seconds.

    Pauses count from the start of the phase, and only some of them end a slice: the others are at
    the start of the phase and before what is left to flush and compact.
    """
    return [
        [
            after.elapsed_s - before.elapsed_s,
            after.operations_total - before.operations_total,
            after.cpu_s - before.cpu_s,
            None
            if after.steal_s is None or before.steal_s is None
            else after.steal_s - before.steal_s,
        ]
        for before, after in pairwise(pauses)
        if after.slice > before.slice
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--seed", type=int, default=int(time.time()))
    parser.add_argument("--output", type=Path, required=True)
    arguments = parser.parse_args()
    driver = find_driver()
    engines = {name: chosen_engine(name, None, driver)[0] for name in ("rocksdb", "leveldb")}
    rng = random.Random(arguments.seed)
    lengths_s: dict[str, float] = {}
    arguments.output.parent.mkdir(parents=True, exist_ok=True)
    with arguments.output.open("a") as output:
        for number in range(arguments.rounds):
            everything = [(case, way) for case in CASES for way in WAYS]
            rng.shuffle(everything)
            for case, way in everything:
                seed = rng.randrange(2**53)
                line = run(case, way, engines[CASES[case][0]], seed, lengths_s.get(case, 1.0))
                if way.name == "whole AB":
                    lengths_s[case] = float(line["a"]["elapsed_s"])
                stamp = {"round": f"{arguments.seed}/{number}", "unix_s": round(time.time())}
                output.write(json.dumps(stamp | line) + "\n")
                output.flush()


if __name__ == "__main__":
    main()
