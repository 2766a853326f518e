"""Which tuner finds a good configuration first, on a real RocksDB? Searches and their worth.

    D=docs/benchmarks/against_tuners; P=.venv/bin/python
    $P -m pip install 'smac>=2.4,<3' flaml
    $P benchmarks/against_tuners/compare.py plan                                # hours
    $P benchmarks/against_tuners/compare.py search --output $D/runs.jsonl       # goes on
    $P benchmarks/against_tuners/compare.py verify --output $D/runs.jsonl       # off the clock
    $P benchmarks/against_tuners/report.py $D/runs.jsonl

`search` lets every tuner search every workload with every seed for `--seconds`, one after the
other; the order is shuffled for each workload and seed. One that goes on for 10 s longer is killed,
as what it finds then does not count. A search that was cut off before begins anew.

`verify` measures what each of them would have recommended after each of `--marks` (shares of the
seconds): all configurations of a workload side by side, with the baseline three times, in
interleaved rounds at the whole workload. Each run has a copy of a loaded database, the pages of
which it reads itself, within its memory. The best `--finalists` then have more rounds, because the
best of many noisy means is partly a lucky one.

On other sizes: `--share 0.02 --seconds 20` tries everything in a few minutes; figures mean nothing.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import math
import os
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from hashlib import sha256
from pathlib import Path
from random import Random
from typing import Any

from cases import (
    CASES,
    Key,
    Options,
    Search,
    add_lines,
    key_of,
    name_of,
    read_lines,
    searches,
    study_spec,
)
from tuners import NEEDS, PRESET, SHORT, TUNERS, alone, value_of

from lsmtune.cli.tune import tune_runner
from lsmtune.experiment.measurer import DATABASES, loaded_databases
from lsmtune.experiment.observer import Observer
from lsmtune.experiment.rounds import perform
from lsmtune.experiment.run_length import unsteady
from lsmtune.experiment.schedule import Cell
from lsmtune.model.config import Config
from lsmtune.model.measurement import Outcome
from lsmtune.model.request import DatabaseSpec

PATIENCE_S = 10.0  # for a tuner that ends by itself when its seconds are over; then it is killed
BASELINES = ("baseline", "baseline 2", "baseline 3")
GUARDED = ("write_amplification", "space_amplification", "latency_us_p99")
UNSHORTENED = [name for name in TUNERS if not name.endswith(SHORT)]
# Of the deadline of its case: a run of `verify` on two cores, its share of a load in it.
RUN_SHARE = 8.0 / 60.0


def available(names: Sequence[str]) -> list[str]:
    """The tuners whose packages are there; says which are not."""
    found = []
    for name in names:
        package = NEEDS.get(alone(name))
        if package is None or importlib.util.find_spec(package) is not None:
            found.append(name)
        else:
            print(f"{name} is left out: pip install {package}", file=sys.stderr)
    return found


def planned(arguments: argparse.Namespace) -> list[Key]:
    """All runs, in an order that favours no tuner; seed by seed, so that part of it is of use."""
    keys, tuners = list[Key](), available(arguments.tuners)
    for seed in range(1, arguments.seeds + 1):
        for workload in arguments.workloads:
            order = Random(f"{seed}/{workload}").sample(tuners, len(tuners))
            keys += [(workload, tuner, seed) for tuner in order]
    return keys


# --- search


def search(arguments: argparse.Namespace) -> int:
    """Runs what the output has not; returns how many runs failed."""
    done = {key_of(line) for line in read_lines(arguments.output) if line["kind"] == "run"}
    left = [key for key in planned(arguments) if key not in done]
    failed = 0
    for index, key in enumerate(left):
        print(f"{index + 1} of {len(left)}: {' '.join(map(str, key))}", flush=True)
        failed += not search_once(key, arguments)
    return failed


def search_once(key: Key, arguments: argparse.Namespace) -> bool:
    """One run of a tuner in a process of its own, its lines added to the output as they come."""
    workload, tuner, seed = key
    named = {"workload": workload, "tuner": tuner, "seed": seed, "attempt": round(time.time())}
    script = str(Path(__file__).with_name("tuners.py").resolve())
    command = [sys.executable, script, tuner, workload, "--seed", str(seed)]
    command += ["--seconds", str(arguments.seconds), "--share", str(arguments.share)]
    began_s = time.monotonic()
    command += ["--began", str(began_s)]
    trials, best = 0, 0.0
    with (
        tempfile.TemporaryDirectory(
            dir=arguments.scratch, prefix="against-", ignore_cleanup_errors=True
        ) as scratch,
        tempfile.TemporaryFile("w+") as said,
    ):
        process = subprocess.Popen(
            command,
            cwd=scratch,
            stdout=subprocess.PIPE,
            stderr=said,
            text=True,
            start_new_session=True,
        )
        # What a trial under way would tell then comes too late to count.
        late = threading.Timer(
            arguments.seconds + PATIENCE_S, os.killpg, (process.pid, signal.SIGKILL)
        )
        late.start()
        try:
            for text in process.stdout or ():
                # Libraries print, too.
                if text.startswith("{"):
                    line = json.loads(text)
                    add_lines(arguments.output, [{**line, **named}])
                    trials += line["kind"] == "trial"
                    best = max(best, line.get("value") or 0.0)
            status = process.wait()
        finally:
            late.cancel()
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
        said.seek(0)
        last = said.read().strip().splitlines()[-3:]
    is_over = status == -signal.SIGKILL and time.monotonic() >= began_s + arguments.seconds
    has_failed = status and not is_over
    if has_failed or not best:
        why = f"failed with {status}" if has_failed else "no trial gave a value"
        print(f"  {why}: {' / '.join(last)}", file=sys.stderr, flush=True)
        return False
    end = {"seconds": arguments.seconds, "share": arguments.share, "load": os.getloadavg()[0]}
    add_lines(arguments.output, [{"kind": "run", **end, **named}])
    print(f"  {trials} trials, the best single run {best:,.0f} ops/s", flush=True)
    return True


# --- verify


def recommended(found: Iterable[Search], marks: Sequence[float]) -> dict[str, Options]:
    """What they recommend at the marks, by name; each configuration once."""
    at = (search.at(mark * search.seconds) for search in found for mark in marks)
    return {name_of(options): options for options in at}


def verified(lines: Iterable[Mapping[str, Any]], workload: str) -> list[Mapping[str, Any]]:
    """The lines of the runs that verified configurations for `workload`."""
    return [x for x in lines if x["kind"] == "verified" and x["workload"] == workload]


def gains(lines: Iterable[Mapping[str, Any]], workload: str) -> dict[str, float]:
    """The verified gain over the baseline, by name: the geometric mean over rounds.

    The baseline of a round is the geometric mean of its runs. Where a configuration was in the
    final, its rounds before it do not count: by them it was chosen. One that failed gains nothing.
    """
    baseline = CASES[workload].baseline_name
    base: dict[object, list[float]] = defaultdict(list)
    logs: dict[str, dict[bool, list[float]]] = defaultdict(lambda: defaultdict(list))
    own = verified(lines, workload)
    for line in own:
        if line["config"] == baseline and line["value"] > 0:
            base[line["batch"], line["round"]].append(math.log(line["value"]))
    for line in own:
        beside = statistics.fmean(base[line["batch"], line["round"]])
        log = math.log(line["value"]) - beside if line["value"] > 0 else -math.inf
        logs[line["config"]][line["final"]].append(log)
    return {name: math.exp(statistics.fmean(each[max(each)])) for name, each in logs.items()}


def verify(arguments: argparse.Namespace) -> None:
    """Measures what has not been measured."""
    for workload in arguments.workloads:
        lines = read_lines(arguments.output)
        found = [s for s in searches(lines) if s.key[0] == workload]
        configs = recommended(found, arguments.marks)
        baseline = CASES[workload].baseline_name
        known = {baseline, *(x["config"] for x in verified(lines, workload))}
        new = {name: options for name, options in configs.items() if name not in known}
        if new:
            side_by_side(arguments, workload, new, arguments.rounds, final=False)
        gained = gains(read_lines(arguments.output), workload)
        ranked = sorted(configs.keys() & gained.keys(), key=lambda n: gained[n], reverse=True)
        best = [n for n in ranked if n != baseline][: arguments.finalists]
        finals = {x["batch"] for x in verified(lines, workload) if x["final"]}
        if best and batch_of(workload, best, final=True) not in finals:
            final = {name: configs[name] for name in best}
            side_by_side(arguments, workload, final, arguments.final_rounds, final=True)


def batch_of(workload: str, names: Iterable[str], *, final: bool) -> str:
    """What tells a batch of configurations from others; also the name of its folder."""
    text = " ".join([workload, str(final), *sorted(names)])
    return f"{workload}-{'final-' if final else ''}{sha256(text.encode()).hexdigest()[:8]}"


def side_by_side(
    arguments: argparse.Namespace,
    workload: str,
    configs: Mapping[str, Options],
    rounds: int,
    *,
    final: bool,
) -> None:
    """Interleaved rounds of `configs` and three times the baseline; a line per run at the end.

    The folder keeps the runs, so that a batch that was cut off goes on.
    """
    case = CASES[workload]
    batch = batch_of(workload, configs, final=final)
    folder = arguments.rounds_folder.resolve() / batch
    folder.parent.mkdir(parents=True, exist_ok=True)
    print(f"{batch}: {len(configs)} configurations, {rounds} rounds", flush=True)
    spec = study_spec(case, arguments.share)
    chosen, observer = tune_runner(spec), Observer()
    named = {**dict.fromkeys(BASELINES, case.baseline), **configs}
    cells = [
        Cell(chosen.engine, Config({**case.fixed, **options}, name), name, workload=spec.workload)
        for name, options in named.items()
    ]
    limits = replace(spec.limits, deadline_s=2.0 * case.deadline_s)
    # No run of a final has the seed of one before it.
    seed = 1001 if final else 1
    runs = perform(
        *(cells, rounds, folder, chosen.runner, limits, seed),
        *(observer, threading.Event()),
        databases=loaded_databases(folder, chosen.runner, DatabaseSpec(), observer),
    )
    lines = []
    for run in runs:
        measured = run.measurement
        ok = measured.outcome is Outcome.OK
        phase = measured.phases[-1] if ok else None
        steady = ok and not unsteady(measured, spec.workload, spec.goal)
        told = {"kind": "verified", "workload": workload, "batch": batch, "round": run.round}
        told |= {"config": name_of(named[run.arm]), "final": final, "value": value_of(measured)}
        told |= {name: None if phase is None else getattr(phase, name) for name in GUARDED}
        told |= {"outcome": measured.outcome.value, "steady": steady, "options": named[run.arm]}
        lines.append(told | {"wall_s": round(run.wall_s, 2)})
    add_lines(arguments.output, lines)
    shutil.rmtree(folder / DATABASES, ignore_errors=True)


# --- plan


def plan(arguments: argparse.Namespace) -> None:
    """Says what would run, and how long it takes on a quiet machine."""
    keys = planned(arguments)
    presets = sum(key[1] == PRESET for key in keys)
    search_s = (len(keys) - presets) * (arguments.seconds + 6) + presets * 60.0
    # Half of the marks tell of another configuration than the mark before.
    configs = 1 + (len(arguments.marks) - 1) / 2
    cells = len(arguments.workloads) * len(BASELINES) + len(keys) * configs
    finalists = len(arguments.workloads) * (arguments.finalists + len(BASELINES))
    runs = cells * arguments.rounds + finalists * arguments.final_rounds
    run_s = RUN_SHARE * statistics.fmean(CASES[name].deadline_s for name in arguments.workloads)
    print(f"{len(keys)} searches: {search_s / 3600:.1f} h")
    print(f"some {cells:.0f} cells, verified: {runs * run_s / 3600:.1f} h")


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("step", choices=("plan", "search", "verify"))
    parser.add_argument("--output", type=Path, default=Path("runs.jsonl"))
    parser.add_argument("--workloads", nargs="+", default=list(CASES), choices=list(CASES))
    parser.add_argument("--tuners", nargs="+", default=UNSHORTENED, choices=TUNERS)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=240.0, help="of each search")
    parser.add_argument("--share", type=float, default=1.0, help="of records and operations")
    parser.add_argument("--marks", type=float, nargs="+", default=[0.125, 0.25, 0.5, 1.0])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--finalists", type=int, default=10)
    parser.add_argument("--final-rounds", type=int, default=6)
    parser.add_argument("--scratch", type=Path, default=None, help="folder for databases")
    parser.add_argument("--rounds-folder", type=Path, default=Path("against-rounds"))
    arguments = parser.parse_args()
    # So that a kill ends the search that is on, too.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    steps = {"plan": plan, "search": search, "verify": verify}
    raise SystemExit(1 if steps[arguments.step](arguments) else 0)


if __name__ == "__main__":
    main()
