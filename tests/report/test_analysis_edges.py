from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lsmtune.report.notices import edges, proposed_range, side_of
from lsmtune.space.parameter import make_categorical, make_number
from lsmtune.space.prior import Prior
from lsmtune.space.range import Range

MIB = 2**20


@pytest.mark.parametrize(
    ("numbers", "side", "expected"),
    [
        # The published optimum of NNI's example lies on this edge.
        (Range(2 * MIB, 16 * MIB, step=MIB), "low", (1 * MIB, 16 * MIB)),
        (Range(2, 16), "high", (2, 23)),
        (Range(2, 16), "low", (1, 16)),
        (Range(1 * MIB, 64 * MIB, log=True), "high", (1 * MIB, 256 * MIB)),
        (Range(4 * MIB, 64 * MIB, log=True, step=MIB), "low", (1 * MIB, 64 * MIB)),
        # The quickstart's first space began at its own step; the optimum lay there.
        (Range(1 * MIB, 64 * MIB, log=True, step=MIB), "low", (MIB // 4, 64 * MIB)),
        (Range(1, 8), "low", None),
        (Range(0, 8), "low", None),
        (Range(-8, 8), "low", (-16, 8)),
        (Range(0.05, 0.25, step=0.05, integer=False), "high", (0.05, 0.35)),
    ],
)
def test_proposed_range(numbers: Range, side: str, expected: tuple[float, float] | None) -> None:
    found = proposed_range(numbers, side)
    assert found == (None if expected is None else pytest.approx(expected))


@given(
    st.integers(1, 10**9), st.integers(1, 10**9), st.booleans(), st.sampled_from(["low", "high"])
)
def test_a_proposal_is_wider_and_still_a_range(low: int, span: int, log: bool, side: str) -> None:
    numbers = Range(low, low + span, log=log)
    found = proposed_range(numbers, side)
    if found is None:
        assert side == "low"
        return
    assert found[0] <= numbers.low
    assert found[1] >= numbers.high
    assert found != (numbers.low, numbers.high)
    assert found[0] > 0


def test_only_values_on_a_bound_are_edges() -> None:
    parameters = (
        make_number("a", Range(1, 8)),
        make_number("b", Range(1, 8)),
        make_number("c", Range(1, 8), specials=[(-1, None)]),
        make_categorical("d", ["x", "y"]),
    )
    found = edges(parameters, {"a": 8, "b": 7, "c": -1, "d": "x"})
    assert [(edge.parameter.name, edge.side) for edge in found] == [("a", "high")]


def test_a_range_that_begins_at_its_step_wants_a_finer_one() -> None:
    def edge(low: int) -> bool:
        numbers = Range(low, 64 * MIB, log=True, step=MIB)
        parameter = make_number("write_buffer_size", numbers)
        return edges((parameter,), {"write_buffer_size": low})[0].needs_finer_step()

    assert edge(1 * MIB)
    assert not edge(4 * MIB)


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (64 * MIB, "high"),
        (64 * MIB - 4096, "high"),
        (61 * MIB, None),  # 1.2 % of six doublings below
        (1 * MIB, "low"),
        (1 * MIB + 4096, "low"),
        (2 * MIB, None),
        (128 * MIB, None),  # outside, as a special value is
    ],
)
def test_a_value_next_to_a_bound_is_on_it(value: int, expected: str | None) -> None:
    assert side_of(Range(1 * MIB, 64 * MIB, log=True), value) == expected


@pytest.mark.parametrize(
    ("low", "high", "specials", "side", "expected"),
    [
        (1, 100, [0], "low", None),
        (8, 100, [4], "low", (5, 100)),
        (8, 100, [-1], "low", (2, 100)),
        (1, 100, [120], "high", (1, 119)),
        (1, 100, [101], "high", None),
        (1, 100, [100_000], "high", (1, 149)),
        (-8, 8, [-9], "low", None),
    ],
)
def test_a_wider_range_holds_no_special_value(
    low: int,
    high: int,
    specials: list[float],
    side: str,
    expected: tuple[float, float] | None,
) -> None:
    assert proposed_range(Range(low, high), side, specials) == expected


def test_binned_numbers_and_numbers_with_a_prior_have_edges() -> None:
    binned = make_number("binned", Range(1, 1024, log=True, bins=5))
    prior = Prior("normal", 8.0, 2.0)
    expected = make_number("expected", Range(1, 12), prior=prior)
    found = edges((binned, expected), {"binned": 1024, "expected": 12})
    assert [(edge.parameter.name, edge.side, edge.proposed) for edge in found] == [
        ("binned", "high", (1, 4096)),
        ("expected", "high", (1, 17)),
    ]
