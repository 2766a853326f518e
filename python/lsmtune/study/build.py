"""Study files: text to Spec, with the checks that span several fields, and their JSON Schema.

`study.models` has the fields themselves; `study.build_goal` and `study.build_space` check parts.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lsmtune.engines.ready import ReadySpace
from lsmtune.engines.safety import (
    DURABILITY_OPTIONS,
    check_allowance,
    flattened,
    unsafe_option,
    weakest,
)
from lsmtune.engines.workload_options import with_merge_operator, with_page_cache
from lsmtune.errors import FieldError, InputError
from lsmtune.model.config import Config, OptionValue
from lsmtune.model.files import Document, json_schema, parse_document, read_as, read_text
from lsmtune.model.goal import WeightedWorkload
from lsmtune.model.metrics import METRICS, PHASE_METRICS, SHORT_NAMES
from lsmtune.model.workload import Durability, PageCache, PhaseKind
from lsmtune.space.constraint import Constraint
from lsmtune.space.parameter import OPTION_NAME_ALLOWED, Parameter, is_option_name
from lsmtune.space.space import Space, make_space
from lsmtune.stats.sequential import pairs_at_least
from lsmtune.study.build_goal import (
    PROGRAM,
    check_constraints_told,
    engine_of,
    make_command,
    make_goal,
    make_program,
    make_workloads,
    own_command,
    reported_metrics,
)
from lsmtune.study.build_space import (
    check_proof,
    make_constraints,
    make_pruner_spec,
    make_sampler_spec,
    named_config,
    outcome_only,
    ready_spaces,
    space_parameters,
)
from lsmtune.study.models import StudyModel
from lsmtune.study.spec import Spec
from lsmtune.units import format_duration


def build_spec(study: StudyModel, document: Document, path: Path, text: str) -> Spec:
    """The Spec of `study`. Raises `InputError` whose field is dotted, of this file a FieldError."""
    engine, runner = engine_of(study), own_command(study)
    stated = make_workloads(study, path)
    workloads = stated.weighted
    goal = make_goal(study, workloads)
    ready = ready_spaces(study.space, engine, "")
    baseline = named_config(study.baseline, engine, path, "baseline")
    fixed = named_config(study.options, engine, path, "options")
    start = [
        named_config(named, engine, path, f"start[{index}]")
        for index, named in enumerate(study.start)
    ]
    held = _held(_fixed(fixed.config, ready), engine, workloads)
    parts = _Parts(
        engine=engine,
        baseline=baseline.config,
        fixed=held,
        space=make_space(space_parameters(study.space, ready, held.options, document), ""),
        start=tuple(named.config for named in start),
    )
    _check_option_names(parts)
    if study.budget.time_s is None and study.budget.trials is None:
        raise FieldError("budget", why="is empty", allowed="time, trials, or both")
    _check_deadlines(study)
    check_proof(study.proof)
    durability = weakest(weighted.workload.durability for weighted in workloads)
    return Spec(
        name=study.name,
        path=path,
        text=text,
        engine_name=engine,
        engine_library=_library(study, path),
        workloads=workloads,
        goal=goal,
        baseline=parts.baseline,
        fixed=dict(parts.fixed.options),
        space=parts.space,
        sampler=make_sampler_spec(study.sampler, parts.space, goal, study.seed),
        budget=study.budget,
        limits=study.limits,
        proof=study.proof,
        noise=study.noise,
        databases=study.databases,
        seed=study.seed,
        unsafe_options=_unsafe_options(study, parts, durability),
        constraints=_constraints(study, parts, ready, workloads),
        pick_where=_pick_where(study, parts, workloads),
        start=parts.start,
        notes=(
            *stated.notes,
            *(note for named in (baseline, fixed, *start) for note in named.notes),
        ),
        stated_defaults={
            name: model.default
            for name, model in study.space.parameters.items()
            if model.default is not None
        },
        pruner=make_pruner_spec(study.pruner, goal, workloads, program=runner is not None),
        command=None
        if runner is None
        else make_command(runner, goal, parts.space, parts.baseline, path),
        program=make_program(study, goal, workloads, path),
    )


def _held(fixed: Config, engine: str, workloads: Sequence[WeightedWorkload]) -> Config:
    """`fixed` with the options that the workloads stand for, in every run."""
    asked = _page_cache(workloads)
    field = "workload.page_cache" if len(workloads) == 1 else "workloads[0].page_cache"
    config = with_page_cache(fixed, engine, asked, "", field)
    for weighted in workloads:
        config = with_merge_operator(config, engine, weighted.workload, "")
    return config


def _page_cache(workloads: Sequence[WeightedWorkload]) -> PageCache:
    """What all workloads ask of the page cache: `direct` is a matter of options, of every run."""
    asked = {weighted.workload.page_cache for weighted in workloads}
    if PageCache.DIRECT in asked and len(asked) > 1:
        why = "is direct in some workloads only; it is set by options, which all of them share"
        raise FieldError("workloads", why=f"page_cache {why}")
    return PageCache.DIRECT if PageCache.DIRECT in asked else PageCache.WARM


def _check_deadlines(study: StudyModel) -> None:
    """A run ends at the study's deadline, whatever that of its size is."""
    limit_s = study.limits.deadline_s
    for index, deadline_s in enumerate(study.pruner.rungs.deadlines):
        if deadline_s > limit_s:
            field = f"pruner.rungs.deadlines[{index}]"
            allowed = f"at most limits.deadline, {format_duration(limit_s)}"
            raise FieldError(field, found=format_duration(deadline_s), allowed=allowed)


