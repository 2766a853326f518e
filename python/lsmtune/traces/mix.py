"""The operations of a trace, as the shares of a mix."""

from __future__ import annotations

from lsmtune.stats.goodness import total_variation
from lsmtune.traces.part import FittedPart
from lsmtune.traces.summary import TraceSummary

# How the operations of a trace are called in a mix. A range of deletes has no word there.
_OPERATIONS = {
    "get": "get",
    "multi_get": "get",
    "put": "put",
    "put_entity": "put",
    "blob_index": "put",
    "merge": "merge",
    "delete": "delete",
    "single_delete": "delete",
    "seek": "scan",
    "seek_for_prev": "scan",
}
MIX_LIMIT = 0.01


def fit_mix(summary: TraceSummary) -> tuple[dict[str, float], FittedPart]:
    """The share of each operation of a mix; what a mix has no word for is left out, and said."""
    counts = summary.operation_counts
    operations: dict[str, float] = {}
    for name, count in counts.items():
        if count and name in _OPERATIONS:
            word = _OPERATIONS[name]
            operations[word] = operations.get(word, 0.0) + count
    dropped = sum(count for name, count in counts.items() if name not in _OPERATIONS)
    modelled = [float(count if name in _OPERATIONS else 0) for name, count in counts.items()]
    found = total_variation([float(count) for count in counts.values()], modelled)
    total = sum(operations.values())
    operations = {name: float(f"{count / total:.6g}") for name, count in operations.items()}
    warnings = []
    if dropped:
        warnings.append(f"mix: {dropped} operations left out: deletes of ranges have no model")
    if counts.get("seek_for_prev"):
        warnings.append("mix: seeks backwards are modelled as scans forwards")
    if counts.get("multi_get"):
        warnings.append("mix: each key of a multi-get is modelled as a get of its own")
    words = ", ".join(f"{name} {100 * share:.4g} %" for name, share in operations.items())
    distances = (("total_variation", found),)
    return operations, FittedPart("mix", words, distances, MIX_LIMIT, tuple(warnings))
