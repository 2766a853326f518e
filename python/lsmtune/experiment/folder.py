"""The folder of an experiment: its runs, its lock, its Optuna study, and what is comparable.

.lsmtune-owned    the marker, written first
.lock             held by the tuner that runs
study.yaml        the study file as last used; of a study, or a proof
study.db          the Optuna study; of a study
measurements.db   every run, whole
server.json       in place of these two, the PostgreSQL server that has them
runs/             scratch; empty between runs
databases/        loaded databases that runs start from copies of
result/           what the experiment found

Only this code creates or deletes anything in it.
"""

from __future__ import annotations

import hashlib
import json
import sqlite3
from collections.abc import Collection, Mapping, Sequence
from contextlib import AbstractContextManager, closing
from pathlib import Path
from typing import Any, Self

import optuna
from filelock import FileLock
from optuna.storages import RDBStorage
from optuna.trial import FrozenTrial, TrialState

from lsmtune.errors import InputError, LsmtuneError
from lsmtune.experiment.files import (
    MEASUREMENTS_DB,
    STUDY_DB,
    check_database,
    check_within,
    claim,
    damaged,
    explained,
    lock_folder,
    marker_of,
    not_ours,
    readable,
    run_directory,
    sqlite_uri,
    sweep_leftovers,
)
from lsmtune.experiment.server import SERVER_FILE, Server, server_of, use_server
from lsmtune.experiment.store import BUSY_TIMEOUT_S, MeasurementStore, is_empty
from lsmtune.machine.files import is_owned, write_whole
from lsmtune.model.codec import encode
from lsmtune.model.config import OptionValue
from lsmtune.model.goal import Direction
from lsmtune.model.text import is_file
from lsmtune.search.sampler import suggestion_of
from lsmtune.search.searcher import OUTCOME
from lsmtune.space.space import Space, quiet_optuna

STUDY_NAME = "study"
_OPTUNA_TABLES = ("studies", "trials", "trial_params", "trial_values", "trial_user_attributes")

STUDY, ROUNDS = "study", "rounds"  # what a folder is made for, in its marker
_COMPARABLE = "comparable"
_ORIGIN = "study_file"
_FINISHED = (TrialState.COMPLETE, TrialState.PRUNED)


def open_storage(
    path: Path, *, read_only: bool = False, server: Server | None = None, begun: bool = True
) -> RDBStorage:
    """Optuna's storage in the SQLite file `path`, or on a `server`; created unless `read_only`.

    Optuna makes one table after the other: before the study has `begun`, those that it lacks are
    what a kill or a full disk kept it from making, and are made now.
    """
    uri = sqlite_uri(path, read_only=read_only)
    url = f"sqlite:///{uri}&uri=true"
    arguments: dict[str, Any] = {"connect_args": {"timeout": BUSY_TIMEOUT_S}}
    if server is not None:
        url, arguments = server.url, server.arguments(read_only=read_only)
    try:
        if server is None and path.is_file() and path.stat().st_size:
            with explained(path), closing(sqlite3.connect(uri, uri=True)) as connection:
                connection.execute(f"PRAGMA busy_timeout = {round(BUSY_TIMEOUT_S * 1000)}")
                tables = _OPTUNA_TABLES if begun else ()
                check_database(path, connection, tables)
        with readable(path), quiet_optuna():
            return RDBStorage(
                url,
                engine_kwargs=arguments,
                skip_table_creation=read_only,
                skip_compatibility_check=read_only,
            )
    except RuntimeError as error:
        # So Optuna says that its tables are of another version.
        why = "was written by another version of Optuna"
        allowed = f"Optuna {optuna.__version__}, or another folder (--dir DIR)"
        raise InputError(str(path), why=why, allowed=allowed) from error


