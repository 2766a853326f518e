"""`smac`: SMAC 2.4 through its library.

SMAC trains its model after every 8 configurations and proposes 8 from it (`retrain_after`). So does
this sampler: the trials after the start-up ones come in *epochs*. What is proposed in an epoch
follows from the trials before it and a seed of its own; a study that was stopped in the middle of
an epoch asks again and gets the same list, of which it takes what was not tried.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from optuna.study import Study
from optuna.trial import FrozenTrial

from lsmtune.errors import InputError
from lsmtune.model.setting import Setting, whole
from lsmtune.search.model_based import UnitSpaceSampler
from lsmtune.search.sampler import SamplerContext, SamplerKind, seed_of_trial
from lsmtune.search.unit_space import FloatArray


class SmacSampler(UnitSpaceSampler):
    """See the module."""

    def __init__(self, context: SamplerContext) -> None:
        # Here and not above: SMAC takes seconds to import, and lists of samplers need not wait.
        from lsmtune_smac import library

        super().__init__(context)
        self._smac = library
        self._startup_trials: int = context.settings["startup_trials"]
        self._retrain_after: int = context.settings["retrain_after"]
        self._challengers: int = context.settings["challengers"]
        self._local_searches: int = context.settings["local_searches"]
        self._design: list[FloatArray] | None = None
        self._epoch = _Epoch((), iter(()))

    def propose(self, study: Study, trial: FrozenTrial) -> Iterator[FloatArray]:
        """What is new of the design, or of the epoch that the trial belongs to."""
        trials = study.get_trials(deepcopy=False)
        tried = self.reader.read(trials, trial.number, study.direction).tried()
        if trial.number < self._startup_trials:
            if self._design is None:
                seed = seed_of_trial(self.seed, 0)
                self._design = self._smac.design(self.unit_space, self._startup_trials, seed)
            points: Iterator[FloatArray] = iter(self._design)
        else:
            first = trial.number - (trial.number - self._startup_trials) % self._retrain_after
            points = iter(self._epoch_from(first, study, trials, trial.number))
        return (point for point in points if point.tobytes() not in tried)

    def _epoch_from(
        self, first: int, study: Study, trials: Sequence[FrozenTrial], number: int
    ) -> _Epoch:
        """The epoch that begins with trial `first`, the last one again where nothing changed."""
        before = [trial for trial in trials if trial.number < first]
        key = (first, *((trial.number, trial.state) for trial in before))
        if self._epoch.key != key:
            history = self.reader.read(before, number, study.direction)
            points = self._smac.proposals(
                self.unit_space,
                history,
                seed_of_trial(self.seed, first),
                challengers=self._challengers,
                local_searches=self._local_searches,
            )
            # Nothing to learn from: SMAC would sample at random, and so do we.
            self._epoch = _Epoch(key, points if len(history) else iter(()))
        return self._epoch


class _Epoch:
    """The proposals of an epoch, made when they are first needed; `key` says which it is."""

    def __init__(self, key: tuple[object, ...], points: Iterator[FloatArray]) -> None:
        self.key = key
        self._made: list[FloatArray] = []
        self._points = points

    def __iter__(self) -> Iterator[FloatArray]:
        yield from self._made
        for point in self._points:
            self._made.append(point)
            yield point


def _check(context: SamplerContext, source: str, field: str) -> None:
    searches, needed = context.settings["local_searches"], context.settings["retrain_after"]
    if searches < needed:
        # Each local search ends in one proposal, and SMAC fills up with random configurations.
        allowed = f"at least retrain_after ({needed})"
        raise InputError(source, f"{field}.local_searches", found=searches, allowed=allowed)


KIND = SamplerKind(
    name="smac",
    summary="SMAC's random forest with expected improvement",
    settings=(
        Setting(
            "startup_trials",
            "trials of a Sobol design before the forest guides",
            10,
            whole(1, 10_000),
        ),
        Setting(
            "retrain_after",
            "trials between one training of the forest and the next",
            8,
            whole(1, 1_000),
        ),
        Setting(
            "challengers",
            "random configurations compared for each training",
            10_000,
            whole(1, 100_000),
        ),
        Setting(
            "local_searches",
            "local searches for each training, at least retrain_after: each ends in a proposal",
            10,
            whole(1, 100),
        ),
    ),
    several_objectives=False,
    make=SmacSampler,
    check=_check,
)
