"""Workloads of ekvsb: a JSON array of tasks, each with its key, read as a stream.

From ekvsb's `src/task.rs` and `src/workload.rs`: `{"PUT": {"key": "...", "value": {"size": 100}}}`,
`{"GET": {"key": "..."}}`, `{"DELETE": {"key": "..."}}`, performed one after another by one thread.
"""

from __future__ import annotations

import json
import math
import re
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import NoReturn, TypeVar

from lsmtune.errors import FieldError, InputError, is_utf8
from lsmtune.model.distribution import Distribution
from lsmtune.model.text import open_text
from lsmtune.model.workload import (
    KEY_BYTES_MAX,
    KEY_BYTES_MIN,
    NAME_LENGTH_MAX,
    VALUE_BYTES_MAX,
    Mix,
    Phase,
    PhaseKind,
    Workload,
)
from lsmtune.stats.pareto import RELATIVE_ERROR, DistinctCounter
from lsmtune.units import whole_number
from lsmtune.workloads.distributions import (
    chooser,
    key_text,
    largest_size,
    mean_size,
    size_chooser,
    weighted,
)

T = TypeVar("T")

METHODS = {"PUT": "put", "GET": "get", "DELETE": "delete"}
_CHUNK = 1 << 16
# What is longer than a key and some figures is neither a task nor a record.
_ELEMENT_CHARACTERS_MAX = 1 << 20
_BLANKS = " \t\r\n"
_DECODER = json.JSONDecoder(parse_int=whole_number)
_BUCKETS_MAX = 512
_VALUE_BYTES = 100  # where no task puts one
_ALLOWED = 'tasks such as {"GET": {"key": "a"}}'


@dataclass(frozen=True)
class Task:
    """One task; `value_bytes` is that of a put."""

    method: str
    key: str
    value_bytes: int | None = None


@dataclass
class TaskCounts:
    """The tasks of a file in figures: counts, sizes, and an estimate of how many keys there are.

    `puts_first` are the puts before the first task of another kind, on `keys_first` keys.
    """

    counts: Counter[str] = field(default_factory=Counter)
    value_sizes: Counter[int] = field(default_factory=Counter)
    key_sizes: Counter[int] = field(default_factory=Counter)
    keys: int = 0
    puts_first: int = 0
    keys_first: int = 0

    @property
    def tasks(self) -> int:
        """All tasks."""
        return sum(self.counts.values())


def read_tasks(path: Path) -> Iterator[Task]:
    """The tasks in the file at `path`, one after another; memory does not grow with the file.

    Raises InputError with the offset, in characters, of what is no task.
    """
    with open_text(path, "a list of tasks") as file:
        yield from elements(file.read, str(path), _stated_task)


def _stated_task(element: object) -> Task:
    if not isinstance(element, dict) or len(element) != 1:
        raise FieldError(why="no task", allowed=_ALLOWED)
    ((method, stated),) = element.items()
    if method not in METHODS:
        raise FieldError(why=f"no method {method!r}", allowed=", ".join(METHODS))
    key = stated.get("key") if isinstance(stated, dict) else None
    if not isinstance(key, str) or not is_utf8(key):
        raise FieldError(why="a task without a key", allowed=_ALLOWED)
    if method != "PUT":
        return Task(METHODS[method], key)
    value = stated.get("value")
    size = value.get("size") if isinstance(value, dict) else None
    if isinstance(size, bool) or not isinstance(size, int) or size < 0:
        why = "a PUT without the size of its value"
        raise FieldError(why=why, allowed='"value": {"size": 100}')
    return Task(METHODS[method], key, size)


# --- A JSON array as a stream: of tasks, or of the records that ekvsb prints.


def elements(
    read: Callable[[int], str],
    source: str,
    checked: Callable[[object], T],
    *,
    cut_off_is_fine: bool = False,
) -> Iterator[T]:
    """The elements of the JSON array that `read` reads; memory does not grow with the array.

    `checked` makes of each what it is, or raises FieldError. With `cut_off_is_fine` the text may
    end between two of them. Raises InputError with the offset, in characters, of what is wrong.
    """
    stream = _Stream(read, source)
    ends = ("]", "") if cut_off_is_fine else ("]",)
    stream.expect("[", "a JSON array")
    if stream.peek() not in ends:
        yield stream.element(checked)
    while stream.peek() not in ends:
        stream.expect(",", "a comma or the end of the array")
        if stream.peek() or not cut_off_is_fine:
            yield stream.element(checked)
    stream.at += 1  # behind the bracket
    if stream.peek():
        stream.refuse("more than one array", "the end of the text")


