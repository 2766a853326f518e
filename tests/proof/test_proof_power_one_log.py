"""The power test on an engine that keeps a record for each write in one log; no driver is run."""

from __future__ import annotations

import sys
import threading
from dataclasses import replace
from pathlib import Path

import pytest
from fake_runner import FakeRunner
from proof_parts import (
    BASELINE,
    WORKLOAD,
    Recorder,
    arm,
    interval,
    measurer_of,
    open_folder,
    said,
)

from lsmtune.driver.messages import Verified
from lsmtune.driver.native import CrashCheck, NativeRunner
from lsmtune.experiment.store import Role
from lsmtune.model.measurement import Outcome
from lsmtune.model.request import RunRequest
from lsmtune.model.workload import Durability
from lsmtune.proof import power_loss
from lsmtune.proof.crash_test import CrashOutcome
from lsmtune.proof.file_log import History, Kind, Record, history_of
from lsmtune.proof.power_loss import Breach, PowerTest, power_line, power_test
from lsmtune.proof.power_model import Model

RECORD = 512


class OneLog(NativeRunner):
    """Looks at what is left as a driver would; `ends` says how a look ends that fails."""

    ends: CrashCheck | None = None
    looks = 0

    def check_after_crash(
        self, request: RunRequest, acknowledged: int, cancel: threading.Event | None = None
    ) -> CrashCheck:
        self.looks += 1
        assert (acknowledged, cancel is not None) == (0, True)
        folder = request.directory / "db"
        if self.ends is not None:
            return self.ends
        if not (folder / "log").is_file():
            why = f"{folder}/log: no such file in {folder}"
            return CrashCheck(Outcome.CRASHED, why)
        data = (folder / "log").read_bytes()
        fills = [data[at : at + RECORD] for at in range(0, len(data), RECORD)]
        there = [fill == bytes([at + 1]) * RECORD for at, fill in enumerate(fills)]
        first = there.index(False) if False in there else len(there)
        return CrashCheck(Outcome.OK, "", Verified(0, 0, 0, 0.1, first, sum(there)))


def one_log(writes: int, *, synced: bool, named: bool = True) -> History:
    """Its load: a folder whose names are synced, `writes` records, each acknowledged."""
    opened = {"type": "opened", "engine": {"name": "x", "version": None, "library": None}}
    _, made = said({**opened, "options_not_taken": []})
    records = [
        Record(Kind.HELLO, file=1, path="/db"),
        Record(Kind.OPENED, flags=1, file=2, path="/db/CURRENT"),
        Record(Kind.OPENED, flags=1, file=3, path="/db/log"),
        *([Record(Kind.SYNCHED, flags=4, file=1)] if named else []),
        made,
    ]
    for write in range(writes):
        data = bytes([write + 1]) * RECORD
        at = {"offset": write * RECORD, "length": RECORD}
        records.append(Record(Kind.WRITTEN, file=3, data=data, **at))
        if synced:
            records.append(Record(Kind.SYNCHED, file=3))
        records.append(said(interval(write + 1))[1])
    return history_of(records)


class OnOneLog:
    """The test of a recorded load, without driver and engine."""

    def __init__(self, patch: pytest.MonkeyPatch, path: Path) -> None:
        patch.setenv("LSMTUNE_FILES", sys.executable)
        patch.setattr(power_loss, "recorded", self._recorded)
        self.path, self.observer = path, Recorder()
        self.runner = OneLog(Path("/bin/true"))
        self.load: History | str = ""
        self.requests: list[RunRequest] = []

    def _recorded(
        self, driver: Path, library: Path, request: RunRequest, stop: threading.Event
    ) -> History | str:
        assert (driver, str(library)) == (Path("/bin/true"), sys.executable)
        assert stop is self.observer.stop
        self.requests.append(request)
        return self.load

    def __call__(
        self, load: History | str, durability: Durability = Durability.SYNC, tries: int = 20
    ) -> PowerTest:
        self.load = load
        workloads = (
            replace(WORKLOAD, durability=Durability.NONE),
            replace(WORKLOAD, durability=durability),
        )
        with open_folder(self.path) as folder:
            measurer = measurer_of(folder, self.runner, self.observer, FakeRunner(), workloads)
            found = power_test(
                *(arm(BASELINE), measurer),
                study_seed=1, load_bytes=1 << 20, tries=tries,
            )  # fmt: skip
        assert found is not None
        return found


