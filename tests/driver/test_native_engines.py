"""The native runner on the real driver and real engines."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path

import psutil
import pytest
from jsonschema import Draft202012Validator

from lsmtune.driver.messages import IntervalPassed, Message, run_request
from lsmtune.driver.native import NativeRunner, probe
from lsmtune.driver.process import ChildProcess
from lsmtune.model.config import Config, EngineIdentity, OptionValue
from lsmtune.model.measurement import Measurement, Outcome
from lsmtune.model.request import Limits, RunRequest
from lsmtune.model.workload import Phase, PhaseKind, Workload
from patience import PATIENCE_S, in_time, wait_until_over
from troubles import why_not_ok

pytestmark = pytest.mark.engine

PROTOCOL = Path(__file__).parents[2] / "protocol"
NUM = 20_000
ENDLESS = 600.0


def workload(duration_s: float | None = None) -> Workload:
    """Load, settle, read while writing, overwrite; or overwrite for `duration_s`."""
    measure = PhaseKind.MEASURE
    load = Phase("load", PhaseKind.LOAD, "filluniquerandom", operations_per_thread=NUM)
    if duration_s is not None:
        overwrite = Phase("overwrite", measure, "overwrite", duration_s=duration_s)
        return Workload("mixed", (load, overwrite), num=NUM)
    phases = (
        load,
        Phase("settle", PhaseKind.SETTLE),
        Phase("readrandom", measure, "readrandom", operations_per_thread=NUM, threads=2),
        Phase("paced", measure, "readrandom", duration_s=0.6, rate_ops_s=2000.0),
        Phase("overwrite", measure, "overwrite", operations_per_thread=NUM),
    )
    return Workload("mixed", phases, num=NUM)


Make = Callable[..., RunRequest]


@pytest.fixture
def make(tmp_path: Path) -> Make:
    def build(
        engine: EngineIdentity,
        what: Workload | None = None,
        options: dict[str, OptionValue] | None = None,
        *,
        deadline_s: float = PATIENCE_S,
        memory_bytes: int = 2 << 30,
        disk_bytes: int = 2 << 30,
    ) -> RunRequest:
        directory = tmp_path / "run-1"
        directory.mkdir()
        limits = Limits(deadline_s, memory_bytes, disk_bytes)
        return RunRequest(
            engine=engine,
            config=Config(options or {}),
            workload=what or workload(),
            seed=3,
            directory=directory,
            limits=limits,
        )

    return build


def emptied(request: RunRequest) -> RunRequest:
    """The same once more."""
    shutil.rmtree(request.directory)
    request.directory.mkdir()
    return request


@pytest.fixture
def rocksdb(rocksdb_library: Path) -> EngineIdentity:
    return EngineIdentity("rocksdb", library=str(rocksdb_library))


def test_a_run_measures_every_phase_and_reads_its_keys_back(
    driver: Path, engine: EngineIdentity, make: Make
) -> None:
    request, runs = make(engine), list[Measurement]()

    def all_performed() -> bool:
        """Not where a busy machine took the 0.6 s in which one phase performs what it can."""
        runs.append(NativeRunner(driver).run(emptied(request)))
        assert runs[-1].outcome is Outcome.OK, runs[-1].error
        return runs[-1].phases[3].operations > 0

    in_time(all_performed)
    measurement = runs[-1]
    assert measurement.engine.version
    phases = {phase.name: phase for phase in measurement.phases}
    assert list(phases) == ["load", "settle", "readrandom", "paced", "overwrite"]
    assert phases["load"].operations == NUM
    read = phases["readrandom"]
    assert (read.operations, read.keys_found, read.keys_missing) == (2 * NUM, 2 * NUM, 0)
    assert phases["paced"].intervals
    assert 0 < phases["paced"].operations <= 1201  # 0.6 s at 2,000 a second, or what was managed
    assert phases["overwrite"].latency_us_p99 is not None
    assert phases["overwrite"].sustained_throughput_ops_s > 0
    assert measurement.verification is not None
    assert measurement.verification.keys_checked >= 1000
    assert measurement.verification.keys_lost == measurement.verification.keys_wrong == 0
    if engine.name != "memory":
        assert phases["overwrite"].flushes is not None
        assert (measurement.database_bytes or 0) > 0


def test_every_line_of_the_driver_is_in_the_schema(
    driver: Path, engine: EngineIdentity, make: Make
) -> None:
    request = make(engine)
    check = Draft202012Validator(json.loads((PROTOCOL / "message.schema.json").read_text()))
    lines: list[bytes] = []
    with ChildProcess([str(driver)], request.directory / "engine.log") as child:
        child.send(json.dumps(run_request(request, request.directory / "db")))
        while not child.exited():
            lines += child.lines(0.1)[0]
        lines += child.lines(0.1)[0]
    kinds = [json.loads(line)["type"] for line in lines]
    assert (kinds[0], kinds[-1]) == ("hello", "finished")
    for line in lines:
        check.validate(json.loads(line))


def test_a_probe_of_each_engine(driver: Path, engine: EngineIdentity, tmp_path: Path) -> None:
    library = None if engine.library is None else Path(engine.library)
    found = probe(driver, engine.name, library, tmp_path)
    assert found.engine.name == engine.name
    assert found.engine.version
    if engine.name != "memory":
        assert "snappy" in found.compressions
        assert "write_buffer_size" in [option.name for option in found.options]


def test_an_unknown_option_is_invalid_and_names_the_nearest(
    driver: Path, rocksdb: EngineIdentity, make: Make
) -> None:
    measurement = NativeRunner(driver).run(make(rocksdb, options={"write_bufer_size": 4194304}))
    assert measurement.outcome is Outcome.INVALID
    assert measurement.error is not None
    assert measurement.error.field == "options.write_bufer_size"
    assert measurement.error.nearest[0] == "write_buffer_size"


def test_what_is_no_engine_is_invalid(driver: Path, make: Make, tmp_path: Path) -> None:
    text = tmp_path / "librocksdb.so"
    text.write_text("this is no library")
    measurement = NativeRunner(driver).run(make(EngineIdentity("rocksdb", library=str(text))))
    assert measurement.outcome is Outcome.INVALID
    assert measurement.error is not None
    assert measurement.error.field == "engine.library"


def test_the_limits_end_a_real_run(driver: Path, rocksdb: EngineIdentity, make: Make) -> None:
    """By a clock that stands still until the measured phase has begun, and then passes them."""
    now_s = [0.0]

    def on_message(message: Message) -> None:
        if isinstance(message, IntervalPassed) and message.index == 1:
            now_s[0] = 1.5

    runner = NativeRunner(driver, clock=lambda: now_s[0])
    measurement = runner.run(make(rocksdb, workload(ENDLESS), deadline_s=1.0), on_message)
    assert measurement.outcome is Outcome.TIMEOUT
    assert [phase.name for phase in measurement.phases] == ["load"]
    assert measurement.intervals_unfinished


def test_memory_and_disk_of_a_real_run_are_capped(
    driver: Path, rocksdb: EngineIdentity, make: Make, tmp_path: Path
) -> None:
    memory = make(EngineIdentity("memory"), workload(ENDLESS), memory_bytes=4 << 20)
    assert NativeRunner(driver).run(memory).outcome is Outcome.OUT_OF_MEMORY
    (tmp_path / "run-1").rename(tmp_path / "run-0")
    disk = make(rocksdb, workload(ENDLESS), disk_bytes=4 << 20)
    assert NativeRunner(driver).run(disk).outcome is Outcome.DISK_FULL


def test_the_driver_obeys_cancel_within_its_grace(
    driver: Path, engine: EngineIdentity, make: Make
) -> None:
    request = make(engine, workload(ENDLESS))

    def obeyed() -> bool:
        cancel = threading.Event()

        def on_message(message: Message) -> None:
            if isinstance(message, IntervalPassed) and message.index == 1:
                cancel.set()

        measurement = NativeRunner(driver).run(emptied(request), on_message, cancel)
        assert measurement.outcome is Outcome.CANCELLED
        return "killed" not in why_not_ok(measurement)

    in_time(obeyed)


def test_the_driver_does_not_outlive_a_parent_that_was_killed(
    driver: Path, engine: EngineIdentity, tmp_path: Path
) -> None:
    script = tmp_path / "parent.py"
    script.write_text(parent_program(driver, engine, tmp_path))
    parent = subprocess.Popen([sys.executable, str(script)], stdout=subprocess.PIPE, text=True)
    with parent:
        assert parent.stdout is not None
        for line in parent.stdout:
            if line.strip() == "IntervalPassed":
                break
        (child,) = psutil.Process(parent.pid).children()
        os.kill(parent.pid, signal.SIGKILL)
        parent.wait()
    wait_until_over([child])


def parent_program(driver: Path, engine: EngineIdentity, tmp_path: Path) -> str:
    """A program that performs an endless run, and says each message."""
    (tmp_path / "run-2").mkdir()
    return f"""
