"""What trials are worth by their rounds, and what the searcher hears of it."""

from __future__ import annotations

import math
import random
from collections.abc import Mapping, Sequence
from dataclasses import replace
from statistics import NormalDist

import pytest
from optuna.trial import TrialState

from lsmtune.experiment.store import Role, StoredMeasurement
from lsmtune.model.config import Build, Config, EngineIdentity
from lsmtune.model.goal import Direction, Goal, Objective
from lsmtune.model.measurement import Measurement, Outcome
from lsmtune.study import drift
from lsmtune.study.judging import Judgement, Observations, Promotion, judge
from lsmtune.study.observer import new_changes
from lsmtune.study.promotion import notes_on_sizes
from lsmtune.study.racing import PRIOR_LOG_SD
from lsmtune.study.size import RunSize
from lsmtune.study.stored import Round, TrialRounds

GOAL = Goal((Objective("throughput_ops_s"),))


def ok(row: int, value: float, **more: object) -> Round:
    return Round(row, row, Outcome.OK, 1.0, (value,), **more)  # type: ignore[arg-type]


def failed_anchor(row: int, wall_s: float) -> StoredMeasurement:
    engine = EngineIdentity("memory", "1.0", None, Build.RELEASE)
    run = Measurement(Outcome.CRASHED, engine, {}, "fillrandom", 0, 0.0, wall_s)
    return StoredMeasurement(row, Role.ANCHOR, None, None, Config(), run, wall_s)


def trial(number: int, *rounds: Round, **more: object) -> TrialRounds:
    return TrialRounds(number, Config({"x": number}), rounds, **more)  # type: ignore[arg-type]


def changed_at_row_25(values: Sequence[float], _log_sd: float | None) -> list[range]:
    return [range(0, 3), range(3, len(values))] if len(values) > 3 else [range(len(values))]


@pytest.fixture
def changed(monkeypatch: pytest.MonkeyPatch) -> list[Round]:
    """Anchors every 10 rows; half as fast between rows 20 and 30, and from then on."""
    monkeypatch.setattr(drift, "segments", changed_at_row_25)
    return [ok(10 * n, 100.0 if n < 3 else 50.0) for n in range(6)]


def beliefs(means: Mapping[int, float]) -> dict[int, NormalDist]:
    return {number: NormalDist(mean, 0.05) for number, mean in means.items()}


def values(found: Judgement) -> dict[int, float | None]:
    return {n: t.end.values[0] if t.end.values else None for n, t in found.trials.items()}


def test_the_value_is_the_geometric_mean_of_the_rounds() -> None:
    found = judge([trial(0, ok(1, 100.0), ok(3, 400.0)), trial(1, ok(2, 7.0))], [], GOAL)
    assert values(found) == pytest.approx({0: 200.0, 1: 7.0})
    assert (found.trials[0].runs, len(found.trials[0].rounds)) == (2, 2)


def test_one_round_that_failed_fails_the_trial() -> None:
    rounds = ok(1, 9.0), Round(2, 2, Outcome.CRASHED), ok(3, 9.0)
    found = judge([trial(0, *rounds), trial(1, ok(4, 1.0))], [], GOAL)
    assert found.trials[0].end.outcome is Outcome.CRASHED
    assert found.trials[0].end.values is None
    assert found.best == 1
    assert found.for_searcher(0).state is TrialState.FAIL


def test_a_run_that_its_deadline_ended_is_told_by_how_far_it_came() -> None:
    """It is slow, and not broken: a sampler may know how slow, and learn from it."""
    slow = Round(2, 2, Outcome.TIMEOUT, reached=3.0)
    hung = Round(4, 4, Outcome.TIMEOUT)
    crashed = Round(6, 6, Outcome.CRASHED)
    found = judge(
        [
            trial(0, ok(1, 9.0)),
            trial(1, slow, reports={1: 8.0}),
            trial(2, hung),
            trial(3, crashed),
            trial(4, ok(7, 9.0), slow),
        ],
        [],
        GOAL,
    )
    told = {number: found.for_searcher(number) for number in found.trials}
    assert (told[1].state, told[1].reports) == (TrialState.PRUNED, {1: 8.0, 2: 3.0})
    assert [told[n].state for n in (2, 3)] == [TrialState.FAIL] * 2
    assert (told[4].state, told[4].reports) == (TrialState.PRUNED, {1: 3.0})
    assert found.trials[1].end.outcome is Outcome.TIMEOUT  # for everybody else
    assert found.best == 0


