"""The cores that a run may use, and how two runs at once share them."""

from __future__ import annotations

import os
from collections.abc import Sequence

from lsmtune.errors import InputError, LsmtuneError


def usable_cores() -> tuple[int, ...]:
    """The cores that this process may use, by number."""
    return tuple(sorted(os.sched_getaffinity(0)))


def check_cores(cpus: Sequence[int]) -> None:
    """Raises InputError unless this process may use each of `cpus`."""
    usable = usable_cores()
    missing = sorted(set(cpus) - set(usable))
    if missing:
        raise InputError(
            "cores of a run",
            found=_listed(missing),
            allowed=f"cores that lsmtune may use on this machine: {_listed(usable)}",
        )


def halves(cores: Sequence[int]) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Two equal shares of `cores`, the first ones first; an odd one is in neither.

    Raises LsmtuneError for fewer than two.
    """
    size = len(cores) // 2
    if size == 0:
        raise LsmtuneError(
            "two runs at once need a core each, and lsmtune may use only "
            f"{_listed(cores)}; pair runs in slices, or one after the other"
        )
    return tuple(cores[:size]), tuple(cores[size : 2 * size])


def _listed(cores: Sequence[int]) -> str:
    return ", ".join(map(str, cores))
