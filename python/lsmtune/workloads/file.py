"""The parts of a workload as JSON: what workload files and the driver's requests state alike.

What has its default value is left out. `stated` gives a distribution, which a file may shorten and
a request may not.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import yaml
from pydantic import ValidationError

from lsmtune.errors import InputError
from lsmtune.model.files import Document, FileKind, first_problem, parse_document, read_text
from lsmtune.model.workload import (
    Companion,
    Distribution,
    Durability,
    Mix,
    PageCache,
    Phase,
    PhaseKind,
    Replay,
    SineRate,
    StepRate,
    Workload,
    YcsbKeys,
)
from lsmtune.workloads.distributions import distribution_document
from lsmtune.workloads.file_build import build_workload
from lsmtune.workloads.file_models import WorkloadFileModel

Json = dict[str, Any]
Stated = Callable[[Distribution], Any]


def where_given(**fields: object) -> Json:
    """The `fields` that are not None, in the order given."""
    return {name: value for name, value in fields.items() if value is not None}


def keys_document(keys: YcsbKeys | None) -> Json | None:
    """How keys are built; None for db_bench's numbers."""
    if keys is None:
        return None
    return {
        "format": "ycsb",
        "prefix": keys.prefix,
        "zero_padding": keys.zero_padding,
        "order": keys.order.value,
    }


def doing_document(phase: Phase, stated: Stated) -> Json:
    """What `phase` does, how much of it, at which rate and beside whom; not who it is."""
    return where_given(
        operation=phase.operation,
        mix=_mix(phase.mix, stated),
        replay=None if phase.replay is None else _replay(phase.replay),
        operations=phase.operations,
        operations_per_thread=phase.operations_per_thread,
        duration_s=phase.duration_s,
        threads=_several(phase.threads),
        rate_ops_s=phase.rate_ops_s,
        rate=_rate(phase.rate),
        seek_nexts=phase.seek_nexts or None,
        companions=[_companion(companion, stated) for companion in phase.companions] or None,
    )


def _several(count: int) -> int | None:
    return None if count == 1 else count


def _replay(replay: Replay) -> Json:
    return {"path": replay.path, **where_given(speed=replay.speed)}


def _mix(mix: Mix | None, stated: Stated) -> Json | None:
    if mix is None:
        return None
    lengths, sizes = mix.scan_lengths, mix.value_sizes
    return {
        "operations": dict(mix.operations),
        "keys": stated(mix.keys),
        "records": mix.records,
        **where_given(
            first=mix.first or None,
            insert_from=mix.insert_from,
            scan_lengths=lengths and stated(lengths),
            value_sizes=sizes and stated(sizes),
            operation_by_key=mix.operation_by_key,
        ),
    }


def _rate(rate: SineRate | StepRate | None) -> Json | None:
    match rate:
        case None:
            return None
        case StepRate():
            return {"shape": "steps", "steps": [list(step) for step in rate.steps]}
        case SineRate():
            return {
                "shape": "sine",
                "mean_ops_s": rate.mean_ops_s,
                "amplitude_ops_s": rate.amplitude_ops_s,
                "period_s": rate.period_s,
                **where_given(offset_s=rate.offset_s or None),
            }


def _companion(companion: Companion, stated: Stated) -> Json:
    return {
        "name": companion.name,
        **where_given(
            operation=companion.operation,
            mix=_mix(companion.mix, stated),
            threads=_several(companion.threads),
            rate_ops_s=companion.rate_ops_s,
        ),
    }


# ----------
# Workload files: text to Workload, and the JSON Schema of what they may hold.

WORKLOAD_FILE = FileKind("workload", "`lsmtune workload export` writes one")
SUFFIXES = (".yaml", ".yml")


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
    try:
        model = WorkloadFileModel.model_validate(document.data)
    except ValidationError as error:
        problem = first_problem(error, document, WorkloadFileModel)
        raise _with_line(problem, document) from None
    try:
        return build_workload(model, document.source, path.parent)
    except InputError as error:
        raise _with_line(error, document) from None


def workload_file_schema() -> dict[str, Any]:
    """The JSON Schema (Draft 2020-12) of workload files."""
    schema = WorkloadFileModel.model_json_schema(mode="validation")
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **schema}


def _with_line(error: InputError, document: Document) -> InputError:
    return InputError(
        document.where(error.field),
        error.field,
        found=error.found,
        allowed=error.allowed,
        nearest=error.nearest,
        why=error.why,
    )


# ----------
# A Workload as the text of a workload file: the inverse of reading one.

_WIDTH = 100


def workload_text(workload: Workload, comments: Sequence[str] = ()) -> str:
    """The workload file that reads as `workload`, after `comments`, a line each."""
    head = "".join(f"# {' '.join(comment.split())}\n" for comment in comments)
    body = yaml.dump(workload_document(workload), Dumper=_Dumper, sort_keys=False, width=_WIDTH)
    return head + body


def workload_document(workload: Workload) -> Json:
    """What a workload file says of `workload`; what has its default value is left out."""
    sizes = workload.key_sizes
    several = {"databases": workload.databases, "column_families": workload.column_families}
    return {
        "version": 1,
        "name": workload.name,
        "num": workload.num,
        **({} if workload.keys is not None else {"key_bytes": workload.key_bytes}),
        "value_bytes": workload.value_bytes,
        "compression_ratio": workload.compression_ratio,
        **where_given(
            durability=_unless(workload.durability, Durability.WAL),
            page_cache=_unless(workload.page_cache, PageCache.WARM),
            keys=keys_document(workload.keys),
            key_sizes=sizes and _stated(sizes),
            **{name: count for name, count in several.items() if count != 1},
        ),
        "phases": [_phase(phase) for phase in workload.phases],
    }


def _unless(value: Durability | PageCache, default: object) -> str | None:
    return None if value is default else value.value


def _stated(distribution: Distribution) -> Any:
    return distribution_document(distribution) if distribution.parameters else distribution.name


def _phase(phase: Phase) -> Json:
    named = {"name": phase.name, "kind": phase.kind.value}
    if phase.kind is PhaseKind.SETTLE:
        return named
    return named | doing_document(phase, _stated)


class _Dumper(yaml.SafeDumper):
    """Short mappings and lists on one line each, as people write them."""


def _represent(dumper: _Dumper, value: dict[str, Any] | list[Any], *, mapping: bool) -> yaml.Node:
    flow = len(str(value)) < _WIDTH - 30 and "phases" not in value
    if mapping:
        return dumper.represent_mapping("tag:yaml.org,2002:map", value, flow_style=flow)
    return dumper.represent_sequence("tag:yaml.org,2002:seq", value, flow_style=flow)


_Dumper.add_representer(dict, lambda dumper, value: _represent(dumper, value, mapping=True))
_Dumper.add_representer(list, lambda dumper, value: _represent(dumper, value, mapping=False))
