"""What `bench` says of phases that tell of levels, cold starts and stolen time."""

from __future__ import annotations

import io
from dataclasses import replace
from pathlib import Path

import pytest
from rich.console import Console

from lsmtune.cli.bench_result import bench_document, bench_view
from lsmtune.driver.messages import PhaseFinished, parse_message
from lsmtune.model.config import EngineIdentity
from lsmtune.model.measurement import LevelWork, Measurement, Outcome, PhaseMeasurement
from lsmtune.model.workload import PageCache, Phase, PhaseKind, Workload
from lsmtune.report.terminal import blocks_view

GOLDEN = Path(__file__).parents[2] / "protocol" / "golden" / "messages-run.jsonl"
PHASE = next(
    message.phase
    for message in map(parse_message, GOLDEN.read_text().splitlines())
    if isinstance(message, PhaseFinished) and message.phase.kind == "measure"
)
WORKLOAD = Workload(
    "fillrandom",
    (Phase("fillrandom", PhaseKind.MEASURE, "fillrandom", operations_per_thread=1000),),
    num=1000,
)


def run(phase: PhaseMeasurement, seed: int = 1) -> Measurement:
    engine = EngineIdentity("rocksdb", "10.2.1")
    return Measurement(Outcome.OK, engine, {}, "fillrandom", seed, 0.0, 1.0, (phase,))


def shown(*runs: Measurement, workload: Workload = WORKLOAD) -> str:
    screen = io.StringIO()
    Console(file=screen, width=200).print(blocks_view(bench_view(runs, workload, {}, [])))
    return screen.getvalue()


def test_the_tree_and_what_was_written_into_its_levels() -> None:
    levels = (LevelWork(1, 4, 3 << 20),)
    held = {"files_per_level": (2, 0, 5, 0), "bytes_per_level": None, "flushes": 2}
    phase = replace(PHASE, levels=levels, **held)  # type: ignore[arg-type]
    lines = shown(run(phase)).splitlines()
    title = next(n for n, line in enumerate(lines) if line.startswith("the tree at the end of"))
    assert [line.split() for line in lines[title + 1 : title + 5]] == [
        ["level", "files", "size", "flushes", "compactions", "written", "by", "them"],
        ["0", "2", "\N{EN DASH}", "2", "0", "0B"],
        ["1", "0", "\N{EN DASH}", "4", "3MiB"],
        ["2", "5", "\N{EN DASH}", "0", "0B"],
    ]
    nothing = replace(PHASE, levels=None, files_per_level=None, bytes_per_level=None)
    assert "the tree" not in shown(run(nothing))


def test_medians_are_those_of_all_runs() -> None:
    phases = [replace(PHASE, files_per_level=(files,)) for files in (1, 9, 4)]
    lines = shown(*(run(phase, seed) for seed, phase in enumerate(phases))).splitlines()
    title = next(n for n, line in enumerate(lines) if line.startswith("the tree at the end of"))
    assert lines[title + 2].split()[:2] == ["0", "4"]


def test_conditions_that_spoil_a_figure_are_warned_of(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.cpu_count", lambda: 2)
    time_s = PHASE.elapsed_s + PHASE.drain_s
    disturbed = replace(PHASE, steal_s=0.2 * time_s, page_cache_cached_share=0.4)
    cold = replace(WORKLOAD, page_cache=PageCache.COLD)
    said = " ".join(shown(run(disturbed), workload=cold).split())
    assert "processor time taken by the host: 10 % of a run, at most 10 %" in said
    assert "warning: The host took processor time from runs: More than 2 % in 1 of 1 runs" in said
    assert "warning: Cold runs did not begin cold: In one of them 40 %" in said
    document = bench_document([run(disturbed)], cold, {})
    assert document["conditions"] == {
        "page_cache": {"fillrandom": "cold"},
        "cold_runs": 1,
        "cached_share_max": 0.4,
        "memory_limited_by": {},
        "steal_runs": 1,
        "steal_runs_disturbed": 1,
        "steal_share_median": pytest.approx(0.1),
        "steal_share_max": pytest.approx(0.1),
    }