def test_a_run_that_was_pruned_before_it_did_anything_has_no_rate() -> None:
    """Its rate of 0 was told as how far it came: from then on no value counted as a logarithm."""
    hung = trial(1, Round(2, 2, Outcome.PRUNED), reports={1: 0.0, 2: 0.0})
    slow = trial(2, Round(3, 3, Outcome.PRUNED), reports={1: 0.0, 2: 4.0})
    found = judge([trial(0, ok(1, 9.0)), hung, slow], [], GOAL)
    assert [found.for_searcher(n).state for n in (1, 2)] == [TrialState.FAIL, TrialState.PRUNED]
    assert found.trials[1].end.outcome is Outcome.PRUNED  # for everybody else
    costs = Goal((Objective("cost", Direction.MINIMIZE),))  # which may be 0
    assert judge([hung], [], costs).for_searcher(1).state is TrialState.PRUNED


def test_a_trial_of_a_slow_time_is_not_a_bad_one(changed: list[Round]) -> None:
    found = judge([trial(0, ok(5, 80.0)), trial(1, ok(35, 45.0))], changed, GOAL)
    assert values(found) == pytest.approx({0: 80.0, 1: 90.0})
    assert found.best == 1


def test_what_ran_while_the_machine_changed_is_run_again_and_no_longer_counts(
    changed: list[Round],
) -> None:
    lost = trial(1, ok(25, 70.0))
    before = judge([trial(0, ok(5, 80.0)), lost], changed, GOAL)
    assert [n for n, trial in before.trials.items() if trial.unplaced] == [1]
    assert before.next_repeat(1) == 1
    again = judge([trial(0, ok(5, 80.0)), trial(1, ok(25, 70.0), ok(55, 30.0))], changed, GOAL)
    assert values(again) == pytest.approx({0: 80.0, 1: 60.0})
    assert (again.trials[1].runs, len(again.trials[1].rounds)) == (1, 2)
    assert again.next_repeat(1) is None


def test_nothing_is_run_again_without_end(changed: list[Round]) -> None:
    found = judge([trial(0, *(ok(row, 70.0) for row in (21, 22, 23)))], changed, GOAL)
    assert [n for n, trial in found.trials.items() if trial.unplaced] == [0]
    assert found.next_repeat(1) is None
    assert values(found)[0] == pytest.approx(70.0 * math.sqrt(2.0))


def test_pruned_and_failed_trials_are_not_run_again(changed: list[Round]) -> None:
    ends = Outcome.PRUNED, Outcome.CRASHED
    found = judge([trial(n, Round(25, 25, end)) for n, end in enumerate(ends)], changed, GOAL)
    assert [n for n, trial in found.trials.items() if trial.unplaced] == []
    assert found.next_repeat(3) is None


def test_what_a_pruner_was_told_is_seen_as_the_machine_was(changed: list[Round]) -> None:
    slow = trial(0, Round(35, 35, Outcome.PRUNED), reports={1: 10.0, 2: 20.0})
    told = judge([slow], changed, GOAL).for_searcher(0)
    assert told.reports == pytest.approx({1: 20.0, 2: 40.0})
    assert told.state is TrialState.PRUNED


def test_how_far_a_repeat_came_is_seen_as_the_machine_was_when_it_ran(changed: list[Round]) -> None:
    """It was converted by the speed of the first run, which had the machine to itself."""
    slow = Round(35, 35, Outcome.TIMEOUT, reached=30.0)
    told = judge([trial(0, ok(5, 80.0), slow)], changed, GOAL).for_searcher(0)
    assert (told.state, told.reports) == (TrialState.PRUNED, pytest.approx({1: 60.0}))


def test_the_searcher_hears_how_sure_a_value_is() -> None:
    found = judge([trial(0, ok(1, 100.0)), trial(1, *(ok(n, 100.0) for n in (2, 3)))], [], GOAL)
    once, twice = (found.for_searcher(n).noise for n in (0, 1))
    assert once is not None
    assert twice is not None
    assert once.variance == pytest.approx((100.0 * found.rounded_log_sd) ** 2)
    assert (once.runs, twice.runs) == (1, 2)
    assert twice.variance == pytest.approx(once.variance / 2)


