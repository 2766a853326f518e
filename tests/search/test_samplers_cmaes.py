"""CMA-ES: what it is to the library, its generations, and where it begins."""

from __future__ import annotations

import json

import numpy as np
import pytest
from optuna.trial import TrialState

from lsmtune.search.cmaes import ATTRIBUTE, GRID_MAX, CmaesSampler, CmaLayout
from lsmtune.search.searcher import Searcher
from lsmtune.search.unit_space import make_unit_space
from lsmtune.testing.search import (
    NUMBERS,
    RICH,
    WORDS,
    asked,
    choice,
    make_searcher,
    number,
    space_of,
)

SETTINGS = {"population": 6}
LAYOUT_SPACE = space_of(
    number("wide", 1, GRID_MAX + 1),
    number("grid", 1, GRID_MAX),
    number("pair", 0, 1),
    number("float", 0.0, 1.0, integer=False),
    number("special", 0, 1000, specials=[(-1, 0.4)]),
    choice("words", "a", "b", "c"),
)


def sampler_of(searcher: Searcher) -> CmaesSampler:
    sampler = searcher._sampler
    assert isinstance(sampler, CmaesSampler)
    return sampler


def test_each_variable_is_what_the_table_says() -> None:
    unit_space = make_unit_space(LAYOUT_SPACE)
    layout = CmaLayout(unit_space)
    names = [column.name for column in unit_space.dimensions]
    assert {names[i] for i in layout.continuous} == {"wide", "float", "special"}
    assert {names[i] for i in layout.discrete} == {"grid"}
    assert {names[i] for i in layout.categorical} == {"pair", "special?", "words"}


@pytest.mark.parametrize("space", [LAYOUT_SPACE, RICH, WORDS, NUMBERS], ids=str)
def test_what_is_kept_says_all_that_was_drawn(space: object) -> None:
    unit_space = make_unit_space(space)  # type: ignore[arg-type]
    layout = CmaLayout(unit_space)
    optimizer = layout.make(np.full(unit_space.dimension_count, np.nan), 0.3, 6)
    optimizer.reseed_rng(3)
    for _ in range(30):
        drawn = optimizer.ask()
        record = json.loads(json.dumps(layout.record(drawn)))
        point = layout.point(record)
        np.testing.assert_array_equal(unit_space.encode([unit_space.decode(point)])[0], point)
        active = ~np.isnan(point)
        for library, indices in ((drawn.x, layout.continuous), (drawn.z, layout.discrete)):
            for value, index in zip([] if library is None else library, indices, strict=True):
                if active[index]:
                    snapped = unit_space.dimensions[index].snap(np.array([value]))
                    assert point[index] == pytest.approx(snapped[0])
        again = layout.solution(record)
        np.testing.assert_array_equal(again._v_raw, drawn._v_raw if drawn.x is not None else [])
        if drawn.c is not None:
            np.testing.assert_array_equal(again.c, drawn.c)


def test_it_moves_after_each_generation_and_not_before() -> None:
    searcher = make_searcher("cmaes", NUMBERS, given=SETTINGS)
    generations = []
    for _ in range(18):
        proposal = searcher.ask()
        generations.append(proposal.trial.system_attrs[ATTRIBUTE]["generation"])
        value = -float(proposal.values["d"])
        searcher.tell(proposal.number, TrialState.COMPLETE, [value])
    assert generations == [0] * 6 + [1] * 6 + [2] * 6


def test_a_generation_that_fails_as_a_whole_is_told_too() -> None:
    searcher = make_searcher("cmaes", NUMBERS, given=SETTINGS)
    for _ in range(13):
        proposal = searcher.ask()
        searcher.tell(proposal.number, TrialState.FAIL)
    assert sampler_of(searcher)._optimizer.generation == 2


def test_failures_move_it_away() -> None:
    searcher = make_searcher("cmaes", NUMBERS, given=SETTINGS)
    late = []
    for index in range(90):
        proposal = searcher.ask()
        bad = float(proposal.values["a"]) > 0.5
        late.append(bad and index >= 60)
        if bad:
            searcher.tell(proposal.number, TrialState.FAIL)
        else:
            searcher.tell(proposal.number, TrialState.COMPLETE, [1.0])
    assert sum(late) <= 6


def test_it_begins_at_the_best_configuration_that_was_given() -> None:
    searcher = make_searcher("cmaes", NUMBERS, given={**SETTINGS, "sigma": 0.02})
    for d, value in ((90, 1.0), (10, 5.0), (50, 2.0)):
        queued = {"a": 0.5, "b": 10.0, "c": 32, "d": d}
        searcher.tell(searcher.ask(queued).number, TrialState.COMPLETE, [value])
    found = asked(searcher, 6)
    assert all(abs(float(values["d"]) - 10) < 12 for values in found)


def test_what_others_put_in_its_place_is_not_told() -> None:
    searcher = make_searcher("cmaes", NUMBERS, given=SETTINGS)
    first = searcher.ask()
    # As if the Searcher had drawn another configuration after those of the sampler were refused.
    changed = {**first.trial.params, "d": (int(first.trial.params["d"]) + 1) % 100}
    first.trial.params = changed
    assert not sampler_of(searcher)._is_drawn(_renumbered(first.trial, 99))
    first.trial.params = dict(first.values)
    assert sampler_of(searcher)._is_drawn(_renumbered(first.trial, 98))


def _renumbered(trial: object, number: int) -> object:
    trial.number = number  # type: ignore[attr-defined]
    return trial
