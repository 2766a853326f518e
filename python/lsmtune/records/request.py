"""What a Runner is asked to do: one run, with the limits that end it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from lsmtune.records.config import Config
from lsmtune.records.engine import EngineIdentity
from lsmtune.records.workload import Workload


@dataclass(frozen=True)
class Limits:
    """When a run is killed: wall seconds, resident bytes, bytes under the run's folder."""

    deadline_s: float
    memory_bytes: int
    disk_bytes: int


# What a run may take unless the user says otherwise.
LIMITS_DEFAULT = Limits(deadline_s=600.0, memory_bytes=4 * 2**30, disk_bytes=20 * 2**30)

SEED_MAX = 2**53 - 1  # the largest whole number that every JSON reader keeps exactly
TRIALS_MAX = 1_000_000  # of a study


@dataclass(frozen=True)
class Prepared:
    """A database that is there already: its first `phases` were executed by an earlier run.

    `ledger` is the file in which that run noted what it had written.
    """

    ledger: Path
    phases: int


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
    written, for a run on a copy of this database.
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
