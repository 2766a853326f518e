"""Which parts of a study make its measurements comparable, and which of them changed."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Protocol

from lsmtune.records.config import Config, OptionValue
from lsmtune.records.objective import Objective
from lsmtune.records.request import Limits
from lsmtune.records.workload import Workload
from lsmtune.space import Space
from lsmtune.storage.codec import encode


class StudyDescription(Protocol):
    """What storage has to know of a Spec, which it may not import."""

    @property
    def text(self) -> str:
        """The study file as written."""

    @property
    def engine_name(self) -> str:
        """The engine's name."""

    @property
    def engine_library(self) -> Path | None:
        """The engine's library, when the study file names one."""

    @property
    def limits(self) -> Limits:
        """When a run is killed."""

    @property
    def workload(self) -> Workload:
        """The phases of every run."""

    @property
    def objective(self) -> Objective:
        """What is judged, and its direction."""

    @property
    def baseline(self) -> Config:
        """What candidates are compared with."""

    @property
    def fixed(self) -> Mapping[str, OptionValue]:
        """Options on every run."""

    @property
    def space(self) -> Space:
        """The parameters searched."""

    def fingerprint(self) -> str:
        """One hash over everything that makes measurements comparable."""


def part_digests(study: StudyDescription) -> dict[str, str]:
    """A digest of each part that the fingerprint covers, to name the ones that changed."""
    parts: dict[str, object] = {
        "engine": [study.engine_name, str(study.engine_library or "")],
        "workload": study.workload,
        "objective": study.objective,
        "baseline": study.baseline.options,
        "fixed": study.fixed,
        "limits": study.limits,
        "space": repr(study.space.parameters),
    }
    return {name: _digest(part) for name, part in parts.items()}


def changed_parts(stored: Mapping[str, str], now: Mapping[str, str]) -> list[str]:
    """The names of the parts that differ."""
    return [name for name in now if stored.get(name) != now[name]]


def _digest(part: object) -> str:
    text = json.dumps(encode(part), sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()
