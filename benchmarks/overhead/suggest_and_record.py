"""What it costs to suggest and record a trial, beside plain Optuna on the same history.

    .venv/bin/python benchmarks/overhead/suggest_and_record.py --trials 100 1000 5000 --json FILE

A space of 30 parameters, some conditional; N finished trials in SQLite on disk, the same ones for
everybody. Each subject then asks, and tells a value, some times over, in turns with the others.
lsmtune stores each trial as the study's loop does: whole when it begins, an attribute and its value
when it ends. "optuna ..." is Optuna's own `study.ask`, `trial.suggest_...`, `study.tell` on its own
`RDBStorage`, with the same sampler class and the same settings. Put `--directory` on a real disk.
"""

from __future__ import annotations

import argparse
import os
import shutil
import statistics
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

sys.path.append(str(Path(__file__).resolve().parents[1] / "driver"))

import numpy as np
import optuna
from optuna.samplers import BaseSampler, RandomSampler, TPESampler
from optuna.storages import RDBStorage
from optuna.trial import TrialState, create_trial
from overhead import write

from lsmtune.experiment.folder import create_study, open_storage
from lsmtune.model.config import OptionValue
from lsmtune.model.goal import Direction
from lsmtune.search.samplers import check_settings
from lsmtune.search.searcher import OUTCOME, Searcher
from lsmtune.space.parameter import make_categorical, make_condition, make_number
from lsmtune.space.range import Range
from lsmtune.space.space import Space, make_space, quiet_optuna

MIB = 2**20
SEED = 1
DIRECTIONS = (Direction.MAXIMIZE,)


def benchmark_space() -> Space:
    """30 parameters as an engine's are: sizes, counts, shares, choices; 6 of them conditional."""
    hashed = (make_condition("memtable", ["hash", "list"], "when"),)
    sizes = [make_number(f"size_{i}", Range(MIB, 1024 * MIB, log=True, step=MIB)) for i in range(8)]
    counts = [make_number(f"count_{i}", Range(1, 64)) for i in range(6)]
    limits = [
        make_number(f"limit_{i}", Range(1, 10_000, log=True), specials=[(-1, None)])
        for i in range(3)
    ]
    shares = [make_number(f"share_{i}", Range(0.0, 1.0, integer=False)) for i in range(3)]
    choices = [make_categorical(f"choice_{i}", ["a", "b", "c"]) for i in range(3)]
    memtable = make_categorical("memtable", ["skiplist", "hash", "list"])
    buckets = [
        make_number(f"bucket_{i}", Range(1, 1_000_000, log=True), conditions=hashed)
        for i in range(6)
    ]
    return make_space([*sizes, *counts, *limits, *shares, *choices, memtable, *buckets])


def value_of(values: Mapping[str, OptionValue], rng: np.random.Generator) -> float:
    """A throughput with an optimum inside, a dependence on choices, and noise."""
    loss = sum((np.log2(float(values[f"size_{i}"]) / (64 * MIB)) / 4) ** 2 for i in range(8))
    loss += sum((float(values[f"share_{i}"]) - 0.3) ** 2 for i in range(3))
    loss += 0.5 * (values["choice_0"] == "a") + 0.3 * (values["memtable"] == "hash")
    return float(1e5 * np.exp(-0.2 * loss + 0.03 * rng.standard_normal()))


class Ours:
    """lsmtune's Searcher, with a trial on disk at ask and at tell."""

    def __init__(self, name: str, space: Space, path: Path) -> None:
        self.name = f"lsmtune {name}"
        self._storage = open_storage(path)
        self._study_id = self._storage.get_study_id_from_name("study")
        settings = check_settings(name, {}, "benchmark", "sampler")
        self._searcher = Searcher(space, name, settings, SEED, DIRECTIONS)
        begin = time.perf_counter()
        trials = self._storage.get_all_trials(self._study_id, deepcopy=False)
        read = time.perf_counter()
        self._searcher.restore(trials)
        self.resume_s = (read - begin, time.perf_counter() - read)
        self._rng = np.random.default_rng(SEED)

    def step(self) -> tuple[float, float]:
        """One trial; seconds to ask for it and begin it on disk, and to end it there."""
        begin = time.perf_counter()
        proposal = self._searcher.ask()
        trial_id = self._storage.create_new_trial(self._study_id, proposal.trial)
        asked = time.perf_counter()
        values = [value_of(proposal.values, self._rng)]
        told = time.perf_counter()
        self._storage.set_trial_user_attr(trial_id, OUTCOME, "ok")
        self._storage.set_trial_state_values(trial_id, TrialState.COMPLETE, values)
        self._searcher.tell(proposal.number, TrialState.COMPLETE, values)
        return asked - begin, time.perf_counter() - told


