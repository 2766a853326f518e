"""What a finalist keeps when its process dies: a load is killed in the middle and looked at again.

This is a crash of the process, by SIGKILL. The kernel lives on, and with it everything that the
engine had handed over to it, synchronised or not. So a write-ahead log that is written and not
synchronised, which is what the durability class `wal` asks for, survives here as it survives any
crash of the program. What survives a power loss is another test (`power_loss.py`).
"""

from __future__ import annotations

import math
import random
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any, Protocol, TypeVar, runtime_checkable

from lsmtune.driver.native import CrashCheck, KilledRun
from lsmtune.errors import InputError
from lsmtune.experiment.disturbed import tried_again
from lsmtune.experiment.measurer import Measurer
from lsmtune.experiment.schedule import Arm, Slot, Stream, derive_seed
from lsmtune.experiment.store import MeasurementStore, Role
from lsmtune.model.codec import decode, encode
from lsmtune.model.measurement import Outcome
from lsmtune.model.request import Limits, RunRequest
from lsmtune.model.workload import KEY_BYTES_MIN, Durability, PageCache, Phase, PhaseKind, Workload
from lsmtune.workloads.distributions import mean_key_bytes

WHAT_IT_IS = "process crash"

# Seconds on two cores: to write half of it, to open the database again, and to look for every key.
LOAD_BYTES = 64 << 20
# The load is killed after this time where it is slow.
LOAD_S = 5.0
# The load takes at most this share of the disk and memory limits of a run, so that what the engine
# keeps beside each record fits in, too.
_SHARE_OF_LIMITS = 1 / 8
# Where in the load it is killed.
_FROM, _TO = 0.4, 0.6
# A driver whose load is over reads for so long, and is killed meanwhile.
_HOLD_S = 60.0

CRASH_TESTS = "crash_tests"  # the fact of a folder


class CrashOutcome(StrEnum):
    """What a crash test, or a power test, can say."""

    PASSED = "passed"
    FAILED = "failed"
    NOT_DONE = "not_done"


@dataclass(frozen=True)
class CrashTest:
    """What was left of a load that was killed, beside what the durability class promises.

    `acknowledged` writes had been reported done; each of their keys was looked up, `keys_checked`
    in all, and the database scanned. `keys_lost` are not there, which only the class `none` allows;
    `keys_wrong` are there with another value, or were never written. `why` says what failed, what
    was lost and is allowed to be, or why the test was not done.
    """

    outcome: CrashOutcome
    durability: Durability
    acknowledged: int = 0
    keys_checked: int = 0
    keys_lost: int = 0
    keys_wrong: int = 0
    why: str = ""


@runtime_checkable
class Killer(Protocol):
    """A Runner whose runs can be killed on purpose: that of lsmtune's own driver."""

    def kill_in_load(
        self,
        request: RunRequest,
        after_operations: int,
        cancel: threading.Event | None = None,
        *,
        after_s: float = math.inf,
    ) -> KilledRun:
        """Kill the run in its first phase, a load."""

    def check_after_crash(
        self, request: RunRequest, acknowledged: int, cancel: threading.Event | None = None
    ) -> CrashCheck:
        """What the database of the killed run holds."""


def strictest(workloads: Sequence[Workload]) -> Workload:
    """The first of those whose durability class promises most."""
    return min(workloads, key=lambda each: list(Durability).index(each.durability))


def crash_test(
    arm: Arm, measurer: Measurer, *, study_seed: int, load_bytes: int = LOAD_BYTES
) -> CrashTest | None:
    """Kill a load of `arm` at about its half, and look for everything that it had reported.

    One thread loads unique keys in random order, with the sizes and the durability class of the
    workload, of several of the first that promises most. It is not the workload that is run: a
    workload that only reads was loaded too. Where it is killed follows from `study_seed`.

    The result is kept in the folder, and found there again for the same arm; one that was
    not done is tried again. None when the measurer's stop event ended it. Raises InputError when
    the driver, the library or the folder cannot be used.
    """
    workload = strictest(measurer.workloads)
    runner, store = measurer.runner, measurer.folder.measurements
    of = tested(arm, workload)
    stored = [test for kept, test in kept_tests(store, CRASH_TESTS, CrashTest) if kept == of]
    if stored:
        return stored[-1]
    if not isinstance(runner, Killer):
        why = "a program that is not lsmtune's own driver is not killed in a load"
        return CrashTest(CrashOutcome.NOT_DONE, workload.durability, why=why)
    seed = derive_seed(study_seed, Stream.CRASH, 0)
    slot = Slot(Role.CRASH, index=0, workload=measurer.workloads.index(workload))
    if measurer.stop.is_set():
        return None

    def attempt() -> tuple[CrashTest | None, str]:
        with measurer.folder.run_directory() as directory:
            request = measurer.request((arm, slot), seed, directory)
            request = replace(request, workload=load_of(workload, request.limits, load_bytes))
            measurer.observer.run_started(slot, arm, request.workload)
            return _killed(runner, request, measurer.stop)

    test, _ = tried_again(attempt, lambda tried: tried[1], measurer.observer.warning)
    if test is not None and test.outcome is not CrashOutcome.NOT_DONE:
        keep_test(store, CRASH_TESTS, of, test)
    return test


