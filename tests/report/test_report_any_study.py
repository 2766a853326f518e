"""No mix of outcomes, values and verdicts stops a report."""

from __future__ import annotations

import csv
import io
import json
import math
import re
from dataclasses import replace
from functools import cache
from pathlib import Path
from types import SimpleNamespace

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from page import read
from sample_study import LEVELDB, ROCKSDB, STUDY, histogram_base64

from lsmtune.experiment.store import Role, StoredMeasurement
from lsmtune.model.config import Config
from lsmtune.model.goal import Goal, Objective, Pick, default_direction
from lsmtune.model.measurement import (
    Interval,
    Latency,
    LevelWork,
    Measurement,
    OptionNotTaken,
    Outcome,
    PhaseMeasurement,
    RunError,
)
from lsmtune.model.metrics import METRICS, PERCENTILES
from lsmtune.model.request import PairMethod
from lsmtune.model.verdict import MetricRatio, Verdict, VerdictOutcome
from lsmtune.report.analysis import StudyAnalysis
from lsmtune.report.source import StudyRecords, study_records
from lsmtune.report.study import FORMATS
from lsmtune.study.build import parse_spec
from lsmtune.study.spec import DataRungs, PrunerSpec, Spec, TimeRungs
from made_up import made_up_phase

HISTOGRAMS = ["", "broken", histogram_base64([]), histogram_base64([900, 2000, 2000])]
# Guards multiply, and an expression refuses what goes beyond 1e100.
NUMBER = st.floats(-1e90, 1e90) | st.sampled_from(
    [0.0, 1.0, -1.0, 1e-9, math.inf, -math.inf, math.nan]
)
MAYBE = st.none() | NUMBER
TEXT = st.text(max_size=12)
RUNGS = (TimeRungs(0.25, "fillrandom"), DataRungs((10, 100, 1000)))
PRUNERS = [PrunerSpec("median", {}, rungs) for rungs in RUNGS]
VALUE = st.booleans() | st.integers(-5, 2**40) | st.floats(0, 1e6) | TEXT


@cache
def spec() -> Spec:
    return parse_spec(STUDY, Path("study.yaml"))


@st.composite
def phases(draw: st.DrawFn, kind: str) -> PhaseMeasurement:
    histogram = draw(st.sampled_from(HISTOGRAMS))
    latency_us = draw(NUMBER)
    latency = Latency(
        3, latency_us, latency_us, histogram, **dict.fromkeys(PERCENTILES, latency_us)
    )
    interval = Interval(0.25, 0.25, 10, 10, draw(NUMBER), 1)
    whole = draw(st.integers(0, 10))
    return made_up_phase(
        kind=kind,
        operations=whole,
        elapsed_s=draw(NUMBER),
        drain_s=draw(NUMBER),
        throughput_ops_s=draw(NUMBER),
        sustained_throughput_ops_s=draw(NUMBER),
        user_bytes_written=whole,
        user_bytes_read=whole,
        rss_bytes_max=whole,
        database_bytes=whole,
        latency_us_p99=draw(MAYBE),
        latencies={"put": latency},
        intervals=(interval,) * draw(st.integers(0, 2)),
        stall_s=draw(MAYBE),
        flushes=draw(st.none() | st.integers(0, 30)),
        compactions=draw(st.none() | st.integers(0, 9)),
        levels=draw(st.none() | st.just((LevelWork(1, 2, 300), LevelWork(0, 0, 0)))),
        files_per_level=draw(st.none() | st.just((1, 0, 2))),
        bytes_per_level=draw(st.none() | st.just((10, 0, 20))),
        steal_s=draw(MAYBE),
        page_cache_cached_share=draw(MAYBE),
    )


@st.composite
def measurements(draw: st.DrawFn, kinds: list[str]) -> Measurement:
    """A run of a workload with phases of `kinds`, all of which a whole run has."""
    outcome = draw(st.sampled_from(Outcome))
    done = len(kinds) if outcome is Outcome.OK else draw(st.integers(0, len(kinds)))
    error = RunError(draw(TEXT), draw(TEXT)) if draw(st.booleans()) else None
    return Measurement(
        outcome=outcome,
        engine=draw(st.sampled_from([ROCKSDB, LEVELDB])),
        options={},
        workload="fillrandom",
        seed=1,
        started_unix_s=draw(st.floats(0, 4e9)),
        elapsed_s=draw(st.floats(0, 1e5)),
        phases=tuple(draw(phases(kind)) for kind in kinds[:done]),
        options_not_taken=(OptionNotTaken("a", "1", draw(st.none() | TEXT)),),
        error=error,
        warnings=tuple(draw(st.lists(TEXT, max_size=1))),
        memory_limited_by=draw(st.sampled_from(["", "cgroup", "watch"])),
        paired_by=draw(st.sampled_from(["", *PairMethod])),
    )


