"""How long a trial takes beside what of it is measured, and two layouts of a large database.

    .venv/bin/python benchmarks/databases/time_of_a_trial.py --output docs/benchmarks/databases

A trial: YCSB's workload B on 300,000 records of 1 KB, the five options that `lsmtune init` writes,
`lsmtune tune` with the random sampler, so that each trial has a layout of its own and loads. Its
whole time, as the study counts it, over the seconds of its measure phase with the drain. Target: 2.

A pair: two layouts of 3,000,000 such records, each loaded, settled, synced, run and removed, one
after the other. The whole time in seconds, and over what of it is measured. Target: 120 s, of which
37 s are measured.

Both depend on the machine, and a busy one makes both longer: `load_average` says whether it was.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import time
from contextlib import closing
from dataclasses import asdict, dataclass
from pathlib import Path

from trees import LIMITS, well, write

from lsmtune.driver.conversation import find_driver
from lsmtune.driver.native import NativeRunner
from lsmtune.engines.libraries import find_library
from lsmtune.experiment.databases import DatabaseCache
from lsmtune.experiment.files import MEASUREMENTS_DB
from lsmtune.experiment.store import MeasurementStore, Role
from lsmtune.model.config import Config
from lsmtune.model.measurement import Measurement
from lsmtune.model.request import RunRequest
from lsmtune.workloads.stated import make_workload

TRIAL_TARGET = 2.0
PAIR_TARGET_S = 120.0
LAYOUTS = (Config(), Config({"compression": "kLZ4Compression", "write_buffer_size": 16 << 20}))


@dataclass(frozen=True)
class Times:
    """Seconds in all, and those of the measure phases with their drains."""

    whole_s: float
    measured_s: float

    @property
    def ratio(self) -> float:
        """The one over the other."""
        return self.whole_s / self.measured_s


def measured_s(measurement: Measurement) -> float:
    """Seconds of the measure phases and their drains. Raises SystemExit for a run that failed."""
    phases = [phase for phase in well(measurement).phases if phase.kind == "measure"]
    return sum(phase.elapsed_s + phase.drain_s for phase in phases)


def trials(records: int, operations: int, count: int, scratch: Path) -> list[Times]:
    """`count` trials of a study in `scratch`."""
    lsmtune = (sys.executable, "-m", "lsmtune.cli.main")
    study, folder = scratch / "study.yaml", scratch / "study"
    sizes = (f"recordcount={records}", f"operationcount={operations}")
    init = ("init", "--workload", "ycsb-b", "-w", sizes[0], "-w", sizes[1], "--sampler", "random")
    subprocess.run([*lsmtune, *init, "--output", study], check=True, stdout=subprocess.DEVNULL)
    with study.open("a") as file:  # runs as long as stated, which are too short for an answer
        file.write("burst: true\n")
    tune = ("tune", study, "--dir", folder, "--trials", str(count), "--budget", "10h")
    with (scratch / "said").open("w") as said:
        process = subprocess.Popen([*lsmtune, *tune], stdout=said, stderr=said)
        try:
            while process.poll() is None and len(_stored(folder)) < count:
                time.sleep(1.0)  # the proof is nothing to wait for
        finally:
            process.terminate()
            process.wait()
    runs = _stored(folder)
    if len(runs) < count:
        raise SystemExit((scratch / "said").read_text())
    return runs[:count]


def _stored(folder: Path) -> list[Times]:
    path = folder / MEASUREMENTS_DB
    if not path.is_file():
        return []
    with closing(MeasurementStore(path, read_only=True)) as store:
        runs = store.of(Role.TRIAL)
    return [Times(run.wall_s, measured_s(run.measurement)) for run in runs]


def pair(records: int, operations: int, scratch: Path) -> Times:
    """Both layouts, one after the other, from nothing."""
    runner = NativeRunner(find_driver())
    cache = DatabaseCache(scratch / "databases", runner, 1 << 40)
    sizes = {"recordcount": records, "operationcount": operations}
    workload = make_workload("ycsb-b", sizes, "benchmark")
    engine = find_library("rocksdb").identity
    began_s, measured = time.monotonic(), 0.0
    for number, layout in enumerate(LAYOUTS):
        with tempfile.TemporaryDirectory(dir=scratch) as directory:
            request = RunRequest(engine, layout, workload, number, Path(directory), LIMITS)
            request = cache.prepare(request)
            if request.prepared is None:
                raise SystemExit("no loaded database")
            measured += measured_s(runner.run(request))
    return Times(time.monotonic() - began_s, measured)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--trial-records", type=int, default=300_000)
    parser.add_argument("--trials", type=int, default=8)
    parser.add_argument("--pair-records", type=int, default=3_000_000)
    parser.add_argument("--scratch", type=Path, default=None, help="folder for the databases")
    parser.add_argument("--output", type=Path, default=None, help="folder for the raw figures")
    arguments = parser.parse_args()
    loads = [os.getloadavg()]
    with tempfile.TemporaryDirectory(dir=arguments.scratch) as scratch:
        records = arguments.trial_records
        of_trials = trials(records, records // 3, arguments.trials, Path(scratch))
    ratio = statistics.median(times.ratio for times in of_trials)
    print(f"a trial over its measured run: {ratio:.2f}, target {TRIAL_TARGET:g}")
    loads.append(os.getloadavg())
    with tempfile.TemporaryDirectory(dir=arguments.scratch) as scratch:
        records = arguments.pair_records
        of_pair = pair(records, records // 3, Path(scratch))
    print(
        f"two layouts of {records:,} records: {of_pair.whole_s:.0f} s, target {PAIR_TARGET_S:g} s; "
        f"{of_pair.ratio:.1f} times the {of_pair.measured_s:.0f} s that are measured"
    )
    loads.append(os.getloadavg())
    if arguments.output is not None:
        write(
            arguments.output / "time_of_a_trial.json",
            load_average=loads,
            trial_over_measured=ratio,
            trials=[asdict(times) for times in of_trials],
            pair=asdict(of_pair),
            pair_over_measured=of_pair.ratio,
        )


if __name__ == "__main__":
    main()
