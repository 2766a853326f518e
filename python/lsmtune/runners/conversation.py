"""One conversation with one driver process: request in, messages out, and how it ended."""

from __future__ import annotations

import json
import os
import threading
import time
from collections.abc import Callable
from pathlib import Path

from lsmtune.errors import InputError
from lsmtune.records.engine import EngineIdentity
from lsmtune.records.request import Limits
from lsmtune.runners.collect import Collector
from lsmtune.runners.judge import Judgement, judge, misspoke
from lsmtune.runners.messages import Failed, Finished, Message, parse_message
from lsmtune.runners.process import ChildProcess
from lsmtune.runners.reading import ProtocolError
from lsmtune.runners.request_json import Json
from lsmtune.runners.watch import Clock, watch

ENGINE_LOG = "engine.log"

OnMessage = Callable[[Message], None]


def converse(
    driver: Path,
    document: Json,
    directory: Path,
    limits: Limits,
    collector: Collector,
    *,
    on_message: OnMessage | None = None,
    cancel: threading.Event | None = None,
    clock: Clock = time.monotonic,
) -> Judgement:
    """Starts the driver, hands it `document`, gives every message to `collector`; its end.

    When it returns or raises, the process and its whole group are gone.
    """

    def on_line(line: bytes) -> bool:
        message = parse_message(line)
        collector.take(message)
        if on_message is not None:
            on_message(message)
        return isinstance(message, Finished | Failed)

    with ChildProcess([str(driver)], directory / ENGINE_LOG) as child:
        child.send(json.dumps(document, allow_nan=False))
        try:
            ending = watch(child, directory, limits, on_line, cancel, clock)
        except ProtocolError as error:
            return misspoke(str(error), collector.place, child.log_tail())
        return judge(collector.last, ending, collector.place, child.log_tail())


def check_library(engine: EngineIdentity) -> None:
    """Raises InputError unless the engine's library, where it has one, is a readable file."""
    if engine.library is None:
        return
    path = Path(engine.library)
    if not path.is_file() or not os.access(path, os.R_OK):
        raise InputError(
            "--library",
            found=engine.library,
            allowed=f"a {engine.name} library that can be read",
            why="no such file" if not path.exists() else "cannot be read",
        )
