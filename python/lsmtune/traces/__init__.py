"""RocksDB's query traces: what they hold, and the workloads that are like them."""

from lsmtune.traces.ask import RANGES_DEFAULT, RANGES_MAX, inspect_trace
from lsmtune.traces.fit import TraceFit, fit_trace
from lsmtune.traces.part import FittedPart
from lsmtune.traces.replay import replay_workload
from lsmtune.traces.summary import TraceSummary, trace_summary
from lsmtune.traces.wishes import Wishes

__all__ = [
    "RANGES_DEFAULT",
    "RANGES_MAX",
    "FittedPart",
    "TraceFit",
    "TraceSummary",
    "Wishes",
    "fit_trace",
    "inspect_trace",
    "replay_workload",
    "trace_summary",
]
