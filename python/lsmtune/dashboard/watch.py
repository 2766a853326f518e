"""Studies that are watched: read again when they changed; the longer that takes, the more rarely.

All reading is done by one thread, as SQLite wants it, at a low priority: a run that is being
measured has the machine.
"""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import TypeVar

import psutil

from lsmtune.dashboard.pages import Shown, now_section
from lsmtune.errors import LsmtuneError, disk_trouble
from lsmtune.experiment.files import MEASUREMENTS_DB
from lsmtune.experiment.folder import StudyFolder
from lsmtune.experiment.server import SERVER_FILE
from lsmtune.machine.awake import Clock
from lsmtune.machine.host import process_began
from lsmtune.report.analysis import StudyAnalysis
from lsmtune.report.document import Document
from lsmtune.report.render import section_html
from lsmtune.report.source import read_study
from lsmtune.report.study import study_document
from lsmtune.study.live import LIVE_FILE, Live, State, read_live

T = TypeVar("T")
# Of a processor, for reading and drawing a study that changes all the time. What the tuner says
# each second takes up to 0.5 % besides, and both together are to stay below 1 %.
SHARE_MAX = 0.005
_RESULT = "result"  # `StudyFolder.result_path`, by its name


class Watched:
    """One study folder. Its methods are for the reader's thread."""

    def __init__(self, place: str, path: Path, clock: Clock = time.monotonic) -> None:
        self.place, self.path, self._clock = place, path, clock
        self._known: Shown | LsmtuneError | None = None
        self._changed: float | None = None
        self._not_before_s = float("-inf")
        self._said: Live | None = None  # by the tuner that spoke last

    def shown(self) -> Shown:
        """The study as it was when it was last read, and what its tuner says now.

        Raises InputError when it cannot be read. That is tried again, too: not all that may be in
        the way is seen in the time of a file.
        """
        changed, began_s = _changed_at(self.path / MEASUREMENTS_DB), self._clock()
        is_old = changed != self._changed or isinstance(self._known, LsmtuneError)
        if self._known is None or (is_old and began_s >= self._not_before_s):
            self._changed, self._known = changed, self._read()
            self._not_before_s = self._clock() + (self._clock() - began_s) / SHARE_MAX
        if isinstance(self._known, LsmtuneError):
            raise self._known.with_traceback(None)
        return replace(self._known, live=self.live())

    def _read(self) -> Shown | LsmtuneError:
        try:
            # Opened anew: the folder may be another one of the same name.
            with StudyFolder.open(self.path) as folder:
                analysis = StudyAnalysis(read_study(folder), None)
            report = study_document(analysis)
            fragments = {section.id: section_html(section) for section in report.sections}
        except OSError as error:
            return disk_trouble(error, self.path)
        except LsmtuneError as error:
            return error
        return Shown(self.place, self.path, analysis, report, fragments)

    def live(self) -> Live | None:
        """What the tuner says; None where it is gone."""
        live = self._said = read_live(self.path)
        if live is None or live.state is State.ENDED or _is_there(live):
            return live
        return replace(live, state=State.ENDED, run=None)

    def page(self) -> tuple[Document, Mapping[str, str]]:
        """What happens now, and the report; as a document, and as HTML by the sections' ids."""
        shown = self.shown()
        now = now_section(shown.live)
        fragments = {now.id: section_html(now), **shown.fragments}
        return replace(shown.report, sections=[now, *shown.report.sections]), fragments

    def stamp(self) -> tuple[float | None, float, bool]:
        """Changes when there may be something new to see; a tuner that was killed tells nobody."""
        due = self._clock() >= self._not_before_s
        stored = _changed_at(self.path / MEASUREMENTS_DB) if due else self._changed
        gone = self._said is not None and not _is_there(self._said)
        return stored, _changed_at(self.path / LIVE_FILE), gone


def _is_there(tuner: Live) -> bool:
    """Whether the process that said this still is; one that has its number by now is another."""
    if not psutil.pid_exists(tuner.pid):
        return False
    began = process_began(tuner.pid)  # another user's may be hidden
    return began is None or tuner.began in (None, began)


def _changed_at(path: Path) -> float:
    times = [0.0]
    # The files to deploy are written when the verdict is there already.
    for each in (path, path.with_name(SERVER_FILE), path.with_name(_RESULT)):
        with suppress(OSError):
            times.append(each.stat().st_mtime)
    return max(times)


class Studies:
    """All studies of a live page, and the one thread that reads them."""

    def __init__(self, paths: Sequence[Path]) -> None:
        self.all = {str(number): Watched(str(number), path) for number, path in enumerate(paths)}
        self._reader = ThreadPoolExecutor(1, "reader", initializer=_yield_to_runs)

    def begin(self) -> None:
        """Read all studies ahead of the first question."""
        self._reader.submit(self.overview)

    async def read(self, what: Callable[[], T]) -> T:
        """The result of `what`, in the reader's thread."""
        return await asyncio.get_running_loop().run_in_executor(self._reader, what)

    def overview(self) -> tuple[list[Shown], dict[str, str]]:
        """Every study that can be read, and why the others cannot; for the reader's thread."""
        shown, broken = [], {}
        for study in self.all.values():
            try:
                shown.append(study.shown())
            except LsmtuneError as error:
                broken[str(study.path)] = str(error)
        return shown, broken

    def close(self) -> None:
        """End the thread."""
        self._reader.shutdown(cancel_futures=True)


def _yield_to_runs() -> None:
    """A tenth of what a run gets that wants the same processor; on Linux it holds for a thread."""
    os.nice(10)
