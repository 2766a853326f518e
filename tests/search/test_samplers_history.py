"""What a model learns from: every judged trial has a finite target, lower is better."""

from __future__ import annotations

import numpy as np
import optuna
import pytest
from hypothesis import given
from hypothesis import strategies as st
from optuna.study import StudyDirection
from optuna.trial import FrozenTrial, TrialState, create_trial

from lsmtune.search.auto import Known
from lsmtune.search.history import HistoryReader, impute_censored, make_targets
from lsmtune.search.in_memory_study import ValueNoise
from lsmtune.search.sampler import FAILED
from lsmtune.search.unit_space import make_unit_space
from lsmtune.testing.search import NUMBERS
from optuna_draws import draws

UNIT_SPACE = make_unit_space(NUMBERS)
DISTRIBUTIONS = NUMBERS.distributions()
PARAMS = {"a": 0.5, "b": 10.0, "c": 16, "d": 50}


def a_trial(
    number: int,
    state: TrialState = TrialState.COMPLETE,
    value: float | None = None,
    reported: dict[int, float] | None = None,
    violations: dict[str, float] | None = None,
) -> FrozenTrial:
    trial = create_trial(
        state=state,
        value=value,
        params={**PARAMS, "d": number},
        distributions=DISTRIBUTIONS,
        intermediate_values=reported or {},
        constraints=violations,
    )
    trial.number = number
    return trial


def test_the_table_of_the_module_holds() -> None:
    trials = [
        a_trial(0, value=4.0),
        a_trial(1, value=1.0),
        a_trial(2, value=9.0),
        a_trial(3, TrialState.PRUNED, reported={1: 100.0, 2: 2.0}),
        a_trial(4, TrialState.PRUNED, reported={1: 50.0}),
        a_trial(5, TrialState.PRUNED, reported={1: 99.0}, violations={FAILED: 1.0}),
        a_trial(6, value=1000.0, violations={"rss": 0.5, "p99": -1.0}),
        a_trial(7, TrialState.FAIL),
        a_trial(8, TrialState.RUNNING),
        a_trial(9, TrialState.RUNNING),
    ]
    history = HistoryReader(UNIT_SPACE).read(trials, 9, StudyDirection.MAXIMIZE)
    # Put back (7) says nothing; 50 at the first interval is no better than the median, 4.
    failed = 0.1 * np.log(9.0)
    wanted = [*-np.log([4.0, 1.0, 9.0, 2.0, 4.0]), failed, failed]
    np.testing.assert_allclose(history.targets, wanted)
    assert history.points.shape == (7, 4)
    assert history.running.shape == (1, 4)
    assert history.points[7 - 1].tobytes() in history.tried()
    _, targets, _, _ = history.with_running()
    assert targets[-1] == np.median(history.targets)


def test_what_was_reported_early_is_read_by_how_far_the_others_came_from_there() -> None:
    """Trials are pruned by the values at a rung, which are not those at the end."""
    trials = [
        a_trial(0, value=4.0, reported={1: 40.0, 2: 8.0}),
        a_trial(1, value=1.0, reported={1: 10.0}),
        a_trial(2, value=9.0, reported={1: 90.0}),
        a_trial(3, TrialState.PRUNED, reported={1: 60.0}),
        a_trial(4, TrialState.PRUNED, reported={1: 60.0, 2: 6.0}),
        a_trial(5, TrialState.PRUNED, reported={3: 7.0}),
        a_trial(6, TrialState.PRUNED, violations={FAILED: 1.0}),
    ]
    history = HistoryReader(UNIT_SPACE).read(trials, 9, StudyDirection.MAXIMIZE)
    # 60 at the first rung is better than the median: no worse than it came to is it told as.
    np.testing.assert_allclose(history.targets[3:6], -np.log([6.0, 3.0, 4.0]))
    assert history.censored.tolist() == [False] * 3 + [True] * 3 + [False]


