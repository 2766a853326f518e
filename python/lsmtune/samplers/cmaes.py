"""`cmaes`: CMA-ES for mixed variables, from the library `cmaes` (`CatCMAwM`).

CatCMAwM (Hamano, Saito, Nomura, Uchida and Shirakawa 2025, arXiv:2504.07884) adapts one normal
distribution over the numbers, with a margin that keeps a coarse grid from freezing, and one
distribution over the choices of each categorical (`samplers.cma_layout`).

The distribution moves once per generation, when as many trials drawn from it were judged as its
population has, by their *ranks*: failed and pruned trials come last, and the scale of the values
does not matter. Each trial keeps what was drawn for it in its system attributes; the distribution
of any moment is found again by telling every complete generation in turn. Trials that were not
drawn here (a study's start configurations) set where the search begins: at the best of those before
the first drawn one, else in the middle of the space.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from optuna.samplers import BaseSampler
from optuna.study import Study, StudyDirection
from optuna.trial import FrozenTrial

from lsmtune.records.setting import Setting, real_number, whole_number, word_or
from lsmtune.samplers.cma_layout import CmaLayout, make_layout
from lsmtune.samplers.column import FloatArray
from lsmtune.samplers.cube_sampler import CubeSampler
from lsmtune.samplers.history import JUDGED, targets_of
from lsmtune.samplers.kind import SamplerContext, SamplerKind

ATTRIBUTE = "lsmtune:cmaes"
AUTO = "auto"


class CmaesSampler(CubeSampler):
    """See the module."""

    def __init__(self, context: SamplerContext) -> None:
        super().__init__(context)
        self._layout: CmaLayout = make_layout(self.cube)
        self._sigma = context.get.real("sigma")
        population = context.settings["population"]
        self._population = None if population == AUTO else context.get.whole("population")
        self._drawn: dict[int, bool] = {}
        self._begin(np.full(self.cube.dimensions, np.nan))

    def propose(
        self, study: Study, trial: FrozenTrial, rng: np.random.Generator
    ) -> Iterator[FloatArray]:
        """Draws from the distribution, the latest kept in the trial's system attributes."""
        self._restore(study, trial.number)
        self._optimizer.reseed_rng(int(rng.integers(2**32 - 1)))
        while True:
            record = self._layout.record(self._optimizer.ask())
            _keep(study, trial, {"generation": len(self._told), **record})
            yield self._layout.point(record)

    def _begin(self, start: FloatArray) -> None:
        self._start = start
        self._optimizer = self._layout.make(start, self._sigma, self._population)
        self._told: list[tuple[int, ...]] = []

    def _restore(self, study: Study, number: int) -> None:
        """Bring the distribution to where the history has it, from where it is if that leads there.

        A generation is the first trials, by number, that were drawn in it and judged.
        """
        trials = [t for t in study.get_trials(deepcopy=False) if t.number != number]
        drawn = [t for t in trials if self._is_drawn(t)]
        generations = _generations(drawn, self._optimizer.population_size)
        start = self._start_of(trials, study.direction)
        numbers = [tuple(trial.number for trial in members) for members in generations]
        reached = len(self._told)
        if numbers[:reached] != self._told or not np.array_equal(start, self._start, True):
            self._begin(start)
            reached = 0
        for members, told in zip(generations[reached:], numbers[reached:], strict=True):
            # Ranks within the generation depend on nothing that comes later.
            order = np.argsort(targets_of(members, study.direction), kind="stable")
            solutions = [
                (self._layout.solution(_record(members[index])), float(rank))
                for rank, index in enumerate(order)
            ]
            self._optimizer.tell(solutions)
            self._told.append(told)

    def _start_of(self, trials: Sequence[FrozenTrial], direction: StudyDirection) -> FloatArray:
        """The best point before the first trial that was drawn, NaN all over if there is none."""
        before = itertools.takewhile(lambda trial: not self._is_drawn(trial), trials)
        given = [trial for trial in before if trial.state in JUDGED]
        if not given:
            return np.full(self.cube.dimensions, np.nan)
        best = given[int(np.argmin(targets_of(given, direction)))]
        point: FloatArray = self.cube.encode([best.params])[0]
        return point

    def _is_drawn(self, trial: FrozenTrial) -> bool:
        """Whether the trial has what was drawn for it, and not what others put in its place."""
        if trial.number not in self._drawn:
            record = trial.system_attrs.get(ATTRIBUTE)
            self._drawn[trial.number] = record is not None and np.array_equal(
                self._layout.point(record), self.cube.encode([trial.params])[0], equal_nan=True
            )
        return self._drawn[trial.number]


def _generations(drawn: Sequence[FrozenTrial], size: int) -> list[list[FrozenTrial]]:
    """The complete generations in order."""
    members: dict[int, list[FrozenTrial]] = {}
    for trial in drawn:
        if trial.state in JUDGED:
            members.setdefault(_record(trial)["generation"], []).append(trial)
    complete = itertools.takewhile(lambda g: len(members.get(g, ())) >= size, itertools.count())
    return [members[generation][:size] for generation in complete]


def _record(trial: FrozenTrial) -> Mapping[str, Any]:
    record: Mapping[str, Any] = trial.system_attrs[ATTRIBUTE]
    return record


def _keep(study: Study, trial: FrozenTrial, record: Mapping[str, Any]) -> None:
    # As Optuna's own samplers do: a study has no public way to set a system attribute.
    study._storage.set_trial_system_attr(trial._trial_id, ATTRIBUTE, dict(record))


def _make(context: SamplerContext) -> BaseSampler:
    return CmaesSampler(context)


KIND = SamplerKind(
    name="cmaes",
    summary="CMA-ES for numbers and categoricals: local, for many cheap trials",
    settings=(
        Setting(
            "sigma",
            0.2,
            "first standard deviation of every number, in units of its range",
            "a number above 0, at most 1",
            real_number(0, 1, low_excluded=True),
        ),
        Setting(
            "population",
            AUTO,
            "trials per generation; auto is 4 + 3 log(variables)",
            "auto, or a whole number from 4 to 1000",
            word_or(AUTO, whole_number(4, 1_000)),
        ),
    ),
    several_objectives=False,
    make=_make,
)
