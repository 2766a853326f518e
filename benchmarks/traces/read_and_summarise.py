"""How fast `inspect_trace` reads traces, and in how much memory.

    cargo build --release --manifest-path driver/Cargo.toml --examples --bins
    .venv/bin/python benchmarks/traces/read_and_summarise.py --target-dir "$CARGO_TARGET_DIR"
    .venv/bin/python benchmarks/traces/read_and_summarise.py ... --large    # and 10 GB

Traces are made by `driver/examples/generate_trace.rs`: a power law over as many keys as named,
83 % gets, 14 % puts, 3 % seeks. Each is read several times. Wall and CPU time are the driver's own,
of its one thread; memory is its peak. The figures stand beside what was promised: 2 million records
per second on one core, in 256 MiB.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import statistics
import subprocess
import tempfile
from pathlib import Path
from typing import Any

from lsmtune.driver.messages import inspect_request
from lsmtune.traces.summary import RANGES_DEFAULT

MIB = 2**20

# Records and distinct keys: all kept in the processor's cache, all kept in memory, most not kept.
CASES = ((5_000_000, 100_000), (10_000_000, 1_000_000), (20_000_000, 20_000_000))
LARGE = (150_000_000, 100_000_000)


def inspect(target: Path, trace: Path) -> dict[str, Any]:
    """One reading: the driver's figures."""
    with tempfile.NamedTemporaryFile("w", suffix=".json") as file:
        json.dump(inspect_request(trace, RANGES_DEFAULT, None), file)
        file.flush()
        command = [target / "release" / "lsmtune-driver", "--request", file.name]
        done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
    messages = [json.loads(line) for line in done.stdout.splitlines()]
    summary = next(each for each in messages if each["type"] == "trace_summary")
    finished = messages[-1]
    return {
        "records": summary["records"],
        "bytes": summary["bytes"],
        "elapsed_s": summary["elapsed_s"],
        "cpu_s": finished["cpu_s"],
        "rss_bytes_max": finished["rss_bytes_max"],
        "sampling": summary["sampling"]["method"],
        "keys_kept": summary["sampling"]["keys_kept"],
        "keys_distinct": summary["keys"]["distinct"],
    }


def measure(target: Path, folder: Path, case: tuple[int, int], repeats: int) -> dict[str, Any]:
    """A case: its trace, read `repeats` times."""
    trace = folder / "benchmark.trace"
    program = target / "release" / "examples" / "generate_trace"
    subprocess.run([program, trace, *map(str, case)], check=True)
    try:
        runs = [inspect(target, trace) for _ in range(repeats)]
    finally:
        trace.unlink()
    per_second = [run["records"] / run["elapsed_s"] for run in runs]
    per_cpu_second = [run["records"] / run["cpu_s"] for run in runs]
    return {
        "keys": case[1],
        "records_per_s_median": statistics.median(per_second),
        "records_per_cpu_s_median": statistics.median(per_cpu_second),
        "rss_mib_max": max(run["rss_bytes_max"] for run in runs) / MIB,
        "runs": runs,
    }


def show(case: dict[str, Any]) -> None:
    """One line."""
    run = case["runs"][0]
    print(
        f"{run['records']:>12,} records  {run['bytes'] / 1e9:6.2f} GB  {case['keys']:>12,} keys  "
        f"{run['sampling']:>8}  {case['records_per_s_median'] / 1e6:5.2f} M/s  "
        f"{case['records_per_cpu_s_median'] / 1e6:5.2f} M/CPU-s  {case['rss_mib_max']:4.0f} MiB"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--target-dir", type=Path, required=True, help="cargo's target folder")
    parser.add_argument("--directory", type=Path, default=Path(tempfile.gettempdir()))
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--large", action="store_true", help="a trace of 10 GB too")
    parser.add_argument("--json", type=Path, help="write the raw figures here")
    options = parser.parse_args()
    cases = []
    for case in (*CASES, LARGE) if options.large else CASES:
        cases.append(measure(options.target_dir, options.directory, case, options.repeat))
        show(cases[-1])
    if options.json:
        machine = {"cpus": os.cpu_count(), "platform": platform.platform()}
        text = json.dumps({"machine": machine, "cases": cases}, indent=1)
        options.json.write_text(text + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
