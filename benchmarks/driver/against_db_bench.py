"""The driver beside RocksDB's own db_bench on the same library: same options, sizes and threads.

    .venv/bin/python benchmarks/driver/against_db_bench.py --output docs/benchmarks/driver

db_bench runs twice: as it comes, and with `--histogram`, which records latencies as the driver
always does. The three are interleaved, the order turning round from round to round. Prints one row
per (benchmark, threads) with the medians of the throughput ratios within a round, driver over
db_bench, and writes every raw figure to a JSON file, after each row.
"""

from __future__ import annotations

import argparse
import os
import shutil
import statistics
import tempfile
from dataclasses import asdict, dataclass, field
from pathlib import Path

from db_bench_peer import LOADED, SHARED_OPTIONS, different, run_db_bench
from overhead import last_phase, write

from lsmtune.engines.library import build_type
from lsmtune.model.config import Build, Config, EngineIdentity
from lsmtune.model.workload import Phase, PhaseKind, Workload

NAMES = ("fillrandom", "overwrite", "readrandom", "readseq", "seekrandom")


@dataclass
class Row:
    """Throughputs (ops/s) of one benchmark at one thread count, round by round."""

    name: str
    threads: int
    driver_ops_s: list[float] = field(default_factory=list)
    db_bench_ops_s: list[float] = field(default_factory=list)
    db_bench_histogram_ops_s: list[float] = field(default_factory=list)
    different_options: list[str] = field(default_factory=list)

    def ratios(self, peer_ops_s: list[float]) -> list[float]:
        """Driver over one of the peers, round by round."""
        return [a / b for a, b in zip(self.driver_ops_s, peer_ops_s, strict=True)]

    def text(self) -> str:
        """The row as it is printed."""
        cells = [f"{self.name:<11} {self.threads:>7}"]
        for peer in (self.db_bench_ops_s, self.db_bench_histogram_ops_s):
            ratios = self.ratios(peer)
            spread = f"({min(ratios):.2f} to {max(ratios):.2f})"
            cells.append(f"{statistics.median(ratios):>9.3f} {spread:<16}")
        medians = (self.driver_ops_s, self.db_bench_ops_s, self.db_bench_histogram_ops_s)
        return "  ".join([*cells, *(f"{statistics.median(ops):>9.0f}" for ops in medians)])


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
    engine = EngineIdentity("rocksdb", library=str(arguments.library))
    config = Config(SHARED_OPTIONS, "db_bench's defaults")
    own = workload(row.name, arguments.num, operations, row.threads)
    return last_phase(engine, config, own, seed, directory).throughput_ops_s


def run_round(arguments: argparse.Namespace, row: Row, number: int) -> None:
    """Each program once, in an order that turns round from round to round."""
    with tempfile.TemporaryDirectory(dir=arguments.scratch) as scratch:
        ours = Path(scratch) / "driver"
        ours.mkdir()

        def driver() -> None:
            row.driver_ops_s.append(run_driver(arguments, row, number + 1, ours))

        def db_bench(*, histogram: bool) -> None:
            kept = row.db_bench_histogram_ops_s if histogram else row.db_bench_ops_s
            kept.append(
                run_db_bench(
                    arguments.db_bench,
                    Path(scratch) / f"db_bench-{histogram}",
                    row.name,
                    num=arguments.num,
                    reads=arguments.reads,
                    threads=row.threads,
                    seed=number + 1,
                    histogram=histogram,
                )
            )

        runs = [driver, lambda: db_bench(histogram=False), lambda: db_bench(histogram=True)]
        for run in runs if number % 2 == 0 else reversed(runs):
            run()
        row.different_options = different(ours / "db", Path(scratch) / "db_bench-False")


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--db-bench", type=Path, default=shutil.which("db_bench"))
    parser.add_argument(
        "--library",
        type=Path,
        default=Path("/usr/lib/x86_64-linux-gnu/librocksdb.so.7.8"),
        help="the library that db_bench is linked with (see ldd)",
    )
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--num", type=int, default=500_000)
    parser.add_argument("--reads", type=int, default=500_000)
    parser.add_argument("--threads", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--only", nargs="+", choices=NAMES, default=list(NAMES))
    parser.add_argument("--scratch", type=Path, default=None)
    parser.add_argument("--output", type=Path, default=None, help="folder for the raw figures")
    return parser.parse_args()


def main() -> None:
    arguments = parse_arguments()
    if arguments.db_bench is None:
        raise SystemExit("db_bench not found on PATH: install rocksdb-tools, or give --db-bench")
    if build_type(arguments.library, "rocksdb") is Build.OWN_SNAPPY:
        why = "only the driver would load the Snappy beside it"
        raise SystemExit(f"--library {arguments.library}: {why}; name a copy in another folder")
    load_before = os.getloadavg()
    rows = []
    print(
        f"{'':19}  {'driver / db_bench':<26}  {'driver / db_bench --histogram':<26}  medians, ops/s"
    )
    for name in arguments.only:
        for threads in arguments.threads:
            row = Row(name, threads)
            for number in range(arguments.rounds):
                run_round(arguments, row, number)
            rows.append(row)
            print(row.text(), flush=True)
            for line in row.different_options:
                print(f"    not the same option: {line}")
            if arguments.output is not None:
                write(
                    arguments.output / "against_db_bench.json",
                    load_average_before=load_before,
                    load_average_after=os.getloadavg(),
                    num=arguments.num,
                    reads_per_thread=arguments.reads,
                    library=str(arguments.library),
                    rows=[asdict(each) for each in rows],
                )


if __name__ == "__main__":
    main()