def test_a_constraint_is_broken_when_it_is_on_the_whole() -> None:
    rounds = [ok(n, 9.0, violations={"c": by}) for n, by in enumerate((0.5, -0.1, -0.2))]
    kept = judge([trial(0, *rounds), trial(1, rounds[1], rounds[2])], [], GOAL)
    assert [t.end.eligible for t in kept.trials.values()] == [False, True]


def test_a_round_that_says_nothing_of_a_constraint_does_not_lift_it() -> None:
    """It drew no scan: the one that did, and broke the limit of their latency, was forgotten."""
    broken, silent = ok(0, 9.0, violations={"c": 0.5}), ok(1, 9.0, violations={"d": -0.1})
    told = judge([trial(0, broken, silent), trial(1, silent, broken)], [], GOAL)
    assert [t.end.eligible for t in told.trials.values()] == [False, False]
    assert told.trials[0].end.violations == {"c": 0.5, "d": -0.1}


@pytest.mark.parametrize("direction", list(Direction))
def test_values_without_logarithms_are_compared_as_they_are(direction: Direction) -> None:
    goal = Goal((Objective("stall_s", direction),))
    found = judge([trial(n, ok(n, v)) for n, v in enumerate((0.0, 3.0, 0.0))], [], goal)
    assert found.best == (1 if direction is Direction.MAXIMIZE else 0)
    assert found.next_repeat(3) is None


def test_the_noise_is_that_of_anchors_within_a_segment(changed: list[Round]) -> None:
    # Half the speed is a change and no noise: only the guess is left of the deviation.
    assert judge([], changed, GOAL).log_sd == pytest.approx(PRIOR_LOG_SD / math.sqrt(5.0))


def test_runs_in_turns_tell_of_the_noise_and_of_no_change(changed: list[Round]) -> None:
    turns = [replace(ok(-n, 100.0 * f), in_turns=True) for n, f in enumerate((0.8, 1.0, 1.25))]
    assert judge([], turns, GOAL).log_sd > 0.15
    assert judge([], [*turns, *changed], GOAL).drift == judge([], changed, GOAL).drift


def test_runs_in_turns_that_agree_do_not_make_a_run_of_the_search_surer() -> None:
    """A quickstart took a run for sure within 3.5 %, as those of its calibration agreed so well.

    Runs of its search scattered by 12 %. It searched around one that was lucky by 15 %, and never
    ran it again.
    """
    turns = [replace(ok(n, 100.0 + n), in_turns=True) for n in range(6)]
    assert judge([], turns, GOAL).log_sd == PRIOR_LOG_SD
    apart = [ok(10 + n, v) for n, v in enumerate((320.0, 380.0, 250.0, 320.0))]
    assert judge([], [*turns, *apart], GOAL).log_sd > 0.14


def test_where_a_model_expects_something_of_trials_they_are_ranked_by_it() -> None:
    found = judge([trial(n, ok(n, 100.0 + n)) for n in range(4)], [], GOAL)
    assert found.ranked() == [3, 2, 1, 0]
    assert found.ranked(beliefs({0: 0.2, 1: 0.3, 2: 0.1})) == [1, 0, 2, 3]
    # One that is likely to break a guard in the proof gains nothing.
    risky = judge([trial(n, ok(n, 100.0, log_odds=-float(n == 1))) for n in range(3)], [], GOAL)
    assert risky.ranked(beliefs({0: 0.1, 1: 0.3, 2: 0.2})) == [2, 0, 1]


def test_what_was_rejected_at_a_larger_size_is_not_the_best() -> None:
    """All promoted trials broke a guard there, and the first of them was proved all the same."""
    trials = [trial(n, ok(n, 100.0 + n)) for n in range(4)]

    def promoted(values: Mapping[int, float | None]) -> Judgement:
        return judge(trials, [], GOAL, Promotion(100.0, values))

    assert promoted({3: None, 2: 80.0, 1: 90.0}).best == 1
    assert promoted({3: None, 2: None}).best == 1
    nothing = promoted(dict.fromkeys(range(4)))
    assert nothing.best is None
    assert nothing.rejected == set(range(4))


