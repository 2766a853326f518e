"""Study files: text to Spec, with the checks that span several fields.

`study.models` has the fields themselves; `study.build_goal` and `study.build_space` check parts.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from lsmtune.engines.library import ENGINE_KINDS
from lsmtune.engines.ready import ReadySpace
from lsmtune.engines.safety import DURABILITY_OPTIONS, check_allowance, flattened, unsafe_reason
from lsmtune.engines.scaling import least_of, scaling_options
from lsmtune.engines.workload_options import with_merge_operator, with_page_cache
from lsmtune.errors import FieldError, InputError, check_names
from lsmtune.experiment.folder import StudyFolder
from lsmtune.model.config import Config, OptionValue
from lsmtune.model.files import Document, parse_document, read_as, read_text
from lsmtune.model.metrics import BURST, METRICS
from lsmtune.model.request import Limits
from lsmtune.model.workload import Durability, PageCache
from lsmtune.proof.guards import FACTS, check_guard, default_guards, metric_names
from lsmtune.search.samplers import check_installed
from lsmtune.space.constraint import Constraint, ConstraintKind
from lsmtune.space.parameter import OPTION_NAME_ALLOWED, Parameter, is_option_name
from lsmtune.space.space import Space, make_space
from lsmtune.stats.sequential import pairs_at_least
from lsmtune.study.build_goal import (
    PROGRAM,
    Workloads,
    check_program_observes,
    engine_of,
    make_command,
    make_goal,
    make_program,
    make_workloads,
    own_command,
    path_from,
    program_tells,
    reported_metrics,
)
from lsmtune.study.build_space import (
    each_once,
    make_constraints,
    make_pruner_spec,
    make_sampler_spec,
    named_config,
    ready_spaces,
    space_parameters,
)
from lsmtune.study.models import StudyModel
from lsmtune.study.spec import (
    LEVEL_STYLE,
    RUNG_MEMORY_BYTES,
    STYLE,
    Budget,
    DataRungs,
    PrunerSpec,
    Spec,
    TimeRungs,
)
from lsmtune.units import format_bytes, format_duration
from lsmtune.workloads.distributions import data_bytes

# The options of each configuration of a study by its field: those of every run come first.
Stated = Mapping[str, Mapping[str, OptionValue]]


def build_spec(study: StudyModel, document: Document, path: Path, text: str) -> Spec:
    """The Spec of `study`. Raises `InputError` whose field is dotted, of this file a FieldError."""
    engine, runner = engine_of(study), own_command(study)
    workloads, notes = make_workloads(study, path)
    goal = make_goal(study, workloads, document)
    ready = ready_spaces(study.space, engine)
    named = {"baseline": study.baseline, "options": study.options}
    named |= {f"start[{index}]": start for index, start in enumerate(study.start)}
    configs: dict[str, Config] = {}
    for field, name in named.items():
        configs[field], its_notes = named_config(name, engine, path, field)
        notes += its_notes
    fixed = _fixed(configs.pop("options"), ready, engine, workloads)
    baseline, *start = configs.values()
    stated = {"options": fixed.options} | {f: config.options for f, config in configs.items()}
    space = make_space(space_parameters(study.space, ready, fixed.options))
    _check_option_names(stated, space, engine)
    _check_deadlines_and_pairs(study)
    constraints, pick_where, guards = _constraints(
        study, stated, space, ready, workloads, document.source
    )
    sampler, its_notes = make_sampler_spec(
        study.sampler, space, goal.directions, study.seed, engine
    )
    pruner = make_pruner_spec(
        study.pruner, goal, workloads, engine, sampler.name, program=runner is not None
    )
    notes += _unscaled(pruner, engine, space, workloads, study.limits) + its_notes
    return Spec(
        name=study.name,
        path=path,
        text=text,
        engine_name=engine,
        engine_library=_library(study, path),
        workloads=workloads,
        goal=goal,
        baseline=baseline,
        fixed=dict(fixed.options),
        space=space,
        sampler=sampler,
        budget=study.budget,
        limits=study.limits,
        proof=study.proof,
        noise=study.noise,
        databases=study.databases,
        seed=study.seed,
        unsafe_options=_unsafe_options(study, stated, space, workloads),
        constraints=constraints,
        guards=guards,
        burst=study.burst,
        pick_where=pick_where,
        start=tuple(start),
        notes=notes,
        stated_defaults={
            name: model.default
            for name, model in study.space.parameters.items()
            if model.default is not None
        },
        pruner=pruner,
        command=None if runner is None else make_command(runner, goal, space, baseline, path),
        program=make_program(study, goal, workloads, path),
    )


def _fixed(own: Config, ready: Sequence[ReadySpace], engine: str, workloads: Workloads) -> Config:
    """The options of every run: of ready spaces, over them the study's own, then the workloads'."""
    below = {name: value for space in ready for name, value in space.fixed.items()}
    fixed = Config({**below, **own.options}, own.label)
    asked = {weighted.workload.page_cache for weighted in workloads}
    if PageCache.DIRECT in asked and len(asked) > 1:
        why = "is direct in some workloads only; it is set by options, which all of them share"
        raise FieldError("workloads", why=f"page_cache {why}")
    field = "workload.page_cache" if len(workloads) == 1 else "workloads[0].page_cache"
    cache = PageCache.DIRECT if PageCache.DIRECT in asked else PageCache.WARM
    fixed = with_page_cache(fixed, engine, cache, "", field)
    for weighted in workloads:
        fixed = with_merge_operator(fixed, engine, weighted.workload, "")
    return fixed


def _check_charged(spec: Spec) -> None:
    """Raises FieldError for rungs of time that are of use for no trial."""
    rungs = None if spec.pruner is None else spec.pruner.rungs
    if not isinstance(rungs, TimeRungs):
        return
    parameters = spec.space.parameters
    searched = (parameter.choices for parameter in parameters if parameter.name == STYLE)
    styles = next(searched, None) or [spec.fixed.get(STYLE, LEVEL_STYLE)]
    if not any(rungs.judge({STYLE: style}) for style in styles):
        why = f"{styles[0]} does not tell what is left to compact, which the objective charges"
        allowed = f"num: a list of sizes, or the objective {BURST}"
        raise FieldError("pruner.rungs", why=why, allowed=allowed)


def _unscaled(
    pruner: PrunerSpec | None, engine: str, space: Space, workloads: Workloads, limits: Limits
) -> tuple[str, ...]:
    """What the smaller runs of a pruner cannot tell of the options, a line each."""
    if pruner is None or not isinstance(pruner.rungs, DataRungs):
        return ()
    if engine not in ENGINE_KINDS:
        return ("runs on fewer keys have the options of the whole run: these are not scaled",)
    num, scaling, lines = pruner.rungs.num, scaling_options(engine), []
    for parameter in space.parameters:
        numbers, info = parameter.numbers, scaling.get(parameter.name)
        if numbers is None or info is None:
            continue
        least, scale = least_of(info), num[0] / num[-1]
        if numbers.low * scale < least:
            alike = format_bytes(round(min(numbers.high, least / scale)))
            lines.append(
                f"runs on {num[0]} keys take {parameter.name} up to {alike} for the same: at their "
                f"scale it is {format_bytes(least)}, the least"
            )
    share_bytes = limits.memory_bytes * num[0] / num[-1]
    whole_bytes = max(data_bytes(each.workload) for each in workloads)
    if share_bytes < RUNG_MEMORY_BYTES < limits.memory_bytes < whole_bytes:
        lines.append(
            f"runs on {num[0]} keys have {format_bytes(RUNG_MEMORY_BYTES)} of memory, the least, "
            "which is more than their share: fewer of their reads come from the device"
        )
    return tuple(lines)


def _check_deadlines_and_pairs(study: StudyModel) -> None:
    # A run ends at the study's deadline, whatever that of its size is.
    limit_s = study.limits.deadline_s
    for index, deadline_s in enumerate(study.rungs.deadlines):
        if deadline_s > limit_s:
            field = f"pruner.rungs.deadlines[{index}]"
            allowed = f"at most limits.deadline, {format_duration(limit_s)}"
            raise FieldError(field, found=format_duration(deadline_s), allowed=allowed)
    least = pairs_at_least(study.proof.confidence)
    if study.proof.pairs < least:
        allowed = f"at least {least}, without which nothing is proved at {study.proof.confidence:g}"
        raise FieldError("proof.pairs", found=study.proof.pairs, allowed=allowed)


def _library(study: StudyModel, path: Path) -> Path | None:
    """The library's path, which a study file states from where it lies itself."""
    if study.engine is None or study.engine.library is None:
        return None
    if study.runner is not None:
        why = "has no effect with runner, whose program has an engine of its own"
        raise FieldError("engine.library", why=why)
    return path_from(path, study.engine.library, "engine.library", "the path of a library")


