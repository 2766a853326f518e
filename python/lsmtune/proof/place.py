"""Where a run belongs in its study."""

from __future__ import annotations

from dataclasses import dataclass

from lsmtune.storage.measurements import Role


@dataclass(frozen=True)
class Place:
    """Where a run belongs in its study; `workload` is its index among those of the study."""

    role: Role
    index: int
    trial: int | None = None
    pair: int | None = None
    workload: int = 0
    rung: int | None = None
