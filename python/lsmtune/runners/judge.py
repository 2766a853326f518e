"""What the end of a run means: its outcome, and one line that says why."""

from __future__ import annotations

import signal
from dataclasses import dataclass

from lsmtune.records.measurement import Outcome, RunError
from lsmtune.runners.messages import Failed, Finished
from lsmtune.runners.watch import Ending
from lsmtune.units import format_bytes

_TAIL_LINES = 3
_TAIL_CHARACTERS = 400


@dataclass(frozen=True)
class Judgement:
    """The outcome of a run, why it is not `ok`, and what else is worth saying."""

    outcome: Outcome
    error: RunError | None = None
    warnings: tuple[str, ...] = ()


def judge(
    last: Finished | Failed | None,
    ending: Ending,
    place: str,
    log_tail: str,
    memory_limit_bytes: int | None = None,
) -> Judgement:
    """How a run ended.

    `last` is the driver's last message, if it came to that; `place` says where the run was;
    `log_tail` is the end of what engine and driver printed. The driver's own last word counts
    most, then what lsmtune did to it, then how it died. The error of a run that died has the
    whole `log_tail` in `found`. `memory_limit_bytes` is that of a control group in which the kernel
    killed something for want of memory, None where it did not.
    """
    if isinstance(last, Finished):
        return Judgement(Outcome.OK, warnings=_after_last(ending))
    if isinstance(last, Failed):
        # A cancelled driver that has said so does not take the time to close its engine.
        cancelled = last.outcome is Outcome.CANCELLED
        return Judgement(last.outcome, last.error, () if cancelled else _after_last(ending))
    if ending.outcome is not None:
        return Judgement(
            ending.outcome, RunError(ending.outcome.value, f"{ending.why}, {place}"), ()
        )
    if ending.exit_status == -signal.SIGKILL and memory_limit_bytes is not None:
        limit = format_bytes(memory_limit_bytes)
        why = f"killed by the kernel, over the limit of {limit} of its control group, {place}"
        return died(Outcome.OUT_OF_MEMORY, why, log_tail)
    return judge_death(ending.exit_status, place, log_tail)


def judge_death(exit_status: int, place: str, log_tail: str) -> Judgement:
    """What it means that a process died by itself with `exit_status`, negative for a signal."""
    if exit_status == -signal.SIGKILL:
        why = f"killed by the kernel, likely out of memory, {place}"
        return died(Outcome.OUT_OF_MEMORY, why, log_tail)
    return died(Outcome.CRASHED, f"{_death(exit_status)} {place}", log_tail)


def misspoke(why: str, place: str, log_tail: str) -> Judgement:
    """The driver broke the protocol: whatever it goes on to do, nothing it says can be used."""
    return died(Outcome.CRASHED, f"the driver broke the protocol {place}: {why}", log_tail)


def died(outcome: Outcome, why: str, log_tail: str) -> Judgement:
    """A process that ended early: `why`, and the last of what it printed."""
    if not log_tail:
        return Judgement(outcome, RunError(outcome.value, why))
    last_lines = " | ".join(log_tail.splitlines()[-_TAIL_LINES:])[-_TAIL_CHARACTERS:]
    message = f"{why}; its last output: {last_lines}"
    return Judgement(outcome, RunError(outcome.value, message, found=log_tail))


def _after_last(ending: Ending) -> tuple[str, ...]:
    if ending.outlived:
        return ("the driver did not exit after its last message and was killed",)
    if ending.exit_status < 0:
        return (f"the driver was {_death(ending.exit_status)} after its last message",)
    return ()


def _death(exit_status: int) -> str:
    if exit_status >= 0:
        return f"exited with status {exit_status} before it had finished,"
    try:
        return f"killed by {signal.Signals(-exit_status).name}"
    except ValueError:
        return f"killed by signal {-exit_status}"
