"""How often changes are seen in still series, and how often the noise figure's interval holds."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from lsmtune.stats.changepoint import segments
from lsmtune.stats.noise import noise_of
from simulations.scenarios import QUIET, Machine, level_shift, normal, outliers, student
from simulations.summary import Rate

# What the docstrings of `stats.changepoint` and `stats.noise` state.
FALSE_ALARMS_MOST = 0.05
NOISE_COVERAGE_LEAST = 0.94


@dataclass(frozen=True)
class AnchorCase:
    """Series of `anchors` baseline runs on a machine that does not change, or does."""

    name: str
    about: str
    machine: Machine
    anchors: int
    changes: bool = False

    def count(self, random: np.random.Generator, studies: int) -> int:
        """In how many of so many series a change is seen."""
        series = self.machine(random, (studies, self.anchors))
        return sum(len(segments(list(values), None)) > 1 for values in series)

    def broken(self, seen: Rate) -> list[str]:
        """A line when there are more false alarms than stated."""
        if self.changes or not seen.is_above(FALSE_ALARMS_MOST):
            return []
        return [f"{self.name}: {seen.share:.3g} false alarms; stated: {FALSE_ALARMS_MOST}"]


@dataclass(frozen=True)
class NoiseCase:
    """Calibrations of `runs` normal runs."""

    runs: int

    @property
    def name(self) -> str:
        """As the document has it."""
        return f"noise-{self.runs}"

    def count(self, random: np.random.Generator, studies: int) -> int:
        """In how many of so many calibrations the interval holds the true deviation."""
        calibrations = random.lognormal(0.0, QUIET, (studies, self.runs))
        found = [noise_of(list(values)) for values in calibrations]
        return sum(noise.log_sd_low <= QUIET <= noise.log_sd_high for noise in found)

    def broken(self, held: Rate) -> list[str]:
        """A line when the interval holds the truth less often than stated."""
        if not held.is_below(NOISE_COVERAGE_LEAST):
            return []
        return [f"{self.name}: held in {held.share:.3g}; stated: {NOISE_COVERAGE_LEAST}"]


def _anchors(name: str, about: str, machine: Machine) -> tuple[AnchorCase, ...]:
    return tuple(
        AnchorCase(f"{name}-{anchors}", f"{anchors} anchors, {about}", machine, anchors)
        for anchors in (20, 100)
    )


ANCHOR_CASES = (
    *_anchors("still-normal", "normal noise", normal(QUIET)),
    *_anchors("still-heavy-tails", "Student's t, 3 degrees", student(QUIET, 3.0)),
    *_anchors("still-outliers", "7 % of them 1.6x slower", outliers(QUIET)),
    AnchorCase(
        "shift-20", "20 anchors, a shift of 4 deviations in the middle half",
        level_shift(QUIET, -4.0 * QUIET / np.sqrt(2.0)), 20, changes=True,
    ),
)  # fmt: skip
NOISE_CASES = tuple(map(NoiseCase, (6, 10, 30)))
