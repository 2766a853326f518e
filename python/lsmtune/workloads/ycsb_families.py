"""The workloads of YCSB by name: the core workload as such, and its six settings A to F."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from typing import Any

from lsmtune.workloads.family import WorkloadFamily
from lsmtune.workloads.ycsb import NAME, prepare_properties, ycsb_workload
from lsmtune.workloads.ycsb_properties import ALSO, IGNORED, REFUSED, YCSB_PARAMETERS

# As in the files workloads/workloada to workloadf of both programs; their counts are YCSB-cpp's.
_CORE: Mapping[str, tuple[str, Mapping[str, Any]]] = {
    "a": (
        "update heavy: half reads, half updates",
        {"readproportion": 0.5, "updateproportion": 0.5},
    ),
    "b": ("read mostly: 95 % reads, 5 % updates", {}),
    "c": ("read only", {"readproportion": 1.0, "updateproportion": 0.0}),
    "d": (
        "read latest: 95 % reads of new records, 5 % inserts",
        {"updateproportion": 0.0, "insertproportion": 0.05, "requestdistribution": "latest"},
    ),
    "e": (
        "short ranges: 95 % scans of up to 100 records, 5 % inserts",
        {
            "readproportion": 0.0,
            "updateproportion": 0.0,
            "scanproportion": 0.95,
            "insertproportion": 0.05,
            "maxscanlength": 100,
        },
    ),
    "f": (
        "read-modify-write: half reads, half reads that write back",
        {"readproportion": 0.5, "updateproportion": 0.0, "readmodifywriteproportion": 0.5},
    ),
}


def core_properties(letter: str) -> dict[str, Any]:
    """The properties by which core workload `letter`, `a` to `f`, differs from the defaults."""
    return {"requestdistribution": "zipfian", **_CORE[letter][1]}


def ycsb_family(name: str, description: str, defaults: Mapping[str, Any]) -> WorkloadFamily:
    """A family of the core workload whose properties have other `defaults`."""
    return WorkloadFamily(
        name=name,
        description=description,
        parameters={
            key: replace(parameter, default=defaults.get(key, parameter.default))
            for key, parameter in YCSB_PARAMETERS.items()
        },
        build=partial(ycsb_workload, name),
        no_effect=REFUSED,
        ignored=IGNORED,
        also=ALSO,
        prepare=prepare_properties,
        sizes=("recordcount", "operationcount"),
    )


YCSB_FAMILIES = (
    ycsb_family(NAME, "YCSB's core workload, by its own properties", {}),
    *(
        ycsb_family(
            f"{NAME}-{letter}",
            f"YCSB's workload {letter.upper()}, {about}",
            core_properties(letter),
        )
        for letter, (about, _) in _CORE.items()
    ),
)