# --- Constraints.


def _constraints(
    study: StudyModel,
    stated: Stated,
    space: Space,
    ready: Sequence[ReadySpace],
    workloads: Workloads,
    source: str,
) -> tuple[tuple[Constraint, ...], tuple[Constraint, ...], tuple[Constraint, ...]]:
    """Those of the file and of the ready spaces, each once; those of `pick.where`; the guards.

    They may name options, whatever is reported, and metrics: of every phase, of one
    (`put.stall_s`), or a latency of one operation type of a mix (`get.latency_us_p99`).
    """
    engine, configs = engine_of(study), list(stated.values())
    metrics = (*metric_names([w.workload for w in workloads]), *reported_metrics(study))

    def of_field(texts: Sequence[str], field: str) -> tuple[Constraint, ...]:
        placed = [(text, f"{field}[{index}]") for index, text in enumerate(texts)]
        # Its value in the middle of a study may be none, too: that is told with the file.
        made = make_constraints(placed, engine, space, configs, metrics, FACTS, source)
        check_program_observes(study, made, field, workloads)
        return made

    made = list(of_field(study.constraints, "constraints"))
    for one in ready:
        made += of_field(one.constraints, f"space.use ({one.name})")
    picked = of_field(study.pick.where if study.pick is not None else (), "pick.where")
    for index, constraint in enumerate(picked):
        if constraint.kind is not ConstraintKind.OUTCOME:
            allowed = ", ".join(METRICS)
            raise FieldError(f"pick.where[{index}]", why="names no metric", allowed=allowed)
    guards = of_field(_guards(study, workloads), "guards")
    for index, guard in enumerate(guards):
        check_guard(guard, "", f"guards[{index}]")
    return each_once(made), picked, each_once(guards)


