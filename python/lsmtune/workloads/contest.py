"""The workload of the DKU tuning contest: YCSB's Load A, Run A, Run B and Run D, one after another.

From DKU-StarLab/leveldb-study, `tuning/`: one database of 2,000,000 records through all four, with
2,000,000 operations in each run. Every one of them is measured, the load as well.
"""

from __future__ import annotations

from dataclasses import replace

from lsmtune.records.workload import Phase, PhaseKind, Workload
from lsmtune.workloads.family import Given, WorkloadFamily
from lsmtune.workloads.ycsb import (
    load_mix,
    prepare_properties,
    run_phase,
    ycsb_data,
)
from lsmtune.workloads.ycsb_families import core_properties
from lsmtune.workloads.ycsb_properties import (
    ALSO,
    DATA_PROPERTIES,
    IGNORED,
    OPERATIONS,
    OWN_PARAMETERS,
    RECORDS,
    THREADS,
    YCSB_PARAMETERS,
)

NAME = "contest"
RUNS = ("a", "b", "d")
_COUNT = 2_000_000
_PARAMETERS = (
    replace(RECORDS, default=_COUNT),
    replace(OPERATIONS, default=_COUNT, description="operations of each run, over all threads"),
    THREADS,
    *DATA_PROPERTIES,
    *OWN_PARAMETERS,
)


def _build(given: Given, source: str) -> Workload:
    defaults = {name: parameter.default for name, parameter in YCSB_PARAMETERS.items()}
    data = {**defaults, **given}
    load = Phase(
        "load-a",
        PhaseKind.MEASURE,
        mix=load_mix(data, source),
        operations=data["recordcount"],
        threads=data["threadcount"],
    )
    runs = [
        run_phase(f"run-{letter}", {**data, **core_properties(letter)}, source) for letter in RUNS
    ]
    return ycsb_data(NAME, (load, *runs), data, source)


CONTEST = WorkloadFamily(
    name=NAME,
    description="Load A, Run A, Run B and Run D of YCSB on one database, all measured",
    parameters={parameter.name: parameter for parameter in _PARAMETERS},
    build=_build,
    no_effect={
        name: "its four phases have properties of their own"
        for name in YCSB_PARAMETERS
        if name not in {parameter.name for parameter in _PARAMETERS}
    },
    ignored=IGNORED,
    also=ALSO,
    prepare=prepare_properties,
    sizes=("recordcount", "operationcount"),
)
