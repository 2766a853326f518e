"""Ways to search the landscape: lsmtune's samplers, and its peers called as their users call them.

Each takes a seed, a number of trials and a `Runs`, asks it for measurements, and tells it after
every trial what it would recommend. The rule for all of them but SMAC itself: the configuration
with the best *measured* value so far. SMAC has a rule of its own, its incumbent, which it measures
several times.
"""

from __future__ import annotations

import logging
import math
import tempfile
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import optuna
from landscape import MIB, OPTIMUM_OPS_S, make_landscape_space, measured, throughput_of
from optuna.trial import TrialState

from lsmtune.model.config import OptionValue
from lsmtune.model.goal import Direction
from lsmtune.search.samplers import SAMPLERS, check_settings
from lsmtune.search.searcher import Searcher

Values = Mapping[str, OptionValue]
# What SMAC is told where a run failed: worse than any other, and finite, as its forest needs it.
FAILED_COST_US = 1e6


@dataclass
class Runs:
    """The noisy runs of one search; `regrets` after each, of what was recommended then.

    Regret is the logarithm of the optimum over the recommended configuration's noiseless value.
    """

    noise_sd: float
    rng: np.random.Generator
    regrets: list[float] = field(default_factory=list)
    space: Any = field(default_factory=make_landscape_space)
    _best_ops_s: float = -math.inf
    _recommended: float = math.inf

    def measure(self, values: Values) -> float | None:
        """A noisy throughput, ops/s; None when the store was killed."""
        true_ops_s = throughput_of(self.space, values)
        if math.isnan(true_ops_s):
            return None
        return measured(true_ops_s, self.noise_sd, self.rng)

    def regret(self, values: Values) -> float:
        """The regret of recommending `values`."""
        true_ops_s = throughput_of(self.space, values)
        return math.inf if math.isnan(true_ops_s) else math.log(OPTIMUM_OPS_S / true_ops_s)

    def finished(self, values: Values, ops_s: float | None) -> None:
        """A trial ended: what is recommended now is the best that was measured."""
        if ops_s is not None and ops_s > self._best_ops_s:
            self._best_ops_s, self._recommended = ops_s, self.regret(values)
        self.regrets.append(self._recommended)


Strategy = Callable[[int, int, Runs], None]


def lsmtune_sampler(name: str) -> Strategy:
    """The sampler `name` with its defaults, through the Searcher as in `lsmtune tune`."""

    def search(seed: int, trials: int, runs: Runs) -> None:
        settings = check_settings(name, {}, "benchmark", "sampler")
        searcher = Searcher(runs.space, name, settings, seed, [Direction.MAXIMIZE])
        for _ in range(trials):
            proposal = searcher.ask()
            ops_s = runs.measure(proposal.values)
            if ops_s is None:
                searcher.tell(proposal.number, TrialState.FAIL)
            else:
                searcher.tell(proposal.number, TrialState.COMPLETE, [ops_s])
            runs.finished(proposal.values, ops_s)

    return search


def optuna_default(seed: int, trials: int, runs: Runs) -> None:
    """Optuna's TPE with its defaults, define by run, failures told as failures."""
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    sampler = optuna.samplers.TPESampler(seed=seed)
    study = optuna.create_study(sampler=sampler, direction="maximize")
    known = runs.space.distributions()
    for _ in range(trials):
        trial = study.ask()
        values = runs.space.suggest(lambda name, trial=trial: trial._suggest(name, known[name]))
        ops_s = runs.measure(values)
        if ops_s is None:
            study.tell(trial, state=TrialState.FAIL)
        else:
            study.tell(trial, ops_s)
        runs.finished(values, ops_s)


