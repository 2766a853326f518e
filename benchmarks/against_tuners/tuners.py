"""One run of one tuner, in a process of its own: a line of JSON per trial and per incumbent.

    .venv/bin/pip install 'smac>=2.4,<3' flaml    # what is missing is left out
    .venv/bin/python benchmarks/against_tuners/tuners.py auto ycsb-a --seed 1 --seconds 240

`compare.py` starts it. The clock begins with the process, so that imports count, as they do for
its users. Four kinds of tuners:

- lsmtune's own (`OURS`), by what `lsmtune tune` calls; the incumbents are those that it announces.
  `auto-no-...` is `auto` without one of its parts; the search of `auto-promoted` ends while there
  is time to run its best trials on more data, which a study does before its proof;
- others as their users run them (`PEERS`): a script around `lsmtune bench --json`, a command for
  each trial, as people do with db_bench. The incumbent is the best value so far;
- the same with a tenth of the operations in each run (`-short`), as their users do whose runs take
  a minute;
- the same with our starts and loaded databases (`+ours`): in the place of the command stands the
  Measurer of a study, and the points that `auto` would begin with come first.

All of them begin with the baseline. A trial that fails is worth 0. A run takes the machine alone.
"""

from __future__ import annotations

import argparse
import importlib
import itertools
import json
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
import optuna
from cases import CASES, KNOBS, METRIC, Case, Options, study_spec

from lsmtune.cli.tune import tune_runner
from lsmtune.engines.ready import known_presets
from lsmtune.experiment.folder import StudyFolder
from lsmtune.experiment.measurer import Measurer, loaded_databases
from lsmtune.experiment.schedule import Arm, Slot, Stream, derive_seed
from lsmtune.experiment.store import Role, StoredMeasurement
from lsmtune.model.config import Config, EngineIdentity
from lsmtune.model.measurement import Measurement, Outcome
from lsmtune.model.request import DatabaseSpec
from lsmtune.search.coordinates import Coordinates, Layouts
from lsmtune.search.cost_models import kinds_of
from lsmtune.search.starts import textbook_starts
from lsmtune.study.budget import PROMOTED_MAX, RESERVE_FACTOR
from lsmtune.study.feasible import Feasibility
from lsmtune.study.loop import Begun, Tuning, tune
from lsmtune.study.observer import TuneObserver
from lsmtune.study.start import allowed_points, open_study
from lsmtune.study.stored import smaller

Evaluate = Callable[[Options, float], float]  # options and a share of the workload, to ops/s
Peer = Callable[[Case, Sequence[Options], int, float, Evaluate], None]


class TimeIsUpError(BaseException):
    """Ends a search, whatever library calls the objective."""


class Clock:
    """Seconds since the process began, and what was known when."""

    def __init__(self, began_s: float, seconds: float) -> None:
        """`began_s` on the monotonic clock, which all processes share."""
        self._began_s = began_s
        self._seconds = seconds
        self._best = 0.0

    def at_s(self) -> float:
        """Seconds that are over."""
        return time.monotonic() - self._began_s

    def left_s(self) -> float:
        """Seconds that are left."""
        return self._seconds - self.at_s()

    def line(self, kind: str, options: Options, **others: object) -> None:
        """Prints a line of this moment."""
        told = {"kind": kind, "at_s": round(self.at_s(), 3), **others, "options": dict(options)}
        print(json.dumps(told), flush=True)

    def trial(self, options: Options, value: float, share: float) -> None:
        """A trial of a peer is over; one of the whole workload may be the best so far."""
        self.line("trial", options, value=value, share=share)
        if share == 1.0 and value > self._best:
            self._best = value
            self.line("incumbent", options)


# --- What performs the trials of peers.

Perform = Callable[[Options, float, int], float]  # also with the number of the trial, from 1


def evaluator(case: Case, perform: Perform, clock: Clock) -> Evaluate:
    """What a search calls: told when it is over, and each of its trials kept."""
    numbers = itertools.count(1)

    def evaluate(options: Options, share: float) -> float:
        if clock.left_s() <= 0:
            raise TimeIsUpError
        number = next(numbers)
        value = perform({**case.fixed, **options}, share, number)
        if number == 1 and not value and options == case.baseline:
            raise SystemExit("the baseline does not run; see what `lsmtune bench` says of it")
        clock.trial(options, value, share)
        return value

    return evaluate


