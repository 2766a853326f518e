"""A load of which every change of a file is known, and what the driver had said by each of them.

The driver runs with a library in front of its C library (`driver/preload/files.c`), which writes
the log.
"""

from __future__ import annotations

import os
import sys
import threading
from bisect import bisect_left
from dataclasses import replace
from operator import itemgetter
from pathlib import Path

from lsmtune.driver.collect import Collector
from lsmtune.driver.conversation import check_library, converse
from lsmtune.driver.messages import (
    IntervalPassed,
    Opened,
    PhaseFinished,
    parse_message,
    run_request,
)
from lsmtune.driver.runner import DATABASE
from lsmtune.errors import LsmtuneError
from lsmtune.model.codec import ProtocolError
from lsmtune.model.config import Config
from lsmtune.model.measurement import Outcome
from lsmtune.model.request import RunRequest
from lsmtune.model.workload import Workload
from lsmtune.proof.crash_test import load_of
from lsmtune.proof.file_log import History, history_of, read_records
from lsmtune.proof.power_model import Cut, Moment, State, contents
from lsmtune.proof.power_states import IDLE

LIBRARY = "lsmtune-files.so"
VARIABLE = "LSMTUNE_FILES"
FAULT = "LSMTUNE_FILES_FAULT"  # which the library reads
_ENDED = "the load ended"
DISTURBED = f"{_ENDED} {Outcome.DISTURBED.value}"  # how `recorded` begins to say so

# So many times does the load fill a write buffer, whatever size the configuration asks for: the
# engine has to change logs, to flush and to compact meanwhile. Both engines name it so.
_FLUSHES = 16
_WRITE_BUFFER = "write_buffer_size"
_WRITE_BUFFER_BYTES_MIN = 64 << 10  # LevelDB takes no less
# RocksDB's parts of a write buffer, which may not be larger than it.
_BUFFER_PARTS = "arena_block_size"
# How often the driver says how many writes have returned: as often as it can.
_SAY_MS = 1


def find_library(driver: Path) -> Path | None:
    """The library that notes what happens to files; None where it is not installed.

    Looked for in: the environment variable LSMTUNE_FILES (nothing else is tried when it is set),
    beside the driver, beside the Python interpreter.
    """
    explicit = os.environ.get(VARIABLE)
    places = [driver.parent, Path(sys.executable).parent]
    candidates = [Path(explicit)] if explicit else [place / LIBRARY for place in places]
    return next((each.absolute() for each in candidates if each.is_file()), None)


def small_request(request: RunRequest, workload: Workload, load_bytes: int) -> RunRequest:
    """`request` for the load that is recorded: `load_bytes`, in `_FLUSHES` write buffers."""
    load = load_of(workload, request.limits, load_bytes)
    buffer_bytes = max(_WRITE_BUFFER_BYTES_MIN, load_bytes // _FLUSHES)
    options = {**request.config.options, _WRITE_BUFFER: buffer_bytes}
    options.pop(_BUFFER_PARTS, None)
    return replace(
        request,
        workload=replace(load, name="power test", phases=load.phases[:1]),
        config=Config(options, request.config.label),
        interval_ms=_SAY_MS,
    )


def recorded(
    driver: Path, library: Path, request: RunRequest, stop: threading.Event
) -> History | str:
    """What the engine did to its files in the load of `request`, or why that is not known.

    Raises InputError when the driver or the library of the engine cannot be used, and LsmtuneError
    when the disk failed.
    """
    if any(mark in str(library) for mark in " :"):
        return f"{library}: the dynamic linker takes no path with a space or a colon"
    check_library(request.engine)
    directory, log = request.directory, request.directory / "files.log"
    settings = {
        "LSMTUNE_FILES_BELOW": str(directory / DATABASE),
        "LSMTUNE_FILES_LOG": str(log),
        "LD_PRELOAD": ":".join(filter(None, [str(library), os.environ.get("LD_PRELOAD")])),
    }
    # The library is in front of the driver's C library, and of no other program's.
    wrapper = ["env", *(f"{name}={value}" for name, value in settings.items())]
    document = run_request(request, directory / DATABASE)
    judgement = converse(
        driver, document, directory, request.limits, Collector(), stop, wrapper=wrapper
    )
    if not log.is_file():
        return f"{library.name} was not loaded: the driver is static, or of another C library"
    try:
        history = history_of(read_records(log))
    except LsmtuneError as error:
        return str(error)
    refused = f"; refused: {', '.join(sorted(set(history.refused)))}" if history.refused else ""
    if judgement.outcome is not Outcome.OK:
        return f"{_ENDED} {judgement.outcome.value}: {judgement.message}{refused}"
    different = _different(history, directory / DATABASE)
    if different:
        return f"files changed in a way that was not noticed: {', '.join(different)}"
    return history


def _different(history: History, directory: Path) -> list[str]:
    """Files of the database that are not what the log says, which then is not complete."""
    moment = Moment(history, Cut(history.records))
    computed, _ = contents(moment, State(moment.cut))
    real = {
        str(path.relative_to(directory)): path for path in directory.rglob("*") if path.is_file()
    }
    missing = computed.keys() ^ real.keys()
    changed = {
        name for name in computed.keys() - missing if real[name].read_bytes() != computed[name]
    }
    return sorted(missing | changed)


# --- what was promised


class Promises:
    """What the driver had said by a point in the log."""

    def __init__(self, history: History) -> None:
        self._returned: list[tuple[int, int]] = []  # the record that says so, and how many writes
        self._opened = history.records
        unfinished: dict[int, bytes] = {}  # by pipe, the line that is not over
        for at, pipe, data in history.marks:
            *lines, rest = (unfinished.get(pipe, b"") + data).split(b"\n")
            unfinished[pipe] = rest
            for line in lines:
                self._hear(at, line)

    def _hear(self, at: int, line: bytes) -> None:
        try:
            message = parse_message(line)
        except ProtocolError:
            return  # another pipe than the driver's own
        if isinstance(message, Opened):
            self._opened = at
        elif isinstance(message, IntervalPassed) and message.index == 0:
            self._returned.append((at, message.operations_total))
        elif isinstance(message, PhaseFinished) and message.index == 0:
            self._returned.append((at, message.phase.operations))

    @property
    def writes(self) -> int:
        """Writes that were acknowledged in the end."""
        return self._returned[-1][1] if self._returned else 0

    def acknowledged(self, cut: Cut) -> int:
        """Writes that had returned before `cut`."""
        before = bisect_left(self._returned, cut.records, key=itemgetter(0))
        return self._returned[before - 1][1] if before else 0

    def opened(self, cut: Cut) -> bool:
        """Whether the database had been opened before `cut`."""
        return self._opened < cut.records

    def made(self, moment: Moment) -> bool:
        """Whether the database had been opened, and all that was written for that is synced."""
        if not self.opened(moment.cut):
            return False
        files = [file for file in moment.files if not IDLE.search(moment.name(file))]
        return all(change.at > self._opened for file in files for change in moment.changes(file)[1])
