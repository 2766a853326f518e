"""The messages of one run, put together into a Measurement, with its outcome."""

from __future__ import annotations

import signal
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import chain
from typing import TypeVar

from lsmtune.driver.messages import (
    BackgroundWork,
    Failed,
    Finished,
    Hello,
    IntervalPassed,
    Message,
    Opened,
    Paused,
    PhaseFinished,
    PhaseStarted,
    Probed,
    Verified,
)
from lsmtune.driver.watch import Ending
from lsmtune.model.codec import ProtocolError
from lsmtune.model.measurement import (
    Interval,
    Measurement,
    Outcome,
    PhaseMeasurement,
    RunError,
    Verification,
)
from lsmtune.model.request import RunRequest
from lsmtune.model.workload import Phase, Workload
from lsmtune.units import format_bytes

_DELETES = frozenset({"deleterandom", "deleteuniquerandom", "delete", "delete_oldest"})
_READS_WHAT_WAS_PUT = frozenset({"readrandom", "readhot", "readuniquerandom"})
_KEEPS_NOTHING = "noop"  # the engine that stores no data


def with_lost_reads(measurement: Measurement, workload: Workload) -> Measurement:
    """`measurement` of `workload`, as `data_loss` if reads missed what phases before had all put.

    Phases that an earlier run executed on the database count as those that are measured.
    """
    if measurement.outcome is not Outcome.OK or measurement.engine.name == _KEEPS_NOTHING:
        return measurement
    measured = {phase.name: phase for phase in measurement.phases}
    num, sure = workload.num, 0  # so many records, from number 0 on, are there for certain
    for phase in workload.phases:
        if phase.replay is not None or not _DELETES.isdisjoint(phase.doing):
            sure = 0
            continue
        reads = measured.get(phase.name)
        if reads is not None and reads.keys_missing and _reads_alone(phase, num, sure):
            lookups = reads.keys_missing + (reads.keys_found or 0)
            message = (
                f"{reads.keys_missing} of {lookups} lookups in {phase.name} did not find a key "
                "that was put"
            )
            error = RunError(Outcome.DATA_LOSS.value, message)
            return replace(measurement, outcome=Outcome.DATA_LOSS, error=error)
        sure = max(sure, _surely_put(phase, num, sure))
    return measurement


def _reads_alone(phase: Phase, num: int, sure: int) -> bool:
    """Whether `phase` reads nothing but the first `sure` records, and what it inserted itself."""
    mix = phase.mix
    if mix is None:
        return phase.operation in _READS_WHAT_WAS_PUT and num <= sure
    # Numbers between the records and the first insert belong to nobody.
    return mix.insert_from is None and mix.first + mix.records <= sure


def _surely_put(phase: Phase, num: int, sure: int) -> int:
    """How many records from number 0 on `phase` leaves for certain, where `sure` were there."""
    done, mix = phase.operations_whole, phase.mix
    if done is None or phase.duration_s is not None:
        return 0
    if mix is None:
        return num if phase.puts_each_of(num) else 0
    alone = [name for name, _ in mix.operations] == ["insert"]
    follows = mix.first == 0 and mix.records <= sure and mix.insert_from is None
    return mix.records + done if alone and follows else 0


# --- what the end of a run means: its outcome, and one line that says why

_TAIL_LINES = 3
_TAIL_CHARACTERS = 400


@dataclass(frozen=True)
class Judgement:
    """The outcome of a run, why it is not `ok`, and what else is worth saying."""

    outcome: Outcome
    error: RunError | None = None
    warnings: tuple[str, ...] = ()

    @property
    def message(self) -> str:
        """Why it is not `ok`; empty where it is, and where nothing said why."""
        return self.error.message if self.error else ""


def judge(
    last: Finished | Failed | None,
    ending: Ending,
    where: str,
    log_tail: str,
    memory_limit_bytes: int | None = None,
) -> Judgement:
    """How a run ended.

    `last` is the driver's last message, if it came to that; `where` says where the run was;
    `log_tail` is the end of what engine and driver printed. The driver's own last word counts
    most, then what lsmtune did to it, then how it died. A run that died of a signal from outside is
    `disturbed`, unless the kernel has counted that it kills for want of memory. The error of a run
    that died has the whole `log_tail` in `found`. `memory_limit_bytes` is that of a control group
    in which the kernel killed something for want of memory, None where it did not.
    """
    if isinstance(last, Finished):
        return Judgement(Outcome.OK, warnings=_after_last(ending))
    if isinstance(last, Failed):
        # A cancelled driver that has said so does not take the time to close its engine.
        cancelled = last.outcome is Outcome.CANCELLED
        return Judgement(last.outcome, last.error, () if cancelled else _after_last(ending))
    if ending.outcome is not None:
        error = RunError(ending.outcome.value, f"{ending.why}, {where}")
        return Judgement(ending.outcome, error)
    if ending.exit_status == -signal.SIGKILL and memory_limit_bytes is not None:
        limit = format_bytes(memory_limit_bytes)
        why = f"killed by the kernel, over the limit of {limit} of its control group, {where}"
        return died(Outcome.OUT_OF_MEMORY, why, log_tail)
    return judge_death(ending, where, log_tail)


# A program that fails dies of other signals, such as SIGSEGV (signal(7)).
_FROM_OUTSIDE = (signal.SIGKILL, signal.SIGTERM, signal.SIGHUP, signal.SIGINT, signal.SIGQUIT)
KILLED = "killed"  # the error of a run that died of one of them