@st.composite
def stored(draw: st.DrawFn, number: int, kinds: list[str]) -> StoredMeasurement:
    role = draw(st.sampled_from(Role))
    proof = role in (Role.PROOF_BASELINE, Role.PROOF_CANDIDATE)
    names = st.sampled_from([p.name for p in spec().space.parameters] + ["other"])
    config = Config(draw(st.dictionaries(names, VALUE, max_size=6)))
    return StoredMeasurement(
        id=number,
        role=role,
        trial=draw(st.integers(0, 3)) if role in (Role.TRIAL, Role.RUNG) else None,
        rung=draw(st.integers(0, 2)) if role is Role.RUNG else None,
        pair=draw(st.integers(0, 3)) if proof or role is Role.CALIBRATION else None,
        repeat=draw(st.integers(0, 2)),
        config=config,
        measurement=draw(measurements(kinds)),
    )


@st.composite
def verdicts(draw: st.DrawFn) -> Verdict:
    return Verdict(
        outcome=draw(st.sampled_from(VerdictOutcome)),
        metric=draw(st.sampled_from(METRICS)),
        direction=draw(st.sampled_from(["maximize", "minimize"])),
        confidence=0.95,
        pairs=draw(st.integers(0, 9)),
        pairs_failed=draw(st.integers(0, 2)),
        ratio=draw(MAYBE),
        ratio_low=draw(MAYBE),
        ratio_high=draw(MAYBE),
        why=draw(TEXT),
        method=draw(st.sampled_from(["", *PairMethod])),
        confidence_each=draw(st.none() | st.just(0.99)),
        baseline_values=(1.0, 2.0),
        candidate_values=(draw(NUMBER), 1.5),
        pairs_wanted=draw(st.none() | st.integers(1, 99)),
        what_it_takes=draw(TEXT),
        notes=tuple(draw(st.lists(TEXT, max_size=1))),
        others=(MetricRatio("drain_s", "minimize", draw(MAYBE), draw(MAYBE), draw(MAYBE)),),
    )


@st.composite
def records(draw: st.DrawFn) -> StudyRecords:
    count = draw(st.integers(0, 8))
    described = replace(
        spec(),
        name=draw(TEXT),
        goal=draw(goals()),
        pruner=draw(st.sampled_from([None, *PRUNERS])),
        unsafe_options={"paranoid_checks": "damage is not looked for"},
    )
    path = Path("/studies/s.lsmtune")
    kinds = draw(st.lists(st.sampled_from(["measure", "load"]), max_size=2))
    runs = tuple(draw(stored(number, kinds)) for number in range(count))
    made = study_records(described, path, runs)
    return replace(
        made,
        verdict=draw(st.none() | verdicts()),
        refused=draw(st.dictionaries(TEXT, st.integers(0, 9), max_size=2)),
        machines={"": {"processors": draw(st.sampled_from(["", "2", "0", "many"]))}},
    )


@st.composite
def goals(draw: st.DrawFn) -> Goal:
    metrics = draw(st.lists(st.sampled_from(METRICS), min_size=1, max_size=3, unique=True))
    objectives = tuple(Objective(metric, default_direction(metric)) for metric in metrics)
    weighted = draw(st.sets(st.sampled_from(metrics), max_size=2))
    several = len(metrics) > 1 and weighted
    return Goal(objectives, pick=Pick(dict.fromkeys(weighted, 1.0)) if several else None)


@settings(max_examples=60, suppress_health_check=list(HealthCheck))
@given(records())
def test_every_format_renders(made: StudyRecords) -> None:
    analysis = StudyAnalysis(made)
    page = FORMATS["html"].render(analysis)
    assert read(page).unbalanced == []
    assert not re.search(r' (d|cx|cy|x|y|width)="[^"]*(nan|inf)', page)
    json.loads(FORMATS["json"].render(analysis), parse_constant=_refuse)
    assert FORMATS["md"].render(analysis).startswith("# ")
    rows = list(csv.reader(io.StringIO(FORMATS["csv"].render(analysis), newline="")))
    assert len(rows) == 1 + len(made.measurements)
    assert len({len(row) for row in rows}) == 1


def _refuse(constant: str) -> SimpleNamespace:
    raise ValueError(f"{constant} is not JSON")
