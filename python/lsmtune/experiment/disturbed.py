"""What was disturbed from outside is tried again, and not held against what was measured."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from lsmtune.model.measurement import Measurement, Outcome

T = TypeVar("T")

# What is disturbed so many times, one after the other, is so for a reason that stays.
TRIES = 3


def tried_again(
    attempt: Callable[[], T], disturbance: Callable[[T], str], warn: Callable[[str], None]
) -> T:
    """What `attempt` comes to, the first of TRIES that was not disturbed, or the last.

    `disturbance` says in one clause what disturbed one, empty for nothing; `warn` tells the user.
    """
    for _ in range(TRIES - 1):
        result = attempt()
        why = disturbance(result)
        if not why:
            return result
        warn(f"{why}: that is not held against it, and it is measured again")
    return attempt()


def disturbance_of(measurement: Measurement) -> str:
    """What disturbed a run; empty where nothing did."""
    if measurement.outcome is not Outcome.DISTURBED:
        return ""
    return measurement.message or "disturbed"
