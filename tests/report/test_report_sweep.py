"""The files of a sweep: MB/s never without ops/s, all escaped, one page without a network."""

from __future__ import annotations

import csv
import io
import json
import sys
from dataclasses import replace
from pathlib import Path
from statistics import geometric_mean

import pytest
from page import read

sys.path.insert(0, str(Path(__file__).parent.parent / "experiment"))

from sweep_parts import axis, cells_of, failed, runs_of, sweep_of

from lsmtune.errors import InputError
from lsmtune.experiment.sweep import AxisKind
from lsmtune.experiment.sweep_tables import SweepResult, summarise
from lsmtune.report.chart import Chart, Form
from lsmtune.report.document import flat
from lsmtune.report.render import to_html, to_json, to_markdown
from lsmtune.report.sweep import (
    cells_csv,
    columns_of,
    document,
    how_to_read,
    ratio_columns_of,
    runs_csv,
    sweep_document,
    write_sweep,
)

SWEEP = sweep_of()
CELLS = cells_of(SWEEP)


def result(rounds: int = 3) -> SweepResult:
    return summarise(SWEEP, CELLS, runs_of(CELLS, rounds))


@pytest.mark.parametrize("drain_s", [0.5, 0.0, None])
def test_mb_s_stands_beside_ops_s_in_every_table(drain_s: float | None) -> None:
    found = summarise(SWEEP, CELLS, runs_of(CELLS, 3, drain_s=drain_s))
    for columns in (columns_of(found.tables[0]), ratio_columns_of(found.tables[0])):
        labels = [column.label for column in columns]
        assert any(label.startswith("MB/s") for label in labels)
        for label in labels:
            if label.startswith("MB/s"):
                assert label.replace("MB/s", "ops/s") in labels
    assert ("ops/s, burst" in labels) == (drain_s == 0.5)


def test_the_text_says_why_where_sizes_differ_and_only_there() -> None:
    assert any("never alone" in line for line in how_to_read(result()))
    assert "never alone" in to_markdown(sweep_document(result()))
    assert "never alone" in read(to_html(sweep_document(result()))).text
    sweep = sweep_of(axes=(axis("write_buffer_size", 1, 2, kind=AxisKind.OPTION),))
    cells = cells_of(sweep)
    assert not any("MB/s" in line for line in how_to_read(summarise(sweep, cells, [])))


def test_the_text_says_of_which_figures_the_mean_is_geometric() -> None:
    """It said so of all latencies and times: of the median and of the operations' time as well."""
    found = result()
    cell = found.tables[0].cells[4]
    runs = [row.metrics for row in found.rows if row.cell.name == cell.cell.name]

    def is_geometric(metric: str) -> bool:
        return cell.value(metric) == pytest.approx(geometric_mean(run[metric] for run in runs))

    (line,) = (line for line in how_to_read(found) if "geometric" in line)
    assert line.startswith("Rates, p99 latencies and times with drain are geometric means over the")
    assert is_geometric("throughput_ops_s")
    assert is_geometric("latency_us_p99")
    assert not is_geometric("elapsed_s")


def test_the_page_is_whole_and_needs_nothing_else() -> None:
    page = read(to_html(sweep_document(result())))
    assert page.unbalanced == []
    assert len(set(page.ids)) == len(page.ids)
    assert all(link.startswith(("#", "data:")) for link in page.links)
    assert [plot.split(" of ")[0] for plot in page.plots] == ["ops/s, sustained", "MB/s, sustained"]
    # The result comes first, and how to read it after it.
    assert page.ids.index("table-0") < page.ids.index("reading")
    for text in ("most operations per second, sustained", "Ratios to the first cell", "9 cells"):
        assert text in page.text
    assert all("src" not in attributes for attributes, _ in page.scripts)


def charts_of(found: SweepResult) -> list[Chart]:
    blocks = [block for section in sweep_document(found).sections for block in flat(section.blocks)]
    return [block for block in blocks if isinstance(block, Chart)]


def test_plots_have_a_line_per_value_of_the_other_axis() -> None:
    ops, mb = charts_of(result())
    lines = [series for series in ops.series if series.form is Form.LINE]
    assert [line.name for line in lines] == ["key_bytes=16", "key_bytes=32", "key_bytes=64"]
    assert list(ops.x.names) == [point.x for point in lines[0].points] == ["100", "200", "400"]
    cell = result().tables[0].cells[0]
    mean, point = cell.metrics["sustained_throughput_ops_s"], lines[0].points[0]
    assert (point.y, point.low, point.high) == (mean.mean, mean.low, mean.high)
    rates = next(series for series in mb.series if series.form is Form.LINE)
    assert rates.points[0].y == cell.value("sustained_throughput_mb_s")
    assert charts_of(summarise(SWEEP, CELLS, [])) == []


def test_what_failed_is_said_everywhere() -> None:
    runs = runs_of(CELLS, 2)
    runs[3] = failed(runs[3])
    found = summarise(SWEEP, CELLS, runs, ["a <b>warning</b>"])
    for text in (
        to_markdown(sweep_document(found)),
        read(to_html(sweep_document(found))).text,
        to_json(document(found)),
    ):
        assert "took too long" in text
        assert "1 of 18 runs did not end well" in text
    assert "<b>" not in to_html(sweep_document(found)).split("<main>")[1].split("</main>")[0]
    assert "<b>" not in to_markdown(sweep_document(found))
    assert next(row for row in csv.DictReader(io.StringIO(cells_csv(found))) if row["runs"] == "1")


def test_csv_has_a_line_per_cell_and_one_per_run() -> None:
    cells = list(csv.DictReader(io.StringIO(cells_csv(result()))))
    assert len(cells) == 9
    assert cells[0]["throughput_ops_s.ratio"] == ""
    expected = result().tables[0].cells[4]
    assert (cells[4]["key_bytes"], cells[4]["value_bytes"]) == ("32", "200")
    assert float(cells[4]["throughput_ops_s.mean"]) == expected.value("throughput_ops_s")
    assert float(cells[4]["throughput_ops_s.ratio_low"]) > 0
    runs = list(csv.DictReader(io.StringIO(runs_csv(result()))))
    assert len(runs) == 27
    assert {row["seed"] for row in runs} == {"1", "2", "3"}
    assert all(float(row["throughput_mb_s"]) > 0 for row in runs)


def test_json_has_stable_keys_and_no_numbers_that_are_none() -> None:
    told = json.loads(to_json(document(result())))
    assert told == document(result())
    assert told["axes"][0] == {
        "kind": "workload",
        "name": "key_bytes",
        "values": ["16", "32", "64"],
    }
    cell = told["tables"][0]["cells"][1]
    assert cell["values"] == {"key_bytes": "16", "value_bytes": "200"}
    assert set(cell["metrics"]["sustained_throughput_ops_s"]) == {"mean", "median", "low", "high"}
    assert set(cell["ratios"]["latency_us_p99"]) == {"ratio", "ratio_low", "ratio_high"}
    once = json.loads(to_json(document(result(1))))["tables"][0]["cells"][1]
    assert once["ratios"]["latency_us_p99"]["ratio_high"] is None
    assert once["metrics"]["throughput_ops_s"]["low"] is None


def test_files_are_written_whole_or_an_error_says_why_not(tmp_path: Path) -> None:
    files = write_sweep(result(), tmp_path / "result")
    assert [file.name for file in files] == [
        "sweep.html",
        "sweep.md",
        "sweep.csv",
        "sweep-runs.csv",
        "sweep.json",
    ]
    assert all(file.stat().st_size > 0 for file in files)
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError):
        write_sweep(replace(result(), name="x"), tmp_path / "file")
