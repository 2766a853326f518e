from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from study_parts import make_spec

from lsmtune.errors import InputError
from lsmtune.study.budget import SearchBudget, proof_runs_least, refuse_short
from lsmtune.study.build import parse_spec
from lsmtune.study.finalist import size_budget
from lsmtune.study.size import RunSize
from lsmtune.units import parse_duration

walls = st.lists(st.floats(0.1, 100.0), min_size=1, max_size=20)


def test_trials_end_the_search() -> None:
    budget = SearchBudget(trials=3, time_s=None, pairs=5, spent_s=1e9, run_walls_s=[1.0])
    assert budget.time_ends() == ""
    assert budget.trials_end(2, None, None) == ""
    assert budget.trials_end(3, None, None) == "3 trials done"


def test_the_time_of_the_proof_is_kept() -> None:
    # Median run 2 s: 5 pairs of 2 runs and a fifth more are 24 s; one more run is 2 s.
    budget = SearchBudget(trials=None, time_s=100.0, pairs=5, run_walls_s=[1.0, 2.0, 9.0])
    assert budget.reserve_s == pytest.approx(24.0)
    assert replace(budget, spent_s=73.9).time_ends() == ""
    assert "kept for the proof" in replace(budget, spent_s=74.1).time_ends()


@given(walls, st.floats(0.0, 1e4), st.integers(5, 50))
def test_a_run_of_the_usual_length_never_eats_into_the_reserve(
    runs: list[float], spent_s: float, pairs: int
) -> None:
    budget = SearchBudget(None, 1000.0, pairs, spent_s=spent_s, run_walls_s=runs)
    if not budget.time_ends():
        usual_s = sorted(runs)[len(runs) // 2 - (len(runs) + 1) % 2]
        assert spent_s + usual_s + budget.reserve_s <= 1000.0 + 1e-6


def test_a_budget_without_room_for_a_search_says_what_would_do() -> None:
    budget = SearchBudget(None, 100.0, 6, spent_s=10.0, run_walls_s=[10.0])
    short = budget.too_short()
    # A baseline, a trial and twelve runs of a proof with a fifth more, and a tenth to calibrate.
    assert short.startswith("nothing was tried: a time budget of 1m40s leaves nothing")
    assert "--budget 3m4s or more" in short
    assert replace(budget, time_s=184.0, spent_s=10.0 + 18.4).too_short() == ""
    assert replace(budget, trials=9, time_s=None).too_short() == ""


@pytest.mark.parametrize("spent_s", [10.0, 190.0, 300.0, 1000.0])
def test_the_budget_that_would_do_does_whatever_was_spent_before(spent_s: float) -> None:
    """After thirty runs it named one of 8m26s, of which ten pairs and not six are kept."""
    budget = SearchBudget(None, 20.0, 10, spent_s=spent_s, run_walls_s=[10.0])
    enough = budget.too_short().split("--budget ")[1].split()[0]
    assert replace(budget, time_s=parse_duration(enough)).too_short() == ""


def test_time_that_goes_to_neither_search_nor_proof_is_left_for_neither() -> None:
    budget = SearchBudget(None, 100.0, pairs=5, other_s=8.0, spent_s=30.0, run_walls_s=[2.0])
    assert budget.proof_s == 62.0
    assert budget.search_s == pytest.approx(62.0 - 24.0)
    assert replace(budget, trials=9, time_s=None).proof_s == math.inf


def test_a_trial_that_hangs_gets_what_is_left_but_never_less_than_five_usual_runs() -> None:
    budget = SearchBudget(None, 120.0, pairs=5, spent_s=20.0, run_walls_s=[2.0])
    assert budget.longest_run_s == 120.0 - 20.0 - budget.reserve_s
    assert replace(budget, spent_s=119.0).longest_run_s == 10.0
    assert replace(budget, trials=9, time_s=None).longest_run_s == math.inf


def test_while_nothing_could_be_proved_the_search_has_half_of_the_proofs_time() -> None:
    # A study of two minutes ended after its first trial, which was no better than the baseline,
    # with 98 s that it kept for a proof of nothing. A Bloom filter would have been 6 times as fast.
    budget = SearchBudget(None, 120.0, 10, to_prove=False, spent_s=22.0, run_walls_s=[6.8])
    assert replace(budget, to_prove=True).time_ends()
    assert budget.time_ends() == ""
    assert budget.reserve_s == pytest.approx(0.5 * 6 * 2 * 1.2 * 6.8)
    assert replace(budget, spent_s=22.0 + 43.0).time_ends()


def test_time_for_a_longer_proof_is_kept_once_whatever_most_trials_take() -> None:
    # 58 of 100 s, for 6 pairs of runs of 4 s; where most trials took 4 s, too, it kept 101 s.
    budget = SearchBudget(None, 100.0, 10, longer_s=3.0)
    for runs in ([1.0], [1.0, 1.0, 4.0], [1.0, 4.0, 4.0, 4.0]):
        assert replace(budget, run_walls_s=runs).reserve_s == pytest.approx(6 * 2 * 1.2 * 4.0)


def test_a_third_of_the_time_is_the_searchs_whatever_its_best_trial_needs() -> None:
    """With room for 60 runs, a first winner with runs of four times the length ended the search."""
    budget = SearchBudget(None, 99.0, 10, longer_s=5.0, run_walls_s=[1.7] * 10)
    assert budget.reserve_s == pytest.approx(66.0)
    assert replace(budget, spent_s=31.0).time_ends() == ""
    assert replace(budget, spent_s=32.0).time_ends()
    # But never less than what a proof takes without.
    usual_s = 6 * 2 * 1.2 * 1.7
    assert replace(budget, time_s=30.0).reserve_s == pytest.approx(usual_s)


@pytest.mark.parametrize(("confidence", "short", "long"), [(0.95, 6, 10), (0.999, 12, 12)])
def test_the_pairs_without_which_nothing_is_proved_are_kept_at_any_confidence(
    confidence: float, short: int, long: int, tmp_path: Path
) -> None:
    """At 0.999 time for 10 or 6 pairs was kept, and 12 are run in any case: beyond the budget."""
    spec = make_spec(tmp_path, budget="{time: 1000s}", pairs=30)
    spec = replace(spec, proof=replace(spec.proof, confidence=confidence))
    budget = size_budget(spec, RunSize(), 0.0)
    assert replace(budget, run_walls_s=[1.0]).reserve_s == pytest.approx(long * 2 * 1.2)
    kept_s = replace(budget, run_walls_s=[100.0]).reserve_s
    assert kept_s == pytest.approx(short * 2 * 1.2 * 100.0)
    assert proof_runs_least(spec) == pytest.approx(short * 2 * 1.2)


def test_no_time_is_kept_for_pairs_that_a_proof_does_not_have(tmp_path: Path) -> None:
    """At 0.8, where 4 pairs can prove something, the time of 6 was kept for them."""
    spec = make_spec(tmp_path, budget="{time: 1000s}", pairs=30)
    spec = replace(spec, proof=replace(spec.proof, confidence=0.8, pairs=4))
    budget = size_budget(spec, RunSize(), 0.0)
    for run_s in (1.0, 100.0):
        kept_s = replace(budget, run_walls_s=[run_s]).reserve_s
        assert kept_s == pytest.approx(4 * 2 * 1.2 * run_s)


def test_a_search_that_has_time_for_a_few_trials_says_so_before_it_begins() -> None:
    budget = SearchBudget(None, 120.0, 10, spent_s=20.0, run_walls_s=[6.0])
    said = budget.few_trials()
    # 13.6 s are left beside 12 runs of the proof and a fifth more.
    assert said.startswith("the time budget has room for about 2 trials beside the proof, as a run")
    assert "a run takes 6s" in said
    assert "--budget 3m33s has room for 10" in said
    assert "--budget 2m3s has room for 10" in replace(budget, at_once=4).few_trials()
    assert replace(budget, at_once=5).few_trials() == ""
    assert replace(budget, run_walls_s=[1.0]).few_trials() == ""
    assert replace(budget, trials=2).few_trials() == ""
    assert replace(budget, time_s=None).few_trials() == ""


@pytest.mark.parametrize(
    ("budget", "promise", "effect", "ends"),
    [
        (SearchBudget(100, None, 6), 0.004, 0.05, True),  # ten trials of 0.4 %
        (SearchBudget(100, None, 6), 0.006, 0.05, False),
        (SearchBudget(100, 200.0, 6), 0.006, 0.05, True),  # in 20 s there are four of 5 s each
        (SearchBudget(100, 200.0, 6, at_once=3), 0.006, 0.05, False),  # on three hosts, twelve
        (SearchBudget(None, 2000.0, 6), 0.004, 0.05, False),
        (SearchBudget(100, None, 6), None, 0.05, False),
        (SearchBudget(100, None, 6), 0.0, None, False),
    ],
)
def test_a_search_that_promises_nothing_that_matters_ends(
    budget: SearchBudget, promise: float | None, effect: float | None, ends: bool
) -> None:
    why = replace(budget, run_walls_s=[5.0, 5.0]).trials_end(50, promise, effect)
    assert why.startswith("the next tenth of the budget promises a gain of") is ends
    assert bool(why) is ends


@pytest.mark.parametrize("operations", [20_000, 0])
def test_a_time_that_only_limits_a_phase_refuses_no_budget(operations: int, tmp_path: Path) -> None:
    """An hour was refused for YCSB B, as runs of a second may take ten minutes at the most."""
    text = make_spec(tmp_path, budget="{time: 1h}").text
    size = f"operationcount: {operations}, maxexecutiontime: 600"
    ycsb = f"workload: {{name: ycsb-b, recordcount: 1000, {size}}}\n"
    text = text.replace("workload:\n  name: fillrandom\n  num: 1000\n", ycsb)
    spec = parse_spec(text, tmp_path / "small.yaml")
    if operations:
        refuse_short(spec, "--budget")
        return
    with pytest.raises(InputError, match="by the durations of its phases a run takes 10m"):
        refuse_short(spec, "--budget")
