"""The sections on importance, the front, pruned trials and the study's statistics."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from page import read
from sample_study import STUDY, SampleStudy, analysed, changed, fill, speed_of

from lsmtune.experiment.store import Role
from lsmtune.model.config import Config
from lsmtune.model.measurement import Outcome
from lsmtune.model.verdict import MetricRatio, Verdict, VerdictOutcome
from lsmtune.report import words as text
from lsmtune.report.analysis import StudyAnalysis
from lsmtune.report.chart import BOTTOM, Chart, Form, Series
from lsmtune.report.figures import (
    front_chart,
    history_chart,
    importance_chart,
    parallel_chart,
    series_chart,
    slice_chart,
)
from lsmtune.report.study import FORMATS
from lsmtune.report.study_search import rung_name
from lsmtune.report.tables import GAIN, Arm, Censored

PRUNED = STUDY.replace(
    "budget:",
    "  max_open_files: {type: int, low: 100, high: 10000, special: [-1]}\n"
    "  bottommost_compression: {type: categorical, choices: [kZSTD, kNoCompression],"
    " when: {compression: kNoCompression}}\nbudget:",
) + ("pruner: {name: median, rungs: {every: 1s}}\nconstraints: [rss_bytes_max <= 300MiB]\n")
SEVERAL = STUDY + (
    "objectives: [{metric: sustained_throughput_ops_s}, {metric: rss_bytes_max}]\n"
    "sampler: {name: random}\n"
)


def pruned_study(directory: Path) -> StudyAnalysis:
    """Trials of every kind: whole, pruned, failed, and one that breaks a constraint."""
    sample = SampleStudy(directory, PRUNED)
    sample.add_baseline()
    for number in range(30):
        options = sample.draw()
        options["max_open_files"] = -1 if number % 4 == 0 else 100 + 300 * number
        if options["compression"] != "kNoCompression":
            del options["bottommost_compression"]
        run = sample.measured(options, speed_of(options))
        if number % 5 == 3:
            run = sample.pruned(options, 1.0 + number % 3, 100_000.0)
        elif number == 11:
            run = sample.failed(Outcome.CRASHED, "signal 11", options)
        elif number == 12:
            run = replace(run, phases=(replace(run.phases[0], rss_bytes_max=400 << 20),))
        sample.add_trial(number, options, run)
    found = analysed(sample)
    sample.close()
    return found


def front_study(directory: Path) -> StudyAnalysis:
    sample = SampleStudy(directory, SEVERAL)
    sample.add_baseline()
    for number in range(25):
        options = sample.draw()
        run = sample.measured(options, speed_of(options))
        memory = int(str(options["write_buffer_size"])) * 3 + (60 << 20)
        run = replace(run, phases=(replace(run.phases[0], rss_bytes_max=memory),))
        sample.add_trial(number, options, run)
    found = analysed(sample)
    sample.close()
    return changed(found, verdict=several_verdict())


def several_verdict() -> Verdict:
    others = (
        MetricRatio("sustained_throughput_ops_s", "maximize", 1.5, 1.4, 1.6),
        MetricRatio("rss_bytes_max", "minimize", 0.8, 0.75, 0.85),
    )
    return Verdict(
        VerdictOutcome.BETTER,
        "sustained_throughput_ops_s^0.5 * rss_bytes_max^-0.5",
        "maximize",
        0.95,
        pairs=5,
        ratio=1.37,
        ratio_low=1.3,
        ratio_high=1.4,
        others=others,
    )


def series_of(chart: Chart) -> dict[str, Series]:
    """The series that a legend names."""
    return {each.name: each for each in chart.series if each.name}


@pytest.fixture(scope="module")
def pruned(tmp_path_factory: pytest.TempPathFactory) -> StudyAnalysis:
    return pruned_study(tmp_path_factory.mktemp("pruned"))


@pytest.fixture(scope="module")
def several(tmp_path_factory: pytest.TempPathFactory) -> StudyAnalysis:
    return front_study(tmp_path_factory.mktemp("several"))


def test_pruned_trials_are_shown_as_bounds(pruned: StudyAnalysis) -> None:
    page = read(FORMATS["html"].render(pruned))
    assert page.unbalanced == []
    series = series_of(*history_chart(pruned))
    stopped = series["pruned: the value when stopped"]
    assert (stopped.form, stopped.tone) == (Form.DIAMOND, "muted")
    base = pruned.history.baseline_value
    assert base is not None
    assert [point.y for point in stopped.points] == [pytest.approx(100_000.0 / base)] * 6
    assert stopped.points[0].hover.startswith("trial 3: pruned after 1")
    assert [(point.x, point.y) for point in series["failed"].points] == [(11, BOTTOM)]
    # Hollow, because it breaks a constraint; it has a value all the same.
    (hollow,) = series["breaks a constraint"].points
    assert (hollow.x, series["breaks a constraint"].form) == (12, Form.RING)
    assert "breaks rss_bytes_max <= 300MiB" in hollow.hover
    assert "pruned after 1s" in page.text
    assert "breaks rss_bytes_max <= 300MiB" in page.text


def test_what_the_proof_came_to_is_not_called_proved_where_it_is_not(
    pruned: StudyAnalysis,
) -> None:
    """The plot of trials said `proved: 1.37` of an interval from 0.9 to 2."""
    open_end = replace(
        several_verdict(), outcome=VerdictOutcome.NOT_PROVEN, ratio_low=0.9, ratio_high=2.0
    )
    (chart,) = history_chart(changed(pruned, verdict=open_end))
    assert [rule.text for rule in chart.rules] == ["baseline", f"in the proof: {text.ratio(1.37)}"]


def test_statistics_are_in_every_text(pruned: StudyAnalysis) -> None:
    page = read(FORMATS["html"].render(pruned))
    for told in ("finished without pruning24", "pruned6", "failed1", "rung 1, after 1s"):
        assert told in page.text
    lines = FORMATS["md"].render(pruned).splitlines()
    assert "| finished without pruning | 24 |" in lines
    assert any(line.startswith("| rung 1, after 1s | ") for line in lines)
    document = json.loads(FORMATS["json"].render(pruned))["statistics"]
    assert (document["finished"], document["pruned"], document["without_pruning"]) == (30, 6, 24)
    assert document["broken"] == {"rss_bytes_max <= 300MiB": 1}


def test_slices_put_specials_and_inactive_trials_beside_the_range(pruned: StudyAnalysis) -> None:
    charts = {p.name: slice_chart(pruned, p) for p in pruned.parameters}
    (files,) = charts["max_open_files"]
    places = [point.x for series in files.series for point in series.points]
    assert list(files.x.aside) == ["-1"]
    assert (places.count("-1"), sum(isinstance(place, int) for place in places)) == (8, 22)
    (bottommost,), (plain,) = charts["bottommost_compression"], charts["write_buffer_size"]
    assert "inactive" in bottommost.x.names
    assert (list(plain.x.aside), plain.x.log) == ([], True)
    assert [tick for _, tick in plain.x.ticks] == ["2MiB", "8MiB", "32MiB"]
    assert {series.form for series in plain.series} == {
        *(Form.DOT, Form.STAR, Form.DIAMOND, Form.CROSS)
    }


def test_all_options_at_once_have_a_line_per_trial_with_a_value(pruned: StudyAnalysis) -> None:
    (chart,) = parallel_chart(pruned)
    series = series_of(chart)
    assert "block_size" in chart.x.names  # short where that is clear
    lines = {
        name: sum(point.x == "write_buffer_size" for point in each.points)
        for name, each in series.items()
    }
    assert sum(lines.values()) == 23
    assert lines["the candidate"] == 1
    shares = [point.y for each in series.values() for point in each.points]
    assert all(0 <= y <= 1 for y in shares if isinstance(y, float))
    assert None in shares  # between lines, and at -1 of max_open_files


def test_importance_is_shown_with_its_interval(pruned: StudyAnalysis) -> None:
    page = read(FORMATS["html"].render(pruned))
    assert "PED-ANOVA: how much each parameter tells the best trials from all trials" in page.text
    assert "and 7 without a value" in page.text
    (chart,) = importance_chart(pruned.importances[0])
    assert chart.x.title == "importance"  # of all parameters' for PED-ANOVA alone
    bars = [each for each in chart.series if each.form is Form.BAR]
    rows = pruned.importances[0].rows
    assert len(bars) == len(rows) == len(pruned.parameters) == len(chart.y.names)
    for row, bar in zip(rows, bars, strict=True):
        (point,) = bar.points
        assert (point.y, point.x) == (row.parameter, row.importance)
        assert (point.low, point.high) == (row.importance_low, row.importance_high)
        assert bar.tone == ("tuned" if row.above_chance else "baseline")
    assert "## Parameter importance for sustained throughput" in FORMATS["md"].render(pruned)


def test_too_few_trials_are_said_and_drawn_nowhere(tmp_path: Path) -> None:
    sample = SampleStudy(tmp_path)
    fill(sample, trials=6)
    found = analysed(sample)
    without = analysed(sample, None)
    sample.close()
    page = read(FORMATS["html"].render(found))
    assert "No figures: it needs at least 20 trials with a value, and there are 6" in page.text
    assert "Importance of each parameter" not in page.plots
    assert "Importance was not assessed" in read(FORMATS["html"].render(without)).text
    assert json.loads(FORMATS["json"].render(without))["importances"] == []


def test_a_front_is_drawn_and_listed(several: StudyAnalysis) -> None:
    page = read(FORMATS["html"].render(several))
    assert page.unbalanced == []
    assert several.front is not None
    series = series_of(*front_chart(several.front))
    count = len(several.front.rows)
    (picked,) = series["picked"].points
    assert 1 + len(series["front"].points) == count
    assert len(series["baseline"].points) == 1
    assert "write_buffer_size=" in picked.hover
    assert "weighted objectives" in page.text
    assert "peak resident memory" in page.text
    assert "0.80\u00d7" in page.text
    assert "# Front" in FORMATS["md"].render(several)
    assert "Figures of 2 other metrics:" in FORMATS["md"].render(several)
    document = json.loads(FORMATS["json"].render(several))
    assert len(document["front"]["rows"]) == count
    assert document["metric"] == "gain over the baseline"


def test_a_trial_that_ended_well_did_not_fail_where_an_objective_is_zero(tmp_path: Path) -> None:
    sample = SampleStudy(tmp_path, SEVERAL.replace("metric: rss_bytes_max", "metric: stall_s"))
    sample.add_baseline()
    options = sample.draw()
    for number, stall_s in enumerate((1.0, 0.0)):
        run = sample.measured(options)
        run = replace(run, phases=(replace(run.phases[0], stall_s=stall_s),))
        sample.add_trial(number, options, run)
    found = analysed(sample)
    sample.close()
    drawn = series_of(*history_chart(found))
    assert [point.x for point in drawn["without a value"].points] == [1]
    assert "failed" not in drawn
    (chart,) = slice_chart(found, found.parameters[0])
    assert Form.CROSS not in {series.form for series in chart.series}


def test_one_objective_has_no_front(pruned: StudyAnalysis) -> None:
    page = read(FORMATS["html"].render(pruned))
    assert not any("front" in label for label in page.plots)
    assert json.loads(FORMATS["json"].render(pruned))["front"] is None
    assert "# Front" not in FORMATS["md"].render(pruned)


def test_throughput_over_time_is_drawn_for_each_workload_by_itself(tmp_path: Path) -> None:
    """Runs under all workloads had one median together, which is a rate of none of them."""
    sample = SampleStudy(
        tmp_path,
        STUDY.replace(
            "workload: {name: fillrandom, num: 1e6, key_bytes: 20, value_bytes: 100}",
            "workloads: [{name: fillrandom, num: 1e6}, {name: fillseq, num: 1e6}]\nguards: []",
        ),
    )
    options = sample.draw()
    for workload, speed in enumerate((1.0, 0.1)):
        run = sample.measured({}, speed)
        sample.add(Role.BASELINE, run, sample.baseline, workload=workload)
        config = Config(options, "study.yaml#0")
        sample.add(Role.TRIAL, sample.measured(options, speed), config, trial=0, workload=workload)
    found = analysed(sample)
    sample.close()
    for workload, speed in (("fillrandom", 1.0), ("fillseq", 0.1)):
        lines = series_of(*series_chart(found, workload))
        assert list(lines) == [
            f"{arm}: median, and the middle 80 % of 1 run" for arm in ("baseline", "tuned")
        ]
        rates = [point.y for line in lines.values() for point in line.points]
        assert all(isinstance(y, float) and 0.5 < y / (320_000.0 * speed) < 2.0 for y in rates)
    plots = read(FORMATS["html"].render(found)).plots
    assert {label for label in plots if "over time of both" in label} == {
        "Throughput over time of both under fillrandom",
        "Throughput over time of both under fillseq",
    }


def test_a_rate_over_time_stands_where_it_was_measured(pruned: StudyAnalysis) -> None:
    """Each stood a step too late, and the last two were one."""
    points = [{"elapsed_s": float(end), "throughput_ops_s": 10.0 * end} for end in range(1, 61)]
    row = {"arm": Arm.BASELINE, "measurement": 1, "points": points, "workload": ""}
    (chart,) = series_chart(changed(pruned, series=[row]))
    (line,) = series_of(chart).values()
    assert [(p.x, p.y) for p in line.points] == [(end - 0.5, 10.0 * end) for end in range(1, 61)]


def test_the_table_of_runs_says_workload_rung_and_what_a_program_reported(tmp_path: Path) -> None:
    sample = SampleStudy(tmp_path)
    options = sample.draw()
    run = replace(sample.measured(options), reported={"own_metric": 4.5})
    sample.add_rung(0, options, run, 1)
    sample.add(Role.BASELINE, sample.measured({}), sample.baseline)
    lines = FORMATS["csv"].render(analysed(sample)).splitlines()
    sample.close()
    columns = lines[0].split(",")
    row = dict(zip(columns, lines[1].split(","), strict=True))
    assert (row["role"], row["rung"], row["reported.own_metric"]) == ("rung", "1", "4.5")
    assert dict(zip(columns, lines[2].split(","), strict=True))["reported.own_metric"] == ""


@pytest.mark.parametrize(
    ("metric", "label"),
    [
        ("readrandom.latency_us_p99", "p99 latency of readrandom"),
        ("a^0.5 * b^-0.5", "weighted objectives"),
        (GAIN, "gain over the baseline"),
        ("my.own", "my.own"),
    ],
)
def test_labels_of_objectives(metric: str, label: str) -> None:
    assert text.metric_label(metric) == label


def test_a_gain_and_a_share_are_told() -> None:
    assert text.quantity(GAIN, 1.5) == "1.50\u00d7"
    assert text.quantity("readrandom.latency_us_p99", 1500.0) == "1.5 ms"
    assert [text.share(x) for x in (0.0, 0.001, 0.123, 1.0)] == ["0 %", "< 1 %", "12 %", "100 %"]


def test_where_a_pruned_trial_was_stopped_is_told() -> None:
    at = [Censored(2, reached_s=2.0), Censored(0, reached_keys=5000), Censored(7), None]
    assert [text.reached(one) for one in at] == ["after 2s", "at 5,000 keys", "at step 7", ""]
    assert rung_name({"rung": 7, "at_s": None, "at_keys": None}) == "step 7"
    assert rung_name({"rung": 0, "at_s": None, "at_keys": 5000}) == "rung 0, at 5,000 keys"
