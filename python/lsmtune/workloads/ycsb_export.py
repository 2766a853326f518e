"""A workload of YCSB as a file of its properties, which both YCSB and YCSB-cpp read."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from lsmtune.errors import InputError
from lsmtune.workloads.ycsb_properties import (
    OWN_PARAMETERS,
    WORKLOAD_CLASSES,
    YCSB_PARAMETERS,
)

_ALWAYS = (
    "recordcount",
    "operationcount",
    "readproportion",
    "updateproportion",
    "scanproportion",
    "insertproportion",
    "readmodifywriteproportion",
    "requestdistribution",
)
# YCSB-cpp has another name for it; each program passes over the other's.
_ALSO = {"fieldlengthdistribution": "field_len_dist", "target": "limit.ops"}


def properties_text(name: str, parameters: Mapping[str, Any], source: str) -> str:
    """The file's text for the `parameters` of workload `name`.

    Raises InputError for a workload that is not load and run of YCSB, and for parameters that are
    not YCSB's.
    """
    if not YCSB_PARAMETERS.keys() <= parameters.keys():
        allowed = "a workload of YCSB; --format yaml for all"
        why = "is not one load and one run of YCSB"
        raise InputError(source, found=name, why=why, allowed=allowed)
    own = {parameter.name: parameter.default for parameter in OWN_PARAMETERS}
    for key, default in own.items():
        if parameters[key] != default:
            allowed = f"{default}, without which YCSB cannot say it; --format yaml for all"
            raise InputError(source, key, found=parameters[key], allowed=allowed)
    lines = [f"# {name}, written by lsmtune", f"workload={WORKLOAD_CLASSES[0]}", ""]
    for key, parameter in YCSB_PARAMETERS.items():
        value = parameters[key]
        if key in own or (key not in _ALWAYS and value == parameter.default):
            continue
        lines.append(f"{key}={_text(value)}")
        if key in _ALSO:
            lines.append(f"{_ALSO[key]}={_text(value)}")
    return "\n".join(lines) + "\n"


def _text(value: object) -> str:
    if isinstance(value, float) and value == int(value):
        return str(int(value))  # both programs read the target with a reader of whole numbers
    return str(value)
