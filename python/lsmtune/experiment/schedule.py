"""What is run when, and on which seed: arms, slots of a schedule, and functions of a seed.

Seeds are fresh for each run, the same after a resume, and never shared by search and proof.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from enum import IntEnum, unique

import numpy as np

from lsmtune.experiment.store import Role
from lsmtune.model.config import Config, EngineIdentity
from lsmtune.model.workload import Workload

# So many loaded databases take turns where both sides of a pair start from copies of one. Of two
# loads of the same keys one may leave a tree that is read much slower, by the chance of when
# compactions ran.
DATABASES_IN_TURN = 3


@dataclass(frozen=True)
class Arm:
    """What is measured: a build of an engine, and a configuration of it.

    `name` is its own among the arms of an experiment; the label of the configuration unless given.
    """

    engine: EngineIdentity
    config: Config
    name: str = ""

    @property
    def label(self) -> str:
        """What it is called beside its runs."""
        return self.name or self.config.label


@dataclass(frozen=True, kw_only=True)
class Cell(Arm):
    """An arm under one workload, with a name of its own among the cells of an experiment."""

    workload: Workload


@dataclass(frozen=True)
class Slot:
    """One run of a schedule; `workload` is the index of its workload in the experiment.

    `index` counts what a user counts: trials, pairs or anchors. `repeat` counts the runs of one
    trial, or of one side of a pair, from 0; anchors are numbered by it.
    """

    role: Role
    index: int
    trial: int | None = None
    pair: int | None = None
    workload: int = 0
    rung: int | None = None
    repeat: int = 0
    round: int = 0


@unique
class Stream(IntEnum):
    """What a seed is for. The numbers are part of the derivation: never change one."""

    BASELINE = 0
    TRIAL = 1
    PROOF = 2
    SAMPLER = 3
    PROOF_ORDER = 4
    ANCHOR = 5
    REPEAT = 6
    CALIBRATION = 7
    CRASH = 8
    LOAD = 9
    LOAD_OF_REPEAT = 10
    PROMOTION = 11
    HOST = 12  # what the pairs of one host are derived from


def derive_seed(study_seed: int, stream: Stream, index: int) -> int:
    """The seed number `index` of `stream` in a study, from 0 to 2**53 - 1.

    Each is the first 64-bit word of numpy's `SeedSequence(study_seed, spawn_key=(stream, index))`
    (M. E. O'Neill's seed_seq design), of which the upper 52 bits are kept and shifted left by
    one. The freed lowest bit is 1 for the proof and 0 for all else, so that no seed of a proof
    was used by the search. 53 bits pass through every JSON reader unchanged.

    Both runs of a proof's pair use the same seed. `study_seed` and `index` are not negative.
    """
    sequence = np.random.SeedSequence(study_seed, spawn_key=(int(stream), index))
    word = int(sequence.generate_state(1, np.uint64)[0])
    return (word >> 12) << 1 | (stream is Stream.PROOF)


def candidate_first(study_seed: int, pair: int) -> bool:
    """The coin of a proof's pair: whether its candidate goes first, fair and known to no run.

    It is the lowest bit of the seed `PROOF_ORDER` number `pair` that is not the same in all seeds.
    Because of it, the two sides of a pair could as well have been swapped where they do not differ,
    whatever the machine does meanwhile (R. A. Fisher, "The Design of Experiments", 1935).
    """
    return bool(derive_seed(study_seed, Stream.PROOF_ORDER, pair) >> 1 & 1)


# --- rounds


def shuffled(cells: Sequence[Cell], seed: int, number: int) -> list[Cell]:
    """`cells` in the order of round `number`: a shuffle that `seed` and the names alone decide.

    Cells are sorted by a digest of seed, round and name. Each order is as likely as any other,
    whatever the order in which the cells are given. So neither drift of the machine nor what a
    neighbour leaves behind favours a cell.
    """

    def digest(cell: Cell) -> bytes:
        return hashlib.sha256(f"{seed}/{number}/{cell.name}".encode()).digest()

    return sorted(cells, key=digest)


# --- loaded databases


def load_seed_of(slot: Slot, seed: int, *, shared: bool = False) -> int | None:
    """The seed with which the database is loaded that the run of `slot`, on `seed`, starts from.

    None leaves it to the cache: all such runs share one database for each layout. The search does,
    with the first run of a trial.

    The databases of a proof are the same ones in every study, and none of them is the one on which
    a search runs. Where both sides of a pair start from one database (`shared`), three take turns,
    so that a proof rests on more than one tree, and a lucky tree is nobody's gain. Else each pair
    has new ones: a tree that served several pairs would be taken for what the configuration does.
    So has each round, whose cells may differ in layout.
    """
    if slot.role in (Role.PROOF_BASELINE, Role.PROOF_CANDIDATE) and slot.pair is not None:
        index = slot.pair % DATABASES_IN_TURN if shared else DATABASES_IN_TURN + slot.pair
        return derive_seed(0, Stream.LOAD, index)
    if slot.role is Role.TRIAL and slot.repeat:
        # On the tree of its first run a trial would have the same luck once more.
        return derive_seed(0, Stream.LOAD_OF_REPEAT, slot.repeat)
    return seed if slot.role is Role.ROUND else None
