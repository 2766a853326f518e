"""What a DatabaseCache says while it works: callbacks, which the command line may show."""

from __future__ import annotations

from dataclasses import dataclass

from lsmtune.records.config import Config
from lsmtune.records.workload import Workload
from lsmtune.runners.messages import Message


@dataclass(frozen=True)
class Preparation:
    """What was done for one run whose workload begins with a load.

    `prepared`: the run starts from a database that is there; otherwise it loads its own. In
    seconds: `loaded_s`, loading the golden database, None when none was loaded; `copied_s`,
    checking and copying it. `note` says what is out of the ordinary, empty when nothing is.
    """

    prepared: bool
    loaded_s: float | None = None
    copied_s: float = 0.0
    note: str = ""


class CacheObserver:
    """Told, in the thread of `prepare`, what it does. Does nothing; override what is wanted."""

    def database_loading(self, load: Workload, layout: Config) -> None:
        """A golden database is about to be loaded with the options of `layout`."""

    def load_message(self, message: Message) -> None:
        """The driver that loads a golden database said `message`."""

    def run_prepared(self, preparation: Preparation) -> None:
        """`prepare` is about to return."""
