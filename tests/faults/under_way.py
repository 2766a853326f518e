"""Runs each command with each fault of the disk at many moments, and looks at what became of it.

All that docs/faults.md sums up: `python tests/faults/under_way.py POINTS [NAME ...]`, where names
are those of commands and programs, all unless given. Without arguments it reads cases, one a line,
and prints what became of each as JSON. Each command is a process: a fork of this one, which has
imported lsmtune already, because that takes longer than the command. The library with the faults
(`file_faults.c`) is loaded from the start and does nothing until the fork says so.
"""

from __future__ import annotations

import contextlib
import ctypes
import importlib
import json
import os
import pkgutil
import random
import shutil
import signal
import sqlite3
import struct
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import lsmtune

HERE = Path(__file__).parent
CALLS = ("read", "write", "sync", "sync-folder", "open", "rename", "link", "unlink")
OWN, ENGINE = "python", "driver"  # whose calls fail
PATIENCE_S = 120.0

STUDY = """\
version: 1
name: faults
engine: {{name: leveldb, library: {library}}}
workload: {{name: readrandom, num: 1000, reads: 500, value_bytes: 100}}
burst: true
baseline: {{write_buffer_size: 64KiB}}
space:
  write_buffer_size: {{type: int, low: 1MiB, high: 16MiB}}
budget: {{trials: 2}}
limits: {{deadline: 20s}}
proof: {{pairs: 6, method: whole, power_states: 2}}
noise: {{calibration: 0, anchors: 0, repeats: 1}}
"""
_ENGINE = ("--engine", "leveldb", "--library", "{library}")
_LOADED = ("--workload", "readrandom", "-w", "num=1000", "-w", "reads=500")
_BUFFERS = ("write_buffer_size=64KiB", "write_buffer_size=4MiB")
_PAIRS = ("--pairs", "6", "--method", "whole", "--no-crash-test")
_DONE = (0, 3, 4)  # done; not proved, and proved worse, which are results as well


@dataclass(frozen=True)
class Command:
    """One command line; `before` is run first, without a fault."""

    name: str
    line: tuple[str, ...]
    before: tuple[str, ...] = ()


_TUNE = ("tune", "study.yaml")
COMMANDS = {
    command.name: command
    for command in (
        Command("tune", _TUNE),
        Command("verify", ("verify", *_ENGINE, *_LOADED, *_BUFFERS, *_PAIRS, "--dir", "kept")),
        Command(
            "sweep",
            (
                *("sweep", *_ENGINE, *_LOADED, "--axis", "option:write_buffer_size=64KiB,4MiB"),
                *("--repeat", "2", "--dir", "kept"),
            ),
        ),
        Command(
            "contest",
            (
                *("contest", *_ENGINE, *_LOADED),
                *("a=write_buffer_size=64KiB", "b=write_buffer_size=4MiB"),
                *("--rounds", "2", "--dir", "kept", "--output", "board.html", "--force"),
            ),
        ),
        Command(
            "minimise",
            (
                "minimise",
                *_ENGINE,
                *_LOADED,
                *_BUFFERS,
                "--pairs",
                "8",
                *_PAIRS[2:],
                "--dir",
                "kept",
            ),
        ),
        Command("bench", ("bench", *_ENGINE, *_LOADED, "--repeat", "2", "--dir", "scratch")),
        Command("report", ("report", "study.yaml", "--output", "report.html", "--force"), _TUNE),
        Command(
            "export",
            (
                *("export", "study.yaml", "--format", "properties"),
                *("--output", "tuned.properties", "--force"),
            ),
            _TUNE,
        ),
    )
}


@dataclass(frozen=True)
class Ended:
    """How a command ended and what it said; `calls` are those on its files, by name."""

    status: int
    out: str
    err: str
    calls: dict[str, int]
    hits: tuple[str, ...]

    @property
    def done(self) -> bool:
        return self.status in _DONE

    @property
    def line(self) -> str:
        """The last line on stderr, which says why it ended."""
        return self.err.strip().splitlines()[-1] if self.err.strip() else ""


Rows = dict[int, tuple[object, ...]]


