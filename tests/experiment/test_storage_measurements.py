from __future__ import annotations

import errno
import os
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from storage_parts import measurement

from lsmtune.errors import InputError, LsmtuneError
from lsmtune.experiment import store as store_module
from lsmtune.experiment.files import explained
from lsmtune.experiment.store import VERSION, MeasurementStore, Role, StoredMeasurement, _crc
from lsmtune.model.codec import decode
from lsmtune.model.config import Config
from lsmtune.model.measurement import Outcome
from lsmtune.model.verdict import Verdict, VerdictOutcome
from made_up import add_run


@pytest.fixture
def store(tmp_path: Path) -> Iterator[MeasurementStore]:
    opened = MeasurementStore(tmp_path / "measurements.db")
    yield opened
    opened.close()


CONFIG = Config({"write_buffer_size": 4096, "sync": True}, "x#0")


def test_what_is_added_is_there_after_reopening(store: MeasurementStore, tmp_path: Path) -> None:
    first = add_run(store, Role.BASELINE, measurement(), config=Config())
    second = add_run(store, Role.TRIAL, measurement(seed=9), config=CONFIG, trial=0, wall_s=3.5)
    store.close()
    reader = MeasurementStore(tmp_path / "measurements.db", read_only=True)
    rows = reader.all()
    assert [(r.id, r.role, r.trial, r.pair) for r in rows] == [
        (first, Role.BASELINE, None, None),
        (second, Role.TRIAL, 0, None),
    ]
    assert rows[1].measurement == measurement(seed=9)
    assert rows[1].config == CONFIG
    assert reader.of(Role.TRIAL) == rows[1:]
    assert reader.of(Role.TRIAL, rows[1].id) == rows[2:]
    assert reader.spent_s() == pytest.approx(2.5 + 3.5)
    with pytest.raises(LsmtuneError):
        reader.set_verdict(None)
    reader.close()


