"""The `workload` of a study file: by name and parameters, with files of properties, or a file.

workload: {name: ycsb-a, recordcount: 100000}
workload: {name: ycsb, properties: [workloada, local.properties], threadcount: 4}
workload: {file: nights.yaml}
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

from pydantic import BeforeValidator

from lsmtune.engines.properties import Properties, properties_of
from lsmtune.errors import InputError
from lsmtune.model.fields import found_text, refused
from lsmtune.workloads.file import SUFFIXES, load_workload_file
from lsmtune.workloads.stated import ENGINE_PREFIXES, WORKLOAD_NAMES, Stated, state_workload
from lsmtune.workloads.ycsb import NAME as YCSB


def _workload(value: object) -> object:
    if not isinstance(value, dict):
        raise refused("a mapping of fields")
    name = value.get("name")
    if not isinstance(name, str) and "file" not in value:
        raise refused(", ".join(WORKLOAD_NAMES), "name", found=found_text(name))
    return value


WorkloadFields = Annotated[dict[str, Any], BeforeValidator(_workload)]


# --- From the fields of a study file to a workload.

FILE, PROPERTIES = "file", "properties"
WORDS = ("name", FILE, PROPERTIES)


def workload_fields(fields: Mapping[str, Any], folder: Path, source: str) -> Stated:
    """The workload that `fields` state; files are from `folder`.

    Raises InputError whose source is `source` for what the fields have wrong, and a file's name
    for what that has wrong.
    """
    parameters = {name: value for name, value in fields.items() if name not in WORDS}
    file = fields.get(FILE)
    if file is None:
        stated = fields.get(PROPERTIES, [])
        names = [stated] if isinstance(stated, str) else stated
        if not isinstance(names, list) or not all(isinstance(name, str) and name for name in names):
            allowed = "the path of a file of properties, or a list of them"
            raise InputError(source, PROPERTIES, found=stated, allowed=allowed)
        properties = properties_of([folder / name for name in names], {})
        return state_workload(fields["name"], parameters, source, properties)
    if not isinstance(file, str) or not file:
        raise InputError(source, FILE, found=file, allowed="the path of a workload file")
    if "name" in fields:
        why = "stands beside file, which has a name"
        raise InputError(source, "name", found=fields["name"], why=why, allowed="one of them")
    return workload_from_file(folder / file, parameters, source)


def workload_from_file(
    path: Path, parameters: Mapping[str, object], source: str, properties: Properties | None = None
) -> Stated:
    """The workload of a workload file (YAML), or of a file of YCSB properties.

    Only the latter has `parameters`, and `properties` over its own. Raises InputError as
    `workload_fields` does.
    """
    if path.suffix not in SUFFIXES:
        own = {**properties_of([path], {}), **(properties or {})}
        return state_workload(YCSB, parameters, source, own)
    why = f"has no effect on {path}, a workload file: change it there"
    for name in parameters:
        raise InputError(source, name, why=why)
    for name, stated in (properties or {}).items():
        if not name.startswith(ENGINE_PREFIXES):
            raise InputError(stated.where, name, found=stated.value, why=why)
    return Stated(load_workload_file(path), engine=properties or {})
