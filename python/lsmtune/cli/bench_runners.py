"""What performs the runs of `bench`: lsmtune's driver, a program people trust, or all of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from lsmtune.errors import InputError, nearest_name
from lsmtune.programs.performing import NATIVE
from lsmtune.programs.registry import PROGRAM_INFOS
from lsmtune.records.engine import EngineIdentity
from lsmtune.records.workload import Workload
from lsmtune.runners.base import Runner

ALL = "all"
RUNNER_FLAG = "--runner"
PROGRAM_FLAG = "--program"
ARGUMENT_FLAG = "--program-argument"


def _names() -> list[str]:
    return [NATIVE, *PROGRAM_INFOS, ALL]


RunnerOption = Annotated[
    str,
    typer.Option(
        RUNNER_FLAG,
        metavar="NAME",
        help="native (lsmtune's driver), rocksdb-db_bench, leveldb-db_bench, ycsb-cpp, ekvsb, "
        "or all: each of them side by side.",
        autocompletion=_names,
    ),
]
OneRunnerOption = Annotated[
    str,
    typer.Option(
        RUNNER_FLAG,
        metavar="NAME",
        help="native (lsmtune's driver), rocksdb-db_bench, leveldb-db_bench, ycsb-cpp or ekvsb.",
        autocompletion=lambda: [NATIVE, *PROGRAM_INFOS],
    ),
]
ProgramOption = Annotated[
    Path | None,
    typer.Option(PROGRAM_FLAG, metavar="PATH", help="The program of --runner, if not on PATH."),
]
ProgramArgumentOption = Annotated[
    list[str] | None,
    typer.Option(
        ARGUMENT_FLAG,
        metavar="TEXT",
        help="An argument that the program is given besides, again for each.",
    ),
]


@dataclass(frozen=True)
class Asked:
    """What the flags say: the runner's name, the program's path, further arguments for it."""

    runner: str = NATIVE
    program: Path | None = None
    arguments: tuple[str, ...] = ()

    def check(self, *, several: bool = True) -> None:
        """Raises InputError for a runner that is none, and for flags that go with no program.

        `several`: whether it may be all of them.
        """
        names = [name for name in _names() if several or name != ALL]
        if self.runner not in names:
            nearest, allowed = nearest_name(self.runner, names), ", ".join(names)
            raise InputError(RUNNER_FLAG, found=self.runner, allowed=allowed, nearest=nearest)
        if self.runner in (NATIVE, ALL):
            stray = PROGRAM_FLAG if self.program is not None else ""
            stray = stray or (ARGUMENT_FLAG if self.arguments else "")
            if stray:
                why = f"has no effect with {RUNNER_FLAG} {self.runner}"
                raise InputError(stray, why=why, allowed=f"{RUNNER_FLAG} of one program")


@dataclass(frozen=True)
class Arm:
    """One way to perform the runs; `warnings` are what to know of it, `note` of its figures."""

    name: str
    runner: Runner
    engine: EngineIdentity
    warnings: tuple[str, ...] = ()
    note: str = ""


@dataclass(frozen=True)
class Missing:
    """A runner that takes no part, and why."""

    runner: str
    why: str


@dataclass(frozen=True)
class Arms:
    """The runners of a comparison, lsmtune's own first, and those that take no part."""

    arms: tuple[Arm, ...]
    missing: tuple[Missing, ...] = ()


def native_arm(engine: str, library: Path | None) -> Arm:
    """lsmtune's driver. Raises InputError when there is none, or no library of `engine`."""
    from lsmtune.cli.engine_choice import chosen_engine
    from lsmtune.runners.driver_binary import find_driver
    from lsmtune.runners.native import NativeRunner

    driver = find_driver()
    identity, warnings = chosen_engine(engine, library, driver)
    return Arm(NATIVE, NativeRunner(driver), identity, warnings)


def program_arm(asked: Asked, engine: str, workload: Workload) -> Arm:
    """The program that `asked` names.

    Raises InputError where it is not found or does not know an argument, and for what it cannot
    perform of `workload` on `engine`.
    """
    from lsmtune.runners.program_find import check_arguments, find_program, introduced
    from lsmtune.runners.program_registry import PROGRAMS
    from lsmtune.runners.program_run import ProgramRunner

    program = PROGRAMS[asked.runner]
    program.info.check_engine(engine)
    program.info.check(workload, engine)
    found = find_program(program, engine, asked.program)
    check_arguments(program, found, asked.arguments, ARGUMENT_FLAG)
    said = introduced(program, found)
    warnings = tuple(f"{program.name}: {line}" for line in said.warnings)
    identity = EngineIdentity(engine, said.version, str(found.path))
    if said.build is not None:
        identity = EngineIdentity(engine, said.version, str(found.path), said.build)
    runner = ProgramRunner(program, found, asked.arguments)
    return Arm(program.name, runner, identity, warnings, program.info.note)


def one_arm(asked: Asked, engine: str, library: Path | None, workload: Workload) -> Arm:
    """The one runner that `asked` names: lsmtune's driver, or a program.

    Raises what `native_arm` and `program_arm` raise, and InputError for a library beside a program.
    """
    if asked.runner == NATIVE:
        return native_arm(engine, library)
    if library is not None:
        why = f"{asked.runner} carries an engine of its own"
        raise InputError("--library", found=str(library), why=why, allowed="--program PATH")
    return program_arm(asked, engine, workload)


def all_arms(engine: str, library: Path | None, workload: Workload) -> Arms:
    """lsmtune's driver and every program that can perform `workload` on `engine`."""
    arms = [native_arm(engine, library)]
    missing: list[Missing] = []
    for name in PROGRAM_INFOS:
        try:
            arms.append(program_arm(Asked(name), engine, workload))
        except InputError as error:
            missing.append(Missing(name, _why(error, name)))
    return Arms(tuple(arms), tuple(missing))


def _why(error: InputError, name: str) -> str:
    return str(error).removeprefix(f"{RUNNER_FLAG} {name}: ")


def turns(arms: Sequence[Arm], repeat: int) -> list[Arm]:
    """The order of the runners in one repeat: every other one backwards, so that drift evens."""
    return list(arms) if repeat % 2 == 0 else list(reversed(arms))
