"""The surroundings of one run of a program: its arguments, environment and files."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from lsmtune.records.command import CommandSpec, JsonLines, ParametersFile
from lsmtune.records.placeholders import filled, placeholders
from lsmtune.records.request import RunRequest

PARAMETERS = "trial.json"
RESULTS = "results.jsonl"
STDOUT = "stdout.log"
WORK = "work"

_NO_TRIAL = "-"  # the trial of a run that belongs to none, where a text has to say something


class MissingValueError(Exception):
    """A parameter without a value is needed; `str()` says where, and which one."""


@dataclass(frozen=True)
class Setting:
    """What a program is started with. `directory` is the one that it may write into."""

    arguments: tuple[str, ...]
    environment: Mapping[str, str]
    directory: Path
    followed: tuple[Path, ...]


def make_setting(spec: CommandSpec, request: RunRequest, environment: Mapping[str, str]) -> Setting:
    """Writes the files of the run into `request.directory` and says what to start.

    `environment` is what the program inherits. Raises MissingValueError for a parameter that is
    not in the configuration where the command cannot do without it.
    """
    directory = request.directory / WORK
    values = _values(request, directory)
    arguments = _arguments(spec, values)
    added = _added_variables(spec, values)
    if spec.parameters_file is not None:
        text = _parameters_text(spec.parameters_file, request, values)
    directory.mkdir()
    if spec.parameters_file is not None:
        path = directory / spec.parameters_file.name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    results = request.directory / RESULTS
    results.touch()
    (request.directory / PARAMETERS).write_text(_trial_text(spec, request, directory))
    own = {f"LSMTUNE_{name.upper()}": value for name, value in _run_values(request, directory)}
    own["LSMTUNE_PARAMETERS"] = str(request.directory / PARAMETERS)
    own["LSMTUNE_RESULTS"] = str(results)
    listens = isinstance(spec.results, JsonLines) and spec.results.stdout
    followed = (results, request.directory / STDOUT) if listens else (results,)
    return Setting(arguments, {**environment, **added, **own}, directory, followed)


def _run_values(request: RunRequest, directory: Path) -> tuple[tuple[str, str], ...]:
    trial = _NO_TRIAL if request.trial is None else str(request.trial)
    return (
        ("seed", str(request.seed)),
        ("directory", str(directory)),
        ("trial", trial),
        ("num", str(request.workload.num)),
    )


def _values(request: RunRequest, directory: Path) -> dict[str, str]:
    return request.config.engine_options() | dict(_run_values(request, directory))


def _arguments(spec: CommandSpec, values: Mapping[str, str]) -> tuple[str, ...]:
    found: list[str] = []
    for index, element in enumerate(spec.command):
        if isinstance(element, str):
            found.append(_filled(element, values, f"command[{index}]"))
        elif all(_has_all(text, values) for text in element):
            found += [filled(text, values) for text in element]
    return tuple(found)


def _added_variables(spec: CommandSpec, values: Mapping[str, str]) -> dict[str, str]:
    texts = spec.environment.items()
    return {name: filled(text, values) for name, text in texts if _has_all(text, values)}


def _has_all(text: str, values: Mapping[str, str]) -> bool:
    return all(name in values for name in placeholders(text))


def _filled(text: str, values: Mapping[str, str], place: str) -> str:
    try:
        return filled(text, values)
    except KeyError as error:
        raise MissingValueError(
            f"{place}: {{{error.args[0]}}} has no value in this configuration"
        ) from None


def _parameters_text(file: ParametersFile, request: RunRequest, values: Mapping[str, str]) -> str:
    if file.template is None:
        return json.dumps(dict(request.config.options), indent=2) + "\n"
    return _filled(file.template, values, f"the template of {file.name}")


def _trial_text(spec: CommandSpec, request: RunRequest, directory: Path) -> str:
    """What `lsmtune.trial` reads: only ever added to, as the program may have an older one."""
    document = {
        "parameters": dict(request.config.options),
        "seed": request.seed,
        "trial": request.trial,
        "num": request.workload.num,
        "directory": os.fspath(directory),
        "metrics": list(spec.metrics),
    }
    return json.dumps(document, indent=2) + "\n"
