"""What a caller of Search can do wrong: one line each, and nothing that is stored is lost."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy
import pytest

from lsmtune.errors import InputError, LsmtuneError
from lsmtune.study.ask_and_tell import Search

SPACE = {
    "size": {"type": "int", "low": 1, "high": 64},
    "mode": {"type": "categorical", "choices": ["fast", "slow"]},
}


def test_a_trial_of_another_search_is_refused() -> None:
    """It has the number of a trial that runs here, and other parameters: its value was taken."""
    one, other = Search(SPACE, seed=1), Search(SPACE, seed=2)
    here, there = one.ask(), other.ask()
    assert here.number == there.number
    with pytest.raises(InputError, match="trial: is no trial of this search"):
        one.tell(there, 1.0)
    one.tell(here, 1.0)


@pytest.mark.parametrize("trial", [None, 0, "0"])
def test_what_is_no_trial_is_refused(trial: Any) -> None:
    search = Search(SPACE)
    search.ask()
    with pytest.raises(InputError, match="trial: is no trial of this search"):
        search.tell(trial, 1.0)


@pytest.mark.parametrize("value", [10**400, numpy.array([1.0, 2.0])])
def test_what_no_float_can_hold_is_refused(value: Any) -> None:
    search = Search(SPACE)
    trial = search.ask()
    with pytest.raises(InputError, match=r"tell: value: found .*; allowed: a finite number"):
        search.tell(trial, value)
    search.tell(trial, 1.0)


ARGUMENTS = {
    "a text of constraints": ({"constraints": "size <= 3"}, "constraints: found 'size <= 3'"),
    "a text of metrics": ({"metrics": "latency"}, "metrics: found 'latency'; allowed: a list"),
    "a metric without a name": ({"metrics": [5]}, r"metrics\[0\]: found 5; allowed: text"),
    "a metric with an empty name": ({"metrics": ["m", ""]}, r"metrics\[1\]: found ''"),
    "an objective without a name": ({"direction": {1: "maximize"}}, "direction: found 1"),
    "one start": ({"start": {"size": 5}}, "start: found .*; allowed: a list"),
    "no start": ({"start": [5]}, r"start\[0\]: found 5; allowed: a mapping"),
    "an endless start": (
        {"start": [{"size": float("inf"), "mode": "fast"}]},
        r"start\[0\]: found .*; allowed: a configuration of the space",
    ),
    "a start that is no number": (
        {"start": [{"size": float("nan"), "mode": "fast"}]},
        r"start\[0\]: found .*; allowed: a configuration of the space",
    ),
}


@pytest.mark.parametrize(("given", "line"), ARGUMENTS.values(), ids=ARGUMENTS)
def test_arguments(given: dict[str, Any], line: str) -> None:
    with pytest.raises(InputError, match=f"^Search: {line}"):
        Search(SPACE, **given)


def test_a_closed_search_does_not_write_into_a_folder_that_it_does_not_hold(tmp_path: Path) -> None:
    search = Search(SPACE, folder=tmp_path / "s")
    trial = search.ask()
    search.close()
    with pytest.raises(InputError, match="Search: is closed"):
        search.ask()
    with pytest.raises(InputError, match="Search: is closed"):
        search.tell(trial, 1.0)
    with Search(SPACE, folder=tmp_path / "s") as again:
        assert again.trials == ()
        assert again.ask().parameters == trial.parameters


@pytest.mark.parametrize("name", ["study.db", "measurements.db"])
def test_half_a_folder_is_refused(tmp_path: Path, name: str) -> None:
    """What was told was thrown away without a word."""
    with Search(SPACE, folder=tmp_path / "s") as search:
        search.tell(search.ask(), 1.0)
    (tmp_path / "s" / name).unlink()
    with pytest.raises(LsmtuneError, match=r"it is empty.*, and the study has begun"):
        Search(SPACE, folder=tmp_path / "s")


def test_what_is_stored_is_judged_by_the_constraints_of_today(tmp_path: Path) -> None:
    wide, narrow = ["size <= 64"], ["size <= 3"]
    with Search(SPACE, folder=tmp_path / "s", constraints=wide, sampler="random") as search:
        for _ in range(5):
            trial = search.ask()
            search.tell(trial, float(str(trial.parameters["size"])))
        before = search.best
    assert before is not None
    with Search(SPACE, folder=tmp_path / "s", constraints=narrow) as search:
        assert search.best is None or int(str(search.best.parameters["size"])) <= 3
        assert search.trials[before.number].violations["size <= 3"] > 0
    with Search(SPACE, folder=tmp_path / "s") as search:
        assert search.best is not None
        assert search.best.number == before.number


def test_a_constraint_on_what_may_be_inactive_is_refused_at_once() -> None:
    """It was found out by `ask`, when a configuration left the parameter out."""
    space = {
        "kind": {"type": "categorical", "choices": ["a", "b"]},
        "bits": {"type": "int", "low": 1, "high": 8, "when": {"kind": "a"}},
    }
    with pytest.raises(InputError, match="bits has no value that is known here"):
        Search(space, constraints=["bits <= 4"])
    space["bits"]["default"] = 2
    search = Search(space, constraints=["bits <= 4"], sampler="random", seed=1)
    for _ in range(5):
        assert search.ask().parameters.get("bits", 2) <= 4


def test_a_special_value_that_is_no_number_is_refused() -> None:
    """It was proposed, and the space did not hold what it had proposed."""
    space = {"rate": {"type": "float", "low": 0.1, "high": 1.0, "special": [float("nan")]}}
    with pytest.raises(InputError, match=r"rate\.special\[0\]: found nan; allowed: a number"):
        Search(space)
    space = {"count": {"type": "int", "low": 1, "high": 9, "special": [10**400]}}
    with pytest.raises(InputError, match=r"count\.special\[0\]: found 1000.*; allowed: a number"):
        Search(space)


def test_a_constraint_on_what_a_parameter_never_is_is_refused() -> None:
    with pytest.raises(InputError, match=r"mode is never 'fst'; .*did you mean fast\?"):
        Search(SPACE, constraints=["mode != 'fst'"])


def test_a_constraint_that_is_broken_spares_those_after_it() -> None:
    """The second one has no value where the first one is broken."""
    space = {"n": {"type": "int", "low": 0, "high": 3}}
    search = Search(space, constraints=["n >= 1", "6 / n >= 2"], sampler="grid")
    assert sorted(int(str(search.ask().parameters["n"])) for _ in range(3)) == [1, 2, 3]


def test_a_new_constraint_that_a_stored_trial_breaks_spares_those_after_it(tmp_path: Path) -> None:
    """The folder could not be opened any more."""
    space = {"n": {"type": "int", "low": 0, "high": 3}}
    with Search(space, sampler="grid", folder=tmp_path / "s") as search:
        for _ in range(4):
            trial = search.ask()
            search.tell(trial, float(str(trial.parameters["n"])))
    constraints = ["n >= 1", "6 / n >= 2"]
    with Search(space, constraints=constraints, folder=tmp_path / "s") as search:
        broken = {trial.parameters["n"]: [*trial.violations] for trial in search.trials}
    assert broken == {0: ["n >= 1"], 1: [], 2: [], 3: []}
