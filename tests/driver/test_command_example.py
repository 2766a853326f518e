"""The programs of examples/own-program are trials, with their baselines and with all parameters."""

from __future__ import annotations

import os
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from lsmtune.driver.messages import Message
from lsmtune.model.config import Config, EngineIdentity, OptionValue
from lsmtune.model.measurement import IntermediateReport, Outcome
from lsmtune.model.request import RunRequest
from lsmtune.programs.command import CommandRunner
from lsmtune.study.build import load_spec

EXAMPLE = Path(__file__).parents[2] / "examples" / "own-program"
MORE: dict[str, OptionValue] = {"journal": "wal", "checkpoint_pages": 100}


@pytest.mark.parametrize(
    ("study", "more", "reports"), [("study.yaml", MORE, 10), ("shell.yaml", {}, 0)]
)
def test_an_example_is_a_trial(
    tmp_path: Path, study: str, more: dict[str, OptionValue], reports: int
) -> None:
    spec = load_spec(EXAMPLE / study)
    assert spec.command is not None
    command = spec.command.command
    if command[0] == "python3":  # the one that has lsmtune
        command = (sys.executable, *command[1:])
    package = str(Path(__file__).parents[2] / "python")
    runner = CommandRunner(
        replace(spec.command, command=command),
        environment={**os.environ, "PYTHONPATH": package},
    )
    for number, options in enumerate((spec.baseline.options, {**spec.baseline.options, **more})):
        directory = tmp_path / str(number)
        directory.mkdir()
        heard: list[Message] = []
        request = RunRequest(
            engine=EngineIdentity(spec.engine_name),
            config=Config(options),
            workload=spec.workload,
            seed=number,
            directory=directory,
            limits=spec.limits,
        )
        measurement = runner.run(request, heard.append)
        assert measurement.outcome is Outcome.OK, measurement.error
        assert measurement.reported[spec.objective.metric] > 0
        steps = [m.step for m in heard if isinstance(m, IntermediateReport)]
        assert steps == list(range(1, reports + 1))
        assert list((directory / "work").glob("*.db")) == []
