"""In which order the cells of a round are measured, and on which seed: functions of a seed."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

from lsmtune.records.request import SEED_MAX
from lsmtune.rounds.cell import Cell

# Where runs start from copies of loaded databases, so many of them take turns. Of two loads of the
# same keys one may leave a tree that is read much slower, by the chance of when compactions ran.
LOADS = 3


def shuffled(cells: Sequence[Cell], seed: int, number: int) -> list[Cell]:
    """`cells` in the order of round `number`: a shuffle that `seed` and the names alone decide.

    Cells are sorted by a digest of seed, round and name, so that each order is as likely as any
    other, whatever the order in which they are given; then neither drift of the machine nor what
    its neighbour leaves behind favours a cell.
    """
    return sorted(cells, key=lambda cell: _digest(seed, number, cell.name))


def run_seed(seed: int, number: int) -> int:
    """The seed of every run of round `number`: `seed + number`, as `lsmtune bench` counts."""
    if not 0 <= seed <= SEED_MAX - number:
        raise ValueError(f"seed {seed} of round {number} is not from 0 to {SEED_MAX}")
    return seed + number


def load_seed(seed: int, number: int) -> int:
    """The seed with which the loaded databases of round `number` are made."""
    return run_seed(seed, number % LOADS)


def _digest(seed: int, number: int, name: str) -> bytes:
    return hashlib.sha256(f"{seed}/{number}/{name}".encode()).digest()
