"""What performs the runs of a study: lsmtune's driver, or a program of the user's own."""

from __future__ import annotations

from dataclasses import dataclass

from lsmtune.cli.engine_choice import chosen_engine
from lsmtune.errors import InputError
from lsmtune.proof.method import refusal
from lsmtune.records.engine import Build, EngineIdentity
from lsmtune.records.program import ProgramSpec
from lsmtune.runners.base import Runner
from lsmtune.runners.command import CommandRunner
from lsmtune.runners.driver_binary import find_driver
from lsmtune.runners.native import NativeRunner
from lsmtune.runners.program_find import check_arguments, find_program, introduced
from lsmtune.runners.program_registry import PROGRAMS
from lsmtune.runners.program_run import ProgramRunner
from lsmtune.spec import Spec, place_of


@dataclass(frozen=True)
class TuneRunner:
    """A runner, what it measures, and what the user should know of it."""

    runner: Runner
    engine: EngineIdentity
    warnings: tuple[str, ...] = ()


_LIBRARY = "engine.library"
_METHOD = "proof.method"


def _in_study_file(error: InputError, spec: Spec) -> InputError:
    """`error` with the field of the study file in the place of the flag that says the same."""
    if error.source != "--library":
        return error
    place, allowed = place_of(spec, _LIBRARY), error.allowed.replace("--engine ", "engine.name: ")
    return InputError(place, _LIBRARY, found=error.found, allowed=allowed, why=error.why)


def _trusted(spec: Spec, asked: ProgramSpec) -> TuneRunner:
    """A program that people trust, found and asked what it is."""
    program, place = PROGRAMS[asked.name], place_of(spec, "runner.program")
    path_place = place_of(spec, "runner.path") if asked.path is not None else place
    found = find_program(
        program, spec.engine_name, asked.path, source=path_place, field="runner.path"
    )
    check_arguments(program, found, asked.arguments, place, "runner.arguments")
    said = introduced(program, found)
    build = said.build or Build.UNKNOWN
    engine = EngineIdentity(spec.engine_name, said.version, str(found.path), build)
    warnings = tuple(f"{program.name}: {line}" for line in said.warnings)
    return TuneRunner(ProgramRunner(program, found, asked.arguments), engine, warnings)


def tune_runner(spec: Spec) -> TuneRunner:
    """The runner that `spec` asks for. Raises InputError when it cannot be used."""
    workloads = [weighted.workload for weighted in spec.workloads]
    why = refusal(
        spec.proof.method, workloads, native=spec.command is None and spec.program is None
    )
    if why and spec.proof.method is not None:
        raise InputError(place_of(spec, _METHOD), _METHOD, found=spec.proof.method.value, why=why)
    if spec.program is not None:
        return _trusted(spec, spec.program)
    if spec.command is not None:
        return TuneRunner(CommandRunner(spec.command), EngineIdentity(spec.engine_name))
    driver = find_driver()
    try:
        engine, warnings = chosen_engine(spec.engine_name, spec.engine_library, driver)
    except InputError as error:
        raise _in_study_file(error, spec) from None
    return TuneRunner(NativeRunner(driver), engine, warnings)
