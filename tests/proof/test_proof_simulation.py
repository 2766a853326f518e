"""Whole proofs on a machine that does its worst: how often they are wrong, and how often right."""

from __future__ import annotations

import math
import threading
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from fake_runner import ENGINE, phase
from proof_parts import BASELINE, CANDIDATE, WORKLOAD, arm

from lsmtune.experiment.measurer import Run
from lsmtune.experiment.observer import Observer
from lsmtune.experiment.store import Role, StoredMeasurement
from lsmtune.model.goal import Goal, Objective
from lsmtune.model.measurement import Measurement, Outcome
from lsmtune.model.request import PairMethod
from lsmtune.model.verdict import VerdictOutcome
from lsmtune.proof import paired
from lsmtune.proof.paired import ProofPlan, prove
from lsmtune.proof.verdict import SampleSize

PROOFS = 200
PAIRS = 12
Noise = Callable[[np.random.Generator, int], float]


def drifting(random: np.random.Generator, run: int) -> float:
    """A machine that gets slower, with outliers of any size, and a second run that always loses."""
    outlier = random.standard_t(2) * 0.05
    return -0.01 * run + 0.05 * (run % 2) + outlier


def quiet(random: np.random.Generator, _run: int) -> float:
    return float(random.normal(0.0, 0.03))


def wild(random: np.random.Generator, _run: int) -> float:
    """A run in seven is far slower, by any factor."""
    slower = random.exponential(0.5) if random.random() < 1 / 7 else 0.0
    return float(random.normal(0.0, 0.03)) - slower


class Machine:
    """A Measurer without runs: the log of a value is the effect of its side and the noise.

    A run of value 1e5 takes a second, a slower one longer. It is killed after `limit_s`, and
    failed then.
    """

    workloads = (WORKLOAD,)
    native = False

    def __init__(self, seed: int, effect: float, noise: Noise, limit_s: float = math.inf) -> None:
        self.folder: Any = self
        self.measurements: Any = self
        self.observer = Observer()
        self.stop = threading.Event()
        self._random = np.random.default_rng(seed)
        self._effect = effect
        self._noise = noise
        self._limit_s = limit_s
        self._runs = 0

    def of(self, _role: Role) -> list[StoredMeasurement]:
        return []

    def last_pair(self) -> int | None:
        return None

    def refuse_other_build(self, _engine: object) -> None:
        """There is none."""

    def clock(self) -> float:
        return float(self._runs)

    def measure_pair(
        self, first: Run, second: Run, seed: int, method: PairMethod, **_more: object
    ) -> tuple[StoredMeasurement, StoredMeasurement]:
        one, other = (self._run(run, seed, method) for run in (first, second))
        return one, other

    def _run(self, run: Run, seed: int, method: PairMethod) -> StoredMeasurement:
        config, slot = run[0].config, run[1]
        log = self._noise(self._random, self._runs) + self._effect * bool(config.options)
        self._runs += 1
        took_s = min(math.exp(-log), self._limit_s)
        outcome = Outcome.OK if took_s < self._limit_s else Outcome.TIMEOUT
        seen = (phase(1e5 * math.exp(log)),) if outcome is Outcome.OK else ()
        measured = Measurement(outcome, ENGINE, {}, "w", seed, 0.0, took_s, seen)
        measured = replace(measured, paired_by=method.value)
        return StoredMeasurement(self._runs, slot.role, None, slot.pair, config, measured, took_s)


def outcomes(
    effect: float,
    noise: Noise,
    smallest_effect: float | None = None,
    *,
    limit_s: float = math.inf,
) -> list[VerdictOutcome]:
    plan = ProofPlan(pairs=PAIRS, smallest_effect=smallest_effect)
    found = []
    for seed in range(PROOFS):
        machine: Any = Machine(seed, effect, noise, limit_s)
        goal = Goal((Objective(),))
        arms = arm(BASELINE), arm(CANDIDATE)
        verdict = prove(*arms, goal, machine, study_seed=seed + 100, plan=plan)
        assert verdict is not None
        found.append(verdict.outcome)
    return found


@pytest.fixture(autouse=True)
def _without_advice(monkeypatch: pytest.MonkeyPatch) -> None:
    """What it would take is simulated itself, which is too much for hundreds of proofs."""
    monkeypatch.setattr(paired, "sample_size_wanted", lambda *_arguments: SampleSize())


@pytest.mark.parametrize("noise", [drifting, quiet])
def test_equal_sides_are_called_different_no_more_often_than_stated(noise: Noise) -> None:
    found = outcomes(0.0, noise)
    different = PROOFS - found.count(VerdictOutcome.NOT_PROVEN)
    assert different / PROOFS <= 0.05


@pytest.mark.parametrize("limit_s", [1.02, 1.1])
def test_runs_that_fail_because_they_are_slow_prove_nothing(limit_s: float) -> None:
    """Of a pair with a failed run neither value counts, whichever side it was of."""
    found = outcomes(0.0, wild, limit_s=limit_s)
    different = PROOFS - found.count(VerdictOutcome.NOT_PROVEN)
    assert different / PROOFS <= 0.05


def test_a_real_effect_is_found_and_has_the_right_sign() -> None:
    found = outcomes(0.08, quiet)  # about twice the scatter of a pair's ratios
    assert found.count(VerdictOutcome.BETTER) / PROOFS >= 0.9
    assert VerdictOutcome.WORSE not in found


def test_sides_that_differ_by_more_are_rarely_called_equivalent() -> None:
    found = outcomes(0.12, quiet, smallest_effect=0.1)
    assert found.count(VerdictOutcome.EQUIVALENT) / PROOFS <= 0.05
    same = outcomes(0.0, quiet, smallest_effect=0.1)
    assert same.count(VerdictOutcome.EQUIVALENT) / PROOFS >= 0.8