def _guards(study: StudyModel, workloads: Workloads) -> Sequence[str]:
    """The guards of the file, or the default ones; none on what a program cannot tell."""
    if study.guards is not None:
        return study.guards
    texts = default_guards([weighted.workload for weighted in workloads])
    return [text for text in texts if program_tells(study, text.partition(" ")[0], workloads)]


# --- Options: their names, and those that trade data for speed.


def _check_option_names(stated: Stated, space: Space, engine: str) -> None:
    """Raises `FieldError` for what is no option's name, and for what is stated twice."""
    # Whether the value of each option of a field has parts, `{name=value;...}`.
    fields = {f: {n: _has_parts(v) for n, v in given.items()} for f, given in stated.items()}
    fields["space"] = {p.name: any(map(_has_parts, p.choices)) for p in space.parameters}
    for field in ("baseline", "space"):
        for name, has_parts in fields[field].items():
            clash = _clash(name, has_parts, fields["options"])
            if clash:
                raise FieldError(f"{field}.{name}", why=f"also set by options.{clash}")
    for field, named in fields.items():
        for name, has_parts in named.items():
            place = f"{field}.{name}"
            if not is_option_name(name):
                raise FieldError(place, why="not an option's name", allowed=OPTION_NAME_ALLOWED)
            if engine != PROGRAM and name.lower().rpartition(".")[2] in DURABILITY_OPTIONS:
                why = "durability belongs to the workload"
                raise FieldError(place, why=why, allowed="workload.durability: sync, wal or none")
            others = {other: parts for other, parts in named.items() if other != name}
            clash = _clash(name, has_parts, others)
            if clash:
                raise FieldError(place, why=f"overlaps with {field}.{clash}")


def _clash(name: str, has_parts: bool, named: Mapping[str, bool]) -> str:
    """The option among `named` that is `name`, or that states a part of it or whose part it is.

    A plain value beside parts is one of the parts to the driver: the size of a cache, the kind of
    a memtable.
    """
    for other, other_has_parts in named.items():
        holds = has_parts and other.startswith(f"{name}.")
        lies_within = other_has_parts and name.startswith(f"{other}.")
        if other == name or holds or lies_within:
            return other
    return ""


def _has_parts(value: OptionValue) -> bool:
    return isinstance(value, str) and value.strip().startswith("{")


