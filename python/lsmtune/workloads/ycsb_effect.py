"""Which properties of YCSB have no effect beside the others, and what else is to be said."""

from __future__ import annotations

import math
from collections.abc import Mapping

from lsmtune.workloads.family import Given
from lsmtune.workloads.ycsb_properties import ALIASES

PROPORTIONS = (
    "readproportion",
    "updateproportion",
    "insertproportion",
    "scanproportion",
    "readmodifywriteproportion",
)
_OF_SCANS = ("minscanlength", "maxscanlength", "scanlengthdistribution")
# Properties that only one request distribution looks at.
_OF_REQUESTS = {
    "zipfian_const": "zipfian",
    "hotspotdatafraction": "hotspot",
    "hotspotopnfraction": "hotspot",
    "exponential.percentile": "exponential",
    "exponential.frac": "exponential",
}


def without_effect(given: Mapping[str, object], complete: Given) -> tuple[tuple[str, str], ...]:
    """Properties in `given` that have no effect beside all others, `complete`, and why."""
    idle = {
        **_idle_of_fields(complete),
        **_idle_of_scans(complete),
        **_idle_of_requests(complete),
    }
    names = ((name, ALIASES.get(name, name)) for name in given)
    return tuple((name, idle[own]) for name, own in names if own in idle)


def _idle_of_fields(complete: Given) -> dict[str, str]:
    kind = complete.get("fieldlengthdistribution")
    if kind is None:
        return {}
    why = f"fieldlengthdistribution is {kind}"
    if kind == "histogram":
        return {"fieldlength": why, "minfieldlength": why}
    idle = {"fieldlengthhistogram": f"{why}, not histogram"}
    return idle | ({"minfieldlength": why} if kind == "constant" else {})


def _idle_of_scans(complete: Given) -> dict[str, str]:
    if complete.get("scanproportion", 1):
        return {}
    return dict.fromkeys(_OF_SCANS, "scanproportion is 0")


def _idle_of_requests(complete: Given) -> dict[str, str]:
    requests = complete.get("requestdistribution")
    if requests is None:
        return {}
    if not any(complete[name] for name in PROPORTIONS if name != "insertproportion"):
        why = "inserts alone choose no record"
        return dict.fromkeys(("requestdistribution", *_OF_REQUESTS), why)
    return {
        name: f"requestdistribution is {requests}, not {of}"
        for name, of in _OF_REQUESTS.items()
        if requests != of
    }


def proportions_remark(given: Mapping[str, object], complete: Given) -> str:
    """What is said of stated proportions that do not add up to 1; empty if they do."""
    if not any(name in given for name in PROPORTIONS):
        return ""
    total = sum(complete[name] for name in PROPORTIONS)
    if math.isclose(total, 1, rel_tol=1e-9):
        return ""
    return f"proportions add up to {total:g}: each counts as its part of that"
