"""Databases of a study with flipped bits and lost pages: told in one line, or read as they were."""

from __future__ import annotations

import os
import random
import sqlite3
from pathlib import Path

import pytest
from storage_parts import measurement, open_folder

from lsmtune.errors import LsmtuneError
from lsmtune.experiment.files import MEASUREMENTS_DB, STUDY_DB
from lsmtune.experiment.folder import StudyFolder
from lsmtune.experiment.store import Role
from lsmtune.model.config import Config
from lsmtune.space.parameter import make_number
from lsmtune.space.range import Range
from lsmtune.space.space import make_space
from made_up import add_run

PAGE = 4096


@pytest.fixture
def study(tmp_path: Path) -> Path:
    """A folder of four trials."""
    path = tmp_path / "s"
    with open_folder(path) as folder:
        study = folder.optuna_study()
        for number in range(4):
            trial = study.ask()
            trial.suggest_int("write_buffer_size", 2, 16)
            trial.set_user_attr("outcome", "ok")
            study.tell(trial, float(number))
            add_run(folder.measurements, Role.TRIAL, measurement(), config=Config(), trial=number)
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
    with pytest.raises(LsmtuneError, match="it is empty or gone, and the study has begun"):
        open_folder(study)
    assert (study / MEASUREMENTS_DB).read_bytes() == b""


@pytest.mark.parametrize("name", [MEASUREMENTS_DB, STUDY_DB])
def test_a_pipe_in_place_of_a_database_is_not_waited_for(study: Path, name: str) -> None:
    (study / name).unlink()
    os.mkfifo(study / name)
    with pytest.raises(LsmtuneError, match="it is empty or gone, and the study has begun"):
        open_folder(study)


@pytest.mark.parametrize("left", [b"", None])
def test_a_study_whose_trials_are_gone_gets_no_new_ones(study: Path, left: bytes | None) -> None:
    """The file got empty tables before anyone said that it belonged to no runs."""
    (study / STUDY_DB).unlink()
    if left is not None:
        (study / STUDY_DB).write_bytes(left)
    with pytest.raises(LsmtuneError, match="it is empty or gone, and the study has begun"):
        open_folder(study)
    assert ((study / STUDY_DB).read_bytes() if left is not None else None) == left
    assert left is not None or not (study / STUDY_DB).exists()


SPACE = make_space([make_number("write_buffer_size", Range(2, 16, integer=True))])


def test_a_trial_with_other_parameters_than_those_that_ran_is_damage(study: Path) -> None:
    """A flipped bit in a number is no damage to SQLite, and the sampler believed it."""
    with StudyFolder.open(study) as folder:
        trials = folder.trials()
        ran = {trial.number: trial.params for trial in trials}
        folder.refuse_changed(trials, ran, SPACE)
        folder.refuse_changed(trials, {}, SPACE)
    connection = sqlite3.connect(study / STUDY_DB)
    with connection:
        connection.execute(
            "UPDATE trial_params SET param_value = 17 - param_value WHERE param_id = 2"
        )
    connection.close()
    with StudyFolder.open(study) as folder:
        was = ran[1]["write_buffer_size"]
        said = rf"damaged database \(trial 1: write_buffer_size is \d+, and its run had {was}\)"
        with pytest.raises(LsmtuneError, match=said):
            folder.refuse_changed(folder.trials(), ran, SPACE)
