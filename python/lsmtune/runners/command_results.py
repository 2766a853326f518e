"""What a program of the user's own reports: lines while it runs, and results when it has ended."""

from __future__ import annotations

import json
import math
import re
from collections import deque
from collections.abc import Mapping
from pathlib import Path
from typing import NoReturn

from jsonpointer import EndOfList, JsonPointer, JsonPointerException

from lsmtune.errors import LsmtuneError, nearest_name
from lsmtune.records.command import JsonPointers, RegularExpressions, Results
from lsmtune.runners.messages import Reported
from lsmtune.runners.plain_file import NotPlainError, open_plain

STEP = "step"

_TEXT_BYTES_MAX = 64 << 20  # of a result; more is no result but a log


class ResultError(LsmtuneError):
    """A program reported something that cannot be used; `str()` says what and where."""


def read_line(line: bytes, place: str) -> Reported | dict[str, float]:
    """One line of results: intermediate where it has a step, else final metrics.

    Raises ResultError that begins with `place` and names the field.
    """
    data = _parsed(line, place)
    if not isinstance(data, dict):
        raise ResultError(f"{place}: found {_shown(data)}; allowed: an object, metric to number")
    step = data.pop(STEP, None)
    metrics = {name: _number(value, f"{place}: {name}") for name, value in data.items()}
    if not metrics:
        raise ResultError(f"{place}: names no metric")
    if step is None:
        return metrics
    if not isinstance(step, int) or isinstance(step, bool) or step < 0:
        raise ResultError(
            f"{place}: {STEP}: found {_shown(step)}; allowed: a whole number, at least 0"
        )
    return Reported(step, metrics)


def final_results(results: Results, directory: Path, stdout: Path) -> Mapping[str, float]:
    """What `results` finds when the program has ended well; nothing for JSON lines.

    Raises ResultError for a metric that is missing or not a number.
    """
    match results:
        case RegularExpressions(patterns):
            text = _text(stdout, "standard output")
            return {metric: _matched(metric, p, text) for metric, p in patterns.items()}
        case JsonPointers(pointers, file):
            path = stdout if file is None else directory / file
            place = "standard output" if file is None else str(path)
            document = _parsed(_text(path, place), place)
            return {metric: _pointed(metric, p, document, place) for metric, p in pointers.items()}
        case _:
            return {}


def check_complete(found: Mapping[str, float], metrics: tuple[str, ...]) -> None:
    """Raises ResultError when a needed metric is missing, or when there is no result at all."""
    reported = ", ".join(found) or "nothing"
    for metric in metrics:
        if metric not in found:
            near = nearest_name(metric, found)
            hint = f"; did you mean {metric} where you say {near}?" if near else ""
            raise ResultError(
                f"the program ended without reporting {metric}; reported: {reported}{hint}"
            )
    if not found:
        raise ResultError("the program ended without reporting any result")


def _matched(metric: str, pattern: str, text: str) -> float:
    last = deque(re.finditer(pattern, text, re.MULTILINE), maxlen=1)
    if not last:
        raise ResultError(f"{metric}: no match of {pattern!r} in standard output")
    found = last[0].group(1) or ""
    try:
        number = float(found)
    except ValueError:
        raise ResultError(f"{metric}: {pattern!r} found {found!r}; allowed: a number") from None
    return _finite(number, metric)


def _pointed(metric: str, pointer: str, document: object, place: str) -> float:
    try:
        found = JsonPointer(pointer).resolve(document)
        if isinstance(found, EndOfList):  # "/-", the place after the last element (RFC 6901)
            raise JsonPointerException("points behind the end of a list")
    except JsonPointerException as error:
        raise ResultError(f"{metric}: {place}: {pointer}: {error}") from None
    return _number(found, f"{metric}: {place}: {pointer}")


def _text(path: Path, place: str) -> str:
    try:
        with open_plain(path) as file:
            # No more than that, whatever size it claims to have: files of /proc claim none.
            text = file.read(_TEXT_BYTES_MAX + 1)
    except NotPlainError as error:
        raise ResultError(f"{place}: {error}") from None
    except OSError as error:
        raise ResultError(f"{place}: cannot be read: {error.strerror}") from None
    if len(text) > _TEXT_BYTES_MAX:
        raise ResultError(f"{place}: more than {_TEXT_BYTES_MAX} bytes")
    return text.decode(errors="replace")


def _parsed(text: bytes | str, place: str) -> object:
    try:
        return json.loads(text, parse_constant=_refuse_constant)
    except (ValueError, RecursionError) as error:
        raise ResultError(f"{place}: not JSON ({error}): {_shown(text)}") from None


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not a number to judge by")


def _number(value: object, place: str) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise ResultError(f"{place}: found {_shown(value)}; allowed: a number")
    try:
        return _finite(float(value), place)
    except OverflowError:
        raise ResultError(f"{place}: found a number too large to compare") from None


def _finite(number: float, place: str) -> float:
    if not math.isfinite(number):
        raise ResultError(f"{place}: found {number}; allowed: a finite number")
    return number


def _shown(found: object) -> str:
    if isinstance(found, bytes):
        found = found.decode(errors="replace")
    text = found if isinstance(found, str) else json.dumps(found)
    return repr(text[:80]) if isinstance(found, str) else text[:80]
