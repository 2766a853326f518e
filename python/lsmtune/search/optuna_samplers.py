"""Optuna's samplers `random`, `tpe`, `nsga2` and `nsga3`, made anew for each trial with its seed.

An Optuna sampler keeps one random stream for its life; a process that goes on with a study would
draw the same values twice. Made anew with a seed of the trial's own, it needs no memory.

`tpe` is the multivariate tree-structured Parzen estimator. Parameters that are active in the same
trials form a group with an estimator of its own, so that it learns those that only some trials
have. Unlike Optuna's `group=True`, a group is asked for values when the trial turns out to need it:
a space of an engine has many inactive parameters, which cost as much as any.

`nsga2` and `nsga3` are genetic algorithms, for several objectives above all. Each trial has its
generation as a system attribute. Who the parents of a generation are follows from the trials of the
one before; it is worked out anew in each session, with a random stream that belongs to the
generation, not to the trial that happens to need it first.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Container, Iterator
from functools import partial
from typing import Any

import numpy as np
from optuna.distributions import BaseDistribution
from optuna.exceptions import ExperimentalWarning
from optuna.samplers import BaseSampler, NSGAIIISampler, NSGAIISampler, RandomSampler, TPESampler
from optuna.study import Study, StudyDirection
from optuna.trial import FrozenTrial, TrialState

from lsmtune.model.setting import Setting, real, whole
from lsmtune.search.history import JUDGED
from lsmtune.search.sampler import (
    ProposingSampler,
    SamplerContext,
    SamplerKind,
    Use,
    proposed,
    seed_of_trial,
    suggest,
)


class PerTrialSampler(ProposingSampler):
    """Asks, for each trial, the sampler that `make(seed_of_trial(seed, number))` returns."""

    def __init__(self, make: Callable[[int], BaseSampler], context: SamplerContext) -> None:
        super().__init__(context)
        self._make = make

    def proposals(self, study: Study, trial: FrozenTrial) -> Iterator[dict[str, Any]]:
        """See `ProposingSampler`."""
        inner = self._make(seed_of_trial(self.seed, trial.number))
        for suggestion in proposed(inner, self.space, study, trial):
            yield dict(suggestion.params)


class FewerTrials(Study):
    """A study as if it had the best and the latest of its trials alone, half of each.

    The best are those that break no constraint; others only where these are too few.
    """

    def __init__(self, study: Study, most: int) -> None:
        vars(self).update(vars(study))
        self._kept = study.get_trials(deepcopy=False)
        if len(self._kept) <= most:
            return
        half = most // 2
        early, late = self._kept[: half - most], self._kept[half - most :]
        valued = [t for t in early if t.state == TrialState.COMPLETE]
        sign = -1.0 if study.direction == StudyDirection.MAXIMIZE else 1.0
        broken = [any(by > 0 for by in t.constraints.values()) for t in valued]
        order = np.lexsort(([sign * t.values[0] for t in valued], broken))
        best = np.sort(order[:half]).tolist()
        self._kept = [*(valued[place] for place in best), *late]

    def _get_trials(
        self,
        deepcopy: bool = True,
        states: Container[TrialState] | None = None,
        use_cache: bool = False,
    ) -> list[FrozenTrial]:
        return [t for t in self._kept if states is None or t.state in states]


# --- random


RANDOM = SamplerKind(
    name="random",
    summary="independent draws from the priors; the measure of what a search is worth",
    settings=(),
    several_objectives=True,
    # Priors, scales and the weights of special values are in the space's Optuna variables.
    make=partial(PerTrialSampler, RandomSampler),
    learns=False,
)


# --- tpe


class GroupedTpeSampler(ProposingSampler):
    """Asks Optuna's TPE for one group of variables at a time."""

    def proposals(self, study: Study, trial: FrozenTrial) -> Iterator[dict[str, Any]]:
        """See `ProposingSampler`; each variable is drawn together with its group."""
        judged = study.get_trials(deepcopy=False, states=JUDGED)
        groups = groups_of({frozenset(each.params) for each in judged})
        tpe = TPESampler(
            seed=seed_of_trial(self.seed, trial.number),
            n_startup_trials=self.settings["startup_trials"],
            n_ei_candidates=self.settings["candidates"],
            multivariate=True,
            constant_liar=True,
        )
        suggested: dict[str, Any] = {}

        def ask(name: str, distribution: BaseDistribution) -> Any:
            if name not in suggested and name in groups:
                group = {n: self.space.distributions()[n] for n in groups[name]}
                suggested.update(tpe.sample_relative(study, trial, group))
            if name not in suggested:
                # No trial has had it yet, or it is too early to learn: at random.
                suggested[name] = tpe.sample_independent(study, trial, name, distribution)
            return suggested[name]

        while True:
            yield dict(suggest(self.space, ask).params)
            suggested.clear()


