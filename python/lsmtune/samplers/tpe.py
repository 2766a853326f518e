"""`tpe`: Optuna's tree-structured Parzen estimator, multivariate, by groups of parameters.

Parameters that are active in the same trials form a group, and each group has an estimator of its
own: so the multivariate TPE learns parameters that only some trials have. Optuna does the same with
`group=True`. Here a group is asked for values when the trial turns out to need it, not before: an
estimator of inactive parameters costs as much as any, and a space of an engine has many of them.
"""

from __future__ import annotations

from typing import Any

from optuna.distributions import BaseDistribution
from optuna.samplers import BaseSampler, TPESampler
from optuna.study import Study
from optuna.trial import FrozenTrial, TrialState

from lsmtune.records.setting import Setting, whole_number
from lsmtune.samplers.kind import SamplerContext, SamplerKind
from lsmtune.samplers.per_trial import PerTrialSampler

_LEARNED_FROM = (TrialState.COMPLETE, TrialState.PRUNED)
_Names = frozenset[str]


class GroupedTpeSampler(PerTrialSampler):
    """Asks Optuna's TPE for one group of variables at a time."""

    def __init__(self, context: SamplerContext) -> None:
        get = context.get

        def make(seed: int) -> BaseSampler:
            return TPESampler(
                seed=seed,
                n_startup_trials=get.whole("startup_trials"),
                n_ei_candidates=get.whole("candidates"),
                multivariate=True,
                constant_liar=True,
            )

        super().__init__(make, context.seed)
        self._distributions = context.space.distributions()
        self._together: dict[int, _Names] = {}
        self._groups: dict[str, _Names] = {}
        self._drawn: dict[str, Any] = {}

    def before_trial(self, study: Study, trial: FrozenTrial) -> None:
        """Begin the random stream of the trial, and bring the groups up to date."""
        super().before_trial(study, trial)
        known = len(set(self._together.values()))
        for finished in study.get_trials(deepcopy=False, states=_LEARNED_FROM):
            if finished.number not in self._together:
                self._together[finished.number] = frozenset(finished.params)
        combinations = set(self._together.values())
        if len(combinations) > known:
            self._groups = groups_of(combinations)

    def infer_relative_search_space(
        self,
        study: Study,  # noqa: ARG002
        trial: FrozenTrial,  # noqa: ARG002
    ) -> dict[str, BaseDistribution]:
        """Nothing: which groups there are is known when the first of their variables is asked."""
        return {}

    def sample_relative(
        self,
        study: Study,  # noqa: ARG002
        trial: FrozenTrial,  # noqa: ARG002
        search_space: dict[str, BaseDistribution],  # noqa: ARG002
    ) -> dict[str, Any]:
        """Forget the values of a proposal that was refused."""
        self._drawn = {}
        return {}

    def sample_independent(
        self,
        study: Study,
        trial: FrozenTrial,
        param_name: str,
        param_distribution: BaseDistribution,
    ) -> Any:
        """A value for one variable, drawn together with its group."""
        if param_name not in self._drawn and param_name in self._groups:
            # In order of names, as sets have none that a second process would repeat.
            group = {n: self._distributions[n] for n in sorted(self._groups[param_name])}
            self._drawn |= self._inner.sample_relative(study, trial, group)
        if param_name not in self._drawn:
            # No trial has had it yet, or it is too early to learn: at random.
            value = self._inner.sample_independent(study, trial, param_name, param_distribution)
            self._drawn[param_name] = value
        return self._drawn[param_name]


def groups_of(combinations: set[_Names]) -> dict[str, _Names]:
    """For each name its group: all names that are in exactly the same `combinations` as it is."""
    marks: dict[str, list[int]] = {}
    for index, names in enumerate(combinations):
        for name in names:
            marks.setdefault(name, []).append(index)
    groups: dict[tuple[int, ...], set[str]] = {}
    for name, mark in marks.items():
        groups.setdefault(tuple(mark), set()).add(name)
    return {name: frozenset(groups[tuple(mark)]) for name, mark in marks.items()}


KIND = SamplerKind(
    name="tpe",
    summary="Optuna's multivariate TPE: learns which values the good trials have in common",
    settings=(
        # Both defaults are Optuna's own.
        Setting(
            "startup_trials",
            10,
            "trials drawn at random before it learns",
            "a whole number from 1 to 100000",
            whole_number(1, 100_000),
        ),
        Setting(
            "candidates",
            24,
            "configurations compared for each trial",
            "a whole number from 1 to 10000",
            whole_number(1, 10_000),
        ),
    ),
    several_objectives=True,
    make=GroupedTpeSampler,
)