def smac_default(seed: int, trials: int, runs: Runs) -> None:
    """SMAC's hyperparameter-optimization facade with its defaults; it minimises microseconds."""
    from smac import HyperparameterOptimizationFacade, Scenario
    from smac.runhistory import StatusType, TrialValue

    logging.getLogger("smac").setLevel(logging.CRITICAL)
    with warnings.catch_warnings(), tempfile.TemporaryDirectory() as folder:
        warnings.simplefilter("ignore")
        scenario = Scenario(smac_space(), output_directory=Path(folder), n_trials=trials, seed=seed)
        facade = HyperparameterOptimizationFacade(scenario, logging_level=False, overwrite=True)
        for _ in range(trials):
            info = facade.ask()
            ops_s = runs.measure(smac_values(dict(info.config)))
            if ops_s is None:
                value = TrialValue(cost=FAILED_COST_US, status=StatusType.CRASHED)
            else:
                value = TrialValue(cost=1e6 / ops_s)
            facade.tell(info, value, save=False)
            incumbents = facade.intensifier.get_incumbents()
            regrets = [runs.regret(smac_values(dict(one))) for one in incumbents]
            runs.regrets.append(regrets[0] if regrets else math.inf)


def smac_space() -> Any:
    """The landscape's space in ConfigSpace, as a user of SMAC would write it."""
    from ConfigSpace import Categorical, ConfigurationSpace, EqualsCondition, Integer

    numbers = {
        "write_buffer_size": (1, 512, True),  # in MiB, as are the two below
        "max_bytes_for_level_base": (16, 4096, True),
        "target_file_size_base": (1, 256, True),
        "max_write_buffer_number": (2, 12, False),
        "min_write_buffer_number_to_merge": (1, 4, False),
        "max_bytes_for_level_multiplier": (3, 20, False),
        "universal.size_ratio": (1, 100, False),
        "universal.max_merge_width": (2, 32, False),
        "level0_file_num_compaction_trigger": (1, 20, False),
        "level0_slowdown_writes_trigger": (4, 64, False),
        "compression_level": (1, 19, False),
        "max_background_jobs": (1, 16, False),
        "bytes_per_sync": (2**16, 2**25, True),
    }
    choices = {
        "compaction_style": ["level", "universal"],
        "compression": ["none", "lz4", "zstd"],
        "allow_concurrent_memtable_write": [True, False],
        "sync": ["never", "bytes"],
    }
    conditions = {
        "max_bytes_for_level_base": ("compaction_style", "level"),
        "max_bytes_for_level_multiplier": ("compaction_style", "level"),
        "universal.size_ratio": ("compaction_style", "universal"),
        "universal.max_merge_width": ("compaction_style", "universal"),
        "compression_level": ("compression", "zstd"),
        "bytes_per_sync": ("sync", "bytes"),
    }
    space = ConfigurationSpace()
    space.add(*(Integer(name, (low, high), log=log) for name, (low, high, log) in numbers.items()))
    space.add(*(Categorical(name, values) for name, values in choices.items()))
    for child, (parent, value) in conditions.items():
        space.add(EqualsCondition(space[child], space[parent], value))
    return space


def smac_values(config: dict[str, Any]) -> Values:
    """The landscape's options for a configuration of `smac_space`."""
    values = {name: _python(value) for name, value in config.items() if name != "sync"}
    if config["sync"] == "never":
        values["bytes_per_sync"] = 0
    for name in ("write_buffer_size", "max_bytes_for_level_base", "target_file_size_base"):
        if name in values:
            values[name] = int(values[name]) * MIB
    return values


def _python(value: Any) -> Any:
    return value.item() if isinstance(value, np.generic) else value


# `grid` and `manual` ask for settings: a grid of 16 options has nothing to say in 200 trials.
OURS = tuple(name for name in SAMPLERS if name not in ("grid", "manual"))
STRATEGIES: Mapping[str, Strategy] = {
    **{name: lsmtune_sampler(name) for name in OURS},
    "optuna-default": optuna_default,
    "smac-default": smac_default,
}
# Strategies whose plan depends on the number of trials, and which are run once for each number.
PLANNED = frozenset({"smac-default"})