@dataclass(frozen=True)
class _Parts:
    """The options of a study, wherever they come from: checks look at all of them together."""

    engine: str
    baseline: Config
    fixed: Config
    space: Space
    start: tuple[Config, ...]

    def runs(self) -> list[tuple[str, Mapping[str, OptionValue]]]:
        """As `configs`, without those that only give values to parameters of the space."""
        return self.configs()[:2]

    def configs(self) -> list[tuple[str, Mapping[str, OptionValue]]]:
        """The field and the options of each configuration."""
        starts = [(f"start[{index}]", config.options) for index, config in enumerate(self.start)]
        return [("options", self.fixed.options), ("baseline", self.baseline.options), *starts]


def _fixed(own: Config, ready: Sequence[ReadySpace]) -> Config:
    """The options of every run: those that ready spaces stand on, and over them the study's own."""
    below = {name: value for space in ready for name, value in space.fixed.items()}
    return Config({**below, **own.options}, own.label)


def _metric_names(study: StudyModel, workloads: Sequence[WeightedWorkload]) -> tuple[str, ...]:
    """What constraints may name: metrics of every phase, of one (`put.stall_s`), and reported."""
    phases = {
        phase.name
        for weighted in workloads
        for phase in weighted.workload.phases
        if phase.kind is PhaseKind.MEASURE
    }
    dotted = [f"{phase}.{metric}" for phase in sorted(phases) for metric in PHASE_METRICS]
    return (*METRICS, *SHORT_NAMES, *dotted, *reported_metrics(study))


def _constraints(
    study: StudyModel,
    parts: _Parts,
    ready: Sequence[ReadySpace],
    workloads: Sequence[WeightedWorkload],
) -> tuple[Constraint, ...]:
    given = [options for _, options in parts.configs()]
    texts: list[tuple[Sequence[str], str]] = [(study.constraints, "constraints")]
    texts += [(space.constraints, f"space.use ({space.name})") for space in ready]
    metrics = _metric_names(study, workloads)
    made: dict[str, Constraint] = {}
    for several, field in texts:
        constraints = make_constraints(several, field, parts.engine, parts.space, given, metrics)
        check_constraints_told(study, constraints, field, workloads)
        for constraint in constraints:
            made.setdefault(constraint.text, constraint)
    return tuple(made.values())


