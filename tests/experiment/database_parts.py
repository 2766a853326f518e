"""Requests that begin with a load, and a runner that leaves files like an engine's."""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path

from lsmtune.driver.messages import Message
from lsmtune.experiment.database_files import database_files
from lsmtune.model.config import Config, EngineIdentity, OptionValue
from lsmtune.model.measurement import Measurement, Outcome, RunError
from lsmtune.model.request import Limits, RunRequest
from lsmtune.model.workload import Durability, Phase, PhaseKind, Workload
from made_up import made_up_phase

LOAD = Phase("load", PhaseKind.LOAD, "filluniquerandom", operations_per_thread=100)
SETTLE = Phase("settle", PhaseKind.SETTLE)
READ = Phase("readrandom", PhaseKind.MEASURE, "readrandom", operations_per_thread=100)
READS = Workload("readrandom", (LOAD, SETTLE, READ), num=100)
LIMITS = Limits(deadline_s=20.0, memory_bytes=1 << 30, disk_bytes=1 << 30)
TABLE_BYTES = 8192
SETTLED = made_up_phase(
    "settle",
    kind="settle",
    operation=None,
    operations=0,
    elapsed_s=0.0,
    throughput_ops_s=0.0,
    files_per_level=(0, 2),
    bytes_per_level=(0, 2 * TABLE_BYTES),
)


@dataclass
class FakeRunner:
    """Leaves two tables and what belongs to them; remembers its requests."""

    outcome: Outcome = Outcome.OK
    table_bytes: int = TABLE_BYTES
    requests: list[RunRequest] = field(default_factory=list)

    def run(
        self,
        request: RunRequest,
        _on_message: Callable[[Message], None] | None = None,
        cancel: threading.Event | None = None,
    ) -> Measurement:
        self.requests.append(request)
        database = request.directory / "db"
        database.mkdir()
        for name in ("000007.sst", "000009.sst"):
            (database / name).write_bytes(self._table(request, name))
        for name in ("CURRENT", "IDENTITY", "MANIFEST-000005", "000010.log", "OPTIONS-000011"):
            (database / name).write_text(f"{name} of {request.load_seed}")
        for name in ("LOCK", "LOG", "LOG.old.1795230207631383"):
            (database / name).touch()
        (database / "archive").mkdir()
        (request.directory / "engine.log").write_text("what the engine printed")
        outcome = Outcome.CANCELLED if cancel is not None and cancel.is_set() else self.outcome
        error = None
        if outcome is Outcome.OK:
            assert request.save_ledger is not None
            request.save_ledger.write_text(f"ledger of {request.load_seed}")
        else:
            error = RunError(outcome.value, f"it {outcome.value} while it loaded")
        return Measurement(
            outcome, request.engine, {}, "load", 1, 0.0, 1.5, phases=(SETTLED,), error=error
        )

    def _table(self, request: RunRequest, name: str) -> bytes:
        what = f"{name} {request.config.engine_options()} {request.load_seed}"
        return hashlib.shake_128(what.encode()).digest(self.table_bytes)


@dataclass
class Requests:
    """Makes requests, each with a new folder below `folder`, on an engine from `library`."""

    folder: Path
    library: Path
    made: int = 0

    def __call__(
        self,
        *,
        workload: Workload = READS,
        load_seed: int | None = None,
        limits: Limits = LIMITS,
        engine: str = "rocksdb",
        **options: OptionValue,
    ) -> RunRequest:
        self.made += 1
        directory = self.folder / f"run-{self.made}"
        directory.mkdir(parents=True)
        return RunRequest(
            engine=EngineIdentity(engine, library=str(self.library)),
            config=Config(options),
            workload=workload,
            seed=self.made,
            directory=directory,
            limits=limits,
            load_seed=load_seed,
        )


def phases(*named: Phase, durability: Durability = Durability.WAL) -> Workload:
    """A workload of these phases."""
    return replace(READS, phases=named, durability=durability)


def contents(database: Path) -> dict[str, bytes]:
    """Every file that belongs to the database, with its bytes."""
    return {file.name: file.read_bytes() for file in database_files(database)}
