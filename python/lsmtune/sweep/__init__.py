"""Sweeps: any grid of workload parameters and option values, measured and laid side by side."""

from lsmtune.sweep.axes import Axis, AxisKind
from lsmtune.sweep.grid import GridCell, grid
from lsmtune.sweep.load import BUILT_IN, built_in, load_sweep, parse_sweep, sweep_json_schema
from lsmtune.sweep.plan import Sweep, SweepWorkload
from lsmtune.sweep.result import SweepResult
from lsmtune.sweep.summary import summarise

__all__ = [
    "BUILT_IN",
    "Axis",
    "AxisKind",
    "GridCell",
    "Sweep",
    "SweepResult",
    "SweepWorkload",
    "built_in",
    "grid",
    "load_sweep",
    "parse_sweep",
    "summarise",
    "sweep_json_schema",
]
