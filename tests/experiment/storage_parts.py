"""Records for the tests of storage, and a user who may not do everything."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from lsmtune.experiment.folder import StudyFolder
from lsmtune.model.config import Build, EngineIdentity, OptionValue
from lsmtune.model.goal import Objective
from lsmtune.model.measurement import (
    Interval,
    Latency,
    Measurement,
    OptionNotTaken,
    Outcome,
    PhaseMeasurement,
    RunError,
    Verification,
)
from lsmtune.model.metrics import PERCENTILES
from lsmtune.model.workload import Phase, PhaseKind, Workload

ENGINE = EngineIdentity("rocksdb", "10.2.1", "/opt/librocksdb.so", Build.RELEASE)
NOBODY = 65534


@contextmanager
def unprivileged() -> Iterator[Path]:
    """A folder of an ordinary user, as whom this context runs: root may write anywhere."""
    with tempfile.TemporaryDirectory() as name:
        root = os.geteuid() == 0
        Path(name).chmod(0o755)
        if root:
            os.chown(name, NOBODY, NOBODY)
            os.seteuid(NOBODY)
        try:
            yield Path(name)
        finally:
            if root:
                os.seteuid(0)


WORKLOAD = Workload(
    "fillrandom", (Phase("fillrandom", PhaseKind.MEASURE, "fillrandom", 1000),), num=1000
)
OBJECTIVE = Objective()


def open_folder(
    path: Path,
    *,
    text: str = "name: x\n",
    objective: Objective = OBJECTIVE,
    options: Mapping[str, OptionValue] | None = None,
    space: tuple[str, ...] = ("write_buffer_size 2..16",),
) -> StudyFolder:
    """The folder of a study, which is described as one is."""
    parts = {
        "workload": WORKLOAD,
        "objective": objective,
        "options": options or {},
        "space": space,
    }
    ways = (objective.direction,)
    return StudyFolder.create_or_resume(path, parts, text=text, directions=ways)


def measurement(outcome: Outcome = Outcome.OK, seed: int = 1) -> Measurement:
    """A Measurement with something in every field."""
    percentiles = {name: float(number) for number, name in enumerate(PERCENTILES, 1)}
    latency = Latency(10, 1.0, 5.5, "HISTFAAAAA", **percentiles)
    step = Interval(0.25, 0.25, 100, 100, 400.0, 5_000_000)
    phase = PhaseMeasurement(
        name="fillrandom",
        kind="measure",
        operation="fillrandom",
        threads=2,
        operations=1000,
        elapsed_s=1.5,
        drain_s=0.5,
        throughput_ops_s=666.7,
        sustained_throughput_ops_s=500.0,
        cut_short=False,
        user_bytes_written=116_000,
        user_bytes_read=0,
        rss_bytes_max=5_000_000,
        database_bytes=70_000,
        started_unix_us=1_795_226_400_000_000,
        finished_unix_us=1_795_226_402_000_000,
        latencies={"put": latency},
        intervals=(step, step),
        write_amplification=1.07,
    )
    return Measurement(
        outcome=outcome,
        engine=ENGINE,
        options={"write_buffer_size": "4194304"},
        workload="fillrandom",
        seed=seed,
        started_unix_s=1_795_226_400.0,
        elapsed_s=2.5,
        phases=(phase,),
        options_not_taken=(OptionNotTaken("max_open_files", "5", "20"),),
        verification=Verification(1000, 0, 0, 0.02),
        intervals_unfinished=(step,),
        error=RunError("unknown_option", "unknown option x", "options.x", "x", None, ("y",)),
        warnings=("one", "two"),
    )
