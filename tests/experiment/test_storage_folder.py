from __future__ import annotations

import logging
import os
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest
from storage_parts import measurement, open_folder, unprivileged

from lsmtune.errors import InputError, LsmtuneError
from lsmtune.experiment.folder import StudyFolder, default_folder
from lsmtune.experiment.store import Role
from lsmtune.machine.files import write_whole
from lsmtune.model.config import Config
from lsmtune.model.goal import Direction, Objective
from lsmtune.model.measurement import Outcome
from made_up import add_run
from troubles import disk_is_full


def test_the_folder_has_its_files_and_its_place(tmp_path: Path) -> None:
    path = default_folder(tmp_path / "fill.yaml")
    with open_folder(path, text="name: fill\n") as folder:
        names = {entry.name for entry in path.iterdir()}
        assert names == {
            ".lsmtune-owned", ".lock", "study.yaml", "study.db", "measurements.db", "runs"
        }  # fmt: skip
        assert folder.path.name == "fill.lsmtune"
        assert (path / "study.yaml").read_text() == "name: fill\n"


def test_a_study_is_resumed_with_a_new_budget_but_not_with_new_parts(tmp_path: Path) -> None:
    with open_folder(tmp_path / "s") as folder:
        add_run(folder.measurements, Role.TRIAL, measurement(), config=Config(), trial=0)
    with open_folder(tmp_path / "s", text="budget: {trials: 9}\n") as folder:
        assert len(folder.measurements.all()) == 1
    assert (tmp_path / "s" / "study.yaml").read_text() == "budget: {trials: 9}\n"
    before = (tmp_path / "s" / "measurements.db").read_bytes()
    with pytest.raises(InputError, match=r"changed since: options, space; allowed: .*--dir DIR"):
        open_folder(tmp_path / "s", options={"a": 1}, space=("other",), text="x")
    assert (tmp_path / "s" / "measurements.db").read_bytes() == before
    assert (tmp_path / "s" / "study.yaml").read_text() == "budget: {trials: 9}\n"
    open_folder(tmp_path / "s").close()  # the refusal let the lock go


@pytest.mark.parametrize("removed", [True, False])
def test_a_part_that_only_one_of_two_sessions_has_is_a_change(
    tmp_path: Path, removed: bool
) -> None:
    """Without its `runner:` a study of db_bench went on with lsmtune's own driver."""
    with_runner: dict[str, object] = {"seed": 1, "runner": "db_bench"}
    without: dict[str, object] = {"seed": 1}
    before, after = (with_runner, without) if removed else (without, with_runner)
    with StudyFolder.create_or_resume(tmp_path / "s", before) as folder:
        add_run(folder.measurements, Role.TRIAL, measurement(), config=Config(), trial=0)
    with pytest.raises(InputError, match="changed since: runner; allowed"):
        StudyFolder.create_or_resume(tmp_path / "s", after)
    StudyFolder.create_or_resume(tmp_path / "s", before).close()


def test_a_study_file_that_means_something_else_now_is_not_called_changed(tmp_path: Path) -> None:
    with open_folder(tmp_path / "s") as folder:
        add_run(folder.measurements, Role.TRIAL, measurement(), config=Config(), trial=0)
    with pytest.raises(InputError, match=r"changed since: space; .*a lsmtune of another version"):
        open_folder(tmp_path / "s", space=("what a newer lsmtune reads in the same text",))


def test_a_study_of_which_no_candidate_ran_well_may_be_corrected(tmp_path: Path) -> None:
    with open_folder(tmp_path / "s") as folder:
        add_run(folder.measurements, Role.BASELINE, measurement(), config=Config())
        invalid = measurement(Outcome.INVALID)
        add_run(folder.measurements, Role.TRIAL, invalid, config=Config(), trial=0)
        folder.optuna_study().enqueue_trial({"x": 1})
    objective = Objective("latency_us_p99", Direction.MINIMIZE)
    for _ in range(2):
        with open_folder(tmp_path / "s", objective=objective) as folder:
            assert folder.measurements.all() == []
            assert folder.optuna_study().direction.name == "MINIMIZE"
            assert folder.optuna_study().trials == []