def groups_of(combinations: set[frozenset[str]]) -> dict[str, list[str]]:
    """For each name its group: all names that are in exactly the same `combinations` as it is."""
    groups: dict[tuple[bool, ...], list[str]] = {}
    # In order of names, as sets have none that a second process would repeat.
    for name in sorted(frozenset[str]().union(*combinations)):
        groups.setdefault(tuple(name in names for names in combinations), []).append(name)
    return {name: group for group in groups.values() for name in group}


TPE = SamplerKind(
    name="tpe",
    summary="Optuna's multivariate TPE: learns which values the good trials have in common",
    settings=(
        # Both defaults are Optuna's own.
        Setting("startup_trials", "trials drawn at random before it learns", 10, whole(1, 100_000)),
        Setting("candidates", "configurations compared for each trial", 24, whole(1, 10_000)),
    ),
    several_objectives=True,
    make=GroupedTpeSampler,
)


# --- nsga2 and nsga3

_Genetic = NSGAIISampler | NSGAIIISampler


class GeneticSampler(PerTrialSampler):
    """A genetic sampler made anew for each trial and for each generation's selection."""

    def __init__(self, kind: type[_Genetic], context: SamplerContext) -> None:
        super().__init__(self._genetic, context)
        self._kind = kind
        self._selected = 0

    def _genetic(self, seed: int) -> _Genetic:
        # Optuna has called NSGA-III experimental since 2023.
        with warnings.catch_warnings(action="ignore", category=ExperimentalWarning):
            return self._kind(
                seed=seed,
                population_size=self.settings["population"],
                crossover_prob=self.settings["crossover_probability"],
            )

    def before_trial(self, study: Study, trial: FrozenTrial) -> None:
        """Give the trial its generation, a queued one too, and make sure that it has parents."""
        super().before_trial(study, trial)
        generation = self._genetic(0).get_trial_generation(study, trial)
        # From the first generation on, one by one: Optuna asks for each one's parents in turn, and
        # would meet the limit of Python's stack in a long study.
        for number in range(self._selected + 1, generation + 1):
            seed = seed_of_trial(self.seed, number, Use.GENERATION)
            self._genetic(seed).get_parent_population(study, number)
        self._selected = max(self._selected, generation)


_SETTINGS = (
    # Optuna's default of 50 would leave most studies of a storage engine in their first generation,
    # which is drawn at random.
    Setting(
        "population",
        "trials of a generation; the first one is drawn at random",
        20,
        whole(2, 10_000),
    ),
    Setting("crossover_probability", "share of the trials that have two parents", 0.9, real(0, 1)),
)

NSGA2 = SamplerKind(
    name="nsga2",
    summary="genetic algorithm that keeps the front of several objectives spread out",
    settings=_SETTINGS,
    several_objectives=True,
    make=partial(GeneticSampler, NSGAIISampler),
)
NSGA3 = SamplerKind(
    name="nsga3",
    summary="as nsga2, for three objectives and more (by reference points)",
    settings=_SETTINGS,
    several_objectives=True,
    make=partial(GeneticSampler, NSGAIIISampler),
)
