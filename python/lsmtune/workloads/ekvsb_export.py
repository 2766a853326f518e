"""A workload as tasks of ekvsb, drawn one after another from a seed."""

from __future__ import annotations

import json
from collections.abc import Iterator
from math import gcd
from random import Random

from lsmtune.errors import InputError
from lsmtune.records.workload import Distribution, Mix, Phase, PhaseKind, Workload
from lsmtune.workloads.draw import chooser, key_text, size_chooser, weighted
from lsmtune.workloads.ekvsb import Task

_METHODS = {"put": "PUT", "get": "GET", "delete": "DELETE"}
# What ekvsb has no task for, and what stands in its place.
_AS_TASKS = {
    "get": ("get",),
    "put": ("put",),
    "delete": ("delete",),
    "update": ("get", "put"),
    "read_modify_write": ("get", "get", "put"),
    "merge": ("put",),
}
_LOOPS = {
    "fillseq": ("put", "each"),
    "filluniquerandom": ("put", "shuffled"),
    "fillrandom": ("put", "drawn"),
    "overwrite": ("put", "drawn"),
    "readseq": ("get", "each"),
    "readuniquerandom": ("get", "shuffled"),
    "readrandom": ("get", "drawn"),
    "readhot": ("get", "hot"),
    "readmissing": ("get", "missing"),
    "deleterandom": ("delete", "drawn"),
    "deleteuniquerandom": ("delete", "shuffled"),
}
_ALLOWED = "phases of puts, gets and deletes, with a number of operations"


def lines_of(workload: Workload, seed: int, source: str) -> Iterator[str]:
    """The file's text, line after line; memory does not grow with the number of tasks.

    Raises InputError, naming `source`, for what ekvsb has no task for.
    """
    _check(workload, source)
    opening = "["
    for task in tasks_of(workload, seed, source):
        stated: dict[str, object] = {"key": task.key}
        if task.value_bytes is not None:
            stated["value"] = {"size": task.value_bytes}
        yield f"{opening}{json.dumps({_METHODS[task.method]: stated}, separators=(',', ':'))}"
        opening = ",\n"
    yield "[]\n" if opening == "[" else "]\n"


def what_is_lost(workload: Workload) -> tuple[str, ...]:
    """What ekvsb does otherwise, a line each."""
    lines = []
    mixed = {name for p in workload.phases if p.mix is not None for name, _ in p.mix.operations}
    if mixed & {"update", "read_modify_write"}:
        lines.append("an update is a GET and a PUT")
    if "merge" in mixed:
        lines.append("a merge is a PUT")
    if workload.key_sizes is not None:
        lines.append(f"all keys have {workload.key_bytes} bytes, the longest")
    if workload.databases > 1 or workload.column_families > 1:
        lines.append("all keys are in one database without column families")
    if any(phase.threads > 1 for phase in workload.phases):
        lines.append("ekvsb performs all tasks with one thread")
    if any(phase.is_open_loop for phase in workload.phases):
        lines.append("ekvsb performs tasks as fast as they go, at no rate")
    if any(phase.companions for phase in workload.phases):
        lines.append("what works beside a phase is left out")
    if any(phase.kind is PhaseKind.SETTLE for phase in workload.phases):
        lines.append("ekvsb does not wait until the engine has settled")
    return tuple(lines)


def tasks_of(workload: Workload, seed: int, source: str) -> Iterator[Task]:
    """The tasks of all phases in turn."""
    random = Random(seed)
    for phase in workload.phases:
        if phase.mix is not None:
            yield from _mixed(workload, phase, phase.mix, random, source)
        elif phase.operation is not None:
            yield from _looped(workload, phase, random)


def _check(workload: Workload, source: str) -> None:
    for phase in workload.phases:
        if phase.kind is PhaseKind.SETTLE:
            continue
        names = () if phase.mix is None else tuple(name for name, _ in phase.mix.operations)
        strange = [n for n in names if n not in _AS_TASKS and n not in ("insert", "delete_oldest")]
        if phase.replay is not None or (phase.operation or "fillseq") not in _LOOPS:
            strange = [phase.operation or "replay"]
        if strange:
            why = f"phase {phase.name}: ekvsb has no task for it"
            raise InputError(source, "", found=strange[0], why=why, allowed=_ALLOWED)
        if phase.operations_whole is None:
            why = f"phase {phase.name} ends after a time"
            raise InputError(source, "", why=why, allowed=_ALLOWED)


def _mixed(
    workload: Workload, phase: Phase, mix: Mix, random: Random, source: str
) -> Iterator[Task]:
    sizes = size_chooser(_values(workload, mix), random, source)
    draw, operation = chooser(mix.keys, random, source), weighted(mix.operations, random)
    first, last = mix.first, mix.first + mix.records - 1
    new = last + 1 if mix.insert_from is None else mix.insert_from
    for _ in range(phase.operations_whole or 0):
        name = operation()
        if name == "insert":
            number, new = new, new + 1
            # Choosers know a new key where it follows on those that were there.
            last = number if number == last + 1 else last
            yield _task("put", number, workload, sizes())
        elif name == "delete_oldest":
            first += 1
            yield _task("delete", first - 1, workload)
        elif first <= last:
            number = draw(first, last)
            for method in _AS_TASKS[name]:
                yield _task(method, number, workload, sizes() if method == "put" else None)


def _looped(workload: Workload, phase: Phase, random: Random) -> Iterator[Task]:
    method, order = _LOOPS[phase.operation or ""]
    num = workload.num
    factor, offset = _shuffle(num, random)
    for index in range(phase.operations_whole or 0):
        match order:
            case "each":
                number = index % num
            case "shuffled":
                number = (factor * (index % num) + offset) % num
            case "hot":
                number = random.randrange(max(1, num // 100))
            case "missing":
                number = num + random.randrange(num)
            case _:
                number = random.randrange(num)
        size = workload.value_bytes if method == "put" else None
        yield _task(method, number, workload, size)


def _shuffle(num: int, random: Random) -> tuple[int, int]:
    """Factor and offset by which each number below `num` comes up once, in constant memory."""
    while True:
        factor = random.randrange(1, num + 1)
        if gcd(factor, num) == 1:
            return factor, random.randrange(num)


def _values(workload: Workload, mix: Mix) -> Distribution:
    constant = Distribution.of("constant", size=workload.value_bytes)
    return constant if mix.value_sizes is None else mix.value_sizes


def _task(method: str, number: int, workload: Workload, value_bytes: int | None = None) -> Task:
    return Task(method, key_text(number, workload.keys, workload.key_bytes), value_bytes)
