"""What every report must do: tell any study, the same each time."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import ClassVar

from lsmtune.cli.main import main
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
        assert main(["tune", str(study), "--quiet"]) in (0, 3, 4)
        return [home / "study.lsmtune"]

    def test_it_says_what_it_is(self) -> None:
        assert self.format.name == self.name
        assert "/" not in self.format.name

    def test_a_study_is_told_and_the_same_each_time(self, tmp_path: Path) -> None:
        for number, study in enumerate(self.folders(tmp_path)):
            by_command = tmp_path / f"{number}.{self.name}"
            flags = ["--format", self.name, "--importance", "none", "--output", str(by_command)]
            assert main(["report", str(study), *flags]) == 0
            assert by_command.stat().st_size > 0
            with StudyFolder.open(study) as folder:
                again, _ = write_as(folder, self.name, tmp_path / f"{number}-again", None)
            assert again.read_bytes() == by_command.read_bytes()