def create_study(storage: RDBStorage, path: Path, directions: Sequence[Direction]) -> None:
    """Make the study in `storage` unless it is there."""
    with readable(path), quiet_optuna():
        optuna.create_study(
            storage=storage,
            study_name=STUDY_NAME,
            directions=[direction.value for direction in directions],
            load_if_exists=True,
        )


def digest(part: object) -> str:
    """What is kept of a part: alike for parts that are alike."""
    text = json.dumps(encode(part), sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()


# --- the folder


def default_folder(study_file: Path) -> Path:
    """Where a study is kept unless the user says otherwise: beside its file."""
    return study_file.with_name(f"{study_file.stem}.lsmtune")


class StudyFolder:
    """One experiment on the disk. Use as a context manager; for one thread."""

    def __init__(self, path: Path, *, read_only: bool, lock: FileLock | None) -> None:
        """For `create_or_resume` and `open`, which check first."""
        self.path = path
        self._lock = lock
        self._storage: RDBStorage | None = None
        self._server = server_of(path)
        self._study_db = path / (STUDY_DB if self._server is None else SERVER_FILE)
        # Ids of the trials that this session began, by number: Optuna has no index of numbers.
        self._begun: dict[int, int] = {}
        self._read_only = read_only
        self.measurements = MeasurementStore(path / MEASUREMENTS_DB, read_only=read_only)

    @classmethod
    def create_or_resume(
        cls,
        path: Path,
        parts: Mapping[str, object],
        *,
        text: str = "",
        directions: Sequence[Direction] = (),
        purpose: str = STUDY,
        storage: str = "",
    ) -> Self:
        """The folder of an experiment at `path`, for the one tuner that works on it.

        `parts` are all that makes two of its runs comparable, by name: records and JSON values.
        `text` is the study file as written, and `directions` say which way each objective is
        better: empty for an experiment without a study file, or without a search. `purpose` is what
        the folder is made for, STUDY or ROUNDS. `storage` is the URL of a PostgreSQL server for the
        rows of a new folder, or its own. An experiment of which nothing but the baseline ended well
        may be replaced by another.

        Raises InputError when the folder is not ours, holds something else, is in use, is of
        another lsmtune, cannot be written, or holds runs that cannot be compared with those that
        are wanted now; nothing is changed then.
        """
        with explained(path):
            claim(path, purpose)
            made_for = marker_of(path).get("purpose")
            if made_for in (STUDY, ROUNDS) and made_for != purpose:
                why = f"holds something else: {made_for}"
                raise InputError(str(path), why=why, allowed="another folder (--dir DIR)")
            lock = lock_folder(path)
        is_new = False
        try:
            if storage:
                has_files = not is_empty(path / MEASUREMENTS_DB)
                is_new = use_server(path, storage, has_files=has_files)
            folder = cls(path, read_only=False, lock=lock)
        except BaseException:
            if is_new:  # no row is there, and the next try may be with another server, or files
                (path / SERVER_FILE).unlink(missing_ok=True)
            lock.release()
            raise
        try:
            folder._adopt(parts, text, directions)
        except BaseException:
            folder.close()
            raise
        return folder

    @classmethod
    def open(cls, path: Path) -> StudyFolder:
        """The folder at `path` for reading, also while a tuner works on it.

        Raises InputError when there is no study, or that of another lsmtune.
        """
        if not path.is_dir():
            raise InputError(str(path), why="there is no such study folder")
        if not is_owned(path):
            raise not_ours(path)
        return cls(path, read_only=True, lock=None)

    def _adopt(
        self, parts: Mapping[str, object], text: str, directions: Sequence[Direction]
    ) -> None:
        now = {name: digest(part) for name, part in parts.items()}
        stored = self.measurements.fact(_COMPARABLE)
        was = now if stored is None else stored
        changed = [name for name in {**now, **was} if was.get(name) != now.get(name)]
        is_lost = self._server is None and is_empty(self._study_db)
        if changed:
            if self.measurements.any_ok():
                raise self._incomparable(changed, text, searched=bool(directions))
            # Its file was wrong, and was corrected.
            if directions:
                storage = self._optuna_storage()
                with explained(self.path):
                    if STUDY_NAME in optuna.get_all_study_names(storage):
                        optuna.delete_study(study_name=STUDY_NAME, storage=storage)
            self.measurements.clear()
        elif stored is not None and directions and is_lost:
            raise damaged(self._study_db, "it is empty or gone, and the study has begun")
        with explained(self.path):
            self.runs_path.mkdir(exist_ok=True)
            check_within(self.runs_path, self.path)
            if text:
                write_whole(self.path / "study.yaml", text)
        if directions:
            create_study(self._optuna_storage(), self._study_db, directions)
        if stored != now:
            self.measurements.set_fact(_COMPARABLE, now)

    def _incomparable(self, changed: list[str], text: str, *, searched: bool) -> InputError:
        since = f"changed since: {', '.join(changed)}"
        allowed = "what it was begun with, or another folder (--dir DIR)"
        if not searched:
            why = f"holds runs of another plan, which cannot be compared: {since}"
            return InputError(str(self.path), why=why, allowed=allowed)
        written = self.path / "study.yaml"
        if written.is_file() and written.read_bytes() == text.encode():
            # A newer lsmtune measures otherwise, or has another default.
            allowed = (
                "another folder (--dir DIR), because the study file is as it was: a lsmtune of "
                "another version began the study, or a file that it names has changed"
            )
        why = "holds measurements that cannot be compared with those that are wanted now"
        return InputError(str(self.path), why=f"{why}: {since}", allowed=allowed)

    def note_origin(self, study_file: Path) -> None:
        """Keep where the study file lies: paths within it are relative to that place."""
        origin = str(study_file.absolute())
        if self.measurements.fact(_ORIGIN) != origin:
            self.measurements.set_fact(_ORIGIN, origin)

    @property
    def was_tuned(self) -> bool:
        """Whether it is of a study file, and not of a search from Python."""
        return self.measurements.fact(_ORIGIN) is not None

    @property
    def origin(self) -> Path:
        """Where the study file lay when it was last tuned; if it was moved, beside the folder."""
        noted = Path(self.measurements.fact(_ORIGIN) or self.path / "study.yaml")
        beside = self.path.absolute().with_name(noted.name)
        return beside if not is_file(noted) and is_file(beside) else noted

    @property
    def runs_path(self) -> Path:
        """Where the scratch directories of runs are."""
        return self.path / "runs"

    @property
    def result_path(self) -> Path:
        """Where the result is, once there is one."""
        return self.path / "result"

    def optuna_study(self) -> optuna.Study:
        """The Optuna study. Raises InputError when the folder has none."""
        path = self._study_db
        if not path.is_file():
            raise InputError(str(path), why="there is no study here")
        with readable(path), quiet_optuna():
            return optuna.load_study(study_name=STUDY_NAME, storage=self._optuna_storage())

    def _optuna_storage(self) -> RDBStorage:
        if self._storage is None:
            path = self._study_db
            begun = self._read_only or self.measurements.fact(_COMPARABLE) is not None
            self._storage = open_storage(
                path, read_only=self._read_only, server=self._server, begun=begun
            )
        return self._storage

    def trials(self) -> list[FrozenTrial]:
        """Every trial of the study, in the order of their numbers."""
        with readable(self._study_db, "the trials"):
            storage = self._optuna_storage()
            return storage.get_all_trials(self._study_id(), deepcopy=False)

    def begin_trial(self, trial: FrozenTrial) -> int:
        """Store a trial that runs, with all that `trial` holds, and return its number.

        One transaction: a kill leaves the whole trial or none of it.
        """
        with explained(self._study_db):
            storage = self._optuna_storage()
            trial_id = storage.create_new_trial(self._study_id(), template_trial=trial)
            number = storage.get_trial_number_from_id(trial_id)
            self._begun[number] = trial_id
            return number

    def end_trial(
        self,
        number: int,
        state: TrialState,
        values: Sequence[float] | None = None,
        *,
        outcome: str = "",
        notes: Mapping[str, Any] | None = None,
    ) -> None:
        """End a running trial.

        `outcome` is kept where the state does not say it, and the `notes` of samplers and pruners.
        These come first: a kill in between leaves a running trial, which the next start ends again.
        """
        with explained(self._study_db):
            storage, trial_id = self._optuna_storage(), self._trial_id(number)
            for key, value in (notes or {}).items():
                storage.set_trial_system_attr(trial_id, key, value)
            if outcome:
                storage.set_trial_user_attr(trial_id, OUTCOME, outcome)
            storage.set_trial_state_values(trial_id, state, values)
            self._begun.pop(number, None)

    def refuse_strangers(
        self, trials: Sequence[FrozenTrial], measured: Collection[int], instead: str
    ) -> None:
        """Raises LsmtuneError when one of the two databases is not the one of the other.

        A kill leaves no trial of `trials` finished that was not `measured`, and none measured that
        was not begun. `instead` is what the user may do in place of putting the file back.
        """
        begun = {trial.number for trial in trials}
        finished = {trial.number for trial in trials if trial.state in _FINISHED}
        strangers = sorted((set(measured) - begun) | (finished - set(measured)))
        if strangers:
            raise LsmtuneError(
                f"{self.path}: study.db and measurements.db do not belong together: "
                f"trial {strangers[0]} is in one of them only; put back the file that was changed, "
                f"or {instead}"
            )

    def refuse_changed(
        self,
        trials: Sequence[FrozenTrial],
        ran: Mapping[int, Mapping[str, OptionValue]],
        space: Space,
    ) -> None:
        """Raises LsmtuneError where study.db has other parameters than those that a trial ran with.

        `ran` are the options that were run, by the number of the trial. A flipped bit in a number
        is no damage to SQLite, and study.db has no checksums.
        """
        for trial in trials:
            if trial.number not in ran:
                continue
            with readable(self._study_db, f"trial {trial.number}"):
                values = suggestion_of(space, trial.params).values
            for name, value in values.items():
                if (was := ran[trial.number].get(name)) != value:
                    how = f"trial {trial.number}: {name} is {value}, and its run had {was}"
                    raise damaged(self._study_db, how)

    def _trial_id(self, number: int) -> int:
        if number in self._begun:
            return self._begun[number]
        storage = self._optuna_storage()
        return storage.get_trial_id_from_study_id_trial_number(self._study_id(), number)

    def _study_id(self) -> int:
        return self._optuna_storage().get_study_id_from_name(STUDY_NAME)

    def run_directory(self) -> AbstractContextManager[Path]:
        """A fresh marked directory for one run, removed on leaving the context."""
        return run_directory(self.runs_path, self.path)

    def sweep_leftovers(self) -> None:
        """Remove what killed runs left behind."""
        sweep_leftovers(self.runs_path, self.path)

    def write_result(self, name: str, content: str | Mapping[str, object]) -> Path:
        """Write `result/<name>`, whole or not at all; a mapping is written as JSON."""
        text = content if isinstance(content, str) else json.dumps(content, indent=2) + "\n"
        with explained(self.path):
            self.result_path.mkdir(exist_ok=True)
            write_whole(self.result_path / name, text)
        return self.result_path / name

    def close(self) -> None:
        """Close the files and let the next tuner in. May be called more than once."""
        if self._storage is not None:
            self._storage.remove_session()
            self._storage.engine.dispose()
            self._storage = None
        self.measurements.close()
        if self._lock is not None:
            self._lock.release()

    def __enter__(self) -> StudyFolder:
        return self

    def __exit__(self, *_exception: object) -> None:
        self.close()