@dataclass
class _Stream:
    """JSON that is decoded from chunks of its text, `text` from `at` on."""

    read: Callable[[int], str]
    source: str
    text: str = ""
    at: int = 0
    before: int = 0  # characters that were dropped from the front of `text`

    def peek(self) -> str:
        """The next character that is not blank; empty at the end."""
        while True:
            while self.at < len(self.text) and self.text[self.at] in _BLANKS:
                self.at += 1
            if self.at < len(self.text):
                return self.text[self.at]
            if not self._more():
                return ""

    def expect(self, sign: str, allowed: str) -> None:
        character = self.peek()
        if character != sign:
            self.refuse(f"found {character!r}" if character else "ends too early", allowed)
        self.at += 1

    def element(self, checked: Callable[[object], T]) -> T:
        self.peek()
        while True:
            try:
                element, end = _DECODER.raw_decode(self.text, self.at)
                break
            except (ValueError, RecursionError) as error:
                # Perhaps its end has not been read yet.
                if len(self.text) - self.at < _ELEMENT_CHARACTERS_MAX and self._more():
                    continue
                problem = error.msg if isinstance(error, json.JSONDecodeError) else str(error)
                self.refuse(f"not JSON: {problem}")
        try:
            made = checked(element)
        except FieldError as error:
            raise error.but(source=self._place()) from None
        self.at = end
        return made

    def refuse(self, why: str, allowed: str = "") -> NoReturn:
        raise InputError(self._place(), why=why, allowed=allowed)

    def _more(self) -> bool:
        """Another chunk, with what was decoded dropped; False at the end."""
        chunk = self.read(_CHUNK)
        self.text = self.text[self.at :] + chunk
        self.before, self.at = self.before + self.at, 0
        return bool(chunk)

    def _place(self) -> str:
        return f"{self.source}: offset {self.before + self.at}"


def count_tasks(tasks: Iterator[Task]) -> TaskCounts:
    """One pass over `tasks`."""
    summary, keys = TaskCounts(), DistinctCounter()
    for task in tasks:
        key = task.key.encode()
        if task.method == "put" and summary.counts["put"] == summary.tasks:
            summary.puts_first += 1
        elif not summary.keys_first and summary.puts_first:
            summary.keys_first = min(keys.count(), summary.puts_first)
        summary.counts[task.method] += 1
        summary.key_sizes[len(key)] += 1
        if task.value_bytes is not None:
            summary.value_sizes[task.value_bytes] += 1
        keys.add(key)
    summary.keys = min(keys.count(), summary.tasks)
    if summary.puts_first and not summary.keys_first:
        summary.keys_first = min(summary.keys, summary.puts_first)
    return summary


def imported_workload(path: Path) -> tuple[Workload, tuple[str, ...]]:
    """A workload of the same mix and sizes as the tasks in the file, and what is lost in it.

    The puts before the first other task become inserts into an empty database; without any, the
    database is loaded with as many records as there are keys. All other tasks become a mix on
    keys drawn uniformly. Raises InputError as `read_tasks` does, and for a file without tasks.
    """
    summary = count_tasks(read_tasks(path))
    source = str(path)
    if not summary.tasks:
        raise InputError(source, why="has no tasks")
    sizes = None
    if summary.value_sizes:
        sizes = _table(summary.value_sizes, 0, VALUE_BYTES_MAX, source, "value")
    key_sizes = _table(summary.key_sizes, KEY_BYTES_MIN, KEY_BYTES_MAX, source, "key")
    phases = _phases(summary, sizes)
    workload = Workload(
        name=_name_of(path),
        phases=phases,
        # Those of the first phase: tasks may ask for keys that were never put.
        num=phases[0].operations or 1,
        key_bytes=largest_size(key_sizes),
        # Empty values have a mean of 0, which a file cannot state.
        value_bytes=_VALUE_BYTES if sizes is None else max(1, round(mean_size(sizes))),
        compression_ratio=1.0,  # random bytes
        key_sizes=None if key_sizes.name == "constant" else key_sizes,
    )
    return workload, _lost(summary)


