"""YCSB's workloads by the driver beside YCSB-cpp: same engine library, options, files, threads.

    .venv/bin/python benchmarks/ycsb/against_ycsb_cpp.py --engine leveldb --library LIBRARY \\
        --ycsb-cpp PATH/ycsb --workloads PATH/workloads --output docs/benchmarks/ycsb/leveldb.json

YCSB-cpp must be linked with LIBRARY (see ldd). Both sides read the same workload files. Each loads
a database and settles it; every run starts from a copy of its side's database, in a process of its
own, the order turning round from pair to pair. Latencies are recorded on both sides. YCSB-cpp
counts opening and closing the database as runtime; that time, measured by a call without
operations on the same database right before, is taken off, and the throughput that it printed is
kept beside it. Prints one row per (workload, threads): the median of the ratios of a pair, driver
over YCSB-cpp, their least and greatest, and the interval of their geometric mean at 95 %; then
what lookups did not find, and the bytes of the settled databases, driver over YCSB-cpp. Writes
every raw figure to the output after each row.
"""

from __future__ import annotations

import argparse
import os
import shutil
import statistics
import sys
import tempfile
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from pathlib import Path

# Both comparisons of the driver share what is there.
sys.path.append(str(Path(__file__).resolve().parents[1] / "driver"))

from db_bench_peer import different
from driver_side import DriverSide, lookups_found, phase_of, read_workload
from overhead import write
from ycsb_cpp_peer import ENGINE_OPTIONS, YcsbCpp, lookups, ycsb_cpp_properties

from lsmtune.driver.conversation import find_driver
from lsmtune.driver.native import NativeRunner
from lsmtune.engines.library import build_type
from lsmtune.experiment.database_files import clone
from lsmtune.model.config import Build, EngineIdentity
from lsmtune.model.workload import PhaseKind
from lsmtune.stats.intervals import paired_ratio

LOAD = "load"
LETTERS = ("a", "b", "c", "d", "e", "f")
ROW_NAMES = (LOAD, *LETTERS)
BYTES_TOLERANCE = 0.02
LOAD_SEED = 1
_SCANNING = "e"  # an operation reads some fifty records


@dataclass
class Side:
    """What one side measured, pair by pair."""

    throughput_ops_s: list[float] = field(default_factory=list)
    found: list[int | None] = field(default_factory=list)
    missing: list[int | None] = field(default_factory=list)
    database_bytes: list[int] = field(default_factory=list)


@dataclass
class Row:
    """One workload at one number of threads."""

    name: str
    threads: int
    operations: int
    driver: Side = field(default_factory=Side)
    ycsb_cpp: Side = field(default_factory=Side)
    ycsb_cpp_printed_ops_s: list[float] = field(default_factory=list)
    ycsb_cpp_opening_s: list[float] = field(default_factory=list)
    different_options: list[str] = field(default_factory=list)

    def text(self) -> str:
        """The row as it is printed."""
        ours, theirs = self.driver.throughput_ops_s, self.ycsb_cpp.throughput_ops_s
        ratios = [a / b for a, b in zip(ours, theirs, strict=True)]
        printed = [a / b for a, b in zip(ours, self.ycsb_cpp_printed_ops_s, strict=True)]
        cells = [
            f"{self.name:<5}{self.threads:>3}",
            f"{statistics.median(ratios):>6.3f} ({min(ratios):.2f} to {max(ratios):.2f})",
        ]
        if len(ratios) > 1:
            found = paired_ratio(theirs, ours)
            cells.append(f"{found.ratio:.3f} [{found.low:.3f}, {found.high:.3f}]")
        cells.append(f"printed {statistics.median(printed):.3f}")
        cells.append(f"{statistics.median(ours):>9.0f} {statistics.median(theirs):>9.0f} ops/s")
        cells.append(f"found {self.driver.found[-1]} {self.ycsb_cpp.found[-1]}")
        cells.append(f"missing {self.driver.missing} {self.ycsb_cpp.missing}")
        cells.append(f"bytes {self.bytes_ratio():.4f}")
        return "  ".join(cells)

    def bytes_ratio(self) -> float:
        """Bytes of the settled database, driver over YCSB-cpp, medians."""
        ours, theirs = self.driver.database_bytes, self.ycsb_cpp.database_bytes
        return statistics.median(ours) / statistics.median(theirs)


