"""The leaderboard in every form, of results that are made up."""

from __future__ import annotations

import io
import json
import sys
from pathlib import Path

import pytest
from contest_parts import ODD, board
from rich.console import Console

from lsmtune.errors import InputError
from lsmtune.experiment.contest import Entry, disqualified_entries, load_rules
from lsmtune.experiment.standings import Leaderboard
from lsmtune.model.config import Config, EngineIdentity
from lsmtune.report.chart import Chart
from lsmtune.report.leaderboard import (
    FORMATS,
    board_document,
    check_board,
    disqualified_line,
    document,
)
from lsmtune.report.render import to_json
from lsmtune.report.terminal import to_terminal

sys.path.insert(0, str(Path(__file__).parent.parent / "report"))

from page import read


def terminal(found: Leaderboard) -> str:
    output = io.StringIO()
    Console(file=output, width=200).print(to_terminal(board_document(found)))
    return " ".join(output.getvalue().split())


def test_the_terminal_says_everything() -> None:
    said = terminal(board())
    for text in (
        f"{ODD} is first",
        "leveldb 1.22 · small · throughput, higher is better · 5 rounds",
        f"1 {ODD} 2 1 1",
        "2 to 3 slow 4 to 6 2 to 3 2 to 3",
        "With 95 % confidence no separation here is wrong",
        "outlier: put: round 4 of slow, 15",
        "Without it the team is 3 by mean, not 2. Total ranks by mean without it: slow 2 to 3.",
        "disqualified: huge: memory (write buffer and block cache together): "
        "write_buffer_size + cache_size <= 1GiB, with cache_size = 8MiB, write_buffer_size = 1GiB",
        "failed, not ranked: broken: round 1: crashed: it fell over",
    ):
        assert text in said, said


def test_one_round_says_that_it_proves_nothing() -> None:
    found = board(rounds=1)
    assert "One round proves nothing" in terminal(found)
    for render in FORMATS.values():
        assert render(found)


@pytest.mark.parametrize("ranked", [True, False])
def test_the_page_is_whole_and_needs_nothing(ranked: bool) -> None:
    page = read(FORMATS[".html"](board(ranked=ranked)))
    assert page.unbalanced == []
    assert len(page.scripts) == 1
    assert len(page.plots) == (2 if ranked else 0)
    assert [link for link in page.links if not link.startswith(("#", "data:"))] == []
    assert {link[1:] for link in page.links if link.startswith("#")} <= set(page.ids)
    assert "None" not in page.text
    assert "huge" in page.text
    assert ("No team could be ranked" in page.text) is not ranked
    if ranked:
        assert f"{ODD} is first" in page.text
        assert "b" not in page.tags[: page.tags.index("section")]
        assert {"leaderboard", "by-mean", "outliers", "phase-1", "phase-2", "failed"} <= set(
            page.ids
        )


def test_markdown_has_tables_that_hold_any_name() -> None:
    text = FORMATS[".md"](board())
    line = next(line for line in text.splitlines() if line.startswith("| 1 |"))
    assert line == "| 1 | &lt;b&gt;a\\|b&lt;/b&gt; | 2 | 1 | 1 |"
    for title in ("## Leaderboard", "## By mean", "## Outliers", "## Rules", "## Warnings"):
        assert title in text


def test_json_has_everything_and_no_unknown_number() -> None:
    found = json.loads(to_json(document(board())))
    assert found["format_version"] == 1
    assert found["metric"] == "throughput_ops_s"
    assert found["engine"]["version"] == "1.22"
    assert found["standings"]["totals"][0]["team"] == ODD
    assert found["disqualified"][0]["broken"][0]["figures"]["write_buffer_size"] == 2**30
    assert found["failed"] == [{"team": "broken", "round": 1, "why": "crashed: it fell over"}]
    assert found["standings"]["outliers"][0]["round"] == 4
    assert json.loads(to_json(document(board(ranked=False))))["standings"] is None


def test_the_plot_of_a_phase_has_every_round_mean_and_interval() -> None:
    found = board()
    assert found.standings is not None
    rows = {row.team: row for row in found.standings.phases[0].rows}
    (chart, _) = [
        block
        for section in board_document(found).sections
        for block in section.blocks
        if isinstance(block, Chart)
    ]
    assert list(chart.y.names) == list(rows)
    series = {each.name: each for each in chart.series}
    assert len(series["round"].points) + len(series["outlier"].points) == 5 * len(rows)
    (outlier,) = series["outlier"].points
    assert (outlier.y, outlier.hover) == ("slow", "round 4: 150 ops/s")
    assert {point.y: point.x for point in series["mean"].points} == {
        team: row.mean for team, row in rows.items()
    }
    for point in series["interval of the mean"].points:
        row = rows[str(point.y)]
        assert (point.low, point.high) == (row.mean_low, row.mean_high)


def test_a_count_that_breaks_a_rule_is_not_told_as_a_size() -> None:
    """It was `num_levels = 7B`, and a multiplier of `10B`."""
    engine = EngineIdentity("rocksdb", "10.2.1")
    entry = Entry("wide", "wide", Config({"target_file_size_multiplier": 10}))
    (wide,) = disqualified_entries([entry], load_rules("rocksdb"), engine)
    figures = "num_levels = 7, target_file_size_base = 64MiB, target_file_size_multiplier = 10"
    assert disqualified_line(wide, "rocksdb").endswith(f", with {figures}")


def test_files_by_their_suffix(tmp_path: Path) -> None:
    for suffix, told in FORMATS.items():
        check_board(tmp_path / f"b{suffix}", "--output")
        assert told(board())
    with pytest.raises(InputError, match=r"--output: found 'b.htm'.*did you mean .html\?"):
        check_board(Path("b.htm"), "--output")
