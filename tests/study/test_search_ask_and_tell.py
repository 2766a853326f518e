"""Ask and tell: what is asked, what may be told, and that a folder loses nothing of it."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from optuna.storages import RDBStorage

import lsmtune
from lsmtune.errors import InputError
from lsmtune.model.measurement import Outcome
from lsmtune.search.sampler import SpaceExhaustedError
from lsmtune.study.ask_and_tell import FinishedTrial, Search, Trial

SPACE = {
    "x": {"type": "float", "low": -5.0, "high": 5.0},
    "size": {"type": "int", "low": "1MiB", "high": "64MiB", "step": "1MiB", "log": True},
    "mode": {"type": "categorical", "choices": ["fast", "slow"]},
    "depth": {"type": "int", "low": 1, "high": 4, "when": {"mode": "slow"}},
}
SMALL = {"n": {"type": "int", "low": 1, "high": 3}}


def loss(trial: Trial) -> float:
    x, size = trial.parameters["x"], trial.parameters["size"]
    assert isinstance(x, float)
    assert isinstance(size, int)
    return (x - 1) ** 2 + size / 2**25


def play(search: Search, trials: int) -> None:
    """Every third trial fails and every fourth is pruned."""
    for _ in range(trials):
        trial = search.ask()
        trial.report(trial.number)
        if trial.number % 4 == 3:
            search.tell(trial, pruned=True)
        elif trial.number % 3 == 2:
            search.tell(trial, failed="crashed")
        else:
            search.tell(trial, loss(trial))


def told(search: Search) -> list[FinishedTrial]:
    return list(search.trials)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "search"


@pytest.fixture
def search() -> Iterator[Search]:
    with Search(SPACE, direction="minimize", seed=3, sampler="random") as made:
        yield made


def test_the_best_of_what_was_told(search: Search) -> None:
    assert search.best is None
    assert search.front == ()
    play(search, 12)
    assert [trial.number for trial in search.trials] == list(range(12))
    outcomes = [trial.outcome for trial in search.trials]
    assert outcomes[2:4] == [Outcome.CRASHED, Outcome.PRUNED]
    values = [trial.value for trial in search.trials if trial.value is not None]
    assert len(values) == 6
    assert search.best is not None
    assert search.best.value == min(values)
    for trial in search.trials:
        assert ("depth" in trial.parameters) == (trial.parameters["mode"] == "slow")


def test_constraints_on_parameters_cost_no_trial_and_those_on_metrics_bar_the_best() -> None:
    search = Search(
        SPACE,
        direction={"speed": "maximize"},
        sampler="random",
        metrics=["memory"],
        constraints=["size <= 8MiB", "memory <= 6MiB and speed > 0"],
    )
    for _ in range(30):
        trial = search.ask()
        size = trial.parameters["size"]
        assert isinstance(size, int)
        assert size <= 8 << 20
        finished = search.tell(trial, {"speed": size, "memory": size})
        assert finished.eligible == (size <= 6 << 20)
    assert search.best is not None
    assert search.best.value is not None
    assert search.best.value <= 6 << 20
    with pytest.raises(InputError, match="tell: memory: missing, and a constraint names it"):
        search.tell(search.ask(), 1.0)


def test_several_objectives_have_a_front() -> None:
    ways = {"speed": "maximize", "memory": "minimize"}
    search = Search({"n": {"type": "int", "low": 1, "high": 9}}, direction=ways, sampler="nsga2")
    for _ in range(8):
        trial = search.ask()
        n = trial.parameters["n"]
        assert isinstance(n, int)
        search.tell(trial, {"speed": min(n, 5), "memory": n})
    assert all(trial.metrics["memory"] <= 5 for trial in search.front)
    with pytest.raises(InputError, match="several objectives have no best trial but a front"):
        _ = search.best
    with pytest.raises(InputError, match="allowed: a mapping with speed, memory"):
        search.tell(search.ask(), 1.0)


def test_a_pruner_ends_what_looks_bad() -> None:
    search = Search(SMALL | SPACE, pruner={"name": "median", "startup_trials": 2}, sampler="random")
    for value in (10.0, 11.0, 12.0):
        trial = search.ask()
        trial.report(value)
        search.tell(trial, value)
    good, bad = search.ask(), search.ask()
    good.report(20.0)
    bad.report(1.0)
    assert not good.should_prune()
    assert bad.should_prune()
    search.tell(bad, pruned=True)
    with pytest.raises(InputError, match=f"report: trial {bad.number} does not run"):
        bad.report(1.0)


def test_a_small_space_ends_and_what_was_put_back_comes_again() -> None:
    search = Search(SMALL, sampler="random", start=[{"n": 2}])
    first = search.ask()
    assert first.parameters == {"n": 2}
    search.put_back(first)
    again = search.ask()
    assert again.parameters == {"n": 2}
    assert again.number == 1
    search.tell(again, 1.0)
    for _ in range(2):
        search.tell(search.ask(), failed="timeout")
    with pytest.raises(SpaceExhaustedError):
        search.ask()
    assert [trial.number for trial in search.trials] == [1, 2, 3]
    assert sorted(str(t.parameters["n"]) for t in search.trials) == ["1", "2", "3"]


def test_a_ready_space_has_its_fixed_options_and_constraints() -> None:
    search = Search("rocksdb-write", sampler="random")
    trial = search.ask()
    assert "write_buffer_size" in trial.parameters
    search.tell(trial, 1.0)


BAD: list[tuple[dict[str, Any], str]] = [
    ({"space": "rocksdb-writ"}, "Search: space: no such ready space; .*did you mean rocksdb-write"),
    ({"space": {"x": {"type": "int", "low": 1}}}, "Search: space.x.high: missing"),
    ({"space": {"x": {"type": "int", "low": 2, "high": 1}}}, "Search: space.x"),
    ({"space": {}}, "Search: space: has no parameters"),
    ({"space": 3}, "Search: space: found 3"),
    ({"direction": "up"}, "Search: direction: found 'up'; allowed: maximize, minimize"),
    ({"direction": {"a": "maximise"}}, "direction.a: found 'maximise'; .*did you mean maximize"),
    ({"direction": {}}, "direction: names no objective"),
    ({"sampler": "tpee"}, "sampler.name: found 'tpee'; .*did you mean tpe"),
    ({"sampler": {"name": "tpe", "foo": 1}}, "sampler.foo: no such setting"),
    ({"pruner": "medium"}, "pruner.name: found 'medium'"),
    ({"pruner": {"name": "median", "rungs": {"every": 1}}}, "pruner.rungs: has no effect here"),
    (
        {"pruner": "median", "direction": {"a": "maximize", "b": "minimize"}},
        "pruner.name: judges by one objective",
    ),
    ({"constraints": ["m < 1"]}, r"constraints\[0\]: no such option, metric or fact"),
    ({"start": [{"n": 9}]}, r"start\[0\]: found {'n': 9}; allowed: a configuration of the space"),
    ({"start": [{"n": 3}], "constraints": ["n < 3"]}, r"start\[0\]: breaks n < 3; found {'n': 3}"),
    ({"seed": -1}, "seed: found -1; allowed: at least 0"),
    ({"seed": "7"}, "seed: found '7'; allowed: a whole number"),
]


@pytest.mark.parametrize(("arguments", "told"), BAD)
def test_bad_arguments_are_one_line(arguments: dict[str, Any], told: str) -> None:
    with pytest.raises(InputError, match=told) as caught:
        Search(**({"space": SMALL} | arguments))
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ({}, "says how the trial ended; allowed: value, failed or pruned"),
        ({"value": 1, "pruned": True}, "allowed: value, failed or pruned"),
        ({"failed": "crash"}, "failed: found 'crash'; .*did you mean crashed"),
        ({"failed": "ok"}, "failed: found 'ok'"),
        ({"value": float("nan")}, "tell: value: found nan; allowed: a finite number"),
        ({"value": "1"}, "tell: value: found '1'; allowed: a number"),
        ({"value": True}, "allowed: a number"),
        ({"value": {"values": 1}}, "tell: value: missing; did you mean values"),
    ],
)
def test_what_cannot_be_told_leaves_the_trial_running(
    search: Search, arguments: dict[str, Any], told: str
) -> None:
    trial = search.ask()
    with pytest.raises(InputError, match=told):
        search.tell(trial, **arguments)
    assert search.tell(trial, 1.5).value == 1.5
    with pytest.raises(InputError, match="trial: does not run; found 0; allowed: what ask gave"):
        search.tell(trial, 1.5)


@pytest.mark.parametrize("value", [float("inf"), "1", None])
def test_only_numbers_are_reported(search: Search, value: Any) -> None:
    with pytest.raises(InputError, match="report: value"):
        search.ask().report(value)
    with pytest.raises(InputError, match="report: step"):
        search.ask().report(1, step=-1)


@pytest.mark.parametrize("sampler", ["random", "forest"])
def test_a_folder_goes_on_as_if_it_had_not_been_closed(folder: Path, sampler: str) -> None:
    arguments: dict[str, Any] = {"direction": "minimize", "sampler": sampler, "pruner": "median"}
    arguments |= {"constraints": ["value <= 20", "size < 60MiB"], "seed": 5}
    with Search(SPACE, **arguments) as whole:
        play(whole, 12)
    for trials in (5, 1, 6):
        with Search(SPACE, folder=folder, **arguments) as part:
            play(part, trials)
            found, best = told(part), part.best
    assert found == told(whole)
    assert best == whole.best
    with Search(SPACE, folder=folder, **arguments) as again:
        assert told(again) == found


def test_a_trial_that_was_never_told_is_tried_again_first(folder: Path) -> None:
    with Search(SPACE, folder=folder) as search:
        play(search, 2)
        lost = search.ask()
    for _ in range(2):
        with Search(SPACE, folder=folder) as search:
            again = search.ask()
            assert again.parameters == lost.parameters
    with Search(SPACE, folder=folder) as search:
        search.tell(search.ask(), 1.0)
        assert search.ask().parameters != lost.parameters
        assert len(search.trials) == 3


def test_a_new_constraint_passes_over_trials_that_were_not_told_its_metric(folder: Path) -> None:
    """The folder could not be opened: 'tell: memory: missing', of a trial of days ago."""
    with Search(SPACE, folder=folder) as search:
        search.tell(search.ask(), 1.0)
    more: dict[str, Any] = {"metrics": ["memory"], "constraints": ["memory <= 6MiB"]}
    with Search(SPACE, folder=folder, **more) as search:
        (old,) = search.trials
        assert (old.violations, old.eligible) == ({}, True)
        with pytest.raises(InputError, match="tell: memory: missing"):
            search.tell(search.ask(), 2.0)


def test_a_start_in_whole_numbers_is_not_run_again_in_every_session(folder: Path) -> None:
    """The trial had 8.0 for the 8 that was stated, and each session queued it anew."""
    for session in range(3):
        space = {"ratio": {"type": "float", "low": 4.0, "high": 20.0}}
        with Search(space, sampler="random", start=[{"ratio": 8}], folder=folder) as search:
            trial = search.ask()
            assert (trial.parameters == {"ratio": 8.0}) == (session == 0)
            search.tell(trial, 1.0)


def test_a_kill_in_the_middle_of_tell_loses_nothing(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def killed(*_: object) -> None:
        raise KeyboardInterrupt

    with Search(SPACE, folder=folder) as search:
        trial = search.ask()
        monkeypatch.setattr(RDBStorage, "set_trial_state_values", killed)
        with pytest.raises(KeyboardInterrupt):
            search.tell(trial, 4.5)
        monkeypatch.undo()
    with Search(SPACE, folder=folder) as search:
        assert [t.value for t in search.trials] == [4.5]
        assert search.ask().number == 1


def test_another_search_is_refused_and_changes_nothing(folder: Path) -> None:
    with Search(SPACE, folder=folder) as search:
        play(search, 3)
        with pytest.raises(InputError, match="in use by another tuner"):
            Search(SPACE, folder=folder)
    for arguments in ({"space": SMALL}, {"space": SPACE, "direction": "minimize"}):
        with pytest.raises(InputError, match="cannot be compared with"):
            Search(**arguments, folder=folder)  # type: ignore[arg-type]
    with Search(SPACE, folder=folder) as search:
        assert len(search.trials) == 3


def test_objectives_in_another_order_are_another_search(folder: Path) -> None:
    """Values are stored by their place: speed was then taken for memory, without a word."""
    ways = {"speed": "maximize", "memory": "minimize"}
    with Search(SPACE, direction=ways, folder=folder) as search:
        search.tell(search.ask(), {"speed": 100.0, "memory": 2.0})
    other = dict(reversed(ways.items()))
    with pytest.raises(InputError, match=r"cannot be compared .* changed since: direction"):
        Search(SPACE, direction=other, folder=folder)


def test_a_folder_that_is_not_ours_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "precious").write_text("data")
    with pytest.raises(InputError, match="not ours"):
        Search(SPACE, folder=tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["precious"]


def test_the_package_offers_it_without_loading_it() -> None:
    assert {"Search", "Trial", "FinishedTrial", "SpaceExhaustedError"} <= set(lsmtune.__all__)
    assert all(getattr(lsmtune, name) for name in lsmtune.__all__)
    code = "import sys, lsmtune; assert not [m for m in sys.modules if m.startswith('lsmtune.')]"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
