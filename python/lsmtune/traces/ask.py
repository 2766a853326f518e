"""Asks the driver what a trace holds: one process, one pass over the file, one summary."""

from __future__ import annotations

import tempfile
import threading
from collections.abc import Callable
from pathlib import Path

from lsmtune.errors import InputError, LsmtuneError
from lsmtune.records.measurement import Outcome
from lsmtune.records.request import Limits
from lsmtune.runners.collect import Collector
from lsmtune.runners.conversation import Conversation
from lsmtune.runners.judge import Judgement
from lsmtune.runners.messages import Message, TraceInspected, TraceProgress
from lsmtune.runners.request_json import inspect_request
from lsmtune.runners.watch import TICK_S
from lsmtune.traces.summary import TraceSummary, trace_summary

RANGES_DEFAULT = 1024
RANGES_MAX = 4096

# The driver promises to stay below 256 MiB, whatever the size of the trace. A trace of a terabyte
# takes a week at the slowest; no deadline is to end what the user waits for and can interrupt.
LIMITS = Limits(deadline_s=30 * 24 * 3600.0, memory_bytes=1 << 30, disk_bytes=1 << 30)

# db_bench's keys: the number first, eight bytes, the highest first.
DB_BENCH_NUMBER: dict[str, object] = {"offset_bytes": 0, "bytes": 8, "format": "big_endian"}

OnProgress = Callable[[TraceProgress], None]


def inspect_trace(
    driver: Path,
    trace: Path,
    *,
    ranges: int = RANGES_DEFAULT,
    key_number: dict[str, object] | None = None,
    on_progress: OnProgress | None = None,
    cancel: threading.Event | None = None,
) -> TraceSummary:
    """What `trace` holds, up to its damage where it has any.

    `ranges` parts of the key space are told apart, at most 4096; `key_number` says how a key's
    number is read where the driver is not to look for itself. Raises InputError for what is not a
    trace, LsmtuneError where the driver failed.
    """
    if not trace.is_file():
        found = "a folder" if trace.is_dir() else "no such file"
        raise InputError(str(trace), why=found, allowed="a query trace of RocksDB")
    heard: list[TraceSummary] = []

    def hear(message: Message) -> None:
        if isinstance(message, TraceInspected):
            heard.append(trace_summary(message.document))
        elif isinstance(message, TraceProgress) and on_progress is not None:
            on_progress(message)

    document = inspect_request(trace.resolve(), ranges, key_number)
    with tempfile.TemporaryDirectory(prefix="lsmtune-trace-") as place:
        conversation = Conversation(
            *(driver, document, Path(place), LIMITS, Collector()), on_message=hear, cancel=cancel
        )
        judgement = _ended(conversation)
    if judgement.outcome is not Outcome.OK or not heard:
        raise _failure(trace, judgement)
    return heard[0]


def _ended(conversation: Conversation) -> Judgement:
    with conversation:
        conversation.proceed()
        while True:
            judgement = conversation.step(TICK_S)
            if judgement is not None:
                return judgement


def _failure(trace: Path, judgement: Judgement) -> LsmtuneError:
    error = judgement.error
    if error is None:
        return LsmtuneError(f"{trace}: inspecting it failed: the driver said nothing of the trace")
    if judgement.outcome is Outcome.INVALID:
        return InputError(str(trace), why=_why(error.message))
    return LsmtuneError(f"{trace}: inspecting it failed: {error.message}")


def _why(message: str) -> str:
    """The driver's reason without the name of the file, with which the error begins."""
    place = message.find("offset ")
    return message[place:] if place >= 0 else message
