"""Whether the keys that a trace reads are those that it writes.

It decides how many reads an engine answers from its memtables, and so what is left for its cache.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from lsmtune.stats.written_keys import fit_by_key, reads_of_written
from lsmtune.traces.keys import KeyFit, rounded
from lsmtune.traces.part import FittedPart
from lsmtune.traces.summary import TraceSummary

LIMIT = 0.03
# So near to it, independence is as good, and simpler.
_NEAR = 0.01
_WRITES = ("put", "merge", "delete")


@dataclass(frozen=True)
class WrittenFit:
    """In which share of the draws the key decides the operation; None: operation and key are
    drawn independently."""

    by_key: float | None = None
    part: FittedPart | None = None


def fit_written(summary: TraceSummary, operations: Mapping[str, float], keys: KeyFit) -> WrittenFit:
    """By the share of the trace's gets that meet a key which the trace has written before."""
    writes = sum(operations.get(name, 0.0) for name in _WRITES)
    seen = summary.gets_of_written.share
    if seen is None or not 0.0 < writes < 1.0 or keys.distribution.name == "sequential":
        return WrittenFit()
    width, each = keys.groups
    each = each / float((width * each).sum())
    accesses = float(summary.hotness["all"].accesses)
    by_key = None
    words = "operations and keys drawn independently"
    found = reads_of_written(width, each, writes, 0.0, accesses)
    if found > seen + _NEAR:
        by_key = rounded(fit_by_key(width, each, writes, accesses, seen))
        found = reads_of_written(width, each, writes, by_key, accesses)
        words = f"the key decides the operation in {100 * by_key:.4g} % of the draws"
    off = abs(found - seen)
    warnings: tuple[str, ...] = ()
    if off > LIMIT:
        warnings = (
            f"reads of written keys: {100 * seen:.1f} % of the trace's gets meet a key that it has "
            f"written before, {100 * found:.1f} % of the model's",
        )
    distances = (("share_difference", off),)
    return WrittenFit(by_key, FittedPart("reads_of_written", words, distances, LIMIT, warnings))
