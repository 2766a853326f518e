"""An Entry, what one team hands in, and how entries are named on the command line."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from lsmtune.errors import InputError, is_utf8
from lsmtune.records.config import Config

FILE = "FILE"
_NAME_LENGTH_MAX = 80


@dataclass(frozen=True)
class Named:
    """A text of the command line as a team's name and what it handed in."""

    name: str
    text: str


@dataclass(frozen=True)
class Entry:
    """What the team `name` handed in; `source` is the file or text that it came from."""

    name: str
    source: str
    config: Config


def named(text: str) -> Named:
    """`NAME=WHAT`, or a file (or another name of a configuration), which names the team.

    Raises InputError for a name that is empty, too long, or not one line of text.
    """
    name, equals, what = text.partition("=")
    if equals and not Path(text).is_file():
        return Named(_checked(name.strip(), text), what.strip())
    path = Path(text)
    # OPTIONS-000007 has no suffix to lose; a.properties has.
    return Named(_checked(path.stem if path.is_file() else text, text), text)


def _checked(name: str, text: str) -> str:
    if not name or len(name) > _NAME_LENGTH_MAX or not name.isprintable() or not is_utf8(name):
        allowed = f"NAME=FILE with a name of at most {_NAME_LENGTH_MAX} characters"
        raise InputError(FILE, found=text, why="names no team", allowed=allowed)
    return name


def all_named(texts: Sequence[str]) -> list[Named]:
    """Each of `texts` as `named`. Raises InputError for a name that two of them have."""
    found: dict[str, Named] = {}
    for text in texts:
        each = named(text)
        if each.name in found:
            why = f"two teams are named {each.name}: {found[each.name].text} and {each.text}"
            raise InputError(FILE, found=text, why=why, allowed="NAME=FILE for each")
        found[each.name] = each
    return list(found.values())
