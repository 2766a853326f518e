"""The cache: load a database once, then start every run that can from a copy of it.

What a golden database is loaded with: the options that it depends on (`layout.py`), and the
engine's defaults for all others. So it is the same one for every configuration of that layout,
whichever comes first; the load is not measured, and the run itself opens its copy with the whole
configuration. It is loaded on all cores, within the limits of the run that asked for it.
"""

from __future__ import annotations

import shutil
import threading
import time
from dataclasses import dataclass, replace
from pathlib import Path

from lsmtune.databases.ageing import age_max_s
from lsmtune.databases.building import begin_building, publish, tidy_building
from lsmtune.databases.clone import clone
from lsmtune.databases.eviction import make_room, sweep
from lsmtune.databases.fingerprint import take_fingerprint
from lsmtune.databases.golden import (
    LEDGER,
    Facts,
    Golden,
    building_paths,
    find_golden,
    golden_path,
    is_strange,
    remove_golden,
    remove_remains,
)
from lsmtune.databases.key import LibraryDigests
from lsmtune.databases.lock import Clock, wait_for_lock
from lsmtune.databases.observer import CacheObserver, Preparation
from lsmtune.databases.order import Order, order_of
from lsmtune.errors import InputError
from lsmtune.records.measurement import Measurement, Outcome
from lsmtune.records.request import Limits, RunRequest
from lsmtune.runners.base import Runner
from lsmtune.runners.native_run import DATABASE
from lsmtune.storage.marker import claim, is_owned, not_ours
from lsmtune.storage.trouble import explained


@dataclass(frozen=True)
class _Failure:
    """A load that did not end well, and the limits that it had."""

    why: str
    limits: Limits

    def would_repeat(self, limits: Limits) -> bool:
        """Whether another try would have no more to spend."""
        return (
            limits.deadline_s <= self.limits.deadline_s
            and limits.memory_bytes <= self.limits.memory_bytes
            and limits.disk_bytes <= self.limits.disk_bytes
        )


