"""What every program that people trust promises as a runner."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import fields, replace
from pathlib import Path
from typing import Any, ClassVar

import pytest

from lsmtune.driver.messages import Message, PhaseFinished, PhaseStarted
from lsmtune.errors import InputError
from lsmtune.model.config import Config, EngineIdentity
from lsmtune.model.measurement import Measurement, Outcome, PhaseMeasurement
from lsmtune.model.request import Limits, RunRequest
from lsmtune.model.workload import PageCache, Workload
from lsmtune.programs.find import find_program
from lsmtune.programs.program import NEVER_REPORTED, Program
from lsmtune.programs.registry import PROGRAMS
from lsmtune.programs.runner import ProgramRunner

Run = Callable[..., Measurement]
LIMITS = Limits(20.0, 1 << 30, 1 << 30)


def _why(measurement: Measurement) -> str:
    """Why the run did not end well, which is one line."""
    assert measurement.error is not None
    assert "\n" not in measurement.error.message
    return measurement.error.message


class ProgramSuite:
    """The tests of one program, known by its package or lsmtune's own.

    A stand-in of the program performs the runs, and says that a lookup takes 2 us. It takes
    `--fake=HOW` beside the program's own arguments, and then misbehaves: `fail` ends with status 3
    after `put error`, `crash` dies of SIGSEGV, `refuse` says that it does not know its first flag,
    `nonsense` prints `all is well`, `hang` never ends, `eat` takes more than 64 MiB.

    Attributes:
        name: As `--runner` has it.
        engine: One that it works on.
        nearest: What a refused flag was perhaps meant to be.
        exact: How exactly the elapsed time is told, in seconds.
    """

    name: ClassVar[str]
    engine: ClassVar[str]
    nearest: ClassVar[tuple[str, ...]] = ()
    exact: ClassVar[float] = 6e-4  # db_bench prints whole milliseconds

    def executable(self, folder: Path) -> Path:
        """The stand-in, in a folder that need not be there yet."""
        raise NotImplementedError

    def workload(self) -> Workload:
        """A load of 100 keys, and 50 operations that are measured and look up keys."""
        raise NotImplementedError

    @property
    def program(self) -> Program:
        """What is known of it."""
        return PROGRAMS[self.name]

    @pytest.fixture
    def request_(self, tmp_path: Path) -> RunRequest:
        directory = tmp_path / "run-1"
        directory.mkdir()
        engine = EngineIdentity(self.engine)
        return RunRequest(engine, Config(), self.workload(), 5, directory, LIMITS)

    @pytest.fixture
    def run(self, tmp_path: Path, request_: RunRequest) -> Run:
        """Performs the request, misbehaving as `fake` says."""

        def perform(
            fake: str = "",
            *,
            on_message: Callable[[Message], None] | None = None,
            cancel: threading.Event | None = None,
            **changes: Any,
        ) -> Measurement:
            found = find_program(self.program, self.engine, self.executable(tmp_path / "bin"))
            runner = ProgramRunner(self.program, found, (f"--fake={fake}",) if fake else ())
            return runner.run(replace(request_, **changes), on_message, cancel)

        return perform

    def test_it_has_the_name_by_which_it_is_found(self) -> None:
        assert self.program.name == self.name
        assert self.engine in self.program.engines

    def test_a_run_is_its_phases_and_what_is_not_told_is_none(self, run: Run) -> None:
        said: list[Message] = []
        measurement = run(on_message=said.append)
        assert measurement.outcome is Outcome.OK, measurement.error
        assert measurement.runner == self.name
        load, measured = measurement.phases
        assert (load.kind, load.operations) == ("load", 100)
        assert (measured.kind, measured.operations) == ("measure", 50)
        assert measured.elapsed_s == pytest.approx(50 / measured.throughput_ops_s, abs=self.exact)
        names = {field.name for field in fields(PhaseMeasurement)}
        for phase in measurement.phases:
            assert {getattr(phase, metric) for metric in NEVER_REPORTED & names} == {None}
            assert (phase.database_bytes or 1000) >= 1000
            assert (phase.rss_bytes_max or 1) > 0
            assert phase.started_unix_us < phase.finished_unix_us
        assert measured.database_bytes is not None
        assert measured.latencies["get"].latency_us_mean == pytest.approx(2.0)
        assert (measured.keys_found or 0) > 0
        assert measurement.cpu_s is not None
        assert isinstance(said[0], PhaseStarted)
        # What began and never ended would stay what the run is said to be at.
        began = [message.index for message in said if isinstance(message, PhaseStarted)]
        assert began == [message.index for message in said if isinstance(message, PhaseFinished)]
        assert len(began) == 2

    def test_what_a_program_is_said_not_to_tell_it_does_not(self, run: Run) -> None:
        info, workload = self.program, self.workload()
        (measured,) = [phase for phase in run().phases if phase.kind == "measure"]
        for field in fields(PhaseMeasurement):
            unreported = field.name in info.unreported(workload, len(workload.phases) - 1)
            if unreported:
                assert getattr(measured, field.name) is None, field.name
            elif field.name.startswith("latency_us"):
                assert getattr(measured, field.name) is not None, field.name

    @pytest.mark.parametrize(
        ("fake", "outcome", "said"),
        [
            ("fail", Outcome.CRASHED, "exited with status 3; its last output: put error"),
            ("crash", Outcome.CRASHED, "killed by SIGSEGV"),
            ("refuse", Outcome.INVALID, "refused its command line: unknown flag --"),
            ("nonsense", Outcome.INVALID, "its last output: all is well"),
        ],
    )
    def test_how_a_program_ends_is_the_outcome(
        self, run: Run, fake: str, outcome: Outcome, said: str
    ) -> None:
        measurement = run(fake)
        assert (measurement.outcome, measurement.phases) == (outcome, ())
        assert said in _why(measurement)

    def test_a_refused_flag_comes_with_the_nearest_spelling(self, run: Run) -> None:
        error = run("refuse").error
        assert error is not None
        assert error.nearest == self.nearest

    def test_a_deadline_ends_the_whole_tree(self, run: Run) -> None:
        measurement = run("hang", limits=replace(LIMITS, deadline_s=0.4))
        assert measurement.outcome is Outcome.TIMEOUT
        # That of the run, whatever its processes before have left of it.
        assert "at its deadline of 400ms" in _why(measurement)

    def test_a_cancelled_run_is_over_at_once(self, run: Run) -> None:
        cancel = threading.Event()
        threading.Timer(0.3, cancel.set).start()
        assert run("hang", cancel=cancel).outcome is Outcome.CANCELLED

    def test_a_run_over_its_memory_is_ended(self, run: Run) -> None:
        measurement = run("eat", limits=replace(LIMITS, memory_bytes=64 << 20))
        assert measurement.outcome is Outcome.OUT_OF_MEMORY

    def test_what_it_cannot_perform_is_one_line_before_anything_starts(
        self, run: Run, request_: RunRequest
    ) -> None:
        cold = replace(request_.workload, page_cache=PageCache.COLD)
        with pytest.raises(InputError, match=f"^--runner {self.name}: page_cache: ") as error:
            run(workload=cold)
        assert "\n" not in str(error.value)
        assert list(request_.directory.iterdir()) == []
        with pytest.raises(InputError, match="--engine: found 'memory'"):
            run(engine=EngineIdentity("memory"))

    def test_a_configuration_that_it_has_no_spelling_of_is_invalid(self, run: Run) -> None:
        measurement = run(config=Config({"no_such_option": 1}))
        assert measurement.outcome is Outcome.INVALID
        assert "no_such_option" in _why(measurement)
        assert measurement.phases == ()
