"""A Document as HTML and Markdown; values as JSON and CSV; files written whole or not at all."""

from __future__ import annotations

import csv
import io
import json
import math
import os
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import fields, is_dataclass
from enum import Enum
from functools import cache
from html import escape
from pathlib import Path, PurePath
from typing import Any

import jinja2
from markupsafe import Markup

from lsmtune.errors import InputError
from lsmtune.machine.files import write_whole
from lsmtune.report.document import (
    NOT_KNOWN,
    Answer,
    Block,
    Cell,
    Document,
    Facts,
    Files,
    Heading,
    Notices,
    Paragraph,
    Table,
    flat,
)

_TEMPLATES = Path(__file__).parent / "templates"
_SPECIAL = re.compile(r"([\\`*_\[\]|#~])")


def to_html(document: Document) -> str:
    """One self-contained page that needs no network, and no script for its text."""
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(_TEMPLATES),
        autoescape=True,  # everything that is put into the page
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters.update(breakable=_breakable, sort_key=_sort_key)
    figures = document.figures()
    return environment.get_template("document.html").render(
        d=document,
        figures=figures,
        plotly=_plotly() if figures else None,
        style=_asset("report.css"),
        script=_asset("report.js"),
    )


def _asset(name: str) -> Markup:
    """A style sheet or script of ours, which is not to be escaped."""
    return Markup((_TEMPLATES / name).read_text(encoding="utf-8"))


@cache
def _plotly() -> Markup:
    """Plotly's script, some megabytes; imported when a page has plots."""
    from plotly.offline import get_plotlyjs

    return Markup(get_plotlyjs())


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
    for section in (each for each in document.sections if "markdown" not in each.omit):
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
            f"- {n.grade}: **{safe(n.title)}** {safe(n.text)}\n"
            if n.title
            else f"- {safe(n.text)}\n"
            for n in block.items
        )
    if isinstance(block, Facts):
        return _markdown_table(("fact", "value"), block.rows)
    if isinstance(block, Files):
        return "".join(f"- {safe(path)}\n" for path in block.paths)
    if isinstance(block, Table):
        rows = (["; ".join((cell.text, *cell.below)) for _, cell in row] for row in block.cells())
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


# --- JSON and CSV: the values, before they are rounded


def to_json(value: object) -> str:
    """`value` as one JSON document; numbers that are not finite become null."""
    return json.dumps(plain(value), indent=2, ensure_ascii=False, allow_nan=False) + "\n"


def plain(value: object) -> Any:
    """`value` in terms of dict, list, str, int, finite float, bool and None."""
    if isinstance(value, Enum):
        return value.value
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if value is None or isinstance(value, str | int):
        return value
    if isinstance(value, PurePath):
        return str(value)
    if is_dataclass(value) and not isinstance(value, type):
        return {f.name: plain(getattr(value, f.name)) for f in fields(value)}
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    raise TypeError(f"{type(value).__name__} has no form in JSON")


def to_csv(columns: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """RFC 4180: lines end in CR LF. What is not known (None) is an empty cell."""
    output = io.StringIO()
    writer = csv.writer(output)
    writer.writerow(columns)
    writer.writerows(rows)
    return output.getvalue()


# --- Files, whole or not at all


def check_place(output: Path) -> None:
    """Raises InputError for a place where no file can be written, before there is one to write."""
    if output.is_dir():
        raise InputError(str(output), why="is a directory", allowed="a file to write")
    folder = next(parent for parent in output.absolute().parents if parent.exists())
    if not folder.is_dir():
        raise InputError(str(output), why=f"{folder} is no folder", allowed="a file to write")
    if not os.access(folder, os.W_OK | os.X_OK):
        raise InputError(str(output), why=f"{folder} cannot be written", allowed="a file to write")


def write_text(output: Path, content: str) -> Path:
    """Replace `output` by `content`; makes its folder. Returns `output`.

    Raises InputError when it cannot be written.
    """
    check_place(output)
    try:
        output.parent.mkdir(parents=True, exist_ok=True)
        write_whole(output, content)
    except OSError as error:
        why = f"cannot be written: {error.strerror or error}"
        raise InputError(str(output), why=why) from error
    return output