@dataclass
class Place:
    """The folder in which a command works: files, home and temporary files are all below it."""

    root: Path
    library: Path
    faults: ctypes.CDLL
    environment: dict[str, str] = field(default_factory=dict)

    def prepare(self, command: Command) -> Path:
        """A copy of the state in which `command` begins, for `restore`."""
        shutil.rmtree(self.root, ignore_errors=True)
        for name in ("home", "tmp", "scratch"):
            (self.root / name).mkdir(parents=True)
        (self.root / "study.yaml").write_text(STUDY.format(library=self.library))
        if command.before:
            ended = self.run(command.before)
            assert ended.done, ended.err
        state = self.root.with_name(f"{self.root.name}.{command.name}")
        shutil.rmtree(state, ignore_errors=True)
        shutil.copytree(self.root, state, symlinks=True)
        return state

    def restore(self, state: Path) -> None:
        shutil.rmtree(self.root, ignore_errors=True)
        shutil.copytree(state, self.root, symlinks=True)

    def run(self, line: Sequence[str], fault: str = "", program: str = OWN) -> Ended:
        """The command `line`, with `fault` in the calls of `program`."""
        outside = self.root.parent
        counts, hits = outside / "counts", outside / "hits"
        counts.write_bytes(bytes(8 * len(CALLS)))
        hits.write_text("")
        with (outside / "out").open("w+") as out, (outside / "err").open("w+") as err:
            child = os.fork()
            if child == 0:
                self._become(line, fault, program, out.fileno(), err.fileno(), counts, hits)
            status = _waited(child)
            said = [(outside / name).read_text(errors="replace") for name in ("out", "err")]
        numbers = struct.unpack(f"{len(CALLS)}q", counts.read_bytes())
        calls = dict(zip(CALLS, numbers, strict=True))
        return Ended(status, *said, calls, tuple(hits.read_text().splitlines()))

    def _become(
        self,
        line: Sequence[str],
        fault: str,
        program: str,
        out: int,
        err: int,
        counts: Path,
        hits: Path,
    ) -> None:
        """This process, a fork, is the command from here on."""
        from lsmtune.cli.main import main

        os.dup2(out, 1)
        os.dup2(err, 2)
        os.chdir(self.root)
        meant = {
            "FAULT_BELOW": f"{self.root}/",
            "FAULT": fault,
            "FAULT_PROGRAM": program,
            "FAULT_COUNTS": str(counts),
            "FAULT_HITS": str(hits),
            "LSMTUNE_HOME": str(self.root / "home"),
            "TMPDIR": str(self.root / "tmp"),
        }
        os.environ.update(meant | self.environment)
        tempfile.tempdir = None
        self.faults.file_faults_begin()
        signal.signal(signal.SIGPIPE, signal.SIG_IGN)
        status = 1
        try:
            status = int(main([part.format(library=self.library) for part in line]))
            sys.stdout.flush()
        finally:
            sys.stderr.flush()
            os._exit(status)

    def rows(self) -> Rows:
        """All runs that are stored, by their ids; every database has to be whole."""
        rows: Rows = {}
        for path in sorted(self.root.rglob("*.db")):
            with contextlib.closing(sqlite3.connect(f"file:{path}", uri=True)) as database:
                (whole,) = database.execute("PRAGMA integrity_check").fetchone()
                assert whole == "ok", f"{path}: {whole}"
                tables = {name for (name,) in database.execute("SELECT name FROM sqlite_master")}
                if path.name == "measurements.db" and "runs" in tables:
                    query = "SELECT id, outcome, runs.* FROM runs"
                    rows |= {row[0]: row for row in database.execute(query)}
        return rows

    def leftovers(self) -> list[str]:
        """What is left of runs, and of files that were not finished."""
        left = [path for name in ("run-*", "*.new", "*.building") for path in self.root.rglob(name)]
        return sorted(str(path.relative_to(self.root)) for path in left)


def _waited(child: int) -> int:
    until = time.monotonic() + PATIENCE_S
    while time.monotonic() < until:
        pid, status = os.waitpid(child, os.WNOHANG)
        if pid:
            return os.waitstatus_to_exitcode(status)
        time.sleep(0.01)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    return -signal.SIGKILL


@dataclass(frozen=True)
class Case:
    """A command with a fault at one moment; `at` says `at=N` or `from=N`."""

    command: Command
    program: str
    call: str
    what: str
    at: str

    def __str__(self) -> str:
        return f"{self.command.name} {self.program} {self.call}:{self.what}:{self.at}"


