"""A whole study file from what was imported and what the flags of `lsmtune import` say.

A study needs a baseline to compare with. A program of the user's has no defaults of its own, so
its baseline is what the file says, where the space holds it; the rest is the middle of each range,
and the first choice.
"""

from __future__ import annotations

import math
import re
import shlex
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from optuna.distributions import FloatDistribution, IntDistribution
from pydantic import ValidationError

from lsmtune.engines.formats import chosen_format
from lsmtune.engines.formats.base import (
    ENGINE_FLAG,
    TO_IMPORT,
    Imported,
    ImportedConfig,
    ImportedStudy,
    ImportRequest,
)
from lsmtune.engines.formats.db_bench import engine_of, find_option
from lsmtune.engines.formats.nni_config import METRIC
from lsmtune.engines.library import ENGINE_KINDS
from lsmtune.engines.ready import ready_space
from lsmtune.engines.safety import unsafe_reason
from lsmtune.errors import InputError
from lsmtune.model.config import OptionValue
from lsmtune.model.fields import space_parts
from lsmtune.model.files import parse_document
from lsmtune.model.request import LIMITS_DEFAULT
from lsmtune.model.text import read_text
from lsmtune.space.parameter import Parameter
from lsmtune.space.space import make_space
from lsmtune.study.build import parse_spec, values_used
from lsmtune.study.build_space import space_parameters
from lsmtune.study.models import SpaceModel
from lsmtune.study.template import render_options, render_study
from lsmtune.units import format_bytes
from lsmtune.workloads.choice import WORKLOAD_FLAG, assignments, stated_workload
from lsmtune.workloads.stated import FAMILIES, WORKLOAD_NAMES

DEFAULT_WORKLOAD = "fillrandom"
DEFAULT_TRIALS = 100


@dataclass(frozen=True)
class Wanted:
    """What the flags say. `role` is what an option file is to the study.

    That is `baseline`, `options` (the fixed base) or `start`; `study` stands for baseline, and
    None for no study unless one of the files is a space.
    """

    role: str | None = None
    engine: str | None = None
    command: str | None = None
    workload: str | None = None
    workload_set: tuple[str, ...] = ()
    budget: str | None = None
    trials: int | None = None
    seed: int = 0
    memory: str | None = None


def import_files(
    files: Sequence[Path],
    format_name: str | None,
    wanted: Wanted,
    output: Path,
    *,
    keep_defaults: bool = False,
) -> tuple[dict[str, Any], str]:
    """What `lsmtune import --json` prints, and the text of the study file or of the options.

    The format of each file is found out where there is no `format_name`. Paths in the study file
    are relative to `output`, where it will be. `keep_defaults`: also those options that have the
    engine's default anyway. Raises InputError for a file that cannot be read, and for a study that
    would not load.
    """
    texts = [(path, read_text(path, TO_IMPORT)) for path in files]
    chosen = [chosen_format(text, path, format_name) for path, text in texts]

    def read(engine: str | None) -> list[Imported]:
        requests = (ImportRequest(text, path, engine, keep_defaults) for path, text in texts)
        return [each.read(request) for each, request in zip(chosen, requests, strict=True)]

    formats = [{"file": str(f), "format": each.name} for f, each in zip(files, chosen, strict=True)]
    imported = read(wanted.engine)
    configs = [what for what in imported if isinstance(what, ImportedConfig)]
    if wanted.role is None and len(configs) == len(imported):
        if len(configs) > 1:
            allowed = "one option file, or --as start for several"
            raise InputError(str(files[1]), why="a second option file", allowed=allowed)
        _check_no_study(wanted)
        (config,) = configs
        document = {
            "files": formats,
            "engine": config.engine,
            "version": config.version,
            "options": dict(config.options),
            "notes": list(config.notes),
        }
        return document, render_options(config.options, config.engine)
    engine = _engine_of(files, imported, wanted)
    if engine != wanted.engine:  # now that it is known, the names of a space can be read
        imported = read(engine)
    draft = _Draft(files, imported, wanted, engine)
    header = tuple(f"Imported by lsmtune from {path}" for path in files)
    text = render_study(draft.raw, draft.comments, header)
    try:
        parse_spec(text, output)
    except InputError as error:  # it is one of the file that was imported
        names = ", ".join(map(str, files))
        raise InputError(names, why=f"makes no study that loads: {error}") from None
    return {"files": formats, "study": draft.raw, "notes": draft.notes}, text


