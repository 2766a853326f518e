"""The forms of a contest's leaderboard, by the suffix of the file that it is written to."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from types import MappingProxyType

from lsmtune.contest.leaderboard import Leaderboard
from lsmtune.errors import InputError, nearest_name
from lsmtune.report import leaderboard_html, leaderboard_markdown
from lsmtune.report.atomic import check_place, write_text
from lsmtune.report.leaderboard_data import render_csv, render_json

FORMATS: Mapping[str, Callable[[Leaderboard], str]] = MappingProxyType(
    {
        ".html": leaderboard_html.render,
        ".md": leaderboard_markdown.render,
        ".json": render_json,
        ".csv": render_csv,
    }
)


def check_output(path: Path, flag: str) -> None:
    """Raises InputError, naming `flag` where the suffix is that of no format, for a bad place."""
    if path.suffix not in FORMATS:
        allowed, nearest = ", ".join(FORMATS), nearest_name(path.suffix, FORMATS)
        raise InputError(flag, found=str(path), allowed=f"a file {allowed}", nearest=nearest)
    check_place(path)


def write_leaderboard(board: Leaderboard, path: Path) -> Path:
    """Write `board` to `path`, whole or not at all, in the form that its suffix names.

    Raises InputError when it cannot be written, and KeyError for a suffix that is none.
    """
    return write_text(path, FORMATS[path.suffix](board))