@pytest.fixture
def on_one_log(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> OnOneLog:
    return OnOneLog(monkeypatch, tmp_path)


def test_who_syncs_each_write_loses_none_and_is_not_loaded_again(
    on_one_log: OnOneLog, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = on_one_log(one_log(9, synced=True))
    assert found.outcome is CrashOutcome.PASSED
    # But for a time in which it was being made.
    assert {each.breach for each in found.violations} <= {Breach.HALF_MADE}
    assert (found.engine, found.durability) == ("memory", Durability.SYNC)
    assert (found.states, found.acknowledged, found.lost_share_max) == (20, 9, 0.0)
    assert 0 < found.states_ordered <= 20
    assert found.operations == 5 + 3 * 9
    (request,) = on_one_log.requests
    assert request.workload.num == (1 << 20) // (
        request.workload.key_bytes + request.workload.value_bytes
    )  # fmt: skip
    assert on_one_log.observer.of("run_started") == [(Role.CRASH, None, 1)]
    looks = on_one_log.runner.looks
    assert looks >= 20  # and more where a state is made smaller
    assert on_one_log("would not load") == found
    assert on_one_log.runner.looks == looks
    # With a fault of the device, or another number of states, it is another test.
    with monkeypatch.context() as patch:
        patch.setenv("LSMTUNE_FILES_FAULT", "ignore-sync")
        assert power_line(on_one_log("would not load")) == "not done: would not load"
    assert power_line(on_one_log("would not load", tries=21)) == "not done: would not load"


def test_who_syncs_none_loses_what_was_acknowledged(on_one_log: OnOneLog) -> None:
    found = on_one_log(one_log(9, synced=False))
    assert found.outcome is CrashOutcome.FAILED
    assert found.lost_share_max == 1.0
    lost = [each for each in found.violations if each.breach is Breach.LOST]
    assert 0 < len(lost) <= found.states
    # The first of each sort has only what is needed: one write that is missing.
    for model in (Model.ORDERED, Model.POSIX):
        alike = [each for each in found.violations if (each.breach, each.model) == (
            Breach.LOST, model
        )]  # fmt: skip
        assert [each.reduced for each in alike] == [True] + [False] * (len(alike) - 1)
    first = next(each for each in lost if each.reduced)
    assert len(first.missing) == 1
    assert "log" in first.missing[0]
    assert first.keys_lost >= 1
    assert first.message == ""
    assert f"of {found.operations:,})" in first.cut


def test_what_is_lost_in_order_breaks_nothing_of_a_log_that_is_not_synced(
    on_one_log: OnOneLog,
) -> None:
    found = on_one_log(one_log(9, synced=False), Durability.WAL)
    assert found.outcome is CrashOutcome.PASSED
    assert {each.breach for each in found.violations} <= {Breach.GAP, Breach.HALF_MADE}
    for each in found.violations:
        assert (each.keys_after_gap > 0) == (each.breach is Breach.GAP)
    assert found.lost_share_max > 0


def test_a_database_whose_names_were_never_synced_is_told_without_its_folder(
    on_one_log: OnOneLog,
) -> None:
    found = on_one_log(one_log(9, synced=True, named=False))
    assert found.outcome is CrashOutcome.FAILED
    gone = [each for each in found.violations if each.message]
    assert {each.message for each in gone} == {"log: no such file in the folder"}
    assert {each.breach for each in gone} <= {Breach.UNOPENABLE, Breach.HALF_MADE}


@pytest.mark.parametrize(
    ("check", "why"),
    [
        (
            CrashCheck(Outcome.TIMEOUT, "too late"),
            "looking at what was left ended timeout: too late",
        ),
        (
            CrashCheck(Outcome.OK, "", Verified(0, 0, 0, 0.1)),
            "the engine cannot scan the database for what is there",
        ),
    ],
)
def test_a_state_that_could_not_be_looked_at_is_not_done(
    on_one_log: OnOneLog, check: CrashCheck, why: str
) -> None:
    on_one_log.runner.ends = check
    found = on_one_log(one_log(3, synced=True))
    assert found == PowerTest(CrashOutcome.NOT_DONE, "memory", Durability.SYNC, why=why)
    # It is tried again.
    on_one_log.runner.ends = None
    assert on_one_log(one_log(3, synced=True)).outcome is CrashOutcome.PASSED