def test_a_folder_that_is_not_ours_is_refused_and_left_alone(tmp_path: Path) -> None:
    (tmp_path / "thesis.tex").write_text("years of work")
    with pytest.raises(InputError, match="not ours"):
        open_folder(tmp_path)
    with pytest.raises(InputError, match="not ours"):
        StudyFolder.open(tmp_path)
    assert [p.name for p in tmp_path.iterdir()] == ["thesis.tex"]


def test_two_tuners_refuse_each_other_in_one_and_in_two_processes(tmp_path: Path) -> None:
    with open_folder(tmp_path / "s"):
        with pytest.raises(InputError, match=f"in use by another tuner.*process {os.getpid()}"):
            open_folder(tmp_path / "s")
        tried = subprocess.run(
            [
                sys.executable,
                "-c",
                "import sys, pathlib; from lsmtune.experiment.files import lock_folder\n"
                "try: lock_folder(pathlib.Path(sys.argv[1]))\n"
                "except Exception as error: print(error)",
                str(tmp_path / "s"),
            ],
            capture_output=True,
            text=True,
            check=True,
        )
        assert f"process {os.getpid()}" in tried.stdout
    open_folder(tmp_path / "s").close()


def test_a_reader_sees_what_a_tuner_writes(tmp_path: Path) -> None:
    with open_folder(tmp_path / "s") as folder, StudyFolder.open(tmp_path / "s") as reader:
        study = folder.optuna_study()
        trial = study.ask()
        trial.set_user_attr("outcome", "ok")
        study.tell(trial, 2.0)
        add_run(folder.measurements, Role.TRIAL, measurement(), config=Config(), trial=0)
        assert [row.trial for row in reader.measurements.all()] == [0]
        told = reader.optuna_study().trials
        assert [(t.value, t.user_attrs) for t in told] == [(2.0, {"outcome": "ok"})]


def test_the_direction_is_the_objectives(tmp_path: Path) -> None:
    objective = Objective("latency_us_p99", Direction.MINIMIZE)
    with open_folder(tmp_path / "s", objective=objective) as folder:
        assert folder.optuna_study().direction.name == "MINIMIZE"


