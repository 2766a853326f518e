"""What the driver itself costs: ns per operation, and memory, on an engine that does nothing.

    .venv/bin/python benchmarks/driver/overhead.py --output docs/benchmarks/driver

Latency recording is on, as it always is. Each figure is the whole cost of an operation: choosing a
key, making the value, two clock readings, the histogram and the ledger, from the elapsed time.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import tempfile
import time
from pathlib import Path

from lsmtune.driver.conversation import find_driver
from lsmtune.driver.native import NativeRunner
from lsmtune.model.config import Config, EngineIdentity
from lsmtune.model.measurement import Outcome, PhaseMeasurement
from lsmtune.model.request import Limits, RunRequest
from lsmtune.model.workload import Phase, PhaseKind, Workload

NAMES = (
    "fillseq",
    "fillrandom",
    "filluniquerandom",
    "overwrite",
    "readseq",
    "readrandom",
    "readmissing",
    "readhot",
    "seekrandom",
    "deleterandom",
)
LIMITS = Limits(deadline_s=600.0, memory_bytes=8 << 30, disk_bytes=40 << 30)


def last_phase(
    engine: EngineIdentity, config: Config, workload: Workload, seed: int, directory: Path
) -> PhaseMeasurement:
    """The last phase of a run in the empty `directory`."""
    request = RunRequest(engine, config, workload, seed, directory, LIMITS)
    measurement = NativeRunner(find_driver()).run(request)
    if measurement.outcome is not Outcome.OK:
        raise SystemExit(f"driver: {measurement.outcome}: {measurement.error}")
    return measurement.phases[-1]


def measure(name: str, keys: int, operations: int, seed: int) -> PhaseMeasurement:
    """One phase of `name` over `keys` keys on the no-op engine."""
    phase = Phase(name, PhaseKind.MEASURE, name, operations_per_thread=operations)
    workload = Workload(name, (phase,), num=keys)
    with tempfile.TemporaryDirectory() as scratch:
        return last_phase(EngineIdentity("noop"), Config(), workload, seed, Path(scratch))


def write(path: Path, **figures: object) -> None:
    """Keeps raw figures in the file `path`, with what is needed to judge them."""
    path.parent.mkdir(parents=True, exist_ok=True)
    date_utc = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
    document = {"date_utc": date_utc, "cpus": os.cpu_count(), **figures}
    path.write_text(json.dumps(document, indent=1) + "\n")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeat", type=int, default=5)
    parser.add_argument("--operations", type=int, default=10_000_000)
    parser.add_argument("--keys", type=int, default=100_000_000)
    parser.add_argument("--output", type=Path, default=None, help="folder for the raw figures")
    arguments = parser.parse_args()
    costs: dict[str, list[float]] = {name: [] for name in NAMES}
    for repeat in range(arguments.repeat):
        for name in NAMES:
            phase = measure(name, arguments.keys, arguments.operations, repeat)
            costs[name].append(1e9 * phase.elapsed_s / phase.operations)
    print("operation         ns per operation: median (min to max)")
    for name, ns in costs.items():
        print(f"{name:<17} {statistics.median(ns):6.1f} ({min(ns):.1f} to {max(ns):.1f})")
    full = measure("filluniquerandom", arguments.keys, arguments.keys, 1)
    print(f"peak memory writing each of {arguments.keys} keys once: {full.rss_bytes_max >> 20} MiB")
    if arguments.output is not None:
        write(
            arguments.output / "overhead.json",
            load_average=os.getloadavg(),
            operations=arguments.operations,
            keys=arguments.keys,
            ns_per_operation=costs,
            rss_bytes_max=full.rss_bytes_max,
        )


if __name__ == "__main__":
    main()
