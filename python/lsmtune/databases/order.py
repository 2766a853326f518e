"""An Order: what a request needs of a golden database, and the requests that it becomes."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

from lsmtune.databases.golden import LEDGER
from lsmtune.databases.key import Digest, GoldenKey, golden_key, load_seed_of
from lsmtune.databases.layout import split
from lsmtune.databases.plan import LoadPlan, load_plan
from lsmtune.engines.names import ENGINE_KINDS
from lsmtune.records.config import Config
from lsmtune.records.request import Prepared, RunRequest


@dataclass(frozen=True)
class Order:
    """A request that can start from a copy of the golden database of `key`.

    `layout` has the options that this is loaded with.
    """

    request: RunRequest
    plan: LoadPlan
    layout: Config
    load_seed: int
    key: GoldenKey

    def load_request(self, directory: Path) -> RunRequest:
        """The run that loads the golden database, in the folder `directory`."""
        return replace(
            self.request,
            config=self.layout,
            workload=self.plan.load,
            seed=self.load_seed,
            directory=directory,
            trial=None,
            cpus=(),
            slices=0,
            load_seed=self.load_seed,
            prepared=None,
            save_ledger=directory / LEDGER,
        )

    def run_request(self) -> RunRequest:
        """The run on a copy, which lies in the folder of the request with the ledger beside it."""
        return replace(
            self.request,
            workload=self.plan.run,
            load_seed=self.load_seed,
            prepared=Prepared(self.request.directory / LEDGER, self.plan.phases),
        )


def order_of(request: RunRequest, library: Digest) -> Order | None:
    """What `request` needs of a golden database; None when there can be none for it.

    That is so when the workload does not begin with a load, or is nothing else, or has several
    databases; when the engine keeps no files, or cannot be told from another build; and when the
    request has a database or leaves a ledger itself. `library` gives the digest of a library file.
    """
    engine, plan = request.engine, load_plan(request.workload)
    if plan is None or request.prepared is not None or request.save_ledger is not None:
        return None
    if request.workload.databases > 1:
        return None  # each has a folder of its own; a copy is of one database
    if engine.name not in ENGINE_KINDS or (engine.library is None and engine.version is None):
        return None
    layout = split(request.config, engine.name).layout
    load_seed = load_seed_of(request, plan.load)
    try:
        key = golden_key(request, layout, plan.load, load_seed, library)
    except OSError:
        return None  # no such library: the run itself says so
    return Order(request, plan, layout, load_seed, key)
