"""Loaded databases: load one once, then start every run that can from a copy of it."""

from __future__ import annotations

import json
import math
import shutil
import threading
import time
from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass, field, fields
from pathlib import Path

from lsmtune.driver.runner import DATABASE, Runner
from lsmtune.experiment.database_files import (
    BUILDING,
    FACTS,
    READY,
    TABLE_SUFFIXES,
    Facts,
    Golden,
    clone,
    database_files,
    find_golden,
    goldens_in,
    remove_golden,
    sync,
    take_fingerprint,
)
from lsmtune.experiment.database_key import LEDGER, GoldenPlan, golden_plan
from lsmtune.experiment.disturbed import disturbance_of, tried_again
from lsmtune.experiment.files import GOLDEN, claim, explained, new_folder, remove_owned, why_kept
from lsmtune.experiment.observer import Observer
from lsmtune.machine.awake import Clock
from lsmtune.machine.cgroup import memory_limit
from lsmtune.machine.files import MARKER, write_whole
from lsmtune.model.codec import encode
from lsmtune.model.config import Config
from lsmtune.model.measurement import Measurement, Outcome
from lsmtune.model.request import Limits, RunRequest
from lsmtune.units import format_bytes

# --- How old a golden database may become before a run on a copy of it is another run.
#
# RocksDB compacts files that have reached an age (`ttl`, `periodic_compaction_seconds`;
# rocksdb/advanced_options.h). In a copy of an old database all files would have reached it at once,
# and the run would rewrite the whole tree, which none on a freshly loaded database does.

_AGE_OPTIONS = ("ttl", "periodic_compaction_seconds")
# What block-based tables get where neither option is set (rocksdb/advanced_options.h).
_TTL_DEFAULT_S = 30 * 24 * 3600.0
# Old enough for a long study, and far from the age even for a run of many hours.
_SHARE = 0.25


def age_max_s(config: Config, engine: str) -> float:
    """The greatest age, in seconds, of a golden database for runs with `config`."""
    if engine != "rocksdb":
        return math.inf
    # Another value is off, or no number, which the engine says.
    values = [config.options.get(name) for name in _AGE_OPTIONS]
    ages_s = [float(value) for value in values if isinstance(value, int | float) and value > 0]
    return _SHARE * min([*ages_s, _TTL_DEFAULT_S])


# --- Making a golden database: a folder of its own, everything in it synced, then its name.

_TABLE_MODE = 0o444


def tidy_building(building: Path) -> int:
    """Protect and sync the database that was loaded in `building`, and drop what is not of it.

    Returns the space that it takes on the disk, in bytes. Raises OSError.
    """
    database, ledger = building / DATABASE, building / LEDGER
    files = database_files(database)
    kept = {building: {MARKER, DATABASE, LEDGER}, database: {file.name for file in files}}
    for folder, names in kept.items():
        for entry in folder.iterdir():
            if entry.name not in names and not entry.is_dir():
                entry.unlink()
    for file in files:
        if file.suffix in TABLE_SUFFIXES:
            file.chmod(_TABLE_MODE)
    for path in (*files, ledger, database):
        sync(path)
    # Only now: a file takes its space on the disk when it is synced. st_blocks counts units of 512
    # bytes, whatever the file system's own are (stat(2)).
    return sum(path.stat().st_blocks * 512 for path in (*files, ledger))


def publish(building: Path, golden: Path, key: Mapping[str, object], facts: Facts) -> Golden:
    """Make the tidy database in `building`, of `key`, the golden one at `golden`.

    Nothing is in use before. Raises OSError.
    """
    write_whole(building / FACTS, json.dumps({"key": key, **encode(facts)}, indent=1) + "\n")
    sync(building)
    write_whole(building / READY, "")
    sync(building)
    building.rename(golden)
    sync(golden.parent)
    return Golden(golden, facts)


# --- Keeping the golden databases within their space, and the cache free of what kills left.

# A run on a copy may write the whole database again before it deletes the old tables, and the load
# of the next one may be as large: a cache must not be why either of them finds the disk full.
_FREE_FACTOR = 2


