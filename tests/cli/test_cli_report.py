"""What `lsmtune report` shows while it computes the importance of the parameters."""

from __future__ import annotations

import io

import pytest
from rich.console import Console

from lsmtune.cli import live


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