def _check_no_study(wanted: Wanted) -> None:
    """Raises InputError for a flag that says something of a study, where none is made."""
    for flag, value in (
        ("--command", wanted.command),
        ("--workload", wanted.workload),
        (WORKLOAD_FLAG, wanted.workload_set or None),
        ("--budget", wanted.budget),
        ("--trials", wanted.trials),
        ("--seed", wanted.seed or None),
        ("--memory", wanted.memory),
    ):
        if value is not None:
            why = "has no effect where an option file becomes options alone"
            raise InputError(flag, why=why, allowed="--as baseline, options or start for a study")


def _engine_of(files: Sequence[Path], imported: Sequence[Imported], wanted: Wanted) -> str | None:
    """The engine that the flags or the files say, or that has all names of the space.

    None for a program of the user's. Raises InputError for two engines, and when none is known.
    """
    engines = {what.engine for what in imported if isinstance(what, ImportedConfig)}
    engines |= {wanted.engine} if wanted.engine else set()
    if len(engines) > 1:
        both = ", ".join(sorted(engines))
        raise InputError(str(files[-1]), why="files of two engines", found=both)
    if wanted.command is not None and engines:
        why = "a program stands in the place of an engine"
        raise InputError("--command", why=why, allowed=f"no {ENGINE_FLAG}, and no option file")
    if engines:
        return engines.pop()
    studies = [what.study for what in imported if isinstance(what, ImportedStudy)]
    if wanted.command is not None or any("runner" in study for study in studies):
        return None
    names = [n for study in studies for n in (*study["space"], *study.get("options", {}))]
    if (engine := engine_of(names)) is not None:
        return engine
    strange = [n for n in names if all(find_option(e, n) is None for e in ENGINE_KINDS)]
    why = f"missing, and {', '.join(strange[:3] or names[:3])} do not tell it"
    allowed = f"{', '.join(ENGINE_KINDS)}; or --command for a program of your own"
    raise InputError(str(files[0]), ENGINE_FLAG, why=why, allowed=allowed)


