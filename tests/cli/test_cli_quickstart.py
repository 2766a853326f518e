"""`lsmtune quickstart`: the study that comes with lsmtune."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from lsmtune.cli import quickstart, tune
from lsmtune.cli.tune import SessionFlags, TuneFlags
from lsmtune.errors import LsmtuneError
from lsmtune.study.build import load_spec

ROOT = Path(__file__).resolve().parents[2]
STUDY = ROOT / "examples" / "quickstart" / "study.yaml"


@pytest.fixture
def tuned(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """What is tuned, in the place of three minutes of it."""
    calls: list[Any] = []
    monkeypatch.setattr(quickstart, "tune_study", lambda *given: calls.append(given))
    return calls


def test_it_writes_the_study_file_of_the_examples_here_and_tunes_it(
    lsmtune: Any, home: Path, tuned: list[Any]
) -> None:
    assert lsmtune("quickstart", "--budget", "5m", "--json").status == 0
    assert (home / "quickstart.yaml").read_bytes() == STUDY.read_bytes()
    ((file, session, flags),) = tuned
    assert (str(file), session) == ("quickstart.yaml", SessionFlags(budget="5m", as_json=True))
    assert flags == TuneFlags()
    assert load_spec(file).name == "quickstart"


@pytest.mark.engine
def test_it_is_tune_without_any_further_flag(
    lsmtune: Any, rocksdb_library: Path, driver: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A fault: each flag of `tune` that it did not name had an object of typer as its value."""
    assert driver.is_file()
    assert lsmtune("engines", "add", str(rocksdb_library)).status == 0
    searched: list[tuple[Any, ...]] = []

    def search(*parts: Any, quiet: bool) -> None:
        searched.append((*parts, quiet))
        raise LsmtuneError("the search is left out")

    monkeypatch.setattr(tune, "_search_and_prove", search)
    said = lsmtune("quickstart", "--budget", "5m", "--quiet")
    assert (said.status, said.err.splitlines()[-1]) == (1, "lsmtune: the search is left out")
    ((spec, folder, chosen, _clock, _begun_s, fleet, quiet),) = searched
    assert (spec.name, folder.path.name, fleet, quiet) == (
        *("quickstart", "quickstart.lsmtune"),
        *(None, True),
    )
    assert chosen.engine.name == "rocksdb"


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
