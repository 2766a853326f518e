"""What YCSB-cpp prints, and logs that hold several of its runs.

    log     = { comment | command | phase | note }
    phase   = { status } runtime operations throughput
    status  = date time seconds "sec:" operations "operations;" { "[" type ":" { figure } "]" }
    figure  = name "=" value

Statuses are printed only with `-s`. The words are those of `core/ycsbc.cc` and
`core/measurements.cc` of YCSB-cpp (2020 to 2024); its two kinds of measurement differ in the
percentiles, which only the one with HDR histograms has. What belongs to no rule, a shell's `time`
or a message of the engine, is a note: kept, with its line.
"""

from __future__ import annotations

import itertools
import math
import re
import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import PurePosixPath

from lsmtune.errors import InputError
from lsmtune.model.measurement import Latency
from lsmtune.programs.output import LineReader

_NUMBER = r"[0-9]+(?:\.[0-9]+)?(?:e[+-]?[0-9]+)?"
_STATUS = re.compile(
    r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d (?P<elapsed>[0-9]{1,18}) sec: "
    r"(?P<operations>[0-9]{1,18}) operations;(?P<types>(?: \[[^\[\]]*\])*) *"
)
_TYPE = re.compile(r" \[(?P<type>[A-Z-]+):(?P<figures>(?: [A-Za-z0-9.]+=[^ \]]+)+)\]")
_SUMMARY = {
    name: re.compile(rf"(?P<kind>Load|Run) {re.escape(name)}: (?P<value>{_NUMBER})")
    for name in ("runtime(sec)", "operations(ops)", "throughput(ops/sec)")
}
_RUNTIME = ("Load runtime(sec)", "Run runtime(sec)")
_COMMAND_COMMENT = "# cmd:"
# `std::cout` shows six digits, of three figures that are compared.
_DIGITS_TOLERANCE = 1e-4


@dataclass(frozen=True)
class YcsbStatus:
    """One status line; everything in it counts from the phase's beginning.

    `operations` is the sum over the types, in which a read-modify-write is a read and an update.
    Percentiles are None in a build without them.
    """

    elapsed_s: int
    operations: int
    by_type: Mapping[str, Latency]


@dataclass(frozen=True)
class YcsbPhase:
    """One load or run. `by_type` is empty where the program was called without `-s`.

    `workload` is the name of the workload file, without folders, by the command line before the
    phase; None where there is no such line.
    """

    kind: str
    workload: str | None
    operations: int
    elapsed_s: float
    throughput_ops_s: float
    by_type: Mapping[str, Latency]
    line: int


@dataclass(frozen=True)
class YcsbLog:
    """What was read: at least one phase; notes as they stand."""

    phases: tuple[YcsbPhase, ...]
    notes: tuple[str, ...]


def parse_ycsb_log(text: str, source: str) -> YcsbLog:
    """The phases in `text`, which `source` names.

    Raises `InputError` with the line: no phase at all, a phase that is cut off, a figure that is
    none, a throughput that is not operations by runtime.
    """
    lines = LineReader(text, source)
    phases: list[YcsbPhase] = []
    notes: list[str] = []
    workload: str | None = None
    while (line := lines.peek()) is not None:
        if (words := _command(line)) is not None:
            lines.take()
            # The first property file that is not named *.properties.
            files = (file for flag, file in itertools.pairwise(words) if flag == "-P")
            named = next((file for file in files if not file.endswith(".properties")), None)
            workload = named and PurePosixPath(named).name
        elif _STATUS.fullmatch(line) or line.startswith(_RUNTIME):
            phases.append(_phase(lines, workload))
        elif lines.take().strip() and not line.startswith("#"):
            notes.append(line)
    if not phases:
        raise InputError(
            source,
            found=notes[0] if notes else text[:80],
            allowed="output of YCSB-cpp, with `Load runtime(sec): ...` or `Run runtime(sec): ...`",
        )
    return YcsbLog(tuple(phases), tuple(notes))


def parse_status(line: str) -> YcsbStatus | None:
    """`line` as a status; None where it is none. Raises InputError for a figure that is none."""
    return _status(LineReader(line, ""))


def _command(text: str) -> list[str] | None:
    """The words of `text`, a command line of YCSB-cpp; None where it is none.

    It is one where it says `-load`, `-run` or `-t`, and `-db` or `-P`; `# cmd:` or a shell's prompt
    may stand before it.
    """
    if "-load" not in text and "-run" not in text and "-t" not in text:
        return None
    try:
        words = shlex.split(text.removeprefix(_COMMAND_COMMENT))
    except ValueError:
        return None  # a quotation mark without its other half: prose
    is_command = {"-load", "-run", "-t"} & set(words) and {"-db", "-P"} & set(words)
    return words if is_command else None


def _phase(lines: LineReader, workload: str | None) -> YcsbPhase:
    first = lines.taken + 1
    by_type: Mapping[str, Latency] = {}
    while (status := _status(lines)) is not None:
        by_type = status.by_type
    runtime = lines.expect(_SUMMARY["runtime(sec)"], "a status or `Run runtime(sec): SECONDS`")
    kind, elapsed_s = runtime["kind"], float(runtime["value"])
    if not math.isfinite(elapsed_s):
        raise InputError(lines.source, "runtime(sec)", found=runtime["value"], allowed="seconds")
    operations = int(_figure(lines, kind, "operations(ops)"))
    throughput = _figure(lines, kind, "throughput(ops/sec)")
    if elapsed_s > 0 and not math.isclose(
        throughput, operations / elapsed_s, rel_tol=_DIGITS_TOLERANCE
    ):
        field = f"line {lines.taken}"
        expected = f"operations by runtime, {operations / elapsed_s:.6g}"
        raise InputError(lines.source, field, found=throughput, allowed=expected)
    return YcsbPhase(kind.lower(), workload, operations, elapsed_s, throughput, by_type, first)


def _figure(lines: LineReader, kind: str, name: str) -> float:
    expected = f"`{kind} {name}: NUMBER`"
    match = lines.expect(_SUMMARY[name], expected)
    value = float(match["value"])
    if match["kind"] != kind or not math.isfinite(value):
        raise lines.refuse(expected)
    return value


def _status(lines: LineReader) -> YcsbStatus | None:
    """The next line, which is consumed, as a status; None, and it stays, where it is none."""
    match = lines.take_if(_STATUS)
    if match is None:
        return None
    by_type: dict[str, Latency] = {}
    position = 0
    types = match["types"]
    while position < len(types):
        one = _TYPE.match(types, position)
        latency = _latency(one["figures"]) if one is not None else None
        if one is None or latency is None:
            raise lines.refuse("[TYPE: Count=N Max=N Min=N Avg=N 90=N 99=N 99.9=N 99.99=N]")
        by_type[one["type"]] = latency
        position = one.end()
    return YcsbStatus(int(match["elapsed"]), int(match["operations"]), by_type)


def _latency(figures: str) -> Latency | None:
    """The latency of one type; None where a figure is missing or is none."""
    pairs = (figure.partition("=") for figure in figures.split())
    try:
        given = {name: float(value) for name, _, value in pairs}
        if not all(map(math.isfinite, given.values())):
            return None
        return Latency(
            count=int(given["Count"]),
            latency_us_mean=given["Avg"],
            latency_us_p99=given.get("99"),
            latency_us_p999=given.get("99.9"),
            latency_us_max=given["Max"],
        )
    except (KeyError, ValueError):
        return None