# What each fault has to be called, in some line.
WORDS = {
    "eio": "Input/output error|disk I/O error|if it is so again",
    "enospc": "disk is full|No space left|disk_full|full",
    "edquot": "disk is full|quota exceeded|full|disk I/O error",
    "emfile": "Too many open files|unable to open",
    "erofs": "ead-only",
    "eacces": "ermission denied",
}
# These are no faults to the user: calls are repeated, or done in another way.
HARMLESS = ("short", "eintr", "slow")


def faults_of(program: str) -> Iterator[tuple[str, str, str]]:
    """Call, what happens to it, and whether once (`at`) or from then on (`from`)."""
    for what in ("eio", "enospc", "edquot"):
        yield "write", what, "at"
        yield "write", what, "from"
    yield "change", "eio", "from"
    yield "change", "erofs", "from"
    for what in HARMLESS:
        yield "write", what, "from"
    yield "read", "eio", "at"
    yield "read", "short", "from"
    yield "sync", "eio", "at"
    yield "sync-folder", "eio", "at"
    for what in ("eio", "emfile", "eacces"):
        yield "open", what, "at"
    yield "open", "emfile", "from"
    for call in ("rename", "unlink"):
        yield call, "eio", "at"
    if program == OWN:
        # File systems that cannot do it; what an engine does there is its own.
        yield "sync-folder", "einval", "from"
        yield "link", "eperm", "from"
        yield "link", "eio", "at"


def points(count: int, wanted: int, source: random.Random) -> list[int]:
    """The first call, the last one, and some between; any one where only one is wanted."""
    if count <= wanted:
        return list(range(1, count + 1))
    if wanted == 1:
        return [source.randint(1, count)]
    return sorted({1, count, *source.sample(range(2, count), max(0, wanted - 2))})


def check(place: Place, state: Path, case: Case) -> tuple[str, list[str], Ended]:
    """What became of `case`: `ended`, `went on` or `not met`, and what is wrong with that."""
    place.restore(state)
    before = place.rows()
    line = case.command.line
    ended = place.run(line, f"{case.call}:{case.what}:{case.at}", case.program)
    wrong: list[str] = []
    # A run that met a full disk, or too many files, has failed: a configuration may be why.
    failed = case.program == ENGINE and case.what in ("enospc", "edquot", "emfile", "eacces")
    if ended.status < 0 or ended.status == 130:
        wrong.append(f"status {ended.status}")
    for word in ("Traceback", "unexpected error", "Exception ignored", "lsmtune: lsmtune"):
        if word in ended.err:
            wrong.append(word)
    if not ended.hits:
        return "not met", wrong, ended
    if not ended.done:
        words = WORDS.get(case.what, "").split("|")
        said = [e for e in ended.err.splitlines() if any(word in e for word in words)]
        if case.what in HARMLESS:
            wrong.append("a harmless fault ended it")
        elif (not failed and said != [ended.line]) or not ended.line.startswith("lsmtune: "):
            wrong.append(f"named in {len(said)} lines")
    with _told(wrong, "after the fault"):
        stored = place.rows()
        if any(stored.get(number) != row for number, row in before.items()):
            wrong.append("rows of before are changed")
        blamed = {str(row[1]) for row in stored.values()} - {"ok"}
        if blamed and not failed:
            wrong.append(f"a configuration is blamed: {', '.join(blamed)}")
        again = place.run(line)
        if not again.done and not (failed and "did not end well" in again.line):
            wrong.append(f"cannot be gone on with: {again.status} {again.line}")
        after = place.rows()
        if any(after.get(number) != row for number, row in stored.items()):
            wrong.append("stored rows are changed")
        # Without a folder of its own a command cannot sweep later what the disk kept then.
        kept = case.command.name == "bench" and (case.call == "unlink" or "from" in case.at)
        if not kept and (left := place.leftovers()):
            wrong.append(f"left: {left}")
    return "went on" if ended.done else "ended", wrong, ended


@contextlib.contextmanager
def _told(wrong: list[str], when: str) -> Iterator[None]:
    try:
        yield
    except (AssertionError, sqlite3.Error) as error:
        wrong.append(f"{when}: {error}")


