"""YAML with bounds: of great depth or size nothing is read, and every refusal has its line.

The scanner is libyaml's: PyYAML's own takes a minute for a file of 1 MiB on a busy machine.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import yaml
from yaml.composer import Composer
from yaml.reader import Reader

from lsmtune.errors import InputError
from lsmtune.units import whole_number

_AFTER = 20  # characters of what stands at a mistake

_NOT_YAML: re.Pattern[str] = Reader.NON_PRINTABLE


class RefusedError(yaml.MarkedYAMLError):
    """YAML that is correct and refused all the same."""

    def __init__(self, problem: str, at: Any) -> None:
        """`at` is the node, or the event, that is refused."""
        super().__init__(problem=problem, problem_mark=at.start_mark)


class BoundedLoader(Composer, yaml.CSafeLoader):
    """YAML's safe loader, which refuses more than `depth_max` levels."""

    depth_max = 20

    def __init__(self, stream: str) -> None:
        yaml.CSafeLoader.__init__(self, stream)
        Composer.__init__(self)
        self._depth = 0

    def compose_node(self, parent: yaml.Node | None, index: Any) -> yaml.Node | None:
        """As in the base class."""
        if self._depth >= self.depth_max:
            problem = f"more than {self.depth_max} levels are not allowed"
            raise RefusedError(problem, self.peek_event())
        self._depth += 1
        try:
            return super().compose_node(parent, index)
        finally:
            self._depth -= 1

    def construct_object(self, node: yaml.Node, deep: bool = False) -> object:
        """As in the base class, which lets Python's own errors pass for a value that is none."""
        try:
            made = super().construct_object(node, deep)
            if isinstance(made, int):
                whole_number(made)
        except yaml.YAMLError:
            raise
        except (ValueError, LookupError, AttributeError, TypeError, ArithmeticError) as error:
            kind = str(node.tag).rpartition(":")[2]
            problem = f"what stands here cannot be read as {kind}: {error}"
            raise RefusedError(problem, node) from None
        return made


@contextmanager
def yaml_errors(text: str, source: str, where: str = "") -> Iterator[None]:
    """Turns YAML's errors about `text` into an InputError at `source` and the line.

    Where YAML is refused that is correct, `where` says for what (` in a study file`).
    """
    unprintable = _NOT_YAML.search(text)
    if unprintable is not None:
        line = text.count("\n", 0, unprintable.start()) + 1
        why = f"not YAML: character U+{ord(unprintable.group()):04X}"
        raise InputError(f"{source}:{line}", why=why)
    try:
        yield
    except RefusedError as error:
        raise InputError(_place(text, source, error), why=f"{error.problem}{where}") from None
    except yaml.MarkedYAMLError as error:
        problems = (error.context, error.problem)
        why = f"not YAML: {', '.join(problem for problem in problems if problem)}"
        found = _found(text, error)
        raise InputError(_place(text, source, error), why=why, found=found or None) from None
    except yaml.YAMLError as error:
        raise InputError(source, why=f"not YAML: {error}") from None


def _place(text: str, source: str, error: yaml.MarkedYAMLError) -> str:
    if error.problem_mark is None:
        return source
    # What is missing at the end is missing on the last line.
    return f"{source}:{min(error.problem_mark.line, text.rstrip().count(chr(10))) + 1}"


def _found(text: str, error: yaml.MarkedYAMLError) -> str:
    """What stands at a mistake that the scanner or the parser met; empty at the end of the text."""
    if error.problem_mark is None or not isinstance(
        error, yaml.scanner.ScannerError | yaml.parser.ParserError
    ):
        return ""
    lines = text.split("\n", error.problem_mark.line + 1)[error.problem_mark.line :]
    return lines[0][error.problem_mark.column :][:_AFTER] if lines else ""
