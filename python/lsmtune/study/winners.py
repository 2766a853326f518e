"""What earlier studies of this user proved: where `auto` begins on a workload like theirs.

A study that ends in a proven gain adds a line to `winners.jsonl` in the user's folder
(`LSMTUNE_HOME`). A new study takes the nearest ones of the same engine, and keeps them as a fact of
its folder, so that what other studies prove meanwhile changes nothing in it.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from lsmtune.engines.library import ENGINE_KINDS, lsmtune_home
from lsmtune.experiment.folder import StudyFolder
from lsmtune.model.codec import decode, encode
from lsmtune.model.config import Config, OptionValue
from lsmtune.model.goal import Direction
from lsmtune.model.verdict import VerdictOutcome
from lsmtune.search.auto import KIND as AUTO
from lsmtune.search.cost_models import kinds_of
from lsmtune.search.starts import projected
from lsmtune.search.unit_space import make_unit_space
from lsmtune.study.observer import TuneResult
from lsmtune.study.spec import Spec
from lsmtune.workloads.distributions import data_bytes

_FACT = "winners"
_TAKEN_MAX = 2
# A tenth of the data in the same memory, or another kind of operation for two of five, is too far.
_NEAR = 0.4
_LINES_READ = 1000


@dataclass(frozen=True)
class Winner:
    """A configuration that was proved better than its baseline, and what for.

    `shares` are those of reads, writes and scans; `data_share` the bytes of the data over those of
    the memory; `ratio_low` the lower end of the proven ratio, turned so that higher is better.
    """

    engine: str
    shares: Mapping[str, float]
    data_share: float
    record_bytes: float
    options: Mapping[str, OptionValue]
    ratio_low: float
    study: str

    def distance(self, other: Winner) -> float:
        """From the workload and the machine of `other`; 0 for the same, 1 for nothing in common."""
        kinds = sum(abs(share - other.shares.get(k, 0.0)) for k, share in self.shares.items()) / 2
        sizes = (self.data_share / other.data_share, self.record_bytes / other.record_bytes)
        return kinds + sum(abs(math.log10(size)) for size in sizes) * _NEAR


def with_winners(spec: Spec, folder: StudyFolder) -> Spec:
    """`spec` with the nearest winners at the end of its `start`, where `auto` searches.

    They are moved into the space where they lie outside. A note says how many lines of the file are
    damaged, and so no help.
    """
    if spec.sampler.name != AUTO.name or spec.engine_name not in ENGINE_KINDS:
        return spec
    start, notes = [*spec.start], [*spec.notes]
    fact = folder.measurements.fact(_FACT)
    if fact is None:
        nearest, damaged = _nearest(spec)
        if damaged:
            lines = f"{damaged} damaged line{'s' if damaged > 1 else ''}"
            notes.append(f"{_path()}: {lines} passed over: what earlier studies proved")
        fact = encode(nearest)
        folder.measurements.set_fact(_FACT, fact)
    unit_space = make_unit_space(spec.space)
    for winner in (decode(Winner, each) for each in fact):
        point = projected(unit_space, winner.options, spec.defaults)
        if point is not None:
            start.append(Config(point, f"the winner of {winner.study}"))
            notes.append(f"begins with what {winner.study} proved, too ({winner.ratio_low:.2f}x)")
    return replace(spec, start=tuple(start), notes=tuple(notes))


def remember_winner(spec: Spec, result: TuneResult) -> None:
    """Keep what `result` proves, for studies to come. Raises OSError."""
    verdict, best = result.verdict, result.best
    if verdict is None or verdict.outcome is not VerdictOutcome.BETTER or best is None:
        return
    low, high = verdict.ratio_low, verdict.ratio_high
    if spec.engine_name not in ENGINE_KINDS or not low or not high:
        return
    low = low if verdict.direction == Direction.MAXIMIZE else 1.0 / high
    winner = replace(_about(spec), options=best.options, ratio_low=low)
    path = _path()
    path.parent.mkdir(parents=True, exist_ok=True)
    line = f"{json.dumps(encode(winner))}\n".encode()
    known = path.read_bytes() if path.exists() else b""
    if line in known:
        return  # a finished study that is looked at again
    if known and not known.endswith(b"\n"):
        line = b"\n" + line  # after one that a kill cut off
    with path.open("ab", buffering=0) as file:
        file.write(line)  # one write, so that two studies do not mix their lines


def _path() -> Path:
    return lsmtune_home() / "winners.jsonl"


def _about(spec: Spec) -> Winner:
    """What a winner has to be like to be one for `spec`."""
    workload, memory_bytes = spec.workload, spec.limits.memory_bytes
    size = data_bytes(workload)
    record_bytes = size / workload.num
    study = str(spec.path.absolute())
    shares = kinds_of(workload)
    return Winner(spec.engine_name, shares, size / memory_bytes, record_bytes, {}, 1.0, study)


def _nearest(spec: Spec) -> tuple[tuple[Winner, ...], int]:
    """The winners that are near, the nearest first, and how many lines are damaged.

    Of each study it has the latest, and none twice.
    """
    about = _about(spec)
    try:
        lines = _path().read_bytes().splitlines()[-_LINES_READ:]
    except FileNotFoundError:
        return (), 0
    latest: dict[str, Winner] = {}
    damaged = 0
    for line in lines:
        try:
            winner = decode(Winner, json.loads(line))
            is_near = winner.distance(about) <= _NEAR
        except (ValueError, ArithmeticError, RecursionError):
            damaged += 1  # a kill in the middle of its write, or a size of 0 or less
            continue
        # One that sets none of what is searched would come out as the defaults.
        sets_any = not spec.space.by_name.keys().isdisjoint(winner.options)
        if winner.engine == about.engine and is_near and sets_any:
            latest[winner.study] = winner
    nearest: list[Winner] = []
    for winner in sorted(latest.values(), key=about.distance):
        if winner.options not in [known.options for known in nearest]:
            nearest.append(winner)
    return tuple(nearest[:_TAKEN_MAX]), damaged
