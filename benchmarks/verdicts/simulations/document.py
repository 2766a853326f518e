"""The result of the simulations as one document with stable keys and JSON values only."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from simulations.detectors import (
    ANCHOR_CASES,
    FALSE_ALARMS_MOST,
    NOISE_CASES,
    NOISE_COVERAGE_LEAST,
)
from simulations.playing import CONFIDENCE, PAIRS_MAX
from simulations.scenarios import SCENARIOS
from simulations.simulate import Simulated
from simulations.summary import broken_promises, rate, summarise


def document(simulated: Simulated, seed: int) -> dict[str, Any]:
    """All rates; `broken` has a line for each that is not as stated."""
    scenarios, change_points, noise = [], [], []
    broken: list[str] = []
    for scenario in SCENARIOS:
        endings = simulated.endings[scenario.name]
        proof, student = (summarise(scenario, each) for each in (endings.proof, endings.student))
        best_run = summarise(scenario, endings.best_run, has_interval=False)
        broken += broken_promises(scenario.name, proof, CONFIDENCE)
        scenarios.append(
            {
                "name": scenario.name,
                "about": scenario.about,
                "ratio": scenario.ratio,
                "smallest_effect": scenario.smallest_effect,
                "proof": asdict(proof),
                "naive_student_after_every_pair": asdict(student),
                "naive_best_single_run": asdict(best_run),
            }
        )
    for case in ANCHOR_CASES:
        seen = rate(simulated.counts[case.name], simulated.studies)
        broken += case.broken(seen)
        change_points.append(
            {"name": case.name, "about": case.about, "anchors": case.anchors}
            | {"has_change": case.changes, "seen_rate": asdict(seen)}
            | {"false_alarm_rate_max": None if case.changes else FALSE_ALARMS_MOST}
        )
    for kind in NOISE_CASES:
        held = rate(simulated.counts[kind.name], simulated.studies)
        broken += kind.broken(held)
        noise.append(
            {"name": kind.name, "runs": kind.runs, "coverage": asdict(held)}
            | {"coverage_min": NOISE_COVERAGE_LEAST}
        )
    return {
        "studies": simulated.studies,
        "seed": seed,
        "confidence": CONFIDENCE,
        "pairs_max": PAIRS_MAX,
        "wrong_rate_max": round(1.0 - CONFIDENCE, 12),
        "scenarios": scenarios,
        "change_points": change_points,
        "noise": noise,
        "ok": not broken,
        "broken": broken,
    }
