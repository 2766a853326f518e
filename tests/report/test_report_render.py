"""Every form of a Document takes any text literally, wherever it stands."""

from __future__ import annotations

import io
import json
import math

import pytest
from page import read
from rich.console import Console

from lsmtune.report.chart import Axis, Chart, Form, Point, Rule, Series
from lsmtune.report.document import (
    Answer,
    Beside,
    Block,
    Cell,
    Column,
    Copy,
    Document,
    Download,
    Facts,
    Heading,
    Notice,
    Notices,
    Paragraph,
    Section,
    Severity,
    Table,
    chart_of,
    words,
)
from lsmtune.report.render import to_csv, to_html, to_json, to_markdown
from lsmtune.report.terminal import to_terminal

EVIL = "</script><script>alert(1)</script><img src=x onerror='a'>\"|[red]_*`"


def document(text: str) -> Document:
    """A Document with `text` wherever there is text, in every kind of block."""
    columns = (*words(text), Column(text, str, style="clip"), Column("hidden", terminal=False))
    rows = [(text, 1.5, 2), (text, Cell(text, math.nan, "fail", (text,)), None)]
    series = Series(Form.STAR, "tuned", [Point(1.0, text, text)], text)
    rules = [Rule(1.0, text, upright=True)]
    chart = Chart(text, Axis(text), Axis(text, names=[text]), [series], rules)
    blocks: list[Block] = [
        Answer("", text, text, text),
        Paragraph(text, "detail", code=text),
        Heading(text),
        Notices([Notice(text, text, Severity.DANGER), Notice(text, kind=text)]),
        Facts([(text, text), ("path", text)], frozenset({"path"})),
        Copy(text, text),
        Download(text, text, text.encode(), text),
        Table(columns, rows, text, {0: "best"}, sortable=True),
        Table(columns, rows, text, fold=text, header=False),
        Beside([[Paragraph(text, "quiet"), chart], [Heading(text)]], "pair"),
    ]
    sections = [
        Section("first", text, blocks, text, tone="good", top=True),
        Section("second", text, [Heading(text), Table(columns, rows, text)], terminal=False),
    ]
    return Document(text, text, sections, text, text)


def test_a_page_takes_any_text_literally() -> None:
    page = read(to_html(document(EVIL)))
    assert page.unbalanced == []
    assert "img" not in page.tags
    assert len(page.scripts) == 1
    assert page.plots == [EVIL]
    assert page.text.count(EVIL) > 30
    assert len(page.ids) == len(set(page.ids))
    assert {link[1:] for link in page.links if link.startswith("#")} <= set(page.ids)


def test_markdown_takes_any_text_literally() -> None:
    whole = to_markdown(document(EVIL))
    text = whole.replace(f"\n```\n{EVIL}\n```\n", "")  # what is to be copied is literal there
    assert len(text) < len(whole)
    assert "<" not in text
    assert "&lt;img src=x onerror='a'&gt;\"\\|\\[red\\]\\_\\*\\`" in text
    tables = [line.replace("\\|", "") for line in text.splitlines() if line.startswith("|")]
    assert {line.count("|") for line in tables} == {3, 4}
    assert text.count("\n## ") == 2


def test_text_to_copy_cannot_end_its_block() -> None:
    text = "a=1\n```\n<b>"
    section = Section("one", "one", [Copy(text, "it")])
    assert f"\n````\n{text}\n````\n" in to_markdown(Document("", "", [section], "", ""))


def test_a_terminal_takes_any_text_literally_and_leaves_columns_out() -> None:
    output = io.StringIO()
    Console(file=output, width=4000).print(to_terminal(document(EVIL)))
    said = output.getvalue()
    assert said.count("[red]_*`") > 15
    assert "hidden" not in said


def test_a_plot_without_data_leaves_nothing() -> None:
    empty: list[list[Point]] = [[], [Point(1.0, None)]]
    series = [Series(Form.LINE, "tuned", points) for points in empty]
    assert chart_of("a plot", Axis(), Axis(), series) == []


def test_values_have_one_form_in_json_and_csv() -> None:
    assert json.loads(to_json({"a": math.inf, "b": [1, None, math.nan]})) == {
        "a": None,
        "b": [1, None, None],
    }
    assert to_csv(("a", "b"), [(None, "x,y")]) == 'a,b\r\n,"x,y"\r\n'
    assert to_csv("abc", [(math.nan, math.inf, 1.5)]) == "a,b,c\r\n,,1.5\r\n"
    with pytest.raises(TypeError, match="object cannot be stored"):
        to_json(object())
