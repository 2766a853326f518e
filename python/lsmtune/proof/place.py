"""Where a run belongs in its study."""

from __future__ import annotations

from dataclasses import dataclass

from lsmtune.records.config import Config
from lsmtune.storage.measurements import Role


@dataclass(frozen=True)
class Place:
    """Where a run belongs in its study; `workload` is its index among those of the study.

    `repeat` counts the runs of one trial, or of one side of a pair, from 0; anchors are numbered by
    it.
    """

    role: Role
    index: int
    trial: int | None = None
    pair: int | None = None
    workload: int = 0
    rung: int | None = None
    repeat: int = 0


Arm = tuple[Config, Place]  # what is run, and where the run belongs
