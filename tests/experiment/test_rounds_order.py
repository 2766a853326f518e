"""The order of a round: fair, its own, and the same whenever it is asked for."""

from __future__ import annotations

from collections import Counter
from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st
from rounds_parts import CELLS, cell
from scipy.stats import chisquare

from lsmtune.experiment.schedule import Slot, load_seed_of, shuffled
from lsmtune.experiment.store import Role
from lsmtune.model.request import SEED_MAX


@given(seed=st.integers(0, SEED_MAX), number=st.integers(0, 1000), data=st.data())
def test_an_order_has_every_cell_once_however_they_are_given(
    seed: int, number: int, data: st.DataObject
) -> None:
    given_in = data.draw(st.permutations(CELLS))
    order = shuffled(given_in, seed, number)
    assert sorted(c.name for c in order) == [c.name for c in CELLS]
    assert order == shuffled(CELLS, seed, number)


def test_each_cell_is_in_each_place_equally_often() -> None:
    orders = [shuffled(CELLS, 1, number) for number in range(4000)]
    for place in range(len(CELLS)):
        counts = Counter(order[place].name for order in orders)
        assert chisquare([counts[c.name] for c in CELLS]).pvalue > 1e-4


def test_each_cell_follows_each_other_equally_often() -> None:
    pairs = Counter[tuple[str, str]]()
    for number in range(4000):
        names = [c.name for c in shuffled(CELLS, 7, number)]
        pairs.update(pairwise(names))
    assert len(pairs) == 12
    assert chisquare(list(pairs.values())).pvalue > 1e-4


def test_no_tree_serves_two_rounds() -> None:
    """The luck of three that took turns came back in every third round, and looked proved."""
    slots = [Slot(Role.ROUND, number, round=number) for number in range(30)]
    assert len({load_seed_of(slot, 5 + slot.round) for slot in slots}) == 30


def test_a_cell_more_leaves_the_order_of_the_others_alone() -> None:
    more = [name.name for name in shuffled([*CELLS, cell("e")], 3, 2) if name.name != "e"]
    assert more == [c.name for c in shuffled(CELLS, 3, 2)]
