"""Whether a database that was loaded fast has the tree of one that was loaded plainly.

    .venv/bin/python benchmarks/databases/trees.py --output docs/benchmarks/databases

Each layout and load seed is loaded twice: as the workload says (one thread, a write-ahead log,
compactions as they come), and as `DatabaseCache` loads it. Of each tree: files and bytes of its
levels, what was compacted for it, and processor time, which a busy machine changes least: of the
load, and of an operation that reads a random record (`ycsb-c`, uniform, a block cache of 8 MiB).
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
from dataclasses import asdict, dataclass, replace
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parents[1] / "driver"))

from overhead import write

from lsmtune.driver.conversation import find_driver
from lsmtune.driver.native import NativeRunner
from lsmtune.engines.libraries import find_library
from lsmtune.experiment.database_key import LEDGER, golden_plan
from lsmtune.model.config import Config
from lsmtune.model.measurement import Measurement, Outcome
from lsmtune.model.request import Limits, Prepared, RunRequest
from lsmtune.workloads.stated import make_workload

LIMITS = Limits(deadline_s=3600.0, memory_bytes=8 << 30, disk_bytes=40 << 30)
MIB = 1 << 20
# Records of 1.1 KB. The third tree is that of 3,000,000 records and default options, at 1/16.
LAYOUTS = {
    "default": (300_000, Config()),
    "write buffer 1 MiB": (300_000, Config({"write_buffer_size": MIB})),
    "write buffer 8 MiB": (500_000, Config({"write_buffer_size": 8 * MIB})),
    "write buffer 16 MiB": (300_000, Config({"write_buffer_size": 16 * MIB})),
    "scaled": (
        187_500,
        Config(
            {
                "write_buffer_size": 4 * MIB,
                "target_file_size_base": 4 * MIB,
                "max_bytes_for_level_base": 16 * MIB,
            }
        ),
    ),
}


@dataclass(frozen=True)
class Tree:
    """A loaded database, and what it took."""

    layout: str
    load_seed: int
    fast: bool
    files_per_level: tuple[int, ...]
    bytes_per_level: tuple[int, ...]
    compaction_write_bytes: int
    elapsed_s: float
    cpu_s: float
    read_cpu_us: float


def load(layout: str, load_seed: int, fast: bool, directory: Path) -> Tree:
    """Loads one database in the empty `directory`, and reads from it."""
    records, config = LAYOUTS[layout]
    workload = make_workload("ycsb-b", {"recordcount": records}, "benchmark")
    engine = find_library("rocksdb").identity
    asked = RunRequest(engine, config, workload, 1, directory, LIMITS, load_seed=load_seed)
    plan = golden_plan(asked)
    if plan is None:
        raise SystemExit("the workload does not begin with a load")
    request = plan.load_request(directory)
    if not fast:
        plain = replace(request.workload, durability=workload.durability)
        request = replace(request, workload=plain, bulk_load=None)
    loaded = performed(request)
    settled = loaded.phases[-1]
    parameters = {"recordcount": records, "operationcount": 100_000}
    reads = make_workload("ycsb-c", {**parameters, "requestdistribution": "uniform"}, "benchmark")
    phases = (*plan.load.phases, reads.phases[-1])
    read = performed(
        replace(
            asked,
            config=Config({**config.options, "block_based_table_factory.block_cache": 8 * MIB}),
            workload=replace(reads, phases=phases),
            prepared=Prepared(directory / LEDGER, len(plan.load.phases)),
        )
    )
    return Tree(
        layout,
        load_seed,
        fast,
        settled.files_per_level or (),
        settled.bytes_per_level or (),
        sum(phase.compaction_write_bytes or 0 for phase in loaded.phases),
        loaded.elapsed_s,
        loaded.cpu_s or 0.0,
        read.phases[-1].cpu_us_per_operation or 0.0,
    )


def performed(request: RunRequest) -> Measurement:
    """The run of `request`, which has to end well."""
    return well(NativeRunner(find_driver()).run(request))


def well(measurement: Measurement) -> Measurement:
    """A run that ended well. Raises SystemExit for any other."""
    if measurement.outcome is not Outcome.OK:
        raise SystemExit(f"a run ended {measurement.outcome}: {measurement.error}")
    return measurement


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=4)
    parser.add_argument("--scratch", type=Path, default=None, help="folder for the databases")
    parser.add_argument("--output", type=Path, default=None, help="folder for the raw figures")
    arguments = parser.parse_args()
    trees, before = [], os.getloadavg()
    for layout in LAYOUTS:
        for load_seed in range(1, arguments.seeds + 1):
            for fast in (False, True):
                with tempfile.TemporaryDirectory(dir=arguments.scratch) as scratch:
                    tree = load(layout, load_seed, fast, Path(scratch))
                trees.append(tree)
                levels = [
                    f"L{level}: {files} of {size / 1e6:.0f} MB"
                    for level, (files, size) in enumerate(
                        zip(tree.files_per_level, tree.bytes_per_level, strict=True)
                    )
                    if files
                ]
                print(
                    f"{layout:<20} {load_seed} {'fast ' if fast else 'plain'} "
                    f"{tree.elapsed_s:5.1f} s, cpu {tree.cpu_s:4.1f} s, "
                    f"{tree.compaction_write_bytes / 1e9:.2f} GB compacted, "
                    f"a read {tree.read_cpu_us:4.1f} us; {', '.join(levels)}",
                    flush=True,
                )
    if arguments.output is not None:
        loads = (before, os.getloadavg())
        path = arguments.output / "trees.json"
        write(path, load_average=loads, trees=[asdict(tree) for tree in trees])


if __name__ == "__main__":
    main()
