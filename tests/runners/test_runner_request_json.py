"""The requests that we write are the golden ones, and validate."""

from __future__ import annotations

import json
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from lsmtune.records.config import Config
from lsmtune.records.engine import EngineIdentity
from lsmtune.records.request import Limits, RunRequest
from lsmtune.records.workload import Durability, Phase, PhaseKind, Workload
from lsmtune.runners.request_json import probe_request, run_request

PROTOCOL = Path(__file__).parents[2] / "protocol"
SCHEMA = Draft202012Validator(json.loads((PROTOCOL / "request.schema.json").read_text()))


def golden(name: str) -> object:
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


@given(
    st.lists(phases, min_size=1, max_size=4),
    options,
    st.integers(0, 2**64 - 1),
    st.sampled_from(Durability),
)
def test_every_request_validates(
    some: list[Phase], chosen: dict[str, int | bool | str | float], seed: int, durable: Durability
) -> None:
    workload = Workload("any", tuple(some), num=10, durability=durable)
    request = request_for(workload, Config(chosen), seed)
    document = run_request(request, request.directory / "db")
    SCHEMA.validate(json.loads(json.dumps(document, allow_nan=False)))
