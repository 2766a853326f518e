"""The sections on importance, the front, pruned trials and the study's statistics."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from page import figures_of, read
from sample_study import STUDY, SampleStudy, analysed, changed, fill, speed_of

from lsmtune.experiment.store import Role
from lsmtune.model.measurement import Outcome
from lsmtune.model.verdict import MetricRatio, Verdict, VerdictOutcome
from lsmtune.report import words as text
from lsmtune.report.analysis import StudyAnalysis
from lsmtune.report.figures import MARK_PRUNED
from lsmtune.report.sentences import rung_name
from lsmtune.report.study import FORMATS
from lsmtune.report.tables import Censored

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


@pytest.fixture(scope="module")
def pruned(tmp_path_factory: pytest.TempPathFactory) -> StudyAnalysis:
    return pruned_study(tmp_path_factory.mktemp("pruned"))


@pytest.fixture(scope="module")
def several(tmp_path_factory: pytest.TempPathFactory) -> StudyAnalysis:
    return front_study(tmp_path_factory.mktemp("several"))


def test_pruned_trials_are_shown_as_bounds(pruned: StudyAnalysis) -> None:
    page = read(FORMATS["html"](pruned))
    assert page.unbalanced == []
    traces = {trace["name"]: trace for trace in figures_of(page)["history"]["data"]}
    stopped = traces["pruned: the value when stopped"]
    assert stopped["marker"] == MARK_PRUNED
    assert set(stopped["y"]) == {100_000.0}
    assert stopped["text"][0].startswith("trial 3: pruned after 1")
    assert traces["failed"]["x"] == [11]
    # Hollow, because it breaks a constraint; it has a value all the same.
    place = traces["trial"]["x"].index(12)
    assert traces["trial"]["marker"]["symbol"][place] == "circle-open"
    assert "breaks rss_bytes_max &lt;= 300MiB" in traces["trial"]["text"][place]
    assert "pruned after 1s" in page.text
    assert "breaks rss_bytes_max <= 300MiB" in page.text


def test_statistics_are_in_every_text(pruned: StudyAnalysis) -> None:
    page = read(FORMATS["html"](pruned))
    for told in ("finished without pruning24", "pruned6", "failed1", "rung 1, after 1s"):
        assert told in page.text
    lines = FORMATS["md"](pruned).splitlines()
    assert "| finished without pruning | 24 |" in lines
    assert any(line.startswith("| rung 1, after 1s | ") for line in lines)
    document = json.loads(FORMATS["json"](pruned))["statistics"]
    assert (document["finished"], document["pruned"], document["without_pruning"]) == (30, 6, 24)
    assert document["broken"] == {"rss_bytes_max <= 300MiB": 1}


def test_slices_put_specials_and_inactive_trials_beside_the_range(pruned: StudyAnalysis) -> None:
    figures = figures_of(read(FORMATS["html"](pruned)))
    names = [plotted.parameter.name for plotted in pruned.slices]
    files = figures[f"slice-{names.index('max_open_files')}"]
    beside = [trace for trace in files["data"] if trace["xaxis"] == "x2"]
    assert {x for trace in beside for x in trace["x"]} == {"-1"}
    assert files["layout"]["xaxis"]["domain"][0] > files["layout"]["xaxis2"]["domain"][1]
    bottommost = figures[f"slice-{names.index('bottommost_compression')}"]
    assert "inactive" in bottommost["layout"]["xaxis2"]["categoryarray"]
    plain = figures[f"slice-{names.index('write_buffer_size')}"]
    assert "xaxis2" not in plain["layout"]
    assert {trace["marker"].get("symbol") == "diamond-open" for trace in plain["data"]} == {
        True,
        False,
    }


def test_importance_is_shown_with_its_interval(pruned: StudyAnalysis) -> None:
    page = read(FORMATS["html"](pruned))
    assert "PED-ANOVA: how much each parameter tells the best trials from all trials" in page.text
    assert "and 7 without a value" in page.text
    (bars,) = figures_of(page)["importance-0"]["data"]
    assert len(bars["y"]) == len(pruned.slices)
    for row, more, less in zip(
        pruned.importances[0].rows,
        bars["error_x"]["array"],
        bars["error_x"]["arrayminus"],
        strict=True,
    ):
        assert row.importance + more == pytest.approx(row.importance_high)
        assert row.importance - less == pytest.approx(row.importance_low)
    assert "## Parameter importance for sustained throughput" in FORMATS["md"](pruned)


def test_too_few_trials_are_said_and_drawn_nowhere(tmp_path: Path) -> None:
    sample = SampleStudy(tmp_path)
    fill(sample, trials=6)
    found = analysed(sample)
    without = analysed(sample, None)
    sample.close()
    page = read(FORMATS["html"](found))
    assert "No figures: it needs at least 20 trials with a value, and there are 6" in page.text
    assert "importance-0" not in figures_of(page)
    assert "Not assessed" in read(FORMATS["html"](without)).text
    assert json.loads(FORMATS["json"](without))["importances"] == []


def test_a_front_is_drawn_and_listed(several: StudyAnalysis) -> None:
    page = read(FORMATS["html"](several))
    assert page.unbalanced == []
    assert several.front is not None
    traces = {trace["name"]: trace for trace in figures_of(page)["front"]["data"]}
    count = len(several.front.rows)
    assert len(traces["picked"]["x"]) == 1
    assert len(traces["picked"]["x"] + traces.get("front", {"x": []})["x"]) == count
    assert len(traces["baseline"]["x"]) == 1
    assert "write_buffer_size=" in traces["picked"]["text"][0]
    assert "weighted objectives" in page.text
    assert "peak resident memory" in page.text
    assert "0.80\u00d7" in page.text
    assert "# Front" in FORMATS["md"](several)
    assert "## Each metric by itself" in FORMATS["md"](several)
    document = json.loads(FORMATS["json"](several))
    assert len(document["front"]["rows"]) == count
    assert document["metric"] == "gain"


def test_one_objective_has_no_front(pruned: StudyAnalysis) -> None:
    page = read(FORMATS["html"](pruned))
    assert "front" not in page.ids
    assert json.loads(FORMATS["json"](pruned))["front"] is None
    assert "# Front" not in FORMATS["md"](pruned)


def test_the_table_of_runs_says_workload_rung_and_what_a_program_reported(tmp_path: Path) -> None:
    sample = SampleStudy(tmp_path)
    options = sample.draw()
    run = replace(sample.measured(options), reported={"own_metric": 4.5})
    sample.add_rung(0, options, run, 1)
    sample.add(Role.BASELINE, sample.measured({}), sample.baseline)
    lines = FORMATS["csv"](analysed(sample)).splitlines()
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
        ("gain", "gain over the baseline"),
        ("my.own", "my.own"),
    ],
)
def test_labels_of_objectives(metric: str, label: str) -> None:
    assert text.metric_label(metric) == label


def test_a_gain_and_a_share_are_told() -> None:
    assert text.quantity("gain", 1.5) == "1.50\u00d7"
    assert text.quantity("readrandom.latency_us_p99", 1500.0) == "1.5 ms"
    assert [text.share(x) for x in (0.0, 0.001, 0.123, 1.0)] == ["0 %", "< 1 %", "12 %", "100 %"]


def test_where_a_pruned_trial_was_stopped_is_told() -> None:
    at = [Censored(2, reached_s=2.0), Censored(0, reached_keys=5000), Censored(7), None]
    assert [text.reached(one) for one in at] == ["after 2s", "at 5,000 keys", "at step 7", ""]
    assert rung_name({"rung": 7, "at_s": None, "at_keys": None}) == "step 7"
    assert rung_name({"rung": 0, "at_s": None, "at_keys": 5000}) == "rung 0, at 5,000 keys"
