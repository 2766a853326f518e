"""Names and settings of samplers, as a study file has them: one line says what is wrong."""

from __future__ import annotations

from importlib.metadata import EntryPoint

import pytest
from search_parts import MAXIMIZE, NUMBERS, RICH, TINY

from lsmtune.errors import InputError
from lsmtune.model.goal import Direction
from lsmtune.search import samplers
from lsmtune.search.sampler import SamplerContext, SamplerKind
from lsmtune.search.samplers import (
    ENTRY_POINTS,
    SAMPLERS,
    check_sampler,
    check_settings,
    collect_samplers,
)


def test_the_samplers_that_every_user_knows_are_there() -> None:
    known = {
        "auto",
        "random",
        "grid",
        "sobol",
        "tpe",
        "gp",
        "cmaes",
        "forest",
        "nsga2",
        "nsga3",
        "manual",
    }
    assert known <= set(SAMPLERS)
    assert next(iter(SAMPLERS)) == "auto"  # the default comes first wherever they are listed


@pytest.mark.parametrize("kind", SAMPLERS.values(), ids=list(SAMPLERS))
def test_defaults_are_values_that_may_be_given(kind) -> None:
    for setting in kind.settings:
        if setting.name == "configs":
            continue  # there is no default list of configurations
        assert setting.read(setting.default) == setting.default
        assert setting.description
        assert setting.allowed


@pytest.mark.parametrize(
    ("name", "given", "line"),
    [
        (
            "tpee",
            {},
            "s: sampler.name: found 'tpee'; allowed: auto, tpe, forest.*did you mean tpe?",
        ),
        ("tpe", {"startup": 5}, "sampler.startup: no such setting; allowed: startup_trials, can.*"),
        ("random", {"startup_trials": 5}, "sampler.startup_trials: no such setting; allowed: none"),
        ("tpe", {"startup_trials": 0}, "found 0; allowed: a whole number from 1 to 100000"),
        ("tpe", {"startup_trials": True}, "found true; allowed: a whole number"),
        ("tpe", {"startup_trials": "ten"}, "found 'ten'; allowed: a whole number"),
        ("tpe", {"startup_trials": None}, "found 'null'; allowed: a whole number"),
        ("nsga2", {"crossover_probability": 1.5}, "found 1.5; allowed: a number from 0 to 1"),
        ("nsga3", {"population": 1}, "found 1; allowed: a whole number from 2"),
        ("grid", {"points": 2.5}, "sampler.points: found 2.5; allowed: a whole number from 1"),
        ("grid", {"parameters": [1]}, r"sampler.parameters: found \[1\]; allowed: a mapping"),
        ("grid", {"parameters": {"x": "many"}}, "x is neither a number of points nor a list"),
        ("grid", {"parameters": {"x": []}}, "x needs at least one value"),
        ("grid", {"parameters": {"x": [1, "1"]}}, "x has the same value twice"),
        ("manual", {"configs": {}}, "configs: not a list with at least one configuration"),
        ("manual", {"configs": []}, "configs: not a list with at least one configuration"),
        ("manual", {"configs": ["default"]}, r"\[0\] is not a mapping of option to value"),
        ("manual", {"configs": [{"a": [1]}]}, r"\[0\]: a has no value that an option can have"),
    ],
)
def test_wrong_settings(name: str, given: dict, line: str) -> None:
    with pytest.raises(InputError, match=line):
        check_settings(name, given, "s", "sampler")


