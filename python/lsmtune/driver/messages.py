"""The messages of the driver, typed, and the requests to it.

`protocol/message.schema.json` is the schema of messages. One line of JSON is one message.
`parse_message` is the only place that reads them.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import NoReturn

from lsmtune.errors import InputError, nearest_name
from lsmtune.model.codec import ProtocolError, read
from lsmtune.model.config import EngineIdentity
from lsmtune.model.measurement import (
    IntermediateReport,
    Interval,
    LevelWork,
    OptionNotTaken,
    Outcome,
    PhaseMeasurement,
    RunError,
    Verification,
)
from lsmtune.model.request import RunRequest
from lsmtune.model.workload import PageCache, PhaseKind, Workload, stated_parts

PROTOCOL_VERSION = 4


@dataclass(frozen=True)
class Hello:
    """The first message."""

    protocol_version: int
    driver_version: str


@dataclass(frozen=True)
class Opened:
    """The database is open with the options of the request, but for those not taken.

    `engine` is what the engine says it is, but for its build.
    """

    engine: EngineIdentity
    options_not_taken: tuple[OptionNotTaken, ...]


@dataclass(frozen=True)
class PhaseStarted:
    """Phase number `index` of the request begins."""

    index: int
    name: str
    kind: str


@dataclass(frozen=True)
class IntervalPassed(Interval):
    """One step of the interval series of phase `index`."""

    index: int = field(kw_only=True)

    def interval(self) -> Interval:
        """The step without its phase."""
        return Interval(**{each.name: getattr(self, each.name) for each in fields(Interval)})


@dataclass(frozen=True)
class Paused:
    """The driver is about to stop its whole process, until it is continued.

    `slice` slices of phase `index` are over. The other figures are those of the phase from its
    start to here, without the time for which the driver was stopped.
    """

    index: int
    slice: int
    operations_total: int
    elapsed_s: float
    cpu_s: float
    steal_s: float | None


@dataclass(frozen=True)
class PhaseFinished:
    """What phase `index` observed, without intervals and background work."""

    index: int
    phase: PhaseMeasurement


@dataclass(frozen=True)
class BackgroundWork:
    """Flush and compaction work during phase `index`; None where the engine cannot tell."""

    index: int
    flushes: int | None
    flush_bytes: int | None
    compactions: int | None
    compaction_read_bytes: int | None
    compaction_write_bytes: int | None
    write_amplification: float | None
    levels: tuple[LevelWork, ...] | None = None


@dataclass(frozen=True)
class Verified(Verification):
    """The read-back of written keys: of a sample after a run, of all that count in a check.

    In a check only: `keys_beyond` are there although they were not reported done, `keys_scanned` of
    all keys of the load are found by a scan, where the engine can scan.
    """

    keys_beyond: int | None = None
    keys_scanned: int | None = None


@dataclass(frozen=True)
class ProbedOption:
    """An option that the engine knows, and its default as text."""

    name: str
    default: str


@dataclass(frozen=True)
class Probed:
    """What a library is: the answer to a `probe` request."""

    engine: EngineIdentity
    compressions: tuple[str, ...]
    options: tuple[ProbedOption, ...]


@dataclass(frozen=True)
class TraceProgress:
    """How far the inspection of a trace has come."""

    bytes_read: int
    bytes_total: int
    records: int
    elapsed_s: float


@dataclass(frozen=True)
class TraceInspected:
    """What a trace holds: the answer to an `inspect_trace` request, which `traces/` reads."""

    document: Mapping[str, object]


@dataclass(frozen=True)
class Finished:
    """The last message of a run that ended well."""

    outcome: Outcome
    elapsed_s: float
    cpu_s: float
    rss_bytes_max: int
    database_bytes: int


@dataclass(frozen=True)
class Failed:
    """The last message of a run that did not."""

    outcome: Outcome
    error: RunError


Message = (
    Hello
    | Opened
    | PhaseStarted
    | IntervalPassed
    | Paused
    | PhaseFinished
    | BackgroundWork
    | Verified
    | Probed
    | IntermediateReport  # of a program of the user's own, not of the driver
    | TraceProgress
    | TraceInspected
    | Finished
    | Failed
)

_KINDS: dict[str, type[Message]] = {
    "hello": Hello,
    "opened": Opened,
    "phase_started": PhaseStarted,
    "interval": IntervalPassed,
    "paused": Paused,
    "phase_finished": PhaseFinished,
    "background_work": BackgroundWork,
    "verified": Verified,
    "probed": Probed,
    "trace_progress": TraceProgress,
    "trace_summary": TraceInspected,
    "finished": Finished,
    "failed": Failed,
}

# What is left out where it is not known, or not asked for. Flush and compaction work is read from
# the engine's log after the database was closed: it comes in a `background_work` message of its
# own, intervals in theirs.
_NOT_IN_PHASE = frozenset(
    {"intervals", "flushes", "flush_bytes", "levels"}
    | {"compactions", "compaction_read_bytes", "compaction_write_bytes"}
)
_OPTIONAL: Mapping[type[Message], frozenset[str]] = {
    Opened: frozenset({"build"}),
    Probed: frozenset({"build"}),
    Verified: frozenset({"keys_beyond", "keys_scanned"}),
    IntervalPassed: frozenset({"pending_compaction_bytes", "background_write_bytes"}),
    PhaseFinished: _NOT_IN_PHASE
    | {"files_per_level", "bytes_per_level", "page_cache_cached_share", "operations_by_type"}
    | {"block_cache_hits", "block_cache_misses", "replay", "reads_checked"},
}


def parse_message(line: bytes | str) -> Message:
    """One line of the driver as a message.

    Raises ProtocolError that names the field, InputError for a `hello` of another version.
    """
    try:
        data = json.loads(line, parse_constant=_refuse_constant)
    except (ValueError, RecursionError) as error:
        shown = repr(line[:80])
        raise ProtocolError(f"message: not a line of JSON ({error}): {shown}") from error
    if not isinstance(data, dict):
        raise ProtocolError(f"message: found {str(data)[:80]}; allowed: an object")
    name = data.pop("type", None)
    kind = _KINDS.get(name) if isinstance(name, str) else None
    if kind is None:
        near = nearest_name(name, _KINDS) if isinstance(name, str) else ""
        hint = f"; did you mean {near}?" if near else ""
        raise ProtocolError(f"message.type: found {name!r}; allowed: {', '.join(_KINDS)}{hint}")
    if kind is TraceInspected:
        return TraceInspected(data)
    version = data.get("protocol_version")
    # Before the other fields are looked at: another version may well have others.
    if kind is Hello and (version != PROTOCOL_VERSION or isinstance(version, bool)):
        raise InputError(
            "lsmtune-driver",
            "protocol_version",
            found=version,
            allowed=str(PROTOCOL_VERSION),
            why="driver and tuner are of different versions; `make setup` builds both",
        )
    phase = data.get("phase")
    for field_name in phase if isinstance(phase, dict) else ():
        if field_name in _NOT_IN_PHASE:
            raise ProtocolError(f"{name}.phase.{field_name}: unknown field")
    message: Message = read(kind, data, str(name), optional=_OPTIONAL.get(kind, frozenset()))
    if isinstance(message, Finished) and message.outcome is not Outcome.OK:
        raise ProtocolError(f"finished.outcome: found {message.outcome.value!r}; allowed: ok")
    if isinstance(message, Failed) and message.outcome is Outcome.OK:
        raise ProtocolError("failed.outcome: found 'ok'; allowed: any other outcome")
    return message


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not JSON")


# --- requests, as the driver reads them; `protocol/request.schema.json` is their schema

Json = dict[str, object]


def run_request(request: RunRequest, database: Path) -> Json:
    """The request for one run on the database in `database`."""
    prepared: Json | None = None
    if request.prepared is not None:
        prepared = {"ledger": str(request.prepared.ledger), "phases": request.prepared.phases}
        if request.prepared.own_pages:
            prepared["own_pages"] = True
    return _request(
        "run",
        **_of_run(request, database),
        interval_ms=request.interval_ms,
        verify_keys=request.verify_keys,
        prepared=prepared,
        save_ledger=None if request.save_ledger is None else str(request.save_ledger),
        bulk_load=None if request.bulk_load is None else dict(vars(request.bulk_load)),
        slices=request.slices or None,
    )


def check_request(request: RunRequest, database: Path, acknowledged: int) -> Json:
    """The request that asks what `database` holds after the run of `request` was killed.

    `acknowledged` operations of its first phase had been reported done.
    """
    return _request("check", **_of_run(request, database), acknowledged=acknowledged)


def probe_request(engine: EngineIdentity, directory: Path) -> Json:
    """The request that asks what a library is; the driver may write in `directory`."""
    return _request("probe", engine=_engine(engine), directory=str(directory))


def inspect_request(path: Path, ranges: int, key_number: Json | None) -> Json:
    """The request that asks what the trace in `path` holds.

    `ranges` parts of the numbers of its keys are told apart; `key_number` says how a key's number
    is read (None: the driver looks).
    """
    return _request("inspect_trace", path=str(path), ranges=ranges, key_number=key_number)


def _request(command: str, **fields: object) -> Json:
    """A request to do `command`; of the `fields` those that are not None."""
    return _where_given(protocol_version=PROTOCOL_VERSION, command=command, **fields)


def _of_run(request: RunRequest, database: Path) -> Json:
    """What a run and the look at what it left have in common."""
    return {
        "engine": _engine(request.engine),
        "directory": str(database),
        "options": request.config.engine_options(),
        "workload": _workload(request.workload),
        "seed": request.seed,
        "load_seed": request.load_seed,
    }


def _where_given(**fields: object) -> Json:
    return {name: value for name, value in fields.items() if value is not None}


def _engine(engine: EngineIdentity) -> Json:
    return _where_given(name=engine.name, library=engine.library)


def _workload(workload: Workload) -> Json:
    stated = stated_parts(workload, short=False)
    del stated["name"]
    # Reads and writes past the page cache are options of the engine: nothing for the driver to do.
    if workload.page_cache is PageCache.DIRECT:
        del stated["page_cache"]
    # A request states these defaults, which a file leaves out: it is complete by itself.
    stated["durability"] = workload.durability.value
    for phase in stated["phases"]:
        if phase["kind"] != PhaseKind.SETTLE.value:
            phase.setdefault("threads", 1)
    return stated
