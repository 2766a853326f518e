"""A Spec: a study file, read and found to be right."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Annotated

from pydantic import PlainValidator, WithJsonSchema

from lsmtune.engines.catalogue import catalogue_defaults
from lsmtune.engines.scaling import scaled_memory
from lsmtune.errors import nearest_name
from lsmtune.experiment.database_key import by_bytes
from lsmtune.model.command import CommandSpec, ProgramSpec
from lsmtune.model.config import Config, OptionValue
from lsmtune.model.fields import STRICT, Duration, Share, described, refused
from lsmtune.model.goal import Goal, Objective, WeightedWorkload
from lsmtune.model.request import (
    POWER_STATES_DEFAULT,
    POWER_STATES_MAX,
    TRIALS_MAX,
    DatabaseSpec,
    Limits,
    PairMethod,
)
from lsmtune.model.workload import Workload
from lsmtune.space.constraint import Constraint
from lsmtune.space.space import Space
from lsmtune.units import SHARE_ALLOWED

# An option of RocksDB, and its default.
STYLE, LEVEL_STYLE = "compaction_style", "kCompactionStyleLevel"
# The least memory of a smaller run: with less, what a process and an engine take whatever the data
# are could have it killed.
RUNG_MEMORY_BYTES = 64 << 20


@dataclass(frozen=True)
class SamplerSpec:
    """Which sampler, and those of its settings that the study file states, checked."""

    name: str
    settings: Mapping[str, object] = field(default_factory=dict)


@dataclass(frozen=True)
class TimeRungs:
    """Rungs in time: what a run has come to after every `every_s` seconds of its `phase`.

    The objective looks at that phase. `charged`: as the objective charges the drain, each rung
    charges the compactions that are due.
    """

    every_s: float
    phase: str
    charged: bool = False

    def judge(self, options: Mapping[str, object]) -> bool:
        """Whether they are of use for a run with `options`.

        RocksDB has no estimate of pending bytes but under level compaction: 0 is then not none.
        """
        return not self.charged or str(options.get(STYLE, LEVEL_STYLE)) == LEVEL_STYLE


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

    def memory_bytes(self, rung: int, limit_bytes: int, threads: int) -> int:
        """The memory of the runs of a rung, of `limit_bytes`: else all of its data stays cached."""
        share = scaled_memory(limit_bytes, self.num[rung] / self.num[-1], threads)
        return min(limit_bytes, max(share, RUNG_MEMORY_BYTES))

    def longer(self, num: int, factor: float) -> DataRungs:
        """The same shares of a workload of `num` keys, of which runs are `factor` times as long."""
        return DataRungs(
            num=tuple(round(num * each / self.num[-1]) for each in self.num),
            deadlines_s=tuple(factor * deadline_s for deadline_s in self.deadlines_s),
        )


@dataclass(frozen=True)
class PrunerSpec:
    """Which pruner, its checked settings, and where it looks."""

    name: str
    settings: Mapping[str, object]
    rungs: TimeRungs | DataRungs


@dataclass(frozen=True)
class Budget:
    """When the search ends; at least one of the two, and then whichever comes first."""

    __pydantic_config__ = STRICT

    time_s: Annotated[
        Duration | None, described("time for the whole study, its proof included", alias="time")
    ] = None
    trials: Annotated[int | None, described("number of trials", ge=1, le=TRIALS_MAX)] = None


_METHODS = ("auto", *PairMethod)


def _method(value: object) -> PairMethod | None:
    if not isinstance(value, str) or value not in _METHODS:
        nearest = nearest_name(str(value), _METHODS)
        raise refused(", ".join(_METHODS), nearest=nearest)
    return None if value == "auto" else PairMethod(value)


@dataclass(frozen=True)
class ProofSpec:
    """How the best configuration is proved against the baseline.

    A proof takes at most `pairs` pairs of runs and ends earlier when its interval, at `confidence`,
    says enough. `smallest_effect` e: a ratio from 1 / (1 + e) to 1 + e does not matter. `method`:
    None leaves it to lsmtune. `power_states`: what is proved better has to survive so many power
    losses; 0 leaves that out.
    """

    __pydantic_config__ = STRICT

    pairs: Annotated[
        int, described("interleaved pairs of runs, at most; 6 to 1000", ge=6, le=1000)
    ] = 30
    confidence: Annotated[float, described("of the ratio's interval", ge=0.5, le=0.9999)] = 0.95
    smallest_effect: Annotated[
        Share | None, described(f"what is too small to matter; {SHARE_ALLOWED}")
    ] = None
    method: Annotated[
        PairMethod | None,
        PlainValidator(_method),
        WithJsonSchema({"enum": list(_METHODS)}),
        described("how the runs of a pair share the machine"),
    ] = None
    power_states: Annotated[
        int,
        described(
            f"power losses that the best configuration has to survive; 0 to {POWER_STATES_MAX}",
            ge=0,
            le=POWER_STATES_MAX,
        ),
    ] = POWER_STATES_DEFAULT


@dataclass(frozen=True)
class NoiseSpec:
    """What is done about the noise of the machine. An anchor is a run of the baseline."""

    __pydantic_config__ = STRICT

    calibration_pairs: Annotated[
        int,
        described(
            "pairs of the baseline against itself, at the start", ge=0, le=100, alias="calibration"
        ),
    ] = 3
    anchor_every: Annotated[
        int,
        described(
            "trials between two runs of the baseline; 0: none", ge=0, le=1000, alias="anchors"
        ),
    ] = 10
    repeats_max: Annotated[
        int,
        described(
            "runs of a trial that may be the best, at most; twice as many of the best",
            ge=1,
            le=100,
            alias="repeats",
        ),
    ] = 3


@dataclass(frozen=True)
class Spec:
    """A study. `path` and `text` are those of its file.

    `fixed` are options of every run. A candidate has `fixed` and its values from `space`; the
    baseline has `fixed` and its own options; `start` are candidates that are tried first.
    `constraints` are on options and on outcomes; `guards` on outcomes relative to the baseline's;
    `pick_where` are those on outcomes that hold for the configuration picked from a front. `burst`:
    runs need not show what is sustained. `stated_defaults` are the engine's as the study file
    states them, for parameters of its own. `notes` say what option files hold and a Config cannot.
    `unsafe_options` maps the unsafe options that the study allows itself to the reason why they are
    unsafe: reports show it. `engine_version` is that of the engine which is measured, once it is
    known; None stands for the newest one that the catalogue has.
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
    guards: tuple[Constraint, ...] = ()
    burst: bool = False
    pick_where: tuple[Constraint, ...] = ()
    start: tuple[Config, ...] = ()
    pruner: PrunerSpec | None = None
    command: CommandSpec | None = None
    program: ProgramSpec | None = None
    notes: tuple[str, ...] = ()
    stated_defaults: Mapping[str, OptionValue] = field(default_factory=dict)
    engine_version: str | None = None

    @cached_property
    def defaults(self) -> Mapping[str, OptionValue]:
        """The engine's defaults: what the study file states, else what the catalogue knows.

        Those of a ready space are the newest engine's, and come last.
        """
        own = {p.name: p.default for p in self.space.parameters if p.default is not None}
        known = catalogue_defaults(self.engine_name, self.engine_version)
        return {**own, **known, **self.stated_defaults}

    @property
    def workload(self) -> Workload:
        """The first workload, which most studies have alone."""
        return self.workloads[0].workload

    @property
    def data_rungs(self) -> DataRungs | None:
        """Those of the pruner where smaller runs stand for the runs of a trial."""
        rungs = None if self.pruner is None else self.pruner.rungs
        return rungs if isinstance(rungs, DataRungs) else None

    @property
    def objective(self) -> Objective:
        """The first objective, which most studies have alone."""
        return self.goal.objectives[0]

    def comparable_parts(self) -> dict[str, object]:
        """All that makes this study's measurements comparable, by its name in the study file.

        Limits too, as they decide how a run ends; not name, budget, sampler, constraints, start,
        proof and seed, and of the pruner the sizes of smaller runs alone: rows have their numbers.
        Two files that say the same in another order have equal parts.
        """
        sizes = {} if self.data_rungs is None else {"pruner.rungs.num": self.data_rungs.num}
        program, library = self.program, self.engine_library
        if program is not None and program.path is not None:
            program = replace(program, path=Path(by_bytes(program.path)))
        # A command without its folder: a study may be moved together with its program.
        runner = program if self.command is None else replace(self.command, folder=Path())
        workloads = [[w.workload.with_traces(by_bytes), w.weight] for w in self.workloads]
        return {
            "engine": [self.engine_name, "" if library is None else by_bytes(library)],
            "runner": repr(runner),
            "workload": workloads,
            "objective": self.goal.objectives,
            "baseline": self.baseline.options,
            "options": self.fixed,
            "space": compared_space(self.space),
            "limits": self.limits,
            "databases.reuse": self.databases.reuse,
            **sizes,
        }


def compared_space(space: Space) -> dict[str, object]:
    """What the search sees of `space`: not units and defaults, which only people read."""
    return {p.name: replace(p, unit="", default=None) for p in space.parameters}
