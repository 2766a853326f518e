"""`lsmtune workload inspect`, `fit`, `replay`: on a driver that makes things up; on db_bench."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from lsmtune.workloads.file import workload_from_file
from made_up import write_program

# Made-up summaries are made where the room's own tests are.
sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "traces"))
from trace_parts import document

FAKE = Path(__file__).parent / "inspecting_driver.py"
COUNTS = {"get": 4500, "put": 500}


@pytest.fixture
def traces(home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Traces in the current folder: whole ones, a damaged and a foreign one."""
    driver = write_program(tmp_path / "lsmtune-driver", FAKE.read_text())
    summaries = tmp_path / "summaries"
    summaries.mkdir()
    monkeypatch.setenv("LSMTUNE_DRIVER", str(driver))
    monkeypatch.setenv("LSMTUNE_TEST_SUMMARIES", str(summaries))
    rng = np.random.default_rng(1)
    keys = rng.integers(0, 2000, 5000)
    good = document(keys, operations=COUNTS, values=rng.integers(50, 90, 500))
    reason = {"offset_bytes": 123, "record": 5, "reason": "the file ends within a record"}
    error = {
        **{"kind": "trace", "field": "path", "found": "text", "allowed": "a query trace"},
        "nearest": [],
        "message": "path: foreign.trace: offset 0: found text",
    }
    deleted = {**good["operation_counts"], "get": 4000, "delete_range": 500}
    for name, said in (
        ("good", good),
        ("deleted", good | {"operation_counts": deleted}),
        ("damaged", good | {"damage": reason}),
        ("foreign", {"type": "failed", "outcome": "invalid", "error": error}),
    ):
        (home / f"{name}.trace").write_text("a trace")
        (summaries / f"{name}.trace.json").write_text(json.dumps(said))
    return summaries


FIT_DAMAGED = ("workload", "fit", "damaged.trace", "--records", "2000")


def asked(traces: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (traces / "asked.jsonl").read_text().splitlines()]


def test_inspect_says_what_the_trace_holds(lsmtune: Any, traces: Path) -> None:
    said = lsmtune("workload", "inspect", "good.trace")
    assert said.status == 0, said.err
    for text in (
        "a trace of RocksDB 7.8 · 5,000 records · 5,000 operations · 20s",
        r"put +500 +10\.000 %\nget +4,500 +90\.000 %\n",
        r"bytes of a key, get +48 +48 +48 +48 +48",
        r"microseconds between records +2 +1 +2 +2.98 +3",
        r"trace +version 0\.2, 1000B, read in 100ms",
        r"distinct keys +1,8\d\d \(all keys were kept\)",
        r"share of the hottest keys +1: 0\.\d\d %, 10: 1\.\d\d %, 100: .*, 1,000: \d\d\.\d\d %\n",
        r"hottest of 1 prefixes +0000000000 100\.0 %",
        r"hits of an LRU cache of keys +2 keys 0\.\d %, 18 keys \d\.\d %, 18\d keys \d+\.\d %",
    ):
        assert re.search(text, said.out), (text, said.out)
    assert "Damaged" not in said.out
    assert "Operations over time" not in said.out  # a figure, of the page alone
    (request,) = asked(traces)
    assert (request["ranges"], "key_number" in request) == (1024, False)


def test_inspect_as_json_holds_every_figure(lsmtune: Any, traces: Path) -> None:
    said = lsmtune("workload", "inspect", "good.trace", "--ranges", "64", "--json")
    trace = said.json()["trace"]
    assert trace["operation_counts"]["put"] == 500
    assert trace["reuse"]["all"]["miss_ratio"]
    assert asked(traces)[0]["ranges"] == 64