def by_bench(arguments: argparse.Namespace) -> Perform:
    """A command for each trial, which loads its own database; `-short` has fewer operations."""
    case = CASES[arguments.workload]
    operations = SHORTER if arguments.tuner.endswith(SHORT) else 1.0

    def perform(options: Options, share: float, number: int) -> float:
        sizes = case.parameters(arguments.share * share, operations).items()
        command = [sys.executable, "-m", "lsmtune.cli.main", "bench", "--json"]
        command += ["--engine", "rocksdb", "--workload", case.workload]
        command += ["--memory", case.memory, "--deadline", f"{case.deadline_s}s"]
        command += ["--seed", str(1000 * arguments.seed + number)]
        command += [text for name, value in sizes for text in ("-w", f"{name}={value}")]
        for name, value in options.items():
            text = str(value).lower() if isinstance(value, bool) else str(value)
            command += ["-o", f"{name}={text}"]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            print(done.stderr, file=sys.stderr)
            return 0.0
        (run,) = json.loads(done.stdout)["measurements"]
        return float(run["phases"][-1][METRIC])

    return perform


def by_measurer(measurer: Measurer, engine: EngineIdentity, seed: int) -> Perform:
    """The Measurer of a study, from copies of loaded databases."""
    (whole,) = measurer.workloads

    def perform(options: Options, share: float, number: int) -> float:
        run = measurer.measure(
            Arm(engine, Config(options, f"trial {number}")),
            derive_seed(seed, Stream.TRIAL, number),
            Slot(Role.TRIAL, number, trial=number),
            workload=whole if share == 1.0 else smaller(whole, round(whole.num * share)),
        )
        return 0.0 if run is None else value_of(run.measurement)

    return perform


def value_of(measurement: Measurement) -> float:
    """The objective; 0 for a run that failed."""
    if measurement.outcome is not Outcome.OK:
        return 0.0
    return float(getattr(measurement.phases[-1], METRIC) or 0.0)


# --- Peers, each as its manual has it.

HALVING = (0.01, 0.1)  # shares of the operations before the whole, as in the gist of ekvsb


def by_optuna(
    sampler: Callable[[int, Mapping[str, Any]], Any], rungs: Sequence[float] = ()
) -> Peer:
    def run(
        case: Case, starts: Sequence[Options], seed: int, seconds: float, evaluate: Evaluate
    ) -> None:
        def objective(trial: optuna.Trial) -> float:
            options = case.to_options(
                {
                    k.name: trial.suggest_categorical(k.name, k.choices)
                    if k.choices
                    else trial.suggest_int(k.name, k.low, k.high, log=k.log)
                    for k in KNOBS
                }
            )
            for share in rungs:
                trial.report(evaluate(options, share), round(share / rungs[0]))
                if trial.should_prune():
                    raise optuna.TrialPruned
            return evaluate(options, 1.0)

        pruner = optuna.pruners.SuccessiveHalvingPruner() if rungs else optuna.pruners.NopPruner()
        first = sampler(seed, case.to_values(starts[0]))
        study = optuna.create_study(direction="maximize", sampler=first, pruner=pruner)
        for options in starts:
            study.enqueue_trial(case.to_values(options))
        study.optimize(objective, n_trials=len(starts), timeout=seconds)
        if any(trial.state is optuna.trial.TrialState.COMPLETE for trial in study.trials):
            study.sampler = sampler(seed, study.best_params)
        study.optimize(objective, timeout=seconds)

    return run


def _cmaes(seed: int, begin: Mapping[str, Any]) -> optuna.samplers.CmaEsSampler:
    """It begins at the best of the first points, and draws choices at random."""
    numbers = {k.name: begin[k.name] for k in KNOBS if not k.choices}
    return optuna.samplers.CmaEsSampler(x0=numbers, seed=seed)


def by_smac(
    case: Case, starts: Sequence[Options], seed: int, seconds: float, evaluate: Evaluate
) -> None:
    """As mlos_core: a model of each trial, and 10 Sobol points before it unless starts are given.

    The model is of the logarithm of what is minimised, so that seconds per operation will do.
    """
    import ConfigSpace
    from smac import HyperparameterOptimizationFacade as Facade
    from smac import Scenario

    space = ConfigSpace.ConfigurationSpace(seed=seed)
    for k in KNOBS:
        space.add(
            ConfigSpace.Categorical(k.name, list(k.choices))
            if k.choices
            else ConfigSpace.Integer(k.name, (k.low, k.high), log=k.log)
        )

    def cost(config: Any, seed: int = 0) -> float:  # noqa: ARG001 SMAC asks for the name
        return 1.0 / max(1.0, evaluate(case.to_options(dict(config)), 1.0))

    with tempfile.TemporaryDirectory() as folder:
        output = Path(folder)
        scenario = Scenario(
            space,
            deterministic=True,
            n_trials=10_000,
            walltime_limit=seconds,
            seed=seed,
            output_directory=output,
        )
        known = [ConfigSpace.Configuration(space, values=case.to_values(o)) for o in starts]
        design = Facade.get_initial_design(
            scenario, n_configs=0 if len(known) > 1 else 10, additional_configs=known
        )
        Facade(
            scenario,
            cost,
            initial_design=design,
            intensifier=Facade.get_intensifier(scenario, max_config_calls=1),
            config_selector=Facade.get_config_selector(scenario, retrain_after=1),
            logging_level=False,
            overwrite=True,
        ).optimize()


