"""The simulations: honest statistics pass them, and dishonest ones are caught by the same code."""

from __future__ import annotations

import dataclasses
import json
import math
from collections.abc import Sequence

import numpy as np
import pytest
from simulations import simulate as simulation
from simulations.detectors import ANCHOR_CASES, NOISE_CASES, AnchorCase
from simulations.document import document
from simulations.playing import (
    Look,
    Pairs,
    Rule,
    best_single_run,
    coins,
    draw_pairs,
    play,
    proof_rule,
    student_after_every_pair,
    useful_looks,
)
from simulations.scenarios import QUIET, SCENARIOS, Scenario, random_walk
from simulations.simulate import Simulated, check_skipping, looks_at_all, simulate
from simulations.summary import broken_promises, rate, summarise

from lsmtune.errors import LsmtuneError
from lsmtune.model.verdict import VerdictOutcome
from lsmtune.stats.intervals import paired_ratio

STUDIES = 200
BY_NAME = {scenario.name: scenario for scenario in SCENARIOS}


@pytest.fixture(scope="module")
def simulated() -> Simulated:
    """Small simulations; every test that only reads it shares it."""
    return simulate(STUDIES, 20261203)


def test_every_rate_of_lsmtune_is_as_stated(simulated: Simulated) -> None:
    found = document(simulated, 20261203)
    assert (found["ok"], found["broken"]) == (True, [])
    assert [each["name"] for each in found["scenarios"]] == list(BY_NAME)
    for each in found["scenarios"]:
        assert each["proof"]["wrong_rate"]["of"] == STUDIES
        assert each["proof"]["wrong_rate"]["share"] <= 0.09
        assert each["proof"]["coverage"]["share"] >= 0.91


@pytest.mark.parametrize(
    ("name", "power", "pairs"),
    [
        ("ratio-1.02-noise-0.03", 0.5, 30),
        ("ratio-1.05-noise-0.03", 0.97, 10),
        ("ratio-1.2-noise-0.03", 1.0, 7),
        ("ratio-1.2-noise-0.15", 0.95, 15),
        ("ratio-1.05-heavy-tails", 0.9, 20),
        ("ratio-1.05-outliers", 0.8, 20),
        ("ratio-1.05-drift", 0.97, 12),
        ("ratio-0.9-order-effect", 0.95, 12),
    ],
)
def test_effects_are_found(simulated: Simulated, name: str, power: float, pairs: float) -> None:
    found = summarise(BY_NAME[name], simulated.endings[name].proof)
    assert found.power is not None
    assert found.power.share >= power
    assert found.pairs_median <= pairs
    assert found.ratio_median == pytest.approx(BY_NAME[name].ratio, rel=0.03)


def test_equivalence_is_found_where_it_is_and_only_there(simulated: Simulated) -> None:
    shares = {
        name: summarise(BY_NAME[name], simulated.endings[name].proof).equivalent_rate
        for name in ("aa-equivalence", "ratio-1.06-no-equivalence")
    }
    assert shares["aa-equivalence"] is not None
    assert shares["aa-equivalence"].share > 0.9
    assert shares["ratio-1.06-no-equivalence"] is not None
    assert shares["ratio-1.06-no-equivalence"].share < 0.05


def test_naive_scripts_are_wrong_and_said_to_be(simulated: Simulated) -> None:
    """The same machinery that passes the proof catches Student's t, looked at after every pair."""
    caught = [
        name
        for name, endings in simulated.endings.items()
        if broken_promises(name, summarise(BY_NAME[name], endings.student), 0.95)
    ]
    assert set(caught) >= {name for name in BY_NAME if name.startswith("aa-")}
    best = summarise(
        BY_NAME["aa-normal"], simulated.endings["aa-normal"].best_run, has_interval=False
    )
    assert best.wrong_rate.share == 1.0
    assert best.coverage is None


def student_rule(confidence: float) -> Rule:
    """A decision code that is broken: an interval for one look, looked at many times."""

    def look(baseline: Sequence[float], candidate: Sequence[float]) -> Look:
        if len(baseline) < 3:
            return Look(len(baseline), VerdictOutcome.NOT_PROVEN, 1.0, 0.0, math.inf)
        found = paired_ratio(baseline, candidate, confidence)
        outcome = VerdictOutcome.NOT_PROVEN
        if found.excludes_one():
            outcome = VerdictOutcome.BETTER if found.ratio > 1.0 else VerdictOutcome.WORSE
        return Look(found.pairs, outcome, found.ratio, found.low, found.high)

    return look


