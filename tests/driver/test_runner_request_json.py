"""The requests that we write are the golden ones, and validate."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

from hypothesis import given
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from lsmtune.driver.messages import check_request, probe_request, run_request
from lsmtune.model.config import Config, EngineIdentity
from lsmtune.model.request import BulkLoad, Limits, Prepared, RunRequest
from lsmtune.model.workload import Durability, PageCache, Phase, PhaseKind, Workload

PROTOCOL = Path(__file__).parents[2] / "protocol"
SCHEMA = Draft202012Validator(json.loads((PROTOCOL / "request.schema.json").read_text()))


def golden(name: str) -> Any:
    return json.loads((PROTOCOL / "golden" / name).read_text())


def request_for(workload: Workload, config: Config, seed: int = 7) -> RunRequest:
    return RunRequest(
        engine=EngineIdentity("rocksdb", library="/opt/rocksdb/librocksdb.so"),
        config=config,
        workload=workload,
        seed=seed,
        directory=Path("/tmp/run-1"),
        limits=Limits(1.0, 1, 1),
    )


def test_the_golden_run_request_is_what_we_write() -> None:
    measure, paced = PhaseKind.MEASURE, 20000.0
    phases = (
        Phase("load", PhaseKind.LOAD, "filluniquerandom", operations_per_thread=1000000),
        Phase("settle", PhaseKind.SETTLE),
        Phase("warmup", PhaseKind.WARMUP, "readrandom", duration_s=1.0, threads=2),
        Phase("readrandom", measure, "readrandom", operations_per_thread=500000, threads=2),
        Phase("paced", measure, "overwrite", duration_s=5.0, rate_ops_s=paced),
        Phase("seekrandom", measure, "seekrandom", operations_per_thread=10000, seek_nexts=10),
    )
    config = Config({"write_buffer_size": 4194304, "block_based_table_factory.block_size": 8192})
    request = request_for(Workload("mixed", phases, num=1000000), config)
    assert run_request(request, request.directory / "db") == golden("request-run.json")


def test_the_golden_request_with_slices_is_what_we_write() -> None:
    phases = (
        Phase("load", PhaseKind.LOAD, "filluniquerandom", operations_per_thread=1000),
        Phase("overwrite", PhaseKind.MEASURE, "overwrite", operations_per_thread=500, threads=2),
    )
    request = replace(
        request_for(
            Workload("sliced", phases, num=1000), Config({"write_buffer_size": 4194304}), seed=7
        ),
        engine=EngineIdentity("leveldb", library="/opt/leveldb/libleveldb.so.1"),
        directory=Path("/tmp/run-2"),
        slices=2,
    )
    assert run_request(request, request.directory / "db") == golden("request-slices.json")


def test_the_golden_request_on_a_prepared_database_says_what_we_write() -> None:
    load = Phase("load", PhaseKind.LOAD, "filluniquerandom", operations_per_thread=1000000)
    phases = (
        load,
        Phase("settle", PhaseKind.SETTLE),
        Phase("overwrite", PhaseKind.MEASURE, "overwrite", operations_per_thread=100000),
    )
    request = replace(
        request_for(Workload("prepared", phases, num=1000000), Config(), seed=8),
        directory=Path("/tmp/run-2"),
        load_seed=7,
        prepared=Prepared(Path("/tmp/golden-1/ledger"), phases=2),
        save_ledger=Path("/tmp/run-2/ledger"),
        bulk_load=BulkLoad(threads=2, hold_compactions=True),
    )
    written = run_request(request, request.directory / "db")
    assert with_defaults(golden("request-prepared.json")) == written


def test_the_golden_check_is_what_we_write() -> None:
    load = Phase("load", PhaseKind.LOAD, "filluniquerandom", operations_per_thread=1000000)
    workload = Workload("load", (load,), num=1000000, page_cache=PageCache.COLD)
    request = replace(
        request_for(workload, Config({"write_buffer_size": 4194304}), seed=8), load_seed=7
    )
    written = check_request(request, Path("/tmp/run-3/db"), 312440)
    assert with_defaults(golden("request-check.json")) == written


def with_defaults(request: Any) -> Any:
    """With what the golden file leaves to its reader, and we always write."""
    for phase in request["workload"]["phases"]:
        if phase["kind"] != "settle":
            phase.setdefault("threads", 1)
    if request["command"] == "run":
        request = {"interval_ms": 250, "verify_keys": 1000} | request
    return request


def test_what_is_not_asked_for_is_not_sent() -> None:
    """A page cache that is read past is a matter of the engine's options."""
    load = Phase("load", PhaseKind.LOAD, "fillseq", operations_per_thread=10)
    for page_cache in (PageCache.WARM, PageCache.DIRECT):
        workload = Workload("load", (load,), num=10, page_cache=page_cache)
        document = run_request(request_for(workload, Config()), Path("/tmp/db"))
        assert not {"slices", "load_seed", "prepared", "save_ledger"} & document.keys()
        assert "page_cache" not in cast("dict[str, object]", document["workload"])


def test_the_golden_probe_request_is_what_we_write() -> None:
    engine = EngineIdentity("leveldb", library="/opt/leveldb/libleveldb.so.1")
    assert probe_request(engine, Path("/tmp/probe-1")) == golden("request-probe.json")


phases = st.builds(
    Phase,
    name=st.text(min_size=1, max_size=8),
    kind=st.sampled_from([PhaseKind.LOAD, PhaseKind.WARMUP, PhaseKind.MEASURE]),
    operation=st.sampled_from(["fillseq", "readrandom", "seekrandom", "readwhilewriting"]),
    operations_per_thread=st.integers(1, 10**9),
    duration_s=st.none() | st.floats(0.1, 1e6),
    threads=st.integers(1, 64),
    rate_ops_s=st.none() | st.floats(1, 1e7),
    seek_nexts=st.integers(0, 100),
) | st.just(Phase("settle", PhaseKind.SETTLE))

options = st.dictionaries(
    st.text(min_size=1, max_size=10),
    st.integers() | st.booleans() | st.text(max_size=5) | st.floats(allow_nan=False),
    max_size=4,
)

more = st.fixed_dictionaries(
    {},
    optional={
        "slices": st.integers(0, 1000),
        "load_seed": st.integers(0, 2**64 - 1),
        "prepared": st.builds(Prepared, st.just(Path("/tmp/ledger")), st.integers(1, 3)),
        "save_ledger": st.just(Path("/tmp/ledger")),
    },
)


@given(
    st.lists(phases, min_size=1, max_size=4),
    options,
    st.integers(0, 2**64 - 1),
    st.sampled_from(Durability),
    st.sampled_from(PageCache),
    more,
)
def test_every_request_validates(
    some: list[Phase],
    chosen: dict[str, int | bool | str | float],
    seed: int,
    durable: Durability,
    page_cache: PageCache,
    rest: dict[str, Any],
) -> None:
    workload = Workload("any", tuple(some), num=10, durability=durable, page_cache=page_cache)
    request = replace(request_for(workload, Config(chosen), seed), **rest)
    database = request.directory / "db"
    for document in (run_request(request, database), check_request(request, database, 3)):
        SCHEMA.validate(json.loads(json.dumps(document, allow_nan=False)))
