from __future__ import annotations

import math
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lsmtune.model.config import EngineIdentity
from lsmtune.model.goal import Direction, Goal, Objective, Pick, outcome_of
from lsmtune.model.measurement import Measurement, Outcome

FAST = Objective("ops")
SHORT = Objective("wait", Direction.MINIMIZE)
RATES = st.floats(1e-3, 1e9)


def run(outcome: Outcome = Outcome.OK, **reported: float) -> Measurement:
    return Measurement(outcome, EngineIdentity("memory"), {}, "w", 1, 0.0, 1.0, reported=reported)


def test_a_single_objective_of_a_single_workload_is_itself() -> None:
    goal = Goal((FAST,))
    assert (goal.metric, goal.direction, goal.several) == ("ops", Direction.MAXIMIZE, False)
    assert goal.values([run(ops=7.0)]) == (7.0,)
    assert goal.value([run(ops=0.0)]) == 0.0
    assert goal.value([run(Outcome.CRASHED, ops=7.0)]) is None
    assert goal.value([run(wait=7.0)]) is None
    assert goal.value([]) is None


def test_the_weights_of_workloads_are_powers() -> None:
    goal = Goal((FAST,), (0.25, 0.75))
    value = goal.value([run(ops=16.0), run(ops=81.0)])
    assert value == pytest.approx(16.0**0.25 * 81.0**0.75)
    assert goal.value([run(ops=16.0), run(ops=0.0)]) is None


@given(st.lists(st.tuples(RATES, RATES, RATES), min_size=1, max_size=5))
def test_the_ratio_of_two_values_does_not_depend_on_the_scale_of_a_workload(
    rows: list[tuple[float, float, float]],
) -> None:
    goal = Goal((FAST,), tuple(1 / len(rows) for _ in rows))
    before = goal.value([run(ops=a) for a, _, _ in rows])
    after = goal.value([run(ops=b) for _, b, _ in rows])
    scaled_before = goal.value([run(ops=a * scale) for a, _, scale in rows])
    scaled_after = goal.value([run(ops=b * scale) for _, b, scale in rows])
    assert before is not None
    assert after is not None
    assert scaled_before is not None
    assert scaled_after is not None
    assert after / before == pytest.approx(scaled_after / scaled_before, rel=1e-9)


def test_a_pick_by_weights_multiplies_gains_whichever_way_they_go() -> None:
    goal = Goal((FAST, SHORT), pick=Pick({"ops": 3.0, "wait": 1.0}))
    assert goal.several
    assert goal.metric == "ops^0.75 * wait^-0.25"
    assert goal.direction is Direction.MAXIMIZE
    assert goal.number((16.0, 81.0)) == pytest.approx(16.0**0.75 / 81.0**0.25)
    assert goal.number((16.0, 0.0)) is None
    better = goal.number((16.0, 80.0))
    worse = goal.number((16.0, 81.0))
    assert better is not None
    assert worse is not None
    assert goal.direction.better(better, worse)


def test_a_pick_of_the_best_leaves_the_others_to_the_front() -> None:
    goal = Goal((FAST, SHORT), pick=Pick({"wait": 1.0}))
    assert (goal.metric, goal.direction) == ("wait", Direction.MINIMIZE)
    assert goal.number((0.0, 5.0)) == 5.0
    assert goal.direction.better(4.0, 5.0)


def test_without_a_pick_all_objectives_count_alike() -> None:
    goal = Goal((FAST, SHORT))
    assert goal.number((4.0, 9.0)) == pytest.approx(math.sqrt(4.0 / 9.0))


def test_phases_tell_objectives_of_one_metric_apart() -> None:
    first, second = (replace(FAST, phase=phase) for phase in ("put", "get"))
    assert Goal((first, second)).metric == "put.ops^0.5 * get.ops^0.5"
    assert Goal((first,)).metric == "ops"


def test_the_first_failure_is_the_outcome_of_a_trial() -> None:
    assert outcome_of([]) is Outcome.OK
    assert outcome_of([run(), run(Outcome.TIMEOUT), run(Outcome.CRASHED)]) is Outcome.TIMEOUT