@pytest.mark.parametrize(
    ("name", "space", "given", "line"),
    [
        ("grid", TINY, {"parameters": {"stile": 3}}, "parameters.stile: no such.*mean style"),
        ("grid", TINY, {"parameters": {"style": 3}}, "style: is a choice.*found 3"),
        ("grid", TINY, {"parameters": {"style": ["z"]}}, r"style\[0\]: found 'z'; allowed: a, b"),
        ("grid", NUMBERS, {"parameters": {"d": [5, 101]}}, r"d\[1\]: found 101; allowed: 0 to 100"),
        ("manual", TINY, {}, "sampler.configs: is missing"),
        ("manual", TINY, {"configs": [{"style": "a"}]}, r"configs\[0\].direct: is missing"),
        (
            "manual",
            TINY,
            {"configs": [{"style": "e", "direct": True}]},
            r"configs\[0\].style: found 'e'; allowed: a, b, c, d",
        ),
        (
            "manual",
            TINY,
            {"configs": [{"style": "a", "direct": True, "dirct": True}]},
            r"configs\[0\].dirct: no such parameter in space; .*did you mean direct",
        ),
    ],
)
def test_settings_that_do_not_fit_the_space(name: str, space, given, line: str) -> None:
    settings = check_settings(name, given, "s", "sampler")
    with pytest.raises(InputError, match=line):
        check_sampler(name, SamplerContext(space, 0, settings, MAXIMIZE), "s", "sampler")


def test_a_value_of_a_parameter_that_is_not_active_is_refused() -> None:
    config = {
        **{"buffer_bytes": "1MiB", "level": 1, "threads": 4, "cache_bytes": "1MiB", "ratio": 0.5},
        **{"memtable": "skiplist", "buckets": 10},
    }
    settings = check_settings("manual", {"configs": [config]}, "s", "sampler")
    with pytest.raises(InputError, match=r"buckets: has no effect with this memtable"):
        check_sampler("manual", SamplerContext(RICH, 0, settings, MAXIMIZE), "s", "sampler")


def test_one_objective_only() -> None:
    settings = check_settings("gp", {}, "s", "sampler")
    context = SamplerContext(NUMBERS, 0, settings, (Direction.MAXIMIZE, Direction.MINIMIZE))
    line = "sampler.name: takes one objective only; found 'gp'; allowed: with several .*tpe, nsga2"
    with pytest.raises(InputError, match=line):
        check_sampler("gp", context, "s", "sampler")


ANNEALING = SamplerKind("annealing", "cools down", (), False, SAMPLERS["random"].make)


def entry(name: str, value: str) -> EntryPoint:
    return EntryPoint(name, value, ENTRY_POINTS)


def test_a_package_adds_a_sampler_by_an_entry_point(monkeypatch: pytest.MonkeyPatch) -> None:
    smac = entry("smac", "lsmtune.search.smac:KIND")
    kinds = collect_samplers([entry("annealing", f"{__name__}:ANNEALING"), smac])
    assert [*kinds] == [*SAMPLERS, "annealing"]  # after those that come with lsmtune
    monkeypatch.setattr(samplers, "SAMPLERS", kinds)
    assert check_settings("annealing", {}, "s", "sampler") == {}
    assert samplers.sampler_kind("annealing", "s", "sampler") is ANNEALING


@pytest.mark.parametrize(
    ("name", "value", "line"),
    [
        ("other", "no_such_package:KIND", "sampler.name: cannot be loaded from no_such_package:"),
        ("other", "lsmtune.search.gp:NONE", "lsmtune.search.gp:NONE of .*AttributeError"),
        ("other", "lsmtune.search.gp:STARTS", "is no SamplerKind of this name in lsmtune.search"),
        ("other", "lsmtune.search.gp:KIND", "is no SamplerKind of this name in lsmtune.search.gp"),
        ("tpe", "lsmtune.search.gp:KIND", "is the name of two samplers; uninstall one, lsmtune.s"),
    ],
)
def test_what_cannot_be_used_says_why_when_it_is_named(
    name: str, value: str, line: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    kinds = collect_samplers([entry(name, value)])
    monkeypatch.setattr(samplers, "SAMPLERS", kinds)
    with pytest.raises(InputError, match=line) as caught:
        check_settings(name, {"trees": 3}, "s", "sampler")
    assert "\n" not in str(caught.value)
    assert check_settings("forest", {"trees": 3}, "s", "sampler")["trees"] == 3


def test_an_installation_older_than_its_code_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(samplers, "SAMPLERS", collect_samplers([]))
    with pytest.raises(InputError, match=r"lsmtune\.samplers: install lsmtune again; found 'smac'"):
        check_settings("smac", {"startup_trials": 6}, "s", "sampler")
