"""A whole study file from what was imported and what the flags of `lsmtune import` say.

A study needs a baseline to compare with. A program of the user's has no defaults of its own, so
its baseline is what the file says, where the space holds it; the rest is the middle of each range,
and the first choice.
"""

from __future__ import annotations

import math
import re
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from optuna.distributions import (
    BaseDistribution,
    CategoricalDistribution,
    FloatDistribution,
    IntDistribution,
)
from optuna.trial import FixedTrial
from pydantic import ValidationError

from lsmtune.engines.importers import chosen_format
from lsmtune.engines.importers.base import (
    ENGINE_FLAG,
    Imported,
    ImportedConfig,
    ImportedStudy,
    ImportRequest,
    read_text,
)
from lsmtune.engines.importers.names import find_option
from lsmtune.engines.importers.nni_config import METRIC
from lsmtune.engines.library import ENGINE_KINDS
from lsmtune.engines.ready import ready_space
from lsmtune.engines.safety import flattened, unsafe_option
from lsmtune.errors import InputError
from lsmtune.model.config import OptionValue
from lsmtune.model.fields import space_parts
from lsmtune.model.files import parse_document
from lsmtune.space.parameter import Parameter
from lsmtune.space.space import make_space
from lsmtune.study.build import parse_spec
from lsmtune.study.build_space import space_parameters
from lsmtune.study.models import SpaceModel
from lsmtune.study.template import render_options, render_study
from lsmtune.workloads.choice import WORKLOAD_FLAG, assignments, workload_of

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


@dataclass
class _Draft:
    raw: dict[str, Any]
    notes: list[str]
    wanted: Wanted

    @property
    def engine(self) -> str | None:
        name = (self.raw.get("engine") or {}).get("name")
        return None if name is None else str(name)

    def searched(self) -> list[str]:
        """Names of the parameters of the space."""
        space = self.raw["space"]
        if isinstance(space, str):
            return [p.name for p in ready_space(space, "space", "").parameters]
        return list(space)


def import_files(
    files: Sequence[Path],
    format_name: str | None,
    wanted: Wanted,
    output: Path,
    *,
    keep_defaults: bool = False,
) -> tuple[dict[str, Any], str]:
    """What `lsmtune import --json` prints, and the text of the study file or of the options.

    Args:
        files: What to import.
        format_name: The format of all files; found out of each when None.
        wanted: What the flags say.
        output: Where the study file will be: the paths in it are relative to that.
        keep_defaults: Keep options that have the engine's default value anyway.

    Raises:
        InputError: A file that cannot be read, or a study that would not load.
    """

    def read(engine: str | None) -> list[Imported]:
        formats.clear()
        imported = []
        for path in files:
            text = read_text(path)
            format_ = chosen_format(text, path, format_name)
            formats.append({"file": str(path), "format": format_.name})
            imported.append(format_.read(ImportRequest(text, path, engine, keep_defaults)))
        return imported

    formats: list[dict[str, str]] = []
    imported = read(wanted.engine)
    configs = [what for what in imported if isinstance(what, ImportedConfig)]
    if wanted.role is None and len(configs) == len(imported):
        if len(configs) > 1:
            allowed = "one option file, or --as start for several"
            raise InputError(str(files[1]), why="a second option file", allowed=allowed)
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
    study, comments, notes = _make_study(files, imported, wanted, engine)
    text = render_study(
        study, comments, tuple(f"Imported by lsmtune from {path}" for path in files)
    )
    try:
        parse_spec(text, output)
    except InputError as error:  # it is one of the file that was imported
        names = ", ".join(map(str, files))
        raise InputError(names, why=f"makes no study that loads: {error}") from None
    return {"files": formats, "study": study, "notes": list(notes)}, text


def _engine_of(files: Sequence[Path], imported: Sequence[Imported], wanted: Wanted) -> str | None:
    """The engine that the flags or the files say, or that has all names of the space.

    None for a program of the user's. Raises InputError for two engines, and when none is known.
    """
    engines = {what.engine for what in imported if isinstance(what, ImportedConfig)}
    engines |= {wanted.engine} if wanted.engine else set()
    if len(engines) > 1:
        found = ", ".join(sorted(engines))
        raise InputError(str(files[-1]), why="files of two engines", found=found)
    if wanted.command is not None and engines:
        why = "a program stands in the place of an engine"
        raise InputError("--command", why=why, allowed=f"no {ENGINE_FLAG}, and no option file")
    if engines:
        return engines.pop()
    studies = [what.study for what in imported if isinstance(what, ImportedStudy)]
    if wanted.command is not None or any("runner" in study for study in studies):
        return None
    names = [n for study in studies for n in (*study["space"], *study.get("options", {}))]
    for engine in ENGINE_KINDS:
        if all(find_option(engine, name) is not None for name in names):
            return engine
    strange = [n for n in names if all(find_option(e, n) is None for e in ENGINE_KINDS)]
    why = f"missing, and {', '.join(strange[:3] or names[:3])} do not tell it"
    allowed = f"{', '.join(ENGINE_KINDS)}; or --command for a program of your own"
    raise InputError(str(files[0]), ENGINE_FLAG, why=why, allowed=allowed)


