"""Names and settings of samplers, as a study file has them: one line says what is wrong."""

from __future__ import annotations

import subprocess
import sys

import pytest

from lsmtune.errors import InputError
from lsmtune.model.goal import Direction
from lsmtune.search.sampler import SamplerContext
from lsmtune.search.samplers import SAMPLERS, check_installed, check_sampler, check_settings
from lsmtune.testing.search import MAXIMIZE, NUMBERS, RICH, TINY


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
        ("nsga2", {"crossover_probability": 10**400}, "found 1000.*allowed: a number from 0 to 1"),
        ("nsga3", {"population": 1}, "found 1; allowed: a whole number from 2"),
        ("grid", {"points": 2.5}, "sampler.points: found 2.5; allowed: a whole number from 1"),
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


def test_forest_without_scikit_learn_is_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("lsmtune.errors.find_spec", lambda _name: None)
    line = r"sampler.name: needs the package scikit-learn.*pip install 'lsmtune\[forest\]'"
    with pytest.raises(InputError, match=line):
        check_installed("forest", "s", "sampler")


_WITHOUT = """
import sys
sys.modules["sklearn"] = None
import lsmtune.report.analysis
assert not {"optuna.importance", "scipy.stats"} & sys.modules.keys(), "take seconds to import"
from lsmtune.search.samplers import SAMPLERS
from lsmtune.testing.search import NUMBERS, asked, make_searcher
for name in SAMPLERS:
    if name not in ("forest", "manual"):
        asked(make_searcher(name, NUMBERS), 13)
"""


def test_every_other_sampler_and_a_report_do_without_it() -> None:
    subprocess.run([sys.executable, "-c", _WITHOUT], check=True)