class DatabaseCache:
    """Golden databases in `directory`, of `size_bytes` on the disk at most, loaded by `runner`.

    Several processes may use one directory at once. It should be on the file system of the runs'
    folders, because links do not reach farther. While one is loaded, it takes space beside
    `size_bytes`. `verify` compares every byte of a golden database before each use, not only
    names and sizes. `wall_clock` gives seconds since the epoch, `clock` those of a monotonic clock.
    """

    def __init__(
        self,
        directory: Path,
        runner: Runner,
        size_bytes: int,
        *,
        observer: CacheObserver | None = None,
        verify: bool = False,
        clock: Clock = time.monotonic,
        wall_clock: Clock = time.time,
    ) -> None:
        self.directory = directory
        self._runner = runner
        self._size_bytes = size_bytes
        self._observer = observer or CacheObserver()
        self._verify = verify
        self._clock = clock
        self._wall_clock = wall_clock
        self._libraries = LibraryDigests()
        self._failures: dict[str, _Failure] = {}
        self._swept = False

    def prepare(self, request: RunRequest, cancel: threading.Event | None = None) -> RunRequest:
        """`request` as a run on a copy of a golden database, which is loaded where there is none.

        The copy is in `request.directory / "db"`, with its ledger in `ledger` beside it; nothing
        else of the cache is needed from then on. The workload has a settle phase more when the
        load did not end with one. `load_seed` is kept where it was set.

        The request comes back unchanged when there can be no golden database for it (`order_of`),
        and when loading one failed or was cancelled: then the run fails in its own words, or does
        without. Raises LsmtuneError for what the user can mend (the disk, the folder, the driver).
        """
        order = order_of(request, self._libraries)
        if order is None:
            return request
        with explained(self.directory):
            preparation = self._prepare(order, cancel)
        self._observer.run_prepared(preparation)
        return order.run_request() if preparation.prepared else request

    def same(self, first: RunRequest, second: RunRequest) -> bool:
        """Whether `prepare` would start both from copies of one golden database, or neither."""
        orders = (order_of(request, self._libraries) for request in (first, second))
        one, other = (None if order is None else order.key.digest for order in orders)
        return one == other

    def _prepare(self, order: Order, cancel: threading.Event | None) -> Preparation:
        if not self._swept:
            _claim(self.directory)
            sweep(self.directory)
            self._swept = True
        place = golden_path(self.directory, order.key)
        lock = wait_for_lock(place, cancel, order.request.limits.deadline_s, self._clock)
        if lock is None:
            return Preparation(False, note="another tuner was still loading the same database")
        with lock:
            if is_strange(place):
                raise not_ours(place)
            golden, why = self._usable(order, place)
            if golden is not None:
                return self._copied(order, golden, None)
            preparation = self._loaded(order, place, cancel)
            if find_golden(place) is None:
                lock.forget()
        note = "; ".join(part for part in (why, preparation.note) if part)
        return replace(preparation, note=note)

    def _usable(self, order: Order, place: Path) -> tuple[Golden | None, str]:
        """The golden database at `place`, if it is one for `order`, or why it was removed."""
        golden = find_golden(place)
        why = "" if golden is None else golden.damage(checksums=self._verify)
        if golden is not None and not why:
            age_s = self._wall_clock() - golden.facts.built_unix_s
            if age_s <= age_max_s(order.layout, order.request.engine.name):
                return golden, ""
            why = "compaction by age would rewrite it"
        remove_golden(place)
        return None, f"loaded again: {why}" if why else ""

    def _copied(self, order: Order, golden: Golden, loaded_s: float | None) -> Preparation:
        started = self._clock()
        note = clone(golden.database, order.request.directory / DATABASE)
        shutil.copyfile(golden.ledger, order.request.directory / LEDGER)
        golden.note_use(self._wall_clock())
        return Preparation(True, loaded_s, self._clock() - started, note)

    def _loaded(self, order: Order, place: Path, cancel: threading.Event | None) -> Preparation:
        """Load the golden database at `place` and copy it; its lock is held."""
        failure = self._failures.get(order.key.digest)
        if failure is not None and failure.would_repeat(order.request.limits):
            return Preparation(False, note=failure.why)
        self._observer.database_loading(order.plan.load, order.layout)
        for left in building_paths(place):
            remove_remains(left)
        building = begin_building(place)
        try:
            measurement = self._runner.run(
                order.load_request(building), self._observer.load_message, cancel
            )
            if measurement.outcome is not Outcome.OK:
                return self._failed(order, measurement)
            return self._kept(order, place, building, measurement)
        finally:
            remove_remains(building)

    def _failed(self, order: Order, measurement: Measurement) -> Preparation:
        said = f": {measurement.error.message}" if measurement.error else ""
        why = f"loading the database ended {measurement.outcome.value}{said}"
        if measurement.outcome is not Outcome.CANCELLED:
            self._failures[order.key.digest] = _Failure(why, order.request.limits)
        return Preparation(False, measurement.elapsed_s, note=why)

    def _kept(
        self, order: Order, place: Path, building: Path, measurement: Measurement
    ) -> Preparation:
        """Keep what was loaded in `building` and copy it; without room for it, give it away."""
        disk_bytes = tidy_building(building)
        loaded_s = measurement.elapsed_s
        why = make_room(self.directory, disk_bytes, self._size_bytes)
        if why:
            shutil.move(building / DATABASE, order.request.directory / DATABASE)
            shutil.move(building / LEDGER, order.request.directory / LEDGER)
            return Preparation(True, loaded_s, note=f"the loaded database was not kept: {why}")
        settled = measurement.phases[-1] if measurement.phases else None
        fingerprint = take_fingerprint(building / DATABASE, settled)
        facts = Facts(fingerprint, disk_bytes, loaded_s, self._wall_clock())
        return self._copied(order, publish(building, place, order.key, facts), loaded_s)


def _claim(directory: Path) -> None:
    """Make `directory` ours, also when another tuner does so at the same moment."""
    try:
        claim(directory, "golden databases")
    except (FileExistsError, InputError):
        if not is_owned(directory):
            raise
