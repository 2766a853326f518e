"""Median regret of every sampler on the landscape, beside Optuna's and SMAC's own defaults.

    .venv/bin/python benchmarks/samplers/regret.py --raw docs/benchmarks/samplers/regret.jsonl

For each sampler and seed one search with noise; regret (`strategies.Runs`) is what the recommended
configuration loses against the true optimum, both without noise, in percent. Raw rows go to
`--raw` as they are done, one line of JSON each; what is there already is not run again, so an
interrupted benchmark goes on where it was. Seeds are the outer loop: at any time all samplers have
had about the same ones.
"""

from __future__ import annotations

import argparse
import itertools
import json
import math
import statistics
import time
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import asdict, dataclass
from importlib.util import find_spec
from pathlib import Path

import numpy as np
from strategies import PLANNED, STRATEGIES, Runs

NEEDS_SMAC = ("smac", "smac-default")
NOISE_SD = 0.05  # of the logarithm of a measurement
QUICK = ("random", "sobol", "tpe", "forest", "cmaes", "gp", "nsga2", "optuna-default")


@dataclass(frozen=True)
class Job:
    """One search."""

    sampler: str
    seed: int
    trials: int
    noise_sd: float


@dataclass(frozen=True)
class Row(Job):
    """What one search came to: its regret after each number of trials, and what it took."""

    regret: dict[str, float | None]
    elapsed_s: float

    @property
    def job(self) -> Job:
        """What the row is the result of."""
        return Job(self.sampler, self.seed, self.trials, self.noise_sd)


def run(job: Job, checkpoints: Sequence[int]) -> Row:
    """One search; the landscape does nothing that takes time, so all of it is the sampler's."""
    # The noise of a seed is the same for all samplers, as far as they make the same trials.
    runs = Runs(job.noise_sd, np.random.default_rng([job.seed, 1]))
    began = time.perf_counter()
    STRATEGIES[job.sampler](job.seed, job.trials, runs)
    elapsed_s = time.perf_counter() - began
    reached = {str(n): runs.regrets[n - 1] for n in checkpoints if n <= job.trials}
    finite = {n: value if math.isfinite(value) else None for n, value in reached.items()}
    return Row(**asdict(job), regret=finite, elapsed_s=round(elapsed_s, 3))


def jobs_of(arguments: argparse.Namespace) -> list[Job]:
    """Every search that is asked for; those that plan ahead once per number of trials."""
    return [
        Job(sampler, seed, trials, NOISE_SD)
        for seed, sampler in itertools.product(range(arguments.seeds), arguments.samplers)
        for trials in (arguments.trials if sampler in PLANNED else [max(arguments.trials)])
    ]


def read_rows(raw: Path | None) -> list[Row]:
    """The rows of earlier calls; a last line that was cut off is removed from the file."""
    if raw is None or not raw.exists():
        return []
    lines = raw.read_text().splitlines(keepends=True)
    if lines and not lines[-1].endswith("\n"):
        lines.pop()
        raw.write_text("".join(lines))
    return [Row(**json.loads(line)) for line in lines]


def append(raw: Path | None, row: Row) -> None:
    """Adds a row in one write."""
    if raw is None:
        return
    raw.parent.mkdir(parents=True, exist_ok=True)
    with raw.open("a") as file:
        file.write(json.dumps(asdict(row)) + "\n")


def summary(rows: Sequence[Row], arguments: argparse.Namespace) -> list[dict[str, object]]:
    """Per sampler and number of trials: quartiles of the regret in percent, seconds per trial."""
    result: list[dict[str, object]] = []
    for sampler, trials in itertools.product(arguments.samplers, arguments.trials):
        planned = trials if sampler in PLANNED else max(arguments.trials)
        wanted = [r for r in rows if r.sampler == sampler and r.trials == planned]
        # A search that has nothing to recommend loses everything.
        regrets = [r.regret[str(trials)] for r in wanted if str(trials) in r.regret]
        losses = [100.0 if x is None else 100 * (1 - math.exp(-x)) for x in regrets]
        if not losses:
            continue
        low, high = np.percentile(losses, [25, 75])
        result.append(
            {
                "sampler": sampler,
                "trials": trials,
                "seeds": len(losses),
                "regret_percent_median": round(statistics.median(losses), 3),
                "regret_percent_quartiles": [round(float(low), 3), round(float(high), 3)],
                "elapsed_s_per_trial": round(
                    statistics.median(r.elapsed_s / r.trials for r in wanted), 5
                ),
            }
        )
    return sorted(result, key=lambda one: (one["trials"], one["regret_percent_median"]))


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    able = [name for name in STRATEGIES if name not in NEEDS_SMAC or find_spec("smac")]
    parser.add_argument("--samplers", nargs="+", choices=able, default=None)
    parser.add_argument("--seeds", type=int, default=None, help="how many; 20, or 2 with --quick")
    parser.add_argument("--trials", type=int, nargs="+", default=None, help="50 200, or 20")
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--raw", type=Path, default=None, help="JSON lines: read, and added to")
    parser.add_argument("--json", action="store_true", help="print one JSON document")
    parser.add_argument("--quick", action="store_true", help="small sizes, quick samplers")
    arguments = parser.parse_args()
    arguments.samplers = arguments.samplers or (list(QUICK) if arguments.quick else able)
    arguments.seeds = arguments.seeds or (2 if arguments.quick else 20)
    arguments.trials = sorted(arguments.trials or ([20] if arguments.quick else [50, 200]))
    return arguments


def run_all(arguments: argparse.Namespace) -> list[Row]:
    """The rows asked for: those that exist, and those that this call makes."""
    wanted = jobs_of(arguments)
    checkpoints = {str(n) for n in arguments.trials}
    known = [
        row
        for row in read_rows(arguments.raw)
        if row.job in wanted and {n for n in checkpoints if int(n) <= row.trials} <= set(row.regret)
    ]
    done = {row.job for row in known}
    missing = [job for job in wanted if job not in done]
    with ProcessPoolExecutor(arguments.processes) as pool:
        running = [pool.submit(run, job, arguments.trials) for job in missing]
        for number, future in enumerate(as_completed(running), 1):
            row = future.result()
            append(arguments.raw, row)
            known.append(row)
            if not arguments.json:
                print(f"{number}/{len(missing)} {row.sampler} seed {row.seed}", flush=True)
    return known


def main() -> None:
    arguments = parse_arguments()
    rows = run_all(arguments)
    table = summary(rows, arguments)
    if arguments.json:
        print(json.dumps({"summary": table, "rows": [asdict(row) for row in rows]}, indent=1))
        return
    print(
        f"{'sampler':<16}{'trials':>7}{'seeds':>7}{'regret %':>10}  {'quartiles':<18}{'s/trial':>9}"
    )
    for one in table:
        low, high = one["regret_percent_quartiles"]  # type: ignore[misc]
        print(
            f"{one['sampler']:<16}{one['trials']:>7}{one['seeds']:>7}"
            f"{one['regret_percent_median']:>10}  {f'{low} to {high}':<18}"
            f"{one['elapsed_s_per_trial']:>9}"
        )


if __name__ == "__main__":
    main()
