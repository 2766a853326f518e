"""Headings, tables and text in Markdown, whatever the text holds."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from html import escape

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
