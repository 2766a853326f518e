"""A program finds its files whatever folder lsmtune was started in, and it itself starts in."""

from __future__ import annotations

from pathlib import Path

import pytest

from lsmtune.model.command import CommandSpec, JsonLines
from lsmtune.model.config import Config, EngineIdentity
from lsmtune.model.measurement import Outcome
from lsmtune.model.request import Limits, RunRequest
from lsmtune.model.workload import Workload
from lsmtune.programs.command import CommandRunner

SCRIPT = """\
set -eu
test -s "$LSMTUNE_PARAMETERS"
test "$LSMTUNE_DIRECTORY" = "$1"
cd "$LSMTUNE_DIRECTORY"
echo '{"score": 1}' >>"$LSMTUNE_RESULTS"
"""


def test_a_run_in_a_directory_named_from_here_is_found_from_elsewhere(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    study, here = tmp_path / "study", tmp_path / "here"
    (here / "run").mkdir(parents=True)
    study.mkdir()
    (study / "bench.sh").write_text(SCRIPT)
    monkeypatch.chdir(here)
    spec = CommandSpec(
        ("sh", "bench.sh", "{directory}"), study, results=JsonLines(), metrics=("score",)
    )
    measurement = CommandRunner(spec).run(
        RunRequest(
            engine=EngineIdentity("program"),
            config=Config({}),
            workload=Workload("program", (), num=1),
            seed=1,
            directory=Path("run"),
            limits=Limits(20.0, 1 << 30, 1 << 30),
        ),
        lambda _message: None,
    )
    assert measurement.outcome is Outcome.OK, measurement.error
    assert measurement.reported == {"score": 1.0}