def _make_study(
    files: Sequence[Path], imported: Sequence[Imported], wanted: Wanted, engine: str | None
) -> tuple[dict[str, Any], dict[str, str], tuple[str, ...]]:
    """The fields of a study file, comments on them, and notes: those of the files and our own.

    Raises InputError for two spaces or two baselines, and for a role without an option file.
    """
    named = list(zip(files, imported, strict=True))
    studies = _without_repeats(
        [(path, what) for path, what in named if isinstance(what, ImportedStudy)]
    )
    configs = [(path, what) for path, what in named if isinstance(what, ImportedConfig)]
    if len(studies) > 1:
        raise InputError(str(studies[1][0]), why="a second space", allowed="one of them")
    if wanted.role not in (None, "study") and not configs:
        raise InputError("--as", found=wanted.role, why="none of the files is an option file")
    notes = [note for what in imported for note in what.notes]
    fields = dict(studies[0][1].study) if studies else {}
    name = re.sub(r"[^A-Za-z0-9 ._-]|^[^A-Za-z0-9]+", "", files[0].stem)[:100] or "imported"
    draft = _Draft({"version": 1, "name": name, **fields}, notes, wanted)
    _set_engine(draft, engine)
    if not studies:
        draft.raw["space"] = f"{draft.engine}-basic"
        notes.append(f"space: no file has one: the ready space {draft.engine}-basic")
    _add_workload(draft)
    _add_budget(draft)
    for path, config in configs:
        _add_config(draft, path, config)
    if "runner" in draft.raw:
        _add_program_baseline(draft)
    if wanted.seed:
        draft.raw["seed"] = wanted.seed
    _allow_unsafe(draft)
    return draft.raw, dict(studies[0][1].comments) if studies else {}, tuple(notes)


def _without_repeats(
    studies: Sequence[tuple[Path, ImportedStudy]],
) -> list[tuple[Path, ImportedStudy]]:
    """`studies` without a space beside the file that names it and says more."""
    kept: list[tuple[Path, ImportedStudy]] = []
    for path, what in sorted(studies, key=lambda study: len(study[1].study), reverse=True):
        if all(what.study.get("space") != other.study.get("space") for _, other in kept):
            kept.append((path, what))
    return kept


def _set_engine(draft: _Draft, engine: str | None) -> None:
    """Sets `engine`, or `runner` and its objective for a program."""
    wanted = draft.wanted
    if engine is not None:
        draft.raw["engine"] = {"name": engine}
        if wanted.engine is None:
            draft.notes.append(f"engine: {engine}, to which the options belong")
    elif wanted.command is not None:
        try:
            words = shlex.split(wanted.command)
        except ValueError as error:
            raise InputError("--command", found=wanted.command, why=str(error).lower()) from None
        if not words:
            allowed = "a program and its arguments"
            raise InputError("--command", found=wanted.command, allowed=allowed)
        draft.raw["runner"] = {"command": words}
        if "objective" not in draft.raw:
            draft.raw["objective"] = {"metric": METRIC, "direction": "maximize"}
            text = f"objective: no file says it: maximize what the program reports as {METRIC}"
            draft.notes.append(text)


def _add_workload(draft: _Draft) -> None:
    wanted = draft.wanted
    if "runner" in draft.raw:
        if wanted.workload is not None:
            why = "the workload is the program's"
            raise InputError("--workload", found=wanted.workload, why=why)
        return
    if wanted.workload is None:
        draft.notes.append(f"workload: no file says it: {DEFAULT_WORKLOAD}, see --workload")
    name = wanted.workload or DEFAULT_WORKLOAD
    workload_of(name, wanted.workload_set)
    draft.raw["workload"] = {"name": name, **assignments(WORKLOAD_FLAG, wanted.workload_set)}


def _add_budget(draft: _Draft) -> None:
    wanted = draft.wanted
    stated = {"time": wanted.budget, "trials": wanted.trials}
    budget = draft.raw.get("budget", {}) | {k: v for k, v in stated.items() if v is not None}
    if not budget:
        budget = {"trials": DEFAULT_TRIALS}
        text = f"budget: no file says it: {DEFAULT_TRIALS} trials, see --budget and --trials"
        draft.notes.append(text)
    draft.raw["budget"] = budget


def _add_program_baseline(draft: _Draft) -> None:
    stated = "baseline" in draft.raw
    values, replaced = _program_baseline(draft.raw)
    draft.raw["baseline"] = values
    draft.notes += [f"baseline: {name}: {why}" for name, why in replaced.items()]
    if not stated:
        text = "baseline: no file says it: the middle of each range; put there what you run today"
        draft.notes.append(text)


