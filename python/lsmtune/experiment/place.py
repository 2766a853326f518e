"""Where a run belongs in its study."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum, unique
from typing import Protocol

import numpy as np

from lsmtune.driver.messages import Message
from lsmtune.experiment.store import Role, StoredMeasurement
from lsmtune.model.config import Config
from lsmtune.model.verdict import Verdict
from lsmtune.model.workload import Workload


@dataclass(frozen=True)
class Place:
    """Where a run belongs in its study; `workload` is its index among those of the study.

    `repeat` counts the runs of one trial, or of one side of a pair, from 0; anchors are numbered by
    it.
    """

    role: Role
    index: int
    trial: int | None = None
    pair: int | None = None
    workload: int = 0
    rung: int | None = None
    repeat: int = 0


Arm = tuple[Config, Place]  # what is run, and where the run belongs


# ----------
# Seeds of runs: fresh for each, the same after a resume, and never shared by search and proof.

LOADS_OF_PROOF = 3


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
    LOAD_AGAIN = 10


def derive_seed(study_seed: int, stream: Stream, index: int) -> int:
    """The seed number `index` of `stream` in a study, from 0 to 2**53 - 1.

    Each is the first 64-bit word of numpy's `SeedSequence(study_seed, spawn_key=(stream, index))`
    (M. E. O'Neill's seed_seq design), of which the upper 52 bits are kept and shifted left by
    one. The freed lowest bit is 1 for the proof and 0 for all else, so that no seed of a proof
    was seen by the search. 53 bits pass through every JSON reader unchanged.

    Both runs of a proof's pair use the same seed. `study_seed` and `index` are not negative.
    """
    sequence = np.random.SeedSequence(study_seed, spawn_key=(int(stream), index))
    word = int(sequence.generate_state(1, np.uint64)[0])
    return (word >> 12) << 1 | (stream is Stream.PROOF)


def load_seed(pair: int, *, shared: bool) -> int:
    """The seed with which the databases of a proof's pair are loaded, where copies of them serve.

    Where both sides have `shared` one, three take turns, so that a proof rests on more than one
    tree. Else each pair has its own. They are the same ones in every study, and none of them is the
    one on which a search runs.
    """
    index = pair % LOADS_OF_PROOF if shared else LOADS_OF_PROOF + pair
    return derive_seed(0, Stream.LOAD, index)


def load_seed_of_repeat(repeat: int) -> int:
    """The seed with which the database of run number `repeat` of a trial is loaded, from 1.

    On the tree of its first run a trial would have the same luck again.
    """
    return derive_seed(0, Stream.LOAD_AGAIN, repeat)


def candidate_first(study_seed: int, pair: int) -> bool:
    """The coin of a proof's pair: whether its candidate goes first, fair and known to no run.

    It is the lowest bit of the seed `PROOF_ORDER` number `pair` that is not the same in all seeds.
    Because of it, the two sides of a pair could as well have been swapped where they do not differ,
    whatever the machine does meanwhile (R. A. Fisher, "The Design of Experiments", 1935).
    """
    return bool(derive_seed(study_seed, Stream.PROOF_ORDER, pair) >> 1 & 1)


# ----------
# What a proof tells while it runs.


class RunObserver(Protocol):
    """Callbacks around each run, in the thread of the tuner."""

    def run_started(self, place: Place, config: Config, workload: Workload) -> None:
        """A run begins; `place.index` counts the trials, or the pairs, from 0."""

    def run_message(self, message: Message) -> None:
        """The driver said something."""

    def run_finished(self, stored: StoredMeasurement) -> None:
        """A run ended, however, and is stored. A cancelled run is not stored nor told."""

    def warning(self, text: str) -> None:
        """Something the user should know, in one line."""


class ProofObserver(RunObserver, Protocol):
    """Callbacks of a proof."""

    def proof_started(self, pairs: int) -> None:
        """A proof of at most that many pairs begins."""

    def pair_judged(self, verdict: Verdict) -> None:
        """What all pairs so far say; the proof goes on while that is not enough."""
