"""What a database keeps when its process dies: a load is killed in the middle, and looked at again.

The two halves are apart because the folder may be copied or moved in between. What must be there
depends on the durability class of the workload, which only the caller judges: the kernel outlives
the process, so that a write-ahead log that was written, synchronised or not, survives this.
"""

from __future__ import annotations

import math
import threading
from dataclasses import dataclass, replace
from pathlib import Path

from lsmtune.errors import InputError
from lsmtune.records.measurement import Outcome
from lsmtune.records.request import RunRequest
from lsmtune.records.workload import PhaseKind
from lsmtune.runners.collect import Collector
from lsmtune.runners.conversation import Conversation, check_library, converse
from lsmtune.runners.directory import check_directory, check_free_space
from lsmtune.runners.judge import Judgement
from lsmtune.runners.messages import IntervalPassed, Message, PhaseFinished
from lsmtune.runners.native_run import DATABASE
from lsmtune.runners.request_json import check_request, run_request
from lsmtune.runners.watch import TICK_S

# How often the load says how far it is: what it did since it last said so need not be there.
KILL_INTERVAL_MS = 20


@dataclass(frozen=True)
class KilledRun:
    """A run that was killed in its load phase, after it had reported `acknowledged` operations.

    `outcome` is None then; when the run ended before it could be killed, it says how, and `message`
    why.
    """

    acknowledged: int
    directory: Path
    outcome: Outcome | None = None
    message: str = ""


@dataclass(frozen=True)
class CrashCheck:
    """Whether the reported keys were found in the database that a killed driver left.

    `opened`: whether the engine opened it again. `keys_wrong` are there with another value,
    `keys_beyond` are there although they had not been reported. `outcome` is `ok` when every
    reported key has its value, `data_loss` when one has not, and otherwise says what kept them from
    being looked at; `message` is one line about it.
    """

    keys_checked: int
    keys_lost: int
    keys_wrong: int
    opened: bool
    message: str
    outcome: Outcome
    keys_beyond: int = 0


def kill_in_load(
    driver: Path,
    request: RunRequest,
    after_operations: int,
    cancel: threading.Event | None = None,
    *,
    after_s: float = math.inf,
) -> KilledRun:
    """Runs `request` and kills it (SIGKILL) in its first phase, a load, or at the end of that.

    It is killed as soon as it has reported `after_operations` operations, or when it was running
    for `after_s` seconds; what it had reported by its death counts. Raises ValueError unless the
    first phase is a load, and what `NativeRunner.run` raises.
    """
    if request.workload.phases[0].kind is not PhaseKind.LOAD:
        raise ValueError(f"the first phase of {request.workload.name} is not a load")
    check_library(request.engine)
    check_directory(request.directory)
    check_free_space(request.directory)
    request = replace(request, interval_ms=KILL_INTERVAL_MS, slices=0)
    load = _Load(after_operations)
    with Conversation(
        driver,
        run_request(request, request.directory / DATABASE),
        request.directory,
        request.limits,
        Collector(),
        on_message=load.hear,
        cancel=cancel,
        cpus=request.cpus,
    ) as conversation:
        conversation.proceed()
        judgement, killed = None, False
        while judgement is None:
            judgement = conversation.step(TICK_S)
            enough = load.far_enough or conversation.elapsed_s >= after_s
            if enough and judgement is None:
                conversation.kill()
                killed = True
    if killed:
        return KilledRun(load.acknowledged, request.directory)
    message = _message(judgement)
    return KilledRun(load.acknowledged, request.directory, judgement.outcome, message)


def check_after_crash(
    driver: Path,
    request: RunRequest,
    acknowledged: int,
    cancel: threading.Event | None = None,
) -> CrashCheck:
    """Whether the database of `request`, in its directory, holds the `acknowledged` operations.

    The first phase of the workload has one thread, and fills keys in an order that follows from the
    seed. Raises InputError for another one, for an engine that keeps nothing on the disk, and when
    driver, library or folder cannot be used.
    """
    check_library(request.engine)
    check_directory(request.directory)
    collector = Collector()
    document = check_request(request, request.directory / DATABASE, acknowledged)
    judgement = converse(
        driver, document, request.directory, request.limits, collector, cancel=cancel
    )
    error = judgement.error
    if judgement.outcome is Outcome.INVALID and error is not None:
        raise InputError(
            f"crash check of {request.workload.name}",
            error.field or "",
            found=error.found,
            allowed=error.allowed or "",
            why="" if error.allowed else error.message,
        )
    seen = collector.verified
    return CrashCheck(
        keys_checked=seen.keys_checked if seen else 0,
        keys_lost=seen.keys_lost if seen else 0,
        keys_wrong=seen.keys_wrong if seen else 0,
        keys_beyond=(seen.keys_beyond or 0) if seen else 0,
        opened=seen is not None,
        outcome=judgement.outcome,
        message=_message(judgement) or f"all {acknowledged} reported keys are there",
    )


class _Load:
    """How far the load is, by its own words."""

    def __init__(self, after_operations: int) -> None:
        self.acknowledged = 0
        self._after_operations = after_operations
        self._over = False

    def hear(self, message: Message) -> None:
        if isinstance(message, IntervalPassed) and message.index == 0:
            self.acknowledged = message.operations_total
        elif isinstance(message, PhaseFinished) and message.index == 0:
            self.acknowledged = message.phase.operations
            self._over = True

    @property
    def far_enough(self) -> bool:
        return self._over or self.acknowledged >= self._after_operations


def _message(judgement: Judgement) -> str:
    return judgement.error.message if judgement.error else ""
