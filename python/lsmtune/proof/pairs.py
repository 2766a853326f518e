"""The pairs of a proof as they are stored: which runs belong together, and which count."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from lsmtune.records.config import Config
from lsmtune.records.goal import outcome_of
from lsmtune.records.measurement import Measurement, Outcome
from lsmtune.records.pairing import PairMethod
from lsmtune.storage.measurements import MeasurementStore, Role, StoredMeasurement

Side = Sequence[StoredMeasurement]


@dataclass(frozen=True)
class Pair:
    """Both sides of one pair, each with a run per workload.

    Both are cut off after the first workload with a run that failed.
    """

    number: int
    baseline: Side
    candidate: Side

    @property
    def runs(self) -> tuple[StoredMeasurement, ...]:
        """The runs of both sides."""
        return (*self.baseline, *self.candidate)

    @property
    def wall_s(self) -> float:
        """Seconds that the pair cost."""
        return sum(run.wall_s for run in self.runs)

    def is_of(self, method: PairMethod) -> bool:
        """Whether all its runs shared the machine by `method`."""
        return all(run.measurement.paired_by == method.value for run in self.runs)

    def is_over(self, workloads: int) -> bool:
        """Whether no run is missing: a kill may have cut the pair off."""
        if len(self.baseline) != len(self.candidate):
            return False
        return len(self.baseline) == workloads or failed(self.baseline) or failed(self.candidate)


def stored_pairs(
    store: MeasurementStore, baseline: Config, candidate: Config, workloads: int = 1
) -> list[Pair]:
    """The pairs of these two configurations that were not cut off, in the order of their numbers.

    A pair of a lsmtune that tossed no coin for its order has no method, and serves none.
    """
    baselines = stored_sides(store, Role.PROOF_BASELINE, baseline)
    candidates = stored_sides(store, Role.PROOF_CANDIDATE, candidate)
    both = sorted(baselines.keys() & candidates.keys())
    pairs = [Pair(number, baselines[number], candidates[number]) for number in both]
    return [pair for pair in pairs if pair.is_over(workloads)]


def stored_sides(store: MeasurementStore, role: Role, config: Config) -> dict[int, Side]:
    """The runs of `config` in the proof by pair, each side in the order of the workloads."""
    options, sides = dict(config.options), dict[int, list[StoredMeasurement]]()
    for run in store.of(role):
        if run.pair is not None and dict(run.config.options) == options:
            sides.setdefault(run.pair, []).append(run)
    return {pair: sorted(side, key=lambda run: run.workload) for pair, side in sides.items()}


def next_number(store: MeasurementStore) -> int:
    """The first number that no pair of the folder has, so that its seed is fresh."""
    last = store.last_pair()
    return 0 if last is None else last + 1


def measurements(side: Side) -> list[Measurement]:
    """What the runs of a side observed."""
    return [run.measurement for run in side]


def failed(side: Side) -> bool:
    """Whether a run of the side did not end well."""
    return outcome_of(measurements(side)) is not Outcome.OK
