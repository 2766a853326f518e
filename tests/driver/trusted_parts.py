"""Fakes of the programs that people trust, and what each of them can perform."""

from __future__ import annotations

from pathlib import Path

from lsmtune.model.distribution import Distribution
from lsmtune.model.workload import Mix, Phase, PhaseKind, Workload, YcsbKeys
from made_up import write_program

FAKE = Path(__file__).parent / "fake_trusted.py"
FILE_NAMES = {
    "rocksdb-db_bench": "db_bench",
    "leveldb-db_bench": "db_bench",
    "ycsb-cpp": "ycsb",
    "ekvsb": "ekvsb",
}
ENGINES = {"leveldb-db_bench": "leveldb"}

_READS = Workload(
    "readrandom",
    (
        Phase("load", PhaseKind.LOAD, "fillseq", operations_per_thread=100),
        Phase("settle", PhaseKind.SETTLE),
        Phase("readrandom", PhaseKind.MEASURE, "readrandom", operations_per_thread=50),
    ),
    num=100,
)
_ROW = Distribution.of(
    "row", fields=10, names_bytes=60, length=Distribution.of("constant", size=100)
)
_INSERTS = Mix((("insert", 1.0),), records=0, value_sizes=_ROW)
_HALVES = Mix((("get", 1.0), ("update", 1.0)), records=100, value_sizes=_ROW)
_YCSB = Workload(
    "ycsb-a",
    (
        Phase("load", PhaseKind.LOAD, mix=_INSERTS, operations=100),
        Phase("settle", PhaseKind.SETTLE),
        Phase("run", PhaseKind.MEASURE, mix=_HALVES, operations=50),
    ),
    num=100,
    keys=YcsbKeys(),
)


def workload_for(program: str) -> Workload:
    """A load of 100 operations, settling, and a measure phase of 50."""
    return _YCSB if program == "ycsb-cpp" else _READS


def engine_for(program: str) -> str:
    return ENGINES.get(program, "rocksdb")


def write_fake(kind: str, folder: Path) -> Path:
    """An executable in `folder` that answers like the program `kind`."""
    folder.mkdir(exist_ok=True)
    text = FAKE.read_text().replace('KIND = "rocksdb-db_bench"', f'KIND = "{kind}"')
    return write_program(folder / FILE_NAMES[kind], text)
