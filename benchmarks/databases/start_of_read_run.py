"""How long a read run waits for its data: loading it, beside starting from a copy that is shared.

    .venv/bin/python benchmarks/databases/start_of_read_run.py --output docs/benchmarks/databases

For each engine, with its own default options: the load phase and the settle phase behind it, once,
and then the time from asking for a run to its first measured operation, again and again. That time
holds finding and checking the golden database, linking its tables, starting the driver, and opening
the copy. The target is at most 2 % of the load.
"""

from __future__ import annotations

import argparse
import os
import shutil
import statistics
import tempfile
import threading
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path

from trees import LIMITS, well, write

from lsmtune.driver.conversation import find_driver
from lsmtune.driver.messages import Message
from lsmtune.driver.native import NativeRunner
from lsmtune.engines.libraries import find_library
from lsmtune.experiment.database_files import goldens_in
from lsmtune.experiment.databases import DatabaseCache
from lsmtune.experiment.observer import Observer
from lsmtune.model.config import Config
from lsmtune.model.measurement import Measurement
from lsmtune.model.request import RunRequest
from lsmtune.model.workload import Workload
from lsmtune.workloads.stated import make_workload

ENGINES = ("rocksdb", "leveldb")
TARGET_PER_CENT = 2.0


@dataclass(frozen=True)
class Figures:
    """What was measured of one engine, all times in seconds."""

    version: str | None
    load_s: float
    start_s: tuple[float, ...]
    copy_s: tuple[float, ...]
    start_per_cent_of_load: float
    files: int
    files_per_level: tuple[int, ...] | None
    disk_bytes: int
    note: str


class Remembering:
    """A runner that remembers what it measured last."""

    def __init__(self) -> None:
        self._runner = NativeRunner(find_driver())
        self.last: Measurement | None = None

    def run(
        self,
        request: RunRequest,
        on_message: Callable[[Message], None] | None = None,
        cancel: threading.Event | None = None,
    ) -> Measurement:
        """Performs `request`; raises SystemExit when it does not end well."""
        self.last = well(self._runner.run(request, on_message, cancel))
        return self.last


class Watch(Observer):
    """Remembers what was out of the ordinary."""

    note = ""

    def warning(self, text: str) -> None:
        """Remembers `text`."""
        self.note = text


def measure(engine: str, workload: Workload, repeat: int, scratch: Path) -> Figures:
    """The load and `repeat` starts of runs of `workload`, in an empty `scratch`."""
    runner, watch = Remembering(), Watch()
    cache = DatabaseCache(scratch / "databases", runner, 1 << 40, observer=watch)
    identity = find_library(engine).identity

    def ready(number: int) -> RunRequest:
        directory = scratch / f"run-{number}"
        directory.mkdir()
        prepared = cache.prepare(
            RunRequest(identity, Config(), workload, number, directory, LIMITS)
        )
        if prepared.prepared is None:
            raise SystemExit(f"{engine}: no copy: {watch.note}")
        return prepared

    shutil.rmtree(ready(0).directory)
    if runner.last is None:
        raise SystemExit(f"{engine}: nothing was loaded")
    load_s = sum(phase.elapsed_s + phase.drain_s for phase in runner.last.phases)
    starts_s, copies_s = [], []
    for number in range(1, repeat + 1):
        asked_unix_s = time.time()
        request = ready(number)
        copies_s.append(time.time() - asked_unix_s)
        measurement = runner.run(request)
        starts_s.append(measurement.phases[0].started_unix_us / 1e6 - asked_unix_s)
        shutil.rmtree(request.directory)
    (golden,) = goldens_in(cache.directory)
    return Figures(
        version=measurement.engine.version,
        load_s=load_s,
        start_s=tuple(starts_s),
        copy_s=tuple(copies_s),
        start_per_cent_of_load=100 * statistics.median(starts_s) / load_s,
        files=len(golden.facts.fingerprint.files),
        files_per_level=golden.facts.fingerprint.files_per_level,
        disk_bytes=golden.facts.disk_bytes,
        note=watch.note,
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--num", type=int, default=2_000_000)
    parser.add_argument("--value-bytes", type=int, default=1000)
    parser.add_argument("--repeat", type=int, default=5)
    parser.add_argument("--scratch", type=Path, default=None, help="folder for the databases")
    parser.add_argument("--output", type=Path, default=None, help="folder for the raw figures")
    arguments = parser.parse_args()
    parameters = {
        "num": arguments.num,
        "value_bytes": arguments.value_bytes,
        "reads": min(arguments.num, 10_000),
    }
    workload = make_workload("readrandom", parameters, "benchmark")
    load_average = os.getloadavg()
    figures: dict[str, Figures] = {}
    print("engine    load and settle, s   start of a run, ms: median   share   target")
    for engine in ENGINES:
        with tempfile.TemporaryDirectory(dir=arguments.scratch) as scratch:
            figures[engine] = measure(engine, workload, arguments.repeat, Path(scratch))
        found = figures[engine]
        start_ms = 1e3 * statistics.median(found.start_s)
        print(
            f"{engine:<9} {found.load_s:>18.1f} {start_ms:>28.0f} "
            f"{found.start_per_cent_of_load:>6.2f}% {TARGET_PER_CENT:>7g}%"
        )
    if arguments.output is not None:
        write(
            arguments.output / "start_of_read_run.json",
            load_average=load_average,
            num=arguments.num,
            key_bytes=workload.key_bytes,
            value_bytes=workload.value_bytes,
            engines={engine: asdict(found) for engine, found in figures.items()},
        )


if __name__ == "__main__":
    main()
