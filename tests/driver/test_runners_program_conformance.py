"""The programs that lsmtune knows in the suite for all programs, each of them a fake."""

from __future__ import annotations

import time
from dataclasses import replace
from pathlib import Path

import pytest
from trusted_parts import engine_for, workload_for, write_fake

from lsmtune.driver.messages import Message, PhaseStarted
from lsmtune.model.config import Config, EngineIdentity
from lsmtune.model.measurement import Outcome
from lsmtune.model.request import RunRequest
from lsmtune.model.workload import Workload
from lsmtune.programs.find import find_program
from lsmtune.programs.program import FoundProgram, StepOutput
from lsmtune.programs.registry import PROGRAMS
from lsmtune.programs.runner import ProgramRunner
from lsmtune.testing.programs import LIMITS, ProgramSuite, Run


class _Fake(ProgramSuite):
    def executable(self, folder: Path) -> Path:
        return write_fake(self.name, folder)

    def workload(self) -> Workload:
        return workload_for(self.name)


class _Filling(_Fake):
    def test_reads_that_miss_what_was_put_are_data_loss(self, run: Run) -> None:
        """Without a log and without a flush at the end of a process its writes were gone.

        And the reads of the next process from an empty database were the best there are.
        """
        measurement = run("lose")
        assert measurement.outcome is Outcome.DATA_LOSS
        assert measurement.error is not None
        message = measurement.error.message
        assert message.endswith("lookups in readrandom did not find a key that was put")
        assert len(measurement.phases) == 2


class TestRocksdbDbBench(_Filling):
    name, nearest = "rocksdb-db_bench", ("--value_size",)
    engine = engine_for(name)


class TestLeveldbDbBench(_Filling):
    name, nearest = "leveldb-db_bench", ("--value_size",)
    engine = engine_for(name)

    def test_an_argument_that_would_replace_an_option_makes_the_run_invalid(
        self, tmp_path: Path, request_: RunRequest
    ) -> None:
        """Each trial was measured with the value of the argument, and was said to have its own."""
        found = find_program(self.program, self.engine, self.executable(tmp_path / "bin"))
        runner = ProgramRunner(self.program, found, ("--write_buffer_size=65536",))
        config = Config({"write_buffer_size": 8 << 20})
        error = runner.run(replace(request_, config=config)).error
        assert error is not None
        assert "lsmtune sets this flag itself; found '--write_buffer_size=65536'" in error.message
        assert runner.run(request_).outcome is Outcome.OK


class TestYcsbCpp(_Fake):
    name = "ycsb-cpp"
    engine = engine_for(name)

    def test_a_status_that_cannot_be_makes_the_run_invalid(self, run: Run) -> None:
        """It ended the command: only what a program leaves at its end was expected to be odd."""
        measurement = run("status")
        assert measurement.outcome is Outcome.INVALID
        assert measurement.error is not None
        assert "allowed: [TYPE: Count=N" in measurement.error.message
        assert "its last output: 2026-01-01" in measurement.error.message

    @pytest.mark.parametrize(
        ("arguments", "said"),
        [
            (("-p", "threadcount=4"), "property itself; found 'threadcount=4'"),
            (("-p", " recordcount = 9"), "property itself; found ' recordcount = 9'"),
            (("-p", "rocksdb.dbname=/elsewhere"), "property itself; found 'rocksdb.dbname"),
            (("-p", "dbname=leveldb"), "property itself; found 'dbname=leveldb'"),
            (("-p", "rocksdb.optionsfile=O"), "property itself; found 'rocksdb.optionsfile=O'"),
            (("-p", "x=1", "-p", "rocksdb.write_buffer_size=1"), "found 'rocksdb.write_buffer"),
            (("-threads", "4"), "lsmtune sets this flag itself; found '-threads'"),
            (("-P", "/own.properties"), "lsmtune sets this flag itself; found '-P'"),
        ],
    )
    def test_an_argument_that_would_replace_a_property_makes_the_run_invalid(
        self, tmp_path: Path, request_: RunRequest, arguments: tuple[str, ...], said: str
    ) -> None:
        """Of two properties the last one counts: the run was another than the one that was told."""
        found = find_program(self.program, self.engine, self.executable(tmp_path / "bin"))
        request_ = replace(request_, config=Config({"write_buffer_size": 8 << 20}))
        error = ProgramRunner(self.program, found, arguments).run(request_).error
        assert error is not None
        assert said in error.message
        other = ("-p", "rocksdb.max_open_files=9")
        assert ProgramRunner(self.program, found, other).run(request_).outcome is Outcome.OK


