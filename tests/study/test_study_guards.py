"""A gain that breaks a guard in the proof is none: the search looks for one that will hold."""

from __future__ import annotations

import random
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from fake_runner import MIB, FakeRunner
from study_parts import Recorder, make_spec, stored, tuned

from lsmtune.experiment.store import OF_BASELINE, StoredMeasurement
from lsmtune.model.measurement import Measurement
from lsmtune.model.request import RunRequest
from lsmtune.model.verdict import VerdictOutcome
from lsmtune.study.feasible import Feasibility
from lsmtune.study.racing import Race, Standing
from lsmtune.study.stored import round_of

START = "start: [{write_buffer_size: 7MiB}, {write_buffer_size: 8MiB}]"
GUARD = "space_amplification <= 1.25 * baseline"


def spacious(scatter: float = 0.05, **more: Any) -> FakeRunner:
    """Memtables above 7 MiB are fastest, and take 1.27 times the space, which scatters."""

    def figures(request: RunRequest) -> dict[str, float]:
        size = float(str(request.config.options.get("write_buffer_size", 2 * MIB))) / MIB
        noise = random.Random(f"{request.seed} {size}").gauss(1.0, scatter)
        return {"space_amplification": (1.27 if size > 7 else 1.0) * noise}

    return FakeRunner(figures=figures, **more)


def test_what_is_a_little_slower_and_holds_its_guards_is_what_is_proved(tmp_path: Path) -> None:
    """fillrandom: a 2.4x that broke the guard of space by a hundredth was all that was proved."""
    noise = "{calibration: 4, anchors: 0, repeats: 1}"
    spec = make_spec(tmp_path, budget="{trials: 3}", noise=noise, more=START)
    result = tuned(spec, tmp_path / "s", spacious(noise=0.002))
    assert result.best is not None
    assert result.best.options["write_buffer_size"] == 7 * MIB
    assert result.verdict is not None
    assert result.verdict.outcome is VerdictOutcome.BETTER


@pytest.mark.parametrize("unit", [1.0, 100.0])
@pytest.mark.parametrize(("scatter", "gives_way"), [(0.01, False), (0.2, True)])
def test_a_guard_gives_way_by_what_its_metric_scatters(
    tmp_path: Path, scatter: float, gives_way: bool, unit: float
) -> None:
    """A p99 of 105 us might rise to 7.8 times that: the guess of its noise was counted in us."""
    noise = "{calibration: 6, anchors: 0, repeats: 1}"
    spec = make_spec(tmp_path, budget="{trials: 1}", noise=noise)
    runner = spacious(scatter=scatter)
    tuned(spec, tmp_path / "s", runner, Recorder())

    def taking(space: float, of: Measurement) -> Measurement:
        return replace(of, phases=tuple(replace(p, space_amplification=space) for p in of.phases))

    def in_unit(row: StoredMeasurement) -> StoredMeasurement:
        own = row.measurement.phases[-1].space_amplification or 0.0
        return replace(row, measurement=taking(own * unit, row.measurement))

    rows = [in_unit(row) for row in stored(tmp_path / "s") if row.role in OF_BASELINE]
    feasibility = Feasibility(spec, rows)

    def odds(space: float) -> tuple[bool, float]:
        broken = feasibility.violations({}, [taking(space * unit, rows[0].measurement)])
        return broken[GUARD] <= 0, feasibility.log_odds(broken)

    assert odds(1.0)[0]
    assert odds(1.33)[0] is gives_way
    assert odds(1.0)[1] > odds(1.2)[1] > odds(1.33)[1]


def test_a_guard_compares_a_run_with_the_baseline_of_its_own_host(tmp_path: Path) -> None:
    noise = "{calibration: 3, anchors: 0, repeats: 1}"
    spec = make_spec(tmp_path, budget="{trials: 1}", noise=noise, more=f"guards: [{GUARD}]")
    tuned(spec, tmp_path / "s", spacious(scatter=0.001), Recorder())

    def on(host: str, space: float, row: StoredMeasurement) -> StoredMeasurement:
        phases = tuple(
            replace(p, space_amplification=space * (p.space_amplification or 0.0))
            for p in row.measurement.phases
        )
        return replace(row, measurement=replace(row.measurement, phases=phases, host=host))

    rows = [row for row in stored(tmp_path / "s") if row.role in OF_BASELINE]
    here, there = [on("a", 1.0, row) for row in rows], [on("b", 3.0, row) for row in rows]
    alone, both = Feasibility(spec, here), Feasibility(spec, [*here, *there])
    # What b joined later changes nothing of what is known of a.
    assert round_of(here[:1], spec, both) == round_of(here[:1], spec, alone)
    well, thrice = round_of(there[:1], spec, both), round_of([on("a", 3.0, rows[0])], spec, both)
    assert well is not None
    assert thrice is not None
    assert well.violations[GUARD] <= 0 < thrice.violations[GUARD]


def test_a_race_is_about_what_can_be_proved() -> None:
    fast, sure = Standing(1.0, 3, 3, log_odds=-0.7), Standing(0.9, 3, 3, log_odds=-0.01)
    others = {n: Standing(0.1 * n, 1, 1) for n in range(3)}
    assert Race({**others, 7: fast, 8: sure}, 0.02).ranked()[0] == 8
    assert Race({**others, 7: replace(fast, log_odds=0.0), 8: sure}, 0.02).ranked()[0] == 7
