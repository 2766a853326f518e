"""What a program of the user's own may import: its parameters, and where its results go.

    import lsmtune

    p = lsmtune.trial.parameters()
    for step in range(10):
        lsmtune.trial.report(measure_some(p))
    lsmtune.trial.result(measure_all(p))

Started by hand, outside a study, the same program runs with the defaults that it gives, and its
reports are printed. Only the standard library is used, so that importing it costs nothing.
"""

from __future__ import annotations

import functools
import json
import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import SupportsFloat, TextIO, TypeVar

from lsmtune.errors import InputError, finite_number

T = TypeVar("T")
D = TypeVar("D")
OptionValue = str | int | float | bool
Value = SupportsFloat | Mapping[str, SupportsFloat]

_PARAMETERS = "LSMTUNE_PARAMETERS"
_RESULTS = "LSMTUNE_RESULTS"
_NAMELESS = "value"  # the metric of a plain number where no study says what it is


def parameters(default: Mapping[str, OptionValue] | None = None) -> dict[str, OptionValue]:
    """The value of each parameter that is active, typed as in the study file.

    `default` has values for those that are not, and for a run outside a study. Without it, such a
    run raises InputError.
    """
    facts = _current().facts
    if facts is None:
        if default is None:
            raise InputError(
                _PARAMETERS,
                why="not set, so that this is no trial of a study; start the program with "
                "`lsmtune tune`, or give it values: parameters(default={...})",
            )
        return dict(default)
    values = facts.get("parameters")
    if not isinstance(values, dict):
        raise InputError(_PARAMETERS, "parameters", found=values, allowed="an object")
    return {**(default or {}), **values}


def seed(default: int = 0) -> int:
    """The seed of this run: every repetition of a configuration has another one."""
    return _current().fact("seed", int, default)


def number() -> int | None:
    """The trial's number; None outside a study, and in a run of the baseline or of a proof."""
    return _current().fact("trial", int, None)


def num(default: int | None = None) -> int | None:
    """How many records the run is to have, which is less in the first rungs of a pruner.

    `default` where no rung names a size, and outside a study.
    """
    return _current().fact("num", int, default)


def directory() -> Path:
    """A fresh directory for this run, removed after it; outside a study, the current one."""
    folder = _current().fact("directory", str, None)
    return Path.cwd() if folder is None else Path(folder)


def report(value: Value, step: int | None = None) -> None:
    """Reports an intermediate value, from which a pruner decides whether to go on.

    A plain number is the study's metric; a mapping names several. `step` counts up from 1 unless it
    is given. Raises InputError for what is not a finite number.
    """
    trial = _current()
    metrics = trial.metrics(value)
    if step is None:
        step = trial.step + 1
    if isinstance(step, bool) or not isinstance(step, int) or step < 0:
        raise InputError("report", "step", found=step, allowed="a whole number, at least 0")
    trial.step = step
    trial.say({"step": step, **metrics})


def result(value: Value) -> None:
    """Reports a final value, as `report` does. Of several for one metric the last counts."""
    trial = _current()
    trial.say(trial.metrics(value))


class _Trial:
    """What a study says of a run in the variables of `environment`; None outside a study.

    `printed` is where reports go then.
    """

    def __init__(self, environment: Mapping[str, str], printed: TextIO) -> None:
        """Reads what the study wrote for this run. Raises InputError when it cannot be read."""
        self.facts = _facts(environment.get(_PARAMETERS))
        self.step = 0
        self._results = environment.get(_RESULTS)
        self._printed = printed

    def fact(self, name: str, kind: type[T], default: D) -> T | D:
        """What the study says under `name`, if it is a `kind`."""
        value = None if self.facts is None else self.facts.get(name)
        return value if isinstance(value, kind) else default

    def metrics(self, value: Value) -> dict[str, float]:
        """The finite number of each metric. Raises InputError for what is none."""
        main = [str(name) for name in self.fact("metrics", list, [])[:1]] or [_NAMELESS]
        named = value if isinstance(value, Mapping) else {main[0]: value}
        if not named:
            raise InputError("result", why="names no metric")
        for name in named:
            if name == "step" or not name:
                raise InputError("result", found=name, why="not the name of a metric")
        return {name: finite_number(number, "result", name) for name, number in named.items()}

    def say(self, numbers: Mapping[str, float]) -> None:
        """Writes a line to where the study reads results, or prints it."""
        line = json.dumps(numbers) + "\n"
        if self._results is None:
            self._printed.write(line)
            self._printed.flush()
            return
        # One system call: lines of several processes of a trial do not mix.
        descriptor = os.open(self._results, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
        try:
            os.write(descriptor, line.encode())
        finally:
            os.close(descriptor)


@functools.cache
def _current() -> _Trial:
    """The run that this process was started for."""
    return _Trial(os.environ, sys.stdout)


def _facts(path: str | None) -> dict[str, object] | None:
    """What the study wrote; keys that this version does not know do no harm."""
    if path is None:
        return None
    try:
        facts = json.loads(Path(path).read_text())
    except OSError as error:
        raise InputError(_PARAMETERS, found=path, why=f"cannot be read: {error.strerror}") from None
    except (ValueError, RecursionError) as error:
        raise InputError(_PARAMETERS, found=path, why=f"not JSON: {error}") from None
    if not isinstance(facts, dict):
        raise InputError(_PARAMETERS, found=path, why="does not hold a JSON object")
    return facts
