"""Reading what a program printed, line by line: where we are, what is next, what is wrong here."""

from __future__ import annotations

import re
from dataclasses import dataclass

from lsmtune.errors import InputError


@dataclass(frozen=True)
class Line:
    """One line of output: its number, counted from 1, and its text without the line break."""

    number: int
    text: str


class LineReader:
    """The lines of `text` in order; `source` names them in errors.

    A carriage return inside a line starts the line anew, as on a terminal: programs that show
    progress in place overwrite what they had there.
    """

    def __init__(self, text: str, source: str) -> None:
        self.source = source
        self._lines = [
            Line(number, line.rstrip("\r").rsplit("\r", 1)[-1])
            for number, line in enumerate(text.split("\n"), start=1)
        ]
        if self._lines and not self._lines[-1].text:
            self._lines.pop()  # what follows the last line break is no line
        self._next = 0

    def peek(self) -> Line | None:
        """The next line, which stays; None after the last one."""
        return self._lines[self._next] if self._next < len(self._lines) else None

    def take(self) -> Line:
        """The next line, which is consumed. Raises `InputError` where there is none."""
        line = self.peek()
        if line is None:
            raise InputError(self.source, why="ends in the middle of a result")
        self._next += 1
        return line

    def take_if(self, pattern: re.Pattern[str]) -> re.Match[str] | None:
        """The match of the whole next line, which is consumed then; None, and it stays."""
        line = self.peek()
        match = pattern.fullmatch(line.text) if line is not None else None
        if match is not None:
            self._next += 1
        return match

    def expect(self, pattern: re.Pattern[str], allowed: str) -> re.Match[str]:
        """The match of the whole next line. Raises `InputError` that says what is `allowed`."""
        line = self.peek()
        match = self.take_if(pattern)
        if match is None:
            found = line.text if line is not None else "the end"
            number = line.number if line is not None else len(self._lines) + 1
            raise InputError(self.source, f"line {number}", found=found, allowed=allowed)
        return match

    def refuse(self, line: Line, allowed: str) -> InputError:
        """The error that says what `line` should have been."""
        return InputError(self.source, f"line {line.number}", found=line.text, allowed=allowed)