def _pick_where(
    study: StudyModel, parts: _Parts, workloads: Sequence[WeightedWorkload]
) -> tuple[Constraint, ...]:
    where = study.pick.where if study.pick is not None else []
    given = [options for _, options in parts.configs()]
    field = "pick.where"
    metrics = _metric_names(study, workloads)
    made = make_constraints(where, field, parts.engine, parts.space, given, metrics)
    check_constraints_told(study, made, field, workloads)
    return outcome_only(made, field)


def _library(study: StudyModel, path: Path) -> Path | None:
    """The library's path, which a study file states from where it lies itself."""
    if study.engine is None or study.engine.library is None:
        return None
    named = study.engine.library
    try:
        return path.parent.absolute() / Path(named).expanduser()
    except RuntimeError:  # ~ of a user that is none
        allowed = "the path of a library"
        raise FieldError("engine.library", found=named, allowed=allowed) from None


def _check_option_names(parts: _Parts) -> None:
    fixed = _values_of(parts.fixed.options)
    space = ("space", {p.name: tuple(p.choices) for p in parts.space.parameters})
    runs = [(field, _values_of(given)) for field, given in parts.runs()[1:]]
    for field, named in [*runs, space]:
        for name, values in named.items():
            clash = _clash(name, values, fixed)
            if clash:
                raise FieldError(f"{field}.{name}", why=f"also set by options.{clash}")
    for field, named in [*((f, _values_of(given)) for f, given in parts.configs()), space]:
        for name, values in named.items():
            if not is_option_name(name):
                why = "not an option's name"
                raise FieldError(f"{field}.{name}", why=why, allowed=OPTION_NAME_ALLOWED)
            if parts.engine != PROGRAM and _is_durability(name):
                why = "durability belongs to the workload"
                allowed = "workload.durability: sync, wal or none"
                raise FieldError(f"{field}.{name}", why=why, allowed=allowed)
            clash = _clash(name, values, {n: v for n, v in named.items() if n != name})
            if clash:
                raise FieldError(f"{field}.{name}", why=f"overlaps with {field}.{clash}")


Values = tuple[OptionValue, ...]


def _values_of(options: Mapping[str, OptionValue]) -> dict[str, Values]:
    return {name: (value,) for name, value in options.items()}


def _is_durability(name: str) -> bool:
    return name.lower().rpartition(".")[2] in DURABILITY_OPTIONS


def _clash(name: str, values: Values, others: Mapping[str, Values]) -> str:
    """The option among `others` that is `name`, or that states a part of it or whose part it is.

    A plain value beside parts is one of the parts to the driver: the size of a cache, the kind of
    a memtable.
    """
    for other, theirs in others.items():
        holds = other.startswith(f"{name}.") and _has_parts(values)
        lies_within = name.startswith(f"{other}.") and _has_parts(theirs)
        if other == name or holds or lies_within:
            return other
    return ""


def _has_parts(values: Values) -> bool:
    return any(isinstance(value, str) and value.strip().startswith("{") for value in values)


def _unsafe_options(study: StudyModel, parts: _Parts, durability: Durability) -> dict[str, str]:
    """The unsafe options that the study uses and allows, with their reasons."""
    engine, used = parts.engine, {}
    for field, name, value in _values_used(parts):
        unsafe = unsafe_option(engine, name, durability)
        bad = [] if unsafe is None else unsafe.unsafe_values([value])
        if unsafe is None or not bad:
            continue
        if name not in study.allow_unsafe:
            why = f"unsafe under durability {durability.value} ({unsafe.reason})"
            allowed = f"another value, or allow_unsafe: [{name}]"
            raise FieldError(field, why=why, found=bad[0], allowed=allowed)
        used[name] = unsafe.reason
    _check_allowances(study, engine, used)
    return used


