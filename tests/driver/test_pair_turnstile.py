"""The turnstile: never two at once, everybody finishes, and slices come as A B B A."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from lsmtune.driver.pair import Turnstile

# Halts of each arm: numbers of halts in each phase, after which it ends.
arms = st.lists(st.integers(1, 6), max_size=4)


def phases_of(halts: list[int]) -> list[int]:
    """The phase of each halt of an arm that halts so often in each phase."""
    return [phase for phase, count in enumerate(halts) for _ in range(count)]


def turns(
    first: list[int], second: list[int], gone: int = 0, after: int = 0
) -> list[tuple[int, int]]:
    """Who ran, and the phase in which that turn ended; -1 for the turn at whose end it ended.

    The arm `gone` ends `after` so many turns, even while it stands halted; 0: when it is done.
    """
    turnstile, left, log = Turnstile(), [phases_of(first), phases_of(second)], []
    standing = {0: -1, 1: -1}
    while standing:
        arm, phase = turnstile.next(standing), -1
        if left[arm]:
            phase = standing[arm] = left[arm].pop(0)
        else:
            del standing[arm]
        log.append((arm, phase))
        if len(log) == after:
            standing.pop(gone, None)
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


@given(st.integers(1, 20), st.sampled_from([0, 1]))
def test_an_arm_that_ends_early_leaves_all_turns_to_the_other(after: int, gone: int) -> None:
    log = turns([12], [12], gone, after)
    assert [phase for who, phase in log if who == 1 - gone] == [*[0] * 12, -1]
    assert gone not in [who for who, _ in log[after:]]
