"""The loaded databases of a study's folder, and telling of them while they are made."""

from __future__ import annotations

from lsmtune.databases import CacheObserver, DatabaseCache, Preparation
from lsmtune.proof.observer import RunObserver
from lsmtune.runners.base import Runner
from lsmtune.runners.messages import Message
from lsmtune.runners.native import NativeRunner
from lsmtune.storage.folder import StudyFolder

FOLDER = "databases"


def loaded_databases(
    folder: StudyFolder, runner: Runner, size_bytes: int, observer: RunObserver
) -> DatabaseCache | None:
    """The cache in `folder`, of `size_bytes` at most; None for programs of the user's own.

    Only lsmtune's driver knows what a database holds that an earlier run has loaded.
    """
    if not isinstance(runner, NativeRunner):
        return None
    told = LoadTelling(observer)
    return DatabaseCache(folder.path / FOLDER, runner, size_bytes, observer=told)


class LoadTelling(CacheObserver):
    """Tells an observer of runs what a load says, and once what is out of the ordinary."""

    def __init__(self, observer: RunObserver) -> None:
        self._observer = observer
        self._said: set[str] = set()

    def load_message(self, message: Message) -> None:
        """Passed on: the phases of a load are the first ones of the run that waits for it."""
        self._observer.run_message(message)

    def run_prepared(self, preparation: Preparation) -> None:
        """Said as a warning, the first time: a search has a database, and sizes, per trial."""
        what = preparation.note.partition(":")[0]
        if what and what not in self._said:
            self._said.add(what)
            self._observer.warning(preparation.note)