def counted(place: Place, command: Command, program: str) -> tuple[Path, Ended]:
    """The state before `command`, and how it ends without a fault."""
    state = place.prepare(command)
    ended = place.run(command.line, program=program)
    assert ended.done, ended.err
    return state, ended


def library_with_faults(folder: Path) -> Path:
    library = folder / "file_faults.so"
    compiler = shutil.which("cc") or shutil.which("gcc") or "cc"
    command = [compiler, "-shared", "-fPIC", "-O1", "-Wall", "-Wextra", "-Werror"]
    subprocess.run([*command, str(HERE / "file_faults.c"), "-ldl", "-o", str(library)], check=True)
    return library


def main() -> None:
    """The table, or single cases."""
    if "file_faults.so" not in os.environ.get("LD_PRELOAD", ""):
        folder = Path(tempfile.mkdtemp(prefix="faults-"))
        os.environ["LD_PRELOAD"] = str(library_with_faults(folder))
        os.environ["OMP_NUM_THREADS"] = os.environ["OPENBLAS_NUM_THREADS"] = "1"
        os.execv(sys.executable, [sys.executable, *sys.argv])
    for module in pkgutil.walk_packages(lsmtune.__path__, "lsmtune."):
        if "__main__" not in module.name:
            importlib.import_module(module.name)
    library = Path(os.environ["LD_PRELOAD"])
    root = library.parent / "place" / "here"
    root.parent.mkdir(exist_ok=True)
    place = Place(root, Path(os.environ["LSMTUNE_TEST_LEVELDB"]), ctypes.CDLL(str(library)))
    try:
        if len(sys.argv) > 1:
            print_table(place, int(sys.argv[1]), sys.argv[2:])
        else:
            print_cases(place, sys.stdin.read().splitlines())
    finally:
        shutil.rmtree(library.parent)


def print_table(place: Place, wanted: int, names: Sequence[str]) -> None:
    """A line for each command and fault, tried at `wanted` moments; what is wrong stands above."""
    programs = [name for name in (OWN, ENGINE) if name in names] or [OWN, ENGINE]
    for name in [name for name in COMMANDS if name in names] or COMMANDS:
        command = COMMANDS[name]
        for program in [OWN] if name in ("report", "export") else programs:
            state, whole = counted(place, command, program)
            print(f"# {name} {program}: {whole.calls}", flush=True)
            for call, what, when in faults_of(program):
                source = random.Random(f"{name} {program} {call} {what} {when}")
                told: Counter[str] = Counter()
                for number in points(number_of(whole, call), wanted, source):
                    case = Case(command, program, call, what, f"{when}={number}")
                    kind, wrong, ended = check(place, state, case)
                    told.update({kind: 1, "wrong": bool(wrong)})
                    if wrong:
                        print(f"{case}: {kind}: {'; '.join(wrong)}", flush=True)
                        print(f"    hit {ended.hits[:2]}\n    {ended.line}", flush=True)
                print(f"| {name} | {program} | {call} {what} {when} | {dict(told)} |", flush=True)


def print_cases(place: Place, lines: Sequence[str]) -> None:
    """Each of `lines`, as in `sweep python write:eio:at=50%`: one of the calls that it makes."""
    known: dict[tuple[str, str], tuple[Path, Ended]] = {}
    for line in lines:
        name, program, fault = line.split()
        if (name, program) not in known:
            known[name, program] = counted(place, COMMANDS[name], program)
        state, whole = known[name, program]
        call, what, at = fault.split(":")
        when, _, share = at.partition("=")
        number = max(1, round(number_of(whole, call) * float(share.rstrip("%")) / 100))
        kind = "not met"
        # How many calls there are depends on the times measured: a proof that ends in "no proven
        # gain" has no crash test, and comes to none of the calls that one with a gain makes.
        while kind == "not met" and number:
            case = Case(COMMANDS[name], program, call, what, f"{when}={number}")
            kind, wrong, ended = check(place, state, case)
            number //= 2
        told = {"case": line, "kind": kind, "wrong": wrong, "line": ended.line}
        print(json.dumps(told | {"hit": ended.hits[:1], "status": ended.status}), flush=True)


def number_of(whole: Ended, call: str) -> int:
    """How often a command that ended so made `call`."""
    meant = [name for name in CALLS if name != "read"] if call == "change" else [call]
    return sum(whole.calls[name] for name in meant)


if __name__ == "__main__":
    main()
