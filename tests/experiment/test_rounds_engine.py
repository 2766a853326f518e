"""Rounds of a real engine: cells of one layout start from copies of one loaded database."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

from lsmtune.driver.native import NativeRunner
from lsmtune.experiment.databases import DatabaseCache
from lsmtune.experiment.observer import Observer
from lsmtune.experiment.rounds import perform
from lsmtune.experiment.schedule import Cell
from lsmtune.model.config import Build, Config, EngineIdentity
from lsmtune.model.measurement import Outcome
from lsmtune.model.request import LIMITS_DEFAULT
from lsmtune.model.workload import Workload
from lsmtune.workloads.stated import make_workload

pytestmark = [pytest.mark.engine, pytest.mark.usefixtures("in_memory")]


class Loads(Observer):
    def __init__(self) -> None:
        self.layouts: list[Config] = []

    def database_loading(self, load: Workload, layout: Config) -> None:
        assert load.num == 2000
        self.layouts.append(layout)


def test_reads_of_one_layout_share_a_load_per_round(
    driver: Path, leveldb_library: Path, tmp_path: Path
) -> None:
    engine = EngineIdentity("leveldb", "1.22", str(leveldb_library), Build.RELEASE)
    workloads = [make_workload(n, {"num": 2000}, "test") for n in ("readseq", "readrandom")]
    cells = [
        Cell(engine, Config(options, name), f"{w.name}, {name}", workload=w)
        for w in workloads
        for name, options in (("default", {}), ("cache", {"cache_size": 1 << 20}))
    ]
    runner, loads, folder = NativeRunner(driver), Loads(), tmp_path / "rounds"
    databases = DatabaseCache(folder / "databases", runner, 1 << 30, observer=loads)
    runs = perform(
        cells,
        2,
        folder,
        runner,
        LIMITS_DEFAULT,
        1,
        Observer(),
        threading.Event(),
        databases=databases.prepare,
    )
    assert [run.measurement.outcome for run in runs] == [Outcome.OK] * 8
    assert {p.keys_missing for run in runs for p in run.measurement.phases} <= {0, None}
    assert len(loads.layouts) == 2, "one load per round, whatever the cache is"
    assert list((folder / "runs").iterdir()) == []