class _Draft:
    """The fields `raw` of a study file, `comments` on them, and `notes`: of the files and our own.

    Raises InputError for two spaces or two baselines, and for a role without an option file.
    """

    def __init__(
        self,
        files: Sequence[Path],
        imported: Sequence[Imported],
        wanted: Wanted,
        engine: str | None,
    ) -> None:
        named = list(zip(files, imported, strict=True))
        studies = [(path, what) for path, what in named if isinstance(what, ImportedStudy)]
        configs = [(path, what) for path, what in named if isinstance(what, ImportedConfig)]
        # A space beside the file that names it and says more is no second one.
        kept: list[tuple[Path, ImportedStudy]] = []
        for path, what in sorted(studies, key=lambda study: len(study[1].study), reverse=True):
            if all(what.study.get("space") != other.study.get("space") for _, other in kept):
                kept.append((path, what))
        if len(kept) > 1:
            raise InputError(str(kept[1][0]), why="a second space", allowed="one of them")
        if wanted.role not in (None, "study") and not configs:
            raise InputError("--as", found=wanted.role, why="none of the files is an option file")
        self.wanted = wanted
        self.notes = [note for what in imported for note in what.notes]
        self.comments = dict(kept[0][1].comments) if kept else {}
        letters = re.sub(r"[^A-Za-z0-9 ._-]", "", files[0].stem)
        name = letters.lstrip(" ._-")[:100] or "imported"
        fields = kept[0][1].study if kept else {}
        self.raw: dict[str, Any] = {"version": 1, "name": name, **fields}
        self._set_engine(engine)
        if not kept:
            space = f"{self.raw['engine']['name']}-basic"
            self.raw["space"] = space
            self.notes.append(f"space: no file has one: the ready space {space}")
        self._set_workload()
        stated = {"time": wanted.budget, "trials": wanted.trials}
        budget = self.raw.get("budget", {}) | {k: v for k, v in stated.items() if v is not None}
        if not budget:
            text = f"budget: no file says it: {DEFAULT_TRIALS} trials, see --budget and --trials"
            self.notes.append(text)
        self.raw["budget"] = budget or {"trials": DEFAULT_TRIALS}
        if wanted.memory is not None:
            self.raw["limits"] = {**self.raw.get("limits", {}), "memory": wanted.memory}
        elif "engine" in self.raw:
            assumed = format_bytes(LIMITS_DEFAULT.memory_bytes)
            text = f"no file says it: {assumed}; what you deploy on has another one, see --memory"
            self.notes.append(f"limits.memory: {text}")
        for path, config in configs:
            self._add_config(path, config)
        if "runner" in self.raw:
            self._set_program_baseline()
        if wanted.seed:
            self.raw["seed"] = wanted.seed
        if "engine" in self.raw:
            self._allow_unsafe(self.raw["engine"]["name"])

    def _set_engine(self, engine: str | None) -> None:
        """Sets `engine`, or `runner` and its objective for a program."""
        command = self.wanted.command
        if engine is not None:
            self.raw["engine"] = {"name": engine}
            if self.wanted.engine is None:
                self.notes.append(f"engine: {engine}, to which the options belong")
        elif command is not None:
            try:
                words = shlex.split(command)
            except ValueError as error:
                raise InputError("--command", found=command, why=str(error).lower()) from None
            if not words:
                raise InputError("--command", found=command, allowed="a program and its arguments")
            self.raw["runner"] = {"command": words}
            if "objective" not in self.raw:
                self.raw["objective"] = {"metric": METRIC, "direction": "maximize"}
                text = f"objective: no file says it: maximize what the program reports as {METRIC}"
                self.notes.append(text)

    def _set_workload(self) -> None:
        name, parameters = self.wanted.workload, self.wanted.workload_set
        stated = self.raw.pop("workload", {})
        if "runner" in self.raw:
            why = "the workload is the program's"
            if name is not None:
                raise InputError("--workload", found=name, why=why)
            if parameters:
                raise InputError(WORKLOAD_FLAG, found=parameters[0], why=why)
            return
        fields: dict[str, Any] = {}
        given = assignments(WORKLOAD_FLAG, parameters)
        if name is None and stated.get("name") in WORKLOAD_NAMES:
            name = stated["name"]
            idle = FAMILIES[name].no_effect  # db_bench takes them, and does nothing with them
            self.notes += [f"workload: {n}: left out: {idle[n]}" for n in stated if n in idle]
            fields = {n: v for n, v in stated.items() if n not in ("name", *given, *idle)}
        elif name is None:
            name = DEFAULT_WORKLOAD
            why = f"{stated['name']} is none here" if stated else "no file says it"
            self.notes.append(f"workload: {why}: {name}, see --workload")
        stated_workload(name, (*(f"{n}={v}" for n, v in fields.items()), *parameters))
        plain = {n: int(v) if v.isdecimal() else v for n, v in given.items()}
        self.raw["workload"] = {"name": name, **fields, **plain}

    def _set_program_baseline(self) -> None:
        stated = "baseline" in self.raw
        self.raw["baseline"], replaced = _program_baseline(self.raw)
        self.notes += [f"baseline: {name}: {why}" for name, why in replaced.items()]
        if not stated:
            text = "no file says it: the middle of each range; put there what you run today"
            self.notes.append(f"baseline: {text}")

    def _add_config(self, path: Path, config: ImportedConfig) -> None:
        """Puts the options of a file where its role wants them."""
        space, notes = self.raw["space"], self.notes
        searched = list(space)
        if isinstance(space, str):
            searched = [p.name for p in ready_space(space, "space", "").parameters]
        options = {}
        for name, value in config.options.items():
            if _overlaps(name, self.raw.get("options", {})):
                notes.append(f"{path}: {name}: left out: the space sets it to one value")
            else:
                options[name] = value
        if self.wanted.role == "start":
            inside = {n: v for n, v in options.items() if n in searched}
            why = "left out: the space does not search it"
            notes += [f"{path}: {name}: {why}" for name in options if name not in inside]
            self.raw.setdefault("start", []).append(inside)
            return
        if "baseline" in self.raw:
            allowed = "one of them, or --as start"
            raise InputError(str(path), why="a second baseline", allowed=allowed)
        if self.wanted.role == "options":
            fixed = {n: v for n, v in options.items() if not _overlaps(n, searched)}
            options = {name: value for name, value in options.items() if name not in fixed}
            self.raw["options"] = self.raw.get("options", {}) | fixed
            why = "searched, so under baseline, not under options"
            notes += [f"{path}: {name}: {why}" for name in options]
        self.raw["baseline"] = options or "default"

    def _allow_unsafe(self, engine: str) -> None:
        """Allows the unsafe options that were imported, and says so: they are the user's own."""
        workload = self.raw["workload"]
        texts = [f"{k}={v}" for k, v in workload.items() if k != "name"]
        durability = stated_workload(workload["name"], texts).workload.durability
        named = [self.raw.get(field) for field in ("options", "baseline")]
        named += self.raw.get("start", [])
        stated = {str(n): each for n, each in enumerate(named) if isinstance(each, Mapping)}
        allowed: dict[str, str] = {}
        for _, name, value in values_used(stated, _parameters(self.raw)):
            if reason := unsafe_reason(engine, name, value, durability):
                allowed.setdefault(name, reason)
        for name, reason in allowed.items():
            text = f"allow_unsafe: {name} is allowed, as the file has it: {reason}"
            self.notes.append(text)
        if allowed:
            self.raw["allow_unsafe"] = list(allowed)


