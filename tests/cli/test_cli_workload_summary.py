"""`lsmtune workload summary`: the figures of `ekvsb summary`, of its runs and of lsmtune's."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from lsmtune.model.measurement import Latency, PhaseMeasurement
from lsmtune.programs.ekvsb import summary_of_phase
from made_up import made_up_phase


def record(number: int, method: str, elapsed: float, exists: bool | None) -> str:
    return json.dumps(
        {
            "seqno": number,
            "key": "k",
            "method": method,
            "start_time": 0.0,
            "elapsed": elapsed,
            "exists": exists,
            "error": None,
        }
    )


def test_a_run_of_ekvsb_is_summed_up_as_ekvsb_does(lsmtune: Any, tmp_path: Path) -> None:
    times = [0.004, 0.001, 0.003, 0.002]
    found = [None, True, False, True]
    lines = [
        record(n, "PUT" if exists is None else "GET", time, exists)
        for n, (time, exists) in enumerate(zip(times, found, strict=True))
    ]
    (tmp_path / "run.json").write_text("[\n" + ",\n".join(lines) + "\n]\n")
    document = lsmtune("workload", "summary", str(tmp_path / "run.json")).json()
    assert document["oks"] == 4
    assert document["existence"] == {"exists": 2, "absents": 1, "unknowns": 1}
    assert document["elapsed"] == pytest.approx(0.01)
    assert document["ops"] == pytest.approx(400)
    assert document["latency"]["min"] == 0.001
    assert document["latency"]["median"] == 0.003  # element 4 * 50 / 100 of those in order
    assert document["latency"]["max"] == 0.004


@pytest.mark.usefixtures("fake_driver")
def test_a_run_of_ours_has_a_summary_for_each_phase(lsmtune: Any, home: Path) -> None:
    said = lsmtune("bench", "--engine", "memory", "--workload", "fillrandom", "--json")
    (home / "bench.json").write_text(said.out)
    document = lsmtune("workload", "summary", "bench.json").json()
    phases = [p for p in said.json()["measurements"][0]["phases"] if p["operations"]]
    assert [each["phase"] for each in document["summaries"]] == [p["name"] for p in phases]
    summary, phase = document["summaries"][-1]["summary"], phases[-1]
    assert document["summaries"][-1]["runner"] == "native"
    assert summary["oks"] == phase["operations"]
    assert summary["latency"]["p99"] == pytest.approx(phase["latency_us_p99"] / 1e6)
    assert summary["latency"]["min"] is None
    assert summary["ops"] == pytest.approx(1e6 / phase["latency_us_mean"])


def phase(**changes: object) -> PhaseMeasurement:
    operations = {"operation": "mix", "operations": 10, "throughput_ops_s": 10.0}
    return made_up_phase("run", **operations | changes)


def test_the_time_of_a_mix_is_that_of_its_types() -> None:
    latencies = {"get": Latency(6, 2.0, 3.0)}
    assert summary_of_phase(phase(latencies=latencies))["elapsed"] is None  # not of all of them
    latencies["put"] = Latency(4, 12.0, 30.0)
    summary = summary_of_phase(phase(latencies=latencies, keys_found=5, keys_missing=1))
    assert summary["elapsed"] == pytest.approx(60e-6)
    assert summary["existence"] == {"exists": 5, "absents": 1, "unknowns": 4}


@pytest.mark.parametrize("text", ["", "{}", '{"measurements": [{}]}', "readproportion=1", "[1]"])
def test_what_is_neither_is_one_line(lsmtune: Any, home: Path, text: str) -> None:
    (home / "file").write_text(text)
    said = lsmtune("workload", "summary", "file")
    assert said.status == 2, said.out
    assert said.err.startswith("lsmtune: file")
    assert said.err.count("\n") == 1
    assert lsmtune("workload", "summary", "nowhere").status == 2