def test_what_was_rejected_at_a_larger_size_leads_no_search_that_goes_on() -> None:
    """It seemed 3x on a model. The next session repeated no trial, and expected nothing of any."""
    values = [*(100.0 + n for n in range(7)), 160.0, 159.0]
    trials = [trial(9, ok(9, 1600.0)), *(trial(n, ok(n, v)) for n, v in enumerate(values))]
    assert judge(trials, [], GOAL).next_repeat(3) is None
    found = judge(trials, [], GOAL, Promotion(values={9: None}))
    assert found.next_repeat(3) == 7
    assert found.for_searcher(9).violations == {"<rejected>": 1.0}
    assert found.for_searcher(0).violations == {}

    observations = Observations(GOAL)
    observations.add_trial(trials[0])
    assert not observations.for_searcher()[9].violations
    observations.promote(Promotion(values={9: None}))
    assert observations.for_searcher()[9].violations


def test_a_promoted_trial_that_breaks_what_is_asked_by_now_is_not_the_best() -> None:
    """It was the best there, and the session ended: every trial was said to break a constraint."""
    broken = ok(3, 120.0, violations={"write_buffer_size <= 4MiB": 1.0})
    trials = [trial(1, ok(1, 100.0)), trial(2, ok(2, 110.0)), trial(3, broken)]
    larger, search = {1: 90.0, 2: 80.0, 3: 130.0}, beliefs({1: 0.1, 2: 0.0})
    found = judge(trials, [], GOAL, Promotion(100.0, larger, search))
    assert found.best == found.best_of_promotion == 1
    assert found.rejected == set()
    assert judge(trials, [], GOAL, Promotion(100.0, {3: 130.0})).best == 2


def test_one_lucky_run_at_a_larger_size_does_not_decide_alone() -> None:
    """A quickstart proved the trial that had 1.34x there, and 1.05x in the search: 1.26x.

    Its search had a family of trials at 1.5x, one of which had a bad run there.
    """
    trials = [trial(n, ok(n, 100.0)) for n in range(3)]
    runs = {0: 0.90, 1: 1.14, 2: 1.34}
    search = beliefs({0: math.log(1.5), 1: math.log(1.45), 2: math.log(1.05)})
    alone = judge(trials, [], GOAL, Promotion(1.0, runs))
    assert alone.best == alone.best_of_promotion == 2
    both = judge(trials, [], GOAL, Promotion(1.0, runs, search))
    assert both.best == 1
    assert both.best_of_promotion == 2
    size = RunSize(scale=0.1, proof_scale=0.2)
    told = notes_on_sizes(size, both, Promotion(1.0, runs, search), 100.0, proved_scale=0.2)
    assert any("trial 2 seemed better than trial 1, by one run" in note for note in told)
    # A round of which nothing was believed before, of all or of some, counts as it is.
    assert judge(trials, [], GOAL, Promotion(1.0, runs, {1: search[1]})).best == 2
    # One that is likely to break a guard in the proof gains nothing.
    risky = [trial(n, ok(n, 100.0, log_odds=-float(n == 1))) for n in range(3)]
    assert judge(risky, [], GOAL, Promotion(1.0, runs, search)).best == 2


def test_numbers_without_logarithms_are_not_believed() -> None:
    goal = Goal((Objective("stall_s", Direction.MINIMIZE),))
    found = judge(
        [trial(n, ok(n, v)) for n, v in enumerate((0.0, 3.0))],
        *([], goal, Promotion(1.0, {0: 2.0, 1: 0.0}, beliefs({0: 0.0, 1: 0.0}))),
    )
    assert found.believed() == {}
    assert found.best == 1


def test_where_one_has_no_logarithm_at_a_larger_size_none_is_ranked_by_it() -> None:
    """No stall at all was ranked, as 0, beside the logarithm of half a second, and lost."""
    goal = Goal((Objective("stall_s", Direction.MINIMIZE),))
    trials = [trial(n, ok(n, v)) for n, v in enumerate((2.0, 3.0))]
    found = judge(trials, [], goal, Promotion(1.0, {0: 0.5, 1: 0.0}))
    assert found.best == found.best_of_promotion == 1