def _name_of(path: Path) -> str:
    """The file's name as a workload may have it."""
    cleaned = re.sub(r"[^A-Za-z0-9 ._-]+", "-", path.stem)
    return cleaned.lstrip(" ._-")[:NAME_LENGTH_MAX] or "tasks"


def _phases(summary: TaskCounts, sizes: Distribution | None) -> tuple[Phase, ...]:
    rest = summary.counts.copy()
    rest["put"] -= summary.puts_first
    operations = tuple((name, float(rest[name])) for name in METHODS.values() if rest[name])
    inserts = Mix((("insert", 1.0),), records=0, value_sizes=sizes)
    phases: list[Phase] = []
    if summary.puts_first:
        records = summary.puts_first
        phases.append(Phase("put", PhaseKind.MEASURE, mix=inserts, operations=records))
    else:
        records = max(1, summary.keys)
        load = Phase("load", PhaseKind.LOAD, mix=inserts, operations=records)
        phases += [load, Phase("settle", PhaseKind.SETTLE)]
    if operations:
        mix = Mix(operations, records=records, value_sizes=sizes if rest["put"] else None)
        phases.append(Phase("tasks", PhaseKind.MEASURE, mix=mix, operations=sum(rest.values())))
    return tuple(phases)


def _table(counts: Counter[int], low: int, high: int, source: str, what: str) -> Distribution:
    """The sizes with their counts; neighbours together where there are very many."""
    largest = max(counts)
    if largest > high:
        why = f"has a {what} of {largest} bytes"
        raise InputError(source, why=why, allowed=f"at most {high} bytes")
    raised: Counter[int] = Counter()
    for size, count in counts.items():
        raised[max(low, size)] += count
    step = 1
    while len({size // step for size in raised}) > _BUCKETS_MAX:
        step *= 2
    together: Counter[int] = Counter()
    for size, count in raised.items():
        middle = min(max(low, size // step * step + step // 2), high)
        together[middle if step > 1 else size] += count
    if len(together) == 1:
        return Distribution.of("constant", size=next(iter(together)))
    return Distribution.of("table", sizes=tuple(sorted(together.items())))


def _lost(summary: TaskCounts) -> tuple[str, ...]:
    lines = [
        "lost: the keys themselves and their order; keys are drawn uniformly, and so are misses of "
        "keys that had not been put"
    ]
    about = f"to about {100 * RELATIVE_ERROR:.1f} %"
    if not summary.puts_first:
        lines.append(
            f"the database is loaded with {summary.keys} records first, as many as there are keys "
            f"({about}): the file begins with tasks that expect some"
        )
    elif summary.keys_first < 0.97 * summary.puts_first:
        lines.append(
            f"lost: {summary.puts_first} puts at the beginning are on {summary.keys_first} keys "
            f"({about}); here each is a new record"
        )
    if min(summary.key_sizes) < KEY_BYTES_MIN:
        lines.append(f"keys shorter than {KEY_BYTES_MIN} bytes have {KEY_BYTES_MIN}")
    if len(summary.value_sizes) > _BUCKETS_MAX or len(summary.key_sizes) > _BUCKETS_MAX:
        lines.append("sizes that are near each other were put together")
    if not summary.value_sizes:
        lines.append(f"no task says how large values are: those loaded have {_VALUE_BYTES} bytes")
    return tuple(lines)


# --- A workload as tasks of ekvsb, drawn one after another from a seed.

_METHODS = {task: method for method, task in METHODS.items()}
# What a mix draws, and the tasks that stand in its place.
_AS_TASKS = {
    **{task: (task,) for task in _METHODS},
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
# Distributions that cover the keys which are inserted as well.
_SEE_INSERTS = frozenset({"latest", "exponential", "scrambled_zipfian"})
_EKVSB_EXPORT_ALLOWED = "phases of puts, gets and deletes, with a number of operations"


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
    phases = workload.phases
    mixed = {name for phase in phases if phase.mix is not None for name in phase.mix.names}
    by_key = any(phase.mix is not None and phase.mix.operation_by_key for phase in phases)
    timed = any(phase.duration_s is not None for phase in phases)
    several = workload.databases > 1 or workload.column_families > 1
    lines = {
        "an update is a GET and a PUT": bool(mixed & {"update", "read_modify_write"}),
        "a merge is a PUT": "merge" in mixed,
        "the operation is drawn by itself, and no key decides it": by_key,
        "a phase ends after its operations, whatever its duration": timed,
        f"all keys have {workload.key_bytes} bytes, the longest": workload.key_sizes is not None,
        "all keys are in one database without column families": several,
        "ekvsb performs all tasks with one thread": any(p.threads > 1 for p in phases),
        "ekvsb performs tasks as fast as they go, at no rate": any(p.is_open_loop for p in phases),
        "what works beside a phase is left out": any(p.companions for p in phases),
        "ekvsb does not wait until the engine has settled": any(
            phase.kind is PhaseKind.SETTLE for phase in phases
        ),
    }
    return tuple(line for line, holds in lines.items() if holds)


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
        strange: list[str] = []
        if phase.mix is not None:
            known = {*_AS_TASKS, "insert", "delete_oldest"}
            strange = [name for name, _ in phase.mix.operations if name not in known]
        elif phase.operation is not None and phase.operation not in _LOOPS:
            strange = [phase.operation]
        elif phase.replay is not None:
            strange = ["replay"]
        if strange:
            why = f"phase {phase.name}: ekvsb has no task for it"
            raise InputError(source, "", found=strange[0], why=why, allowed=_EKVSB_EXPORT_ALLOWED)
        if phase.operations_whole is None:
            why = f"phase {phase.name} ends after a time"
            raise InputError(source, "", why=why, allowed=_EKVSB_EXPORT_ALLOWED)
        if phase.mix is not None:
            chooser(phase.mix.keys, Random(0), source, 1)  # refuses what the driver alone draws


def _mixed(
    workload: Workload, phase: Phase, mix: Mix, random: Random, source: str
) -> Iterator[Task]:
    constant = Distribution.of("constant", size=workload.value_bytes)
    sizes = size_chooser(mix.value_sizes or constant, random, source)
    draw = chooser(mix.keys, random, source, mix.records)
    operation = weighted(mix.operations, random)
    # Positions in the order of insertion, as in the driver; those beyond `records` are new.
    first, last, end = 0, mix.records - 1, mix.records
    new = (mix.first + end if mix.insert_from is None else mix.insert_from) - end

    def number_at(position: int) -> int:
        return position + (mix.first if position < mix.records else new)

    # As in the driver, the others choose among the keys of the beginning.
    grows = mix.keys.name in _SEE_INSERTS or "delete_oldest" in mix.names
    for _ in range(phase.operations_whole or 0):
        name = operation()
        if name == "insert":
            last, end = end if grows else last, end + 1
            yield _task("put", number_at(end - 1), workload, sizes())
        elif name == "delete_oldest":
            if first >= last:  # the last key stays, and the phase is over
                return
            first += 1
            yield _task("delete", number_at(first - 1), workload)
        else:
            number = number_at(draw(first, last))
            for method in _AS_TASKS[name]:
                yield _task(method, number, workload, sizes() if method == "put" else None)


def _looped(workload: Workload, phase: Phase, random: Random) -> Iterator[Task]:
    method, order = _LOOPS[phase.operation or ""]
    num, shuffled = workload.num, _permutation(workload.num, random)
    for index in range(phase.operations_whole or 0):
        match order:
            case "each":  # every thread begins with the first key
                number = index // phase.threads % num
            case "shuffled":
                number = shuffled(index % num)
            case "hot":
                number = random.randrange(math.ceil(num / 100))
            case "missing":
                number = num + random.randrange(num)
            case _:
                number = random.randrange(num)
        size = workload.value_bytes if method == "put" else None
        yield _task(method, number, workload, size)


def _permutation(num: int, random: Random) -> Callable[[int], int]:
    """A permutation of the numbers below `num` without a table, that of `permutation.rs`."""
    bits = max(1, (num - 1).bit_length())
    mask, shift = (1 << bits) - 1, (bits + 1) // 2
    keys = [random.getrandbits(bits) for _ in range(3)]

    def permuted(number: int) -> int:
        while True:
            for key in keys:
                number = (number ^ key) * (key | 1) & mask
                number ^= number >> shift
            if number < num:
                return number

    return permuted


def _task(method: str, number: int, workload: Workload, value_bytes: int | None = None) -> Task:
    return Task(method, key_text(number, workload.keys, workload.key_bytes), value_bytes)
