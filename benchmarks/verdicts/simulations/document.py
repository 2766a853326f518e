"""The result of the simulations as records, and as one document with stable keys."""

from __future__ import annotations

from dataclasses import asdict, dataclass

from simulations.detectors import (
    ANCHOR_CASES,
    FALSE_ALARMS_MOST,
    NOISE_CASES,
    NOISE_COVERAGE_LEAST,
    AnchorCase,
    NoiseCase,
)
from simulations.playing import CONFIDENCE, PAIRS_MAX
from simulations.rates import Rate, rate
from simulations.scenarios import SCENARIOS, Scenario
from simulations.simulate import Endings, Simulated
from simulations.summary import Summary, broken_promises, summarise


@dataclass(frozen=True)
class ScenarioResult:
    """One scenario: how proofs ended, and what naive scripts made of the same runs."""

    scenario: Scenario
    proof: Summary
    student: Summary
    best_run: Summary


@dataclass(frozen=True)
class Report:
    """All rates; `broken` has a line for each that is not as stated."""

    studies: int
    seed: int
    scenarios: tuple[ScenarioResult, ...]
    anchors: tuple[tuple[AnchorCase, Rate], ...]
    noise: tuple[tuple[NoiseCase, Rate], ...]
    broken: tuple[str, ...]


def report_of(simulated: Simulated, seed: int) -> Report:
    """The rates of what was simulated, and those that break a promise."""
    scenarios = [_result(each, simulated.endings[each.name]) for each in SCENARIOS]
    anchors = [(c, rate(simulated.counts[c.name], simulated.studies)) for c in ANCHOR_CASES]
    noise = [(c, rate(simulated.counts[c.name], simulated.studies)) for c in NOISE_CASES]
    broken = [
        line
        for each in scenarios
        for line in broken_promises(each.scenario.name, each.proof, CONFIDENCE)
    ]
    broken += [line for case, seen in (*anchors, *noise) for line in case.broken(seen)]
    return Report(
        simulated.studies, seed, tuple(scenarios), tuple(anchors), tuple(noise), tuple(broken)
    )


def document(report: Report) -> dict[str, object]:
    """All rates with stable keys and JSON values only."""
    return {
        "studies": report.studies,
        "seed": report.seed,
        "confidence": CONFIDENCE,
        "pairs_max": PAIRS_MAX,
        "wrong_rate_max": round(1.0 - CONFIDENCE, 12),
        "scenarios": [_scenario(each) for each in report.scenarios],
        "change_points": [
            {"name": case.name, "about": case.about, "anchors": case.anchors}
            | {"has_change": case.changes, "seen_rate": asdict(seen)}
            | {"false_alarm_rate_max": None if case.changes else FALSE_ALARMS_MOST}
            for case, seen in report.anchors
        ],
        "noise": [
            {"name": case.name, "runs": case.runs, "coverage": asdict(held)}
            | {"coverage_min": NOISE_COVERAGE_LEAST}
            for case, held in report.noise
        ],
        "ok": not report.broken,
        "broken": list(report.broken),
    }


def _result(scenario: Scenario, endings: Endings) -> ScenarioResult:
    return ScenarioResult(
        scenario,
        summarise(scenario, endings.proof),
        summarise(scenario, endings.student),
        summarise(scenario, endings.best_run, has_interval=False),
    )


def _scenario(result: ScenarioResult) -> dict[str, object]:
    scenario = result.scenario
    return {
        "name": scenario.name,
        "about": scenario.about,
        "ratio": scenario.ratio,
        "smallest_effect": scenario.smallest_effect,
        "proof": asdict(result.proof),
        "naive_student_after_every_pair": asdict(result.student),
        "naive_best_single_run": asdict(result.best_run),
    }
