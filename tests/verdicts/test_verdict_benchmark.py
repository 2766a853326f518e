"""The benchmark of verdicts: its document, its table, its exit status."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import simulated
from simulations import detectors, document
from simulations.simulate import Simulated, simulate

ASKED = ("--studies", "100", "--seed", "3")


@pytest.fixture(scope="module")
def rates() -> Simulated:
    """What is asked for below, simulated once for all."""
    return simulate(100, 3)


@pytest.fixture(autouse=True)
def _simulated_once(monkeypatch: pytest.MonkeyPatch, rates: Simulated) -> None:
    known = {(100, 3): rates}
    monkeypatch.setattr(simulated, "simulate", lambda *asked: known[asked])


def test_the_document_and_status(tmp_path: Path) -> None:
    output = tmp_path / "rates.json"
    assert simulated.main([*ASKED, "--output", str(output)]) == 0
    told = json.loads(output.read_text())
    assert (told["studies"], told["seed"], told["ok"]) == (100, 3, True)
    names = [scenario["name"] for scenario in told["scenarios"]]
    assert "aa-random-walk" in names
    assert "ratio-1.05-noise-0.03" in names


def test_the_table_and_a_broken_promise(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    # A promise that cannot be kept: no false alarm is in fewer than none of the series.
    monkeypatch.setattr(detectors, "FALSE_ALARMS_MOST", 1e-9)
    monkeypatch.setattr(document, "FALSE_ALARMS_MOST", 1e-9)
    assert simulated.main(ASKED) == 1
    said = capsys.readouterr()
    lines = said.out.splitlines()
    assert lines[0].startswith("100 simulated studies each, seed 3")
    assert any(line.startswith("speed wanders by 5 % a run") for line in lines)
    assert any(line.startswith("NOT AS STATED: still-") for line in lines)
    assert "every rate is as stated" not in said.out
    assert said.err == ""


@pytest.mark.parametrize("studies", ["99", "many", "1e4"])
def test_too_few_studies_are_refused(studies: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        simulated.main(["--studies", studies])
    assert "--studies" in capsys.readouterr().err