def _unsafe_options(
    study: StudyModel, stated: Stated, space: Space, workloads: Workloads
) -> dict[str, str]:
    """The unsafe options that the study uses and allows, with their reasons."""
    engine = engine_of(study)
    classes = {weighted.workload.durability for weighted in workloads}
    used: dict[str, str] = {}
    for field, name, value in values_used(stated, space.parameters):
        for durability in sorted(classes, key=list(Durability).index):
            reason = unsafe_reason(engine, name, value, durability)
            if not reason:
                continue
            if name not in study.allow_unsafe:
                why = f"unsafe under durability {durability.value} ({reason})"
                allowed = f"another value, or allow_unsafe: [{name}]"
                raise FieldError(field, why=why, found=value, allowed=allowed)
            used[name] = reason
    unused = "the study does not use it with an unsafe value"
    for index, name in enumerate(study.allow_unsafe):
        check_allowance(name, engine, used, "", f"allow_unsafe[{index}]", unused)
    return used


def values_used(
    stated: Stated, parameters: Sequence[Parameter]
) -> list[tuple[str, str, OptionValue]]:
    """Field, option and value of every value that any run of a study may use.

    Of a range those that could be unsafe: the values with a name, -1, 0, 1 and the largest.
    """
    used = [
        (f"{field}.{name}", name, value)
        for field, options in stated.items()
        for name, value in flattened(options)
    ]
    for parameter in parameters:
        values: list[OptionValue] = list(parameter.choices)
        if parameter.numbers is not None:
            values = [special.value for special in parameter.specials]
            values += [flag for flag in (-1, 0, 1) if parameter.numbers.contains(flag)]
            values.append(parameter.numbers.high)
        for value in values:
            for name, inner in flattened({parameter.name: value}):
                used.append((f"space.{parameter.name}", name, inner))
    return used


# --- From text to Spec.

# The one key of what the folder of a proof without a study has in place of a study file.
_PROOF = "verify"
NO_BUDGET = Budget()


def load_spec(path: Path, asked: Budget = NO_BUDGET) -> Spec:
    """The Spec of the study file at `path`; what was `asked` of its budget is in its place there.

    Raises `InputError`, which names the file, the line and the field, for the first thing that is
    wrong.
    """
    return parse_spec(read_text(path), path, asked)


def parse_spec(text: str, path: Path, asked: Budget = NO_BUDGET) -> Spec:
    """As `load_spec`, from the `text` of a study file that is, or will be, at `path`."""
    document = parse_document(text, str(path))
    spec = _spec_of(document, path, text)
    try:
        check_installed(spec.sampler.name, "", "sampler")
        # What a study that was run may have: it has a report all the same.
        _check_charged(spec)
        if spec.command is not None:
            names = [parameter.name for parameter in spec.space.parameters]
            why = "is no parameter of the space"
            check_names(spec.baseline.options, names, "", "baseline", why=why)
    except InputError as error:
        raise document.located(error) from None
    own = spec.budget
    budget = Budget(
        own.time_s if asked.time_s is None else asked.time_s,
        own.trials if asked.trials is None else asked.trials,
    )
    if budget == NO_BUDGET:
        is_there = "budget" in document.data
        why, allowed = ("is empty", "") if is_there else ("missing", "a mapping with ")
        allowed += "time, trials, or both"
        raise document.located(FieldError("budget", why=why, allowed=allowed))
    return replace(spec, budget=budget)


def parse_stored_spec(text: str, path: Path) -> Spec:
    """As `parse_spec`, for the `text` of a study that was run, which needs no sampler any more.

    Raises InputError, too, for what `lsmtune verify` and `minimise` keep, which is no study.
    """
    document = parse_document(text, str(path))
    if _PROOF in document.data:
        why = "is of a proof without a study, which has no report: repeat the command that made it"
        raise InputError(str(path), why=why)
    return _spec_of(document, path, text)


def stored_spec(folder: StudyFolder) -> Spec:
    """What was asked in `folder`. Raises InputError when its study file cannot be read."""
    stored, origin = folder.path / "study.yaml", folder.origin
    try:
        return parse_stored_spec(read_text(stored), origin)
    except InputError as error:  # the copy is what was read; paths in it are relative to the other
        raise error.but(source=error.source.replace(str(origin), str(stored))) from None


def _spec_of(document: Document, path: Path, text: str) -> Spec:
    study = read_as(StudyModel, document)
    try:
        return build_spec(study, document, path, text)
    except InputError as error:
        if error.source not in ("", document.source):  # what another file has wrong
            raise
        # What was found as the file has it: `64MiB`, not 67108864.
        stated = document.stated(error.field)
        found = error.found if error.found is None or stated is None else stated
        raise document.located(error.but(found=found)) from None


def place_of(spec: Spec, field: str) -> str:
    """`file:line` of the dotted `field` in the study file of `spec`."""
    return parse_document(spec.text, str(spec.path)).where(field)
