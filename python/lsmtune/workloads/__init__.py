"""Named workloads, turned into a `Workload` of phases with db_bench's semantics."""

from lsmtune.workloads.make import complete_parameters, make_workload
from lsmtune.workloads.named import NAMED_WORKLOADS, WORKLOAD_NAMES, NamedWorkload
from lsmtune.workloads.parameters import WORKLOAD_PARAMETERS, WorkloadParameter

__all__ = [
    "NAMED_WORKLOADS",
    "WORKLOAD_NAMES",
    "WORKLOAD_PARAMETERS",
    "NamedWorkload",
    "WorkloadParameter",
    "complete_parameters",
    "make_workload",
]
