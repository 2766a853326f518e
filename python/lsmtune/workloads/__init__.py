"""Workloads by name, each a family with parameters, turned into a `Workload` of phases."""

from lsmtune.workloads.advice import size_flags, sizes_for
from lsmtune.workloads.family import Figure, WorkloadFamily
from lsmtune.workloads.make import (
    complete_parameters,
    find_family,
    ignored_parameters,
    make_workload,
)
from lsmtune.workloads.named import NAMED_WORKLOADS, NamedWorkload
from lsmtune.workloads.parameter import WorkloadParameter
from lsmtune.workloads.parameters import WORKLOAD_PARAMETERS
from lsmtune.workloads.registry import FAMILIES, WORKLOAD_NAMES

__all__ = [
    "FAMILIES",
    "NAMED_WORKLOADS",
    "WORKLOAD_NAMES",
    "WORKLOAD_PARAMETERS",
    "Figure",
    "NamedWorkload",
    "WorkloadFamily",
    "WorkloadParameter",
    "complete_parameters",
    "find_family",
    "ignored_parameters",
    "make_workload",
    "size_flags",
    "sizes_for",
]
