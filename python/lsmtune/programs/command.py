"""The command runner: a program of the user's own performs the run and says what it measured.

Before the run come its surroundings: arguments, environment and files. While it runs, the lines
that it reports are read, and its results when it has ended.
"""

from __future__ import annotations

import json
import math
import os
import re
import threading
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from itertools import count
from pathlib import Path
from typing import NoReturn

from jsonpointer import EndOfList, JsonPointer, JsonPointerException

from lsmtune.driver.conversation import OnMessage
from lsmtune.errors import nearest_name
from lsmtune.model.command import (
    CommandSpec,
    JsonLines,
    JsonPointers,
    RegularExpressions,
    Results,
    filled,
    placeholders,
)
from lsmtune.model.measurement import IntermediateReport, Measurement
from lsmtune.model.request import RunRequest
from lsmtune.model.text import NotPlainError, open_plain
from lsmtune.programs.command_process import ResultError
from lsmtune.programs.program import STDOUT, Follow, Observed, Plan, Step, StepOutput
from lsmtune.programs.runner import perform

STEP = "step"

_TEXT_BYTES_MAX = 64 << 20  # of a result; more is no result but a log


def read_line(line: str, where: str) -> IntermediateReport | dict[str, float]:
    """One line of results: intermediate where it has a step, else final metrics.

    Raises ResultError that begins with `where` and names the field.
    """
    data = _parsed(line, where)
    if not isinstance(data, dict):
        raise ResultError(f"{where}: found {_shown(data)}; allowed: an object, metric to number")
    step = data.pop(STEP, None)
    metrics = {name: _number(value, f"{where}: {name}") for name, value in data.items()}
    if not metrics:
        raise ResultError(f"{where}: names no metric")
    if step is None:
        return metrics
    if not isinstance(step, int) or isinstance(step, bool) or step < 0:
        raise ResultError(
            f"{where}: {STEP}: found {_shown(step)}; allowed: a whole number, at least 0"
        )
    return IntermediateReport(step, metrics)


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
            source = "standard output" if file is None else str(path)
            document = _parsed(_text(path, source), source)
            numbers = {}
            for metric, pointer in pointers.items():
                where = f"{metric}: {source}: {pointer}"
                try:
                    value = JsonPointer(pointer).resolve(document)
                    if isinstance(value, EndOfList):  # "/-": after the last element (RFC 6901)
                        raise JsonPointerException("points behind the end of a list")
                except JsonPointerException as error:
                    raise ResultError(f"{where}: {error}") from None
                numbers[metric] = _number(value, where)
            return numbers
        case _:
            return {}


def check_complete(results: Mapping[str, float], metrics: tuple[str, ...]) -> None:
    """Raises ResultError when a needed metric is missing, or when there is no result at all."""
    reported = ", ".join(results) or "nothing"
    for metric in metrics:
        if metric not in results:
            near = nearest_name(metric, results)
            hint = f"; did you mean {metric} where you say {near}?" if near else ""
            raise ResultError(
                f"the program ended without reporting {metric}; reported: {reported}{hint}"
            )
    if not results:
        raise ResultError("the program ended without reporting any result")


def _matched(metric: str, pattern: str, text: str) -> float:
    last = deque(re.finditer(pattern, text, re.MULTILINE), maxlen=1)
    if not last:
        raise ResultError(f"{metric}: no match of {pattern!r} in standard output")
    group = last[0].group(1) or ""
    try:
        number = float(group)
    except ValueError:
        raise ResultError(f"{metric}: {pattern!r} found {group!r}; allowed: a number") from None
    return _finite(number, metric)


def _text(path: Path, where: str) -> str:
    try:
        with open_plain(path) as file:
            # No more than that, whatever size it claims to have: files of /proc claim none.
            text = file.read(_TEXT_BYTES_MAX + 1)
    except NotPlainError as error:
        raise ResultError(f"{where}: {error}") from None
    except OSError as error:
        raise ResultError(f"{where}: cannot be read: {error.strerror}") from None
    if len(text) > _TEXT_BYTES_MAX:
        raise ResultError(f"{where}: more than {_TEXT_BYTES_MAX} bytes")
    return text.decode(errors="replace")


def _parsed(text: str, where: str) -> object:
    try:
        return json.loads(text, parse_constant=_refuse_constant)
    except (ValueError, RecursionError) as error:
        raise ResultError(f"{where}: not JSON ({error}): {_shown(text)}") from None


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not a number to judge by")


def _number(value: object, where: str) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise ResultError(f"{where}: found {_shown(value)}; allowed: a number")
    try:
        return _finite(float(value), where)
    except OverflowError:
        raise ResultError(f"{where}: found a number too large to compare") from None


def _finite(number: float, where: str) -> float:
    if not math.isfinite(number):
        raise ResultError(f"{where}: found {number}; allowed: a finite number")
    return number


