"""`bench --runner all` with programs that people trust, as they are built.

LSMTUNE_TEST_YCSB_CPP_ROCKSDB, LSMTUNE_TEST_YCSB_CPP_LEVELDB and LSMTUNE_TEST_LEVELDB_DB_BENCH name
them; without one its tests are skipped. YCSB-cpp should be linked with the library of the tests.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.engine

BYTES_TOLERANCE = 0.05
# Versions that were overwritten stay in LevelDB's tree until a compaction comes by them, and which
# do so is a matter of chance in a database as small as these.
OVERWRITTEN_TOLERANCE = 0.2
# Keys of 16 decimal digits are not those of lsmtune's driver, and are compressed otherwise.
DIGITS_TOLERANCE = 0.1
RECORDS = 5000


def program(variable: str, folder: Path, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Makes the program that `variable` names the only one on PATH, as `name`."""
    path = os.environ.get(variable, "")
    if not Path(path).is_file():
        pytest.skip(f"{variable} names no program")
    folder.mkdir()
    (folder / name).symlink_to(Path(path).resolve())
    monkeypatch.setenv("PATH", str(folder))


def compared(lsmtune: Any, *arguments: str) -> dict[str, Any]:
    said = lsmtune("bench", *arguments, "--runner", "all", "--json")
    assert said.status == 0, said.err
    document: dict[str, Any] = said.json()
    return document


def figure(document: dict[str, Any], runner: str, metric: str) -> Any:
    (found,) = (
        each["median"]
        for each in document["comparison"]
        if (each["runner"], each["metric"]) == (runner, metric)
    )
    return found


@pytest.mark.parametrize("engine", ["rocksdb", "leveldb"])
@pytest.mark.parametrize("letter", "abcdef")
def test_ycsb_is_the_same_work_side_by_side(
    lsmtune: Any,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    request: pytest.FixtureRequest,
    engine: str,
    letter: str,
) -> None:
    variable = f"LSMTUNE_TEST_YCSB_CPP_{engine.upper()}"
    program(variable, tmp_path / "bin", f"ycsb-{engine}", monkeypatch)
    library = str(request.getfixturevalue(f"{engine}_library"))
    operations = 500 if letter == "e" else RECORDS
    document = compared(
        lsmtune,
        *("--engine", engine, "--library", library, "--workload", f"ycsb-{letter}"),
        *("-w", f"recordcount={RECORDS}", "-w", f"operationcount={operations}"),
        *("-w", "threadcount=2"),
    )
    assert [each["runner"] for each in document["runners"]] == ["native", "ycsb-cpp"]
    runs = {each["runner"]: each["measurements"][0]["phases"][-1] for each in document["runners"]}
    ours, theirs = runs["native"], runs["ycsb-cpp"]
    assert ours["operations"] == theirs["operations"] == operations
    assert ours["operations_by_type"].keys() == theirs["operations_by_type"].keys()
    for kind, count in ours["operations_by_type"].items():
        # Both draw: five deviations of the difference of two counts of halves.
        assert theirs["operations_by_type"][kind] == pytest.approx(
            count, abs=5 * (operations / 2) ** 0.5
        )
    if letter in "abcf":
        assert (ours["keys_found"], ours["keys_missing"]) == (operations, 0)
    if letter == "e":
        assert theirs["keys_found"] is None
    else:
        lookups = operations - theirs["operations_by_type"].get("insert", 0)
        assert (theirs["keys_found"], theirs["keys_missing"]) == (lookups, 0)
    settled = [figure(document, name, "settled_database_bytes") for name in runs]
    overwritten = engine == "leveldb" and letter in "af"
    tolerance = OVERWRITTEN_TOLERANCE if overwritten else BYTES_TOLERANCE
    assert settled[1] == pytest.approx(settled[0], rel=tolerance)


def test_leveldbs_db_bench_reads_the_same_database(
    lsmtune: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, leveldb_library: Path
) -> None:
    program("LSMTUNE_TEST_LEVELDB_DB_BENCH", tmp_path / "bin", "db_bench", monkeypatch)
    document = compared(
        lsmtune,
        *("--engine", "leveldb", "--library", str(leveldb_library), "--workload", "readrandom"),
        *("-w", "load=fillseq", "-w", "num=20000"),
    )
    assert [each["runner"] for each in document["runners"]] == ["native", "leveldb-db_bench"]
    for name in ("native", "leveldb-db_bench"):
        assert figure(document, name, "keys_found") == 20_000
        assert figure(document, name, "latency_us_p99") > 0
    settled = [
        figure(document, name, "settled_database_bytes") for name in ("native", "leveldb-db_bench")
    ]
    assert settled[1] == pytest.approx(settled[0], rel=DIGITS_TOLERANCE)
