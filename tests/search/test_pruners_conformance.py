"""lsmtune's own pruners in the suite for all pruners, and what is particular about them."""

from __future__ import annotations

import pytest
from optuna.trial import TrialState

from lsmtune.errors import InputError
from lsmtune.model.goal import Direction
from lsmtune.search.pruners import PRUNERS, check_settings
from lsmtune.testing.pruners import STEPS, PrunerSuite, pruner_of, run, study_of


class TestNone(PrunerSuite):
    name, ends = "none", False


class TestFarBehind(PrunerSuite):
    name = "far-behind"


class TestMedian(PrunerSuite):
    name = "median"


class TestPercentile(PrunerSuite):
    name = "percentile"


class TestSuccessiveHalving(PrunerSuite):
    name = "successive-halving"


class TestHyperband(PrunerSuite):
    name = "hyperband"


class TestWilcoxon(PrunerSuite):
    name = "wilcoxon"


class TestPatient(PrunerSuite):
    name = "patient"


def test_every_pruner_of_lsmtunes_own_is_in_the_suite() -> None:
    tested = {each.name for each in PrunerSuite.__subclasses__()}
    assert {name for name in PRUNERS if PRUNERS.origin(name) is None} <= tested


def test_none_ends_nothing() -> None:
    study = study_of(pruner_of("none"), Direction.MAXIMIZE)
    assert [run(study, 100.0 - 10 * index) for index in range(10)] == [None] * 10


@pytest.mark.parametrize(
    ("rates", "ended"),
    [
        # The best one's slowest rate from step 5 on is 80: less than 40 is far behind.
        ([39.0] * 20, 5),
        ([41.0] * 20, None),
        # What is slow while caches fill is not judged, and what is fast then is no excuse.
        ([10.0, 10.0, 10.0, 10.0, 60.0, 90.0], None),
        ([200.0, 150.0, 120.0, 100.0, 60.0, 30.0], 6),
        ([-5.0] * 20, None),  # there is no ratio
    ],
)
def test_far_behind_is_less_than_half_of_the_slowest_that_the_best_was(
    rates: list[float], ended: int | None
) -> None:
    for direction in (Direction.MAXIMIZE, Direction.MINIMIZE):
        study = study_of(pruner_of("far-behind"), direction)

        def value(rate: float, towards: Direction = direction) -> float:
            return rate if towards is Direction.MAXIMIZE or rate < 0 else 1000.0 / rate

        first = study.ask()
        for step in range(1, 21):
            first.report(value(10.0 if step < 5 else 120.0 - 2 * step), step)
            assert not first.should_prune()  # before any trial has ended there is no best one
        study.tell(first, value(85.0))
        trial = study.ask()
        judged = []
        for step, rate in enumerate(rates, 1):
            trial.report(value(rate), step)
            judged.append(trial.should_prune())
        assert (judged.index(True) + 1 if True in judged else None) == ended


@pytest.mark.parametrize("name", ["successive-halving", "hyperband"])
def test_where_rungs_are_does_not_depend_on_when_a_session_began(name: str) -> None:
    """Of the trials that had ended when it first judged the longest said it: more after a stop."""

    def ended(*, anew: bool) -> list[int | None]:
        study = study_of(pruner_of(name), Direction.MAXIMIZE)
        found: list[int | None] = []
        for index, steps in enumerate([10, 400, *[100] * 20]):
            if anew:
                study.pruner = pruner_of(name)
            trial, level = study.ask(), 100.0 + index if index < 2 else 1.0 - 0.01 * index
            for step in range(1, steps + 1):
                trial.report(level, step)
                if trial.should_prune():
                    study.tell(trial, state=TrialState.PRUNED)
                    found.append(step)
                    break
            else:
                study.tell(trial, level)
                found.append(None)
        return found

    straight = ended(anew=False)
    assert straight[:2] == [None, None]
    assert ended(anew=True) == straight


def test_a_run_that_stands_still_is_far_behind() -> None:
    """A program that reported 0 operations per second was let go on, and one that reported 1 ended.

    A cost of 0 is as good as can be.
    """
    for direction in (Direction.MAXIMIZE, Direction.MINIMIZE):
        study = study_of(pruner_of("far-behind"), direction)
        first = study.ask()
        for step in STEPS:
            first.report(100.0, step)
        study.tell(first, 100.0)
        trial = study.ask()
        trial.report(0.0, STEPS[-1])
        assert trial.should_prune() == (direction is Direction.MAXIMIZE)


@pytest.mark.parametrize("steps_of_best", [0, 6])
def test_wilcoxon_says_nothing_of_rungs_that_the_best_trial_did_not_reach(
    steps_of_best: int,
) -> None:
    """The fastest run passes the fewest rungs: Python warned of each slower one on the terminal."""
    study = study_of(pruner_of("wilcoxon"), Direction.MAXIMIZE)
    best = study.ask()
    for step in STEPS[:steps_of_best]:
        best.report(100.0 + step, step)
    study.tell(best, 100.0)
    slower = study.ask()
    judged = []
    for step in STEPS[:9]:
        slower.report(50.0 + 0.9 * step, step)
        judged.append(slower.should_prune())
    assert judged[-1] == (steps_of_best > 0)


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
        (
            "medain",
            {},
            "s: pruner.name: found 'medain'; allowed: none, far-behind, median.*mean median",
        ),
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