def by_flaml(
    case: Case, starts: Sequence[Options], seed: int, seconds: float, evaluate: Evaluate
) -> None:
    tune: Any = importlib.import_module("flaml.tune")
    searchers: Any = importlib.import_module("flaml.tune.searcher.blendsearch")
    space = {}
    for k in KNOBS:
        numbers = tune.lograndint if k.log else tune.randint  # without their upper bound
        space[k.name] = tune.choice(list(k.choices)) if k.choices else numbers(k.low, k.high + 1)
    searcher = searchers.BlendSearch(
        metric="value",
        mode="max",
        space=space,
        points_to_evaluate=[case.to_values(options) for options in starts],
        time_budget_s=seconds,
        seed=seed,
    )
    tune.run(
        lambda values: {"value": evaluate(case.to_options(values), 1.0)},
        **{"metric": "value", "mode": "max", "search_alg": searcher},
        **{"time_budget_s": seconds, "num_samples": -1, "verbose": 0},
    )


PEERS: Mapping[str, Peer] = {
    "optuna-tpe": by_optuna(lambda seed, _begin: optuna.samplers.TPESampler(seed=seed)),
    "optuna-cmaes": by_optuna(_cmaes),
    "random-halving": by_optuna(
        lambda seed, _begin: optuna.samplers.RandomSampler(seed=seed), HALVING
    ),
    "smac": by_smac,
    "flaml-blendsearch": by_flaml,
}


@dataclass(frozen=True)
class Own:
    """A search of lsmtune's own.

    `changed`: `auto` has another part, or lacks one. `models`: it may search a part of the data
    first. `promotes`: its best trials run on more data before its seconds are over.
    """

    sampler: Mapping[str, object]
    changed: Callable[[], AbstractContextManager[object]] = nullcontext
    models: bool = True
    promotes: bool = False


def _without_starts() -> AbstractContextManager[object]:
    return patch("lsmtune.study.start.textbook_points", lambda *_: ())


def _with_more_starts() -> AbstractContextManager[object]:
    return patch("lsmtune.study.start.textbook_starts", partial(textbook_starts, each=4))


def _without_batches() -> AbstractContextManager[object]:
    nothing = {
        "settings_of": lambda *_: [],
        "loads": lambda *_: lambda points: np.zeros(len(points)),
    }
    return patch.multiple(Layouts, **nothing)


def _without_coordinates() -> AbstractContextManager[object]:
    return patch.object(Coordinates, "_raw", lambda *_: {})


def _without_trend() -> AbstractContextManager[object]:
    return patch("lsmtune.search.auto.trend_of", lambda costs, _: np.zeros(costs.shape[1]))


OURS: Mapping[str, Own] = {
    "auto": Own({"name": "auto"}),
    "auto-promoted": Own({"name": "auto"}, promotes=True),
    "tpe": Own({"name": "tpe"}),
    "auto-no-hedge": Own({"name": "auto", "hedge": 0.0}, promotes=True),
    "auto-more-starts": Own({"name": "auto", "startup_trials": 10}, changed=_with_more_starts),
    "auto-no-starts": Own({"name": "auto"}, changed=_without_starts, promotes=True),
    "auto-no-batches": Own({"name": "auto"}, changed=_without_batches, promotes=True),
    "auto-no-coordinates": Own({"name": "auto"}, changed=_without_coordinates, promotes=True),
    "auto-no-trend": Own({"name": "auto"}, changed=_without_trend, promotes=True),
    "auto-no-models": Own({"name": "auto"}, models=False),
}
PRESET, WITH_OURS, SHORT = "preset", "+ours", "-short"
SHORTER = 0.1  # of the operations of a run, by a script whose user has no time for all of them
TUNERS = (*OURS, *PEERS, PRESET, *(name + kind for kind in (WITH_OURS, SHORT) for name in PEERS))
NEEDS = {"smac": "smac", "flaml-blendsearch": "flaml"}


def alone(tuner: str) -> str:
    """The name of a peer without what it is given or spared."""
    return tuner.removesuffix(WITH_OURS).removesuffix(SHORT)


# --- One run.


