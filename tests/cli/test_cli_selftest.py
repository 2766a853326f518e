"""`lsmtune selftest statistics` as a command: its document, its table, its exit status."""

from __future__ import annotations

from typing import Any

import pytest

from lsmtune.selftest import detectors, document


def test_the_document_and_status(lsmtune: Any) -> None:
    said = lsmtune("selftest", "statistics", "--studies", "100", "--seed", "3", "--json")
    assert said.status == 0, said.err
    told = said.json()
    assert (told["studies"], told["seed"], told["ok"]) == (100, 3, True)
    names = [scenario["name"] for scenario in told["scenarios"]]
    assert "aa-random-walk" in names
    assert "ratio-1.05-noise-0.03" in names


def test_the_table_and_a_broken_promise(lsmtune: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    # A promise that cannot be kept: no false alarm is in fewer than none of the series.
    monkeypatch.setattr(detectors, "FALSE_ALARMS_MOST", 1e-9)
    monkeypatch.setattr(document, "FALSE_ALARMS_MOST", 1e-9)
    said = lsmtune("selftest", "statistics", "--studies", "100")
    assert said.status == 1
    lines = said.out.splitlines()
    assert lines[0].startswith("100 simulated studies each, seed 1")
    assert any(line.startswith("speed wanders by 5 % a run") for line in lines)
    assert any(line.startswith("NOT AS STATED: still-") for line in lines)
    assert "every rate is as stated" not in said.out
    assert said.err == ""


def test_without_a_command_it_says_what_there_is(lsmtune: Any) -> None:
    said = lsmtune("selftest")
    assert said.status == 0
    assert "statistics" in said.out


@pytest.mark.parametrize("studies", ["99", "many", "1e4"])
def test_too_few_studies_are_refused(lsmtune: Any, studies: str) -> None:
    said = lsmtune("selftest", "statistics", "--studies", studies)
    assert said.status == 2
    assert said.err == (
        f"lsmtune: --studies: found '{studies}'; allowed: a whole number from 100 to 1000000\n"
    )
