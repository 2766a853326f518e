"""The driver beside RocksDB's own db_bench on the same library: same options, sizes and threads.

    .venv/bin/python benchmarks/driver/against_db_bench.py --pairs 5 --output docs/benchmarks/driver

Runs are interleaved in ABBA order. Prints one row per (benchmark, threads) with the median of the
pairs' throughput ratios, driver over db_bench, and writes every raw figure to a JSON file.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import statistics
import tempfile
import time
from dataclasses import asdict, dataclass, field
from pathlib import Path

from db_bench_peer import LOADED, SHARED_OPTIONS, options_file, run_db_bench

from lsmtune.records.config import Config
from lsmtune.records.engine import EngineIdentity
from lsmtune.records.measurement import Outcome
from lsmtune.records.request import Limits, RunRequest
from lsmtune.records.workload import Phase, PhaseKind, Workload
from lsmtune.runners.driver_binary import find_driver
from lsmtune.runners.native import NativeRunner

NAMES = ("fillrandom", "overwrite", "readrandom", "readseq", "seekrandom")
LIMITS = Limits(deadline_s=600.0, memory_bytes=8 << 30, disk_bytes=40 << 30)


@dataclass
class Row:
    """Throughputs (ops/s) of one benchmark at one thread count, pair by pair."""

    name: str
    threads: int
    driver_ops_s: list[float] = field(default_factory=list)
    db_bench_ops_s: list[float] = field(default_factory=list)
    different_options: list[str] = field(default_factory=list)

    def ratios(self) -> list[float]:
        """Driver over db_bench, pair by pair."""
        return [a / b for a, b in zip(self.driver_ops_s, self.db_bench_ops_s, strict=True)]


def workload(name: str, num: int, operations: int, threads: int) -> Workload:
    """The phases that db_bench runs for `name`."""
    measure = Phase(
        name, PhaseKind.MEASURE, name, operations_per_thread=operations, threads=threads
    )
    load = Phase("load", PhaseKind.LOAD, "filluniquerandom", operations_per_thread=num)
    settle = Phase("settle", PhaseKind.SETTLE)
    phases = (load, settle, measure) if name in LOADED else (measure,)
    return Workload(name, phases, num=num)


def run_driver(arguments: argparse.Namespace, row: Row, seed: int, directory: Path) -> float:
    """One run of the driver; its throughput without the drain, which db_bench does not charge."""
    operations = arguments.num if row.name == "fillrandom" else arguments.reads
    request = RunRequest(
        engine=EngineIdentity("rocksdb", library=str(arguments.library)),
        config=Config(SHARED_OPTIONS, "db_bench's defaults"),
        workload=workload(row.name, arguments.num, operations, row.threads),
        seed=seed,
        limits=LIMITS,
        directory=directory,
    )
    measurement = NativeRunner(find_driver()).run(request)
    if measurement.outcome is not Outcome.OK:
        raise SystemExit(f"driver: {measurement.outcome}: {measurement.error}")
    return measurement.phases[-1].throughput_ops_s


def run_pair(arguments: argparse.Namespace, row: Row, pair: int) -> None:
    """Both programs once, in an order that alternates from pair to pair."""
    with tempfile.TemporaryDirectory(dir=arguments.scratch) as scratch:
        ours, theirs = Path(scratch) / "driver", Path(scratch) / "db_bench"
        ours.mkdir()

        def driver() -> None:
            row.driver_ops_s.append(run_driver(arguments, row, pair + 1, ours))

        def db_bench() -> None:
            peer = run_db_bench(
                arguments.db_bench,
                theirs,
                row.name,
                num=arguments.num,
                reads=arguments.reads,
                threads=row.threads,
                seed=pair + 1,
            )
            row.db_bench_ops_s.append(peer.throughput_ops_s)

        for run in (driver, db_bench) if pair % 2 == 0 else (db_bench, driver):
            run()
        row.different_options = different(options_file(ours / "db"), options_file(theirs))


def different(ours: dict[str, str], theirs: dict[str, str]) -> list[str]:
    """Options that the two databases do not share; listeners only report errors in db_bench."""
    names = sorted(ours.keys() | theirs.keys())
    return [
        f"{name}: {ours.get(name)} | {theirs.get(name)}"
        for name in names
        if ours.get(name) != theirs.get(name) and "listeners" not in name
    ]


def parse_arguments() -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--db-bench", type=Path, default=shutil.which("db_bench"))
    parser.add_argument(
        "--library",
        type=Path,
        default=Path("/usr/lib/x86_64-linux-gnu/librocksdb.so.7.8"),
        help="the library that db_bench is linked with (see ldd)",
    )
    parser.add_argument("--pairs", type=int, default=5)
    parser.add_argument("--num", type=int, default=500_000)
    parser.add_argument("--reads", type=int, default=500_000)
    parser.add_argument("--threads", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--only", nargs="+", choices=NAMES, default=list(NAMES))
    parser.add_argument("--scratch", type=Path, default=None)
    parser.add_argument("--output", type=Path, default=None, help="folder for the raw figures")
    return parser.parse_args()


def main() -> None:
    """Runs every row and prints it as soon as it is complete."""
    arguments = parse_arguments()
    if arguments.db_bench is None:
        raise SystemExit("db_bench not found on PATH: install rocksdb-tools, or give --db-bench")
    load_before = os.getloadavg()
    rows = []
    print("benchmark   threads  driver/db_bench  (pairs)  medians ops/s: driver, db_bench")
    for name in arguments.only:
        for threads in arguments.threads:
            row = Row(name, threads)
            for pair in range(arguments.pairs):
                run_pair(arguments, row, pair)
            rows.append(row)
            ratios = row.ratios()
            print(
                f"{name:<11} {threads:>7}  {statistics.median(ratios):>15.3f}  "
                f"({min(ratios):.2f} to {max(ratios):.2f})  "
                f"{statistics.median(row.driver_ops_s):.0f}, "
                f"{statistics.median(row.db_bench_ops_s):.0f}",
                flush=True,
            )
            for line in row.different_options:
                print(f"    not the same option: {line}")
    if arguments.output is not None:
        write(arguments, rows, load_before)


def write(arguments: argparse.Namespace, rows: list[Row], load_before: tuple[float, ...]) -> None:
    """Keeps the raw figures with what is needed to judge them."""
    arguments.output.mkdir(parents=True, exist_ok=True)
    document = {
        "date_utc": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        "cpus": os.cpu_count(),
        "load_average_before": load_before,
        "load_average_after": os.getloadavg(),
        "num": arguments.num,
        "reads_per_thread": arguments.reads,
        "library": str(arguments.library),
        "rows": [asdict(row) | {"ratios": row.ratios()} for row in rows],
    }
    path = arguments.output / "against_db_bench.json"
    path.write_text(json.dumps(document, indent=1) + "\n")
    print(f"raw figures: {path}")


if __name__ == "__main__":
    main()
