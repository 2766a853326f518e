"""What every pruner must do, whatever its rule. A new one in `PRUNERS` is tested here."""

from __future__ import annotations

import numpy as np
import optuna
import pytest
from optuna.pruners import BasePruner
from optuna.trial import TrialState

from lsmtune.errors import InputError
from lsmtune.model.goal import Direction
from lsmtune.search.pruners import PRUNERS, check_pruner, check_settings, make_pruner

optuna.logging.set_verbosity(optuna.logging.ERROR)

ALL = list(PRUNERS)
ENDING = [name for name in ALL if name != "none"]
STEPS = range(1, 28)
DIRECTIONS = (Direction.MAXIMIZE, Direction.MINIMIZE)


def pruner_of(name: str, direction: Direction = Direction.MAXIMIZE, **given: object) -> BasePruner:
    return make_pruner(name, check_settings(name, given, "s", "pruner"), (direction,))


def study_of(pruner: BasePruner, direction: Direction) -> optuna.Study:
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


@pytest.mark.parametrize("direction", DIRECTIONS)
@pytest.mark.parametrize("name", ALL)
def test_the_best_trial_so_far_is_never_ended(name: str, direction: Direction) -> None:
    study = study_of(pruner_of(name, direction), direction)
    assert [run(study, 10.0 + index) for index in range(8)] == [None] * 8


@pytest.mark.parametrize("direction", DIRECTIONS)
@pytest.mark.parametrize("name", ENDING)
def test_a_hopeless_trial_is_ended_before_its_end(name: str, direction: Direction) -> None:
    study = study_of(pruner_of(name, direction), direction)
    for index in range(6):
        run(study, 100.0 + index)
    # Hyperband has brackets in which trials are not judged early: of ten, most are ended.
    ended = [run(study, 1.0 - 0.01 * index) for index in range(10)]
    assert sum(step is not None for step in ended) >= 7
    assert all(step < STEPS[-1] for step in ended if step is not None)


@pytest.mark.parametrize("name", ALL)
def test_without_a_report_nothing_is_judged(name: str) -> None:
    study = study_of(pruner_of(name), Direction.MAXIMIZE)
    for index in range(6):
        run(study, 100.0 + index)
    assert not study.ask().should_prune()


def test_none_ends_nothing() -> None:
    study = study_of(pruner_of("none"), Direction.MAXIMIZE)
    assert [run(study, 100.0 - 10 * index) for index in range(10)] == [None] * 10


@pytest.mark.parametrize("name", ALL)
def test_several_objectives_have_no_pruner(name: str) -> None:
    if name == "none":
        check_pruner(name, DIRECTIONS, "s", "pruner")
        return
    line = f"pruner.name: judges by one objective; found '{name}'; allowed: none"
    with pytest.raises(InputError, match=line):
        check_pruner(name, DIRECTIONS, "s", "pruner")
    with pytest.raises(InputError, match="judges by one objective"):
        make_pruner(name, check_settings(name, {}, "s", "pruner"), DIRECTIONS)


@pytest.mark.parametrize("name", ALL)
def test_defaults_are_values_that_may_be_given(name: str) -> None:
    for setting in PRUNERS[name].settings:
        assert setting.read(setting.default) == setting.default
        assert setting.description
        assert setting.allowed


def test_patience_is_a_number_of_steps() -> None:
    study = study_of(pruner_of("patient", wrapped="none", patience=4), Direction.MAXIMIZE)
    trial = study.ask()
    ended = None
    for step in STEPS:
        trial.report(float(min(step, 20 - step)), step)  # better until step 10, then worse
        if trial.should_prune():
            ended = step
            break
    assert ended == 15  # steps 11 to 15 were all worse than step 10


def test_patience_waits_for_the_other_pruner() -> None:
    study = study_of(pruner_of("patient", wrapped="median", patience=2), Direction.MAXIMIZE)
    for _ in range(6):
        assert run(study, 5.0) is None
    assert run(study, 50.0) is None  # flat, and far above the median
    assert run(study, 1.0) is not None


def test_a_percentile_decides_how_many_go_on() -> None:
    def ended(percentile: float) -> int:
        pruner = pruner_of("percentile", percentile=percentile, startup_trials=10)
        study = study_of(pruner, Direction.MAXIMIZE)
        levels = [100.0 - index for index in range(10)]
        assert [run(study, level) for level in levels] == [None] * 10
        return sum(run(study, level - 0.5) is not None for level in levels)

    assert ended(90.0) < ended(50.0) < ended(5.0)


def test_sizes_of_data_are_rungs_of_successive_halving() -> None:
    # Runs with 5000, 50000 and 500000 keys are steps 1, 10 and 100.
    pruner = pruner_of("successive-halving", min_resource=1, reduction_factor=4)
    study = study_of(pruner, Direction.MAXIMIZE)

    def judged(level: float) -> int | None:
        trial = study.ask()
        for step in (1, 10, 100):
            trial.report(level, step)
            if trial.should_prune():
                study.tell(trial, state=TrialState.PRUNED)
                return step
        study.tell(trial, level)
        return None

    assert [judged(level) for level in (10.0, 20.0, 5.0, 6.0, 21.0)] == [None, None, 1, 1, None]


@pytest.mark.parametrize(
    ("name", "given", "line"),
    [
        ("medain", {}, "s: pruner.name: found 'medain'; allowed: none, median.*mean median"),
        ("none", {"patience": 3}, "pruner.patience: no such setting; allowed: none"),
        ("median", {"warmup": 3}, "pruner.warmup: no such setting; .*did you mean warmup_steps"),
        ("median", {"interval_steps": 0}, "found 0; allowed: a whole number from 1 to 1000000"),
        ("percentile", {"percentile": 101}, "found 101; allowed: a number from 0 to 100"),
        ("successive-halving", {"min_resource": "all"}, "found 'all'; allowed: auto, or a whole"),
        ("successive-halving", {"reduction_factor": 1}, "found 1; allowed: a whole number from 2"),
        ("successive-halving", {"bootstrap_count": 2}, "found 2; allowed: 0 while min_resource"),
        ("hyperband", {"bootstrap_count": 2}, "found 2; allowed: 0 while max_resource is auto"),
        (
            "hyperband",
            {"min_resource": 9, "max_resource": 8},
            r"found 8; allowed: at least .*\(9\)",
        ),
        ("wilcoxon", {"p_threshold": float("nan")}, "found nan; allowed: a number from 0 to 1"),
        ("patient", {"wrapped": "hyperband"}, "found 'hyperband'; allowed: none, median"),
        ("patient", {"patience": -1}, "found -1; allowed: a whole number from 0"),
    ],
)
def test_wrong_settings(name: str, given: dict, line: str) -> None:
    with pytest.raises(InputError, match=line):
        check_settings(name, given, "s", "pruner")
