"""`lsmtune quickstart`: the study that comes with lsmtune."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from lsmtune.cli import quickstart
from lsmtune.study.build import load_spec

ROOT = Path(__file__).resolve().parents[2]
STUDY = ROOT / "examples" / "quickstart" / "study.yaml"


@pytest.fixture
def tuned(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """What is tuned, in the place of three minutes of it."""
    calls: list[Any] = []
    monkeypatch.setattr(
        quickstart, "tune_study", lambda *given, **named: calls.append((given, named))
    )
    return calls


def test_it_writes_the_study_file_of_the_examples_here_and_tunes_it(
    lsmtune: Any, home: Path, tuned: list[Any]
) -> None:
    assert lsmtune("quickstart", "--budget", "5m", "--json").status == 0
    assert (home / "quickstart.yaml").read_bytes() == STUDY.read_bytes()
    (((file, folder), named),) = tuned
    assert (str(file), folder) == ("quickstart.yaml", None)
    assert named["budget"] == "5m"
    assert named["as_json"]
    assert load_spec(file).name == "quickstart"


def test_again_it_goes_on_from_the_file_that_is_there(
    lsmtune: Any, home: Path, tuned: list[Any]
) -> None:
    assert "wrote quickstart.yaml" in lsmtune("quickstart").err
    assert lsmtune("quickstart").err == ""
    assert len(tuned) == 2
    assert [path.name for path in home.iterdir()] == ["quickstart.yaml"]


def test_a_file_of_that_name_that_was_changed_is_left_alone(
    lsmtune: Any, home: Path, tuned: list[Any]
) -> None:
    (home / "quickstart.yaml").write_text("mine")
    assert "allowed: a folder without it, or `lsmtune tune quickstart.yaml`" in (
        lsmtune("quickstart").refusal
    )
    assert (home / "quickstart.yaml").read_text() == "mine"
    assert tuned == []