def _add_config(draft: _Draft, path: Path, config: ImportedConfig) -> None:
    """Puts the options of a file where its role wants them."""
    options = _without_overlap(draft, path, config.options)
    if draft.wanted.role == "start":
        inside = {n: v for n, v in options.items() if n in draft.searched()}
        for name in options.keys() - inside.keys():
            draft.notes.append(f"{path}: {name}: left out: the space does not search it")
        draft.raw.setdefault("start", []).append(inside)
        return
    if "baseline" in draft.raw:
        why = "a second baseline"
        raise InputError(str(path), why=why, allowed="one of them, or --as start")
    if draft.wanted.role == "options":
        fixed = {n: v for n, v in options.items() if not _overlaps(n, draft.searched())}
        options = {name: value for name, value in options.items() if name not in fixed}
        draft.raw["options"] = draft.raw.get("options", {}) | fixed
        for name in options:
            draft.notes.append(f"{path}: {name}: searched, so under baseline, not under options")
    draft.raw["baseline"] = options or "default"


def _without_overlap(
    draft: _Draft, path: Path, options: Mapping[str, OptionValue]
) -> dict[str, OptionValue]:
    """`options` less those that the space holds still."""
    fixed = list(draft.raw.get("options", {}))
    for name in options:
        if _overlaps(name, fixed):
            draft.notes.append(f"{path}: {name}: left out: the space sets it to one value")
    return {name: value for name, value in options.items() if not _overlaps(name, fixed)}


def _overlaps(name: str, others: Sequence[str]) -> bool:
    return any(
        other == name or other.startswith(f"{name}.") or name.startswith(f"{other}.")
        for other in others
    )


def _allow_unsafe(draft: _Draft) -> None:
    """Allows the unsafe options that were imported, and says so: they are the user's own."""
    if draft.engine is None:
        return
    workload = draft.raw["workload"]
    texts = [f"{k}={v}" for k, v in workload.items() if k != "name"]
    durability = workload_of(workload["name"], texts).durability
    allowed = []
    for name, values in _possible_values(draft.raw).items():
        unsafe = unsafe_option(str(draft.engine), name, durability)
        if unsafe is not None and unsafe.unsafe_values(values):
            allowed.append(name)
            text = f"allow_unsafe: {name} is allowed, as the file has it: {unsafe.reason}"
            draft.notes.append(text)
    if allowed:
        draft.raw["allow_unsafe"] = allowed


def _possible_values(raw: Mapping[str, Any]) -> dict[str, list[OptionValue]]:
    """Every value that the study may give each option, as far as a value can be unsafe."""
    values: dict[str, list[OptionValue]] = {}
    mappings = [raw.get("options", {}), raw.get("baseline", {}), *raw.get("start", [])]
    for mapping in mappings:
        for name, value in flattened(mapping) if isinstance(mapping, Mapping) else ():
            values.setdefault(name, []).append(value)
    for name, parameter in raw["space"].items() if isinstance(raw["space"], Mapping) else ():
        searched = values.setdefault(name, [])
        searched += parameter.get("choices", [])
        searched += [special["value"] for special in parameter.get("special", [])]
        if "low" in parameter:
            searched += [n for n in (0, 1) if parameter["low"] <= n <= parameter["high"]]
    return values


def _program_baseline(raw: Mapping[str, Any]) -> tuple[dict[str, OptionValue], dict[str, str]]:
    """A point of the space of the study `raw`, and by parameter why a stated value is not in it.

    A space that cannot be read gives no more than was stated: the study will not load, and says
    why. Raises InputError for a space that contradicts itself.
    """
    stated = raw.get("baseline", {})
    values: dict[str, OptionValue] = {}
    replaced: dict[str, str] = {}
    try:
        document = parse_document(render_study({"space": raw["space"]}), "study.yaml")
        model = SpaceModel.model_validate(space_parts(document.data["space"]))
        space = make_space(space_parameters(model, [], {}))
    except ValidationError:
        return dict(stated), {}
    for parameter in space.evaluation_order:
        if not all(condition.holds(values) for condition in parameter.conditions):
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
    variables = {
        variable: 1.0 if variable == parameter.selector else _middle(distribution)
        for variable, distribution in parameter.distributions().items()
    }
    # A selector of 1 picks the range, not a special value.
    return parameter.suggest(FixedTrial(variables))


def _middle(distribution: BaseDistribution) -> Any:
    """The middle of a distribution, on its scale and its steps."""
    if isinstance(distribution, CategoricalDistribution):
        return distribution.choices[0]
    if not isinstance(distribution, FloatDistribution | IntDistribution):
        raise TypeError(f"no middle of {distribution}")
    low, high, step = distribution.low, distribution.high, distribution.step
    middle = math.sqrt(low * high) if distribution.log else (low + high) / 2
    if step is not None:
        middle = low + math.floor((middle - low) / step) * step
    return int(middle) if isinstance(distribution, IntDistribution) else middle