def load_of(workload: Workload, limits: Limits, load_bytes: int = LOAD_BYTES) -> Workload:
    """The load that is killed: `load_bytes` of records like those of `workload`, or what fits.

    What comes after it keeps the driver busy, and writes nothing.
    """
    key_bytes = max(KEY_BYTES_MIN, round(mean_key_bytes(workload)))
    record_bytes = key_bytes + workload.value_bytes
    size = min(load_bytes, int(min(limits.disk_bytes, limits.memory_bytes) * _SHARE_OF_LIMITS))
    num = max(1, size // record_bytes)
    load = Phase("load", PhaseKind.LOAD, "filluniquerandom", operations_per_thread=num)
    hold = Phase("hold", PhaseKind.WARMUP, "readrandom", duration_s=_HOLD_S)
    return replace(
        workload,
        name="crash test",
        phases=(load, hold),
        num=num,
        key_bytes=key_bytes,
        page_cache=PageCache.WARM,
        # The keys that the look afterwards counts through, in one database.
        keys=None,
        key_sizes=None,
        databases=1,
        column_families=1,
    )


def crash_line(test: CrashTest) -> str:
    """The result in one line, as in `passed (12,345 acknowledged writes; process crash; ...)`."""
    writes = f"{test.acknowledged:,} acknowledged writes under durability {test.durability.value}"
    return outcome_line(test.outcome, test.why, f"{writes}; {WHAT_IT_IS}")


def outcome_line(outcome: CrashOutcome, why: str, figures: str) -> str:
    """How a test ended, why, and what it rests on."""
    if outcome is CrashOutcome.NOT_DONE:
        return f"not done: {why}"
    return f"{outcome.value}{f': {why}' if why else ''} ({figures})"


def judged_crash(durability: Durability, acknowledged: int, check: CrashCheck) -> CrashTest | None:
    """What `check` means under `durability`; None when it was cancelled."""
    if check.outcome is Outcome.CANCELLED:
        return None
    outcome, why, held = CrashOutcome.PASSED, "", check.verified
    if check.outcome is Outcome.CRASHED:
        outcome = CrashOutcome.FAILED
        why = f"the database cannot be opened and read after a crash: {check.message}"
    elif held is None:
        outcome = CrashOutcome.NOT_DONE
        why = f"looking at what was left ended {check.outcome.value}: {check.message}"
    elif held.keys_wrong:
        outcome = CrashOutcome.FAILED
        # Any key of the load may be there: writes that had not returned may be done all the same.
        many = "1 key" if held.keys_wrong == 1 else f"{held.keys_wrong:,} keys"
        why = f"{many} with values that nobody wrote after a crash"
    elif held.keys_lost:
        why = f"lost {held.keys_lost:,} of {acknowledged:,} acknowledged writes after a crash"
        if durability is Durability.NONE:
            why += f" ({100 * held.keys_lost / acknowledged:.3g} %), which durability none allows"
        else:
            outcome = CrashOutcome.FAILED
    keys = (held.keys_checked, held.keys_lost, held.keys_wrong) if held else (0, 0, 0)
    return CrashTest(outcome, durability, acknowledged, *keys, why)


def _killed(
    runner: Killer, request: RunRequest, stop: threading.Event
) -> tuple[CrashTest | None, str]:
    """The test, None when it was stopped; and what disturbed it, empty where nothing did."""
    durability, num = request.workload.durability, request.workload.num
    share = random.Random(request.seed).uniform(_FROM, _TO)
    killed = runner.kill_in_load(request, max(1, int(share * num)), stop, after_s=LOAD_S)
    if stop.is_set() or killed.outcome is Outcome.CANCELLED:
        return None, ""
    not_done = CrashTest(CrashOutcome.NOT_DONE, durability, killed.acknowledged)
    if killed.outcome is not None:
        why = f"the load ended {killed.outcome.value} before it was killed: {killed.message}"
        disturbed = killed.outcome is Outcome.DISTURBED
        return replace(not_done, why=why), f"the crash test's {why}" if disturbed else ""
    if not killed.acknowledged:
        return replace(not_done, why=f"no write was acknowledged within {LOAD_S:g} s"), ""
    try:
        check = runner.check_after_crash(request, killed.acknowledged, stop)
    except InputError as error:  # an engine that keeps nothing on the disk
        return replace(not_done, why=str(error)), ""
    if stop.is_set() and check.outcome is Outcome.DISTURBED:
        return None, ""
    disturbed = check.outcome is Outcome.DISTURBED
    why = f"the crash test was {check.message}" if disturbed else ""
    return judged_crash(durability, killed.acknowledged, check), why


# --- the results that a folder keeps, of crash tests and of power tests

T = TypeVar("T")


def tested(arm: Arm, workload: Workload) -> dict[str, object]:
    """What a result holds for."""
    return {
        "library": arm.engine.library,
        "options": arm.config.engine_options(),
        "key_bytes": workload.key_bytes,
        "value_bytes": workload.value_bytes,
        "durability": workload.durability.value,
    }


def kept_tests(
    store: MeasurementStore, fact: str, kind: type[T]
) -> list[tuple[Mapping[str, Any], T]]:
    """Every result that the folder keeps, with what it holds for, the oldest first."""
    return [(row["of"], decode(kind, row["found"])) for row in store.fact(fact) or []]


def keep_test(store: MeasurementStore, fact: str, of: Mapping[str, object], test: object) -> None:
    """Keep a result beside those that are there."""
    store.set_fact(fact, [*(store.fact(fact) or []), {"of": of, "found": encode(test)}])
