"""What a program sees of its trial: in a study, by hand, and with a newer lsmtune around it."""

from __future__ import annotations

import io
import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

import lsmtune
from lsmtune import trial as of_program
from lsmtune.errors import InputError

FACTS = {
    "parameters": {"size": 4096, "ratio": 0.5, "mode": "fast", "on": True},
    "seed": 9,
    "trial": 17,
    "num": 5000,
    "directory": "/somewhere/work",
    "metrics": ["score", "p99"],
    "invented_later": {"a": [1]},
}

MakeTrial = Callable[..., ModuleType]


@pytest.fixture
def make_trial(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> MakeTrial:
    def make(facts: object = FACTS) -> ModuleType:
        path = tmp_path / "trial.json"
        path.write_text(facts if isinstance(facts, str) else json.dumps(facts))
        results = str(tmp_path / "results.jsonl")
        environment = {"LSMTUNE_PARAMETERS": str(path), "LSMTUNE_RESULTS": results}
        made = of_program._Trial(environment, io.StringIO())
        monkeypatch.setattr(of_program, "_current", lambda: made)
        return of_program

    return make


def said(tmp_path: Path) -> list[object]:
    return [json.loads(line) for line in (tmp_path / "results.jsonl").read_text().splitlines()]


def test_in_a_study(make_trial: MakeTrial, tmp_path: Path) -> None:
    trial = make_trial()
    parameters = trial.parameters()
    assert parameters == FACTS["parameters"]
    assert [type(value) for value in parameters.values()] == [int, float, str, bool]
    assert trial.parameters(default={"size": 1, "bits": 10})["size"] == 4096
    assert trial.parameters(default={"size": 1, "bits": 10})["bits"] == 10
    assert (trial.seed(), trial.number(), trial.num()) == (9, 17, 5000)
    assert trial.directory() == Path("/somewhere/work")
    trial.report(1)
    trial.report({"score": 2, "p99": 3}, step=10)
    trial.report(4)
    trial.result(5.5)
    trial.result({"p99": 6})
    assert said(tmp_path) == [
        {"step": 1, "score": 1},
        {"step": 10, "score": 2, "p99": 3},
        {"step": 11, "score": 4},
        {"score": 5.5},
        {"p99": 6},
    ]


def test_a_run_that_is_no_trial(make_trial: MakeTrial) -> None:
    trial = make_trial({"parameters": {}, "trial": None})
    assert trial.parameters() == {}
    assert trial.number() is None
    assert trial.num(7) == 7


def test_outside_a_study(monkeypatch: pytest.MonkeyPatch) -> None:
    printed = io.StringIO()
    made = of_program._Trial({}, printed)
    monkeypatch.setattr(of_program, "_current", lambda: made)
    trial = of_program
    with pytest.raises(InputError, match=r"LSMTUNE_PARAMETERS: not set, .*parameters\(default="):
        trial.parameters()
    assert trial.parameters(default={"size": 1}) == {"size": 1}
    assert (trial.seed(), trial.seed(3), trial.number(), trial.num()) == (0, 3, None, None)
    assert trial.directory() == Path.cwd()
    trial.report(1.5)
    trial.result({"p99": 2})
    assert [json.loads(line) for line in printed.getvalue().splitlines()] == [
        {"step": 1, "value": 1.5},
        {"p99": 2},
    ]


@pytest.mark.parametrize(
    ("value", "why"),
    [
        (float("nan"), "score: found nan; allowed: a finite number"),
        (float("-inf"), "allowed: a finite number"),
        (10**400, "score: found 1000.*; allowed: a finite number"),
        (np.array([1.0, 2.0]), r"score: found \[1. 2.\]; allowed: a finite number"),
        ("5", "score: found '5'; allowed: a number"),
        (True, "allowed: a number"),
        (None, "allowed: a number"),
        ({}, "names no metric"),
        ({"step": 1}, "not the name of a metric"),
        ({"p99": [1]}, "p99: found"),
    ],
)
def test_what_is_no_result_is_refused_where_it_is_reported(
    make_trial: MakeTrial, tmp_path: Path, value: object, why: str
) -> None:
    with pytest.raises(InputError, match=why):
        make_trial().result(value)  # type: ignore[arg-type]
    assert not (tmp_path / "results.jsonl").exists()


@pytest.mark.parametrize("step", [-1, 1.5, True])
def test_a_step_is_a_whole_number(make_trial: MakeTrial, step: object) -> None:
    with pytest.raises(InputError, match="report: step"):
        make_trial().report(1, step)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("facts", "why"), [("{", "not JSON"), ([1], "does not hold a JSON object")]
)
def test_a_broken_file_is_one_line(make_trial: MakeTrial, facts: object, why: str) -> None:
    with pytest.raises(InputError, match=why) as caught:
        make_trial(facts)
    assert "\n" not in str(caught.value)


def test_importing_it_needs_the_standard_library_only() -> None:
    """And no other room than errors: a program that is a trial pays for nothing else."""
    code = (
        "import sys; sys.path.insert(0, sys.argv[1]); import lsmtune; lsmtune.trial.report(1);"
        "rooms = {m for m in sys.modules if m.startswith('lsmtune.')};"
        "assert rooms == {'lsmtune.trial', 'lsmtune.errors'}, rooms"
    )
    package = str(Path(lsmtune.__file__).parents[1])
    done = subprocess.run(
        [sys.executable, "-I", "-S", "-c", code, package],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == {"step": 1, "value": 1.0}


def test_the_package_has_only_what_it_names() -> None:
    with pytest.raises(AttributeError, match="no attribute 'trail'"):
        getattr(lsmtune, "trail")  # noqa: B009