from pathlib import Path
from lsmtune.model.config import Config
from lsmtune.model.config import EngineIdentity
from lsmtune.model.request import Limits, RunRequest
from lsmtune.model.workload import Phase, PhaseKind, Workload
from lsmtune.driver.native import NativeRunner

phase = Phase("overwrite", PhaseKind.MEASURE, "overwrite", duration_s={ENDLESS})
request = RunRequest(
    engine=EngineIdentity({engine.name!r}, library={engine.library!r}),
    config=Config(),
    workload=Workload("overwrite", (phase,), num={NUM}),
    seed=1,
    directory=Path({str(tmp_path / "run-2")!r}),
    limits=Limits({ENDLESS}, 2 << 30, 2 << 30),
)
NativeRunner(Path({str(driver)!r})).run(
    request, lambda message: print(type(message).__name__, flush=True)
)
"""


def test_measurements_of_one_seed_do_the_same_work(
    driver: Path, make: Make, tmp_path: Path
) -> None:
    def counts(measurement: Measurement) -> list[tuple[int, int | None]]:
        return [(p.operations, p.user_bytes_written) for p in measurement.phases]

    what = Workload(
        "fillrandom",
        (Phase("fillrandom", PhaseKind.MEASURE, "fillrandom", operations_per_thread=NUM),),
        num=NUM,
    )
    first = NativeRunner(driver).run(make(EngineIdentity("memory"), what))
    (tmp_path / "run-1").rename(tmp_path / "run-0")
    second = NativeRunner(driver).run(make(EngineIdentity("memory"), what))
    assert counts(first) == counts(second)
    assert first.verification is not None
    assert second.verification is not None
    assert first.verification.keys_checked == second.verification.keys_checked
