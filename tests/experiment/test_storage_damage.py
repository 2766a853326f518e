"""Databases of a study with flipped bits and lost pages: told in one line, or read as they were."""

from __future__ import annotations

import random
import sqlite3
from pathlib import Path

import pytest
from storage_parts import Description, measurement

from lsmtune.errors import LsmtuneError
from lsmtune.experiment.files import MEASUREMENTS_DB, STUDY_DB
from lsmtune.experiment.folder import StudyFolder
from lsmtune.experiment.store import Role
from lsmtune.model.config import Config

PAGE = 4096


@pytest.fixture
def study(tmp_path: Path) -> Path:
    """A folder of four trials."""
    path = tmp_path / "s"
    with StudyFolder.create_or_resume(path, Description()) as folder:
        study = folder.optuna_study()
        for number in range(4):
            trial = study.ask()
            trial.suggest_int("write_buffer_size", 2, 16)
            folder.annotate_trial(number, {"outcome": "ok"})
            study.tell(trial, float(number))
            folder.measurements.add(Role.TRIAL, measurement(), config=Config(), trial=number)
    return path


def read(path: Path) -> tuple[object, ...]:
    """The runs, and what else the two databases hold."""
    with StudyFolder.open(path) as folder:
        trials = [(t.number, t.state, t.params, t.values, t.user_attrs) for t in folder.trials()]
        store = folder.measurements
        return store.all(), store.fact("comparable"), store.spent_s(), trials


def damage(content: bytes, draw: random.Random) -> bytes:
    """`content` with a bit, a page or its end lost, or with two pages in each other's place."""
    spoilt, at = bytearray(content), draw.randrange(len(content))
    page = at - at % PAGE
    match draw.choice(["bit", "bit", "header", "page", "end", "swapped"]):
        case "bit":
            spoilt[at] ^= 1 << draw.randrange(8)
        case "header":
            spoilt[page + at % 16] ^= 1 << draw.randrange(8)
        case "page":
            spoilt[page : page + PAGE] = bytes(PAGE)
        case "end":
            del spoilt[at:]
        case _:
            spoilt[page : page + PAGE], spoilt[:PAGE] = spoilt[:PAGE], spoilt[page : page + PAGE]
    return bytes(spoilt)


@pytest.mark.parametrize(("name", "times"), [(MEASUREMENTS_DB, 100), (STUDY_DB, 40)])
def test_a_damaged_database_is_told_and_no_changed_run_is_believed(
    study: Path, name: str, times: int
) -> None:
    """A flipped bit ended in unexpected errors, or in another figure of which nobody was told."""
    draw, whole, content = random.Random(7), read(study), (study / name).read_bytes()
    lines = []
    for _ in range(times):
        spoilt = damage(content, draw)
        (study / name).write_bytes(spoilt)
        try:
            runs = read(study)[0]
        except LsmtuneError as error:
            lines.append(str(error))
        else:
            assert runs == whole[0]
        assert (study / name).read_bytes() == spoilt
    assert len(lines) > times / 4
    assert all(line.startswith(str(study)) and "\n" not in line for line in lines)


def test_a_line_on_damage_says_how_it_was_noticed_and_what_is_left(study: Path) -> None:
    (study / STUDY_DB).write_bytes((study / STUDY_DB).read_bytes()[: 5 * PAGE])
    with pytest.raises(LsmtuneError) as caught:
        read(study)
    line = str(caught.value)
    assert line.startswith(f"{study / STUDY_DB}: damaged database (")
    assert "nothing was changed: if it is so again, put a copy back, or use another folder" in line
    assert line.endswith("; every run is still in measurements.db")


def test_a_study_whose_runs_are_gone_is_not_begun_anew(study: Path) -> None:
    (study / MEASUREMENTS_DB).write_bytes(b"")
    with pytest.raises(LsmtuneError, match="it is empty, and the study has begun"):
        StudyFolder.create_or_resume(study, Description())
    assert (study / MEASUREMENTS_DB).read_bytes() == b""


def test_runs_of_before_there_was_a_checksum_are_read_and_new_ones_get_one(study: Path) -> None:
    whole = read(study)
    connection = sqlite3.connect(study / MEASUREMENTS_DB)
    for table in ("runs", "facts"):
        connection.execute(f"ALTER TABLE {table} DROP COLUMN crc")
    connection.close()
    assert read(study) == whole
    with StudyFolder.create_or_resume(study, Description()) as folder:
        folder.measurements.add(Role.TRIAL, measurement(), config=Config(), trial=9)
    connection = sqlite3.connect(study / MEASUREMENTS_DB)
    sums = [crc for (crc,) in connection.execute("SELECT crc FROM runs ORDER BY id")]
    connection.close()
    assert sums[:4] == [None] * 4
    assert sums[4] is not None
