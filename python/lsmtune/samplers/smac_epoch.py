"""One epoch of SMAC: what it proposes from one history, in its own order.

SMAC 2.4's hyperparameter-optimization facade with its defaults: a random forest of 10 trees over
log-scaled costs, log expected improvement, local search from the best of thousands of random
configurations, one random configuration in five. Its intensifier, which repeats good
configurations, is passed over: a trial here is a new configuration, and repeats are the proof's.
Imports the optional packages of the extra `smac`.
"""

from __future__ import annotations

import logging
import tempfile
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import joblib
from ConfigSpace import Configuration, ConfigurationSpace
from smac import HyperparameterOptimizationFacade, Scenario
from smac.acquisition.maximizer import LocalAndSortedRandomSearch, LocalSearch
from smac.main.exceptions import ConfigurationSpaceExhaustedException
from smac.runhistory import StatusType, TrialInfo

from lsmtune.samplers.column import FloatArray
from lsmtune.samplers.cube import Cube
from lsmtune.samplers.history import History
from lsmtune.samplers.smac_space import SmacSpace

# Larger than any study: SMAC cuts its initial design to a quarter of the trials that it expects.
TRIALS_MAX = 10**6


@dataclass(frozen=True)
class Effort:
    """How hard SMAC looks for the best proposal: random configurations, and local searches."""

    challengers: int
    local_searches: int


def design(cube: Cube, count: int, seed: int) -> list[FloatArray]:
    """The points of SMAC's initial design, a scrambled Sobol sequence; at most `count`."""
    space = SmacSpace(cube)
    with _quiet(), tempfile.TemporaryDirectory() as folder:
        scenario = _scenario(space, folder, seed)
        chosen = HyperparameterOptimizationFacade.get_initial_design(scenario, n_configs=count)
        return [space.point(configuration) for configuration in chosen.select_configurations()]


def proposals(cube: Cube, history: History, seed: int, effort: Effort) -> Iterator[FloatArray]:
    """New points for `history`, the best first, until the space is exhausted."""
    space = SmacSpace(cube)
    facade = _facade(space, seed, effort)
    for point, target in zip(history.points, history.targets, strict=True):
        # Targets already say what failed and what was pruned: to SMAC, all of them succeeded.
        facade.runhistory.add(
            space.configuration(point), cost=float(target), status=StatusType.SUCCESS, seed=0
        )
    for point in history.running:
        facade.runhistory.add_running_trial(TrialInfo(space.configuration(point), seed=0))
    configurations = facade.intensifier.config_generator
    while True:
        # Its forest would start threads for ten trees and wait for them 10 ms at a time.
        with _quiet(), joblib.parallel_config(backend="sequential"):
            try:
                configuration = next(configurations)
            except ConfigurationSpaceExhaustedException:
                return
        yield space.point(configuration)


class _LocalSearch(LocalSearch):  # type: ignore[misc]
    """SMAC's, which takes its starting points in the order of a set of configurations.

    That order follows from the hashes of texts, and those differ from process to process.
    """

    def _get_init_points_from_previous_configs(self, *arguments: Any) -> list[Configuration]:
        points = super()._get_init_points_from_previous_configs(*arguments)
        return sorted(points, key=lambda configuration: configuration.get_array().tobytes())


class _Maximizer(LocalAndSortedRandomSearch):  # type: ignore[misc]
    """SMAC's default, with the local search above."""

    def __init__(self, configspace: ConfigurationSpace, **settings: Any) -> None:
        super().__init__(configspace, **settings)
        self._local_search = _LocalSearch(configspace, seed=settings["seed"])


def _facade(space: SmacSpace, seed: int, effort: Effort) -> HyperparameterOptimizationFacade:
    make = HyperparameterOptimizationFacade
    # SMAC writes its scenario when it is made, and nothing later as long as nothing is told to it.
    with _quiet(), tempfile.TemporaryDirectory() as folder:
        scenario = _scenario(space, folder, seed)
        return make(
            scenario,
            initial_design=make.get_initial_design(scenario, n_configs=0),
            acquisition_maximizer=_Maximizer(
                space.configspace,
                challengers=effort.challengers,
                local_search_iterations=effort.local_searches,
                seed=seed,
            ),
            logging_level=False,
            overwrite=True,
        )


def _scenario(space: SmacSpace, folder: str, seed: int) -> Scenario:
    return Scenario(
        space.configspace,
        name="lsmtune",
        output_directory=Path(folder),
        deterministic=True,
        n_trials=TRIALS_MAX,
        seed=seed,
    )


@contextmanager
def _quiet() -> Iterator[None]:
    """Keep SMAC's remarks on its own workings out of the terminal."""
    logger = logging.getLogger("smac")
    level = logger.level
    logger.setLevel(logging.CRITICAL)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        logger.setLevel(level)
