"""What a finalist keeps when the power fails: states of its database that nobody can wait for.

A small load runs to its end, with a library in front of the C library that notes what the engine
does to its files (`driver/preload/files.c`). From that log follow states that a power loss may
leave (`power_model.py`); the real engine opens each, and what it then holds is compared with what
had been promised until the power failed (`docs/power-loss.md`).
"""

from __future__ import annotations

import os
import random
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from enum import StrEnum
from itertools import islice
from pathlib import Path

from lsmtune.driver.native import CrashCheck, NativeRunner
from lsmtune.driver.runner import DATABASE
from lsmtune.errors import InputError
from lsmtune.experiment.disturbed import tried_again
from lsmtune.experiment.measurer import Measurer
from lsmtune.experiment.schedule import Arm, Slot, Stream, derive_seed
from lsmtune.experiment.store import Role
from lsmtune.model.measurement import Outcome
from lsmtune.model.request import POWER_STATES_DEFAULT, RunRequest
from lsmtune.model.workload import Durability
from lsmtune.proof.crash_test import (
    CrashOutcome,
    keep_test,
    kept_tests,
    outcome_line,
    strictest,
    tested,
)
from lsmtune.proof.file_log import History
from lsmtune.proof.power_model import Cut, Model, Moment, State, contents, losses, ordered_allows
from lsmtune.proof.power_states import lessened, states
from lsmtune.proof.recorded_load import (
    DISTURBED,
    FAULT,
    LIBRARY,
    VARIABLE,
    Promises,
    find_library,
    recorded,
    small_request,
)

# Several flushes and compactions, with the write buffers of the recorded load; a state of it is
# written in milliseconds.
LOAD_BYTES = 4 << 20
# What is missing from a state may be much, and its first things say enough.
_MISSING_MAX = 8
POWER_TESTS = "power_tests"  # the fact of a folder


class Breach(StrEnum):
    """What a state can break of what was promised."""

    LOST = "lost"  # acknowledged writes of the class `sync`
    GAP = "gap"  # writes are there that came after others that are not
    WRONG = "wrong"  # values that nobody wrote
    UNOPENABLE = "unopenable"
    HALF_MADE = "half_made"  # cannot be opened, and was not yet made


@dataclass(frozen=True)
class PowerViolation:
    """A state that breaks what was promised.

    `model`: `ordered` where it can happen even on a journal that keeps order, `posix` where only
    POSIX allows it. `cut`: when the power failed. `missing`: what of all that had happened was not
    on the device; where `reduced`, each of it is needed. `acknowledged` writes had returned,
    `keys_lost` of them are gone, `keys_wrong` have other values, `keys_after_gap` are there after
    one that is missing. `message` is the engine's, where the database cannot be opened.
    """

    breach: Breach
    model: Model
    cut: str
    state: str
    missing: tuple[str, ...]
    reduced: bool
    acknowledged: int
    keys_lost: int = 0
    keys_wrong: int = 0
    keys_after_gap: int = 0
    message: str = ""


@dataclass(frozen=True)
class PowerTest:
    """What states after a power loss hold, beside what the durability class promises.

    `states` were opened and looked at, `states_ordered` of them such as a journal that keeps order
    leaves. It has failed where one of those has lost what was synced. `acknowledged` writes
    returned in the load; of those that had until a cut, at most the share `lost_share_max` is lost
    in a state that opens, which only the class `sync` forbids. `refused`: calls of the engine that
    cannot be followed and were refused.
    """

    outcome: CrashOutcome
    engine: str
    durability: Durability
    states: int = 0
    states_ordered: int = 0
    operations: int = 0
    acknowledged: int = 0
    lost_share_max: float = 0.0
    violations: tuple[PowerViolation, ...] = ()
    refused: tuple[str, ...] = ()
    elapsed_s: float = 0.0
    why: str = ""


