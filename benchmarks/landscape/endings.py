"""When may a run be ended? Replays the pruner `far-behind` on every recorded run of a landscape.

    .venv/bin/python benchmarks/landscape/endings.py docs/benchmarks/landscape/*.jsonl

One run of the default configuration, of one in the best tenth, and of the best one is the best
trial so far; then every other run is judged by its interval series, and ended where the pruner says
so. A run is *lost* that was ended and comes to 0.8 of the best trial or more. `--charged` adds the
compactions that are due to the time, as the rungs of other pruners do under a sustained objective.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import optuna
from optuna.trial import TrialState, create_trial
from record import read_rows

from lsmtune.model.measurement import Interval
from lsmtune.search.pruners import FAR_BEHIND, check_settings
from lsmtune.study.spec import TimeRungs
from lsmtune.study.stored import TimeReports
from workloads import METRIC

LOST = 0.8
# The interval of the driver; most of the recorded runs take one to six seconds.
EVERY_S = 0.25

Row = Mapping[str, Any]


def reports(row: Row, *, charged: bool) -> Iterator[tuple[int, float]]:
    """What a pruner is told while the run of `row` goes on."""
    taken, before_s, before = TimeReports(TimeRungs(EVERY_S, "run", charged)), 0.0, 0
    for elapsed_s, total, pending_bytes, written_bytes in row["series"]:
        took_s, operations = elapsed_s - before_s, total - before
        step = Interval(
            elapsed_s=elapsed_s,
            interval_s=took_s,
            operations=operations,
            operations_total=total,
            throughput_ops_s=operations / took_s if took_s else 0.0,
            rss_bytes=None,
            pending_compaction_bytes=pending_bytes,
            background_write_bytes=written_bytes,
        )
        before_s, before = elapsed_s, total
        if (report := taken.take(step)) is not None:
            yield report


def judged(rows: Sequence[Row], best: Row, *, charged: bool) -> str:
    """One line: how many runs end early with `best` as the best trial, and what that saves."""
    settings = check_settings(FAR_BEHIND.name, {}, "endings.py", "pruner")
    pruner = FAR_BEHIND.make(**settings)
    study = optuna.create_study(direction="maximize")
    told = dict(reports(best, charged=charged))
    study.add_trial(create_trial(value=best[METRIC], intermediate_values=told))
    ended, saved_s, lost = 0, 0.0, []
    for row in rows:
        trial = create_trial(state=TrialState.RUNNING)
        for step, value in reports(row, charged=charged):
            trial.intermediate_values[step] = value
            if pruner.prune(study, trial):
                ended += 1
                saved_s += max(0.0, row["elapsed_s"] + (row["drain_s"] or 0.0) - step * EVERY_S)
                lost += [row[METRIC] / best[METRIC]] if row[METRIC] >= LOST * best[METRIC] else []
                break
    whole_s = sum(row["run_s"] for row in rows)
    what = f"{ended} of {len(rows)} end, {saved_s / whole_s:.0%} of their time is saved"
    return f"{what}, {len(lost)} lost" + (f", the best {max(lost):.2f}" if lost else "")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("raw", type=Path, nargs="+")
    parser.add_argument("--charged", action="store_true")
    arguments = parser.parse_args()
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    for raw in arguments.raw:
        rows = [row for row in read_rows(raw) if row["scale"] == 1.0 and row["outcome"] == "ok"]
        rows = sorted((row for row in rows if row[METRIC]), key=lambda row: row[METRIC])
        default = [row for row in rows if row["point"] == 0]
        best = {
            "the default": default[len(default) // 2],
            "one in the best tenth": rows[9 * len(rows) // 10],
            "the best": rows[-1],
        }
        for name, row in best.items():
            line = judged(rows, row, charged=arguments.charged)
            print(f"{raw.stem}: beside {name} ({row[METRIC]:,.0f} ops/s) {line}", flush=True)


if __name__ == "__main__":
    main()