def _shown(value: object) -> str:
    text = value if isinstance(value, str) else json.dumps(value)
    return repr(text[:80]) if isinstance(value, str) else text[:80]


# --- the one process of a run: its arguments, environment and files, and what it says

PARAMETERS = "trial.json"
RESULTS = "results.jsonl"
WORK = "work"

_NONE = "-"  # where there is no number, and a text has to say something


def command_plan(spec: CommandSpec, environment: Mapping[str, str], request: RunRequest) -> Plan:
    """Writes the files of the run into `request.directory` and says what to start.

    `environment` is what the program inherits. Raises ResultError for a parameter that is
    not in the configuration where the command cannot do without it.
    """
    directory, num = request.directory / WORK, request.workload.num or None
    run_values = {
        "seed": str(request.seed),
        "directory": str(directory),
        "trial": _NONE if request.trial is None else str(request.trial),
        "num": _NONE if num is None else str(num),
    }
    values = request.config.engine_options() | run_values
    arguments: list[str] = []
    for index, element in enumerate(spec.command):
        if isinstance(element, str):
            arguments.append(_filled(element, values, f"command[{index}]"))
        elif all(_has_all(text, values) for text in element):
            arguments += [filled(text, values) for text in element]
    directory.mkdir()
    file, parameters = spec.parameters_file, dict(request.config.options)
    if file is not None:
        text = json.dumps(parameters, indent=2) + "\n"
        if file.template is not None:
            text = _filled(file.template, values, f"the template of {file.name}")
        path = directory / file.name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    results = request.directory / RESULTS
    results.touch()
    # What `lsmtune.trial` reads: only ever added to, as the program may have an older one.
    trial = {
        "parameters": parameters,
        "seed": request.seed,
        "trial": request.trial,
        "num": num,
        "directory": os.fspath(directory),
        "metrics": list(spec.metrics),
    }
    (request.directory / PARAMETERS).write_text(json.dumps(trial, indent=2) + "\n")
    texts = spec.environment.items()
    added = {name: filled(text, values) for name, text in texts if _has_all(text, values)}
    own = {f"LSMTUNE_{name.upper()}": value for name, value in run_values.items()}
    own["LSMTUNE_PARAMETERS"] = str(request.directory / PARAMETERS)
    own["LSMTUNE_RESULTS"] = str(results)
    follow: dict[str, Callable[[], Follow]] = {RESULTS: partial(_follow, "LSMTUNE_RESULTS")}
    if isinstance(spec.results, JsonLines) and spec.results.stdout:
        follow[STDOUT] = partial(_follow, "standard output", "{")
    step = Step(
        arguments=tuple(arguments),
        phases=(),
        read=partial(_read, spec, directory),
        follow=follow,
        start_in=spec.folder,
        environment={**environment, **added, **own},
    )
    return Plan((step,))


def _follow(where: str, begin: str = "") -> Follow:
    """Reads the lines that begin with `begin`; others are free text."""
    numbers = count(1)

    def follow(line: str) -> IntermediateReport | dict[str, float] | None:
        number = next(numbers)
        if not line or not line.startswith(begin):
            return None
        return read_line(line, f"{where}, line {number}")

    return follow


def _read(spec: CommandSpec, directory: Path, output: StepOutput) -> Observed:
    """Raises ResultError for what the program reported that is useless."""
    results = final_results(spec.results, directory, output.stdout)
    check_complete({**output.reported, **results}, spec.metrics)
    return Observed({}, reported=results)


def _has_all(text: str, values: Mapping[str, str]) -> bool:
    return all(name in values for name in placeholders(text))


def _filled(text: str, values: Mapping[str, str], where: str) -> str:
    try:
        return filled(text, values)
    except KeyError as error:
        name = error.args[0]
        raise ResultError(f"{where}: {{{name}}} has no value in this configuration") from None


@dataclass(eq=False)
class CommandRunner:
    """Performs runs by starting the program of `spec`; see `Runner` for its obligations.

    `environment` is what the program inherits. A run's directory holds `work`, which is the
    program's own, `stdout.log` and, as for every engine, `engine.log`: what it printed to stderr.
    """

    spec: CommandSpec
    environment: Mapping[str, str] = field(default_factory=lambda: os.environ)

    def run(
        self,
        request: RunRequest,
        on_message: OnMessage | None = None,
        cancel: threading.Event | None = None,
    ) -> Measurement:
        """One run; intermediate results come to `on_message` as `IntermediateReport`.

        A program that exits with another status than 0 has crashed, whatever it reported. One that
        reports something useless, or lacks a metric, is `invalid`. Raises what `perform` raises.
        """
        plan = partial(command_plan, self.spec, self.environment)
        return perform(request, plan, on_message, cancel)