def power_test(
    arm: Arm,
    measurer: Measurer,
    *,
    study_seed: int,
    load_bytes: int = LOAD_BYTES,
    tries: int = POWER_STATES_DEFAULT,
) -> PowerTest | None:
    """Load a database with `arm`, and look at what `tries` power losses would have left of it.

    The load is `small_request`'s; the states follow from `study_seed`. For tests of this test,
    LSMTUNE_FILES_FAULT=ignore-sync is a device that forgets what was synced. The result is kept,
    None is returned and InputError raised as by `crash_test`; LsmtuneError when the disk failed.
    """
    workload, runner = strictest(measurer.workloads), measurer.runner
    not_done = PowerTest(CrashOutcome.NOT_DONE, arm.engine.name, workload.durability)
    if not isinstance(runner, NativeRunner):
        why = "of a program that is not lsmtune's own driver it is not known when a write returned"
        return replace(not_done, why=why)
    library, fault = find_library(runner.driver), os.environ.get(FAULT, "")
    if library is None:
        named = os.environ.get(VARIABLE)
        missing = f"{LIBRARY} is not installed; `make setup` builds it"
        return replace(not_done, why=f"{VARIABLE}: no such file: {named}" if named else missing)
    store = measurer.folder.measurements
    size = {"fault": fault, "tries": tries, "load_bytes": load_bytes}
    of = {**tested(arm, workload), **size}
    stored = [test for kept, test in kept_tests(store, POWER_TESTS, PowerTest) if kept == of]
    if stored:
        return stored[-1]
    if measurer.stop.is_set():
        return None
    started_s = time.monotonic()
    seed = derive_seed(study_seed, Stream.CRASH, 1)
    slot = Slot(Role.CRASH, index=1, workload=measurer.workloads.index(workload))

    def attempt() -> tuple[RunRequest, History | str]:
        with measurer.folder.run_directory() as directory:
            request = measurer.request((arm, slot), seed, directory)
            request = small_request(request, workload, load_bytes)
            measurer.observer.run_started(slot, arm, request.workload)
            return request, recorded(runner.driver, library, request, measurer.stop)

    def disturbance(tried: tuple[RunRequest, History | str]) -> str:
        load = tried[1]
        is_so = isinstance(load, str) and load.startswith(DISTURBED) and not measurer.stop.is_set()
        return f"in the power test {load}" if is_so else ""

    request, load = tried_again(attempt, disturbance, measurer.observer.warning)
    if measurer.stop.is_set():
        return None
    if isinstance(load, str):
        return replace(not_done, why=load)
    try:
        test = _Tester(runner, measurer, request, load).test(tries)
    except (_NotDone, InputError) as error:  # InputError: an engine that keeps nothing on disk
        # Who stops lsmtune may have killed the driver, too.
        return None if measurer.stop.is_set() else replace(not_done, why=str(error))
    test = replace(test, elapsed_s=time.monotonic() - started_s)
    if test.outcome is not CrashOutcome.NOT_DONE:
        keep_test(store, POWER_TESTS, of, test)
    return test


@dataclass(frozen=True)
class Held:
    """What the engine finds in a state.

    `first` writes are there in the order in which they were made, `present` of all, `wrong` have
    other values. `message` says why the database cannot be opened, empty where it can.
    """

    first: int = 0
    present: int = 0
    wrong: int = 0
    message: str = ""


def broken(
    durability: Durability, acknowledged: int, held: Held, *, made: bool = True
) -> Breach | None:
    """What `held` breaks of the promises of `durability` after `acknowledged` writes.

    `made`: whether the database was, before the power failed.
    """
    if held.message:
        owes = made or (durability is Durability.SYNC and acknowledged > 0)
        return Breach.UNOPENABLE if owes else Breach.HALF_MADE
    if held.wrong:
        return Breach.WRONG
    if durability is Durability.SYNC and held.first < acknowledged:
        return Breach.LOST
    if durability is not Durability.NONE and held.present > held.first:
        return Breach.GAP
    return None


# --- the states


class _NotDone(Exception):  # noqa: N818
    """A state could not be looked at, for a reason that is not the engine's; or for a stop."""


