"""A metric of the driver is in every place where metrics are: a forgotten one fails here."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterator, Mapping
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest
from sample_study import finished

from lsmtune.model.measurement import Latency, Percentiles, PhaseMeasurement
from lsmtune.model.metrics import (
    BY_NAME,
    DEFAULT_METRIC,
    LATENCIES,
    METRICS,
    PERCENTILES,
    REGISTRY,
    Level,
    unit_of,
)
from lsmtune.report import words as text
from lsmtune.report.analysis import StudyAnalysis
from lsmtune.report.source import read_study
from lsmtune.report.study import FORMATS
from lsmtune.report.tables import LatencyCurve

SCHEMA = Path(__file__).parents[2] / "protocol" / "message.schema.json"
# Numbers that describe a phase and are no metric of it.
DESCRIBING = {"threads", "started_unix_us", "finished_unix_us", "steal_s", "index"}
DESCRIBING |= {"page_cache_cached_share"}


def _objects(schema: object) -> Iterator[Mapping[str, Any]]:
    """Every `properties` in the schema."""
    if isinstance(schema, dict):
        if isinstance(properties := schema.get("properties"), dict):
            yield properties
        for value in schema.values():
            yield from _objects(value)
    elif isinstance(schema, list):
        for value in schema:
            yield from _objects(value)


def _numbers(properties: Mapping[str, Any]) -> set[str]:
    def types(of: Mapping[str, Any]) -> set[str]:
        kind = of.get("type", ())
        inner = [types(each) for each in of.get("anyOf", ())]
        return set().union([kind] if isinstance(kind, str) else kind, *inner)

    return {name for name, of in properties.items() if types(of) & {"number", "integer"}}


def _driver() -> tuple[set[str], set[str]]:
    """The numbers of a phase, and of an operation type, in the driver's messages."""
    messages = list(_objects(json.loads(SCHEMA.read_text("utf-8"))))
    (phase,) = [p for p in messages if "latencies" in p]
    (background,) = [p for p in messages if "flushes" in p]
    (operation,) = [p for p in messages if "histogram_ns_base64" in p]
    return _numbers(phase) | _numbers(background) - DESCRIBING, _numbers(operation)


@pytest.fixture(scope="module")
def analysis(tmp_path_factory: pytest.TempPathFactory) -> StudyAnalysis:
    return StudyAnalysis(
        read_study(finished(tmp_path_factory.mktemp("metrics")).folder), method=None
    )


def test_every_number_of_the_driver_is_an_entry_and_a_field() -> None:
    phase, operation = _driver()
    entries = {m.name for m in REGISTRY if m.level not in (Level.RUN, Level.COMPUTED)}
    assert phase - DESCRIBING == entries
    assert phase <= {f.name for f in fields(PhaseMeasurement)}
    assert operation == LATENCIES | {"count"}
    assert operation <= {f.name for f in fields(Latency)}


def test_a_percentile_is_an_entry_a_field_and_in_the_curves() -> None:
    assert set(PERCENTILES) == {f.name for f in fields(Percentiles)}
    assert set(PERCENTILES) <= {f.name for f in fields(LatencyCurve)}
    assert list(PERCENTILES.values()) == sorted(PERCENTILES.values())


def test_the_reports_have_every_metric(analysis: StudyAnalysis) -> None:
    header = next(csv.reader(io.StringIO(FORMATS["csv"].render(analysis))))
    document = json.loads(FORMATS["json"].render(analysis))
    report = FORMATS["md"].render(analysis)
    assert {f"metric.{name}" for name in METRICS} <= set(header)
    assert set(METRICS) <= set(document["runs"][0]["metrics"])
    for name in PERCENTILES:
        assert name in document["latencies"][0]
        assert f" {text.metric_label(name).removesuffix(' latency')} |" in report


@pytest.mark.parametrize("metric", REGISTRY, ids=lambda metric: metric.name)
def test_an_entry_is_whole(metric: Any) -> None:
    assert metric.says.endswith(".")
    assert (
        metric.level is Level.COUNT
        or unit_of(metric.name)
        or metric.name.endswith(("_amplification", "flushes", "compactions", "_hits", "_misses"))
    )
    assert BY_NAME[metric.name] is metric
    assert bool(metric.bench) == ("bench" in metric.shown)
    assert text.metric_label(metric.name)


def test_the_default_metric_can_be_an_objective() -> None:
    assert DEFAULT_METRIC in METRICS
    assert unit_of(DEFAULT_METRIC) == "ops/s"
