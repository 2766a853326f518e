"""The runner of programs that people trust: a run as one or several of their processes."""

from __future__ import annotations

import os
import threading
import time
from dataclasses import dataclass, field, replace
from pathlib import Path

from lsmtune.driver.collect import Judgement, last_output
from lsmtune.driver.conversation import OnMessage
from lsmtune.driver.messages import IntervalPassed, PhaseFinished, PhaseStarted
from lsmtune.driver.process import tail_of
from lsmtune.driver.runner import DATABASE, Runner, check_directory, check_free_space
from lsmtune.driver.watch import Ending, watch
from lsmtune.errors import InputError
from lsmtune.machine.awake import AwakeClock
from lsmtune.machine.files import Clock
from lsmtune.model.config import Build, EngineIdentity
from lsmtune.model.measurement import Interval, Measurement, Outcome, PhaseMeasurement, RunError
from lsmtune.model.request import RunRequest
from lsmtune.programs.command import judge_program
from lsmtune.programs.command_process import CommandProcess, ResultError
from lsmtune.programs.find import PROGRAM_FLAG, check_arguments, find_program, introduced
from lsmtune.programs.output import nearest_flag, refused_flag
from lsmtune.programs.program import FoundProgram, Observed, Plan, Program, Step, StepOutput

_PER_S = 1_000_000
ARGUMENT_FLAG = "--program-argument"


@dataclass(frozen=True)
class RunnerChoice:
    """One way to perform runs; `warnings` are what to know of it, `note` of its figures."""

    name: str
    runner: Runner
    engine: EngineIdentity
    warnings: tuple[str, ...] = ()
    note: str = ""


def chosen_program(
    program: Program,
    engine_name: str,
    path: Path | None,
    arguments: tuple[str, ...],
    *,
    path_place: tuple[str, str] = (PROGRAM_FLAG, ""),
    arguments_place: tuple[str, str] = (ARGUMENT_FLAG, ""),
) -> RunnerChoice:
    """`program` at `path`, or on PATH, asked what it is; the places are those that errors name.

    Raises InputError where it is not found, is for another engine, or does not know an argument.
    """
    source, field_ = path_place
    executable = find_program(program, engine_name, path, source=source, field=field_)
    check_arguments(program, executable, arguments, *arguments_place)
    observed = introduced(program, executable)
    build = observed.build or Build.UNKNOWN
    engine = EngineIdentity(engine_name, observed.version, str(executable.path), build)
    warnings = tuple(f"{program.name}: {line}" for line in observed.warnings)
    runner = ProgramRunner(program, executable, arguments)
    return RunnerChoice(program.name, runner, engine, warnings, program.note)


