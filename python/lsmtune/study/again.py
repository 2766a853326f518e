"""Runs beside a trial's first one: its repeats, and the anchors, each under every workload."""

from __future__ import annotations

from collections.abc import Sequence

from lsmtune.proof.measurer import Measurer
from lsmtune.proof.place import Place
from lsmtune.proof.seeds import Stream, derive_seed
from lsmtune.records.config import Config
from lsmtune.records.measurement import Outcome
from lsmtune.spec import Spec
from lsmtune.storage.measurements import Role, StoredMeasurement

# Repeats of one trial that seeds are reserved for; the study file allows up to 100 (spec.models),
# of which twice as many and one more can come.
_REPEATS_RESERVED = 1000


class Again:
    """Performs rounds; a round that was cut off is gone on with where it was left.

    Rows of such rounds that the folder holds are given to `leave`.
    """

    def __init__(self, spec: Spec, measurer: Measurer) -> None:
        self._spec = spec
        self._measurer = measurer
        self._left: dict[tuple[Role, int | None, int], list[StoredMeasurement]] = {}

    def leave(self, rows: Sequence[StoredMeasurement]) -> None:
        """These runs of one round are stored, and all ended well."""
        first = rows[0]
        if len(rows) < len(self._spec.workloads):
            self._left[first.role, first.trial, first.repeat] = list(rows)

    def left_trial(self) -> int | None:
        """The trial of which a repeat is to be finished."""
        return next((trial for role, trial, _ in self._left if role is Role.TRIAL), None)

    def left_anchor(self) -> bool:
        """Whether an anchor is to be finished."""
        return any(role is Role.ANCHOR for role, _, _ in self._left)

    def trial(
        self, number: int, repeat: int, config: Config, deadline_s: float
    ) -> list[StoredMeasurement] | None:
        """Run number `repeat` of a trial, from 1, on a seed of its own; None when interrupted."""
        index = number * _REPEATS_RESERVED + repeat
        seed = derive_seed(self._spec.seed, Stream.REPEAT, index)
        place = Place(Role.TRIAL, number, trial=number, repeat=repeat)
        return self._round(place, config, seed, deadline_s)

    def anchor(
        self, number: int, config: Config, deadline_s: float
    ) -> list[StoredMeasurement] | None:
        """Anchor `number`, from 0, on a seed of its own; None when interrupted."""
        seed = derive_seed(self._spec.seed, Stream.ANCHOR, number)
        return self._round(Place(Role.ANCHOR, number, repeat=number), config, seed, deadline_s)

    def _round(
        self, place: Place, config: Config, seed: int, deadline_s: float
    ) -> list[StoredMeasurement] | None:
        """One run per workload, up to one that does not end well."""
        runs = self._left.get((place.role, place.trial, place.repeat), [])
        for workload in range(len(runs), len(self._spec.workloads)):
            if self._measurer.stop.is_set():
                return None
            at = Place(place.role, place.index, place.trial, workload=workload, repeat=place.repeat)
            run = self._measurer.measure(config, seed, at, deadline_s=deadline_s)
            if run is None:
                return None
            runs.append(run)
            if run.measurement.outcome is not Outcome.OK:
                break
        self._left.pop((place.role, place.trial, place.repeat), None)
        return runs