def _values_used(parts: _Parts) -> list[tuple[str, str, OptionValue]]:
    """Field, option and value of every value that any run of the study may use."""
    found = [
        (f"{field}.{name}", name, value)
        for field, options in parts.configs()
        for name, value in flattened(options)
    ]
    for parameter in parts.space.parameters:
        for value in _notable_values(parameter):
            for name, inner in flattened({parameter.name: value}):
                found.append((f"space.{parameter.name}", name, inner))
    return found


def _notable_values(parameter: Parameter) -> list[OptionValue]:
    """The values of a parameter that could be unsafe: those with a name, 0, 1 and the largest."""
    if parameter.numbers is None:
        return list(parameter.choices)
    specials: list[OptionValue] = [special.value for special in parameter.specials]
    flags = [flag for flag in (0, 1) if parameter.numbers.contains(flag)]
    return [*specials, *flags, parameter.numbers.high]


def _check_allowances(study: StudyModel, engine: str, used: Mapping[str, str]) -> None:
    unused = "the study does not use it with an unsafe value"
    for index, name in enumerate(study.allow_unsafe):
        check_allowance(name, engine, used, "", f"allow_unsafe[{index}]", unused)


# --- From text to Spec.

# The one key of what the folder of a proof without a study has in place of a study file.
_PROOF = "verify"


def load_spec(path: Path) -> Spec:
    """The Spec of the study file at `path`.

    Raises `InputError`, which names the file, the line and the field, for the first thing that is
    wrong.
    """
    return parse_spec(read_text(path), path)


def parse_spec(text: str, path: Path) -> Spec:
    """The Spec of a study file's `text`; `path` is where the file is, or will be.

    Raises `InputError` as `load_spec` does.
    """
    return _spec_of(parse_document(text, str(path)), path, text)


def parse_stored_spec(text: str, path: Path) -> Spec:
    """As `parse_spec`, for the `text` of a study that was run, maybe by an older lsmtune.

    The proof may have been of fewer pairs than its test needs now, which is no matter any more.
    Raises InputError, too, for what `lsmtune verify` and `minimise` keep, which is no study.
    """
    document = parse_document(text, str(path))
    if _PROOF in document.data:
        why = "is of a proof without a study, which has no report: repeat the command that made it"
        raise InputError(str(path), why=why)
    proof = document.data.get("proof")
    if isinstance(proof, dict) and _too_few_pairs(proof):
        del proof["pairs"]
    return _spec_of(document, path, text)


def _too_few_pairs(proof: Mapping[str, Any]) -> bool:
    pairs, confidence = proof.get("pairs"), proof.get("confidence", 0.95)
    if not isinstance(pairs, int) or not isinstance(confidence, float):
        return False
    return 0.0 < confidence < 1.0 and pairs < pairs_at_least(confidence)


def _spec_of(document: Document, path: Path, text: str) -> Spec:
    study = read_as(StudyModel, document)
    try:
        return build_spec(study, document, path, text)
    except InputError as error:
        raise _with_line(error, document) from None


def place_of(spec: Spec, field: str) -> str:
    """`file:line` of the dotted `field` in the study file of `spec`."""
    return parse_document(spec.text, str(spec.path)).where(field)


def _with_line(error: InputError, document: Document) -> InputError:
    """`error` with its line, and with what was found as the file has it: `64MiB`, not 67108864.

    What another file has wrong, which this one names, stays as it is.
    """
    if error.source not in ("", document.source):
        return error
    found = error.found
    if found is not None and document.scalars.get(error.field) is not None:
        found = document.scalars[error.field]
    return document.located(error.but(found=found))


def spec_json_schema() -> dict[str, Any]:
    """The JSON Schema (Draft 2020-12) of study files.

    It holds what a schema can say; relations between fields are only checked by `load_spec`.
    """
    return json_schema(StudyModel)