class _Tester:
    """Opens states of one recorded load, each in a folder of its own."""

    def __init__(
        self, runner: NativeRunner, measurer: Measurer, request: RunRequest, history: History
    ) -> None:
        self._runner = runner
        self._folder = measurer.folder
        self._stop, self._warn = measurer.stop, measurer.observer.warning
        self._request = request
        self._durability = request.workload.durability
        self._history = history
        self._promises = Promises(history)
        self._reduced: set[tuple[Breach, bool]] = set()

    def test(self, tries: int) -> PowerTest:
        """What so many states hold. Raises _NotDone."""
        violations: list[PowerViolation] = []
        tried = ordered = 0
        lost_share_max = 0.0
        for moment, state in islice(self._states(), tries):
            held = self._held(moment, state)
            tried += 1
            ordered += ordered_allows(moment, state)
            acknowledged = self._promises.acknowledged(state.cut)
            if acknowledged and not held.message:
                lost = max(0, acknowledged - held.present)
                lost_share_max = max(lost_share_max, lost / acknowledged)
            breach = self._broken(moment, held)
            if breach is not None:
                violations.append(self._violation(breach, moment, state, held))
        return judged(
            PowerTest(
                CrashOutcome.PASSED,
                self._request.engine.name,
                self._durability,
                states=tried,
                states_ordered=ordered,
                operations=self._history.records,
                acknowledged=self._promises.writes,
                lost_share_max=lost_share_max,
                violations=tuple(violations),
                refused=tuple(sorted(set(self._history.refused))),
            )
        )

    def _states(self) -> Iterator[tuple[Moment, State]]:
        """The states, but for those of a time when there was no database yet."""

        def promised(cut: Cut) -> int:
            # A state promises more at a later cut, but only in this class.
            strict = self._durability is Durability.SYNC
            return self._promises.acknowledged(cut) if strict else 0

        rng = random.Random(self._request.seed)
        for moment, state in states(self._history, rng, promised):
            if self._promises.opened(state.cut) or "CURRENT" in contents(moment, state)[0]:
                yield moment, state

    def _held(self, moment: Moment, state: State) -> Held:
        """What the engine finds in a state, which it opens twice."""
        files, folders = contents(moment, state)

        def attempt() -> tuple[CrashCheck, Path]:
            with self._folder.run_directory() as directory:
                database = directory / DATABASE
                for name in ["", *folders]:
                    (database / name).mkdir()
                for name, content in files.items():
                    (database / name).write_bytes(content)
                request = replace(self._request, directory=directory)
                # Asked for none, the driver counts what is there up to the first that is not.
                return self._runner.check_after_crash(request, 0, self._stop), directory

        def disturbance(tried: tuple[CrashCheck, Path]) -> str:
            check, _ = tried
            is_so = check.outcome is Outcome.DISTURBED and not self._stop.is_set()
            return f"in the power test a check was disturbed ({check.message})" if is_so else ""

        check, directory = tried_again(attempt, disturbance, self._warn)
        verified = check.verified
        if verified is None:
            if check.outcome is Outcome.CRASHED:
                return Held(message=_said(check.message, directory))
            why = f"looking at what was left ended {check.outcome.value}: {check.message}"
            raise _NotDone(why)
        if verified.keys_scanned is None:
            raise _NotDone("the engine cannot scan the database for what is there")
        return Held(verified.keys_beyond or 0, verified.keys_scanned, verified.keys_wrong)

    def _broken(self, moment: Moment, held: Held) -> Breach | None:
        acknowledged, made = self._promises.acknowledged(moment.cut), self._promises.made(moment)
        return broken(self._durability, acknowledged, held, made=made)

    def _violation(
        self, breach: Breach, moment: Moment, state: State, held: Held
    ) -> PowerViolation:
        ordered, label = ordered_allows(moment, state), state.label
        reduced = (breach, ordered) not in self._reduced
        if reduced:
            self._reduced.add((breach, ordered))
            state = lessened(
                state, lambda less: self._broken(moment, self._held(moment, less)) is breach
            )
            held = self._held(moment, state)
            ordered = ordered or ordered_allows(moment, state)
        acknowledged = self._promises.acknowledged(state.cut)
        return PowerViolation(
            breach,
            Model.ORDERED if ordered else Model.POSIX,
            f"{state.cut.where} (operation {state.cut.records:,} of {self._history.records:,})",
            label,
            _some(losses(moment, state)),
            reduced,
            acknowledged,
            keys_lost=max(0, acknowledged - held.present),
            keys_wrong=held.wrong,
            keys_after_gap=held.present - held.first,
            message=held.message,
        )


