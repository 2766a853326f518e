"""The Optuna study of a folder: SQLite, one study per file."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Collection, Mapping, Sequence
from contextlib import AbstractContextManager, suppress
from pathlib import Path
from types import TracebackType
from typing import Any, Protocol

import optuna
from optuna.samplers import BaseSampler
from optuna.storages import RDBStorage
from optuna.trial import FrozenTrial, TrialState

from lsmtune.errors import InputError, LsmtuneError
from lsmtune.experiment import files as scratch
from lsmtune.experiment import store as measurements
from lsmtune.experiment.files import FolderLock, claim, explained, is_owned, not_ours, sqlite_uri
from lsmtune.experiment.store import MeasurementStore
from lsmtune.model.codec import encode
from lsmtune.model.goal import Direction
from lsmtune.search.searcher import OUTCOME, PUT_BACK
from lsmtune.space.space import quiet_optuna

FILE = "study.db"
STUDY_NAME = "study"
BUSY_TIMEOUT_S = 30.0


def open_storage(path: Path, *, read_only: bool = False) -> RDBStorage:
    """Optuna's storage in the SQLite file `path`, created unless `read_only`."""
    url = f"sqlite:///{sqlite_uri(path, read_only=read_only)}&uri=true"
    try:
        with explained(path), quiet_optuna():
            return RDBStorage(
                url,
                engine_kwargs={"connect_args": {"timeout": BUSY_TIMEOUT_S}},
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
    with explained(path), quiet_optuna():
        optuna.create_study(
            storage=storage,
            study_name=STUDY_NAME,
            directions=[direction.value for direction in directions],
            load_if_exists=True,
        )


def delete_study(storage: RDBStorage, path: Path) -> None:
    """Remove the study from `storage`, if it is there."""
    with explained(path):
        if STUDY_NAME in optuna.get_all_study_names(storage):
            optuna.delete_study(study_name=STUDY_NAME, storage=storage)


# ----------
# Which parts of a study make its measurements comparable, and which of them changed.


class StudyDescription(Protocol):
    """What storage has to know of a Spec, which it may not import."""

    @property
    def text(self) -> str:
        """The study file as written."""

    @property
    def directions(self) -> Sequence[Direction]:
        """Which way each objective is better."""

    def comparable_parts(self) -> Mapping[str, object]:
        """All that makes two of its runs comparable, by name: records and JSON values."""


def part_digests(study: StudyDescription) -> dict[str, str]:
    """A digest of each comparable part."""
    return {name: _digest(part) for name, part in study.comparable_parts().items()}


def changed_parts(stored: Mapping[str, str], now: Mapping[str, str]) -> list[str]:
    """The names of the parts that differ."""
    return [name for name in now if stored.get(name) != now[name]]


def _digest(part: object) -> str:
    text = json.dumps(encode(part), sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()


# ----------
# The folder of a study: the only code that creates or deletes anything in it.
#
# .lsmtune-owned    the marker, written first
# .lock             held by the tuner that runs
# study.yaml        the study file as last used
# study.db          the Optuna study
# measurements.db   every run, whole
# runs/             scratch; empty between runs
# result/           what the study found

_PARTS = "parts"
_ORIGIN = "study_file"
_FINISHED = (TrialState.COMPLETE, TrialState.PRUNED)


def default_folder(study_file: Path) -> Path:
    """Where a study is kept unless the user says otherwise: beside its file."""
    return study_file.with_name(f"{study_file.stem}.lsmtune")


class StudyFolder:
    """One study on the disk. Use as a context manager; for one thread."""

    def __init__(self, path: Path, *, read_only: bool, lock: FolderLock | None) -> None:
        """For `create_or_resume` and `open`, which check first."""
        self.path = path
        self._lock = lock
        self._storage: RDBStorage | None = None
        self._read_only = read_only
        self.measurements = MeasurementStore(path / measurements.FILE, read_only=read_only)

    @classmethod
    def create_or_resume(cls, path: Path, spec: StudyDescription) -> StudyFolder:
        """The folder of `spec` at `path`, for the one tuner that works on it.

        Raises InputError when the folder is not ours, is in use, cannot be written, or holds
        measurements that cannot be compared with those of `spec`; nothing is changed then.
        """
        with explained(path):
            claim(path, "study")
            lock = FolderLock(path)
        try:
            folder = cls(path, read_only=False, lock=lock)
        except BaseException:
            lock.release()
            raise
        try:
            folder._adopt(spec)
        except BaseException:
            folder.close()
            raise
        return folder

    @classmethod
    def open(cls, path: Path) -> StudyFolder:
        """The folder at `path` for reading, also while a tuner works on it.

        Raises InputError when there is no study.
        """
        if not path.is_dir():
            raise InputError(str(path), why="there is no such study folder")
        if not is_owned(path):
            raise not_ours(path)
        return cls(path, read_only=True, lock=None)

    def _adopt(self, spec: StudyDescription) -> None:
        stored, now = self.measurements.fact(_PARTS), part_digests(spec)
        changed = [] if stored is None else changed_parts(stored, now)
        if changed:
            if self.measurements.any_ok():
                raise self._incomparable(changed, spec)
            self._begin_anew()
        with explained(self.path):
            self.runs_path.mkdir(exist_ok=True)
            write_whole(self.path / "study.yaml", spec.text)
        create_study(self._optuna_storage(), self.path, spec.directions)
        if stored != now:
            self.measurements.set_fact(_PARTS, now)

    def _incomparable(self, changed: list[str], spec: StudyDescription) -> InputError:
        allowed = "what it was begun with, or another folder (--dir DIR)"
        written = self.path / "study.yaml"
        if written.is_file() and written.read_text() == spec.text:
            # A newer lsmtune measures otherwise, or has another default.
            allowed = (
                "another folder (--dir DIR), because the study file is as it was: a lsmtune of "
                "another version began the study, or a file that it names has changed"
            )
        return InputError(
            str(self.path),
            why="holds measurements that cannot be compared with those that are wanted now: "
            f"changed since: {', '.join(changed)}",
            allowed=allowed,
        )

    def _begin_anew(self) -> None:
        """Forget a study of which no candidate ran well: its file was wrong, and was corrected."""
        delete_study(self._optuna_storage(), self.path)
        self.measurements.clear()

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
        """Where the study file lay when it was last tuned."""
        return Path(self.measurements.fact(_ORIGIN) or self.path / "study.yaml")

    @property
    def runs_path(self) -> Path:
        """Where the scratch directories of runs are."""
        return self.path / "runs"

    @property
    def result_path(self) -> Path:
        """Where the result is, once there is one."""
        return self.path / "result"

    def optuna_study(self, sampler: BaseSampler | None = None) -> optuna.Study:
        """The Optuna study. Raises InputError when the folder has none."""
        path = self.path / FILE
        if not path.is_file():
            raise InputError(str(path), why="there is no study here")
        with explained(path), quiet_optuna():
            return optuna.load_study(
                study_name=STUDY_NAME,
                storage=self._optuna_storage(),
                sampler=sampler,
            )

    def _optuna_storage(self) -> RDBStorage:
        if self._storage is None:
            path = self.path / FILE
            self._storage = open_storage(path, read_only=self._read_only)
        return self._storage

    def trials(self) -> list[FrozenTrial]:
        """Every trial of the study, in the order of their numbers."""
        with explained(self.path):
            storage = self._optuna_storage()
            return storage.get_all_trials(self._study_id(), deepcopy=False)

    def begin_trial(self, trial: FrozenTrial) -> int:
        """Store a trial that runs, with all that `trial` holds, and return its number.

        One transaction: a kill leaves the whole trial or none of it.
        """
        with explained(self.path):
            storage = self._optuna_storage()
            trial_id = storage.create_new_trial(self._study_id(), template_trial=trial)
            return storage.get_trial_number_from_id(trial_id)

    def annotate_trial(self, number: int, attributes: Mapping[str, str]) -> None:
        """Set user attributes of a trial that is not finished."""
        with explained(self.path):
            for key, value in attributes.items():
                self._optuna_storage().set_trial_user_attr(self._trial_id(number), key, value)

    def note_trial(self, number: int, attributes: Mapping[str, Any]) -> None:
        """Set system attributes, which are those of samplers and pruners, of a running trial."""
        with explained(self.path):
            for key, value in attributes.items():
                self._optuna_storage().set_trial_system_attr(self._trial_id(number), key, value)

    def finish_trial(
        self, number: int, state: TrialState, values: Sequence[float] | None = None
    ) -> None:
        """End a running trial, in one transaction."""
        with explained(self.path):
            self._optuna_storage().set_trial_state_values(self._trial_id(number), state, values)

    def put_back_trial(self, number: int) -> None:
        """End a running trial that says nothing.

        Noted before it is ended: a kill in between leaves a running trial without a measurement,
        which the next start puts back again.
        """
        self.annotate_trial(number, {OUTCOME: PUT_BACK})
        self.finish_trial(number, TrialState.FAIL)

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

    def _trial_id(self, number: int) -> int:
        storage = self._optuna_storage()
        return storage.get_trial_id_from_study_id_trial_number(self._study_id(), number)

    def _study_id(self) -> int:
        return self._optuna_storage().get_study_id_from_name(STUDY_NAME)

    def run_directory(self) -> AbstractContextManager[Path]:
        """A fresh marked directory for one run, removed on leaving the context."""
        return scratch.run_directory(self.runs_path)

    def sweep_leftovers(self) -> list[Path]:
        """Remove what killed runs left behind; returns the directories removed."""
        return scratch.sweep_leftovers(self.runs_path)

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

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()


def write_whole(path: Path, text: str) -> None:
    """Replace `path` by `text`: a reader, or a kill, sees the old content or the new."""
    temporary = path.with_name(f"{path.name}.new")
    try:
        with temporary.open("w", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
    except OSError:
        with suppress(OSError):  # what is told is why it could not be written
            temporary.unlink()
        raise
