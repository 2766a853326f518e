"""A Spec: a study file, read and found to be right."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from lsmtune.model.command import CommandSpec, ProgramSpec
from lsmtune.model.config import Config, OptionValue
from lsmtune.model.goal import Direction, Goal, Objective, WeightedWorkload
from lsmtune.model.request import Limits, PairMethod
from lsmtune.model.workload import Workload
from lsmtune.space.constraint import Constraint
from lsmtune.space.parameter import Parameter
from lsmtune.space.space import Space


@dataclass(frozen=True)
class SamplerSpec:
    """Which sampler, and those of its settings that the study file states, checked."""

    name: str
    settings: Mapping[str, object] = field(default_factory=dict)


@dataclass(frozen=True)
class TimeRungs:
    """Rungs in time: what a run has come to after every `every_s` seconds of its measure phase."""

    every_s: float


@dataclass(frozen=True)
class DataRungs:
    """Rungs in size: a trial is first run with fewer keys, `num` of them in rising order.

    The last of `num` is the workload's own. `deadlines_s` has the deadline of each, or is empty.
    """

    num: tuple[int, ...]
    deadlines_s: tuple[float, ...] = ()

    def step(self, rung: int) -> int:
        """What pruners know a rung as: its size in units of the smallest, so that it begins at 1.

        That is the resource of successive halving (Li, Jamieson, Rostamizadeh et al. 2020, "A
        system for massively parallel hyperparameter tuning").
        """
        return round(self.num[rung] / self.num[0])


@dataclass(frozen=True)
class PrunerSpec:
    """Which pruner, its checked settings, and where it looks."""

    name: str
    settings: Mapping[str, object]
    rungs: TimeRungs | DataRungs


@dataclass(frozen=True)
class Budget:
    """When a study ends; at least one is set, and then whichever comes first counts."""

    time_s: float | None
    trials: int | None


@dataclass(frozen=True)
class ProofSpec:
    """How the best configuration is proved.

    A proof takes at most `pairs` pairs of runs and ends earlier when its interval, at `confidence`,
    says enough. `smallest_effect` e: a ratio from 1 / (1 + e) to 1 + e does not matter. `method` is
    how both runs of a pair share the machine; None leaves that to lsmtune.
    """

    pairs: int
    confidence: float
    smallest_effect: float | None = None
    method: PairMethod | None = None


@dataclass(frozen=True)
class NoiseSpec:
    """What a study does about the noise of its machine.

    `calibration_pairs` pairs of the baseline against itself come first, 0 for none. An anchor, a
    run of the baseline, follows every `anchor_every` trials, 0 for never. A trial that may be the
    best one is run up to `repeats_max` times.
    """

    calibration_pairs: int
    anchor_every: int
    repeats_max: int


@dataclass(frozen=True)
class DatabaseSpec:
    """Whether runs start from copies of databases loaded once, and what space these may take."""

    reuse: bool
    size_bytes: int


@dataclass(frozen=True)
class Spec:
    """A study. `path` and `text` are those of its file.

    `fixed` are options of every run. A candidate has `fixed` and its values from `space`; the
    baseline has `fixed` and its own options; `start` are candidates that are tried first.
    `constraints` are on options and on outcomes; `pick_where` are those on outcomes that hold for
    the configuration picked from a front. `stated_defaults` are the engine's as the study file
    states them, for parameters of its own. `notes` say what option files hold and a Config cannot.
    `unsafe_options` maps the unsafe options that the study
    allows itself to the reason why they are unsafe: reports show it.
    """

    name: str
    path: Path
    text: str
    engine_name: str
    engine_library: Path | None
    workloads: tuple[WeightedWorkload, ...]
    goal: Goal
    baseline: Config
    fixed: dict[str, OptionValue]
    space: Space
    sampler: SamplerSpec
    budget: Budget
    limits: Limits
    proof: ProofSpec
    noise: NoiseSpec
    databases: DatabaseSpec
    seed: int
    unsafe_options: Mapping[str, str] = field(default_factory=dict)
    constraints: tuple[Constraint, ...] = ()
    pick_where: tuple[Constraint, ...] = ()
    start: tuple[Config, ...] = ()
    pruner: PrunerSpec | None = None
    command: CommandSpec | None = None
    program: ProgramSpec | None = None
    notes: tuple[str, ...] = ()
    stated_defaults: Mapping[str, OptionValue] = field(default_factory=dict)

    @property
    def workload(self) -> Workload:
        """The first workload, which most studies have alone."""
        return self.workloads[0].workload

    @property
    def objective(self) -> Objective:
        """The first objective, which most studies have alone."""
        return self.goal.objectives[0]

    @property
    def directions(self) -> tuple[Direction, ...]:
        """Which way each objective is better."""
        return self.goal.directions

    def comparable_parts(self) -> dict[str, object]:
        """All that makes this study's measurements comparable, by its name in the study file.

        Limits too, as they decide how a run ends; not name, budget, sampler, pruner, constraints,
        start, proof and seed. Two files that say the same in another order have equal parts.
        """
        alone = len(self.workloads) == 1
        return {
            "engine": [self.engine_name, str(self.engine_library or "")],
            "workload": self.workload if alone else [_workload_parts(w) for w in self.workloads],
            "objective": self.goal.objectives if self.goal.several else self.objective,
            "baseline": self.baseline.options,
            "options": self.fixed,
            "space": {p.name: _parameter_parts(p) for p in self.space.parameters},
            "limits": self.limits,
            **({} if self.command is None else {"runner": _command_parts(self.command)}),
            **({} if self.program is None else {"runner": repr(self.program)}),
        }


def _command_parts(command: CommandSpec) -> object:
    """All but the folder: a study may be moved together with its program."""
    return repr(replace(command, folder=Path()))


def _workload_parts(weighted: WeightedWorkload) -> list[object]:
    return [weighted.workload, weighted.weight]


def _parameter_parts(parameter: Parameter) -> dict[str, Any]:
    """What the search sees of a parameter: not its unit and default, which only people read."""
    parts = asdict(parameter)
    for key in ("unit", "default"):
        del parts[key]
    return parts
