"""Records how fast a real RocksDB is: one line of JSON per run, of a few hundred configurations.

    .venv/bin/python benchmarks/landscape/record.py writing --configurations 300 --repeats 2 \
        --raw docs/benchmarks/landscape/writing.jsonl

Again, it goes on where it was stopped. `--scale 0.25` runs the same configurations on a quarter of
the data, with buffers, files, levels, caches and memory a quarter as large. A configuration costs
a load and a settled tree, once for all of its repeats at a scale, and for each repeat the run: 7 s
with 2 repeats. Every `--anchors` configurations the defaults run once more, so that a change of the
machine can be seen.
"""

from __future__ import annotations

import argparse
import json
import shutil
import tempfile
import time
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from lsmtune.driver.conversation import find_driver
from lsmtune.driver.native import NativeRunner
from lsmtune.engines.libraries import find_library
from lsmtune.engines.scaling import scaled
from lsmtune.experiment.databases import DatabaseCache
from lsmtune.machine.host import usable_cores
from lsmtune.model.config import Config, EngineIdentity
from lsmtune.model.measurement import Measurement
from lsmtune.model.request import Limits, RunRequest
from lsmtune.model.workload import Workload
from lsmtune.study.stored import smaller
from workloads import METRIC, RECORDED, Options, points

# Of one configuration at a time: earlier ones are not asked for again.
CACHE_BYTES = 4 << 30


def read_rows(raw: Path) -> list[dict[str, Any]]:
    """The rows recorded so far; a last line that was cut off is removed from the file."""
    if not raw.exists():
        return []
    lines = raw.read_text().splitlines(keepends=True)
    if lines and not lines[-1].endswith("\n"):
        lines.pop()
        raw.write_text("".join(lines))
    return [json.loads(line) for line in lines]


def row_of(measurement: Measurement, times: Mapping[str, float]) -> dict[str, Any]:
    """What one run observed."""
    measured = [phase for phase in measurement.phases if phase.kind == "measure"]
    phase = measured[-1] if measured else None
    series = phase.intervals if phase is not None else measurement.intervals_unfinished
    named = ("throughput_ops_s", METRIC, "drain_s", "elapsed_s", "write_amplification")
    named += ("space_amplification", "latency_us_p99", "rss_bytes_max", "stall_s", "steal_s")
    return {
        "outcome": measurement.outcome.value,
        "error": None if measurement.error is None else measurement.error.message,
        **{name: None if phase is None else getattr(phase, name) for name in named},
        **times,
        "series": [
            [
                round(step.elapsed_s, 4),
                step.operations_total,
                step.pending_compaction_bytes,
                step.background_write_bytes,
            ]
            for step in series
        ],
    }


class Recorder:
    """Runs configurations of one workload at one scale."""

    def __init__(self, name: str, scale: float, engine: EngineIdentity, scratch: Path) -> None:
        recorded = RECORDED[name]
        self.workload: Workload = recorded.workload
        if scale < 1.0:
            self.workload = smaller(recorded.workload, round(scale * recorded.workload.num))
        self._scale, self._engine, self._scratch = scale, engine, scratch
        memory_bytes = round(scale * recorded.limits.memory_bytes)
        self._limits = Limits(deadline_s=120.0, memory_bytes=memory_bytes, disk_bytes=20 << 30)
        self._runner = NativeRunner(find_driver())
        self._cache = DatabaseCache(scratch / "databases", self._runner, CACHE_BYTES)

    def run(self, values: Options, repeat: int) -> dict[str, Any]:
        """One run of `values`, at the scale, on the seed of its repeat."""
        options = scaled("rocksdb", values, self._scale, self._engine.version)
        directory = Path(tempfile.mkdtemp(dir=self._scratch, prefix="run-"))
        try:
            request = RunRequest(
                engine=self._engine,
                config=Config(options),
                workload=self.workload,
                seed=1 + repeat,
                load_seed=1,
                directory=directory,
                # A load has other needs than a run, and is the same for all.
                limits=replace(self._limits, memory_bytes=4 << 30),
            )
            began_s = time.perf_counter()
            request = replace(self._cache.prepare(request), limits=self._limits)
            ready_s = time.perf_counter()
            measurement = self._runner.run(request)
            times = {
                "ready_s": round(ready_s - began_s, 3),
                "run_s": round(time.perf_counter() - ready_s, 3),
            }
        finally:
            shutil.rmtree(directory)
        return {"ran": options, **row_of(measurement, times)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("workload", choices=tuple(RECORDED))
    parser.add_argument("--configurations", type=int, default=300)
    parser.add_argument("--repeats", type=int, default=2)
    parser.add_argument("--scale", type=float, default=1.0, help="share of the data, up to 1")
    parser.add_argument("--anchors", type=int, default=10, help="configurations between two")
    parser.add_argument("--scratch", type=Path, default=None, help="folder for the databases")
    parser.add_argument("--raw", type=Path, required=True, help="JSON lines: read, and added to")
    arguments = parser.parse_args()
    identity = find_library("rocksdb").identity
    cores = len(usable_cores())
    done = {(row["scale"], row["point"], row["repeat"]) for row in read_rows(arguments.raw)}
    configurations = points(arguments.workload, arguments.configurations, identity.version, cores)
    arguments.raw.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=arguments.scratch, prefix="landscape-") as scratch:
        recorder = Recorder(arguments.workload, arguments.scale, identity, Path(scratch))

        def record(point: int, label: str, values: Options, repeat: int) -> None:
            if (arguments.scale, point, repeat) in done:
                return
            row = {
                "workload": arguments.workload,
                "scale": arguments.scale,
                "point": point,
                "label": label,
                "repeat": repeat,
                "options": values,
                "version": identity.version,
                "num": recorder.workload.num,
                "unix_s": round(time.time(), 3),
                **recorder.run(values, repeat),
            }
            with arguments.raw.open("a") as file:
                file.write(json.dumps(row) + "\n")
            ops_s = row[METRIC]
            shown = row["outcome"] if ops_s is None else f"{ops_s:,.0f} ops/s"
            print(
                f"{point} of {len(configurations)}, {label}, repeat {repeat}: {shown}, ready in "
                f"{row['ready_s']} s, ran {row['run_s']} s",
                flush=True,
            )

        for point, (label, values) in enumerate(configurations):
            if arguments.anchors and point % arguments.anchors == 0:
                # Anchors are repeats of the first point, beyond those of every point.
                anchor = arguments.repeats + point // arguments.anchors
                record(0, configurations[0][0], configurations[0][1], anchor)
            for repeat in range(arguments.repeats):
                record(point, label, values, repeat)


if __name__ == "__main__":
    main()
