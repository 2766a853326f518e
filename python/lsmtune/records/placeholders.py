"""Placeholders in a text: `{name}` stands for a value, a doubled brace for the brace itself."""

from __future__ import annotations

import string
from collections.abc import Iterator, Mapping


def placeholders(text: str) -> tuple[str, ...]:
    """The names between braces in `text`, in order; dotted option names are names.

    Raises ValueError, with a line that says why, for braces that are not a placeholder.
    """
    return tuple(name for _, name in _parts(text) if name is not None)


def filled(text: str, values: Mapping[str, str]) -> str:
    """`text` with every placeholder replaced. Raises KeyError for one without a value."""
    return "".join(
        literal + ("" if name is None else values[name]) for literal, name in _parts(text)
    )


def _parts(text: str) -> Iterator[tuple[str, str | None]]:
    # string.Formatter takes the text apart; its attribute access and formats are not for us.
    for literal, name, form, conversion in string.Formatter().parse(text):
        if name is not None and (not name.strip() or form or conversion):
            raise ValueError("a placeholder is a name between braces; a literal brace is doubled")
        yield literal, name
