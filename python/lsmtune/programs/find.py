"""Which program a file is, by its answer to `--help`: both db_benches have one name."""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from mmap import ACCESS_READ, mmap
from pathlib import Path

from lsmtune.driver.process import not_started
from lsmtune.errors import InputError
from lsmtune.machine.files import temporary_folder
from lsmtune.model.text import is_file
from lsmtune.programs.output import flag_name, gflags_known, nearest_flag
from lsmtune.programs.program import FoundProgram, Observed, Program
from lsmtune.programs.registry import PROGRAMS, ROCKSDB_NAME, YCSB_CPP_NAME

_VERSION = re.compile(r"db_bench version (?P<version>[0-9.]+)")


def recognised(answer: str, asked: Program | None = None) -> str | None:
    """The program that says `answer`, stdout and stderr, when asked for `--help`; None: another.

    It is `asked` where that fits, whatever others fit, too.
    """
    if asked is not None and asked.answer.search(answer):
        return asked.name
    known = PROGRAMS.usable().values()
    return next((each.name for each in known if each.answer.search(answer)), None)


# --- finding a program by its path or on PATH, and asking it what it is

PROGRAM_FLAG = "--program"
_PATIENCE_S = 10.0


def find_program(
    program: Program,
    engine_name: str,
    path: Path | None = None,
    *,
    source: str = PROGRAM_FLAG,
    field: str = "",
    environment: Mapping[str, str] = os.environ,
) -> FoundProgram:
    """The program at `path`, or the first one on PATH that is it.

    Raises InputError: at `path`, naming `source` and `field`, where it is another one or cannot be
    started; without a path where PATH has none, with what was seen there.
    """
    program.check_engine(engine_name)
    if path is not None:
        executable = identify(path, program)
        if executable is None or executable.name != program.name:
            what = "no program that lsmtune knows" if executable is None else executable.name
            why, allowed = f"is {what}", f"a {program.name}"
            raise InputError(source, field, found=str(path), why=why, allowed=allowed)
        if not serves(executable, engine_name):
            why = f"was built without {engine_name}"
            raise InputError(source, field, found=str(path), why=why, allowed="a build with it")
        return executable
    names = [name.format(engine=engine_name) for name in program.executables]
    misses: list[str] = []
    for candidate in _candidates(names, environment):
        try:
            executable = identify(candidate, program)
        except InputError as error:
            misses.append(str(error))
            continue
        if executable is None:
            misses.append(f"{candidate} is another program")
        elif executable.name != program.name:
            misses.append(f"{candidate} is {executable.name}")
        elif not serves(executable, engine_name):
            misses.append(f"{candidate} is built without {engine_name}")
        else:
            return executable
    why = "; ".join([f"not on PATH: looked for {', '.join(names)}", *misses])
    raise InputError(f"--runner {program.name}", why=why, allowed="--program PATH of one")


def _candidates(names: Sequence[str], environment: Mapping[str, str]) -> Iterator[Path]:
    """Executables of the right names, in the order of PATH, each file once."""
    files: set[Path] = set()
    for folder in environment.get("PATH", os.defpath).split(os.pathsep):
        for name in names:
            path = Path(folder or ".") / name
            if is_file(path) and os.access(path, os.X_OK) and path.resolve() not in files:
                files.add(path.resolve())
                yield path


def identify(path: Path, asked: Program | None = None) -> FoundProgram | None:
    """What the program at `path` is, as `recognised` has it; None for one that nobody knows.

    Raises InputError where it cannot be started.
    """
    path = path.absolute()
    answer = _answer(path, ["--help"])
    name = recognised(answer, asked)
    if name is None:
        return None
    executable = FoundProgram(name, path)
    if name == ROCKSDB_NAME:
        match = _VERSION.search(_answer(path, ["--version"]))
        version = None if match is None else match["version"]
        return replace(executable, version=version, flags=gflags_known(answer))
    return executable


def serves(executable: FoundProgram, engine_name: str) -> bool:
    """Whether the program works on `engine_name`: YCSB-cpp has the bindings it was built with.

    It holds the names of their properties, such as `rocksdb.dbname`; asking would need a database.
    """
    if executable.name != YCSB_CPP_NAME:
        return True
    with executable.path.open("rb") as file, mmap(file.fileno(), 0, access=ACCESS_READ) as content:
        return content.find(f"{engine_name}.dbname".encode()) >= 0


def introduced(program: Program, executable: FoundProgram) -> Observed:
    """Version, build and warnings as the program states them; nothing where it states none."""
    introduction = program.introduction
    if introduction is None:
        return Observed({}, version=executable.version)
    with temporary_folder("program") as folder:
        arguments = [text.format(database=f"{folder}/db") for text in introduction.arguments]
        text = _answer(executable.path, arguments)
    observed = introduction.read(text)
    return replace(observed, version=observed.version or executable.version)


def check_arguments(
    program: Program,
    executable: FoundProgram,
    arguments: Sequence[str],
    source: str,
    field: str = "",
) -> None:
    """Raises InputError for an argument with a flag that the program is known not to have."""
    known = executable.flags or program.known_flags
    for argument in arguments:
        # Only programs with gflags list their flags, and there `--noname` makes a truth false.
        name = flag_name(argument).removeprefix("no" if executable.flags else "")
        if argument.startswith("--") and known and not {name, flag_name(argument)} & set(known):
            why, nearest = f"unknown flag of {program.name}", nearest_flag(argument, known)
            raise InputError(source, field, found=argument, why=why, nearest=nearest)


def _answer(path: Path, arguments: Sequence[str]) -> str:
    """All that the program prints; nothing where it takes longer than it should."""
    try:
        done = subprocess.run(
            [str(path), *arguments],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=_PATIENCE_S,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return ""
    except OSError as error:
        raise not_started(str(path), error) from None
    return (done.stderr + b"\n" + done.stdout).decode(errors="replace")