def test_a_run_that_was_ended_at_nothing_leaves_all_on_one_scale() -> None:
    """Targets were logarithms and variances were not: to `gp` every value was noise."""
    trials = [
        a_trial(0, value=40.0, reported={1: 20.0}),
        a_trial(1, value=10.0, reported={1: 5.0}),
        a_trial(2, TrialState.PRUNED, reported={1: 0.0}),
    ]
    for trial in trials[:2]:
        trial.system_attrs = {**trial.system_attrs, "lsmtune:noise": ValueNoise(4.0, 1)}
    history = HistoryReader(UNIT_SPACE).read(trials, 9, StudyDirection.MAXIMIZE)
    # From the first rung on the others gained 12.5, as a median.
    np.testing.assert_allclose(history.targets, [-40.0, -10.0, -12.5])
    np.testing.assert_allclose(history.variances, [4.0, 4.0, 0.0])
    known = Known.of(history, -1.0)
    np.testing.assert_allclose(known.targets, history.targets)
    assert not known.in_logs
    # Without it all are logarithms.
    history = HistoryReader(UNIT_SPACE).read(trials[:2], 9, StudyDirection.MAXIMIZE)
    np.testing.assert_allclose(history.targets, -np.log([40.0, 10.0]))
    np.testing.assert_allclose(history.variances, [4.0 / 1600.0, 4.0 / 100.0])


def test_a_value_of_nothing_that_breaks_a_constraint_leaves_all_on_one_scale() -> None:
    """To `auto` targets were plain numbers then, and their variances those of logarithms."""
    trials = [
        a_trial(0, value=40.0, violations={"rate": -1.0}),
        a_trial(1, value=10.0, violations={"rate": -1.0}),
        a_trial(2, value=0.0, violations={"rate": 1.0}),
    ]
    for trial in trials[:2]:
        trial.system_attrs = {**trial.system_attrs, "lsmtune:noise": ValueNoise(4.0, 1)}
    history = HistoryReader(UNIT_SPACE).read(trials, 9, StudyDirection.MINIMIZE)
    known = Known.of(history, 1.0)
    assert not known.in_logs
    np.testing.assert_allclose(known.targets, [40.0, 10.0, 10.0])
    np.testing.assert_allclose(known.variances, [4.0, 4.0, 0.0])


def test_a_censored_value_is_what_a_model_expects_beyond_its_bound() -> None:
    rng = np.random.default_rng(0)
    drawn = rng.normal(1.0, 2.0, 400_000)
    for bound in (-9.0, 0.0, 1.0, 4.0):
        expected = drawn[drawn > bound].mean()
        found = impute_censored(np.array([bound]), np.array([1.0]), np.array([2.0]), 99.0)
        assert found[0] == pytest.approx(expected, abs=0.02)
    surprising = impute_censored(np.full(2, [50.0]), np.zeros(2), np.ones(2), 3.0)
    assert surprising.tolist() == [50.0, 50.0]  # never better than what was seen
    assert impute_censored(np.array([2.0]), np.zeros(1), np.ones(1), 2.1).tolist() == [2.1]


values = st.lists(st.one_of(st.floats(-1e9, 1e9), st.just(float("nan"))), min_size=1, max_size=30)


@given(values=values, maximize=st.booleans(), data=st.data())
def test_targets_are_finite_and_in_the_order_of_the_values(
    values: list[float], maximize: bool, data: st.DataObject
) -> None:
    array = np.array(values)
    censored = np.array(
        data.draw(st.lists(st.booleans(), min_size=len(array), max_size=len(array)))
    )
    direction = StudyDirection.MAXIMIZE if maximize else StudyDirection.MINIMIZE
    targets = make_targets(array, censored, [{}] * len(array), direction)
    assert np.isfinite(targets).all()
    whole = ~np.isnan(array) & ~censored
    order = np.argsort(-array[whole] if maximize else array[whole], kind="stable")
    assert (np.diff(targets[whole][order]) >= -1e-9).all()
    if np.isnan(array).any() and not np.isnan(array).all():
        assert targets[np.isnan(array)].min() > targets[~np.isnan(array)].max()


def test_without_any_value_all_trials_are_alike() -> None:
    nothing = np.full(3, np.nan)
    pruned = np.zeros(3, dtype=bool)
    assert make_targets(nothing, pruned, [{}] * 3, StudyDirection.MINIMIZE).tolist() == [0, 0, 0]


@pytest.mark.parametrize("finished", [0, 1, 5])
def test_a_history_that_grows_is_that_of_a_reader_that_begins_anew(finished: int) -> None:
    study = optuna.create_study(sampler=optuna.samplers.RandomSampler(seed=0))
    reader = HistoryReader(UNIT_SPACE)
    for index in range(8):
        trial = study.ask()
        NUMBERS.suggest(draws(NUMBERS, trial))
        kept = reader.read(study.get_trials(deepcopy=False), trial.number, study.direction)
        fresh = HistoryReader(UNIT_SPACE).read(
            study.get_trials(deepcopy=False), trial.number, study.direction
        )
        np.testing.assert_array_equal(kept.points, fresh.points)
        np.testing.assert_array_equal(kept.targets, fresh.targets)
        if index >= finished:
            study.tell(trial, float(index))