def make_room(directory: Path, new_bytes: int, size_bytes: int) -> str:
    """Make `new_bytes`, on the disk already, fit into the cache `directory` of `size_bytes`.

    Returns why they do not fit, empty when they do. For that, twice as much must stay free on
    the disk. Golden databases are removed, the one whose last use is longest ago first, and none
    where all of them would not do. Copies that runs made keep their tables until those runs end.
    Raises OSError and LsmtuneError.
    """
    room = f"the {format_bytes(size_bytes)} for loaded databases"
    if new_bytes > size_bytes:
        return f"{format_bytes(new_bytes)} do not fit into {room}"
    goldens = sorted(goldens_in(directory), key=Golden.used_unix_ns)
    taken_bytes = sum(golden.facts.disk_bytes for golden in goldens)

    def lacking(removable_bytes: int = 0) -> str:
        if taken_bytes - removable_bytes + new_bytes > size_bytes:
            return f"{room} are in use"
        free_bytes = shutil.disk_usage(directory).free
        if free_bytes + removable_bytes < _FREE_FACTOR * new_bytes:
            return f"the disk has only {format_bytes(free_bytes)} free"
        return ""

    if why := lacking(taken_bytes):
        return why
    for golden in goldens:
        if not lacking():
            return ""
        remove_golden(golden.path)
        taken_bytes -= golden.facts.disk_bytes
    return lacking()


def remove_unfinished(directory: Path) -> None:
    """Remove from the cache `directory` what was never finished, or half removed.

    Nothing is touched that is whole, or that is not ours. Raises OSError and LsmtuneError.
    """
    for path in sorted(directory.iterdir()):
        is_whole = path.suffix != BUILDING and find_golden(path) is not None
        if not is_whole and not why_kept(path, GOLDEN, directory):
            remove_golden(path)


# --- The cache: load a database once, then start every run that can from a copy of it.
#
# What a golden database is loaded with: the options of its layout (`database_key.layout_of`), and
# the engine's defaults for all others. So it is the same one for every configuration of that
# layout, whichever comes first; the load is not measured, and the run itself opens its copy with
# the whole configuration. It is loaded on all cores, within the limits of the run that asked.

# Where the database is this many times smaller than the memory of a run, all of it fits in beside
# whatever the engine holds, and it does not matter whose memory the cached pages are counted in.
_SHORT_FACTOR = 4


