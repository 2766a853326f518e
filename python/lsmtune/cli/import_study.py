"""A whole study file from what was imported and what the flags say."""

from __future__ import annotations

import math
import re
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
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

from lsmtune.cli.flags import (
    WORKLOAD_FLAG,
    assignments,
    workload_of,
)
from lsmtune.engines.importers.base import (
    ENGINE_FLAG,
    Imported,
    ImportedConfig,
    ImportedStudy,
)
from lsmtune.engines.importers.names import find_option
from lsmtune.engines.importers.nni_config import METRIC
from lsmtune.engines.library import ENGINE_KINDS
from lsmtune.engines.ready import ready_space
from lsmtune.errors import InputError
from lsmtune.model.config import OptionValue
from lsmtune.model.fields import space_parts
from lsmtune.model.files import parse_document
from lsmtune.space.parameter import Parameter
from lsmtune.space.space import Space, make_space
from lsmtune.study.build_space import space_parameters
from lsmtune.study.models import SpaceModel
from lsmtune.study.safety import flattened, unsafe_option
from lsmtune.study.template import render_study

DEFAULT_WORKLOAD = "fillrandom"
DEFAULT_TRIALS = 100


class Role(Enum):
    """What an option file is to a study."""

    BASELINE = "baseline"
    OPTIONS = "options"
    START = "start"
    STUDY = "study"


@dataclass(frozen=True)
class Wanted:
    """What the flags say."""

    role: Role | None = None
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


Study = tuple[dict[str, Any], dict[str, str], tuple[str, ...]]


def _without_repeats(
    studies: Sequence[tuple[Path, ImportedStudy]],
) -> list[tuple[Path, ImportedStudy]]:
    """`studies` without a space beside the file that names it and says more."""
    fullest = sorted(studies, key=lambda study: len(study[1].study), reverse=True)
    found: list[tuple[Path, ImportedStudy]] = []
    for path, what in fullest:
        if all(what.study.get("space") != other.study.get("space") for _, other in found):
            found.append((path, what))
    return found


def make_study(
    files: Sequence[Path], imported: Sequence[Imported], wanted: Wanted, engine: str | None
) -> Study:
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
    if wanted.role not in (None, Role.STUDY) and not configs:
        raise InputError("--as", found=wanted.role.value, why="none of the files is an option file")
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


def engine_of(files: Sequence[Path], imported: Sequence[Imported], wanted: Wanted) -> str | None:
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


def _set_engine(draft: _Draft, engine: str | None) -> None:
    """Sets `engine`, or `runner` and its objective for a program."""
    wanted = draft.wanted
    if engine is not None:
        draft.raw["engine"] = {"name": engine}
        if wanted.engine is None:
            draft.notes.append(f"engine: {engine}, to which the options belong")
    elif wanted.command is not None:
        draft.raw["runner"] = {"command": _words(wanted.command)}
        if "objective" not in draft.raw:
            draft.raw["objective"] = {"metric": METRIC, "direction": "maximize"}
            text = f"objective: no file says it: maximize what the program reports as {METRIC}"
            draft.notes.append(text)


def _words(command: str) -> list[str]:
    try:
        words = shlex.split(command)
    except ValueError as error:
        raise InputError("--command", found=command, why=str(error).lower()) from None
    if not words:
        raise InputError("--command", found=command, allowed="a program and its arguments")
    return words


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
    values, replaced = program_baseline(draft.raw)
    draft.raw["baseline"] = values
    draft.notes += [f"baseline: {name}: {why}" for name, why in replaced.items()]
    if not stated:
        text = "baseline: no file says it: the middle of each range; put there what you run today"
        draft.notes.append(text)


def _add_config(draft: _Draft, path: Path, config: ImportedConfig) -> None:
    """Puts the options of a file where its role wants them."""
    role = draft.wanted.role or Role.BASELINE
    options = _without_overlap(draft, path, config.options)
    if role is Role.START:
        inside = {n: v for n, v in options.items() if n in draft.searched()}
        for name in options.keys() - inside.keys():
            draft.notes.append(f"{path}: {name}: left out: the space does not search it")
        draft.raw.setdefault("start", []).append(inside)
        return
    if "baseline" in draft.raw:
        why = "a second baseline"
        raise InputError(str(path), why=why, allowed="one of them, or --as start")
    if role is Role.OPTIONS:
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
    for name, values in _values(draft.raw).items():
        unsafe = unsafe_option(str(draft.engine), name, durability)
        if unsafe is not None and unsafe.unsafe_values(values):
            allowed.append(name)
            text = f"allow_unsafe: {name} is allowed, as the file has it: {unsafe.reason}"
            draft.notes.append(text)
    if allowed:
        draft.raw["allow_unsafe"] = allowed


def _values(raw: Mapping[str, Any]) -> dict[str, list[OptionValue]]:
    """Every value that the study may give each option, as far as a value can be unsafe."""
    found: dict[str, list[OptionValue]] = {}
    mappings = [raw.get("options", {}), raw.get("baseline", {}), *raw.get("start", [])]
    for mapping in mappings:
        for name, value in flattened(mapping) if isinstance(mapping, Mapping) else ():
            found.setdefault(name, []).append(value)
    for name, parameter in raw["space"].items() if isinstance(raw["space"], Mapping) else ():
        values = list(parameter.get("choices", []))
        values += [special["value"] for special in parameter.get("special", [])]
        values += [
            n for n in (0, 1) if "low" in parameter and parameter["low"] <= n <= parameter["high"]
        ]
        found.setdefault(name, []).extend(values)
    return found


def program_baseline(raw: Mapping[str, Any]) -> tuple[dict[str, OptionValue], dict[str, str]]:
    """A point of the space of the study `raw`, and by parameter why a stated value is not in it.

    A space that cannot be read gives no more than was stated: the study will not load, and says
    why. Raises InputError for a space that contradicts itself.
    """
    stated = raw.get("baseline", {})
    values: dict[str, OptionValue] = {}
    replaced: dict[str, str] = {}
    try:
        space = _space_of(raw)
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


def _space_of(raw: Mapping[str, Any]) -> Space:
    document = parse_document(render_study({"space": raw["space"]}), "study.yaml")
    model = SpaceModel.model_validate(space_parts(document.data["space"]))
    return make_space(space_parameters(model, [], {}, document), document.source)


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
