from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from storage_parts import measurement

from lsmtune.errors import InputError, LsmtuneError
from lsmtune.experiment.files import claim
from lsmtune.experiment.store import MeasurementStore, Role
from lsmtune.model.config import Config
from lsmtune.model.measurement import Outcome
from lsmtune.model.verdict import Verdict, VerdictOutcome


@pytest.fixture
def store(tmp_path: Path) -> Iterator[MeasurementStore]:
    opened = MeasurementStore(tmp_path / "measurements.db")
    yield opened
    opened.close()


CONFIG = Config({"write_buffer_size": 4096, "sync": True}, "x#0")


def test_what_is_added_is_there_after_reopening(store: MeasurementStore, tmp_path: Path) -> None:
    first = store.add(Role.BASELINE, measurement(), config=Config())
    second = store.add(Role.TRIAL, measurement(seed=9), config=CONFIG, trial=0, wall_s=3.5)
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
    assert reader.spent_s() == pytest.approx(2.5 + 3.5)
    with pytest.raises(LsmtuneError):
        reader.set_verdict(None)
    reader.close()


def test_one_measurement_per_trial_and_side_of_a_pair(store: MeasurementStore) -> None:
    store.add(Role.TRIAL, measurement(), config=CONFIG, trial=3)
    store.add(Role.PROOF_BASELINE, measurement(), config=CONFIG, pair=3)
    store.add(Role.PROOF_CANDIDATE, measurement(), config=CONFIG, pair=3)
    with pytest.raises(ValueError, match="measured already"):
        store.add(Role.TRIAL, measurement(), config=CONFIG, trial=3)
    with pytest.raises(ValueError, match="measured already"):
        store.add(Role.PROOF_BASELINE, measurement(), config=CONFIG, pair=3)
    for _ in range(2):
        store.add(Role.BENCH, measurement(Outcome.CRASHED), config=CONFIG)
    assert len(store.all()) == 5


def test_a_verdict_is_kept_and_can_be_taken_back(store: MeasurementStore) -> None:
    assert store.verdict() is None
    verdict = Verdict(VerdictOutcome.NOT_PROVEN, "m", "maximize", 0.95, 5, why="includes 1")
    store.set_verdict(verdict)
    assert store.verdict() == verdict
    store.set_verdict(None)
    assert store.verdict() is None


def test_a_file_of_a_newer_lsmtune_is_refused(store: MeasurementStore, tmp_path: Path) -> None:
    store.close()
    connection = sqlite3.connect(tmp_path / "measurements.db")
    connection.execute("PRAGMA user_version = 99")
    connection.close()
    for read_only in (False, True):
        with pytest.raises(InputError, match="found 99"):
            MeasurementStore(tmp_path / "measurements.db", read_only=read_only)