def test_an_anchor_is_due_after_so_many_trials_and_within_its_share() -> None:
    seen = Observations(GOAL)
    for number in range(10):
        assert not seen.anchor_due(10, 1.0)
        seen.add_trial(trial(number, ok(number + 1, 5.0)))
    assert seen.anchor_due(10, 1.0)
    assert not seen.anchor_due(0, 1.0)
    assert not seen.anchor_due(10, 2.0), "two seconds are more than 15 % of twelve"
    seen.set_baseline_rows([failed_anchor(0, wall_s=1.0)])
    assert not seen.anchor_due(10, 1.0)
    seen.set_baseline_rows([failed_anchor(11, wall_s=0.0)])
    assert not seen.anchor_due(10, 1.0)


def test_an_anchor_that_a_kill_cut_off_is_due_as_before() -> None:
    """Its run under the first workload was taken for an attempt, and ten trials had none."""
    seen = Observations(Goal((Objective("throughput_ops_s"),), (0.5, 0.5)))
    for number in range(10):
        seen.add_trial(trial(number, ok(number + 1, 5.0)))
    row = failed_anchor(11, wall_s=0.0)
    half = replace(row, measurement=replace(row.measurement, outcome=Outcome.OK))
    seen.set_baseline_rows([half])
    assert seen.anchor_due(10, 1.0)
    seen.set_baseline_rows([half, replace(half, id=12, workload=1)])
    assert not seen.anchor_due(10, 1.0)


def test_a_repeat_on_another_host_buys_no_anchor_on_the_first() -> None:
    seen = Observations(GOAL)
    for row in (1, 3):
        repeated = replace(ok(row + 1, 5.0, host="b"), wall_s=50.0)
        seen.add_trial(trial(row, ok(row, 5.0, host="a"), repeated))
    assert not seen.anchor_due(2, 1.0, "a"), "a second is more than 15 % of two"


@pytest.mark.parametrize("hosts", [("",), ("a", "b")])
@pytest.mark.parametrize("seed", range(4))
def test_a_study_that_judges_what_is_new_agrees_with_one_that_judges_all(
    hosts: tuple[str, ...], seed: int
) -> None:
    """The machine gets slower and faster again; anchors, new trials and repeats in any order."""
    draws = random.Random(seed)
    seen, anchors, trials = Observations(GOAL), list[Round](), dict[int, TrialRounds]()
    for row in range(1, 150):
        speed = (1.0, 0.4, 0.9)[row // 50] * draws.gauss(1.0, 0.02)
        run = ok(row, 100.0 * speed, host=draws.choice(hosts))
        kind = draws.choice(["anchor", "trial", "repeat"])
        if kind == "anchor":
            anchors.append(run)
            seen.use_anchors(anchors)
        elif kind == "trial" or not trials:
            trials[row] = trial(row, run)
            seen.add_trial(trials[row])
        else:
            number = draws.choice(list(trials))
            trials[number] = trial(number, *trials[number].rounds, run)
            seen.add_round(number, run)
        fresh = judge(trials.values(), anchors, GOAL)
        assert seen.judgement.trials == fresh.trials
        assert seen.judgement.log_sd == pytest.approx(fresh.log_sd)
        assert seen.judgement.best == fresh.best
        assert seen.judgement.next_repeat(3) == fresh.next_repeat(3)
        assert seen.for_searcher() == {number: fresh.for_searcher(number) for number in trials}
    assert len(seen.judgement.drift.changes()) > 0


def test_a_change_of_one_host_is_told_by_the_trials_that_ran_on_it(
    changed: list[Round],
) -> None:
    """Those of another host, which was steady, were named as before and after it."""
    on_a = [replace(anchor, host="a") for anchor in changed]
    on_b = [ok(10 * n + 1, 100.0, host="b") for n in range(2)]
    trials = [
        *(trial(0, ok(5, 80.0, host="a")), trial(1, ok(18, 80.0, host="b"))),
        *(trial(2, ok(24, 80.0, host="b")), trial(3, ok(25, 60.0, host="a"))),
        *(trial(4, ok(31, 80.0, host="b")), trial(5, ok(35, 40.0, host="a"))),
    ]
    anchors = sorted([*on_a, *on_b], key=lambda anchor: anchor.first)
    (line,) = new_changes(judge(trials, anchors, GOAL), GOAL, set())
    assert line.startswith("a changed between trial 0 and trial 5: ")
    assert line.endswith("; 1 trial is run again")
