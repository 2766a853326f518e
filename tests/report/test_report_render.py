"""Every form of a Document takes any text literally, wherever it stands."""

from __future__ import annotations

import io
import json
import math

import pytest
from page import read
from rich.console import Console

from lsmtune.report.document import (
    Answer,
    Beside,
    Block,
    Cell,
    Column,
    Document,
    Facts,
    Files,
    Heading,
    IntervalBar,
    Mark,
    Notice,
    Notices,
    Paragraph,
    Plot,
    Section,
    Strip,
    Strips,
    Table,
    headed,
    plot_blocks,
    words,
)
from lsmtune.report.render import plain, to_csv, to_html, to_json, to_markdown
from lsmtune.report.terminal import to_terminal

EVIL = "</script><script>alert(1)</script><img src=x onerror='a'>\"|[red]_*`"


def document(text: str, *, scripts: bool = True) -> Document:
    """A Document with `text` wherever there is text, in every kind of block."""
    columns = (*words(text), Column(text, str, style="clip"), Column("hidden", terminal=False))
    rows = [(text, 1.5, 2), (text, Cell(text, math.nan, "fail", (text,)), None)]
    bar = IntervalBar(10.0, 40.0, 60.0, 50.0, text, text)
    strip = Strip(text, (Mark(50.0, 1, is_outlier=True),), 50.0, 40.0, 60.0)
    plot = [Plot("one", text, {"data": [{"y": [1]}], "layout": {}})] if scripts else []
    blocks: list[Block] = [
        Answer(text, text, text, bar),
        Paragraph(text, "detail", code=text),
        Heading(text),
        Notices([Notice(text, text, "danger"), Notice(text, label=text)]),
        Facts([(text, text), ("path", text)], frozenset({"path"})),
        Files([text], text),
        Strips([strip], text),
        Table(columns, rows, text, {0: "best"}, sortable=scripts),
        Table(columns, rows, text, fold=text, header=False),
        Beside([[Paragraph(text, "quiet"), *plot], [Heading(text)]], "pair"),
    ]
    sections = [
        Section("first", text, blocks, text, tone="good", top=True),
        Section("second", text, headed(Table(columns, rows, text)), omit=("markdown", "terminal")),
    ]
    return Document(text, text, sections, text, text, scripts)


@pytest.mark.parametrize("scripts", [True, False])
def test_a_page_takes_any_text_literally(scripts: bool) -> None:
    page = read(to_html(document(EVIL, scripts=scripts)))
    assert page.unbalanced == []
    assert "img" not in page.tags
    assert len(page.scripts) == (3 if scripts else 0)
    assert page.text.count(EVIL) > 20
    assert len(page.ids) == len(set(page.ids))
    assert {link[1:] for link in page.links if link.startswith("#")} <= set(page.ids)


def test_markdown_takes_any_text_literally() -> None:
    text = to_markdown(document(EVIL))
    assert "<" not in text
    assert "&lt;img src=x onerror='a'&gt;\"\\|\\[red\\]\\_\\*\\`" in text
    tables = [line.replace("\\|", "") for line in text.splitlines() if line.startswith("|")]
    assert {line.count("|") for line in tables} == {3, 4}
    assert text.count("\n## ") == 1  # the section that is left out has no heading


def test_a_terminal_takes_any_text_literally_and_leaves_columns_out() -> None:
    output = io.StringIO()
    Console(file=output, width=4000).print(to_terminal(document(EVIL)))
    said = output.getvalue()
    assert said.count("[red]_*`") > 15
    assert "hidden" not in said


def test_a_table_without_rows_and_a_plot_without_data_leave_nothing() -> None:
    assert headed(Table(words("a"), [], "title")) == []
    assert plot_blocks("name", "label", None) == []


def test_values_have_one_form_in_json_and_csv() -> None:
    assert json.loads(to_json({"a": math.inf, "b": [1, None, math.nan]})) == {
        "a": None,
        "b": [1, None, None],
    }
    assert to_csv(("a", "b"), [(None, "x,y")]) == 'a,b\r\n,"x,y"\r\n'
    with pytest.raises(TypeError, match="object has no form"):
        plain(object())