class TestEkvsb(_Filling):
    name, nearest = "ekvsb", ("--write-buffer-size",)
    engine = engine_for(name)

    def test_what_only_its_end_and_all_of_it_show_is_not_told_of_each_phase(self, run: Run) -> None:
        """Puts were told to leave the bytes of the database after the deletes behind them.

        And gets had the peak memory of the load.
        """
        load, read = run().phases
        assert (load.database_bytes, read.database_bytes) == (None, 1000)
        assert (load.rss_bytes_max, read.rss_bytes_max) == (None, None)
        workload = self.workload()
        one = replace(workload, phases=workload.phases[:1])
        (only,) = run(workload=one).phases
        assert only.database_bytes == 1000
        whole = {"database_bytes", "rss_bytes_max"}
        assert self.program.unreported(workload, 0) >= whole
        assert self.program.unreported(workload, 2) & whole == {"rss_bytes_max"}
        assert not self.program.unreported(one, 0) & whole


def test_a_stop_of_lsmtune_takes_nothing_from_the_deadline_of_the_processes_after_it(
    tmp_path: Path,
) -> None:
    """Ctrl-Z during the load of db_bench, and the run that followed was at its deadline at once."""
    name, slept_s = "rocksdb-db_bench", 0.0
    directory = tmp_path / "run-1"
    directory.mkdir()
    engine = EngineIdentity(engine_for(name))
    request = RunRequest(engine, Config(), workload_for(name), 5, directory, LIMITS)
    found = find_program(PROGRAMS[name], engine.name, write_fake(name, tmp_path / "bin"))

    def sleep(message: Message) -> None:
        nonlocal slept_s
        if isinstance(message, PhaseStarted):
            slept_s += 100 * LIMITS.deadline_s

    runner = ProgramRunner(PROGRAMS[name], found, clock=lambda: time.monotonic() + slept_s)
    measurement = runner.run(request, sleep)
    assert measurement.outcome is Outcome.OK, measurement.error
    assert measurement.elapsed_s < LIMITS.deadline_s


def test_every_program_that_lsmtune_knows_is_in_the_suite() -> None:
    tested = {each.name for each in (TestYcsbCpp, *_Filling.__subclasses__())}
    assert {name for name in PROGRAMS if PROGRAMS.origin(name) is None} <= tested


# --- which keys YCSB-cpp found, counted as lsmtune's driver counts them


FIGURES = "Max=9.00 Min=1.00 Avg=2.00 90=2.00 99=3.00 99.9=4.00 99.99=5.00"


def looked_up(
    tmp_path: Path, mix: dict[str, float], counts: dict[str, int]
) -> tuple[int | None, int | None]:
    """Keys found and missing in a run with `mix` that printed `counts` by type."""
    workload = workload_for("ycsb-cpp")
    *before, run = workload.phases
    assert run.mix is not None
    mixed = replace(run, mix=replace(run.mix, operations=tuple(mix.items())))
    request = RunRequest(
        EngineIdentity("leveldb"),
        Config(),
        replace(workload, phases=(*before, mixed)),
        1,
        tmp_path,
        LIMITS,
    )
    total = sum(counts.values())
    types = " ".join(f"[{name}: Count={count} {FIGURES}]" for name, count in counts.items())
    log = tmp_path / "stdout.log"
    log.write_text(
        f"2026-01-01 00:00:01 1 sec: {total} operations; {types}\n"
        f"Run runtime(sec): 1\nRun operations(ops): {total}\nRun throughput(ops/sec): {total}\n"
    )
    found = FoundProgram("ycsb-cpp", tmp_path / "ycsb")
    step = PROGRAMS["ycsb-cpp"].plan(request, found).steps[-1]
    measured = step.read(StepOutput(log, log, 0, 1, 0.0, None, 0)).phases[2]
    return measured.keys_found, measured.keys_missing


@pytest.mark.parametrize(
    ("mix", "counts", "expected"),
    [
        ({"get": 1}, {"READ": 90, "READ-FAILED": 10}, (90, 10)),
        # An update begins with a lookup, here and there.
        ({"get": 1, "update": 1}, {"READ": 40, "UPDATE": 50, "UPDATE-FAILED": 3}, (90, 3)),
        # A read-modify-write is one lookup there, and a read and an update here.
        ({"get": 1, "read_modify_write": 1}, {"READ": 100, "UPDATE": 50}, (100, 0)),
        (
            {"get": 1, "read_modify_write": 1, "update": 1},
            {"READ": 100, "UPDATE": 50},
            (None, None),
        ),
        # A scan never fails.
        ({"scan": 1, "insert": 1}, {"SCAN": 95, "INSERT": 5}, (None, None)),
        ({"scan": 1, "get": 1}, {"SCAN": 95, "READ": 5}, (None, None)),
        ({"insert": 1}, {"INSERT": 5}, (None, None)),
    ],
)
def test_lookups_are_counted_as_by_the_driver(
    tmp_path: Path,
    mix: dict[str, float],
    counts: dict[str, int],
    expected: tuple[int | None, int | None],
) -> None:
    assert looked_up(tmp_path, mix, counts) == expected