def test_a_missing_and_a_damaged_file_are_clear_errors(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no measurements here"):
        MeasurementStore(tmp_path / "measurements.db", read_only=True)
    (tmp_path / "measurements.db").write_bytes(b"no database at all " * 100)
    with pytest.raises(LsmtuneError, match="damaged database"):
        MeasurementStore(tmp_path / "measurements.db")


def test_a_full_disk_is_a_clear_error_and_loses_nothing(
    store: MeasurementStore, tmp_path: Path
) -> None:
    store.add(Role.TRIAL, measurement(), config=CONFIG, trial=0)
    # SQLite reports a database at its page limit exactly as a disk without space.
    store._connection.execute("PRAGMA max_page_count = 1")

    def fill() -> None:
        for trial in range(1, 50):
            store.add(Role.TRIAL, measurement(), config=CONFIG, trial=trial)

    with pytest.raises(LsmtuneError, match="the disk is full; what was stored is kept"):
        fill()
    kept = len(store.all())
    store.close()
    reader = MeasurementStore(tmp_path / "measurements.db", read_only=True)
    assert len(reader.all()) == kept >= 1
    reader.close()


@pytest.mark.parametrize("text", ["nonsense", "{}", "[]", "null", '{"outcome": "no such outcome"}'])
def test_a_row_that_is_not_ours_names_itself(
    store: MeasurementStore, tmp_path: Path, text: str
) -> None:
    store.add(Role.BENCH, measurement(), config=CONFIG)
    store.set_fact("x", 1)
    store.close()
    with sqlite3.connect(tmp_path / "measurements.db") as connection:
        connection.execute("UPDATE runs SET measurement = ?, crc = NULL", (text,))
        connection.execute("UPDATE facts SET value = '{', crc = NULL")
    connection.close()
    reopened = MeasurementStore(tmp_path / "measurements.db")
    with pytest.raises(LsmtuneError, match=r"\.db: damaged .*measurement 1 cannot be read: .*DIR"):
        reopened.all()
    with pytest.raises(LsmtuneError, match="the fact 'x' cannot be read"):
        reopened.fact("x")
    reopened.close()


@pytest.mark.parametrize("name", ["measurements.db", "rounds.db"])
def test_a_file_of_an_older_lsmtune_is_refused_and_left_as_it_is(tmp_path: Path, name: str) -> None:
    claim(tmp_path / "s", "study")
    path = tmp_path / "s" / name
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("CREATE TABLE measurements (id INTEGER PRIMARY KEY)")
        connection.execute("PRAGMA user_version = 3")
    before = {entry.name: entry.read_bytes() for entry in path.parent.iterdir()}
    for read_only in (False, True):
        with pytest.raises(InputError) as error:
            MeasurementStore(path.with_name("measurements.db"), read_only=read_only)
        assert "was written by lsmtune 0.1.0 in format 3" in str(error.value)
        assert "nothing was changed; allowed: the lsmtune that wrote it" in str(error.value)
        assert "\n" not in str(error.value)
    assert {entry.name: entry.read_bytes() for entry in path.parent.iterdir()} == before


def test_a_trial_an_anchor_and_a_side_have_one_run_per_repeat(store: MeasurementStore) -> None:
    for repeat in (0, 1):
        store.add(Role.TRIAL, measurement(), config=CONFIG, trial=3, repeat=repeat)
        store.add(Role.ANCHOR, measurement(), config=Config(), repeat=repeat)
        store.add(Role.CALIBRATION, measurement(), config=Config(), pair=0, repeat=repeat)
    places: list[tuple[Role, dict[str, int]]] = [
        (Role.TRIAL, {"trial": 3}),
        (Role.ANCHOR, {}),
        (Role.CALIBRATION, {"pair": 0}),
    ]
    for role, place in places:
        with pytest.raises(ValueError, match="is measured already"):
            store.add(role, measurement(), config=CONFIG, repeat=1, **place)
    assert [row.repeat for row in store.of(Role.ANCHOR)] == [0, 1]
    assert [row.repeat for row in store.of(Role.TRIAL)] == [0, 1]


def test_runs_of_the_baseline_alone_are_no_reason_to_keep_a_study(store: MeasurementStore) -> None:
    for role in (Role.BASELINE, Role.CALIBRATION, Role.ANCHOR):
        store.add(role, measurement(), config=Config())
    assert not store.any_ok()
    store.add(Role.CRASH, measurement(), config=CONFIG)
    assert store.any_ok()


def test_a_trial_has_one_run_per_workload_and_rung(tmp_path: Path) -> None:
    with closing(MeasurementStore(tmp_path / "measurements.db")) as store:
        for workload in (0, 1):
            for rung in (0, 1):
                store.add(
                    Role.RUNG, measurement(), config=CONFIG, trial=5, workload=workload, rung=rung
                )
        with pytest.raises(ValueError, match="measured already"):
            store.add(Role.RUNG, measurement(), config=CONFIG, trial=5, workload=1, rung=0)
        assert [(r.workload, r.rung) for r in store.of(Role.RUNG)] == [
            (0, 0),
            (0, 1),
            (1, 0),
            (1, 1),
        ]


def test_the_last_pair_is_that_of_a_proof(store: MeasurementStore) -> None:
    assert store.last_pair() is None
    store.add(Role.CALIBRATION, measurement(), config=Config(), pair=9)
    assert store.last_pair() is None
    store.add(Role.PROOF_BASELINE, measurement(), config=Config(), pair=0)
    store.add(Role.PROOF_CANDIDATE, measurement(), config=Config(), pair=3)
    assert store.last_pair() == 3
