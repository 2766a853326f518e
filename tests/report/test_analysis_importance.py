"""Importance on made-up trials of which it is known what matters."""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Mapping

import optuna
import pytest

from lsmtune.model.config import OptionValue
from lsmtune.report.importance import RESAMPLES, Method, Scored, importance
from lsmtune.report.tables import Importance, ImportanceRow
from lsmtune.space.parameter import Parameter, make_categorical, make_condition, make_number
from lsmtune.space.prior import Prior
from lsmtune.space.range import Range
from lsmtune.space.space import Space, make_space
from optuna_draws import draws

METHODS = pytest.mark.parametrize("method", list(Method))
Options = Mapping[str, OptionValue]


def number(name: str, low: int = 1, high: int = 64, *, log: bool = False) -> Parameter:
    return make_number(name, Range(low, high, log=log))


def trials_of(
    space: Space, value: Callable[[Options], float | None], count: int, seed: int = 1
) -> list[Scored]:
    study = optuna.create_study(sampler=optuna.samplers.RandomSampler(seed))
    options = [space.suggest(draws(space, study.ask())) for _ in range(count)]
    return [(o, value(o)) for o in options]


def assessed(
    space: Space,
    value: Callable[[Options], float | None],
    method: Method,
    *,
    count: int = 80,
    maximize: bool = True,
) -> Importance:
    trials = trials_of(space, value, count)
    return importance(space, trials, metric="m", maximize=maximize, method=method)


def rows_of(found: Importance) -> dict[str, ImportanceRow]:
    return {row.parameter: row for row in found.rows}


@METHODS
@pytest.mark.parametrize("maximize", [True, False])
def test_one_parameter_matters_and_one_does_not(method: Method, maximize: bool) -> None:
    space = make_space([number("size", 1, 2**20, log=True), number("idle")])
    found = assessed(space, lambda o: math.log2(float(o["size"])), method, maximize=maximize)
    assert found.why == ""
    assert [row.parameter for row in found.rows] == ["size", "idle"]
    size, idle = found.rows
    assert size.importance > 0.8
    assert (size.rank, size.rank_low, size.rank_high, size.rank_share) == (1, 1, 1, 1.0)
    assert size.above_chance
    assert idle.importance_low < 0.02
    assert not idle.above_chance
    for row in found.rows:
        assert row.importance_low <= row.importance <= row.importance_high


