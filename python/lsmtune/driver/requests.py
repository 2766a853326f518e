"""Requests as the driver reads them; `protocol/request.schema.json` is their schema."""

from __future__ import annotations

from pathlib import Path

from lsmtune.driver.messages import PROTOCOL_VERSION
from lsmtune.model.config import EngineIdentity
from lsmtune.model.request import RunRequest
from lsmtune.model.workload import PageCache, PhaseKind, Workload, stated_parts

Json = dict[str, object]


def run_request(request: RunRequest, database: Path) -> Json:
    """The request for one run on the database in `database`."""
    prepared = request.prepared
    return _request(
        "run",
        **_of_run(request, database),
        interval_ms=request.interval_ms,
        verify_keys=request.verify_keys,
        prepared=prepared
        and {
            "ledger": str(prepared.ledger),
            "phases": prepared.phases,
            **_where_given(own_pages=prepared.own_pages or None),
        },
        save_ledger=None if request.save_ledger is None else str(request.save_ledger),
        bulk_load=request.bulk_load and dict(vars(request.bulk_load)),
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
    # A request says more than a file where that has the default, so that its log needs none.
    stated["durability"] = workload.durability.value
    for phase in stated["phases"]:
        if phase["kind"] != PhaseKind.SETTLE.value:
            phase.setdefault("threads", 1)
    return stated
