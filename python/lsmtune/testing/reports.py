"""What every report must do: tell any study, the same each time."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import ClassVar

from lsmtune.experiment.folder import StudyFolder
from lsmtune.report.study import FORMATS, ReportFormat, write_as

# The seed of a run is its noise.
_STUDY = """\
version: 1
name: suite
runner: {command: [echo, '{{"speed": {x}.{seed}}}'], results: {json_lines: stdout}}
objective: {metric: speed, direction: maximize}
baseline: {x: 100}
space: {x: {type: int, low: 100, high: 200}}
sampler: {name: random}
budget: {trials: 3}
proof: {pairs: 6}
seed: 1
"""


class ReportSuite:
    """The tests of one form of reports, installed by its package or lsmtune's own.

    Attributes:
        name: As `--format` has it.
    """

    name: ClassVar[str]

    @property
    def format(self) -> ReportFormat:
        """What it says of itself."""
        return FORMATS[self.name]

    def folders(self, home: Path) -> Iterable[Path]:
        """The folders of studies: one of `echo` in `home`, which takes a second."""
        study = home / "study.yaml"
        study.write_text(_STUDY, encoding="utf-8")
        command = [sys.executable, "-m", "lsmtune.cli.main", "tune", str(study), "--quiet"]
        done = subprocess.run(command, check=False, capture_output=True, text=True)
        assert done.returncode in (0, 3, 4), done.stderr
        return [home / "study.lsmtune"]

    def test_it_says_what_it_is(self) -> None:
        assert self.format.name == self.name
        assert "/" not in self.format.name

    def test_a_study_is_told_and_the_same_each_time(self, tmp_path: Path) -> None:
        for number, study in enumerate(self.folders(tmp_path)):
            told = set()
            for time in ("first", "again"):
                with StudyFolder.open(study) as folder:
                    path, _ = write_as(folder, self.name, tmp_path / f"{number}-{time}", None)
                told.add(path.read_bytes())
            assert len(told) == 1
            assert b"" not in told
