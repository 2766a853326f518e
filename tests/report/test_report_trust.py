"""Noise and drift, repeats, the proof and what was sustained, as reports tell them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from page import read
from sample_study import BEST, SampleStudy, analysed, changed

from lsmtune.experiment.store import Role
from lsmtune.model.config import Config
from lsmtune.model.measurement import LevelWork, Outcome
from lsmtune.model.verdict import GuardResult, MetricRatio, Verdict, VerdictOutcome
from lsmtune.model.workload import Durability
from lsmtune.proof.crash_test import CrashOutcome, CrashTest
from lsmtune.proof.power_loss import PowerTest
from lsmtune.report import words as text
from lsmtune.report.analysis import StudyAnalysis
from lsmtune.report.chart import Span
from lsmtune.report.document import Paragraph
from lsmtune.report.figures import anchor_chart, forest_chart
from lsmtune.report.study import FORMATS
from lsmtune.report.study_proof import pairs_note, proof_lines
from lsmtune.report.study_search import runs_as_measured
from lsmtune.report.study_trust import drift_line, noise_figure, noise_source, provable
from lsmtune.report.tables import (
    AnchorPoint,
    AnchorSegment,
    AnchorSeries,
    Conditions,
    Ended,
    MachineChange,
    NoiseRow,
    NoiseSource,
    PairRow,
    ProofFacts,
    TrialRow,
    TrialRun,
)
from lsmtune.report.trust import condition_facts
from lsmtune.report.verdict import price_answer, price_blocks
from lsmtune.stats.sequential import pairs_at_least

SEGMENT = AnchorSegment(0.0, 10.0, 100.0, 4)
CHANGE = MachineChange(10.0, 12.0, 0.81, 15, 17, run_again=(16,))
PROVEN = Verdict(
    VerdictOutcome.BETTER,
    "sustained_throughput_ops_s",
    "maximize",
    0.95,
    pairs=9,
    ratio=1.4,
    ratio_low=1.3,
    ratio_high=1.5,
    method="slices",
    confidence_each=0.975,
    others=(
        MetricRatio("drain_s", "minimize", 0.8, 0.7, 0.9),
        MetricRatio("score", "", 1.1, None, None),
    ),
    notes=("a run stalled",),
)


@pytest.fixture(scope="module")
def drifted(tmp_path_factory: pytest.TempPathFactory) -> StudyAnalysis:
    """A study on a machine that became half as fast, with a repeated trial and a proof."""
    sample = SampleStudy(tmp_path_factory.mktemp("drifted"))
    sample.add_baseline()
    for pair in range(3):
        sample.add_calibration(pair, (1.0, 1.0 + pair / 50), "slices")
    for number in range(16):
        speed = 1.0 if number < 7 else 0.5
        sample.add_trial(number, BEST, sample.measured(BEST, 1.2 * speed))
        sample.add_anchor(number, speed)
    run = sample.measured(BEST, 0.6)
    levels = (LevelWork(1, 30, 300 << 20),)
    phase = replace(run.phases[0], flushes=40, levels=levels, bytes_per_level=(0, 5 << 20))
    tree = replace(run, phases=(phase,), memory_limited_by="cgroup", paired_by="slices")
    sample.add_trial(7, BEST, run, repeat=1)
    config = sample.folder.measurements.of(Role.TRIAL)[0].config
    sample.add(Role.PROOF_BASELINE, tree, sample.baseline, pair=0)
    sample.add(Role.PROOF_CANDIDATE, tree, config, pair=0)
    sample.folder.measurements.set_verdict(PROVEN)
    found = analysed(sample)
    sample.close()
    return found


def test_the_page_shows_the_anchors_and_where_the_machine_changed(drifted: StudyAnalysis) -> None:
    page = read(FORMATS["html"].render(drifted))
    assert page.unbalanced == []
    assert "The anchors over the time of the study" in page.plots
    line = "The machine changed once: 0.50 of before from trial 8 on; 1 trial was run again (7)."
    assert line in page.text
    (chart,) = anchor_chart(drifted.anchors[0])
    series = {each.name: [point.x for point in each.points] for each in chart.series}
    assert set(series) == {"level of a segment", "baseline", "anchor"}
    assert len(series["anchor"]) == 16
    assert series["anchor"] == sorted(series["anchor"])
    (change,) = drifted.anchors[0].changes
    assert chart.spans == [Span(change.from_s, change.to_s, text.ratio(change.ratio))]


def test_the_page_tells_noise_repeats_and_that_the_search_proves_nothing(
    drifted: StudyAnalysis,
) -> None:
    page = read(FORMATS["html"].render(drifted))
    assert "calibration: the baseline against itself, 6 runs" in page.text
    assert " in 30 pairs" in page.text
    assert page.text.count("from the search; the gain is in the verdict") == 2
    unfinished = read(FORMATS["html"].render(changed(drifted, verdict=None, proof=None)))
    assert unfinished.text.count("from the search; only a proof tells the gain") == 2
    assert "run again: the machine changed" in page.text
    raw = [text.quantity(drifted.metric, r.value) for r in drifted.history.trials[7].runs]
    assert f"({raw[0]}) · {raw[1]}" in page.text
    assert drifted.history.best_from == "search"


def test_the_page_tells_how_the_proof_was_made(drifted: StudyAnalysis) -> None:
    page = read(FORMATS["html"].render(drifted))
    assert "9 pairs by slices: both take turns in short slices" in page.text
    assert "It stopped as soon as the interval excluded no difference." in page.text
    assert "A run stalled." in page.text
    assert "All these intervals hold together at 95 %: each one is at 97.5 %" in page.text
    assert "the first drawn by lot: both take turns in short slices" in page.text
    assert "by a control group (2 runs)" in page.text
    assert "warm: whatever earlier phases left in it" in page.text


def test_the_page_shows_burst_beside_sustained_and_the_levels(drifted: StudyAnalysis) -> None:
    page = read(FORMATS["html"].render(drifted))
    start = page.text.index("figurebaselinetunedratio burst")
    burst, sustained, drain = (page.text.index(w, start) for w in ("burst", "sustained", "drain"))
    assert burst < sustained < drain
    assert "The tree at its end, and what was written into each level: tuned" in page.text
    assert "300MiB" in page.text


def test_markdown_tells_the_same(drifted: StudyAnalysis) -> None:
    found = FORMATS["md"].render(drifted)
    for told in (
        "- The machine changed once: 0.50 of before from trial 8 on; 1 trial was run again (7).\n",
        "- It stopped as soon as the interval excluded no difference.\n",
        "### Burst, sustained and what they cost\n",
        "\n\n| figure | baseline | tuned | ratio |\n",
        "\n| burst |",
        "and what was written into each level: tuned:\n\n| level | files |",
        "All these intervals hold together at 95 %",
        "is from the search; the gain is in the verdict",
        "| memory limited | by a control group (2 runs) |",
    ):
        assert told in found, told
    tables = [line for line in found.splitlines() if line.startswith("|")]
    assert all(line.endswith("|") for line in tables)


def test_json_and_csv_have_new_keys_beside_the_old(drifted: StudyAnalysis) -> None:
    document = json.loads(FORMATS["json"].render(drifted))
    assert {"anchors", "noise", "proof", "performance", "levels", "conditions"} <= set(document)
    assert document["format_version"] == 1
    assert (document["crash_test"], document["power_test"]) == (None, None)
    assert document["anchors"][0]["changes"][0]["run_again"] == [7]
    trial = document["history"]["trials"][7]
    assert [run["counts"] for run in trial["runs"]] == [False, True]
    lines = FORMATS["csv"].render(drifted).splitlines()
    columns = lines[0].split(",")
    assert columns[:5] == ["measurement", "role", "trial", "pair", "outcome"]
    rows = [dict(zip(columns, line.split(","), strict=True)) for line in lines[1:]]
    assert [row["repeat"] for row in rows if row["trial"] == "7"] == ["0", "1"]
    assert (rows[-1]["paired_by"], rows[-1]["memory_limited_by"]) == ("slices", "cgroup")


@pytest.mark.parametrize(
    ("series", "line"),
    [
        ({"points": 7}, "no change seen in 7 anchors (fewer than 8 cannot show one)"),
        ({"points": 12}, "no change seen in 12 anchors"),
        ({"points": 3, "segments": 0}, "nothing can be judged by 3 anchors, as a value is not"),
        (
            {"points": 12, "changes": (CHANGE,)},
            "the machine changed once: 0.81 of before from trial 17 on; 1 trial was run again (16)",
        ),
        (
            {
                "points": 30,
                "changes": (
                    replace(CHANGE, run_again=(14, 15, 16)),
                    replace(CHANGE, ratio=1.2, first_trial=None, run_again=(), left=(20, 21)),
                ),
            },
            "the machine changed 2 times: 0.81 of before from trial 17 on, 1.20 of before after "
            "trial 15; 3 trials were run again (14, 15, 16), 2 not yet",
        ),
        (
            {"points": 9, "changes": (MachineChange(1.0, 2.0, 0.9, None, None),)},
            "the machine changed once: 0.90 of before ahead of the first trial; no trial was",
        ),
    ],
)
def test_the_line_of_a_series(series: Mapping[str, Any], line: str) -> None:
    point = AnchorPoint("anchor", 1.0, 0, 100.0, 0)
    changes = series.get("changes", ())
    made = AnchorSeries(
        "throughput_ops_s",
        "throughput_ops_s",
        8,
        (point,) * series["points"],
        (SEGMENT,) * series.get("segments", 1 + len(changes)),
        changes,
    )
    assert drift_line(made).startswith(line)


@pytest.mark.parametrize(
    ("row", "told"),
    [
        (
            NoiseRow(NoiseSource.CALIBRATION, True, "x", 3, 0.0321, 0.019, 0.091, None, 30, 0.027),
            ("calibration: the baseline against itself, 3 pairs", "3.2 % (1.9 % to 9.1 %)",
             "2.7 % in 30 pairs"),
        ),
        (
            NoiseRow(NoiseSource.SEARCH, False, "x", None, 0.00001),
            ("search: anchors and repeated trials", "< 0.01 %", ""),
        ),
        (
            NoiseRow(NoiseSource.PROOF, True, "x", 1, 1.5, 1.0, 20.0, pairs=1),
            ("proof, 1 pair", "150 % (100 % to 2,000 %)", "not known, in 1 pair"),
        ),
    ],
)  # fmt: skip
def test_the_words_of_noise(row: NoiseRow, told: tuple[str, str, str]) -> None:
    words = (noise_source, noise_figure, provable)
    assert tuple(say(row) for say in words) == told


@pytest.mark.parametrize(
    ("ended", "why", "line"),
    [
        (Ended.EQUIVALENT, "", "It stopped as soon as the interval lay within what is too small to "
         "matter (5 %)."),
        (Ended.PAIRS, "x", "It stopped after all 30 pairs that were planned."),
        (Ended.OTHER, "the time ended", "It stopped because the time ended."),
        (Ended.OTHER, "", "It stopped before anything was clear."),
    ],
)  # fmt: skip
def test_why_a_proof_stopped_in_words(ended: Ended, why: str, line: str) -> None:
    verdict = replace(PROVEN, why=why, what_it_takes="about 40 pairs", notes=())
    lines = proof_lines(verdict, ProofFacts(ended, 30, 0.05, None))
    assert lines[1:] == [line, "What it takes: about 40 pairs."]
    old = replace(PROVEN, method="", notes=())
    assert proof_lines(old, ProofFacts(None, 30, None, None)) == []


def test_a_candidate_that_failed_ended_the_proof_of_a_gain_that_was_clear(tmp_path: Path) -> None:
    """It was said to have stopped as soon as the interval excluded no difference."""
    sample = SampleStudy(tmp_path)
    good = replace(sample.measured(BEST, 1.4), paired_by="slices")
    crashed = replace(sample.failed(Outcome.CRASHED, "signal 11", BEST), paired_by="slices")
    for pair, run in enumerate((good, crashed)):
        sample.add(Role.PROOF_BASELINE, good, sample.baseline, pair=pair)
        sample.add(Role.PROOF_CANDIDATE, run, Config({**sample.spec.fixed, **BEST}), pair=pair)
    why = "a run of the candidate ended crashed (signal 11)"
    verdict = replace(PROVEN, outcome=VerdictOutcome.NOT_PROVEN, why=why)
    sample.folder.measurements.set_verdict(verdict)
    found = analysed(sample)
    sample.close()
    assert found.proof is not None
    assert found.proof.ended is Ended.OTHER
    assert f"It stopped because {why}." in proof_lines(verdict, found.proof)


def test_the_correction_is_said_only_where_there_is_one() -> None:
    def said(**changes: object) -> str:
        *_, last = price_blocks(replace(PROVEN, **changes))  # type: ignore[arg-type]
        assert isinstance(last, Paragraph)
        return last.text

    least = pairs_at_least(0.975)
    few = f"That needs {least} pairs, so that these {least - 1} give none."
    assert said(pairs=least - 1).endswith(few)
    assert said(pairs=least).endswith("finds one that differs by chance.")
    alone = "Each interval holds at 95 % by itself, not all of them together."
    assert said(confidence_each=None) == alone


def test_the_plot_of_every_metric_has_every_metric() -> None:
    """The fifteenth and those after it were left out without a word."""
    others = tuple(MetricRatio(f"own_{number}", "", 1.1, 1.0, 1.2) for number in range(20))
    (chart,) = forest_chart(replace(PROVEN, others=others))
    assert len(chart.y.names) == 21


def test_a_guard_that_nothing_observed_is_not_said_to_hold() -> None:
    """The price was `the dearest of 2 guards, and all hold`: a replay tells of no space."""
    held = GuardResult("write_amplification <= 1.5 * baseline", 9, 0, 1.2, 1.1, 1.3)
    unseen = GuardResult("space_amplification <= 1.25 * baseline", 0, 0)
    said = price_answer(replace(PROVEN, guards=(unseen, held)))
    assert (said.tone, said.figure) == ("neutral", "1.20\u00d7")
    assert said.lead.endswith("the dearest of 2 guards; 1 not observed, the others hold")
    assert price_answer(replace(PROVEN, guards=(unseen,))).figure == "Not observed"


def test_how_pairs_were_run() -> None:
    row = PairRow(0, 1.0, 2.0, 2.0, Outcome.OK, Outcome.OK)
    whole = replace(row, method="whole")
    said = pairs_note([whole, replace(row, method="slices", counts=False)], 2)
    assert "drawn by lot: one whole run follows the other. 1 pair by another method" in said


@pytest.mark.parametrize(
    ("runs", "value", "told"),
    [
        ([(100.0, True)], 100.0, ""),
        ([(50.0, True)], 100.0, "50 ops/s"),
        ([(50.0, False), (90.0, True), (None, False)], 100.0, "(50 ops/s) · 90 ops/s"),
        ([(None, False)], None, ""),
    ],
)
def test_the_runs_of_a_trial_in_words(
    runs: list[tuple[float | None, bool]], value: float | None, told: str
) -> None:
    made = tuple(TrialRun(measured, measured, counts) for measured, counts in runs)
    row = TrialRow(
        0, Outcome.OK, value, value, None, False, False, 1.0, {}, "", None, (), None, made, None,
        False,
    )  # fmt: skip
    assert runs_as_measured(row, "throughput_ops_s") == told


def test_conditions_in_words() -> None:
    found = Conditions(
        page_cache={"a": "cold", "b": "direct"},
        cold_runs=3,
        cached_share_max=0.002,
        memory_limited_by={"watch": 2, "cgroup": 1},
        steal_runs=3,
        steal_runs_disturbed=1,
        steal_share_median=0.004,
        steal_share_max=0.31,
    )
    assert condition_facts(found) == [
        ("page cache", "a: cold: dropped before each measure phase"),
        ("page cache", "b: direct: the engine reads and writes past it"),
        ("still cached at a cold start", "at most < 1 % of the database"),
        ("memory limited", "by watching it (2 runs), by a control group (1 run)"),
        ("processor time taken by the host", "< 1 % of a run, at most 31 %"),
    ]


def test_the_crash_and_power_tests_in_words(drifted: StudyAnalysis) -> None:
    passed = CrashTest(CrashOutcome.PASSED, Durability.WAL, 1200, 1200)
    failed = replace(passed, outcome=CrashOutcome.FAILED, keys_lost=3, why="lost 3 of 1,200")
    assert "Crash test" not in read(FORMATS["html"].render(drifted)).text
    tested = changed(drifted, crash_test=failed)
    told = "Crash test: failed: lost 3 of 1,200 (1,200 acknowledged writes under durability wal"
    assert told in read(FORMATS["html"].render(tested)).text
    assert f"- {told}" in FORMATS["md"].render(tested)
    power = PowerTest(
        CrashOutcome.PASSED, "rocksdb", Durability.WAL, 40, 25, 900, 1000, lost_share_max=0.5
    )
    told = (
        "Power loss: passed (40 computed states after a power loss, 25 of them such as ext4 "
        "leaves; durability wal). Up to 50 % of the acknowledged writes were lost"
    )
    assert told in read(FORMATS["html"].render(changed(drifted, power_test=power))).text
    assert f"- {told}" in FORMATS["md"].render(changed(drifted, power_test=power))