class Plain:
    """Optuna's own ask and tell, on its own storage."""

    def __init__(
        self, name: str, make: Callable[[], BaseSampler], space: Space, path: Path
    ) -> None:
        self.name = f"optuna {name}"
        self._space = space
        with quiet_optuna():
            self._study = optuna.load_study(
                study_name="study", storage=RDBStorage(f"sqlite:///{path}"), sampler=make()
            )
        self._rng = np.random.default_rng(SEED)

    def step(self) -> tuple[float, float]:
        """One trial, as of `Ours`."""
        begin = time.perf_counter()
        trial = self._study.ask()
        known = self._space.distributions()
        values = self._space.suggest(lambda name: trial._suggest(name, known[name]))
        asked = time.perf_counter()
        value = value_of(values, self._rng)
        told = time.perf_counter()
        self._study.tell(trial, value)
        return asked - begin, time.perf_counter() - told


PEERS: Mapping[str, Callable[[], BaseSampler]] = {
    "tpe": lambda: TPESampler(multivariate=True, group=True, constant_liar=True, seed=SEED),
    "random": lambda: RandomSampler(seed=SEED),
}


def fill(storage: RDBStorage, space: Space, count: int, begin: int) -> None:
    """Store `count` random, finished trials, the first of which is number `begin`."""
    study_id = storage.get_study_id_from_name("study")
    rng = np.random.default_rng((SEED, begin))
    searcher = Searcher(space, "random", {}, begin + 1, DIRECTIONS)
    for _ in range(count):
        proposal = searcher.ask()
        finished = create_trial(
            value=value_of(proposal.values, rng),
            params=proposal.trial.params,
            distributions=proposal.trial.distributions,
            user_attrs={OUTCOME: "ok"},
        )
        storage.create_new_trial(study_id, finished)


def histories(space: Space, sizes: Sequence[int], directory: Path) -> dict[int, Path]:
    """One SQLite file per size, each the beginning of the next."""
    growing = directory / "growing.db"
    create_study(open_storage(growing), growing, DIRECTIONS)
    files: dict[int, Path] = {}
    stored = 0
    for size in sorted(sizes):
        storage = open_storage(growing)
        fill(storage, space, size - stored, stored)
        storage.engine.dispose()
        stored = size
        files[size] = directory / f"{size}.db"
        shutil.copyfile(growing, files[size])
    return files


def measure(
    names: Sequence[str], space: Space, history: Path, repeat: int, directory: Path
) -> dict[str, dict[str, Any]]:
    """Seconds of each step of every subject, which take turns in alternating order."""
    subjects: list[Ours | Plain] = []
    for name in names:
        copy = directory / f"{history.stem}-{name}-ours.db"
        subjects.append(Ours(name, space, Path(shutil.copyfile(history, copy))))
        if name in PEERS:
            copy = directory / f"{history.stem}-{name}-plain.db"
            path = Path(shutil.copyfile(history, copy))
            subjects.append(Plain(name, PEERS[name], space, path))
    found: dict[str, dict[str, Any]] = {s.name: {"ask_s": [], "tell_s": []} for s in subjects}
    for turn in range(repeat + 1):
        for subject in subjects if turn % 2 == 0 else reversed(subjects):
            ask_s, tell_s = subject.step()
            if turn > 0:  # the first one pays for imports and for what it remembers later
                found[subject.name]["ask_s"].append(ask_s)
                found[subject.name]["tell_s"].append(tell_s)
    for subject in subjects:
        if isinstance(subject, Ours):
            found[subject.name]["read_s"], found[subject.name]["restore_s"] = subject.resume_s
    return found


def print_table(results: Mapping[int, Mapping[str, Mapping[str, Any]]]) -> None:
    """Medians, one row per subject and size."""
    print("trials  subject            ask ms   tell ms    all ms  (min to max)   restore s")
    for size, subjects in results.items():
        for name, seconds in subjects.items():
            ask, tell = (1e3 * statistics.median(seconds[k]) for k in ("ask_s", "tell_s"))
            both = [1e3 * (a + t) for a, t in zip(seconds["ask_s"], seconds["tell_s"], strict=True)]
            restore = f"{seconds['restore_s']:.2f}" if "restore_s" in seconds else "-"
            spread = f"({min(both):.0f} to {max(both):.0f})"
            print(
                f"{size:>6}  {name:<17} {ask:8.1f}  {tell:8.1f}  {statistics.median(both):8.1f}"
                f"  {spread:<14} {restore:>9}"
            )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--samplers", default="tpe,forest,random", help="joined by commas")
    parser.add_argument("--trials", type=int, nargs="+", default=[100, 1000])
    parser.add_argument("--repeat", type=int, default=7, help="steps of each subject")
    parser.add_argument("--directory", type=Path, default=None, help="where the files are put")
    parser.add_argument("--json", type=Path, default=None, help="a file for the raw figures")
    arguments = parser.parse_args()
    names = arguments.samplers.split(",")
    warnings.simplefilter("ignore", optuna.exceptions.ExperimentalWarning)
    space = benchmark_space()
    results: dict[int, dict[str, dict[str, Any]]] = {}
    with tempfile.TemporaryDirectory(dir=arguments.directory) as scratch:
        directory = Path(scratch)
        for size, history in histories(space, arguments.trials, directory).items():
            results[size] = measure(names, space, history, arguments.repeat, directory)
    print_table(results)
    if arguments.json is not None:
        write(
            arguments.json,
            load_average=os.getloadavg(),
            optuna=optuna.__version__,
            parameters=len(space.parameters),
            trials=results,
        )


if __name__ == "__main__":
    main()
