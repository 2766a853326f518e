"""Errors that a user meets, each one clear line, and the exit status that goes with it.

Everything below `cli` raises these; only `cli` prints them and exits.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from enum import IntEnum


class ExitStatus(IntEnum):
    """What `lsmtune` exits with."""

    DONE = 0
    FAILED = 1
    BAD_INPUT = 2
    NOT_BETTER = 3
    INTERRUPTED = 130


class LsmtuneError(Exception):
    """The work failed; `str()` is one line for the user, with the next step where there is one."""

    exit_status = ExitStatus.FAILED


class InputError(LsmtuneError):
    """The user's input is wrong.

    `str()` is one line: `source: field: found X; allowed: Y; did you mean Z?`
    """

    exit_status = ExitStatus.BAD_INPUT

    def __init__(
        self,
        source: str,
        field: str = "",
        *,
        found: object = None,
        allowed: str = "",
        nearest: str = "",
        why: str = "",
    ) -> None:
        self.source = source
        self.field = field
        self.found = found
        self.allowed = allowed
        self.nearest = nearest
        self.why = why
        super().__init__(self._line())

    def _line(self) -> str:
        place = ": ".join(part for part in (self.source, self.field) if part)
        facts = [self.why] if self.why else []
        if self.found is not None:
            facts.append(f"found {_shortened(self.found)}")
        if self.allowed:
            facts.append(f"allowed: {self.allowed}")
        if self.nearest:
            facts.append(f"did you mean {self.nearest}?")
        return " ".join(f"{place}: {'; '.join(facts)}".split())


def _shortened(found: object, limit: int = 120) -> str:
    text = repr(found) if isinstance(found, str) else str(found)
    if isinstance(found, bool):
        text = text.lower()  # as study files and engines spell it
    return text if len(text) <= limit else f"{text[:limit]}... ({len(text)} characters)"


def nearest_name(name: str, known: Iterable[str]) -> str:
    """The known name most like `name`, or an empty string when none is close."""
    matches = difflib.get_close_matches(name, list(known), n=1, cutoff=0.6)
    return matches[0] if matches else ""