@dataclass(eq=False)
class ProgramRunner:
    """Performs runs with `program`, found at `executable`; see `Runner` for its obligations.

    `arguments` are added to every call. A run's directory holds `db`, the database, and a
    folder for each process, with what it was given and printed. `clock` gives seconds of a
    monotonic clock; time in which this process sleeps counts for nothing.
    """

    program: Program
    executable: FoundProgram
    arguments: tuple[str, ...] = ()
    clock: Clock = time.monotonic

    def run(
        self,
        request: RunRequest,
        on_message: OnMessage | None = None,
        cancel: threading.Event | None = None,
    ) -> Measurement:
        """One run; the beginning and end of phases, and intervals where the program tells them,
        come to `on_message`.

        A configuration that the program has no spelling of, a flag that it refuses, and output
        that is none of its own make a run `invalid`. Raises InputError when the program or the
        folder cannot be used, or the workload not be performed; LsmtuneError when the disk has no
        space for a run.
        """
        clock = AwakeClock(self.clock)
        with clock.beating():
            return self._performed(request, on_message, cancel, clock)

    def _performed(
        self,
        request: RunRequest,
        on_message: OnMessage | None,
        cancel: threading.Event | None,
        clock: Clock,
    ) -> Measurement:
        check_directory(request.directory)
        check_free_space(request.directory)
        self.program.check_engine(request.engine.name)
        self.program.check(request.workload, request.engine.name)
        # Its processes start in folders of their own: a path from here means nothing there.
        request = replace(request, directory=request.directory.absolute())
        state = _State(request, on_message, clock)
        started_unix_s = time.time()
        judgement = Judgement(Outcome.OK)
        try:
            plan = self.program.plan(request, self.executable)
        except InputError as error:
            plan, judgement = Plan(()), _invalid(error, "options")
        state.warnings += plan.warnings
        for number, step in enumerate(plan.steps, start=1):
            folder = request.directory / f"step-{number}"
            folder.mkdir()
            judgement = self._step(state, step, folder, cancel)
            if judgement.outcome is not Outcome.OK:
                break
        # The engine is the one that the program carries, as far as it says which.
        engine = EngineIdentity(
            name=request.engine.name,
            version=state.version or self.executable.version,
            library=str(self.executable.path),
            build=state.build or Build.UNKNOWN,
        )
        warnings = (*dict.fromkeys(_worded(self.program, state.warnings)), *judgement.warnings)
        return Measurement(
            outcome=judgement.outcome,
            engine=engine,
            options=request.config.engine_options(),
            workload=request.workload.name,
            seed=request.seed,
            started_unix_s=started_unix_s,
            elapsed_s=state.elapsed_s,
            phases=tuple(state.phases),
            cpu_s=state.cpu_s,
            rss_bytes_max=state.rss_bytes_max or None,
            database_bytes=state.phases[-1].database_bytes if state.phases else None,
            intervals_unfinished=tuple(state.intervals),
            phase_unfinished=state.phase,
            error=judgement.error,
            warnings=warnings,
            memory_limited_by="watch",
            runner=self.program.name,
        )

    def _step(
        self, state: _State, step: Step, folder: Path, cancel: threading.Event | None
    ) -> Judgement:
        request = state.request
        for name, pieces in step.files.items():
            with (folder / name).open("w", encoding="utf-8") as file:
                file.writelines(pieces())
        state.begin(step.phases)
        stdout, stderr = folder / "stdout.log", folder / "stderr.log"
        follow = step.follow() if step.follow is not None else None
        limits, spent_s = request.limits, state.elapsed_s
        started_us = round(time.time() * _PER_S)
        process = CommandProcess(
            [str(self.executable.path), *step.arguments, *self.arguments],
            os.environ,
            folder,
            stdout,
            stderr,
            () if step.followed is None else (folder / (step.followed or stdout.name),),
            folder / step.stdin if step.stdin is not None else None,
        )

        def take(line: tuple[int, bytes]) -> bool:
            """Takes a line of the followed file; none of them is ever known to be the last."""
            text = line[1].decode(errors="replace").strip()
            interval = follow(text) if follow is not None else None
            if interval is not None:
                rss_bytes = process.resident_bytes(limits.memory_bytes) or None
                state.passed(step.phases[0], replace(interval, rss_bytes=rss_bytes))
            return False

        try:
            with process:
                ending = watch(
                    process, request.directory, limits, take, cancel, time.monotonic, spent_s
                )
        except (InputError, ResultError) as error:
            return _invalid(error, "output", tail_of(stderr, stdout))
        finally:
            state.cpu_s += process.usage.cpu_s
            state.rss_bytes_max = max(state.rss_bytes_max, process.usage.rss_bytes_max)
        output = StepOutput(
            stdout=stdout,
            stderr=stderr,
            started_unix_us=started_us,
            finished_unix_us=round(time.time() * _PER_S),
            cpu_s=process.usage.cpu_s,
            rss_bytes_max=process.usage.rss_bytes_max or None,
            database_bytes=database_bytes(request.directory / DATABASE),
            intervals=tuple(state.intervals),
        )
        return self._judge(state, step, output, ending)

    def _judge(self, state: _State, step: Step, output: StepOutput, ending: Ending) -> Judgement:
        flag = refused_flag(output.errors())
        if flag is not None and ending.outcome is None:
            near = nearest_flag(flag, self.executable.flags or self.program.known_flags)
            hint = f"; did you mean {near}?" if near else ""
            why = f"{self.program.name} refused its command line: unknown flag {flag}{hint}"
            nearest = (near,) if near else ()
            return Judgement(Outcome.INVALID, RunError("flag", why, flag, nearest=nearest))
        tail = tail_of(output.stderr, output.stdout)
        judgement = judge_program(ending, str(self.executable.path), tail)
        if judgement.outcome is not Outcome.OK:
            return judgement
        try:
            state.finish(step.phases, step.read(output))
        except InputError as error:
            return _invalid(error, "output", tail)
        return judgement


@dataclass
class _State:
    """What a run has come to so far."""

    request: RunRequest
    on_message: OnMessage | None
    clock: Clock
    phases: list[PhaseMeasurement] = field(default_factory=list)
    intervals: list[Interval] = field(default_factory=list)
    phase: str = ""  # in which they passed
    warnings: tuple[str, ...] = ()
    version: str | None = None
    build: Build | None = None
    cpu_s: float = 0.0
    rss_bytes_max: int = 0

    def __post_init__(self) -> None:
        self._started_s = self.clock()

    @property
    def elapsed_s(self) -> float:
        return self.clock() - self._started_s

    def begin(self, phases: tuple[int, ...]) -> None:
        self.intervals = []
        for index in phases:
            phase = self.request.workload.phases[index]
            self._say(PhaseStarted(index, phase.name, phase.kind.value))

    def passed(self, index: int, interval: Interval) -> None:
        self.intervals.append(interval)
        self.phase = self.request.workload.phases[index].name
        self._say(IntervalPassed(**vars(interval), index=index))

    def finish(self, phases: tuple[int, ...], observed: Observed) -> None:
        self.warnings += observed.warnings
        self.version = observed.version or self.version
        self.build = observed.build or self.build
        for index in phases:
            measured = observed.phases.get(index)
            if measured is not None:
                self.phases.append(measured)
                self._say(PhaseFinished(index, measured))
        self.intervals, self.phase = [], ""

    def _say(self, message: PhaseStarted | IntervalPassed | PhaseFinished) -> None:
        if self.on_message is not None:
            self.on_message(message)


def _worded(program: Program, warnings: tuple[str, ...]) -> list[str]:
    """Warnings with the program that gives them, unless they name it themselves."""
    return [
        line
        if "db_bench" in line or program.name.lower() in line.lower()
        else f"{program.name}: {line}"
        for line in warnings
    ]


def _invalid(error: InputError | ResultError, kind: str, tail: str = "") -> Judgement:
    message = f"{error}{last_output(tail)}"
    if isinstance(error, ResultError):
        return Judgement(Outcome.INVALID, RunError(kind, message))
    shown = None if error.found is None else str(error.found)
    field, allowed = error.field or None, error.allowed or None
    return Judgement(Outcome.INVALID, RunError(kind, message, field, found=shown, allowed=allowed))


def database_bytes(directory: Path) -> int:
    """Bytes of the files under `directory`, as the driver counts them: lengths, not blocks."""
    return sum(path.stat().st_size for path in directory.rglob("*") if path.is_file())
