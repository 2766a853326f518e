"""Real differences, proven by slices and by whole runs: do both ways say the same?

    .venv/bin/python benchmarks/verdicts/slices_and_whole.py \\
        --output docs/benchmarks/verdicts/slices_and_whole.jsonl

Each comparison is a `lsmtune verify` by either method, on the same seeds. Comparisons that the
output holds are not run again; a table of all of them is printed.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

METHODS = ("slices", "whole")
KEPT = ("outcome", "ratio", "ratio_low", "ratio_high", "pairs", "method")


@dataclass(frozen=True)
class Comparison:
    """Two configurations of an engine under a workload of some sizes."""

    engine: str
    workload: str
    sizes: tuple[str, ...]
    baseline: str
    candidate: str

    @property
    def name(self) -> str:
        """What it is known as in the output."""
        return f"{self.engine} {self.workload}: {self.candidate} over {self.baseline}"


CACHE = "block_based_table_factory.block_cache"
READS = ("num=150000", "reads=150000")
WRITES = ("num=150000",)
COMPARISONS = (
    Comparison("rocksdb", "readrandom", READS, f"{CACHE}=1MiB", f"{CACHE}=256MiB"),
    Comparison(
        "rocksdb", "fillrandom", WRITES, "write_buffer_size=16MiB", "write_buffer_size=1MiB"
    ),
    Comparison(
        "rocksdb",
        "fillrandom",
        ("num=300000",),
        "write_buffer_size=64MiB",
        "write_buffer_size=4MiB",
    ),
    Comparison(
        "rocksdb", "fillrandom", WRITES, "compression=kNoCompression", "compression=kLZ4Compression"
    ),
    Comparison("leveldb", "readrandom", READS, "cache_size=1MiB", "cache_size=256MiB"),
    Comparison(
        "leveldb", "fillrandom", ("num=80000",), "write_buffer_size=64KiB", "write_buffer_size=4MiB"
    ),
    Comparison("leveldb", "fillrandom", WRITES, "compression=no", "compression=snappy"),
)


def verdict(comparison: Comparison, method: str, pairs: int, seed: int) -> dict[str, Any]:
    """One verdict, as a line of the output."""
    sizes = [flag for size in comparison.sizes for flag in ("-w", size)]
    command = [sys.executable, "-m", "lsmtune.cli.main", "verify"]
    command += [comparison.baseline, comparison.candidate, "--engine", comparison.engine]
    command += ["--workload", comparison.workload, *sizes, "--method", method, "--json"]
    command += ["--pairs", str(pairs), "--seed", str(seed), "--no-crash-test"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode not in (0, 3, 4):
        raise SystemExit(done.stderr)
    found = json.loads(done.stdout)["verdict"]
    return {"comparison": comparison.name} | {key: found[key] for key in KEPT}


def shown(line: dict[str, Any]) -> str:
    """Ratio and interval of a line, as a cell of the table."""
    if line["ratio_low"] is None:
        return f"{line['ratio']:.3g} (no interval)"
    return f"{line['ratio']:.3g} ({line['ratio_low']:.3g} to {line['ratio_high']:.3g})"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pairs", type=int, default=8)
    parser.add_argument("--seed", type=int, default=7)
    parser.add_argument("--output", type=Path, required=True)
    arguments = parser.parse_args()
    arguments.output.parent.mkdir(parents=True, exist_ok=True)
    arguments.output.touch()
    texts = arguments.output.read_text().splitlines()
    lines = {(line["comparison"], line["method"]): line for line in map(json.loads, texts)}
    with arguments.output.open("a") as output:
        for comparison in COMPARISONS:
            for method in METHODS:
                if (comparison.name, method) not in lines:
                    line = verdict(comparison, method, arguments.pairs, arguments.seed)
                    lines[comparison.name, method] = line
                    output.write(json.dumps(line) + "\n")
                    output.flush()
    print("| candidate over baseline | slices | whole runs |\n|---|---|---|")
    for comparison in COMPARISONS:
        cells = [shown(lines[comparison.name, method]) for method in METHODS]
        print(f"| {comparison.name} | {' | '.join(cells)} |")


if __name__ == "__main__":
    main()
