"""A Document as HTML and Markdown; values as JSON, CSV and Parquet."""

from __future__ import annotations

import base64
import csv
import io
import math
import re
from collections.abc import Iterable, Sequence
from functools import cache
from hashlib import sha256
from html import escape
from pathlib import Path
from typing import Any

import jinja2
from markupsafe import Markup
from pydantic_core import to_json as to_json_bytes

from lsmtune.model.codec import encode
from lsmtune.report.chart import draw
from lsmtune.report.document import (
    NOT_KNOWN,
    Answer,
    Block,
    Cell,
    Copy,
    Document,
    Facts,
    Heading,
    Notices,
    Paragraph,
    Section,
    Table,
    flat,
)

_TEMPLATES = Path(__file__).parent / "templates"
_SPECIAL = re.compile(r"([\\`*_\[\]|#~])")


def to_html(document: Document) -> str:
    """One self-contained page that needs no network, and no script but to sort and to copy."""
    style, script = (read_asset(name) for name in ("report.css", "report.js"))
    page = environment().get_template("document.html")
    return page.render(d=document, style=style, script=script, sources=_hashes(style, script))


def section_html(section: Section) -> str:
    """One section of a page, as the page has it."""
    blocks = environment().get_template("blocks.html").module
    return str(blocks.section(section)).strip()  # type: ignore[attr-defined]


@cache
def environment() -> jinja2.Environment:
    """How templates are filled in: everything that is put into a page is escaped."""
    made = jinja2.Environment(
        loader=jinja2.FileSystemLoader(_TEMPLATES),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.filters.update(
        breakable=_breakable,
        draw=lambda chart: Markup(draw(chart)),
        encoded=lambda content: base64.b64encode(content).decode(),
        kind=lambda block: type(block).__name__,
        sort_key=_sort_key,
    )
    return made


def read_asset(name: str) -> Markup:
    """A style sheet or script of ours, which is not to be escaped."""
    return Markup((_TEMPLATES / name).read_text(encoding="utf-8"))


def _hashes(style: str, script: str) -> Markup:
    """What a page's policy lets run: these two and nothing else."""
    digests = (
        base64.b64encode(sha256(f"\n{text}\n".encode()).digest()).decode()
        for text in (style, script)
    )
    return Markup("style-src 'sha256-{}'; script-src 'sha256-{}'").format(*digests)


def _breakable(name: str) -> Markup:
    """`name`, which a browser may break after `_` and `.` only."""
    return Markup("<wbr>").join(re.split(r"(?<=[_.])(?=\w)", name))


def _sort_key(cell: Cell) -> str | float:
    """What the page sorts a cell by; empty goes last."""
    if isinstance(cell.key, float) and not math.isfinite(cell.key):
        return ""
    if cell.key is None:
        return "" if cell.text == NOT_KNOWN else cell.text
    return cell.key


# --- Markdown


def to_markdown(document: Document) -> str:
    """Headings, sentences and tables, for a README, a pull request or a wiki; without figures."""
    parts = [f"# {safe(document.title)}\n", f"{safe(document.subtitle)}\n"]
    for section in document.sections:
        parts.append(f"## {safe(section.title)}\n")
        parts += [text for block in flat(section.blocks) if (text := _markdown(block))]
    return "\n".join(parts)


def _markdown(block: Block) -> str:
    if isinstance(block, Paragraph):
        item = "- " if block.tone.startswith(("detail", "finding")) else ""
        return f"{item}{safe(f'{block.text} {block.code}')}\n"
    if isinstance(block, Heading):
        return f"### {safe(block.text)}\n"
    if isinstance(block, Answer):
        return f"**{safe(block.label)}: {safe(block.figure)}** {safe(block.lead)}\n"
    if isinstance(block, Notices):
        return "".join(
            f"- {n.severity}: **{safe(n.title)}** {safe(n.text)}\n"
            if n.title
            else f"- {safe(n.text)}\n"
            for n in block.items
        )
    if isinstance(block, Facts):
        return _markdown_table(("fact", "value"), block.rows)
    if isinstance(block, Copy):
        longest = max(map(len, re.findall("`+", block.text)), default=0)
        fence = "`" * max(3, longest + 1)
        return f"{fence}\n{block.text}\n{fence}\n"
    if isinstance(block, Table):
        rows = ([cell.line for _, cell in row] for row in block.cells())
        marked = (
            [f"{row[0]} (best)", *row[1:]] if block.marks.get(number) == "best" else row
            for number, row in enumerate(rows)
        )
        table = _markdown_table([column.label for column in block.columns], marked)
        return f"{safe(block.fold)}:\n\n{table}" if block.fold else table
    return ""


def _markdown_table(columns: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table; empty without rows."""
    lines = [f"| {' | '.join(safe(cell) for cell in row)} |\n" for row in rows]
    if not lines:
        return ""
    rule = f"| {' | '.join('---' for _ in columns)} |\n"
    return f"| {' | '.join(safe(column) for column in columns)} |\n{rule}{''.join(lines)}"


def safe(value: object) -> str:
    """`value` as text of one line that Markdown and HTML take literally."""
    return _SPECIAL.sub(r"\\\1", escape(" ".join(str(value).split()), quote=False))


# --- JSON, Parquet and CSV: the values, before they are rounded


def to_json(value: object) -> str:
    """`value` as one JSON document; numbers that are not finite become null."""
    return to_json_bytes(encode(value), indent=2, inf_nan_mode="null").decode() + "\n"


def to_parquet(columns: Sequence[str], rows: Iterable[Sequence[object]]) -> bytes:
    """The same as a file of Parquet, through `pyarrow`, which need not be installed."""
    import pyarrow
    from pyarrow import parquet

    values = zip(*(map(_cell, row) for row in rows), strict=True)
    table = pyarrow.table(dict(zip(columns, map(list, values), strict=True)))
    output = io.BytesIO()
    parquet.write_table(table, output)
    return output.getvalue()


def to_csv(columns: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """RFC 4180: lines end in CR LF. What is not known is an empty cell."""
    output = io.StringIO()
    writer = csv.writer(output)
    writer.writerow(columns)
    writer.writerows(map(_cell, row) for row in rows)
    return output.getvalue()


def _cell(value: object) -> Any:
    """`value` in a table of a file; None where it is not known: a number that is not finite, too.

    A spreadsheet takes `nan` for a text.
    """
    return None if isinstance(value, float) and not math.isfinite(value) else encode(value)
