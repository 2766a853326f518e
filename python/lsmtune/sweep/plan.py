"""A Sweep: what is measured over which axes, as a file or the command line states it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from lsmtune.errors import InputError
from lsmtune.records.config import OptionValue
from lsmtune.records.request import LIMITS_DEFAULT, Limits
from lsmtune.sweep.axes import Axis

# Where the user wrote the dotted field of a sweep file: what errors name as source and field.
Place = Callable[[str], tuple[str, str]]

CELLS_MAX = 10_000
DATABASES_BYTES_DEFAULT = 20 << 30


@dataclass(frozen=True)
class SweepWorkload:
    """A workload of a sweep by name or file, with the parameters that are its own."""

    name: str
    parameters: Mapping[str, object] = field(default_factory=dict)
    label: str = ""

    @property
    def told(self) -> str:
        """What tells it apart from the others of its sweep."""
        return self.label or self.name


@dataclass(frozen=True)
class Sweep:
    """A grid over `axes` under each of `workloads`; `parameters` and `options` hold everywhere.

    `library` is None where the engine's best known one is taken. `databases_bytes` is the disk
    space for loaded databases from whose copies runs start, 0 where each run loads its own.
    `place` says where the user wrote a field, `folder` from where files of workloads are named.
    """

    name: str
    engine: str
    workloads: tuple[SweepWorkload, ...]
    axes: tuple[Axis, ...]
    place: Place
    library: Path | None = None
    parameters: Mapping[str, object] = field(default_factory=dict)
    options: Mapping[str, OptionValue] = field(default_factory=dict)
    repeats: int = 3
    seed: int = 1
    limits: Limits = LIMITS_DEFAULT
    databases_bytes: int = DATABASES_BYTES_DEFAULT
    folder: Path = Path()

    @property
    def points(self) -> int:
        """How many points the grid has; each is measured under every workload."""
        product = 1
        for axis in self.axes:
            product *= len(axis.values)
        return product

    def error(
        self, at: str, *, why: str = "", found: object = None, allowed: str = "", nearest: str = ""
    ) -> InputError:
        """What is wrong with the dotted field `at`, where the user wrote it."""
        source, name = self.place(at)
        return InputError(source, name, why=why, found=found, allowed=allowed, nearest=nearest)
