"""Telling an observer of one run at a time while two are on."""

from __future__ import annotations

from collections.abc import Sequence

from lsmtune.proof.observer import RunObserver
from lsmtune.proof.place import Arm
from lsmtune.records.workload import Workload
from lsmtune.runners.messages import Message


class PairTelling:
    """Tells of the run that began last; a run begins with the first message of its driver."""

    def __init__(self, observer: RunObserver, workloads: Sequence[Workload]) -> None:
        self._observer = observer
        self._workloads = workloads
        self._waiting: list[Arm] = []
        self._told = -1

    def begun(self, arms: Sequence[Arm]) -> None:
        """The first of `arms` begins; each other does when its first message comes."""
        self._waiting = list(arms)
        self._begin_next()

    def message(self, index: int, message: Message) -> None:
        """The driver of arm `index` said something."""
        while self._told < index:
            self._begin_next()
        if index == self._told:
            self._observer.run_message(message)

    def ended(self) -> None:
        """Both runs are over: one that never said anything began all the same."""
        while self._waiting:
            self._begin_next()

    def _begin_next(self) -> None:
        config, place = self._waiting.pop(0)
        self._told += 1
        self._observer.run_started(place, config, self._workloads[place.workload])
