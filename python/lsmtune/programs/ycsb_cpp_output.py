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
from lsmtune.programs.output import Line, LineReader

_NUMBER = r"[0-9]+(?:\.[0-9]+)?(?:e[+-]?[0-9]+)?"
_STATUS = re.compile(
    r"(?P<clock>\d{4}-\d\d-\d\d \d\d:\d\d:\d\d) (?P<elapsed>\d+) sec: "
    r"(?P<operations>\d+) operations;(?P<types>(?: \[[^\[\]]*\])*) *"
)
_TYPE = re.compile(r" \[(?P<type>[A-Z-]+):(?P<figures>(?: [A-Za-z0-9.]+=[^ \]]+)+)\]")
_SUMMARY = {
    name: re.compile(rf"(?P<kind>Load|Run) {re.escape(name)}: (?P<value>{_NUMBER})")
    for name in ("runtime(sec)", "operations(ops)", "throughput(ops/sec)")
}
_COMMENT = re.compile(r"#.*")
_COMMAND_COMMENT = "# cmd:"
# `std::cout` shows six digits, of three figures that are compared.
_DIGITS_TOLERANCE = 1e-4


@dataclass(frozen=True)
class YcsbLatency:
    """Latency of one operation type, in microseconds; percentiles None in a build without them."""

    count: int
    latency_us_mean: float
    latency_us_min: float
    latency_us_max: float
    latency_us_p90: float | None = None
    latency_us_p99: float | None = None
    latency_us_p999: float | None = None
    latency_us_p9999: float | None = None


@dataclass(frozen=True)
class YcsbStatus:
    """One status line; everything in it counts from the phase's beginning.

    `operations` is the sum over the types, in which a read-modify-write is a read and an update.
    """

    clock: str
    elapsed_s: int
    operations: int
    by_type: Mapping[str, YcsbLatency]


@dataclass(frozen=True)
class YcsbCommand:
    """A command line of YCSB-cpp. `workload` is the first property file not named *.properties."""

    words: tuple[str, ...]
    database: str | None
    threads: int | None
    property_files: tuple[str, ...]
    properties: Mapping[str, str]
    workload: str | None


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
    by_type: Mapping[str, YcsbLatency]
    statuses: tuple[YcsbStatus, ...] = ()
    command: YcsbCommand | None = None
    line: int = 0


@dataclass(frozen=True)
class YcsbLog:
    """What was read: at least one phase; comments without their `#`; notes as they stand."""

    phases: tuple[YcsbPhase, ...]
    comments: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()


def parse_ycsb_log(text: str, source: str) -> YcsbLog:
    """The phases in `text`, which `source` names.

    Raises `InputError` with the line: no phase at all, a phase that is cut off, a figure that is
    none, a throughput that is not operations by runtime.
    """
    lines = LineReader(text, source)
    phases: list[YcsbPhase] = []
    comments: list[str] = []
    notes: list[str] = []
    command: YcsbCommand | None = None
    while (line := lines.peek()) is not None:
        if (found := ycsb_command(line.text)) is not None:
            command = found
            lines.take()
        elif _begins_phase(line):
            phases.append(_phase(lines, command))
        elif _COMMENT.fullmatch(line.text):
            comments.append(lines.take().text.lstrip("#").strip())
        elif lines.take().text.strip():
            notes.append(line.text)
    if not phases:
        raise InputError(
            source,
            found=notes[0] if notes else text[:80],
            allowed="output of YCSB-cpp, with `Load runtime(sec): ...` or `Run runtime(sec): ...`",
        )
    return YcsbLog(tuple(phases), tuple(comments), tuple(notes))


def parse_status(line: str) -> YcsbStatus | None:
    """`line` as a status; None where it is none."""
    match = _STATUS.fullmatch(line)
    return None if match is None else _status(LineReader(line, ""), Line(1, line), match)


