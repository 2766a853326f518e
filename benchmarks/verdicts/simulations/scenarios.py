"""What the simulated machines do while a candidate is proved: one Scenario each.

A machine is the logarithm of how fast each run goes, in the order of time, whatever it runs. The
scatter is given for the log ratio of a pair, as in calibration; that of a run is less by sqrt(2).
The real machine of `docs/measuring.md` shows 0.15, a quiet one of its own about 0.03.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Logs = NDArray[np.float64]
# Draws the log speeds of (studies, runs).
Machine = Callable[[np.random.Generator, tuple[int, int]], Logs]

NOISY, QUIET = 0.15, 0.03
# How much faster the fastest of ten equal runs was than the slowest, on a shared machine.
OUTLIER = 1.6


@dataclass(frozen=True)
class Scenario:
    """A machine, and what the candidate does to the speed: `ratio` times the baseline's.

    Always so, unless there is an `effect`: what is added to the log of `ratio` in each pair of
    (studies, pairs), as a seed or a tree may do. `smallest_effect` is what a user would have called
    too small to matter, None for nothing.
    """

    name: str
    about: str
    machine: Machine
    ratio: float = 1.0
    smallest_effect: float | None = None
    effect: Machine | None = None

    @property
    def is_equal(self) -> bool:
        """Whether there is no difference (an A/A study)."""
        return self.ratio == 1.0


def normal(pair_sd: float) -> Machine:
    """Independent, normally distributed runs."""
    return lambda random, shape: random.normal(0.0, pair_sd / math.sqrt(2.0), shape)


def student(pair_sd: float, freedom: float) -> Machine:
    """Independent runs with tails as heavy as Student's t with `freedom` degrees.

    `pair_sd` is what the deviation of a pair would be without the tails.
    """
    return lambda random, shape: pair_sd / math.sqrt(2.0) * random.standard_t(freedom, shape)


def outliers(pair_sd: float, often: float = 0.07) -> Machine:
    """Now and then a neighbour takes the machine, and a run is slower by the factor `OUTLIER`."""
    return lambda random, shape: (
        normal(pair_sd)(random, shape) - math.log(OUTLIER) * (random.random(shape) < often)
    )


def linear_drift(pair_sd: float, total: float) -> Machine:
    """The machine changes its speed steadily, by `total` in logs from the first run to the last."""
    return lambda random, shape: normal(pair_sd)(random, shape) + np.linspace(0.0, total, shape[1])


def random_walk(pair_sd: float, step: float) -> Machine:
    """The machine's speed wanders, by `step` from run to run."""
    return lambda random, shape: (
        normal(pair_sd)(random, shape) + np.cumsum(random.normal(0.0, step, shape), axis=1)
    )


def autocorrelated(pair_sd: float, rho: float) -> Machine:
    """Runs that resemble the one before: autoregressive of order 1, in equilibrium."""

    def draw(random: np.random.Generator, shape: tuple[int, int]) -> Logs:
        # Neighbours share rho of their noise, so that their ratio has 1 - rho of the variance.
        logs = random.normal(0.0, pair_sd / math.sqrt(2.0 * (1.0 - rho)), shape)
        for run in range(1, shape[1]):
            logs[:, run] = rho * logs[:, run - 1] + math.sqrt(1.0 - rho**2) * logs[:, run]
        return logs

    return draw


def level_shift(pair_sd: float, by: float) -> Machine:
    """In the middle half of the study, at a run by chance, the machine changes by `by` in logs."""

    def draw(random: np.random.Generator, shape: tuple[int, int]) -> Logs:
        at = random.integers(shape[1] // 4, 1 + 3 * shape[1] // 4, (shape[0], 1))
        return normal(pair_sd)(random, shape) + by * (np.arange(shape[1]) >= at)

    return draw


def order_effect(pair_sd: float, by: float) -> Machine:
    """The second run of each pair differs from the first by `by` in logs."""
    return lambda random, shape: (
        normal(pair_sd)(random, shape) + by * (np.arange(shape[1]) % 2 == 1)
    )


def late_trouble(pair_sd: float, mean: float) -> Machine:
    """The second run of each pair is slowed down by chance: exponentially, by `mean` in logs."""
    return lambda random, shape: (
        normal(pair_sd)(random, shape)
        - random.exponential(mean, shape) * (np.arange(shape[1]) % 2 == 1)
    )


def varying(sd: float) -> Machine:
    """Effects that differ from pair to pair, as much upwards as downwards."""
    return lambda random, shape: random.normal(0.0, sd, shape)


_EQUAL = (
    Scenario("aa-normal", "independent normal noise of 15 %", normal(NOISY)),
    Scenario("aa-linear-drift", "slows by a third, steadily", linear_drift(QUIET, -0.4)),
    Scenario("aa-random-walk", "speed wanders by 5 % a run", random_walk(QUIET, 0.05)),
    Scenario("aa-autocorrelated", "each run like the one before (0.8)", autocorrelated(NOISY, 0.8)),
    Scenario("aa-heavy-tails", "tails of Student's t, 2 degrees", student(QUIET, 2.0)),
    Scenario("aa-outliers", "7 % of the runs 1.6x slower", outliers(QUIET)),
    Scenario("aa-level-shift", "once, in mid-proof, 1.5x slower", level_shift(QUIET, -0.4)),
    Scenario("aa-order-effect", "second of a pair 5 % faster", order_effect(QUIET, 0.05)),
    Scenario("aa-late-trouble", "second of a pair slower by chance", late_trouble(QUIET, 0.1)),
    Scenario("aa-equivalence", "3 % noise, 5 % too small to matter", normal(QUIET), 1.0, 0.05),
)
_DIFFERENT = tuple(
    Scenario(
        f"ratio-{ratio:g}-noise-{sd:g}", f"{100 * (ratio - 1):.0f} % at {100 * sd:.0f} % noise",
        normal(sd), ratio,
    )
    for ratio in (1.02, 1.05, 1.2)
    for sd in (QUIET, NOISY)
)  # fmt: skip
_SPECIAL = (
    Scenario("ratio-1.05-heavy-tails", "5 %, Student's t, 3 degrees", student(QUIET, 3.0), 1.05),
    Scenario("ratio-1.05-outliers", "5 %, 7 % of the runs 1.6x slower", outliers(QUIET), 1.05),
    Scenario("ratio-1.05-drift", "5 %, slows by a third", linear_drift(QUIET, -0.4), 1.05),
    Scenario("ratio-1.05-random-walk", "5 %, wanders by 5 % a run", random_walk(QUIET, 0.05), 1.05),
    Scenario("ratio-0.9-order-effect", "-10 %, second 5 % faster", order_effect(QUIET, 0.05), 0.9),
    Scenario(
        "ratio-1.05-late-trouble",
        "5 %, second of a pair slower by chance",
        late_trouble(QUIET, 0.1),
        1.05,
    ),
    Scenario(
        "ratio-1.1-varying",
        "10 %, by 5 % more or less from pair to pair",
        normal(QUIET),
        1.1,
        effect=varying(0.05),
    ),
    Scenario("ratio-1.02-equivalence", "2 %, 5 % too small", normal(QUIET), 1.02, 0.05),
    Scenario("ratio-1.06-no-equivalence", "6 %, 5 % too small", normal(QUIET), 1.06, 0.05),
)
SCENARIOS = (*_EQUAL, *_DIFFERENT, *_SPECIAL)
