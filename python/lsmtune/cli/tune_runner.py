"""What performs the runs of a study: lsmtune's driver, or a program of the user's own."""

from __future__ import annotations

from dataclasses import dataclass

from lsmtune.cli.engine_choice import chosen_engine
from lsmtune.records.engine import EngineIdentity
from lsmtune.runners.base import Runner
from lsmtune.runners.command import CommandRunner
from lsmtune.runners.driver_binary import find_driver
from lsmtune.runners.native import NativeRunner
from lsmtune.spec import Spec


@dataclass(frozen=True)
class TuneRunner:
    """A runner, what it measures, and what the user should know of it."""

    runner: Runner
    engine: EngineIdentity
    warnings: tuple[str, ...] = ()


def tune_runner(spec: Spec) -> TuneRunner:
    """The runner that `spec` asks for. Raises InputError when it cannot be used."""
    if spec.command is not None:
        return TuneRunner(CommandRunner(spec.command), EngineIdentity(spec.engine_name))
    driver = find_driver()
    engine, warnings = chosen_engine(spec.engine_name, spec.engine_library, driver)
    return TuneRunner(NativeRunner(driver), engine, warnings)