def judge_death(ending: Ending, where: str, log_tail: str) -> Judgement:
    """What it means that a process died by itself."""
    if ending.oom_killed:
        why = f"killed by the kernel, which killed for want of memory meanwhile, {where}"
        return died(Outcome.OUT_OF_MEMORY, why, log_tail)
    why = f"{_how_it_died(ending.exit_status)} {where}"
    if -ending.exit_status in _FROM_OUTSIDE:
        return died(Outcome.DISTURBED, f"{why}, by whom is not known", log_tail, KILLED)
    return died(Outcome.CRASHED, why, log_tail)


def died(outcome: Outcome, why: str, log_tail: str, kind: str = "") -> Judgement:
    """A process that ended early: `why`, and the last of what it printed.

    `kind` is that of the error, the outcome's name where empty.
    """
    message = f"{why}{last_output(log_tail)}"
    return Judgement(outcome, RunError(kind or outcome.value, message, found=log_tail or None))


def last_output(log_tail: str) -> str:
    """The last of what a process printed, for the end of a sentence; empty for nothing."""
    last_lines = " | ".join(log_tail.splitlines()[-_TAIL_LINES:])[-_TAIL_CHARACTERS:]
    return f"; its last output: {last_lines}" if log_tail else ""


def _after_last(ending: Ending) -> tuple[str, ...]:
    if ending.outlived:
        return ("the driver did not exit after its last message and was killed",)
    if ending.exit_status < 0:
        return (f"the driver was {_how_it_died(ending.exit_status)} after its last message",)
    return ()


def _how_it_died(exit_status: int) -> str:
    if exit_status >= 0:
        return f"exited with status {exit_status} before it had finished,"
    try:
        return f"killed by {signal.Signals(-exit_status).name}"
    except ValueError:
        return f"killed by signal {-exit_status}"


# --- the messages of one run, put together into a Measurement

T = TypeVar("T")


class Collector:
    """Takes messages in the order in which they come; keeps everything said so far."""

    def __init__(self) -> None:
        self.probed: Probed | None = None
        self.last: Finished | Failed | None = None
        self.verified: Verified | None = None
        self._hello: Hello | None = None
        self._opened: Opened | None = None
        self._running: PhaseStarted | None = None
        self._phases: dict[int, PhaseMeasurement] = {}
        self._intervals: dict[int, list[Interval]] = {}

    def take(self, message: Message) -> None:
        """Adds `message`. Raises ProtocolError for one that cannot come here."""
        if self._hello is None and not isinstance(message, Hello):
            raise ProtocolError(f"the first message is {_named(message)}; allowed: hello")
        if self.last is not None:
            raise ProtocolError(f"{_named(message)} after the last message")
        match message:
            case Hello():
                self._hello = message
            case Opened():
                self._opened = message
            case PhaseStarted(index=index):
                self._running = message
                self._intervals[index] = []
            case IntervalPassed(index=index):
                self._of_phase(index, self._intervals, message).append(message.interval())
            case Paused(index=index):
                self._of_phase(index, self._intervals, message)
            case PhaseFinished(index=index, phase=phase):
                intervals = self._of_phase(index, self._intervals, message)
                self._phases[index] = replace(phase, intervals=tuple(intervals))
                self._running = None
            case BackgroundWork(index=index):
                phase = self._of_phase(index, self._phases, message)
                work = {name: value for name, value in vars(message).items() if name != "index"}
                if message.write_amplification is None:
                    del work["write_amplification"]
                self._phases[index] = replace(phase, **work)
            case Verified():
                self.verified = message
            case Probed():
                self.probed = message
            case Finished() | Failed():
                self.last = message

    def _of_phase(self, index: int, known: dict[int, T], message: Message) -> T:
        if index not in known:
            raise ProtocolError(f"{_named(message)}.index: found {index}, a phase never announced")
        return known[index]

    @property
    def phase(self) -> int:
        """Number of the phase that began last; -1 before the first."""
        return max(self._intervals, default=-1)

    @property
    def where(self) -> str:
        """Where the run is, for error texts."""
        if self._running is not None:
            return f"in phase {self._running.name}"
        if self._opened is None:
            return "while opening the engine"
        done = self._phases.get(self.phase)
        return "before its first phase" if done is None else f"after phase {done.name}"

    def measurement(
        self,
        request: RunRequest,
        judgement: Judgement,
        *,
        started_unix_s: float,
        elapsed_s: float,
        warnings: Sequence[str] = (),
        memory_limited_by: str = "",
    ) -> Measurement:
        """Everything observed; `elapsed_s` is the runner's own, spawn to reaped."""
        finished = self.last if isinstance(self.last, Finished) else None
        engine, opened, verified = request.engine, self._opened, self.verified
        if opened is not None:
            version = opened.engine.version or engine.version
            engine = replace(opened.engine, version=version, build=engine.build)
        verification = None
        if verified is not None:  # without what only a check says
            checked, lost, wrong = verified.keys_checked, verified.keys_lost, verified.keys_wrong
            verification = Verification(checked, lost, wrong, verified.reopen_s)
        unfinished = [self._intervals[n] for n in sorted(self._intervals) if n not in self._phases]
        return Measurement(
            outcome=judgement.outcome,
            engine=engine,
            options=request.config.engine_options(),
            workload=request.workload.name,
            seed=request.seed,
            started_unix_s=started_unix_s,
            elapsed_s=elapsed_s,
            phases=tuple(self._phases[index] for index in sorted(self._phases)),
            options_not_taken=opened.options_not_taken if opened is not None else (),
            verification=verification,
            cpu_s=finished.cpu_s if finished else None,
            rss_bytes_max=finished.rss_bytes_max if finished else None,
            database_bytes=finished.database_bytes if finished else None,
            intervals_unfinished=tuple(chain.from_iterable(unfinished)),
            phase_unfinished="" if self._running is None else self._running.name,
            error=judgement.error,
            warnings=tuple(warnings),
            memory_limited_by=memory_limited_by,
        )


def _named(message: Message) -> str:
    return type(message).__name__
