"""Runs as one or several processes of a program, and the runner of programs that people trust."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from pathlib import Path

from lsmtune.driver.collect import Judgement, died, judge_death, last_output, with_lost_reads
from lsmtune.driver.conversation import ENGINE_LOG, OnMessage
from lsmtune.driver.messages import IntervalPassed, Message, PhaseFinished, PhaseStarted
from lsmtune.driver.process import tail_of
from lsmtune.driver.runner import (
    DATABASE,
    Runner,
    cached_beyond,
    check_directory,
    check_free_space,
)
from lsmtune.driver.watch import Ending, Watch
from lsmtune.errors import InputError
from lsmtune.machine.awake import AwakeClock, Clock
from lsmtune.model.config import Build, Config, EngineIdentity
from lsmtune.model.measurement import (
    IntermediateReport,
    Interval,
    Measurement,
    Outcome,
    PhaseMeasurement,
    RunError,
)
from lsmtune.model.request import LIMITS_DEFAULT, RunRequest
from lsmtune.model.workload import Workload
from lsmtune.programs.command_process import CommandProcess, ResultError
from lsmtune.programs.find import PROGRAM_FLAG, check_arguments, find_program, introduced
from lsmtune.programs.output import flag_name, nearest_flag, refused_flag
from lsmtune.programs.program import STDOUT, FoundProgram, Observed, Plan, Program, Step, StepOutput

_PER_S = 1_000_000


def perform(
    request: RunRequest,
    make_plan: Callable[[RunRequest], Plan],
    on_message: OnMessage | None,
    cancel: threading.Event | None,
    clock: Clock = time.monotonic,
) -> Measurement:
    """The run of `request` by the processes of the plan that `make_plan` has for it.

    What a process tells while it runs comes to `on_message`. A request without a plan, a command
    line that the program refuses, and output that cannot be understood make a run `invalid`.
    `clock` gives seconds of a monotonic clock; time in which this process sleeps counts for
    nothing. Raises InputError when the program or the folder cannot be used, LsmtuneError when the
    disk has no space for a run.
    """
    check_directory(request.directory)
    check_free_space(request.directory)
    # Processes start in folders of their own: a path from here means nothing there.
    request = replace(request, directory=request.directory.absolute())
    awake = AwakeClock(clock)
    with awake.beating():
        run = _Run(request, on_message, cancel, awake, request.engine)
        started_unix_s, judgement = time.time(), Judgement(Outcome.OK)
        try:
            plan = make_plan(request)
        except (InputError, ResultError) as error:
            plan, judgement = Plan(()), _invalid(error, "options")
        run.warnings = plan.warnings
        for step in plan.steps:
            judgement = run.perform(step)
            if judgement.outcome is not Outcome.OK:
                break
        return Measurement(
            outcome=judgement.outcome,
            engine=run.engine,
            options=request.config.engine_options(),
            workload=request.workload.name,
            seed=request.seed,
            started_unix_s=started_unix_s,
            elapsed_s=run.elapsed_s,
            phases=tuple(run.phases),
            cpu_s=run.cpu_s,
            rss_bytes_max=run.rss_bytes_max or None,
            database_bytes=run.phases[-1].database_bytes if run.phases else None,
            intervals_unfinished=tuple(run.intervals),
            phase_unfinished=run.phase,
            error=judgement.error,
            warnings=(*run.warnings, *judgement.warnings),
            reported=run.reported,
            intermediate=tuple(run.intermediate),
        )


@dataclass
class _Run:
    """A run, and what it has come to so far."""

    request: RunRequest
    on_message: OnMessage | None
    cancel: threading.Event | None
    clock: Clock
    engine: EngineIdentity
    phases: list[PhaseMeasurement] = field(default_factory=list)
    intervals: list[Interval] = field(default_factory=list)
    phase: str = ""  # of which the intervals are
    reported: dict[str, float] = field(default_factory=dict)
    intermediate: list[IntermediateReport] = field(default_factory=list)
    warnings: tuple[str, ...] = ()
    cpu_s: float = 0.0
    rss_bytes_max: int = 0

    def __post_init__(self) -> None:
        self._started_s = self.clock()

    @property
    def elapsed_s(self) -> float:
        return self.clock() - self._started_s

    def perform(self, step: Step) -> Judgement:
        directory, limits = self.request.directory, self.request.limits
        folder = directory / step.folder
        folder.mkdir(exist_ok=True)
        for name, pieces in step.files.items():
            with (folder / name).open("w", encoding="utf-8") as file:
                file.writelines(pieces())
        self._begin(step.phases)
        stdout, stderr = folder / STDOUT, folder / ENGINE_LOG
        follows = [make() for make in step.follow.values()]
        spent_s, started_us = self.elapsed_s, round(time.time() * _PER_S)
        start_in, followed = step.start_in or folder, [folder / name for name in step.follow]
        stdin = None if step.stdin is None else folder / step.stdin
        process = CommandProcess(
            step.arguments, step.environment, start_in, stdout, stderr, followed, stdin
        )

        def take(line: tuple[int, bytes]) -> bool:
            """Takes a line of a followed file; none of them is ever known to be the last."""
            index, text = line
            report = follows[index](text.decode(errors="replace").strip())
            if isinstance(report, Interval):
                rss_bytes = process.resident_bytes(limits.memory_bytes) or None
                self._passed(step.phases[0], replace(report, rss_bytes=rss_bytes))
            elif isinstance(report, IntermediateReport):
                self.intermediate.append(report)
                self._say(report)
            elif report is not None:
                self.reported.update(report)
            return False

        try:
            with process:
                ending = Watch(
                    process, directory, limits, take, self.cancel, self.clock, spent_s=spent_s
                ).until_ended()
        except (InputError, ResultError) as error:
            return _invalid(error, "output", tail_of(stderr, stdout))
        finally:
            self.cpu_s += process.cpu_s
            self.rss_bytes_max = max(self.rss_bytes_max, process.rss_bytes_max)
        output = StepOutput(
            stdout=stdout,
            stderr=stderr,
            started_unix_us=started_us,
            finished_unix_us=round(time.time() * _PER_S),
            cpu_s=process.cpu_s,
            rss_bytes_max=process.rss_bytes_max or None,
            database_bytes=database_bytes(directory / DATABASE),
            intervals=tuple(self.intervals),
            reported=self.reported,
        )
        return self._judge(step, output, ending)

    def _judge(self, step: Step, output: StepOutput, ending: Ending) -> Judgement:
        """What lsmtune did to the program counts more than how it died of that."""
        program, tail = step.arguments[0], tail_of(output.stderr, output.stdout)
        if ending.outcome is not None:
            return died(ending.outcome, f"{program}: {ending.why}", tail)
        if step.refusal is not None and (refused := step.refusal(output.errors())) is not None:
            return Judgement(Outcome.INVALID, refused)
        if ending.exit_status > 0:
            return died(Outcome.CRASHED, f"{program} exited with status {ending.exit_status}", tail)
        if ending.exit_status < 0:
            return judge_death(ending, f"in {program}", tail)
        try:
            self._finish(step.phases, step.read(output))
        except (InputError, ResultError) as error:
            return _invalid(error, "output", tail)
        return Judgement(Outcome.OK)

    def _begin(self, phases: tuple[int, ...]) -> None:
        self.intervals = []
        for index in phases:
            phase = self.request.workload.phases[index]
            self._say(PhaseStarted(index, phase.name, phase.kind.value))

    def _passed(self, index: int, interval: Interval) -> None:
        self.intervals.append(interval)
        self.phase = self.request.workload.phases[index].name
        self._say(IntervalPassed(**vars(interval), index=index))

    def _finish(self, phases: tuple[int, ...], observed: Observed) -> None:
        self.warnings += observed.warnings
        version, build = observed.version or self.engine.version, observed.build
        self.engine = replace(self.engine, version=version, build=build or self.engine.build)
        self.reported.update(observed.reported)
        for index in phases:
            measured = observed.phases.get(index)
            if measured is not None:
                self.phases.append(measured)
                self._say(PhaseFinished(index, measured))
        self.intervals, self.phase = [], ""

    def _say(self, message: Message) -> None:
        if self.on_message is not None:
            self.on_message(message)


def _invalid(error: InputError | ResultError, kind: str, tail: str = "") -> Judgement:
    if isinstance(error, ResultError):
        return Judgement(Outcome.INVALID, RunError("result", str(error)))
    message = f"{error}{last_output(tail)}"
    shown = None if error.found is None else str(error.found)
    field, allowed = error.field or None, error.allowed or None
    return Judgement(Outcome.INVALID, RunError(kind, message, field, found=shown, allowed=allowed))


def database_bytes(directory: Path) -> int:
    """Bytes of the files under `directory`, as the driver counts them: lengths, not blocks."""
    return sum(path.stat().st_size for path in directory.rglob("*") if path.is_file())


# --- the runner of programs that people trust

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
    workloads: Sequence[Workload],
    *,
    path_place: tuple[str, str] = (PROGRAM_FLAG, ""),
    arguments_place: tuple[str, str] = (ARGUMENT_FLAG, ""),
) -> RunnerChoice:
    """`program` at `path`, or on PATH, asked what it is; the places are those that errors name.

    Raises InputError where it is not found, is for another engine, or does not know an argument,
    and for one that lsmtune sets itself in a run of `workloads`, which it can perform.
    """
    source, field_ = path_place
    executable = find_program(program, engine_name, path, source=source, field=field_)
    check_arguments(program, executable, arguments, *arguments_place)
    for workload in workloads if arguments else ():
        identity = EngineIdentity(engine_name)
        request = RunRequest(identity, Config(), workload, 1, Path(), LIMITS_DEFAULT)
        _refuse_own(program.plan(request, executable), arguments, *arguments_place)
    observed = introduced(program, executable)
    build = observed.build or Build.UNKNOWN
    engine = EngineIdentity(engine_name, observed.version, str(executable.path), build)
    warnings = tuple(f"{program.name}: {line}" for line in observed.warnings)
    runner = ProgramRunner(program, executable, arguments)
    return RunnerChoice(program.name, runner, engine, warnings, program.note)


def _refuse_own(plan: Plan, arguments: Sequence[str], source: str, field: str = "") -> None:
    """Raises InputError for an argument that sets what the plan does: of two, the last one counts.

    What follows `-p`, a flag of YCSB-cpp alone, is a property.
    """
    called = (text for step in plan.steps for text in step.arguments)
    own = {flag_name(text) for text in called if text.startswith("-")}
    own.update(name for step in plan.steps for name in step.own)
    for before, argument in pairwise(("", *arguments)):
        kind = "property" if before == "-p" else "flag"
        name = flag_name(argument).strip()
        is_name = kind == "property" or argument.startswith("-")
        if is_name and {name, name.removeprefix("no")} & own:
            raise InputError(source, field, found=argument, why=f"lsmtune sets this {kind} itself")


@dataclass(eq=False)
class ProgramRunner:
    """Performs runs with `program`, found at `executable`; see `Runner` for its obligations.

    `arguments` are added to every call. A run's directory holds `db`, the database, and a
    folder for each process, with what it was given and printed. `clock` is as in `perform`.
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

        A configuration that the program has no spelling of makes a run `invalid`; reads that miss
        what a fill has put are `data_loss`, as by the driver. Raises what `perform` raises, and
        InputError when the workload cannot be performed.
        """
        name, executable = request.engine.name, self.executable
        self.program.check_engine(name)
        self.program.check(request.workload, name)
        # The engine is the one that the program carries, as far as it says which.
        engine = EngineIdentity(name, executable.version, str(executable.path))
        request = replace(request, engine=engine)
        measurement = perform(request, self._plan, on_message, cancel, self.clock)
        if all(phase.mix is None for phase in request.workload.phases):
            # mixgraph asks for keys that nobody put, whatever its engine does.
            measurement = with_lost_reads(measurement, request.workload)
        warnings = [_worded(self.program, warning) for warning in measurement.warnings]
        warnings += filter(None, [cached_beyond(request, measurement)])
        return replace(
            measurement,
            warnings=tuple(dict.fromkeys(warnings)),
            memory_limited_by="watch",
            runner=self.program.name,
        )

    def _plan(self, request: RunRequest) -> Plan:
        plan = self.program.plan(request, self.executable)
        # Options are flags of some programs.
        _refuse_own(plan, self.arguments, f"--runner {self.program.name}")
        path = str(self.executable.path)
        steps = []
        for number, step in enumerate(plan.steps, start=1):
            called, folder = (path, *step.arguments, *self.arguments), f"step-{number}"
            steps.append(replace(step, arguments=called, folder=folder, refusal=self._refusal))
        return replace(plan, steps=tuple(steps))

    def _refusal(self, printed: str) -> RunError | None:
        flag = refused_flag(printed)
        if flag is None:
            return None
        near = nearest_flag(flag, self.executable.flags or self.program.known_flags)
        hint = f"; did you mean {near}?" if near else ""
        why = f"{self.program.name} refused its command line: unknown flag {flag}{hint}"
        return RunError("flag", why, flag, nearest=(near,) if near else ())


def _worded(program: Program, warning: str) -> str:
    """`warning` with the program that gives it, unless it names the program itself."""
    is_named = "db_bench" in warning or program.name.lower() in warning.lower()
    return warning if is_named else f"{program.name}: {warning}"