@dataclass(frozen=True)
class Bench:
    """Both sides. `reference` is a database of ours, with whose options theirs are compared."""

    arguments: argparse.Namespace
    reference: Path
    driver: DriverSide
    ycsb_cpp: YcsbCpp
    scratch: Path

    @property
    def bases(self) -> tuple[Path, Path]:
        """Folders of the loaded and settled databases: ours with its ledger, theirs."""
        return self.scratch / "base-driver", self.scratch / "base-ycsb-cpp" / "settled" / "db"

    def properties(self, row: Row) -> dict[str, str]:
        """What is said over the workload file, on both sides."""
        return {
            "recordcount": str(self.arguments.records),
            "operationcount": str(row.operations),
            "threadcount": str(row.threads),
        }

    def file(self, row: Row) -> Path:
        """The workload file; a load is the same with each of them."""
        letter = LETTERS[0] if row.name == LOAD else row.name
        return Path(self.arguments.workloads / f"workload{letter}")

    def load_bases(self) -> None:
        """Loads and settles one database on each side."""
        row = Row(LOAD, 1, self.arguments.records)
        ours, theirs = self.bases
        self.driver.load(read_workload(self.file(row), self.properties(row)), ours, LOAD_SEED)
        folder = theirs.parent.parent
        folder.mkdir()
        self.ycsb_cpp.load(folder / "db", self.file(row), self.properties(row))
        self.driver.settle(folder / "db", folder)

    def run_driver(self, row: Row, number: int, folder: Path) -> None:
        """Our load or run."""
        workload = read_workload(self.file(row), self.properties(row))
        if row.name == LOAD:
            measurement = self.driver.load(workload, folder / "driver", LOAD_SEED + number)
        else:
            base, seed = self.bases[0], LOAD_SEED + 1 + number
            directory = folder / "driver"
            measurement = self.driver.run(workload, base, directory, seed, LOAD_SEED)
        phase = phase_of(measurement, PhaseKind.LOAD if row.name == LOAD else PhaseKind.MEASURE)
        row.driver.throughput_ops_s.append(phase.throughput_ops_s)
        row.driver.found.append(lookups_found(phase))
        row.driver.missing.append(phase.keys_missing)
        row.driver.database_bytes.append(measurement.database_bytes or 0)

    def run_ycsb_cpp(self, row: Row, folder: Path) -> None:
        """Their load or run, then our settling."""
        database, file, properties = folder / "ycsb-cpp", self.file(row), self.properties(row)
        if row.name == LOAD:
            one = {**properties, "recordcount": "1", "threadcount": "1"}
            opening_s = self.ycsb_cpp.load(folder / "one", file, one).elapsed_s
            phase = self.ycsb_cpp.load(database, file, properties)
        else:
            clone(self.bases[1], database)
            opening_s = self.ycsb_cpp.opening_s(database, file, properties)
            phase = self.ycsb_cpp.run(database, file, properties)
        if self.ycsb_cpp.engine == "rocksdb":  # LevelDB writes nothing down
            row.different_options = different(self.reference, database)
        found, missing = lookups(phase)
        row.ycsb_cpp.throughput_ops_s.append(phase.operations / (phase.elapsed_s - opening_s))
        row.ycsb_cpp_printed_ops_s.append(phase.throughput_ops_s)
        row.ycsb_cpp_opening_s.append(opening_s)
        row.ycsb_cpp.found.append(found)
        row.ycsb_cpp.missing.append(missing)
        row.ycsb_cpp.database_bytes.append(self.driver.settle(database, folder))

    def pair(self, row: Row, number: int) -> None:
        """Each side once, what was written before them on the device."""
        with tempfile.TemporaryDirectory(dir=self.scratch) as folder:
            sides: list[Callable[[], None]] = [
                lambda: self.run_driver(row, number, Path(folder)),
                lambda: self.run_ycsb_cpp(row, Path(folder)),
            ]
            for side in sides if number % 2 == 0 else reversed(sides):
                os.sync()
                side()


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--engine", choices=sorted(ENGINE_OPTIONS), required=True)
    parser.add_argument("--library", type=Path, required=True, help="what both sides use")
    parser.add_argument("--ycsb-cpp", type=Path, default=shutil.which("ycsb"))
    parser.add_argument("--workloads", type=Path, required=True, help="folder of workloada to f")
    parser.add_argument("--records", type=int, default=200_000)
    parser.add_argument("--operations", type=int, default=400_000)
    parser.add_argument("--scans", type=int, default=50_000, help="operations of workload E")
    parser.add_argument("--pairs", type=int, default=5)
    parser.add_argument("--threads", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--only", nargs="+", choices=ROW_NAMES, default=list(ROW_NAMES))
    parser.add_argument("--scratch", type=Path, default=None)
    parser.add_argument("--output", type=Path, default=None, help="JSON file of the raw figures")
    return parser.parse_args()


def operations_of(arguments: argparse.Namespace, name: str) -> int:
    """How many operations a row has, over all threads."""
    if name == LOAD:
        return int(arguments.records)
    return int(arguments.scans if name == _SCANNING else arguments.operations)


def measure(bench: Bench) -> None:
    """Runs every row and prints it as soon as it is complete."""
    arguments, load_before, rows = bench.arguments, os.getloadavg(), []
    for name in arguments.only:
        for threads in arguments.threads:
            row = Row(name, threads, operations_of(arguments, name))
            for number in range(arguments.pairs):
                bench.pair(row, number)
            rows.append(row)
            print(row.text(), flush=True)
            if abs(row.bytes_ratio() - 1) > BYTES_TOLERANCE:
                print(f"    bytes differ by more than {BYTES_TOLERANCE:.0%}")
            for line in row.different_options:
                print(f"    not the same option: {line}")
            if arguments.output is not None:
                write(
                    arguments.output,
                    load_average_before=load_before,
                    load_average_after=os.getloadavg(),
                    engine=arguments.engine,
                    library=arguments.library.name,
                    options=ENGINE_OPTIONS[arguments.engine],
                    records=arguments.records,
                    rows=[asdict(each) for each in rows],
                )


def main() -> None:
    arguments = parse_arguments()
    if build_type(arguments.library, arguments.engine) is Build.OWN_SNAPPY:
        why = "only the driver would load the Snappy beside it"
        raise SystemExit(f"--library {arguments.library}: {why}; name a copy in another folder")
    if arguments.ycsb_cpp is None:
        raise SystemExit("YCSB-cpp not found on PATH as ycsb: give --ycsb-cpp")
    identity = EngineIdentity(arguments.engine, library=str(arguments.library.resolve()))
    driver = DriverSide(NativeRunner(find_driver()), identity)
    with tempfile.TemporaryDirectory(dir=arguments.scratch) as folder:
        scratch = Path(folder)
        empty = driver.empty_database(scratch / "empty")
        properties = ycsb_cpp_properties(arguments.engine, empty, scratch)
        ycsb_cpp = YcsbCpp(arguments.ycsb_cpp.resolve(), arguments.engine, properties)
        bench = Bench(arguments, empty, driver, ycsb_cpp, scratch)
        if set(arguments.only) - {LOAD}:
            bench.load_bases()
        measure(bench)


if __name__ == "__main__":
    main()
