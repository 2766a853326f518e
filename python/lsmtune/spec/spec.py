"""A Spec: a study file, read and found to be right."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from lsmtune.records.config import Config, OptionValue
from lsmtune.records.objective import Objective
from lsmtune.records.request import Limits
from lsmtune.records.workload import Workload
from lsmtune.space import Parameter, Space


@dataclass(frozen=True)
class SamplerSpec:
    """Which sampler; `startup_trials` None leaves the number to it."""

    name: str
    startup_trials: int | None


@dataclass(frozen=True)
class Budget:
    """When a study ends; at least one is set, and then whichever comes first counts."""

    time_s: float | None
    trials: int | None


@dataclass(frozen=True)
class ProofSpec:
    """How many pairs of runs a proof takes, at least 5, and the confidence of its interval."""

    pairs: int
    confidence: float


@dataclass(frozen=True)
class Spec:
    """A study. `path` and `text` are those of its file.

    `fixed` are options of every run. A candidate has `fixed` and its values from `space`; the
    baseline has `fixed` and its own options. `workload_parameters` are those that have an effect,
    defaults filled in. `unsafe_options` maps the unsafe options that the study allows itself to
    the reason why they are unsafe: reports show it.
    """

    name: str
    path: Path
    text: str
    engine_name: str
    engine_library: Path | None
    workload: Workload
    workload_parameters: dict[str, Any]
    objective: Objective
    baseline: Config
    fixed: dict[str, OptionValue]
    space: Space
    sampler: SamplerSpec
    budget: Budget
    limits: Limits
    proof: ProofSpec
    seed: int
    unsafe_options: Mapping[str, str] = field(default_factory=dict)

    def comparable_parts(self) -> dict[str, object]:
        """All that makes this study's measurements comparable, by its name in the study file.

        Limits too, as they decide how a run ends; not name, budget, sampler, proof and seed. Two
        files that say the same in another order have equal parts.
        """
        return {
            "engine": [self.engine_name, str(self.engine_library or "")],
            "workload": self.workload,
            "objective": self.objective,
            "baseline": self.baseline.options,
            "options": self.fixed,
            "space": {p.name: _parameter_parts(p) for p in self.space.parameters},
            "limits": self.limits,
        }


def _parameter_parts(parameter: Parameter) -> dict[str, Any]:
    """What the search sees of a parameter: not its unit and default, which only people read."""
    parts = asdict(parameter)
    for key in ("unit", "default"):
        del parts[key]
    return parts