def drawn(scenario: Scenario, studies: int, seed: int = 3) -> Pairs:
    return draw_pairs(scenario, np.random.default_rng(seed), coins(range(studies)))


def test_a_broken_decision_code_is_caught() -> None:
    scenario = BY_NAME["aa-random-walk"]
    pairs = drawn(scenario, STUDIES)
    looks = [
        play(b.tolist(), c.tolist(), student_rule(0.95), looks_at_all())
        for b, c in zip(pairs.baseline, pairs.candidate, strict=True)
    ]
    lines = broken_promises(scenario.name, summarise(scenario, looks), 0.95)
    assert len(lines) == 2
    assert lines[0].startswith("aa-random-walk: 0.")
    assert "of the verdicts are wrong; stated: 0.05" in lines[0]
    assert "of the intervals hold the truth; stated: 0.95" in lines[1]


def test_a_coin_that_is_no_coin_is_caught() -> None:
    """With the candidate always second, the machine's order effect is taken for a gain."""
    scenario = BY_NAME["aa-order-effect"]
    never = np.zeros((50, 30), dtype=np.bool_)
    pairs = draw_pairs(scenario, np.random.default_rng(1), never)
    rule = proof_rule(0.95, None)
    looks = [
        play(b.tolist(), c.tolist(), rule, looks_at_all())
        for b, c in zip(pairs.baseline, pairs.candidate, strict=True)
    ]
    assert broken_promises(scenario.name, summarise(scenario, looks), 0.95)


@pytest.mark.parametrize("name", ["aa-normal", "aa-equivalence", "ratio-1.02-equivalence"])
def test_skipping_useless_looks_changes_no_ending(name: str) -> None:
    scenario = BY_NAME[name]
    pairs = drawn(scenario, 40)
    useful = useful_looks(pairs.log_ratios, 0.95, scenario.smallest_effect)
    assert useful[:, -1].all()
    assert useful.mean() < 0.8
    rule = proof_rule(0.95, scenario.smallest_effect)
    for baseline, candidate, looks in zip(pairs.baseline, pairs.candidate, useful, strict=True):
        sides = baseline.tolist(), candidate.tolist()
        every = play(*sides, rule, looks_at_all())
        check_skipping(name, every, play(*sides, rule, (np.flatnonzero(looks) + 1).tolist()))


