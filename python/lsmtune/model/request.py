"""What a Runner is asked to do: one run with its limits, and how the two runs of a pair share the
machine.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Annotated

from lsmtune.model.config import Config, EngineIdentity
from lsmtune.model.fields import STRICT, Duration, Size, described
from lsmtune.model.workload import Workload


class PairMethod(StrEnum):
    """One way to run a baseline and a candidate so that their ratio says something.

    `whole`: one run after the other. `slices`: both alive, taking turns in short slices, the other
    one frozen. `duet`: both at the same time, each on its own half of the cores.
    """

    WHOLE = "whole"
    SLICES = "slices"
    DUET = "duet"


# Slices of each measure phase where nothing is known of its length.
SLICES_DEFAULT = 20
# A slice should be short beside what disturbs a shared machine, which is seconds, and long beside a
# change of turns, which is less than a millisecond.
SLICE_S = 0.15
SLICES_MAX = 400


def slices_for(measure_s: float) -> int:
    """The number of slices for a measure phase that takes about `measure_s` seconds.

    Even, so that each run begins as often as the other; at least 4.
    """
    return min(max(4, 2 * round(measure_s / SLICE_S / 2)), SLICES_MAX)


@dataclass(frozen=True)
class Limits:
    """When a run is killed."""

    __pydantic_config__ = STRICT

    deadline_s: Annotated[Duration, described("time for one run; 10m", alias="deadline")] = 600.0
    memory_bytes: Annotated[Size, described("resident memory of one run; 4GiB", alias="memory")] = (
        4 << 30
    )
    disk_bytes: Annotated[Size, described("disk space of one run; 20GiB", alias="disk")] = 20 << 30


@dataclass(frozen=True)
class DatabaseSpec:
    """Databases that are loaded once and copied for each run."""

    __pydantic_config__ = STRICT

    reuse: Annotated[bool, described("true, false")] = True
    size_bytes: Annotated[Size, described("disk space for them; 20GiB", alias="size")] = 20 << 30


# What a run may take unless the user says otherwise.
LIMITS_DEFAULT = Limits()

# Power losses that are tried of what is to be recommended. A state costs about a tenth of a second.
POWER_STATES_DEFAULT = 40
POWER_STATES_MAX = 10_000

SEED_MAX = 2**53 - 1  # the largest whole number that every JSON reader keeps exactly
FIRST_SEED_MAX = SEED_MAX - 1000  # of up to 1,000 runs or rounds, each of which has the next seed
TRIALS_MAX = 1_000_000  # of a study


@dataclass(frozen=True)
class Prepared:
    """A database that is there already: its first `phases` were executed by an earlier run.

    `ledger` is the file in which that run noted what it had written. With `own_pages` the run drops
    the database's pages from the page cache and reads them itself: they are charged to its memory.
    """

    ledger: Path
    phases: int
    own_pages: bool = False


@dataclass(frozen=True)
class BulkLoad:
    """How load phases are made fast that nobody measures. What is written is the same.

    `threads` share the work of one that writes new keys in random order. With `hold_compactions`
    most of such a load is written as sorted tables, or while compactions wait, where the engine can
    do that.
    """

    threads: int
    hold_compactions: bool


@dataclass(frozen=True)
class RunRequest:
    """One (config, workload, seed) on an engine, in a fresh `directory` that the caller owns.

    The database is made in `directory / "db"`; the engine's own output goes to
    `directory / "engine.log"`. `verify_keys` written keys are read back after the run. `trial` is
    the number of the trial that the run belongs to, None for one that belongs to none.

    `cpus` are the cores that the run may use, all when empty. `slices` is the number of slices of
    each measure phase after which the driver stops itself, 0 for a run that is never stopped.
    `load_seed` is the seed of the load phases and of all values, `seed` when None. `prepared`: the
    database is not made but found in `directory / "db"`. `save_ledger`: where to note what was
    written, for a run on a copy of this database. `bulk_load`: nobody measures the load phases.
    `alone`: the other run of its pair, if it is one of a pair, does not run at the same time.
    """

    engine: EngineIdentity
    config: Config
    workload: Workload
    seed: int
    directory: Path
    limits: Limits
    interval_ms: int = 250
    verify_keys: int = 1000
    trial: int | None = None
    cpus: tuple[int, ...] = ()
    slices: int = 0
    load_seed: int | None = None
    prepared: Prepared | None = None
    save_ledger: Path | None = None
    bulk_load: BulkLoad | None = None
    alone: bool = True