def test_optuna_says_nothing_and_keeps_its_level(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    logger = logging.getLogger("optuna")
    before = logger.level
    logger.addHandler(caplog.handler)
    try:
        with open_folder(tmp_path / "s"):
            pass
        open_folder(tmp_path / "s").close()
    finally:
        logger.removeHandler(caplog.handler)
    assert caplog.records == []
    assert logger.level == before


def test_there_is_nothing_to_open(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no such study folder"):
        StudyFolder.open(tmp_path / "missing")


def test_the_result_is_whole_or_not_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with open_folder(tmp_path / "s") as folder:
        path = folder.write_result("result.json", {"verdict": None})
        assert path.read_text() == '{\n  "verdict": null\n}\n'

        with monkeypatch.context() as patch:
            patch.setattr(os, "fsync", disk_is_full)
            with pytest.raises(LsmtuneError, match="the disk is full"):
                folder.write_result("result.json", "half")
        assert path.read_text() == '{\n  "verdict": null\n}\n'


def test_a_full_disk_at_the_start_is_a_clear_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", disk_is_full)
        with pytest.raises(LsmtuneError, match="the disk is full"):
            open_folder(tmp_path / "s")
    open_folder(tmp_path / "s").close()  # what was left behind is ours, and is taken up


def test_a_folder_that_cannot_be_written_is_a_clear_error() -> None:
    with unprivileged() as home:
        (home / "closed").mkdir(mode=0o555)
        with pytest.raises(InputError, match=r"cannot be written .*Permission denied"):
            open_folder(home / "closed" / "s")
        with pytest.raises(InputError, match="cannot be written"):
            open_folder(home / "closed")


def test_a_read_only_copy_of_a_study_can_be_read_but_not_tuned() -> None:
    with unprivileged() as home:
        with open_folder(home / "s") as folder:
            add_run(folder.measurements, Role.BASELINE, measurement(), config=Config())
        for entry in (home / "s").iterdir():
            entry.chmod(0o555 if entry.is_dir() else 0o444)
        (home / "s").chmod(0o555)
        with StudyFolder.open(home / "s") as reader:
            assert len(reader.measurements.all()) == 1
            assert reader.optuna_study().trials == []
        with pytest.raises(InputError, match="cannot be written"):
            open_folder(home / "s")
        (home / "s").chmod(0o755)
        (home / "s" / "runs").chmod(0o755)


def test_a_study_of_another_optuna_is_refused(tmp_path: Path) -> None:
    open_folder(tmp_path / "s").close()
    connection = sqlite3.connect(tmp_path / "s" / "study.db")
    connection.execute("UPDATE version_info SET schema_version = 99")
    connection.execute("UPDATE alembic_version SET version_num = 'v99.0'")
    connection.commit()
    connection.close()
    with pytest.raises(InputError, match=r"study.db: was written by another version of Optuna"):
        open_folder(tmp_path / "s")


def test_a_folder_that_is_not_named_in_utf_8_is_not_made(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="allowed: a path in UTF-8"):
        open_folder(tmp_path / "\udcff")
    assert list(tmp_path.iterdir()) == []


def test_what_cannot_be_written_whole_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "report.html"
    write_whole(path, "before")
    monkeypatch.setattr(os, "fsync", disk_is_full)
    with pytest.raises(OSError, match="No space"):
        write_whole(path, "after")
    assert path.read_text() == "before"
    assert [entry.name for entry in tmp_path.iterdir()] == ["report.html"]


def test_a_folder_of_another_lsmtune_is_refused_before_anything_is_changed(tmp_path: Path) -> None:
    path = tmp_path / "s"
    path.mkdir()
    (path / ".lsmtune-owned").write_text('{"tool": "lsmtune", "version": "0.0.9"}\n')
    connection = sqlite3.connect(path / "measurements.db")
    connection.execute("PRAGMA user_version = 2")
    connection.close()
    before = {entry.name: entry.read_bytes() for entry in path.iterdir()}
    for opened in (lambda: open_folder(path), lambda: StudyFolder.open(path)):
        with pytest.raises(InputError, match=r"found 2; .*; another lsmtune wrote this"):
            opened()
    (path / ".lock").unlink()
    assert {entry.name: entry.read_bytes() for entry in path.iterdir()} == before


def test_the_lock_of_a_killed_tuner_is_released(tmp_path: Path) -> None:
    open_folder(tmp_path / "s").close()
    holder = subprocess.Popen(
        [
            sys.executable,
            "-c",
            "import sys, time, pathlib; from lsmtune.experiment.files import lock_folder\n"
            "lock = lock_folder(pathlib.Path(sys.argv[1])); print('held', flush=True)\n"
            "time.sleep(600)",
            str(tmp_path / "s"),
        ],
        stdout=subprocess.PIPE,
        text=True,
    )
    assert holder.stdout is not None
    assert holder.stdout.readline() == "held\n"
    with pytest.raises(InputError, match=f"in use by another tuner .process {holder.pid}"):
        open_folder(tmp_path / "s")
    holder.kill()
    holder.wait()
    holder.stdout.close()
    open_folder(tmp_path / "s").close()


def _change(database: Path, script: str) -> None:
    with closing(sqlite3.connect(database)) as connection:
        connection.executescript(script)


def test_a_study_that_ended_before_optuna_had_all_its_tables_begins_again(tmp_path: Path) -> None:
    """Optuna makes one after the other; after a kill, or a full disk, they were called damaged."""
    path, cut_off = tmp_path / "s", "DELETE FROM studies; DROP TABLE trial_values;"
    open_folder(path).close()
    _change(path / "study.db", f"DELETE FROM study_directions; {cut_off}")
    _change(path / "measurements.db", "DELETE FROM facts;")
    with open_folder(path) as folder:
        study = folder.optuna_study()
        study.tell(study.ask(), 1.0)
        assert [trial.value for trial in folder.trials()] == [1.0]
    _change(path / "study.db", cut_off)
    with pytest.raises(LsmtuneError, match="it has no table trial_values"):
        open_folder(path)
