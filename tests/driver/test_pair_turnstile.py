"""The turnstile: never two at once, everybody finishes, and slices come as A B B A."""

from __future__ import annotations

from itertools import groupby

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lsmtune.driver.pair import Turnstile

# Halts of each arm: numbers of halts in each phase, after which it ends.
arms = st.lists(st.integers(1, 6), max_size=4)


def phases_of(halts: list[int]) -> list[int]:
    """The phase of each halt of an arm that halts so often in each phase."""
    return [phase for phase, count in enumerate(halts) for _ in range(count)]


def turns(first: list[int], second: list[int]) -> list[tuple[int, int]]:
    """Who ran, and the phase in which that turn ended; -1 for the turn at whose end it ended."""
    turnstile, left, log = Turnstile(), [phases_of(first), phases_of(second)], []
    while (arm := turnstile.grant()) is not None:
        assert turnstile.running == arm
        assert turnstile.grant() is None  # never two at once
        if left[arm]:
            phase = left[arm].pop(0)
            turnstile.halted(arm, phase)
        else:
            phase = -1
            turnstile.ended(arm)
        log.append((arm, phase))
    assert turnstile.running is None
    return log


@given(arms, arms)
def test_everybody_runs_all_turns_to_the_end(first: list[int], second: list[int]) -> None:
    log = turns(first, second)
    for arm, halts in enumerate((first, second)):
        assert [phase for who, phase in log if who == arm] == [*phases_of(halts), -1]


@given(arms, arms)
def test_nobody_begins_a_phase_before_both_have_reached_it(
    first: list[int], second: list[int]
) -> None:
    halts, ended = [(-1, 0), (-1, 0)], [False, False]
    for arm, phase in turns(first, second):
        other = 1 - arm
        assert ended[other] or halts[arm] <= halts[other]
        number = halts[arm][1] + 1 if phase == halts[arm][0] else 0
        halts[arm] = (phase, number)
        ended[arm] = phase == -1


@given(st.integers(1, 9))
def test_slices_come_in_the_order_a_b_b_a(pairs: int) -> None:
    order = [arm for arm, _ in turns([pairs + 1], [pairs + 1])][2 : 2 + 2 * pairs]
    assert order == [0, 1, 1, 0, 0, 1, 1, 0, 0, 1, 1, 0, 0, 1, 1, 0, 0, 1][: 2 * pairs]


@given(st.integers(0, 20), st.sampled_from([0, 1]))
def test_an_arm_that_ends_early_leaves_all_turns_to_the_other(after: int, gone: int) -> None:
    turnstile, log, ended = Turnstile(), list[int](), [False, False]
    left = [[0] * 12, [0] * 12]
    while (arm := turnstile.grant()) is not None:
        log.append(arm)
        if left[arm]:
            turnstile.halted(arm, left[arm].pop())
        else:
            turnstile.ended(arm)
            ended[arm] = True
        if len(log) == after:
            turnstile.ended(gone)  # even while it stands halted
            ended[gone] = True
    assert all(ended) or after == 0
    assert not left[1 - gone]
    tail = [who for who, _ in groupby(log[after:])] if after else []
    assert gone not in tail


def test_an_arm_that_ended_may_end_again() -> None:
    turnstile = Turnstile()
    turnstile.ended(0)
    turnstile.ended(0)
    assert turnstile.grant() == 1


def test_wrong_reports_are_refused() -> None:
    turnstile = Turnstile()
    with pytest.raises(ValueError, match="arm 0 halted while it did not run"):
        turnstile.halted(0, 0)
    assert turnstile.grant() == 0
    with pytest.raises(ValueError, match="arm 1 halted while"):
        turnstile.halted(1, 0)
    turnstile.halted(0, 3)
    assert turnstile.grant() == 1
    turnstile.halted(1, 3)
    assert turnstile.grant() == 0
    with pytest.raises(ValueError, match="phase 2 after phase 3"):
        turnstile.halted(0, 2)
