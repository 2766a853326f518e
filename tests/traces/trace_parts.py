"""Summaries of made-up traces: counted here from arrays, in the words of the driver."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

Whole = NDArray[np.int64]


def histogram(values: Whole) -> dict[str, Any]:
    """Counts of `values`, one bucket each."""
    sizes, counts = np.unique(values, return_counts=True)
    p50, p90, p99, p999 = np.quantile(values, [0.5, 0.9, 0.99, 0.999])
    return {
        "count": len(values),
        "mean": float(values.mean()),
        "min": int(sizes[0]),
        "max": int(sizes[-1]),
        **{"p50": float(p50), "p90": float(p90), "p99": float(p99), "p999": float(p999)},
        "buckets": [[int(s), int(s), int(c)] for s, c in zip(sizes, counts, strict=True)],
    }


def curve(keys: Whole) -> dict[str, Any]:
    """The hotness of `keys`."""
    counts = np.sort(np.unique(keys, return_counts=True)[1])[::-1]
    shares = np.cumsum(counts) / len(keys)
    ranks = [1]
    while ranks[-1] < len(counts):
        ranks.append(min(max(ranks[-1] + 1, int(ranks[-1] * 1.03)), len(counts)))
    points = [[rank, int(counts[rank - 1]), float(shares[rank - 1])] for rank in ranks]
    return {"accesses": len(keys), "keys": float(len(counts)), "points": points}


def reuse(keys: Whole) -> dict[str, Any]:
    """Distances and the misses of caches of each size, by the accesses since the last one.

    What a cache holds after so many accesses is taken from the keys themselves.
    """
    order = np.argsort(keys, kind="stable")
    again = keys[order[1:]] == keys[order[:-1]]
    before_it = np.full(len(keys), -1)
    before_it[order[1:][again]] = order[:-1][again]
    gap = np.where(before_it < 0, -1, np.arange(len(keys)) - before_it)
    miss_ratio = []
    distances = []
    before, share = 0.0, 0.0
    for window in np.unique(np.geomspace(1, len(keys), 24).astype(int)):
        starts = range(0, len(keys) - int(window) + 1, max(len(keys) // 6, 1))
        # A key counts where it comes first after the start.
        room = float(np.mean([(before_it[at : at + window] < at).sum() for at in starts]))
        hits = float(((gap > 0) & (gap <= window)).mean())
        miss_ratio.append([room, 1.0 - hits])
        distances.append([min(before, room - 1.0), room - 1.0, (hits - share) * len(keys)])
        before, share = room, hits
    first = int((gap < 0).sum())
    return {
        "accesses": len(keys),
        "share": 1.0,
        "first_accesses": float(first),
        "distances": distances,
        "miss_ratio": miss_ratio,
    }


def rows(keys: Whole, edges: Whole) -> list[list[Any]]:
    """Accesses, all of them gets, of the parts between `edges`."""
    counts, distinct = np.histogram(keys, edges)[0], np.histogram(np.unique(keys), edges)[0]
    return [
        [str(int(edge)), float(each), float(count), 0.0, 0.0]
        for edge, each, count in zip(edges, distinct, counts, strict=False)
    ]


def document(
    keys: Whole,
    *,
    operations: dict[str, int] | None = None,
    values: Whole | None = None,
    key_bytes: Whole | None = None,
    ranges: int = 1024,
    numbers: bool = True,
    window_rates: NDArray[np.float64] | None = None,
    reused: dict[str, Any] | None = None,
) -> dict[str, Any]:
    """A `trace_summary` message of a trace that asks for `keys`."""
    count = len(keys)
    names = ("put", "merge", "delete", "single_delete", "delete_range", "put_entity", "blob_index")
    counts = dict.fromkeys((*names, "get", "multi_get", "seek", "seek_for_prev"), 0)
    counts |= operations or {"get": count}
    edges = np.linspace(int(keys.min()), int(keys.max()) + 1, ranges + 1).astype(np.int64)
    distinct = np.unique(keys)
    # As the driver divides: a hundred parts with equally many keys.
    firsts = np.unique(np.arange(100) * len(distinct) // 100)
    by_rank = np.append(distinct[firsts], distinct[-1] + 1)
    per_window = np.full(20, count / 20) if window_rates is None else window_rates
    return {
        "type": "trace_summary",
        "path": "made-up.trace",
        "bytes": 1000,
        "bytes_total": 1000,
        "trace_version": "0.2",
        "rocksdb_version": "7.8",
        "header_unix_us": 1_700_000_000_000_000,
        "footer": True,
        "damage": None,
        "records": count,
        "operations": count,
        "first_unix_us": 1_700_000_000_000_000,
        "last_unix_us": 1_700_000_000_000_000 + len(per_window) * 1_000_000,
        "duration_s": float(len(per_window)),
        "out_of_order": 0,
        "elapsed_s": 0.1,
        "records_per_s": 2e6,
        "record_counts": {"get": counts["get"], "write": counts["put"]},
        "operation_counts": counts,
        "markers": 0,
        "column_families": [[0, count]],
        "column_families_other": 0,
        "batch_entries": None,
        "multi_get_keys": None,
        "key_sizes": {"get": histogram(np.full(count, 48) if key_bytes is None else key_bytes)},
        "value_sizes": {} if values is None else {"put": histogram(values)},
        "scan_lengths": None,
        "seek_bounds": {"none": counts["seek"], "lower": 0, "upper": 0, "both": 0},
        "inter_arrival_us": histogram(np.array([1, 2, 3])),
        "windows": {
            "window_s": 1.0,
            "started_unix_us": 1_700_000_000_000_000,
            "steps": [[float(n), 0, 0, 10.0, 20.0] for n in (*per_window, 1.0)],
        },
        "sampling": {
            "method": "exact",
            "keys_kept": len(distinct),
            "share": 1.0,
            "standard_error": 0.0,
            "heavy_counters": 0,
            "heavy_error": 0.0,
            "text": "all keys were kept",
        },
        "keys": {
            "distinct": float(len(distinct)),
            **{"read": 1.0, "written": 1.0, "sought": 0.0, "read_and_written": 0.0},
        },
        "overwrites": {"writes": counts["put"], "repeated": 0.0, "share": None},
        "gets_of_written": {"gets": 0.0, "share": None},
        "get_after_write": None,
        "ascending": {"get": float((np.diff(keys) > 0).mean()), "write": None, "seek": None},
        "hotness": {"all": curve(keys)},
        "key_space": {
            "common_prefix_hex": "0000000000" if numbers else "75736572",
            "common_prefix_bytes": 5 if numbers else 4,
            "number": "window",
            "window_offset_bytes": 5,
            "min": str(int(keys.min())),
            "max": str(int(keys.max())),
        },
        "keys_without_number": 0,
        "ranges_by_number": rows(keys, edges),
        "ranges_by_rank": rows(keys, by_rank),
        "prefixes": {
            "prefix_bytes": 5,
            "distinct": 1,
            "top": [["0000000000", float(count), 0.0, 0.0]],
            "other": [0, 0, 0],
            "exact": True,
        },
        "reuse": {"all": reused or reuse(keys)},
    }


def said(keys: Whole, **more: Any) -> dict[str, Any]:
    """The fields of the message without its type, as a reader of messages hands them on."""
    return {name: value for name, value in document(keys, **more).items() if name != "type"}
