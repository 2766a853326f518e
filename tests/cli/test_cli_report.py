"""`lsmtune report` and the importance of the parameters."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from lsmtune.cli import live


@pytest.mark.usefixtures("fake_driver")
def test_importance_by_name_and_none(lsmtune: Any, study: Path) -> None:
    said = lsmtune("tune", str(study), "--trials", "20")
    assert said.status == 0, said.err

    def importances(*arguments: str) -> Any:
        said = lsmtune("report", str(study), "--format", "json", *arguments)
        assert said.status == 0, said.err
        path = study.with_name("study.lsmtune") / "result" / "report.json"
        return json.loads(path.read_text())["importances"]

    assert [table["method"] for table in importances()] == ["ped-anova"]
    assert [table["method"] for table in importances("--importance", "fanova")] == ["fanova"]
    assert importances("--importance", "none") == []


@pytest.mark.usefixtures("fake_driver")
def test_a_file_is_replaced_only_when_asked(lsmtune: Any, study: Path) -> None:
    assert lsmtune("tune", str(study), "--trials", "1").status == 0
    mine = study.with_name("mine.html")
    mine.write_text("mine")
    arguments = ("report", str(study), "--importance", "none", "--output", str(mine))
    assert "mine.html: exists already; allowed: another --output" in lsmtune(*arguments).refusal
    assert mine.read_text() == "mine"
    assert lsmtune(*arguments, "--force").status == 0
    assert "<html" in mine.read_text()


def test_a_mistyped_importance_is_one_line(lsmtune: Any, study: Path) -> None:
    refusal = lsmtune("report", str(study), "--importance", "anova").refusal
    assert "--importance: found 'anova'; allowed: ped-anova, fanova, none" in refusal


@pytest.mark.parametrize(
    ("terminal", "quiet", "shown"),
    [(True, False, True), (True, True, False), (False, False, False)],
)
def test_progress_is_shown_to_a_terminal_alone(
    terminal: bool,
    quiet: bool,
    shown: bool,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """It took what was written to standard output meanwhile, a report, for the terminal."""
    screen = io.StringIO()
    console = Console(file=screen, force_terminal=True, width=80) if terminal else None
    monkeypatch.setattr(live, "live_console", lambda: console)
    with live.counted_progress("resamples", quiet=quiet) as on_progress:
        on_progress(2, 20)
        print("the report")
    assert ("2/20" in screen.getvalue()) is shown
    assert capsys.readouterr().out == "the report\n"
