"""What an option's name looks like, and when two option values are the same value."""

from __future__ import annotations

import re

from lsmtune.records.config import OptionValue, option_text

OPTION_NAME_ALLOWED = "letters, digits and _, nested names joined by dots"
_PART = r"[A-Za-z_][A-Za-z0-9_]*"
_OPTION_NAME = re.compile(rf"{_PART}(\.{_PART})*", re.ASCII)


def is_option_name(name: str) -> bool:
    """Whether `name` can be an option of an engine; `?` and `/` are left to Optuna variables."""
    return _OPTION_NAME.fullmatch(name) is not None


def same_value(one: OptionValue, other: OptionValue) -> bool:
    """Whether an engine would read both as the same value: `1` and `1.0`, `true` and `"true"`.

    `1` and `true` count as the same too: Optuna looks choices up with Python's equality.
    """
    return one == other or option_text(one) == option_text(other)