def _some(missing: list[str]) -> tuple[str, ...]:
    """The first things that are missing, and how many more."""
    more = len(missing) - _MISSING_MAX
    return tuple(missing[:_MISSING_MAX] + ([f"{more:,} more"] if more > 0 else []))


def _said(message: str, directory: Path) -> str:
    """What an engine said, without the folder, which is gone."""
    database = str(directory / DATABASE)
    return message.replace(f"{database}/", "").replace(database, "the folder") or "no message"


# --- the result


# Of these a configuration cannot be recommended, in states such as ext4 leaves.
_LOSES = {Breach.LOST, Breach.WRONG, Breach.UNOPENABLE}


def judged(test: PowerTest) -> PowerTest:
    """`test` with its outcome.

    It fails where a state such as ext4 leaves has lost what was synced, or has what nobody wrote.
    All else is told: what only POSIX allows, writes of the class `wal` that came after lost ones,
    and a database that was being made. Of these the default configurations of both engines have
    some, so that they say nothing against a candidate.
    """
    if not test.states:
        return replace(test, outcome=CrashOutcome.NOT_DONE, why="the log has no state to look at")
    usual = [each for each in test.violations if each.model is Model.ORDERED]
    lost = [each for each in usual if each.breach in _LOSES]
    if not test.violations:
        return test
    worst = lost or usual or test.violations
    alike = [each for each in worst if each.breach is worst[0].breach]
    where = "" if usual else ", none of them such as ext4 leaves"
    return replace(
        test,
        outcome=CrashOutcome.FAILED if lost else CrashOutcome.PASSED,
        why=f"{_what(alike[0], test)} in {len(alike):,} of {test.states:,} states{where}",
    )


def power_line(test: PowerTest) -> str:
    """The result in one line, as in `passed (40 computed states after a power loss, ...)`."""
    states = f"{test.states:,} computed states after a power loss"
    ordered = f"{test.states_ordered:,} of them such as ext4 leaves"
    figures = f"{states}, {ordered}; durability {test.durability.value}"
    return outcome_line(test.outcome, test.why, figures)


def power_findings(test: PowerTest) -> list[str]:
    """For a report: what was lost and may be, each sort of violation, what was refused."""
    sentences = []
    if test.lost_share_max and test.durability is not Durability.SYNC:
        sentences.append(
            f"Up to {100 * test.lost_share_max:.3g} % of the acknowledged writes were lost, which "
            f"durability {test.durability.value} allows."
        )
    # One of each sort, with what it takes: the first of them is the one that was reduced.
    sorts: dict[tuple[Breach, Model], list[PowerViolation]] = {}
    for each in test.violations:
        sorts.setdefault((each.breach, each.model), []).append(each)
    for (_, model), alike in sorts.items():
        first = next((each for each in alike if each.reduced), alike[0])
        where = "on ext4 and others" if model is Model.ORDERED else "where only POSIX holds"
        missing = "; ".join(first.missing) or "nothing"
        sentences.append(
            f"{_what(first, test)}, {where}, {first.cut}: missing is {missing} "
            f"({len(alike):,} such states)."
        )
    if test.refused:
        sentences.append(f"Refused, because it cannot be followed: {', '.join(test.refused)}.")
    return sentences


def _what(violation: PowerViolation, test: PowerTest) -> str:
    match violation.breach:
        case Breach.LOST:
            return (
                f"{violation.keys_lost:,} of {violation.acknowledged:,} acknowledged writes lost "
                f"under durability {test.durability.value}"
            )
        case Breach.GAP:
            return f"{violation.keys_after_gap:,} writes kept after one that was lost"
        case Breach.WRONG:
            return f"{violation.keys_wrong:,} keys with values that nobody wrote"
        case Breach.UNOPENABLE:
            return f"the database cannot be opened ({violation.message})"
        case Breach.HALF_MADE:
            return f"a database that was being made cannot be opened ({violation.message})"
