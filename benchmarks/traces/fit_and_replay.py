"""Whether a workload that is fitted to a trace of db_bench's mixgraph is like the trace.

    .venv/bin/python benchmarks/traces/fit_and_replay.py --output docs/benchmarks/traces/fit.json

db_bench loads a database and records mixgraph with known parameters. `lsmtune workload fit` gets
the trace alone, and the two figures that no trace holds: the size of the values that were there
before, and that a seek reads one entry, as in a replay. Then the trace is replayed and the fitted
workload is run, on the same engine, options and database, with block caches of several sizes.
The raw output is one JSON document; a summary goes to stdout.
"""

from __future__ import annotations

import argparse
import json
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from lsmtune.errors import InputError

# ZippyDB as published with db_bench's mixgraph (facebook/rocksdb, pull request 5953), with its
# 5 million keys: with fewer, db_bench's remainders show (`docs/traces.md`).
PUBLISHED = {
    "key_dist_a": 0.002312,
    "key_dist_b": 0.3467,
    "keyrange_dist_a": 14.18,
    "keyrange_dist_b": -2.917,
    "keyrange_dist_c": 0.0164,
    "keyrange_dist_d": -0.08082,
    "keyrange_num": 30,
    "value_k": 0.2615,
    "value_sigma": 25.45,
    "mix_get_ratio": 0.85,
    "mix_put_ratio": 0.14,
    "mix_seek_ratio": 0.01,
}
SCANS = {"iter_k": 2.517, "iter_sigma": 14.236}
KEY_BYTES, VALUE_BYTES = 48, 100
CACHES_MIB = (8, 32, 128)
TABLE = "block_based_table_factory"


def main() -> int:
    given = _arguments()
    db_bench = shutil.which(given.db_bench)
    if db_bench is None:
        raise InputError("--db_bench", found=given.db_bench, allowed="RocksDB's db_bench")
    with tempfile.TemporaryDirectory(dir=given.dir, prefix="lsmtune-traces-") as place:
        trace, workload = Path(place) / "mixgraph.trace", Path(place) / "workload.yaml"
        command = _record(db_bench, given, Path(place), trace)
        fit = _fit(trace, workload)
        known = {**PUBLISHED, "num": given.num, "key_size": KEY_BYTES}
        document = {
            "unix_s": time.time(),
            "db_bench": command,
            "trace_bytes": trace.stat().st_size,
            "parameters": [_row(name, value, fit["db_bench"]) for name, value in known.items()],
            "parts": [{k: v for k, v in part.items() if k != "curve"} for part in fit["parts"]],
            "warnings": fit["warnings"],
            "workload": fit["workload"],
            "hit_rates": [_hit_rates(given, trace, workload, mib, place) for mib in CACHES_MIB],
        }
    given.output.parent.mkdir(parents=True, exist_ok=True)
    given.output.write_text(json.dumps(document, indent=1) + "\n")
    return _told(document)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--num", type=int, default=5_000_000, help="keys of the database")
    parser.add_argument("--reads", type=int, default=1_000_000, help="operations of the trace")
    parser.add_argument("--db_bench", default="db_bench", help="name or path")
    parser.add_argument("--dir", type=Path, default=None, help="where databases are made")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--output", type=Path, required=True)
    return parser.parse_args()


def _record(db_bench: str, given: argparse.Namespace, place: Path, trace: Path) -> list[str]:
    common = [
        *(f"--db={place}/db", "--compression_type=none", f"--num={given.num}"),
        *(f"--key_size={KEY_BYTES}", f"--value_size={VALUE_BYTES}"),
    ]
    known = [f"--{name}={value}" for name, value in (PUBLISHED | SCANS).items()]
    recorded = [
        *(db_bench, "--benchmarks=mixgraph", "--use_existing_db=1", f"--reads={given.reads}"),
        *(f"--trace_file={trace}", f"--seed={given.seed}"),
        *common,
        *known,
    ]
    for command in ([db_bench, "--benchmarks=fillseq", *common], recorded):
        subprocess.run(command, check=True, capture_output=True)
    shutil.rmtree(place / "db")
    # The folder was for this run only.
    return [word.replace(str(place), "DIR") for word in recorded]


def _lsmtune(*arguments: str) -> Any:
    command = [sys.executable, "-m", "lsmtune.cli.main", *arguments]
    found = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
    return json.loads(found.stdout)


def _fit(trace: Path, workload: Path) -> Any:
    loaded = ("--load-value-bytes", str(VALUE_BYTES))
    return _lsmtune("workload", "fit", str(trace), "--output", str(workload), *loaded, "--json")


def _row(name: str, known: float, fitted: dict[str, float]) -> dict[str, Any]:
    found = fitted.get(name)
    error = None if found is None else abs(found / known - 1.0)
    return {"name": name, "known": known, "fitted": found, "relative_error": error}


def _hit_rates(
    given: argparse.Namespace, trace: Path, workload: Path, cache_mib: int, place: str
) -> dict[str, Any]:
    options = [
        *("--engine", "rocksdb", "-o", f"{TABLE}.block_cache={cache_mib << 20}"),
        *("-o", "compression=kNoCompression", "--dir", place, "--seed", str(given.seed), "--json"),
    ]
    load = [f"num={given.num}", f"key_bytes={KEY_BYTES}", f"value_bytes={VALUE_BYTES}"]
    loads = [word for parameter in load for word in ("-w", parameter)]
    replayed = _lsmtune("workload", "replay", str(trace), "--load", "fillseq", *loads, *options)
    synthetic = _lsmtune("bench", "--workload", str(workload), *options)
    found = {"replayed": _phase(replayed), "synthetic": _phase(synthetic)}
    points = 100 * (found["synthetic"]["hit_rate"] - found["replayed"]["hit_rate"])
    return {"cache_mib": cache_mib, **found, "difference_points": points}


def _phase(document: Any) -> dict[str, Any]:
    """The measure phase, as far as it is of interest here."""
    (measurement,) = document["measurements"]
    phase = measurement["phases"][-1]
    hits, misses = phase["block_cache_hits"], phase["block_cache_misses"]
    names = ("operations", "operations_by_type", "elapsed_s", "keys_found", "keys_missing")
    engine = measurement["engine"]
    return {
        "engine": engine | {"library": Path(engine["library"]).name},
        **{name: phase.get(name) for name in names},
        "block_cache_hits": hits,
        "block_cache_misses": misses,
        "hit_rate": hits / (hits + misses),
    }


def _told(document: dict[str, Any]) -> int:
    """A summary on stdout; 1 where a parameter is off by a tenth or a hit rate by three points."""
    good = True
    for row in document["parameters"]:
        error = row["relative_error"]
        good &= error is not None and error <= 0.1
        shown = "not fitted" if error is None else f"{row['fitted']:>12g}  {100 * error:5.1f} %"
        print(f"{row['name']:16} {row['known']:>12g} {shown}")
    for row in document["hit_rates"]:
        good &= abs(row["difference_points"]) <= 3.0
        replayed, synthetic = (100 * row[arm]["hit_rate"] for arm in ("replayed", "synthetic"))
        print(
            f"cache {row['cache_mib']:4} MiB: replayed {replayed:.2f} %, synthetic "
            f"{synthetic:.2f} %, difference {row['difference_points']:+.2f} points"
        )
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
