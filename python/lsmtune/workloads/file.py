"""Workload files: text to Workload, the checks that span several fields, and Workload to text.

`model.workload` has the fields themselves, and what is allowed in each.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import InitVar, dataclass, field, fields, replace
from pathlib import Path
from typing import Annotated, Any

import yaml
from pydantic import BeforeValidator

from lsmtune.engines.properties import Properties, over, properties_of
from lsmtune.errors import FieldError, InputError
from lsmtune.model.distribution import ITEMS_PER_RECORD_MAX, WEIGHT_MAX, Distribution
from lsmtune.model.fields import Version, described, found_text, refused
from lsmtune.model.files import FLOAT, FileKind, parse_document, read_as, read_text
from lsmtune.model.workload import (
    KEY_BYTES_MIN,
    VALUE_BYTES_MAX,
    Companion,
    KeyOrder,
    Mix,
    Phase,
    PhaseKind,
    Phases,
    SineRate,
    Workload,
    stated_parts,
)
from lsmtune.workloads.distributions import largest_size, mean_size, smallest_size
from lsmtune.workloads.stated import ENGINE_PREFIXES, WORKLOAD_NAMES, Stated, state_workload
from lsmtune.workloads.ycsb import HASH_DIGITS
from lsmtune.workloads.ycsb import NAME as YCSB

WORKLOAD_FILE = FileKind("workload", "`lsmtune workload export` writes one")
SUFFIXES = (".yaml", ".yml")


@dataclass(frozen=True)
class WorkloadFile(Workload):
    """A workload file of lsmtune: a list of phases on one database."""

    version: InitVar[Annotated[Version, described("1, the version of this file format")]] = field(
        kw_only=True
    )
    # By keyword alone, and so the last that is read and missed, as it stands last in a file.
    phases: Phases = field(kw_only=True)
    about: InitVar[Annotated[str | None, described("what it is, for its readers")]] = field(
        default=None, kw_only=True
    )


def load_workload_file(path: Path) -> Workload:
    """The Workload of the workload file at `path`.

    Raises `InputError`, which names the file, the line and the field, for the first thing that is
    wrong.
    """
    return parse_workload_file(read_text(path, WORKLOAD_FILE), path)


def parse_workload_file(text: str, path: Path) -> Workload:
    """The Workload of a workload file's `text`; `path` is where the file is, or will be.

    Raises `InputError` as `load_workload_file` does.
    """
    document = parse_document(text, str(path), WORKLOAD_FILE)
    stated = read_as(WorkloadFile, document)
    try:
        return _completed(stated, document.data, path.parent)
    except InputError as error:
        raise document.located(error) from None


# --- What follows from other fields, and what may not stand beside them. Errors have no source yet.

_FILLS = frozenset({"fillseq", "filluniquerandom"})
_CHANGE_NUMBERS = frozenset({"insert", "delete_oldest"})
# Operations that choose a key among those that exist.
_CHOOSE = frozenset({"get", "put", "update", "read_modify_write", "scan", "delete", "merge"})
# Operations that write a value of a size that is drawn.
_WRITE = frozenset({"put", "insert", "update", "read_modify_write", "merge"})
# Distributions that need keys which stay: the driver has no other order of them.
_OF_KEYS_THAT_STAY = frozenset({"scrambled_zipfian", "power", "ranges"})
_HAS_A_WRITER = "readwhilewriting"
_SIZES_OF_A_PHASE = ("operations", "operations_per_thread", "duration_s")
_NOT_OF_SETTLE = (
    *("operation", "mix", "replay", *_SIZES_OF_A_PHASE),
    *("rate_ops_s", "rate", "companions", "seek_nexts"),
)
_ONLY_WAITS = "has no effect: a settle phase only waits"


def _completed(stated: Workload, data: Mapping[str, Any], folder: Path) -> Workload:
    """`stated`, read from `data`, with what its fields leave to others; paths are from `folder`."""
    phases: list[Phase] = []
    records: int | None = 0
    for index, phase in enumerate(stated.phases):
        where = f"phases[{index}]"
        if phase.name in [before.name for before in phases]:
            raise FieldError(f"{where}.name", found=phase.name, why="the same name twice")
        _check_phase(phase, where)
        phases.append(_phase(phase, data["phases"][index], records, where, folder))
        records = _records_after(phases[-1], stated.num, records)
    if all(phase.kind is not PhaseKind.MEASURE for phase in phases):
        raise FieldError("phases", why="none of them is measured", allowed="one of kind measure")
    if stated.keys is not None and "format" not in data["keys"]:
        raise FieldError("keys.format", why="missing", allowed="ycsb")
    if stated.key_sizes is not None and stated.keys is not None:
        raise FieldError("key_sizes", why="has no effect: keys have their own length")
    # The mean of the first sizes that a mix states, where the file does not say it.
    sizes = [p.mix.value_sizes for p in phases if p.mix is not None and p.mix.value_sizes]
    is_given = data.get("value_bytes") is not None or not sizes
    # Empty values have a mean of 0, which a file cannot state.
    value_bytes = stated.value_bytes if is_given else max(1, round(mean_size(sizes[0])))
    return Workload(
        **{part.name: getattr(stated, part.name) for part in fields(stated)}
        | {
            "phases": tuple(phases),
            "key_bytes": _key_bytes(stated, data.get("key_bytes") is not None),
            "value_bytes": value_bytes,
        }
    )


def _check_phase(phase: Phase, where: str) -> None:
    if phase.kind is PhaseKind.SETTLE:
        for name in _NOT_OF_SETTLE:
            if getattr(phase, name):
                raise FieldError(f"{where}.{name}", why=_ONLY_WAITS)
        if phase.threads != 1:
            raise FieldError(f"{where}.threads", found=phase.threads, why=_ONLY_WAITS)
        return
    _check_doing(phase, ("operation", "mix", "replay"), where)
    if phase.seek_nexts and phase.operation != "seekrandom" and phase.replay is None:
        why = "has no effect without operation: seekrandom, or a replay"
        raise FieldError(f"{where}.seek_nexts", why=why)
    _refuse_both(phase, "operations", "operations_per_thread", where)
    if phase.replay is None and all(getattr(phase, name) is None for name in _SIZES_OF_A_PHASE):
        allowed = f"one of {', '.join(_SIZES_OF_A_PHASE)}"
        raise FieldError(where, why="has no size", allowed=allowed)
    _refuse_both(phase, "rate_ops_s", "rate", where)
    if isinstance(phase.rate, SineRate) and phase.rate.amplitude_ops_s > phase.rate.mean_ops_s:
        field, allowed = "rate.amplitude_ops_s", f"at most mean_ops_s, {phase.rate.mean_ops_s:g}"
        raise FieldError(f"{where}.{field}", found=phase.rate.amplitude_ops_s, allowed=allowed)
    if phase.replay is not None and (phase.rate is not None or phase.rate_ops_s is not None):
        name = "rate" if phase.rate is not None else "rate_ops_s"
        why = "has no effect: a trace has its own pace"
        raise FieldError(f"{where}.{name}", why=why, allowed="speed")
    _check_companions(phase, where)


def _check_companions(phase: Phase, where: str) -> None:
    if phase.companions and (phase.replay is not None or phase.operation == _HAS_A_WRITER):
        why = "has its writer" if phase.replay is None else "replays a trace"
        raise FieldError(f"{where}.companions", why=f"stand in a phase that {why}", allowed="none")
    for index, companion in enumerate(phase.companions):
        beside = f"{where}.companions[{index}]"
        _check_doing(companion, ("operation", "mix"), beside)
        if companion.operation == _HAS_A_WRITER:
            allowed = "readrandom, and a companion that writes"
            raise FieldError(f"{beside}.operation", found=_HAS_A_WRITER, allowed=allowed)
        if companion.name in [other.name for other in phase.companions[:index]]:
            why = "the same name twice"
            raise FieldError(f"{beside}.name", found=companion.name, why=why)


def _check_doing(doer: Phase | Companion, ways: Sequence[str], where: str) -> None:
    stated = [name for name in ways if getattr(doer, name) is not None]
    if not stated:
        raise FieldError(where, why="does nothing", allowed=f"one of {', '.join(ways)}")
    _refuse_both(doer, stated[0], stated[-1], where)


def _refuse_both(doer: Phase | Companion, first: str, second: str, where: str) -> None:
    given = first != second and getattr(doer, first) is not None
    if given and getattr(doer, second) is not None:
        why = f"stands beside {first}"
        raise FieldError(f"{where}.{second}", why=why, allowed="one of them")


def _phase(
    phase: Phase, data: Mapping[str, Any], records: int | None, where: str, folder: Path
) -> Phase:
    """`phase`, read from `data`, which begins with `records`; None: they cannot be known."""
    replay = phase.replay
    mix = phase.mix and _mix(phase.mix, data["mix"], records, f"{where}.mix")
    companions = []
    for index, companion in enumerate(phase.companions):
        own = companion.mix
        if own is not None:
            stated, beside = data["companions"][index]["mix"], f"{where}.companions[{index}].mix"
            own = _mix(own, stated, records, beside)
        companions.append(replace(companion, mix=own))
    return replace(
        phase,
        mix=mix,
        replay=replay and replace(replay, path=str(folder / Path(replay.path))),
        companions=tuple(companions),
    )


def _mix(mix: Mix, data: Mapping[str, Any], records: int | None, where: str) -> Mix:
    """`mix` with its number of records; a mix that does not state it finds `records`."""
    names = mix.names
    for name, weight in mix.operations:
        if not 0 < weight <= WEIGHT_MAX:
            allowed = f"a weight above 0, at most {WEIGHT_MAX:g}"
            raise FieldError(f"{where}.operations.{name}", found=weight, allowed=allowed)
    if data.get("records") is not None:
        records = mix.records
    if records is None:
        why = "missing, and how many the phases before leave is not known"
        raise FieldError(f"{where}.records", why=why, allowed="a number of keys")
    if not records and names & _CHOOSE:
        why = f"is 0, and {min(names & _CHOOSE)} needs a key"
        allowed = "a load before it, or more than 0"
        raise FieldError(f"{where}.records", why=why, allowed=allowed)
    if mix.keys != Distribution("uniform") and not names & _CHOOSE:
        why = f"has no effect: {_listed(mix)} draws no key"
        raise FieldError(f"{where}.keys", why=why)
    if mix.value_sizes is not None and not names & _WRITE:
        why = f"has no effect: {_listed(mix)} writes no value"
        raise FieldError(f"{where}.value_sizes", why=why)
    if ("scan" in names) != (mix.scan_lengths is not None):
        why = "missing" if "scan" in names else "has no effect without scan"
        allowed = "entries of a scan, beside scan"
        raise FieldError(f"{where}.scan_lengths", why=why, allowed=allowed)
    if mix.insert_from is not None and "insert" not in names:
        raise FieldError(f"{where}.insert_from", why="has no effect without insert")
    if mix.operation_by_key is not None and not names <= _CHOOSE:
        why = f"stands beside {min(names - _CHOOSE)}, which takes no key that was drawn"
        raise FieldError(f"{where}.operation_by_key", why=why)
    if mix.value_sizes is not None and largest_size(mix.value_sizes) > VALUE_BYTES_MAX:
        largest, allowed = (
            largest_size(mix.value_sizes),
            f"values of at most {VALUE_BYTES_MAX} bytes",
        )
        raise FieldError(f"{where}.value_sizes", found=largest, allowed=allowed)
    if mix.scan_lengths is not None and not smallest_size(mix.scan_lengths):
        raise FieldError(f"{where}.scan_lengths", found=0, allowed="scans of at least 1 entry")
    mix = replace(mix, records=records)
    _check_records(mix, where)
    return mix


def _check_records(mix: Mix, where: str) -> None:
    """What the driver would refuse beside the `records` of `mix`, run by run."""
    keys, records, end = mix.keys, mix.records, mix.first + mix.records
    if keys.name in _OF_KEYS_THAT_STAY and "delete_oldest" in mix.names:
        field, why = f"{where}.keys.distribution", "stands beside delete_oldest"
        allowed = "uniform, sequential, zipfian, latest, hotspot, exponential"
        raise FieldError(field, found=keys.name, why=why, allowed=allowed)
    items, most = keys.get("items"), ITEMS_PER_RECORD_MAX * records
    if isinstance(items, int) and not records <= items <= most:
        allowed = f"{records} (records) to {most}"
        raise FieldError(f"{where}.keys.items", found=items, allowed=allowed)
    ranges = keys.get("ranges")
    if isinstance(ranges, int) and ranges > records:
        allowed = f"at most {records} (records)"
        raise FieldError(f"{where}.keys.ranges", found=ranges, allowed=allowed)
    if mix.insert_from is not None and mix.insert_from < end:
        allowed = f"{end} (first + records) or more"
        raise FieldError(f"{where}.insert_from", found=mix.insert_from, allowed=allowed)


def _listed(mix: Mix) -> str:
    return ", ".join(name for name, _ in mix.operations)


def _records_after(phase: Phase, num: int, before: int | None) -> int | None:
    """Records that exist after `phase`, numbered from 0 on; None where that is left to chance.

    `before` are those that exist when it begins. Keys that are chosen at random may be put or
    deleted: they count as there, as the driver's choosers count them.
    """
    if phase.kind is PhaseKind.SETTLE or phase.replay is not None:
        return before
    if any(_CHANGE_NUMBERS & c.mix.names for c in phase.companions if c.mix is not None):
        return None
    done, mix = phase.operations_whole, phase.mix
    if mix is not None:
        if not mix.names & _CHANGE_NUMBERS:
            return mix.records if mix.first == 0 else None
        alone = mix.names == {"insert"} and phase.duration_s is None and mix.insert_from is None
        return mix.records + done if alone and done is not None and not mix.first else None
    if phase.operation in _FILLS:
        return num if phase.puts_each_of(num) else None
    # Written at random: most keys are there, and readers of all of them expect to miss some.
    return num if phase.operation == "fillrandom" else before


def _key_bytes(stated: Workload, given: bool) -> int:
    """The length of a key: the one that most have with `keys`, the largest with `key_sizes`."""
    if stated.keys is not None:
        if given:
            why = "has no effect: keys have their own length"
            raise FieldError("key_bytes", found=stated.key_bytes, why=why)
        ordered = stated.keys.order is KeyOrder.ORDERED
        digits = len(str(stated.num)) if ordered else HASH_DIGITS
        return len(stated.keys.prefix.encode()) + max(digits, stated.keys.zero_padding)
    sizes = stated.key_sizes
    if sizes is not None and smallest_size(sizes) < KEY_BYTES_MIN:
        allowed = f"keys of at least {KEY_BYTES_MIN} bytes"
        raise FieldError("key_sizes", found=smallest_size(sizes), allowed=allowed)
    largest = 0 if sizes is None else largest_size(sizes)
    key_bytes = stated.key_bytes if given or sizes is None else largest
    least = max(KEY_BYTES_MIN, largest)
    if key_bytes < least:
        field = "key_bytes" if given else "key_sizes"
        raise FieldError(field, found=key_bytes, allowed=f"at least {least} bytes")
    return key_bytes


# --- A Workload as the text of a workload file: the inverse of reading one.

_WIDTH = 100


def workload_text(workload: Workload, comments: Sequence[str] = (), folder: Path = Path()) -> str:
    """The workload file that reads as `workload`, after `comments`, a line each.

    `folder` is where the file will be, from which it names the traces that it replays.
    """
    head = "".join(f"# {' '.join(comment.split())}\n" for comment in comments)
    document = workload_document(workload)
    for replay in (phase["replay"] for phase in document["phases"] if "replay" in phase):
        if not Path(replay["path"]).is_absolute():
            replay["path"] = os.path.relpath(replay["path"], folder)
    body = yaml.dump(document, Dumper=_Dumper, sort_keys=False, width=_WIDTH)
    return head + body


def workload_document(workload: Workload) -> dict[str, Any]:
    """What a workload file says of `workload`."""
    stated = stated_parts(workload)
    if workload.keys is not None:
        del stated["key_bytes"]  # follows from the keys
    return {"version": 1, **stated}


class _Dumper(yaml.SafeDumper):
    """Short mappings and lists on one line each, as people write them."""


def _represent(dumper: _Dumper, value: dict[str, Any] | list[Any], *, mapping: bool) -> yaml.Node:
    flow = len(str(value)) < _WIDTH - 30 and "phases" not in value
    if mapping:
        return dumper.represent_mapping("tag:yaml.org,2002:map", value, flow_style=flow)
    return dumper.represent_sequence("tag:yaml.org,2002:seq", value, flow_style=flow)


def _represent_text(dumper: _Dumper, value: str) -> yaml.Node:
    """In quotes where our reader takes it for a number: `1e5` is one, and to YAML 1.1 it is not."""
    style = "'" if FLOAT.fullmatch(value) else None
    return dumper.represent_scalar("tag:yaml.org,2002:str", value, style=style)


_Dumper.add_representer(str, _represent_text)
_Dumper.add_representer(dict, lambda dumper, value: _represent(dumper, value, mapping=True))
_Dumper.add_representer(list, lambda dumper, value: _represent(dumper, value, mapping=False))


# --- The `workload` of a study file: by name and parameters, with files of properties, or a file.
#
# workload: {name: ycsb-a, recordcount: 100000}
# workload: {name: ycsb, properties: [workloada, local.properties], threadcount: 4}
# workload: {file: nights.yaml}


def _workload(value: object) -> object:
    if not isinstance(value, dict):
        raise refused("a mapping of fields")
    name = value.get("name")
    if not isinstance(name, str) and value.get("file") is None:
        raise refused(", ".join(WORKLOAD_NAMES), "name", found=found_text(name))
    return value


WorkloadFields = Annotated[dict[str, Any], BeforeValidator(_workload)]


# --- From the fields of a study file to a workload.

FILE, PROPERTIES = "file", "properties"
WORDS = ("name", FILE, PROPERTIES)


def workload_fields(
    fields: Mapping[str, Any], folder: Path, source: str, engine_name: str = ""
) -> Stated:
    """The workload that `fields` state; files are from `folder`, `engine_name` of `state_workload`.

    Raises InputError whose source is `source` for what the fields have wrong, and a file's name
    for what that has wrong.
    """
    parameters = {name: value for name, value in fields.items() if name not in WORDS}
    stated = fields.get(PROPERTIES, [])
    names = [stated] if isinstance(stated, str) else stated
    if not isinstance(names, list) or not all(isinstance(name, str) and name for name in names):
        allowed = "the path of a file of properties, or a list of them"
        raise InputError(source, PROPERTIES, found=stated, allowed=allowed)
    properties = properties_of([folder / name for name in names], {})
    file = fields.get(FILE)
    if file is None:
        name = fields["name"]
        return state_workload(name, parameters, source, properties, folder, engine_name)
    if not isinstance(file, str) or not file:
        raise InputError(source, FILE, found=file, allowed="the path of a workload file")
    if "name" in fields:
        why = "stands beside file, which has a name"
        raise InputError(source, "name", found=fields["name"], why=why, allowed="one of them")
    return workload_from_file(folder / file, parameters, source, properties, folder, engine_name)


def workload_from_file(
    path: Path,
    parameters: Mapping[str, object],
    source: str,
    properties: Properties | None = None,
    folder: Path = Path(),
    engine_name: str = "",
) -> Stated:
    """The workload of a workload file (YAML), or of a file of YCSB properties.

    Only the latter has `parameters`, and `properties` over its own; a file that one of these names
    is from `folder`. `engine_name` is that of `state_workload`. Raises InputError as
    `workload_fields` does.
    """
    if path.suffix not in SUFFIXES:
        own = over(properties_of([path], {}), properties or {})
        return state_workload(YCSB, parameters, source, own, folder, engine_name)
    why = f"has no effect on {path}, a workload file: change it there"
    for name in parameters:
        raise InputError(source, name, why=why)
    for name, stated in (properties or {}).items():
        if not name.startswith(ENGINE_PREFIXES):
            raise InputError(stated.where, name, found=stated.value, why=why)
    return Stated(load_workload_file(path), engine=properties or {})
