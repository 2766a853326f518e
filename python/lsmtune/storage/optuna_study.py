"""The Optuna study of a folder: SQLite, one study per file."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import optuna
from optuna.storages import RDBStorage

from lsmtune.errors import InputError
from lsmtune.records.objective import Direction
from lsmtune.space.optuna_log import quiet_optuna
from lsmtune.storage.sqlite_uri import sqlite_uri
from lsmtune.storage.trouble import explained

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
