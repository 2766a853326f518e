"""Measurements and programs that tests make up."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from lsmtune.experiment.store import MeasurementStore, Role, StoredMeasurement
from lsmtune.model.config import Config
from lsmtune.model.measurement import Measurement, PhaseMeasurement


def write_program(path: Path, text: str) -> Path:
    """`text` as a program: Python, which needs no package."""
    path.write_text(f"#!{sys.executable} -S\n{text}")
    path.chmod(0o755)
    return path


def made_up_phase(name: str = "fillrandom", **fields: Any) -> PhaseMeasurement:
    """A measure phase of one second with one operation; `fields` are those that a test is about.

    What is sustained is the throughput unless `fields` say otherwise.
    """
    throughput_ops_s = fields.get("throughput_ops_s", 1.0)
    others: dict[str, Any] = {
        "kind": "measure",
        "operation": name,
        "threads": 1,
        "operations": 1,
        "elapsed_s": 1.0,
        "drain_s": 0.0,
        "throughput_ops_s": throughput_ops_s,
        "sustained_throughput_ops_s": throughput_ops_s,
        "cut_short": False,
        "user_bytes_written": 0,
        "user_bytes_read": 0,
        "rss_bytes_max": 1,
        "database_bytes": 1,
        "started_unix_us": 0,
        "finished_unix_us": 1,
    }
    return PhaseMeasurement(name=name, **others | fields)


def add_run(
    store: MeasurementStore,
    role: Role,
    measurement: Measurement,
    *,
    config: Config,
    wall_s: float | None = None,
    trial: int | None = None,
    pair: int | None = None,
    **place: Any,
) -> int:
    """Store a run and return its id; `wall_s` None is the time of the run itself."""
    wall_s = measurement.elapsed_s if wall_s is None else wall_s
    run = StoredMeasurement(0, role, trial, pair, config, measurement, wall_s, **place)
    return store.insert(run).id