@METHODS
def test_the_same_seed_gives_the_same_figures(
    method: Method, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(RESAMPLES, method, 3)
    space = make_space([number("a"), number("b")])
    trials = trials_of(space, lambda o: float(o["a"]), 25)

    def rows(seed: int) -> tuple[ImportanceRow, ...]:
        return importance(space, trials, metric="m", maximize=True, method=method, seed=seed).rows

    assert rows(3) == rows(3)
    assert rows(3) != rows(4)


@METHODS
def test_a_conditional_parameter_is_judged_where_it_is_active(method: Method) -> None:
    child = make_number("child", Range(1, 1000), conditions=[make_condition("mode", "on", "when")])
    space = make_space([make_categorical("mode", ["on", "off"]), child, number("idle")])
    found = assessed(space, lambda o: float(o.get("child", 500)), method, count=200)
    rows = rows_of(found)
    assert found.rows[0].parameter == "child"
    assert rows["child"].above_chance
    assert 60 < rows["child"].trials < 140
    assert rows["idle"].trials == 200
    assert not rows["idle"].above_chance
    assert rows["child"].importance > 4 * rows["mode"].importance


@METHODS
def test_a_special_value_counts_for_its_parameter(method: Method) -> None:
    limited = make_number("limit", Range(1, 1000), specials=[(-1, None)])
    space = make_space([limited, number("idle")])
    # The range does nothing here: all that matters is whether there is a limit.
    found = assessed(space, lambda o: float(o["limit"] == -1), method, count=200)
    rows = rows_of(found)
    assert set(rows) == {"limit", "idle"}
    assert rows["limit"].importance > 0.8
    assert rows["limit"].above_chance
    assert rows["limit"].trials == 200


@METHODS
def test_too_few_trials_give_no_figure(method: Method) -> None:
    space = make_space([number(f"p{k}") for k in range(3)])
    found = assessed(space, lambda o: float(o["p0"]), method, count=19)
    assert found.rows == ()
    assert found.why == "needs at least 20 trials with a value, and there are 19"
    wide = make_space([number(f"p{k}") for k in range(15)])
    enough = assessed(wide, lambda o: float(o["p0"]), method, count=25)
    assert bool(enough.rows) is (method is Method.PED_ANOVA)
    assert enough.why == "" or "at least 30 trials" in enough.why


@METHODS
@pytest.mark.parametrize("value", [5.0, 0.0, -1e300])
def test_values_that_are_all_the_same_give_no_figure(method: Method, value: float) -> None:
    space = make_space([number("a"), number("b")])
    found = assessed(space, lambda _: value, method, count=30)
    assert found.why == "all 30 trials gave the same value"


@METHODS
@pytest.mark.parametrize("factor", [1e-300, 1e306])
def test_the_size_of_the_values_does_not_matter(method: Method, factor: float) -> None:
    space = make_space([number("a"), number("b")])
    found = assessed(space, lambda o: factor * float(o["a"]), method, count=60)
    assert found.rows[0].parameter == "a"
    assert found.rows[0].importance > 0.7


@METHODS
def test_a_parameter_that_never_varied_has_no_importance(method: Method) -> None:
    space = make_space([number("a"), number("b")])
    trials = [
        ({**options, "b": 7}, value)
        for options, value in trials_of(space, lambda o: float(o["a"]), 60)
    ]
    found = importance(space, trials, metric="m", maximize=True, method=method)
    b = rows_of(found)["b"]
    assert b.values_tried == 1
    assert (b.importance, b.importance_high, b.above_chance) == (0.0, 0.0, False)


def test_failed_and_pruned_trials_are_worse_than_all_others() -> None:
    # Among the trials that gave a value `big` means nothing: only that large ones fail.
    space = make_space([number("big"), number("idle")])
    draws = random.Random(5)
    found = assessed(
        space,
        lambda o: None if int(o["big"]) > 20 else draws.random(),
        Method.PED_ANOVA,
        count=150,
    )
    assert found.trials + found.trials_without_value == 150
    assert found.trials_without_value > 60
    assert found.rows[0].parameter == "big"
    assert found.rows[0].above_chance


def test_fanova_leaves_trials_without_a_value_out() -> None:
    space = make_space([number("a"), number("b")])
    found = assessed(
        space,
        lambda o: None if int(o["b"]) > 32 else float(o["a"]),
        Method.FANOVA,
        count=120,
    )
    assert found.rows[0].parameter == "a"
    assert rows_of(found)["a"].trials == found.trials < 100


def test_trials_outside_the_space_and_values_that_are_no_number_are_left_out() -> None:
    space = make_space([number("a"), number("b")])
    trials = trials_of(space, lambda o: float(o["a"]), 30)
    strangers: list[Scored] = [({"a": 10**6, "b": 1}, 9.0), ({"a": "much", "b": 1}, 9.0)]
    broken: list[Scored] = [({"a": 1, "b": 1}, math.nan), ({"a": 1, "b": 2}, math.inf)]
    found = importance(space, [*trials, *strangers, *broken], metric="m", maximize=True)
    assert (found.trials, found.trials_without_value) == (30, 2)


@METHODS
def test_progress_is_told_step_by_step(method: Method, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(RESAMPLES, method, 3)
    space = make_space([number("a"), number("b")])
    trials = trials_of(space, lambda o: float(o["a"]), 25)
    told: list[tuple[int, int]] = []
    found = importance(
        space,
        trials,
        metric="m",
        maximize=True,
        method=method,
        on_progress=lambda done, of: told.append((done, of)),
    )
    assert found.resamples == 3
    assert told == [(1, 3), (2, 3), (3, 3)]


def test_what_chance_alone_gives_is_seldom_called_more(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(RESAMPLES, Method.PED_ANOVA, 20)
    space = make_space([number(f"p{k}") for k in range(8)])
    called = 0
    for seed in range(6):
        draws = random.Random(100 + seed)
        trials = trials_of(space, lambda _, d=draws: d.gauss(0.0, 1.0), 60, seed)  # type: ignore[misc]
        found = importance(space, trials, metric="m", maximize=True, seed=seed)
        called += sum(row.above_chance for row in found.rows)
    # 48 parameters, none of which matters; a tenth would be twice what is claimed.
    assert called <= 5


KINDS = (
    make_number("steps", Range(2**20, 2**26, log=True, step=2**20)),
    make_number("few", Range(1, 3)),
    make_number("share", Range(0, 1, integer=False)),
    make_number("prior", Range(1, 99), prior=Prior("normal", 50, 10)),
    make_number("bins", Range(1, 1024, log=True, bins=5)),
    make_number("limit", Range(1, 9), specials=[(-1, None), (0, None)]),
    make_categorical("mode", ["x", "y", "z"]),
)


@METHODS
@pytest.mark.parametrize("kind", KINDS, ids=lambda parameter: parameter.name)
def test_a_parameter_of_any_kind_is_told_from_those_that_do_nothing(
    method: Method, kind: Parameter
) -> None:
    space = make_space(KINDS)

    def value(options: Options) -> float:
        found = options[kind.name]
        return float("xyz".index(found) if isinstance(found, str) else found)

    found = assessed(space, value, method, count=120)
    assert found.rows[0].parameter == kind.name
    assert found.rows[0].above_chance
    assert sum(row.above_chance for row in found.rows) <= 2
    tried = {options[kind.name] for options, _ in trials_of(space, value, 120)}
    assert (found.rows[0].trials, found.rows[0].values_tried) == (120, len(tried))


def test_few_values_that_do_nothing_are_seldom_called_more_than_chance(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(RESAMPLES, Method.PED_ANOVA, 20)
    # Between the values of such a parameter there is nothing to compare.
    of_few = [number("two", 1, 2), number("three", 1, 3), number("log", 1, 4, log=True)]
    bins = make_number("bins", Range(1, 1024, log=True, bins=4))
    prior = make_number("prior", Range(1, 5), prior=Prior("normal", 3, 1))
    space = make_space([*of_few, bins, prior, number("size", 1, 2**20, log=True)])
    called = 0
    for seed in range(6):
        trials = trials_of(space, lambda o: float(o["size"]), 300, seed)
        found = importance(space, trials, metric="m", maximize=True, seed=seed)
        assert found.rows[0].parameter == "size"
        called += sum(row.above_chance for row in found.rows[1:])
    assert called <= 3  # of 30