def test_who_reads_a_large_study_lets_its_tuner_store_meanwhile(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Some 10,000 runs took longer to decode than a tuner waits, and a report ended it."""
    monkeypatch.setattr(store_module, "BUSY_TIMEOUT_S", 0.0)
    monkeypatch.setattr(store_module, "_ROWS_AT_ONCE", 2)
    path, added = tmp_path / "measurements.db", list[int]()
    with closing(MeasurementStore(path)) as tuner:

        def add(role: Role, trial: int | None = None) -> None:
            added.append(add_run(tuner, role, measurement(), config=CONFIG, trial=trial))

        def decode_slowly(kind: Any, stored: object) -> Any:
            if len(added) == 3:
                add(Role.TRIAL, 0)
            return decode(kind, stored)

        for _ in range(3):
            add(Role.BENCH)
        with closing(MeasurementStore(path, read_only=True)) as reader:
            monkeypatch.setattr(store_module, "decode", decode_slowly)
            assert [row.id for row in reader.all()] == added == [1, 2, 3, 4]
            assert [row.id for row in reader.of(Role.BENCH)] == [1, 2, 3]


def test_a_verdict_is_kept_and_can_be_taken_back(store: MeasurementStore) -> None:
    assert store.verdict() is None
    verdict = Verdict(VerdictOutcome.NOT_PROVEN, "m", "maximize", 0.95, 5, why="includes 1")
    store.set_verdict(verdict)
    assert store.verdict() == verdict
    store.set_verdict(None)
    assert store.verdict() is None


def test_a_missing_and_a_damaged_file_are_clear_errors(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"measurements\.db: there are no measurements here"):
        MeasurementStore(tmp_path / "measurements.db", read_only=True)
    assert not (tmp_path / "measurements.db").exists()
    (tmp_path / "measurements.db").write_bytes(b"no database at all " * 100)
    with pytest.raises(LsmtuneError, match=r"measurements\.db: damaged database"):
        MeasurementStore(tmp_path / "measurements.db")


def test_a_file_without_tables_is_that_of_a_study_that_has_not_begun(tmp_path: Path) -> None:
    """What a kill left before the tables were there, and what is there while they are made."""
    path = tmp_path / "measurements.db"
    path.touch()
    with pytest.raises(InputError, match=r"measurements\.db: there are no measurements here yet"):
        MeasurementStore(path, read_only=True)
    (tmp_path / "study.db").write_bytes(b"its trials")
    with pytest.raises(LsmtuneError, match=r"measurements\.db: damaged database"):
        MeasurementStore(path, read_only=True)


def _fail(code: int, name: str) -> None:
    error = sqlite3.OperationalError("disk I/O error")
    error.sqlite_errorcode, error.sqlite_errorname = code, name
    raise error


def test_what_sqlite_keeps_to_itself_the_operating_system_is_asked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """To SQLite a quota, a bad sector and a file system made read-only are all one."""
    path, write = tmp_path / "measurements.db", sqlite3.SQLITE_IOERR_WRITE
    with (
        pytest.raises(LsmtuneError, match=r"disk I/O error \(SQLITE_IOERR_WRITE\)"),
        explained(path),
    ):
        _fail(write, "SQLITE_IOERR_WRITE")

    def refuse(_descriptor: int) -> None:
        raise OSError(errno.EDQUOT, "Disk quota exceeded")

    monkeypatch.setattr(os, "fsync", refuse)
    with pytest.raises(LsmtuneError, match="the disk is full"), explained(path):
        _fail(write, "SQLITE_IOERR_WRITE")
    assert list(tmp_path.iterdir()) == []


def test_a_full_disk_is_a_clear_error_and_loses_nothing(
    store: MeasurementStore, tmp_path: Path
) -> None:
    add_run(store, Role.TRIAL, measurement(), config=CONFIG, trial=0)
    # SQLite reports a database at its page limit exactly as a disk without space.
    store._connection.execute("PRAGMA max_page_count = 1")

    def fill() -> None:
        for trial in range(1, 50):
            add_run(store, Role.TRIAL, measurement(), config=CONFIG, trial=trial)

    full = r"measurements\.db: the disk is full; what was stored is kept"
    with pytest.raises(LsmtuneError, match=full):
        fill()
    with pytest.raises(LsmtuneError, match=full):
        store.set_fact("x", "y" * 100_000)
    kept = len(store.all())
    store.close()
    reader = MeasurementStore(tmp_path / "measurements.db", read_only=True)
    assert len(reader.all()) == kept >= 1
    reader.close()


@pytest.mark.parametrize("text", ["nonsense", "{}", "[]", "null", '{"outcome": "no such outcome"}'])
def test_a_row_that_is_not_ours_names_itself(
    store: MeasurementStore, tmp_path: Path, text: str
) -> None:
    add_run(store, Role.BENCH, measurement(), config=CONFIG)
    store.set_fact("x", 1)
    store.close()
    with sqlite3.connect(tmp_path / "measurements.db") as connection:
        connection.row_factory = sqlite3.Row
        connection.execute("UPDATE runs SET measurement = ?", (text,))
        connection.execute("UPDATE facts SET value = '{'")
        for table in ("runs", "facts"):
            ((stored),) = connection.execute(f"SELECT * FROM {table}").fetchall()
            row = {name: stored[name] for name in stored.keys() if name != "crc"}  # noqa: SIM118
            connection.execute(f"UPDATE {table} SET crc = ?", (_crc(row),))
    connection.close()
    reopened = MeasurementStore(tmp_path / "measurements.db")
    with pytest.raises(LsmtuneError, match=r"\.db: damaged .*measurement 1 cannot be read: .*DIR"):
        reopened.all()
    with pytest.raises(LsmtuneError, match="the fact 'x' cannot be read"):
        reopened.fact("x")
    reopened.set_verdict(None)
    reopened.set_fact("verdict", {"outcome": "no such outcome"})
    with pytest.raises(
        LsmtuneError, match=r"\.db: damaged .*the verdict cannot be read: .*another folder"
    ):
        reopened.verdict()
    reopened.close()


def test_a_trial_an_anchor_and_a_side_have_one_run_per_repeat(store: MeasurementStore) -> None:
    for repeat in (0, 1):
        add_run(store, Role.TRIAL, measurement(), config=CONFIG, trial=3, repeat=repeat)
        add_run(store, Role.ANCHOR, measurement(), config=Config(), repeat=repeat)
        add_run(store, Role.CALIBRATION, measurement(), config=Config(), pair=0, repeat=repeat)
    places: list[tuple[Role, dict[str, int]]] = [
        (Role.TRIAL, {"trial": 3}),
        (Role.ANCHOR, {}),
        (Role.CALIBRATION, {"pair": 0}),
    ]
    for role, place in places:
        with pytest.raises(ValueError, match="is measured already"):
            add_run(store, role, measurement(), config=CONFIG, repeat=1, **place)
    assert [row.repeat for row in store.of(Role.ANCHOR)] == [0, 1]
    assert [row.repeat for row in store.of(Role.TRIAL)] == [0, 1]


def test_runs_of_the_baseline_alone_are_no_reason_to_keep_a_study(store: MeasurementStore) -> None:
    for role in (Role.BASELINE, Role.CALIBRATION, Role.ANCHOR):
        add_run(store, role, measurement(), config=Config())
    assert not store.any_ok()
    add_run(store, Role.CRASH, measurement(), config=CONFIG)
    assert store.any_ok()


def test_a_trial_has_one_run_per_workload_and_rung(tmp_path: Path) -> None:
    with closing(MeasurementStore(tmp_path / "measurements.db")) as store:
        for workload in (0, 1):
            for rung in (0, 1):
                add_run(
                    store,
                    Role.RUNG,
                    measurement(),
                    config=CONFIG,
                    trial=5,
                    workload=workload,
                    rung=rung,
                )
        with pytest.raises(ValueError, match="measured already"):
            add_run(store, Role.RUNG, measurement(), config=CONFIG, trial=5, workload=1, rung=0)
        assert [(r.workload, r.rung) for r in store.of(Role.RUNG)] == [
            (0, 0),
            (0, 1),
            (1, 0),
            (1, 1),
        ]


def test_the_last_pair_is_that_of_a_proof(store: MeasurementStore) -> None:
    assert store.last_pair() is None
    add_run(store, Role.CALIBRATION, measurement(), config=Config(), pair=9)
    assert store.last_pair() is None
    add_run(store, Role.PROOF_BASELINE, measurement(), config=Config(), pair=0)
    add_run(store, Role.PROOF_CANDIDATE, measurement(), config=Config(), pair=3)
    assert store.last_pair() == 3


@pytest.mark.parametrize("version", [VERSION - 1, VERSION + 1])
def test_a_file_of_another_format_is_refused_and_left_as_it_is(
    tmp_path: Path, version: int
) -> None:
    path = tmp_path / "measurements.db"
    MeasurementStore(path).close()
    with closing(sqlite3.connect(path)) as connection:
        connection.execute(f"PRAGMA user_version = {version}")
    before = path.read_bytes()
    found = rf"measurements\.db: user_version: found {version}"
    says = f"{found}; allowed: {VERSION}; another lsmtune wrote"
    for read_only in (False, True):
        with pytest.raises(InputError, match=says):
            MeasurementStore(path, read_only=read_only)
    assert path.read_bytes() == before


def test_every_field_of_a_row_comes_back(store: MeasurementStore) -> None:
    run = StoredMeasurement(
        *(0, Role.RUNG, 3, None, CONFIG, measurement(seed=8), 7.25),
        **{"workload": 2, "rung": 1, "repeat": 4, "round": 5, "arm": "x", "library": "/opt/lib.so"},
    )
    stored = store.insert(run)
    assert stored == replace(run, id=1)
    assert store.all() == [stored]
    assert stored.seed == 8
    # An arm without a name has that of its configuration; its time is that of the run itself.
    add_run(store, Role.PROOF_BASELINE, measurement(), config=CONFIG, pair=6, arm="", round=2)
    (side,) = store.of(Role.PROOF_BASELINE)
    assert (side.arm, side.pair, side.trial, side.round) == (CONFIG.label, 6, None, 2)
    assert (side.wall_s, side.library, side.rung) == (2.5, None, None)
    assert store.insert(replace(run, arm="", rung=2)).arm == CONFIG.label
    assert store.spent_s() == pytest.approx(17.0)


def test_what_is_measured_already_is_named(store: MeasurementStore) -> None:
    place = {"trial": 3, "pair": 2, "repeat": 1}
    add_run(store, Role.TRIAL, measurement(), config=CONFIG, **place)
    with pytest.raises(ValueError, match=r"^trial \(trial 3, pair 2, repeat 1\) is measured alrea"):
        add_run(store, Role.TRIAL, measurement(), config=CONFIG, **place)
    add_run(store, Role.ROUND, measurement(), config=CONFIG, round=1)
    add_run(store, Role.ROUND, measurement(), config=CONFIG, round=2)
    with pytest.raises(ValueError, match="is measured already"):
        add_run(store, Role.ROUND, measurement(), config=CONFIG, round=2)
    for side in (Role.PROOF_BASELINE, Role.PROOF_CANDIDATE):
        add_run(store, side, measurement(), config=CONFIG, pair=3)
    with pytest.raises(ValueError, match="is measured already"):
        add_run(store, Role.PROOF_BASELINE, measurement(), config=CONFIG, pair=3)
    for _ in range(2):
        add_run(store, Role.BENCH, measurement(Outcome.CRASHED), config=CONFIG)
    assert len(store.all()) == 7


def test_what_is_cleared_is_gone_for_good(store: MeasurementStore, tmp_path: Path) -> None:
    add_run(store, Role.TRIAL, measurement(), config=CONFIG, trial=1)
    store.set_fact("x", [1, "two", None])
    store.set_fact("x", {"later": 3})
    assert store.fact("x") == {"later": 3}
    assert store.fact("y") is None
    store.clear()
    with closing(MeasurementStore(tmp_path / "measurements.db", read_only=True)) as reader:
        assert (reader.all(), reader.fact("x"), reader.spent_s()) == ([], None, 0.0)
        assert not reader.any_ok()
    assert add_run(store, Role.TRIAL, measurement(), config=CONFIG, trial=1) == 1


def test_a_row_is_on_the_disk_when_it_is_stored(store: MeasurementStore, tmp_path: Path) -> None:
    """No other journal and no weaker sync than the file's docstring promises."""
    assert store._connection.execute("PRAGMA synchronous").fetchone() == (2,)  # FULL
    assert store._connection.execute("PRAGMA journal_mode").fetchone() == ("delete",)
    assert store._connection.execute("PRAGMA busy_timeout").fetchone() == (30_000,)
    add_run(store, Role.BENCH, measurement(), config=CONFIG)
    store.set_fact("x", 1)
    # Another program sees both at once, before the store is closed.
    with closing(sqlite3.connect(tmp_path / "measurements.db")) as other:
        assert other.execute("SELECT count(*) FROM runs").fetchone() == (1,)
        assert other.execute("SELECT value FROM facts").fetchone() == ("1",)


def test_a_run_that_failed_is_none_that_went_well(store: MeasurementStore) -> None:
    add_run(store, Role.TRIAL, measurement(Outcome.CRASHED), config=CONFIG, trial=0)
    assert not store.any_ok()
    add_run(store, Role.TRIAL, measurement(), config=CONFIG, trial=1)
    assert store.any_ok()


def test_a_file_that_was_damaged_meanwhile_is_named(
    store: MeasurementStore, tmp_path: Path
) -> None:
    add_run(store, Role.TRIAL, measurement(), config=CONFIG, trial=0)
    (tmp_path / "measurements.db").write_bytes(b"no database at all " * 2000)
    for use in (store.all, store.spent_s, store.clear):
        with pytest.raises(LsmtuneError, match=r"measurements\.db: damaged database"):
            use()


def test_what_is_no_database_is_of_no_older_lsmtune(tmp_path: Path) -> None:
    (tmp_path / "measurements.db").write_bytes(b"x" * 60 + b"\0\0\0\2" + b"x" * 4000)
    with pytest.raises(LsmtuneError, match="damaged database"):
        MeasurementStore(tmp_path / "measurements.db")