def _overlaps(name: str, names: Iterable[str]) -> bool:
    return any(
        other == name or other.startswith(f"{name}.") or name.startswith(f"{other}.")
        for other in names
    )


def _parameters(raw: Mapping[str, Any]) -> list[Parameter]:
    """Those that the study `raw` has beside a ready space.

    None of a space that cannot be read: the study will not load, and says why.
    """
    try:
        document = parse_document(render_study({"space": raw["space"]}), "study.yaml")
        model = SpaceModel.model_validate(space_parts(document.data["space"]))
        return space_parameters(model, [], {})
    except (ValidationError, InputError):
        return []


def _program_baseline(raw: Mapping[str, Any]) -> tuple[dict[str, OptionValue], dict[str, str]]:
    """A point of the space of the study `raw`, and by parameter why a stated value is not in it.

    Without parameters it is no more than was stated. Raises InputError for a space that contradicts
    itself.
    """
    stated, parameters = raw.get("baseline", {}), _parameters(raw)
    if not parameters:
        return dict(stated), {}
    values: dict[str, OptionValue] = {}
    replaced: dict[str, str] = {}
    for parameter in make_space(parameters).evaluation_order:
        if not parameter.is_active(values):
            continue
        value = stated.get(parameter.name)
        if value is None or not parameter.contains(value):
            taken = _nearest(parameter, value)
            if value is not None:
                replaced[parameter.name] = f"{taken} in place of {value}, which is not in the space"
            value = taken
        values[parameter.name] = value
    return values, replaced


def _nearest(parameter: Parameter, value: OptionValue | None) -> OptionValue:
    """The bin nearest to `value` where there are bins to choose from, else the middle."""
    bins = [] if parameter.numbers is None else parameter.numbers.binned
    near = [number for number in bins if parameter.contains(number)]
    if isinstance(value, int | float) and near:
        return min(near, key=lambda number: abs(number - value))
    drawn = parameter.distributions()[parameter.variable]
    if not isinstance(drawn, FloatDistribution | IntDistribution):
        return parameter.choices[0]
    low, high, step = drawn.low, drawn.high, drawn.step
    middle = math.sqrt(low * high) if drawn.log else (low + high) / 2
    if step is not None:
        middle = low + math.floor((middle - low) / step) * step
    return parameter.value_of(int(middle) if isinstance(drawn, IntDistribution) else middle)
