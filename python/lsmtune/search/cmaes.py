"""`cmaes`: CMA-ES for mixed variables, from the library `cmaes` (`CatCMAwM`).

CatCMAwM (Hamano, Saito, Nomura, Uchida and Shirakawa 2025, arXiv:2504.07884) adapts one normal
distribution over the numbers, with a margin that keeps a coarse grid from freezing, and one
distribution over the choices of each categorical:

| variable | is to CatCMAwM |
|---|---|
| categorical, selector, number of two values | a categorical; selectors begin with their weights |
| number of at most `GRID_MAX` values | a discrete number |
| any other number | continuous in [0, 1] |

A variable of one value is left out.

The distribution moves once per generation, when as many trials drawn from it were judged as its
population has, by their *ranks*: failed trials come last, pruned ones where they would have ended
(`search.history`), and the scale of the values does not matter. Each trial keeps what was drawn for
it in its system attributes; the distribution of any moment is found again by telling every complete
generation in turn. Trials that were not drawn here (a study's start configurations) set where the
search begins: at the best of those before the first drawn one, else in the middle of the space.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from optuna.study import Study, StudyDirection
from optuna.trial import FrozenTrial

from lsmtune.model.setting import AUTO, Setting, above, whole
from lsmtune.search.history import JUDGED, targets_of
from lsmtune.search.model_based import UnitSpaceSampler
from lsmtune.search.sampler import SamplerContext, SamplerKind
from lsmtune.search.unit_space import FloatArray, Shares, UnitSpace

if TYPE_CHECKING:
    from cmaes import CatCMAwM

ATTRIBUTE = "lsmtune:cmaes"
GRID_MAX = 64
# How much of a categorical's first distribution lies on the choice of the start.
START_SHARE = 0.5


class CmaLayout:
    """Indices of the dimensions of `unit_space`, by what they are to CatCMAwM."""

    def __init__(self, unit_space: UnitSpace) -> None:
        self._unit_space = unit_space
        self._dimensions = unit_space.dimensions
        self.continuous: list[int] = []
        self.discrete: list[int] = []
        self.categorical: list[int] = []
        for index, dimension in enumerate(unit_space.dimensions):
            cells = dimension.scale.cells
            if cells == 0 or (dimension.ordered and cells > GRID_MAX):
                self.continuous.append(index)
            elif dimension.ordered and cells > 2:
                self.discrete.append(index)
            elif cells > 1:
                self.categorical.append(index)

    def make(self, start: FloatArray, sigma: float, population: int | str) -> CatCMAwM:
        """A distribution around `start` (dimensions,), where NaN stands for the middle.

        `sigma` and `population` are the sampler's settings.
        """
        # Loaded when it is used: commands that search nothing are not to wait for it.
        from cmaes import CatCMAwM

        numbers = [*self.continuous, *self.discrete]
        return CatCMAwM(
            x_space=[[0.0, 1.0]] * len(self.continuous) or None,
            z_space=[self._dimensions[i].coordinates().tolist() for i in self.discrete] or None,
            c_space=[self._dimensions[i].scale.cells for i in self.categorical] or None,
            population_size=None if population == AUTO else population,
            mean=np.where(np.isnan(start), 0.5, start)[numbers],
            sigma=sigma,
            cov=np.eye(len(numbers)),
            cat_param=self._choices(start) if self.categorical else None,
            seed=0,
        )

    def _choices(self, start: FloatArray) -> FloatArray:
        """The first distributions of the categoricals; shape (categoricals, most choices)."""
        dimensions = [self._dimensions[index] for index in self.categorical]
        shares = np.zeros((len(dimensions), max(dimension.scale.cells for dimension in dimensions)))
        for row, (index, dimension) in enumerate(zip(self.categorical, dimensions, strict=True)):
            scale = dimension.scale
            prior = np.diff((0.0, *scale.ends)) if isinstance(scale, Shares) else 1 / scale.cells
            shares[row, : scale.cells] = prior
            if not np.isnan(start[index]):
                shares[row] *= 1 - START_SHARE
                shares[row, _nearest(dimension.coordinates(), start[index])] += START_SHARE
        return shares

    def record(self, solution: CatCMAwM.Solution) -> dict[str, list[float]]:
        """What was drawn, in JSON: all that `point` and `tell` need of `solution`."""
        # `_v_raw` is the normal draw before it was moved into its bounds and onto its grid. It is
        # private, and the library offers no other way to tell a solution after a restart.
        numbers = [] if solution._v_raw is None else solution._v_raw.tolist()
        choices = [] if solution.c is None else np.argmax(solution.c, axis=1).tolist()
        return {"numbers": numbers, "choices": choices}

    def point(self, record: Mapping[str, Sequence[float]]) -> FloatArray:
        """The point that was drawn: each number the nearest that the space has, as the library."""
        coordinates = np.full(len(self._dimensions), 0.5)
        numbers = np.clip(record["numbers"], 0.0, 1.0)
        coordinates[[*self.continuous, *self.discrete]] = numbers
        for index in self.discrete:
            of_cells = self._dimensions[index].coordinates()
            coordinates[index] = of_cells[_nearest(of_cells, coordinates[index])]
        for index, choice in zip(self.categorical, record["choices"], strict=True):
            coordinates[index] = self._dimensions[index].coordinates()[int(choice)]
        point: FloatArray = self._unit_space.complete(coordinates[np.newaxis])[0]
        return point

    def solution(self, record: Mapping[str, Sequence[float]]) -> CatCMAwM.Solution:
        """The solution that `record` was made of, as far as `tell` looks at it."""
        from cmaes import CatCMAwM

        chosen = None
        if self.categorical:
            most = max(self._dimensions[index].scale.cells for index in self.categorical)
            chosen = np.zeros((len(self.categorical), most), dtype=np.bool_)
            chosen[np.arange(len(chosen)), np.array(record["choices"], dtype=np.intp)] = True
        return CatCMAwM.Solution(c=chosen, _v_raw=np.array(record["numbers"]))


def _nearest(coordinates: FloatArray, wanted: float) -> int:
    return int(np.argmin(np.abs(coordinates - wanted)))


# --- the sampler


class CmaesSampler(UnitSpaceSampler):
    """See the module."""

    def __init__(self, context: SamplerContext) -> None:
        super().__init__(context)
        self._layout = CmaLayout(self.unit_space)
        self._drawn: dict[int, bool] = {}
        self._begin(np.full(self.unit_space.dimension_count, np.nan))

    def propose(self, study: Study, trial: FrozenTrial) -> Iterator[FloatArray]:
        """Draws from the distribution, the latest kept in the trial's system attributes."""
        self._restore(study, trial.number)
        self._optimizer.reseed_rng(int(self.rng.integers(2**32 - 1)))
        while True:
            record = self._layout.record(self._optimizer.ask())
            kept: dict[str, Any] = {"generation": len(self._generations), **record}
            study._storage.set_trial_system_attr(trial._trial_id, ATTRIBUTE, kept)
            yield self._layout.point(record)

    def _begin(self, start: FloatArray) -> None:
        self._start = start
        self._optimizer = self._layout.make(start, **self.settings)
        self._generations: list[tuple[int, ...]] = []

    def _restore(self, study: Study, number: int) -> None:
        """Bring the distribution to where the history has it, from where it is if that leads there.

        A generation is the first trials, by number, that were drawn in it and judged.
        """
        trials = [t for t in study.get_trials(deepcopy=False) if t.number != number]
        drawn = [t for t in trials if self._is_drawn(t)]
        generations = _generations(drawn, self._optimizer.population_size)
        start = self._start_of(trials, study.direction)
        numbers = [tuple(trial.number for trial in members) for members in generations]
        reached = len(self._generations)
        if numbers[:reached] != self._generations or not np.array_equal(start, self._start, True):
            self._begin(start)
            reached = 0
        for members in generations[reached:]:
            # Ranks within the generation depend on nothing that comes later.
            order = np.argsort(targets_of(members, study.direction), kind="stable")
            solutions = [
                (self._layout.solution(members[index].system_attrs[ATTRIBUTE]), float(rank))
                for rank, index in enumerate(order)
            ]
            self._optimizer.tell(solutions)
        self._generations = numbers

    def _start_of(self, trials: Sequence[FrozenTrial], direction: StudyDirection) -> FloatArray:
        """The best point before the first trial that was drawn, NaN all over if there is none."""
        before = itertools.takewhile(lambda trial: not self._is_drawn(trial), trials)
        given = [trial for trial in before if trial.state in JUDGED]
        if not given:
            return np.full(self.unit_space.dimension_count, np.nan)
        best = given[int(np.argmin(targets_of(given, direction)))]
        point: FloatArray = self.unit_space.encode([best.params])[0]
        return point

    def _is_drawn(self, trial: FrozenTrial) -> bool:
        """Whether the trial has what was drawn for it, and not what others put in its place."""
        if trial.number not in self._drawn:
            record = trial.system_attrs.get(ATTRIBUTE)
            self._drawn[trial.number] = record is not None and np.array_equal(
                self._layout.point(record),
                self.unit_space.encode([trial.params])[0],
                equal_nan=True,
            )
        return self._drawn[trial.number]


def _generations(drawn: Sequence[FrozenTrial], size: int) -> list[list[FrozenTrial]]:
    """The complete generations in order."""
    members: dict[int, list[FrozenTrial]] = {}
    for trial in drawn:
        if trial.state in JUDGED:
            members.setdefault(trial.system_attrs[ATTRIBUTE]["generation"], []).append(trial)
    complete = itertools.takewhile(lambda g: len(members.get(g, ())) >= size, itertools.count())
    return [members[generation][:size] for generation in complete]


KIND = SamplerKind(
    name="cmaes",
    summary="CMA-ES for numbers and categoricals: local, for many cheap trials",
    settings=(
        Setting(
            "sigma",
            "first standard deviation of every number, in units of its range",
            0.2,
            above(0, 1),
        ),
        Setting(
            "population",
            "trials per generation; auto is 4 + 3 log(variables)",
            AUTO,
            whole(4, 1_000, auto=True),
        ),
    ),
    several_objectives=False,
    make=CmaesSampler,
)
