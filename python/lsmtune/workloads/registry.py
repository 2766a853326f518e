"""The families of workloads by name, in the order in which they are listed."""

from __future__ import annotations

from lsmtune.workloads.contest import CONTEST
from lsmtune.workloads.db_bench import DB_BENCH_FAMILIES
from lsmtune.workloads.production import PRODUCTION_FAMILIES
from lsmtune.workloads.ycsb_families import YCSB_FAMILIES

_FAMILIES = (
    *DB_BENCH_FAMILIES,
    *YCSB_FAMILIES,
    CONTEST,
    *PRODUCTION_FAMILIES,
)

FAMILIES = {family.name: family for family in _FAMILIES}
WORKLOAD_NAMES = tuple(FAMILIES)
