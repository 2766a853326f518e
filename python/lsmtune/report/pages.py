"""Writes a report whole or not at all."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Sequence
from functools import cache
from html import escape
from pathlib import Path

import jinja2
from markupsafe import Markup

from lsmtune.errors import InputError
from lsmtune.machine.files import write_whole


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
        raise InputError(
            str(output), why=f"cannot be written: {error.strerror or error}"
        ) from error
    return output


# ----------
# Headings, tables and text in Markdown, whatever the text holds.

_SPECIAL = re.compile(r"([\\`*_\[\]|#~])")


def section(title: str, columns: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table below a heading; empty without rows."""
    found = table(columns, rows)
    return f"## {title}\n\n{found}" if found else ""


def table(columns: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table; empty without rows."""
    lines = [f"| {' | '.join(safe(cell) for cell in row)} |\n" for row in rows]
    if not lines:
        return ""
    rule = f"| {' | '.join('---' for _ in columns)} |\n"
    return f"| {' | '.join(safe(column) for column in columns)} |\n{rule}{''.join(lines)}"


def safe(value: object) -> str:
    """`value` as text of one line that Markdown and HTML take literally."""
    return _SPECIAL.sub(r"\\\1", escape(" ".join(str(value).split()), quote=False))


# ----------
# What every page has: the templates, files of ours that go into it, and Plotly.

_TEMPLATES = Path(__file__).parent / "templates"


def environment() -> jinja2.Environment:
    """The templates; what is put into them is escaped, and a name that is not given is an error."""
    return jinja2.Environment(
        loader=jinja2.FileSystemLoader(_TEMPLATES),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )


def asset(name: str) -> Markup:
    """A style sheet or script of ours, which is not to be escaped."""
    return Markup((_TEMPLATES / name).read_text(encoding="utf-8"))


@cache
def plotly() -> Markup:
    """Plotly's script, some megabytes; imported when a page has plots."""
    from plotly.offline import get_plotlyjs

    return Markup(get_plotlyjs())
