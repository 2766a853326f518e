"""What several programs share: how output is read, how flags are refused, what can be performed."""

from __future__ import annotations

import re
from collections.abc import Collection

from lsmtune.errors import InputError, nearest_name
from lsmtune.model.workload import Durability, PageCache, Phase, PhaseKind, SineRate, Workload


class LineReader:
    """The lines of `text` in order, without their breaks; `source` names them in errors.

    `taken` of them were consumed so far, which is the number of the last one. A carriage return
    inside a line starts the line anew, as on a terminal: programs that show progress in place
    overwrite what they had there.
    """

    def __init__(self, text: str, source: str) -> None:
        self.source = source
        self.taken = 0
        self._lines = [line.rstrip("\r").rsplit("\r", 1)[-1] for line in text.split("\n")]
        if not self._lines[-1]:
            self._lines.pop()  # what follows the last line break is no line

    def peek(self) -> str | None:
        """The next line, which stays; None after the last one."""
        return self._lines[self.taken] if self.taken < len(self._lines) else None

    def take(self) -> str:
        """The next line, which is consumed. Raises `InputError` where there is none."""
        line = self.peek()
        if line is None:
            raise InputError(self.source, why="ends in the middle of a result")
        self.taken += 1
        return line

    def take_if(self, pattern: re.Pattern[str]) -> re.Match[str] | None:
        """The match of the whole next line, which is consumed then; None, and it stays."""
        line = self.peek()
        match = pattern.fullmatch(line) if line is not None else None
        if match is not None:
            self.taken += 1
        return match

    def expect(self, pattern: re.Pattern[str], allowed: str) -> re.Match[str]:
        """The match of the whole next line. Raises `InputError` that says what is `allowed`."""
        match = self.take_if(pattern)
        if match is None:
            line = self.peek()
            found = line if line is not None else "the end"
            raise InputError(self.source, f"line {self.taken + 1}", found=found, allowed=allowed)
        return match

    def refuse(self, allowed: str) -> InputError:
        """The error that says what the line consumed last should have been."""
        found = self._lines[self.taken - 1]
        return InputError(self.source, f"line {self.taken}", found=found, allowed=allowed)


# --- how programs refuse a flag that they do not know, and what they say they know
#
# RocksDB's db_bench  "ERROR: unknown command line flag 'val_size'"   (gflags)
# LevelDB's db_bench  "Invalid flag '--val_size=100'"
# YCSB-cpp            "Unknown option '-x'", with exit status 0
# ekvsb               "error: unexpected argument '--val-size' found" (clap)

_REFUSALS = (
    re.compile(r"ERROR: unknown command line flag '(?P<flag>[^']*)'"),
    re.compile(r"Invalid flag '(?P<flag>[^']*)'"),
    re.compile(r"Unknown option '(?P<flag>[^']*)'"),
    re.compile(r"error: (?:unexpected argument|Found argument) '(?P<flag>[^']*)'.*"),
)
# gflags: `    -value_size (Size of each value ...) type: int32 default: 100`.
_HELP_FLAG = re.compile(r"^ +-(?P<flag>[A-Za-z0-9_]+) \(", re.MULTILINE)


def refused_flag(text: str) -> str | None:
    """The flag that `text`, a program's stderr, says it does not know; None where it does not.

    As `--name`, without its value.
    """
    for line in text.splitlines():
        for pattern in _REFUSALS:
            if (match := pattern.match(line.strip())) is not None:
                return f"--{flag_name(match['flag'])}"
    return None


def flag_name(flag: str) -> str:
    """`flag` without dashes and value."""
    return flag.lstrip("-").partition("=")[0]


def nearest_flag(flag: str, known: Collection[str]) -> str:
    """The nearest of `known`, which are flags without dashes; empty where none is near."""
    # A flag that is known, and refused all the same, is one of a newer version.
    name = flag_name(flag)
    nearest = "" if name in known else nearest_name(name, known)
    return f"--{nearest}" if nearest else ""


def gflags_known(help_text: str) -> tuple[str, ...]:
    """The flags that the help of a program with gflags lists."""
    return tuple(match["flag"] for match in _HELP_FLAG.finditer(help_text))


# --- what programs can perform of a Workload

NATIVE = "native"


def cannot(
    program: str, field: str, *, found: object = None, why: str = "", allowed: str = ""
) -> InputError:
    """The error for something that `program` cannot perform, and lsmtune's own driver can."""
    why = why or "it cannot perform this"
    return InputError(f"--runner {program}", field, found=found, why=why, allowed=allowed)


def check_performable(
    program: str,
    workload: Workload,
    durabilities: Collection[Durability],
    *,
    ycsb: bool = False,
    waves: bool = False,
) -> None:
    """Raises InputError for the first thing in `workload` that `program` has no words for.

    `durabilities` are those that it can do. `ycsb`: it takes keys of YCSB, which the caller checks.
    With `waves` it leaves the rate of a mix that is a sine to the caller.
    """
    if workload.keys is not None and not ycsb:
        raise cannot(program, "keys", why="it has no keys of YCSB")
    if workload.key_sizes is not None and not ycsb:
        raise cannot(program, "key_sizes", why="its keys all have one size")
    if workload.databases != 1:
        raise cannot(program, "databases", found=workload.databases, allowed="1")
    if workload.column_families != 1:
        raise cannot(program, "column_families", found=workload.column_families, allowed="1")
    if workload.page_cache is PageCache.COLD:
        raise cannot(program, "page_cache", found="cold", allowed="warm, direct")
    for phase in workload.phases:
        wave = waves and phase.mix is not None and isinstance(phase.rate, SineRate)
        if phase.is_open_loop and not wave:
            why = "it holds no rate by the intended start of each operation"
            raise cannot(program, f"{phase.name}: rate", why=why)
        if phase.replay is not None:
            raise cannot(program, f"{phase.name}: replay", why="it replays no trace of lsmtune's")
        if phase.companions:
            raise cannot(program, f"{phase.name}: companions", why="its threads all do the same")
    if workload.durability not in durabilities:
        allowed = ", ".join(each.value for each in Durability if each in durabilities)
        raise cannot(program, "durability", found=workload.durability.value, allowed=allowed)


def performing(workload: Workload) -> list[tuple[int, Phase]]:
    """The phases that perform operations, with their places in the workload."""
    return [
        (index, phase)
        for index, phase in enumerate(workload.phases)
        if phase.kind is not PhaseKind.SETTLE
    ]


def settles_after(workload: Workload, index: int) -> bool:
    """Whether a settle phase stands right behind phase `index`."""
    behind = index + 1
    return behind < len(workload.phases) and workload.phases[behind].kind is PhaseKind.SETTLE


def refuse_leading_settle(program: str, workload: Workload) -> None:
    """Raises InputError for a workload that begins with a settle phase."""
    if workload.phases and workload.phases[0].kind is PhaseKind.SETTLE:
        raise cannot(program, "settle", why="nothing was written yet")
