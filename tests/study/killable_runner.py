"""A FakeRunner whose runs can be killed in a load."""

from __future__ import annotations

import math
import threading
from collections.abc import Callable
from dataclasses import dataclass, field

from fake_runner import FakeRunner

from lsmtune.driver.messages import Verified
from lsmtune.driver.native import CrashCheck, KilledRun
from lsmtune.model.config import Config
from lsmtune.model.measurement import Outcome
from lsmtune.model.request import RunRequest


def left(lost: int = 0, wrong: int = 0, outcome: Outcome | None = None) -> CrashCheck:
    """What was found of 1000 writes; with an `outcome`, they could not be looked at."""
    if outcome is not None:
        return CrashCheck(outcome, "no MANIFEST")
    ended = Outcome.DATA_LOSS if lost + wrong else Outcome.OK
    return CrashCheck(ended, "", Verified(1000, lost, wrong, 0.1))


@dataclass
class KillableRunner(FakeRunner):
    """Kills as `killed` says; what is then left of a configuration is up to the test."""

    leaves: Callable[[Config], CrashCheck] = lambda _config: left()
    killed: KilledRun = field(default_factory=lambda: KilledRun(1000))
    kills: list[tuple[RunRequest, int, float]] = field(default_factory=list)

    def kill_in_load(
        self,
        request: RunRequest,
        after_operations: int,
        cancel: threading.Event | None = None,
        *,
        after_s: float = math.inf,
    ) -> KilledRun:
        assert cancel is not None
        self.kills.append((request, after_operations, after_s))
        return self.killed

    def check_after_crash(
        self, request: RunRequest, acknowledged: int, cancel: threading.Event | None = None
    ) -> CrashCheck:
        assert cancel is not None
        assert acknowledged == self.killed.acknowledged
        return self.leaves(request.config)
