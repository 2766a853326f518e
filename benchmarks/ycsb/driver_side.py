"""The driver's side of the comparison with YCSB-cpp, and the settling of both sides' databases."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from ycsb_cpp_peer import ENGINE_OPTIONS

from lsmtune.driver.native import NativeRunner
from lsmtune.engines.properties import properties_of
from lsmtune.experiment.database_files import clone
from lsmtune.model.config import Config, EngineIdentity
from lsmtune.model.measurement import Measurement, Outcome, PhaseMeasurement
from lsmtune.model.request import Limits, Prepared, RunRequest
from lsmtune.model.workload import Phase, PhaseKind, Workload
from lsmtune.workloads.stated import state_workload

LIMITS = Limits(deadline_s=1800.0, memory_bytes=12 << 30, disk_bytes=40 << 30)
_LOADED_PHASES = 2  # load, settle
_SETTLE = Phase("settle", PhaseKind.SETTLE)


def read_workload(file: Path, properties: Mapping[str, str]) -> Workload:
    """What the product makes of a workload file of YCSB with `properties` over it."""
    return state_workload("ycsb", {}, str(file), properties_of([file], properties)).workload


@dataclass(frozen=True)
class DriverSide:
    """Runs by the driver on one engine library, with the options of both sides."""

    runner: NativeRunner
    identity: EngineIdentity

    def load(self, workload: Workload, directory: Path, seed: int) -> Measurement:
        """Loads and settles `directory / "db"`; notes beside it what it wrote."""
        directory.mkdir()
        loaded = replace(workload, phases=workload.phases[:_LOADED_PHASES])
        return self._run(loaded, directory, seed, save_ledger=directory / "ledger")

    def run(
        self, workload: Workload, base: Path, directory: Path, seed: int, load_seed: int
    ) -> Measurement:
        """Runs and settles a copy of what `load` left in `base`."""
        directory.mkdir()
        clone(base / "db", directory / "db")
        settled = replace(workload, phases=(*workload.phases, replace(_SETTLE, name="settle-run")))
        prepared = Prepared(base / "ledger", _LOADED_PHASES)
        return self._run(settled, directory, seed, load_seed=load_seed, prepared=prepared)

    def settle(self, database: Path, scratch: Path) -> int:
        """Settles the database of another program, moved to a folder in `scratch`; its bytes then.

        The driver opens only what an earlier run has prepared. So one with nothing but a settling
        is done first, on a database of its own, and what that noted, that there is nothing to
        expect, is given for `database`.
        """
        nothing = Workload("settle", (_SETTLE,), num=1)
        (scratch / "nothing").mkdir()
        ledger = scratch / "nothing" / "ledger"
        self._run(nothing, scratch / "nothing", 1, save_ledger=ledger, verify_keys=0)
        (scratch / "settled").mkdir()
        database.rename(scratch / "settled" / "db")
        twice = replace(nothing, phases=(_SETTLE, replace(_SETTLE, name="settle-again")))
        prepared = Prepared(ledger, 1)
        done = self._run(twice, scratch / "settled", 1, prepared=prepared, verify_keys=0)
        if done.database_bytes is None:
            raise SystemExit("driver: did not say how large the database is")
        return done.database_bytes

    def empty_database(self, directory: Path) -> Path:
        """A database with nothing in it, made by the driver in `directory`."""
        directory.mkdir()
        self._run(Workload("settle", (_SETTLE,), num=1), directory, 1)
        return directory / "db"

    def _run(
        self,
        workload: Workload,
        directory: Path,
        seed: int,
        *,
        load_seed: int | None = None,
        prepared: Prepared | None = None,
        save_ledger: Path | None = None,
        verify_keys: int = 1000,
    ) -> Measurement:
        measurement = self.runner.run(
            RunRequest(
                engine=self.identity,
                config=Config(ENGINE_OPTIONS[self.identity.name], "both sides"),
                workload=workload,
                seed=seed,
                directory=directory,
                limits=LIMITS,
                verify_keys=verify_keys,
                load_seed=load_seed,
                prepared=prepared,
                save_ledger=save_ledger,
            )
        )
        if measurement.outcome is not Outcome.OK:
            raise SystemExit(f"driver: {measurement.outcome}: {measurement.error}")
        return measurement


def phase_of(measurement: Measurement, kind: PhaseKind) -> PhaseMeasurement:
    """The one phase of `kind`."""
    (found,) = (phase for phase in measurement.phases if phase.kind == kind.value)
    return found


def lookups_found(phase: PhaseMeasurement) -> int | None:
    """Keys that lookups of `phase` found, counted as YCSB-cpp does; None of a load.

    The driver counts a read-modify-write once, which looks its key up twice, and a scan, of which
    YCSB-cpp does not say what it found. None was missing where this is used.
    """
    if phase.keys_found is None:
        return None
    by_type = phase.operations_by_type or {}
    return phase.keys_found + by_type.get("read_modify_write", 0) - by_type.get("scan", 0)