@pytest.mark.usefixtures("traces")
def test_a_damaged_trace_is_shown_and_fails(lsmtune: Any, home: Path) -> None:
    said = lsmtune("workload", "inspect", "damaged.trace")
    assert said.status == 1
    assert "Damaged\nAt offset 123, in record 5: the file ends within a record." in said.out
    assert "90.000 %" in said.out
    assert said.err.count("\n") == 1
    assert "damaged at offset 123" in said.err
    fit = lsmtune(*FIT_DAMAGED, "--output", "w.yaml")
    assert fit.status == 1
    assert "damaged at offset 123" in (home / "w.yaml").read_text()
    # As JSON, a second document stood behind the first one: no reader of JSON takes that.
    for found in (
        lsmtune("workload", "inspect", "damaged.trace", "--json"),
        lsmtune(*FIT_DAMAGED, "--output", "v.yaml", "--json"),
    ):
        assert found.status == 1
        assert "damaged at offset 123" in found.json()["error"]["message"]
        assert found.json().keys() & {"trace", "parts"}


@pytest.mark.usefixtures("traces")
def test_what_is_no_trace_is_refused(lsmtune: Any, home: Path) -> None:
    said = lsmtune("workload", "inspect", "foreign.trace")
    assert (said.status, said.err) == (2, "lsmtune: foreign.trace: offset 0: found text\n")
    assert "absent.trace: no such file" in lsmtune("workload", "inspect", "absent.trace").refusal
    # A pipe, as of `<(zcat production.trace.gz)`, was "no such file", and so was a folder's replay.
    os.mkfifo(home / "pipe")
    (home / "folder").mkdir()
    for path, why in (("pipe", "is not a regular file"), ("folder", "is a directory")):
        for arguments in (("inspect", path), ("replay", path, "--engine", "memory")):
            refusal = lsmtune("workload", *arguments).refusal
            assert f"{path}: {why}; allowed: a query trace of RocksDB" in refusal


@pytest.mark.usefixtures("traces")
def test_inspect_writes_a_page_that_needs_no_network(lsmtune: Any, home: Path) -> None:
    said = lsmtune("workload", "inspect", "good.trace", "--html", "page.html")
    assert said.status == 0, said.err
    page = (home / "page.html").read_text()
    assert 'src="http' not in page
    for name in ("rate", "hotness", "ranges", "miss-ratio", "value-sizes", "inter-arrival"):
        assert re.search(rf'<section id="{name}".*?<figure class="chart', page, re.S), name
    said = lsmtune("workload", "inspect", "good.trace", "--html", "nowhere/page.html")
    assert said.status == 2


def test_fit_writes_a_workload_that_can_be_read_again(
    lsmtune: Any, traces: Path, home: Path
) -> None:
    command = ("workload", "fit", "good.trace", "--output", "w.yaml", "--records", "2000")
    said = lsmtune(*command, "--html", "fit.html", "--json")
    assert said.status == 0, said.err
    found = said.json()
    parts = {part["name"]: part for part in found["parts"]}
    assert parts["mix"]["distances"]["total_variation"] == 0.0
    assert parts["hotness"]["model"] == "uniform"
    assert all(part["fits"] for part in parts.values()), parts
    assert found["db_bench"]["mix_put_ratio"] == pytest.approx(0.1)
    stated = workload_from_file(home / "w.yaml", {}, "test", None)
    mix = stated.workload.phases[-1].mix
    assert mix is not None
    assert dict(mix.operations) == {"get": 0.9, "put": 0.1}
    assert (stated.workload.num, mix.keys.name) == (2000, "uniform")
    assert "The fitted workload" in (home / "fit.html").read_text()
    # The second pass reads numbers where the first one found that keys have them.
    assert [request["ranges"] for request in asked(traces)] == [4096, 1]
    assert asked(traces)[1]["key_number"] == {"offset_bytes": 0, "bytes": 8, "format": "big_endian"}
    assert "w.yaml: exists already" in lsmtune(*command).refusal
    again = lsmtune(*command, "--force")
    assert re.search(r"hotness +fits +ks distance +0\.0\d\d\d +0\.05 +uniform *\n", again.out)
    assert "warning: the values that were there before are not in a trace" in again.out
    assert "As db_bench would make it: --benchmarks=mixgraph" in again.out


@pytest.mark.usefixtures("traces")
def test_fit_names_what_does_not_fit(lsmtune: Any) -> None:
    said = lsmtune("workload", "fit", "deleted.trace", "--output", "w.yaml", "--records", "2000")
    assert said.status == 0, said.err
    assert re.search(r"mix +DOES NOT FIT +total variation +0\.1\d\d\d +0\.01 +put", said.out)
    assert "warning: mix: 500 operations left out" in said.out


