"""Flags of db_bench's `mixgraph` that would make a trace like a given one.

Its own generator has steps that a model does not: shares of ranges are whole multiples of the
smallest, and one random number decides range, key, operation, value size and scan length. The
parameters are those that are most likely given these steps.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from lsmtune.traces.build import Found
from lsmtune.traces.keys import rounded
from lsmtune.traces.sizes import DB_BENCH_WRAP
from lsmtune.traces.summary import TraceSummary

_RATIOS: Mapping[str, str] = MappingProxyType(
    {"get": "mix_get_ratio", "put": "mix_put_ratio", "scan": "mix_seek_ratio"}
)


def mixgraph_flags(summary: TraceSummary, found: Found) -> dict[str, float]:
    """The flags in db_bench's spelling; empty for a trace with operations it does not have."""
    if not set(found.operations) <= set(_RATIOS):
        return {}
    flags: dict[str, float] = {"num": found.records, "reads": summary.operations}
    flags["key_size"] = round(found.key_bytes)
    flags |= {flag: found.operations.get(name, 0.0) for name, flag in _RATIOS.items()}
    ranges, power = found.keys.ranges, found.keys.power
    if ranges is not None:
        flags |= {f"keyrange_dist_{n}": rounded(getattr(ranges, n)) for n in "abcd"}
        flags["keyrange_num"] = ranges.ranges
    if power is not None:
        flags |= {"key_dist_a": rounded(power.a), "key_dist_b": rounded(power.b)}
    pareto = None if found.values is None else found.values.pareto
    if pareto is not None:
        flags |= {
            "value_theta": rounded(pareto.theta),
            "value_k": rounded(pareto.k),
            "value_sigma": rounded(pareto.sigma),
            "mix_max_value_size": pareto.wrap or DB_BENCH_WRAP,
        }
    return flags
