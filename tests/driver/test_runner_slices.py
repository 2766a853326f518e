"""Pauses, which count from the start of their phase, taken apart into slices."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lsmtune.driver.collect import Collector, slices_between
from lsmtune.driver.messages import PROTOCOL_VERSION, Hello, Paused
from lsmtune.model.measurement import Slice
from lsmtune.model.reading import ProtocolError

figures = st.tuples(
    st.integers(0, 1000), st.integers(0, 1000), st.integers(0, 1000), st.none() | st.integers(0, 9)
)


@given(st.lists(figures))
def test_slices_add_up_to_the_last_pause(steps: list[tuple[int, int, int, int | None]]) -> None:
    pauses, operations, elapsed, cpu = [Paused(0, 0, 0, 0.0, 0.0, 0.0)], 0, 0, 0
    for number, (more, longer, busier, stolen) in enumerate(steps, start=1):
        operations, elapsed, cpu = operations + more, elapsed + longer, cpu + busier
        pauses.append(
            Paused(0, number, operations, elapsed, cpu, None if stolen is None else float(stolen))
        )
    slices = slices_between(pauses)
    assert [s.operations for s in slices] == [more for more, _, _, _ in steps]
    assert sum(s.elapsed_s for s in slices) == elapsed
    assert sum(s.cpu_s for s in slices) == cpu


def test_only_pauses_that_end_a_slice_count_and_what_is_not_known_stays_so() -> None:
    pauses = [
        Paused(1, 0, 0, 0.0, 0.0, 0.5),
        Paused(1, 1, 10, 1.0, 0.75, 0.75),
        Paused(1, 1, 10, 1.0, 0.75, 0.75),
        Paused(1, 2, 30, 1.5, 1.0, None),
    ]
    assert slices_between(pauses) == (Slice(1.0, 10, 0.75, 0.25), Slice(0.5, 20, 0.25, None))
    assert slices_between(pauses[:1]) == slices_between([]) == ()


def test_a_pause_in_a_phase_that_was_never_announced_is_refused() -> None:
    collector = Collector()
    collector.take(Hello(PROTOCOL_VERSION, "0"))
    with pytest.raises(ProtocolError, match=r"Paused.index: found 0, a phase never announced"):
        collector.take(Paused(0, 0, 0, 0.0, 0.0, None))
