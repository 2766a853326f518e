"""Workloads of other programs on real engines: the files of the shared data run, losing nothing."""

from __future__ import annotations

from pathlib import Path

import pytest

from lsmtune.driver.native import NativeRunner
from lsmtune.engines.formats.properties import read_given
from lsmtune.engines.properties import properties_of
from lsmtune.model.config import Config, EngineIdentity
from lsmtune.model.measurement import Measurement, Outcome
from lsmtune.model.request import LIMITS_DEFAULT, RunRequest
from lsmtune.model.workload import Workload
from lsmtune.workloads.stated import make_workload, state_workload

DATA = Path(__file__).resolve().parents[3] / "shared" / "data"
WORKLOADS = sorted([*DATA.glob("ycsb-cpp/workloads/*"), *DATA.glob("dku-contest/workloads/*")])
PROPERTIES = sorted(DATA.glob("dku-contest/properties/*.properties"))
# As the files say, but for how much of it: the contest's own counts take minutes.
SMALL = {"recordcount": "2000", "operationcount": "2000"}

pytestmark = pytest.mark.engine


def run(
    driver: Path, engine: EngineIdentity, config: Config, workload: Workload, directory: Path
) -> Measurement:
    request = RunRequest(engine, config, workload, 1, directory, LIMITS_DEFAULT)
    measured = NativeRunner(driver).run(request)
    assert measured.outcome is Outcome.OK, measured.error
    return measured


@pytest.mark.skipif(not WORKLOADS, reason="the shared data is not here")
@pytest.mark.parametrize("path", WORKLOADS, ids=lambda path: f"{path.parts[-3]}-{path.name}")
def test_a_workload_file_of_ycsb(
    path: Path, driver: Path, rocksdb_library: Path, tmp_path: Path
) -> None:
    stated = state_workload("ycsb", SMALL, "-p", properties_of([path], {}))
    engine = EngineIdentity("rocksdb", library=str(rocksdb_library))
    measured = run(driver, engine, Config(), stated.workload, tmp_path)
    load, _, measure = measured.phases
    assert (load.operations, measure.operations) == (2000, 2000)
    assert not measure.keys_missing


@pytest.mark.skipif(not PROPERTIES, reason="the shared data is not here")
@pytest.mark.parametrize("path", PROPERTIES, ids=lambda path: path.stem)
def test_properties_of_the_contest(
    path: Path, driver: Path, leveldb_library: Path, tmp_path: Path
) -> None:
    config = Config(read_given(properties_of([path], {}), "leveldb").options)
    engine = EngineIdentity("leveldb", library=str(leveldb_library))
    measured = run(driver, engine, config, make_workload("contest", SMALL, "-w"), tmp_path)
    assert [phase.operations for phase in measured.phases] == [2000] * 4


@pytest.mark.parametrize("name", ["ycsb-b", "ycsb-d", "ycsb-e", "social-graph"])
@pytest.mark.parametrize("engine", ["rocksdb", "leveldb"])
def test_a_database_in_use(
    engine: str, name: str, driver: Path, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    library = request.getfixturevalue(f"{engine}_library")
    sizes = {"num": 2000, "operations": 2000} if name == "social-graph" else SMALL
    workload = make_workload(name, {**sizes, "aging": 1}, "-w")
    identity = EngineIdentity(engine, library=str(library))
    measured = run(driver, identity, Config(), workload, tmp_path)
    *_, age, warm, measure = measured.phases
    assert (age.kind, warm.kind) == ("warmup", "warmup")
    assert [phase.operations for phase in (age, warm, measure)] == [2000] * 3
    assert not warm.keys_missing
    assert not measure.keys_missing


@pytest.mark.parametrize("name", ["zippydb", "udb", "up2x", "social-graph"])
def test_production_workloads(
    name: str, driver: Path, rocksdb_library: Path, tmp_path: Path
) -> None:
    workload = make_workload(name, {"num": 2000, "operations": 2000}, "-w")
    engine = EngineIdentity("rocksdb", library=str(rocksdb_library))
    measured = run(driver, engine, Config({"merge_operator": "put"}), workload, tmp_path)
    assert measured.phases[-1].operations == 2000
