"""A/A of a real engine, with and without Ray's idle daemons on the machine that measures.

    .venv/bin/python benchmarks/fleet/idle.py --blocks 20 --output docs/benchmarks/fleet/idle.json

The daemons are a head and a host, as `lsmtune worker` starts them, at their usual priority; no
study uses them. A block is four runs of one configuration: without, with, with, without them. The
first and the last two are a pair each, so that drift cancels. The number of pairs is fixed, the
interval Student's; the verdict is that of a proof with a smallest effect of 2 %. Before each run
there is a pause of the same length, in which daemons that were started come to rest.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import psutil
from cluster import Cluster

from lsmtune.driver.conversation import find_driver
from lsmtune.driver.native import NativeRunner
from lsmtune.engines.libraries import find_library
from lsmtune.experiment.databases import DatabaseCache
from lsmtune.model.codec import encode
from lsmtune.model.config import Config
from lsmtune.model.goal import Goal, Objective
from lsmtune.model.measurement import Outcome
from lsmtune.model.request import Limits, RunRequest
from lsmtune.proof.verdict import PairValues, judge
from lsmtune.stats.intervals import paired_ratio
from lsmtune.workloads.stated import make_workload

SMALLEST_EFFECT = 0.02
CONFIDENCE = 0.95
_STARTS_S = 180.0
_LIMITS = Limits(deadline_s=600.0, memory_bytes=4 << 30, disk_bytes=20 << 30)


class Daemons:
    """A head and a host; `used_s` is the processor time that they took while runs were measured."""

    def __init__(self, scratch: Path, port: int) -> None:
        self._scratch, self._port = scratch, port
        self.used_s = self.beside_s = 0.0
        self.memory_bytes = self.processes = 0

    @contextmanager
    def beside(self) -> Iterator[None]:
        """They run; measured is what is inside. Raises SystemExit where one of them ended."""
        with Cluster(self._scratch, self._port, low=False) as cluster:
            cluster.start("host")
            until_s = time.monotonic() + _STARTS_S
            while not self._begun(cluster) and time.monotonic() < until_s:
                time.sleep(1.0)
            before, began_s = self._family(cluster), time.monotonic()
            yield
            after = self._family(cluster)
            self.beside_s += time.monotonic() - began_s
            self.used_s += sum(used - before.get(pid, 0.0) for pid, used in after.items())

    def _begun(self, cluster: Cluster) -> bool:
        """Whether each has its raylet."""
        families = [psutil.Process(d.pid).children(True) for d in cluster.daemons.values()]
        return all(any(p.name() == "raylet" for p in family) for family in families)

    def _family(self, cluster: Cluster) -> dict[int, float]:
        """The processor time of each of them so far."""
        if not self._begun(cluster):
            raise SystemExit("daemons of Ray's did not start, or have ended")
        daemons = [psutil.Process(daemon.pid) for daemon in cluster.daemons.values()]
        found = [child for daemon in daemons for child in [daemon, *daemon.children(True)]]
        self.processes = len(found)
        self.memory_bytes = sum(process.memory_info().rss for process in found)
        times = {process.pid: process.cpu_times() for process in found}
        return {pid: spent.user + spent.system for pid, spent in times.items()}


def runs_of(
    scratch: Path, engine: str, name: str, pause_s: float, **sizes: int
) -> Callable[[int], float]:
    """Performs one run of a seed on a copy of one database after a pause; gives its objective."""
    runner, identity = NativeRunner(find_driver()), find_library(engine).identity
    goal = Goal((Objective(),))
    cache = DatabaseCache(scratch / "databases", runner, 40 << 30)
    workload = make_workload(name, sizes, "benchmark")

    def run(seed: int) -> float:
        directory = scratch / "run"
        directory.mkdir()
        request = RunRequest(identity, Config(), workload, seed, directory, _LIMITS)
        prepared = cache.prepare(request)
        time.sleep(pause_s)
        measured = runner.run(prepared)
        shutil.rmtree(directory)
        value = goal.value([measured])
        if measured.outcome is not Outcome.OK or value is None:
            raise SystemExit(f"{measured.outcome}: {measured.error}")
        return value

    return run


def main() -> None:
    """See the module."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0] if __doc__ else "")
    parser.add_argument("--engine", default="rocksdb")
    parser.add_argument("--workload", default="readrandom")
    parser.add_argument("--num", type=int, default=1_000_000)
    parser.add_argument("--reads", type=int, default=2_000_000, help="operations of a run")
    parser.add_argument("--threads", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--blocks", type=int, default=20, help="of four runs, two pairs")
    parser.add_argument("--pause", type=float, default=20.0, help="seconds before each run")
    parser.add_argument("--port", type=int, default=17679)
    parser.add_argument("--output", type=Path, help="a file for the figures, beside the terminal")
    asked = parser.parse_args()
    without: list[float] = []
    beside: list[float] = []
    began_load, began_s = os.getloadavg(), time.monotonic()
    with tempfile.TemporaryDirectory(prefix="idle-") as name:
        scratch = Path(name)
        sizes = {"num": asked.num, "reads": asked.reads, "threads": asked.threads}
        run = runs_of(scratch, asked.engine, asked.workload, asked.pause, **sizes)
        daemons = Daemons(scratch, asked.port)
        run(0)  # loads the database, and fills the page cache
        for block in range(asked.blocks):
            first, second = 2 * block + 1, 2 * block + 2
            without.append(run(first))
            with daemons.beside():
                beside += [run(first), run(second)]
            without.append(run(second))
            print(f"block {block}: {without[-2:]} {beside[-2:]}", flush=True)
    interval = paired_ratio(without, beside, CONFIDENCE) if len(without) > 1 else None
    verdict = judge(
        PairValues(without, beside),
        Objective(),
        CONFIDENCE,
        smallest_effect=SMALLEST_EFFECT,
        interval=interval,
    )
    found = {
        "date_utc": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        **{key: getattr(asked, key) for key in ("engine", "workload", *sizes, "blocks", "pause")},
        "elapsed_s": round(time.monotonic() - began_s),
        "load_average_at_first": began_load[0],
        "daemon_processes": daemons.processes,
        "daemon_memory_bytes": daemons.memory_bytes,
        "daemon_cpus_used": daemons.used_s / daemons.beside_s,
        "smallest_effect": SMALLEST_EFFECT,
        "verdict": encode(verdict),
    }
    text = json.dumps(found, indent=1) + "\n"
    print(text, end="")
    if asked.output is not None:
        asked.output.write_text(text)


if __name__ == "__main__":
    main()