@pytest.mark.usefixtures("traces")
@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--rate", "fast"), "--rate: found 'fast'; allowed: closed, recorded"),
        (("--records", "0"), "--records: found '0'"),
        (("--records", "7"), "--records: found 7; allowed: at least"),
        (("--load-value-bytes", "0"), "--load-value-bytes: found '0'"),
        (("--load-value-bytes", "2MiB"), "--load-value-bytes: found '2MiB'; allowed: at most"),
        (("--scan-length", "0"), "--scan-length: found '0'"),
    ],
)
def test_fit_refuses_what_cannot_be_meant(
    lsmtune: Any, home: Path, arguments: tuple[str, ...], said: str
) -> None:
    assert (
        said in lsmtune("workload", "fit", "good.trace", "--output", "w.yaml", *arguments).refusal
    )
    assert not (home / "w.yaml").exists()


@pytest.mark.usefixtures("fake_driver")
def test_replay_loads_settles_and_replays(lsmtune: Any, home: Path) -> None:
    (home / "t.trace").write_text("a trace")
    command = ("workload", "replay", "t.trace", "--engine", "memory", "-w", "num=1000")
    said = lsmtune(*command, "--json")
    assert said.status == 0, said.err
    assert said.json()["measurements"][0]["workload"] == "replay-t.trace"
    assert lsmtune(*command, "--quiet").status == 0  # all else is as in `bench`
    crashed = lsmtune(*command, "-o", "fake=crash", "-o", "signal=11")
    assert crashed.err.splitlines()[-1].startswith("lsmtune: workload replay: run with seed 1 ")
    assert lsmtune(*command, "--speed", "0").status == 2
    assert "--speed" in lsmtune(*command, "--speed", "-1").err
    assert "no such file" in lsmtune("workload", "replay", "no", "--engine", "memory").err


DB_BENCH = shutil.which("db_bench")
MIXGRAPH = {
    "num": 300_000,
    "reads": 300_000,
    "key_size": 48,
    "mix_get_ratio": 0.8,
    "mix_put_ratio": 0.19,
    "mix_seek_ratio": 0.01,
    "value_k": 0.2615,
    "value_sigma": 25.45,
    "key_dist_a": 0.002312,
    "key_dist_b": 0.3467,
    "keyrange_dist_a": 0.9,
    "keyrange_dist_b": -1.0,
    "keyrange_dist_c": 0.05,
    "keyrange_dist_d": -0.1,
    "keyrange_num": 10,
}
# db_bench decides operation and value size by one number: the lowest 800 of 300,000 are all gets,
# so that no put has one of the largest values, which a fit of so few keys takes for a thinner tail.
# `benchmarks/traces` has the keys that it takes for all of them to come back within a tenth.
TOLERANCES = {
    "num": 0.001,
    "mix_get_ratio": 0.01,
    "mix_put_ratio": 0.02,
    "value_k": 0.15,
    "value_sigma": 0.1,
    "key_dist_a": 0.2,
    "key_dist_b": 0.2,
    "keyrange_num": 0,
}


@pytest.mark.engine
@pytest.mark.skipif(DB_BENCH is None, reason="db_bench is not installed")
def test_db_benchs_parameters_come_back(
    lsmtune: Any, home: Path, driver: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LSMTUNE_DRIVER", str(driver))
    flags = [f"--{name}={value}" for name, value in MIXGRAPH.items()]
    flags += [f"--db={home}/db", "--compression_type=none", "--seed=1"]
    traced = ["--use_existing_db=1", f"--trace_file={home}/mix.trace"]
    # One run for each: every benchmark of a run begins the trace file again.
    for what in (["--benchmarks=fillseq"], ["--benchmarks=mixgraph", *traced]):
        subprocess.run([str(DB_BENCH), *what, *flags], check=True, capture_output=True)
    said = lsmtune("workload", "fit", "mix.trace", "--output", "w.yaml", "--json")
    assert said.status == 0, said.err
    found = said.json()["db_bench"]
    for name, tolerance in TOLERANCES.items():
        assert found[name] == pytest.approx(MIXGRAPH[name], rel=tolerance), name