def test_a_decision_at_a_skipped_look_ends_the_simulation(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(simulation, "proof_rule", lambda confidence, _: student_rule(confidence))
    with pytest.raises(LsmtuneError, match=r"simulation: aa-.*evidence should be too little"):
        simulate(20, 1)


def test_the_result_is_a_function_of_the_seed(monkeypatch: pytest.MonkeyPatch) -> None:
    # Two parts, of which the last one is smaller.
    monkeypatch.setattr(simulation, "_STUDIES_PER_PART", 2)
    found = simulate(3, 7)
    assert {len(endings.proof) for endings in found.endings.values()} == {3}
    assert found == simulate(3, 7)
    assert found != simulate(3, 8)


def test_the_document_has_stable_keys_and_is_json(simulated: Simulated) -> None:
    told = json.loads(json.dumps(document(simulated, 4)))
    assert list(told) == [
        "studies", "seed", "confidence", "pairs_max", "wrong_rate_max",
        "scenarios", "change_points", "noise", "ok", "broken",
    ]  # fmt: skip
    assert told["wrong_rate_max"] == 0.05
    scenario = told["scenarios"][0]
    ways = ("proof", "naive_student_after_every_pair", "naive_best_single_run")
    for way in ways:
        assert set(scenario[way]) == {
            "wrong_rate", "power", "equivalent_rate", "not_proven_rate", "coverage",
            "pairs_median", "ratio_median",
        }  # fmt: skip
    assert set(scenario["proof"]["wrong_rate"]) == {"count", "of", "share", "low", "high"}
    assert len(told["change_points"]) == len(ANCHOR_CASES)
    assert len(told["noise"]) == len(NOISE_CASES)


def test_what_is_wrong_by_hand() -> None:
    scenario = Scenario("x", "", BY_NAME["aa-normal"].machine, 1.06, 0.05)
    outcomes = [VerdictOutcome(name) for name in ("better", "worse", "equivalent", "not_proven")]
    looks = [Look(6, outcome, 1.06, 1.0, 1.1) for outcome in outcomes]
    found = summarise(scenario, looks)
    assert (found.wrong_rate.count, found.wrong_rate.of) == (2, 4)
    assert found.power == rate(1, 4)
    assert found.equivalent_rate == rate(1, 4)
    assert found.coverage == rate(4, 4)
    equal = dataclasses.replace(scenario, ratio=1.0)
    assert summarise(equal, looks).wrong_rate.count == 2
    assert summarise(equal, looks).power is None


def test_the_interval_of_a_rate_against_published_values() -> None:
    # Clopper-Pearson intervals at 95 %: 1 of 10, 0 of 20 and 20 of 20.
    found = rate(1, 10)
    assert (found.low, found.high) == (
        pytest.approx(0.002529, abs=1e-6),
        pytest.approx(0.445016, abs=1e-6),
    )
    assert (rate(0, 20).low, rate(0, 20).high) == (0.0, pytest.approx(0.168433, abs=1e-6))
    assert (rate(20, 20).low, rate(20, 20).high) == (pytest.approx(0.831567, abs=1e-6), 1.0)


def test_a_rate_is_off_only_beyond_the_error_of_its_simulation() -> None:
    assert not rate(112, 2000).is_above(0.05)
    assert rate(140, 2000).is_above(0.05)
    assert not rate(14, 200).is_above(0.05)
    assert not rate(1890, 2000).is_below(0.95)
    assert rate(1860, 2000).is_below(0.95)


def test_a_detector_that_cries_wolf_is_caught() -> None:
    case = AnchorCase("drifts", "", random_walk(QUIET, QUIET), 20)
    seen = rate(case.count(np.random.default_rng(1), 100), 100)
    assert case.broken(seen)[0].startswith("drifts: 0.")
    assert not dataclasses.replace(case, changes=True).broken(seen)
    assert NOISE_CASES[0].broken(rate(1800, 2000)) == ["noise-6: held in 0.9; stated: 0.94"]


def test_naive_ways_by_hand() -> None:
    first = np.array([[100.0, 100.0, 100.0, 100.0], [100.0, 110.0, 100.0, 110.0]])
    second = np.array([[101.0, 102.0, 101.5, 100.0], [110.0, 100.0, 110.0, 100.0]])
    pairs = Pairs(first, second, first, second)
    student = student_after_every_pair(pairs, 0.95)
    assert (student[0].pairs, student[0].outcome) == (3, VerdictOutcome.BETTER)
    assert (student[1].pairs, student[1].outcome) == (4, VerdictOutcome.NOT_PROVEN)
    expected = paired_ratio(first[0, :3].tolist(), second[0, :3].tolist())
    assert (student[0].low, student[0].high) == pytest.approx((expected.low, expected.high))
    best = best_single_run(pairs)
    assert [look.outcome.value for look in best] == ["better", "not_proven"]
    assert best[0].ratio == pytest.approx(1.02)


@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda scenario: scenario.name)
def test_each_machine_is_as_noisy_as_it_says(scenario: Scenario) -> None:
    """The log ratios have the true ratio in their middle, whatever the machine does."""
    pairs = drawn(scenario, 300, seed=9)
    logs = pairs.log_ratios
    assert logs.shape == (300, 30)
    middle = float(np.median(logs))
    assert middle == pytest.approx(math.log(scenario.ratio), abs=0.02)
    if scenario.name in {"aa-normal", "aa-autocorrelated"}:
        assert float(np.std(logs)) == pytest.approx(0.15, rel=0.05)
    runs = np.log(pairs.first[:, 1:] / pairs.first[:, :-1])
    assert np.isfinite(runs).all()


def test_the_coins_are_fair_and_known_beforehand() -> None:
    tossed = coins(range(100, 200))
    assert (tossed == coins(range(100, 200))).all()
    assert tossed.mean() == pytest.approx(0.5, abs=0.04)
