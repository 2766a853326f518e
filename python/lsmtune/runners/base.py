"""The contract of a Runner: what `study` and `proof` may rely on, whichever one it is."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Protocol

from lsmtune.records.measurement import Measurement
from lsmtune.records.request import RunRequest
from lsmtune.runners.messages import Message


class Runner(Protocol):
    """A way to perform one run.

    Obligations: `run` never raises for what an engine does, it says so in the outcome; it raises
    `LsmtuneError` only for what the user can mend (no driver, no library, no space). When it
    returns or raises, no process of the run is left. Whatever the run had observed until it ended,
    however it ended, is in the Measurement. Runs in several threads do not disturb each other.
    """

    def run(
        self,
        request: RunRequest,
        on_message: Callable[[Message], None] | None = None,
        cancel: threading.Event | None = None,
    ) -> Measurement:
        """Performs `request`.

        `on_message` is called in this thread with each message as it arrives; what it raises ends
        the run and is raised again. Setting `cancel` ends the run as `cancelled`.
        """
        ...
