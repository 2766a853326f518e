"""From the models of sampler, pruner and proof to their specs: settings and rungs, checked."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from lsmtune.errors import InputError
from lsmtune.pruners import check_pruner
from lsmtune.pruners import check_settings as check_pruner_settings
from lsmtune.records.goal import Goal, WeightedWorkload
from lsmtune.records.objective import HIGHER_IS_BETTER, METRICS
from lsmtune.records.pairing import PairMethod
from lsmtune.samplers import SamplerContext, check_sampler
from lsmtune.samplers import check_settings as check_sampler_settings
from lsmtune.space import Space
from lsmtune.spec.models import ProofModel, PrunerModel, RungsModel, SamplerModel
from lsmtune.spec.spec import DataRungs, ProofSpec, PrunerSpec, SamplerSpec, TimeRungs
from lsmtune.stats.sequential import pairs_at_least

DEFAULT_EVERY_S = 1.0


def make_sampler_spec(
    model: SamplerModel, space: Space, goal: Goal, seed: int, source: str
) -> SamplerSpec:
    """The sampler.

    Raises `InputError` for a setting that it does not have or take, and where it cannot search
    this space or this number of objectives.
    """
    settings = check_sampler_settings(model.name, model.settings, source, "sampler")
    context = SamplerContext(space, seed, settings, goal.directions)
    check_sampler(model.name, context, source, "sampler")
    return SamplerSpec(model.name, settings)


def make_proof_spec(model: ProofModel, source: str) -> ProofSpec:
    """How the result is proved. Raises `InputError` where so few pairs could prove nothing."""
    least = pairs_at_least(model.confidence)
    if model.pairs < least:
        allowed = f"at least {least}, without which nothing is proved at {model.confidence:g}"
        raise InputError(source, "proof.pairs", found=model.pairs, allowed=allowed)
    method = None if model.method == "auto" else PairMethod(model.method)
    return ProofSpec(model.pairs, model.confidence, model.smallest_effect, method)


def make_pruner_spec(
    model: PrunerModel,
    goal: Goal,
    workloads: Sequence[WeightedWorkload],
    source: str,
    *,
    program: bool = False,
) -> PrunerSpec | None:
    """The pruner, None for `none`. Raises `InputError` for settings and rungs that do not fit.

    `program`: the runs are those of a program, which reports the objective itself at steps of its
    own; a driver's run tells its rate as time passes.
    """
    if model.name == "none":
        stated = [*model.settings, *(["rungs"] if model.rungs != RungsModel() else [])]
        if stated:
            why = "has no effect: nothing is pruned"
            raise InputError(source, f"pruner.{stated[0]}", why=why, allowed="a pruner's name")
        return None
    settings = check_pruner_settings(model.name, model.settings, source, "pruner")
    check_pruner(model.name, goal.directions, source, "pruner")
    return PrunerSpec(model.name, settings, _rungs(model.rungs, goal, workloads, source, program))


def _rungs(
    model: RungsModel,
    goal: Goal,
    workloads: Sequence[WeightedWorkload],
    source: str,
    program: bool,
) -> TimeRungs | DataRungs:
    if model.num is not None:
        if model.every is not None:
            allowed = "every, or num with deadlines"
            raise InputError(source, "pruner.rungs.every", why="stands beside num", allowed=allowed)
        return _data_rungs(model, model.num, workloads, source)
    if model.deadlines:
        why = "has no effect without num"
        raise InputError(source, "pruner.rungs.deadlines", why=why, allowed="num beside it")
    if len(workloads) > 1:
        why = "time within a run says nothing of several workloads"
        raise InputError(source, "pruner.rungs", why=why, allowed="num: a list of sizes")
    if program and model.every is not None:
        why = "has no effect: the program counts its own steps"
        raise InputError(source, "pruner.rungs.every", why=why, allowed="num, or no rungs")
    metric = goal.objectives[0].metric
    if not program and metric in METRICS and metric not in HIGHER_IS_BETTER:
        why = f"the beginning of a run tells its rate, and nothing of {metric}"
        raise InputError(source, "pruner.rungs", why=why, allowed="num: a list of sizes")
    return TimeRungs(DEFAULT_EVERY_S if model.every is None else model.every)


def _data_rungs(
    model: RungsModel, num: list[int], workloads: Sequence[WeightedWorkload], source: str
) -> DataRungs:
    field = "pruner.rungs.num"
    if len(num) < 2 or any(low >= high for low, high in pairwise(num)):
        allowed = "at least 2 numbers of keys, in rising order"
        raise InputError(source, field, found=num, allowed=allowed)
    if num[0] < 1:
        raise InputError(source, f"{field}[0]", found=num[0], allowed="at least 1")
    for weighted in workloads:
        if weighted.workload.num != num[-1]:
            allowed = f"{weighted.workload.num}, the workload's own number of keys"
            raise InputError(source, f"{field}[{len(num) - 1}]", found=num[-1], allowed=allowed)
    if model.deadlines and len(model.deadlines) != len(num):
        allowed = f"{len(num)} times, one for each of num"
        place = "pruner.rungs.deadlines"
        raise InputError(source, place, found=len(model.deadlines), allowed=allowed)
    rungs = DataRungs(tuple(num), tuple(model.deadlines))
    for rung in range(1, len(num)):
        if rungs.step(rung) == rungs.step(rung - 1):
            why = f"no step up from {num[rung - 1]} for a pruner: it counts in units of {num[0]}"
            allowed = f"at least {num[rung - 1] + num[0]}"
            raise InputError(source, f"{field}[{rung}]", why=why, found=num[rung], allowed=allowed)
    return rungs