@dataclass(eq=False)
class DatabaseCache:
    """Golden databases in `directory`, of `size_bytes` on the disk at most, loaded by `runner`.

    It is in a folder that one process has locked: of an experiment, or a host. It should be on the
    file system of the runs' folders, because links do not reach farther. While one is loaded, it
    takes space beside `size_bytes`. `wall_clock` gives seconds since the epoch.
    """

    directory: Path
    runner: Runner
    size_bytes: int
    _: KW_ONLY
    observer: Observer = field(default_factory=Observer)
    wall_clock: Clock = time.time

    def __post_init__(self) -> None:
        self._warned: set[str] = set()
        self._failures: dict[str, Limits] = {}  # of loads: the limits that they had
        self._tidied = False

    def prepare(self, request: RunRequest, cancel: threading.Event | None = None) -> RunRequest:
        """`request` as a run on a copy of a golden database, which is loaded where there is none.

        The copy is in `request.directory / "db"`, with its ledger in `ledger` beside it; nothing
        else of the cache is needed from then on. The workload has a settle phase more when the
        load did not end with one. `load_seed` is kept where it was set.

        The request comes back unchanged where `golden_plan` says that there can be none for it, and
        when loading one failed or was cancelled: then the run fails in its own words, or does
        without. Raises LsmtuneError for what the user can mend (the disk, the folder, the driver).
        """
        plan = golden_plan(request)
        if plan is None:
            return request
        with explained(self.directory):
            return self._prepare(plan, cancel) or request

    def warn_once(self, note: str) -> None:
        """Warn of `note`, unless it is empty, or another one was alike up to its colon."""
        what = note.partition(":")[0]
        if what and what not in self._warned:
            self._warned.add(what)
            self.observer.warning(note)

    def _prepare(self, plan: GoldenPlan, cancel: threading.Event | None) -> RunRequest | None:
        if not self._tidied:
            claim(self.directory, "golden databases")
            remove_unfinished(self.directory)
            self._tidied = True
        path = self.directory / plan.digest
        golden = find_golden(path)
        damage = "" if golden is None else golden.damage()
        if golden is not None and not damage:
            age_s = self.wall_clock() - golden.facts.built_unix_s
            if age_s <= age_max_s(plan.layout, plan.request.engine.name):
                return self._copy(plan, golden)
            damage = "compaction by age would rewrite it"
        remove_golden(path)
        if damage:
            self.warn_once(f"loaded again: {damage}")
        return self._load(plan, path, cancel)

    def _copy(self, plan: GoldenPlan, golden: Golden) -> RunRequest:
        """Copy `golden` into the folder of the request; the run on that copy."""
        request = plan.request
        # Where memory is short, a page that is cached counts, and belongs to one run alone.
        memory_bytes, own_limit = request.limits.memory_bytes, memory_limit()
        if own_limit is not None:  # the run has no more than this process
            memory_bytes = min(memory_bytes, own_limit.limit_bytes)
        short = _SHORT_FACTOR * golden.facts.disk_bytes > memory_bytes
        link = request.alone or not short
        self.warn_once(clone(golden.database, request.directory / DATABASE, link=link))
        shutil.copyfile(golden.ledger, request.directory / LEDGER)
        golden.note_use(self.wall_clock())
        return plan.run_request(own_pages=short)

    def _load(
        self, plan: GoldenPlan, path: Path, cancel: threading.Event | None
    ) -> RunRequest | None:
        """Load the golden database at `path` and copy it; None where that does not succeed."""
        limits, before = plan.request.limits, self._failures.get(plan.digest)
        if before is not None and all(
            getattr(limits, f.name) <= getattr(before, f.name) for f in fields(limits)
        ):
            return None  # another try would have no more to spend
        self.observer.database_loading(plan.load, plan.layout)

        def attempt() -> tuple[Measurement, RunRequest | None]:
            # A name that was never used before: the driver of a tuner that was killed may write on
            # for a moment, by the names of its files.
            building = new_folder(path.parent, f"{path.name}.", BUILDING)
            try:
                claim(building, GOLDEN, path.parent)
                measurement = self.runner.run(
                    plan.load_request(building), self.observer.run_message, cancel
                )
                kept = None
                if measurement.outcome is Outcome.OK:
                    kept = self._keep(plan, path, building, measurement)
                return measurement, kept
            finally:
                remove_owned(building, GOLDEN, path.parent)

        def disturbance(tried: tuple[Measurement, RunRequest | None]) -> str:
            why = "" if cancel is not None and cancel.is_set() else disturbance_of(tried[0])
            return f"loading a database was {why}" if why else ""

        measurement, kept = tried_again(attempt, disturbance, self.observer.warning)
        if kept is not None:
            return kept
        self.warn_once(f"loading the database ended {measurement.ended}")
        if measurement.outcome not in (Outcome.CANCELLED, Outcome.DISTURBED):
            self._failures[plan.digest] = limits
        return None

    def _keep(
        self, plan: GoldenPlan, path: Path, building: Path, measurement: Measurement
    ) -> RunRequest:
        """Keep what was loaded in `building` and copy it; without room for it, give it away."""
        disk_bytes = tidy_building(building)
        why = make_room(self.directory, disk_bytes, self.size_bytes)
        if why:
            shutil.move(building / DATABASE, plan.request.directory / DATABASE)
            shutil.move(building / LEDGER, plan.request.directory / LEDGER)
            self.warn_once(f"the loaded database was not kept: {why}")
            return plan.run_request(own_pages=True)
        settled = measurement.phases[-1] if measurement.phases else None
        fingerprint = take_fingerprint(building / DATABASE, settled)
        facts = Facts(fingerprint, disk_bytes, self.wall_clock())
        return self._copy(plan, publish(building, path, plan.key, facts))
