"""What samplers with a model share: how they come to candidates, and when they are asked.

Candidates are ranked by a score instead of found by following gradients: half of the options of an
engine are categorical, stepped or conditional, and a tree has no gradient.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterator, Set
from itertools import islice
from typing import Any

import numpy as np
from optuna.study import Study
from optuna.trial import FrozenTrial

from lsmtune.model.setting import Setting, real, whole
from lsmtune.search.history import History, HistoryReader
from lsmtune.search.sampler import ProposingSampler, SamplerContext
from lsmtune.search.unit_space import FloatArray, UnitSpace, make_unit_space


class UnitSpaceSampler(ProposingSampler):
    """Asks `propose` for points, trial by trial; random ones when that has no more."""

    def __init__(self, context: SamplerContext) -> None:
        super().__init__(context)
        self.unit_space: UnitSpace = make_unit_space(context.space)
        self.reader = HistoryReader(self.unit_space)

    @abstractmethod
    def propose(self, study: Study, trial: FrozenTrial) -> Iterator[FloatArray]:
        """Points (dimensions,) for `trial`."""

    def proposals(self, study: Study, trial: FrozenTrial) -> Iterator[dict[str, Any]]:
        """See `ProposingSampler`."""
        for point in self.propose(study, trial):
            yield self.unit_space.decode(point)
        while True:
            yield self.unit_space.decode(self.unit_space.sample(self.rng, 1)[0])


# --- candidates

# Standard deviations of a changed coordinate, one drawn per neighbour: from a nudge to a leap.
STEP_SIZES = (0.02, 0.08, 0.3)
# The mean number of further coordinates that change together with the first one.
FURTHER_CHANGES = 1.0
# Of the best points so far so many are searched around in each round.
BEAM = 10

Score = Callable[[FloatArray], FloatArray]


def neighbours(
    unit_space: UnitSpace, rng: np.random.Generator, points: FloatArray, count_each: int
) -> FloatArray:
    """`count_each` neighbours of every point; shape (len(points) * count_each, dimensions).

    One coordinate, and sometimes a few more, takes a normal step that is reflected at the bounds;
    an unordered one is drawn anew. A variable that becomes active by that is drawn at random.
    """
    full = np.where(np.isnan(points), rng.random(points.shape), points)
    origin = np.repeat(full, count_each, axis=0)
    total, count = origin.shape
    changes = rng.random(origin.shape) < FURTHER_CHANGES / count
    # One active coordinate of each point, each equally likely.
    is_inactive = np.isnan(np.repeat(points, count_each, axis=0))
    chances = np.where(is_inactive, -1.0, rng.random(origin.shape))
    changes[np.arange(total), np.argmax(chances, axis=1)] = True
    sizes = rng.choice(STEP_SIZES, size=(total, 1))
    # A step smaller than a cell would leave the value as it is.
    widths = np.array([1 / c.scale.cells if c.scale.cells else 0.0 for c in unit_space.dimensions])
    # Reflected at the bounds, as often as it takes.
    folded = np.mod(origin + rng.normal(size=origin.shape) * np.maximum(sizes, widths), 2.0)
    stepped = np.minimum(folded, 2.0 - folded)
    ordered = np.array([dimension.ordered for dimension in unit_space.dimensions])
    moved = np.where(ordered, stepped, rng.random(origin.shape))
    return unit_space.complete(np.where(changes, moved, origin))


# --- a sampler with a model


def candidates_setting(default: int = 1000) -> Setting:
    """How many random points are scored."""
    text = "random configurations compared for each trial"
    return Setting("candidates", text, default, whole(1, 100_000))


def startup_setting(model: str, default: int = 10) -> Setting:
    """How many trials come before the `model` guides."""
    text = f"trials drawn at random before the {model} guides"
    return Setting("startup_trials", text, default, whole(1, 100_000))


def random_share_setting(default: float) -> Setting:
    """How often the model is not asked."""
    text = "share of later trials that are drawn at random"
    return Setting("random_share", text, default, real(0, 1))


class ModelSampler(UnitSpaceSampler):
    """Draws at random until `startup_trials` trials were judged; then its model proposes.

    `startup_trials` and `candidates` are settings of every such sampler; with the setting
    `random_share`, such a share of later trials is drawn at random, too. The others are the points
    of `rank`, in its order, without those that may not run. `best_new` finds them in `rounds`
    rounds of `near` neighbours.
    """

    near: int
    rounds: int

    def __init__(self, context: SamplerContext) -> None:
        super().__init__(context)
        self._accepts = context.accepts
        self._looked_up: dict[bytes, bool] = {}  # of this trial's points, whether they may run

    @abstractmethod
    def rank(self, history: History) -> FloatArray:
        """New points for `history` (not empty), the best first; shape (n, dimensions)."""

    def best_new(
        self, tried: Set[bytes], score: Score, starts: FloatArray, *further: FloatArray
    ) -> FloatArray:
        """New points, the best by `score` first; none was `tried`, none comes twice.

        Random points, neighbours of `starts`, and `further` points are scored (higher is better);
        then, in rounds, neighbours of the best so far that may run: where nothing may run, a model
        never learns that little is to be had. Shape (n, dimensions), n may be 0 where a small space
        holds nothing new.
        """
        space, rng, near = self.unit_space, self.rng, self.near
        pool = [space.sample(rng, self.settings["candidates"]), *further]
        if len(starts):
            pool.append(neighbours(space, rng, starts, max(1, near // len(starts))))
        points = np.vstack(pool)
        scores = score(points)
        for _ in range(self.rounds):
            in_order = points[np.argsort(-scores, kind="stable")]
            best = np.array([*islice(filter(self._allowed, in_order), BEAM)])
            if not len(best):
                break
            more = neighbours(space, rng, best, max(1, near // len(best)))
            points, scores = np.vstack([points, more]), np.concatenate([scores, score(more)])
        points = points[np.argsort(-scores, kind="stable")]
        first: dict[bytes, int] = {}
        for index, row in enumerate(points):
            first.setdefault(row.tobytes(), index)
        return points[[index for row, index in first.items() if row not in tried]]

    def _allowed(self, point: FloatArray) -> bool:
        """Whether a point (dimensions,) may run."""
        if self._accepts is None:
            return True
        key = point.tobytes()
        if key not in self._looked_up:
            self._looked_up[key] = not self._accepts(self.unit_space.values_at(point))
        return self._looked_up[key]

    def propose(self, study: Study, trial: FrozenTrial) -> Iterator[FloatArray]:
        """See `UnitSpaceSampler`; nothing, which is chance, where the model is not asked."""
        history = self.reader.read(study.get_trials(deepcopy=False), trial.number, study.direction)
        at_random = self.rng.random() < self.settings.get("random_share", 0.0)
        if len(history) >= self.settings["startup_trials"] and not at_random:
            self._looked_up.clear()
            yield from filter(self._allowed, self.rank(history))
