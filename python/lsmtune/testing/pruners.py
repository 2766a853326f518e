"""What every pruner must do, whatever its rule."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import ClassVar

import numpy as np
import optuna
import pytest
from optuna.pruners import BasePruner
from optuna.trial import TrialState

from lsmtune.errors import InputError
from lsmtune.model.goal import Direction
from lsmtune.search.pruners import PRUNERS, PrunerKind, check_pruner, check_settings

optuna.logging.set_verbosity(optuna.logging.ERROR)

STEPS = range(1, 28)
DIRECTIONS = (Direction.MAXIMIZE, Direction.MINIMIZE)


def pruner_of(name: str, **given: object) -> BasePruner:
    """The pruner `name` with `given` settings."""
    return PRUNERS[name].make(**check_settings(name, given, "s", "pruner"))


def study_of(pruner: BasePruner, direction: Direction) -> optuna.Study:
    """A study in memory."""
    return optuna.create_study(direction=direction.value, pruner=pruner, study_name="study")


def run(study: optuna.Study, level: float) -> int | None:
    """One trial that comes to about `level` at every step; when it was ended, or None.

    A higher level is better, whatever the study's direction.
    """
    sign = 1.0 if study.direction == optuna.study.StudyDirection.MAXIMIZE else -1.0
    trial = study.ask()
    # Noise of its own: scipy takes seconds over a signed-rank test of equal differences.
    noise = np.random.default_rng(trial.number)
    for step in STEPS:
        trial.report(sign * (level + 0.001 * noise.random()), step)
        if trial.should_prune():
            study.tell(trial, state=TrialState.PRUNED)
            return step
    study.tell(trial, sign * level)
    return None


class PrunerSuite:
    """The tests of one pruner, installed by its package or lsmtune's own.

    Attributes:
        name: As a study file has it.
        settings: With which it judges trials at about 1 beside others at about 100; its defaults
            unless given.
        ends: Whether it ends any trial.
    """

    name: ClassVar[str]
    settings: ClassVar[Mapping[str, object]] = MappingProxyType({})
    ends: ClassVar[bool] = True

    @property
    def kind(self) -> PrunerKind:
        """What it says of itself."""
        return PRUNERS[self.name]

    def study(self, direction: Direction) -> optuna.Study:
        """A new study with it."""
        return study_of(pruner_of(self.name, **self.settings), direction)

    @pytest.mark.parametrize("direction", DIRECTIONS)
    def test_the_best_trial_so_far_is_never_ended(self, direction: Direction) -> None:
        study = self.study(direction)
        assert [run(study, 10.0 + index) for index in range(8)] == [None] * 8

    @pytest.mark.parametrize("direction", DIRECTIONS)
    def test_a_hopeless_trial_is_ended_before_its_end(self, direction: Direction) -> None:
        study = self.study(direction)
        for index in range(6):
            run(study, 100.0 + index)
        # Hyperband has brackets in which trials are not judged early: of ten, most are ended.
        ended = [run(study, 1.0 - 0.01 * index) for index in range(10)]
        judged = [step for step in ended if step is not None]
        assert len(judged) >= 7 if self.ends else not judged
        assert all(step < STEPS[-1] for step in judged)

    def test_without_a_report_nothing_is_judged(self) -> None:
        study = self.study(Direction.MAXIMIZE)
        for index in range(6):
            run(study, 100.0 + index)
        assert not study.ask().should_prune()

    def test_several_objectives_have_no_pruner(self) -> None:
        if not self.ends:
            check_pruner(self.name, DIRECTIONS, "s", "pruner")
            return
        line = f"pruner.name: judges by one objective; found '{self.name}'; allowed: none"
        with pytest.raises(InputError, match=line):
            check_pruner(self.name, DIRECTIONS, "s", "pruner")

    def test_defaults_are_values_that_may_be_given(self) -> None:
        assert self.kind.name == self.name
        assert self.kind.summary
        for setting in self.kind.settings:
            assert setting.domain.read(setting.default) == setting.default
            assert setting.description
            assert setting.domain.allowed