def ycsb_command(text: str) -> YcsbCommand | None:
    """`text` as a command line of YCSB-cpp; None where it is none.

    It is one where it says `-load`, `-run` or `-t`, and `-db` or `-P`; `# cmd:` or a shell's prompt
    may stand before it.
    """
    if "-load" not in text and "-run" not in text and "-t" not in text:
        return None
    try:
        words = shlex.split(text.removeprefix(_COMMAND_COMMENT))
    except ValueError:
        return None  # a quotation mark without its other half: prose
    if not {"-load", "-run", "-t"} & set(words) or not {"-db", "-P"} & set(words):
        return None
    given = {flag: _after(words, flag) for flag in ("-db", "-threads", "-P", "-p")}
    files = tuple(given["-P"])
    workloads = [file for file in files if not file.endswith(".properties")]
    threads = given["-threads"][-1] if given["-threads"] else ""
    return YcsbCommand(
        words=tuple(words),
        database=given["-db"][-1] if given["-db"] else None,
        threads=int(threads) if threads.isdecimal() else None,
        property_files=files,
        properties=dict(_assignment(word) for word in given["-p"] if "=" in word),
        workload=PurePosixPath(workloads[0]).name if workloads else None,
    )


def _after(words: list[str], flag: str) -> list[str]:
    return [value for word, value in itertools.pairwise(words) if word == flag]


def _assignment(word: str) -> tuple[str, str]:
    name, _, value = word.partition("=")
    return name.strip(), value.strip()


def _begins_phase(line: Line) -> bool:
    return bool(
        _STATUS.fullmatch(line.text)
        or line.text.startswith(("Load runtime(sec)", "Run runtime(sec)"))
    )


def _phase(lines: LineReader, command: YcsbCommand | None) -> YcsbPhase:
    first = lines.peek()
    statuses: list[YcsbStatus] = []
    while (status := lines.peek()) is not None and (match := lines.take_if(_STATUS)) is not None:
        statuses.append(_status(lines, status, match))
    runtime = lines.expect(_SUMMARY["runtime(sec)"], "a status or `Run runtime(sec): SECONDS`")
    kind = runtime["kind"]
    elapsed_s = float(runtime["value"])
    operations_at = lines.peek()
    operations = int(_figure(lines, kind, "operations(ops)"))
    throughput = _figure(lines, kind, "throughput(ops/sec)")
    if elapsed_s > 0 and not math.isclose(
        throughput, operations / elapsed_s, rel_tol=_DIGITS_TOLERANCE
    ):
        place = f"line {operations_at.number + 1 if operations_at else 0}"
        expected = f"operations by runtime, {operations / elapsed_s:.6g}"
        raise InputError(lines.source, place, found=throughput, allowed=expected)
    return YcsbPhase(
        kind=kind.lower(),
        workload=command.workload if command is not None else None,
        operations=operations,
        elapsed_s=elapsed_s,
        throughput_ops_s=throughput,
        by_type=statuses[-1].by_type if statuses else {},
        statuses=tuple(statuses),
        command=command,
        line=first.number if first is not None else 0,
    )


def _figure(lines: LineReader, kind: str, name: str) -> float:
    expected = f"`{kind} {name}: NUMBER`"
    at = lines.peek()
    match = lines.expect(_SUMMARY[name], expected)
    if match["kind"] != kind:
        raise lines.refuse(at or Line(0, ""), expected)
    return float(match["value"])


def _status(lines: LineReader, line: Line, match: re.Match[str]) -> YcsbStatus:
    by_type: dict[str, YcsbLatency] = {}
    position = 0
    types = match["types"]
    while position < len(types):
        part = _TYPE.match(types, position)
        latency = _latency(part["figures"]) if part is not None else None
        if part is None or latency is None:
            raise lines.refuse(line, "[TYPE: Count=N Max=N Min=N Avg=N 90=N 99=N 99.9=N 99.99=N]")
        by_type[part["type"]] = latency
        position = part.end()
    return YcsbStatus(match["clock"], int(match["elapsed"]), int(match["operations"]), by_type)


def _latency(figures: str) -> YcsbLatency | None:
    try:
        given = {name: float(value) for name, value in map(_assignment, figures.split())}
        return YcsbLatency(
            count=int(given["Count"]),
            latency_us_mean=given["Avg"],
            latency_us_min=given["Min"],
            latency_us_max=given["Max"],
            latency_us_p90=given.get("90"),
            latency_us_p99=given.get("99"),
            latency_us_p999=given.get("99.9"),
            latency_us_p9999=given.get("99.99"),
        )
    except (KeyError, ValueError):
        return None