class _Watch(TuneObserver):
    """Prints what `lsmtune tune` measured, and what it holds for the best."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._options: dict[int, Options] = {}

    def run_finished(self, run: StoredMeasurement) -> None:
        """A run of any role."""
        value = value_of(run.measurement)
        self._clock.line(
            "trial" if run.trial is not None else "anchor", run.config.options, value=value
        )
        if run.trial is not None:
            self._options[run.trial] = run.config.options

    def best_changed(self, trial: int, *_figures: object) -> None:
        """What it would recommend from now on."""
        self._clock.line("incumbent", self._options[trial])

    def search_finished(self, reason: str) -> None:
        """To be seen, as warnings."""
        print(reason, file=sys.stderr)

    def warning(self, text: str) -> None:
        """To be seen by whoever reads the lines."""
        print(text, file=sys.stderr)


class _Searching(Tuning):
    """It ends with its search, as if interrupted."""

    def _prove(self) -> None:
        """Nothing."""


class _Promoting(Tuning):
    """It searches while there is time for the promotion, and ends with that."""

    def __init__(self, clock: Clock, *parts: Any) -> None:
        super().__init__(*parts)
        self._own_clock = clock

    def _next(self) -> Begun | str:
        larger_s = self._baseline_wall_s * self._budget.proof_factor
        needed_s = RESERVE_FACTOR * (1 + PROMOTED_MAX) * larger_s
        is_late = self._size.grows and self._own_clock.left_s() < needed_s
        return "time for the promotion" if is_late else super()._next()

    def _proved(self, *_: Any) -> None:
        """Nothing."""


def run_ours(arguments: argparse.Namespace, clock: Clock, own: Own) -> None:
    """`lsmtune tune` until its seconds are over."""
    with tempfile.TemporaryDirectory(dir=Path.cwd(), prefix="study-") as folder, own.changed():
        asked = (arguments.share, own.sampler, arguments.seed, arguments.seconds)
        spec = study_spec(CASES[arguments.workload], *asked, models=own.models)
        chosen, stop = tune_runner(spec), threading.Event()
        late = threading.Timer(clock.left_s(), stop.set)
        late.daemon = True
        late.start()
        with open_study(Path(folder) / "study", spec) as opened:
            make = partial(_Promoting, clock) if own.promotes else _Searching
            watch = _Watch(clock)
            tune(spec, opened, chosen.runner, chosen.engine, watch, stop=stop, make=make)


def first_points(case: Case, share: float) -> list[Options]:
    """What `auto` tries first: the baseline, presets, and optima of cost models."""
    spec = study_spec(case, share, {"name": "auto"})
    spec = replace(spec, engine_version=tune_runner(spec).engine.version)
    return [*allowed_points(spec, Feasibility(spec), TuneObserver())]


def run_peer(arguments: argparse.Namespace, clock: Clock) -> None:
    """A peer, as its users run it or with what is ours."""
    case, name, seed = CASES[arguments.workload], alone(arguments.tuner), arguments.seed
    if not arguments.tuner.endswith(WITH_OURS):
        evaluate = evaluator(case, by_bench(arguments), clock)
        PEERS[name](case, [case.baseline], seed, clock.left_s(), evaluate)
        return
    with tempfile.TemporaryDirectory(dir=Path.cwd(), prefix="study-") as folder:
        starts = first_points(case, arguments.share)
        spec = study_spec(case, arguments.share)
        chosen, path, observer = tune_runner(spec), Path(folder) / "study", TuneObserver()
        databases = loaded_databases(path, chosen.runner, DatabaseSpec(), observer)
        with StudyFolder.create_or_resume(path, {}) as opened:
            measurer = Measurer(
                *(opened, chosen.runner, [spec.workload], spec.limits, observer),
                *(threading.Event(), time.monotonic, databases),
            )
            evaluate = evaluator(case, by_measurer(measurer, chosen.engine, seed), clock)
            PEERS[name](case, starts, seed, clock.left_s(), evaluate)


def run_presets(arguments: argparse.Namespace, clock: Clock) -> None:
    """The baseline, and every preset that is for such a workload, over the baseline; each once."""
    case = CASES[arguments.workload]
    workload = study_spec(case, arguments.share).workload
    kinds = {kind for kind, share in kinds_of(workload).items() if share >= 0.2}
    evaluate = evaluator(case, by_bench(arguments), clock)
    evaluate(case.baseline, 1.0)
    for preset in known_presets().values():
        if preset.engine == "rocksdb" and kinds.intersection(preset.suits):
            evaluate({**case.baseline, **preset.options}, 1.0)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("tuner", choices=TUNERS)
    parser.add_argument("workload")
    parser.add_argument("--seed", type=int, required=True)
    parser.add_argument("--seconds", type=float, required=True)
    parser.add_argument("--began", type=float, default=time.monotonic(), help="monotonic clock")
    parser.add_argument("--share", type=float, default=1.0, help="of records and operations")
    arguments = parser.parse_args()
    clock = Clock(arguments.began, arguments.seconds)
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    try:
        if arguments.tuner in OURS:
            run_ours(arguments, clock, OURS[arguments.tuner])
        elif arguments.tuner == PRESET:
            run_presets(arguments, clock)
        else:
            run_peer(arguments, clock)
    except TimeIsUpError:
        pass


if __name__ == "__main__":
    main()
