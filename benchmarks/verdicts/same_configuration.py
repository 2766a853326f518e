"""Verdicts on the default configuration against itself, from real engines: how many are wrong.

    .venv/bin/python benchmarks/verdicts/same_configuration.py --count 100 \\
        --output docs/benchmarks/verdicts/same_configuration.jsonl

Each verdict is one `lsmtune verify default default` of its own seed, which stops as early as any
other would. `better` and `worse` are wrong; at 95 % confidence at most one in twenty may be. Lines
are added to the output, one a verdict, so that the work can be spread over several days.
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

CASES = {
    "rocksdb fillrandom": ["num=150000"],
    "leveldb fillrandom": ["num=150000"],
    "rocksdb readrandom": ["num=50000", "reads=200000"],
    "leveldb readrandom": ["num=50000", "reads=100000"],
    "rocksdb overwrite": ["num=100000"],
}
KEPT = ("outcome", "ratio", "ratio_low", "ratio_high", "pairs", "method", "why")


def verdict(case: str, seed: int, pairs: int) -> dict[str, object]:
    """One verdict, as a line of the output."""
    engine, workload = case.split()
    sizes = [flag for size in CASES[case] for flag in ("-w", size)]
    command = [sys.executable, "-m", "lsmtune.cli.main", "verify", "default", "default"]
    command += ["--engine", engine, "--workload", workload, *sizes, "--seed", str(seed)]
    command += ["--pairs", str(pairs), "--no-crash-test", "--json"]
    started_s = time.monotonic()
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode not in (0, 3, 4):
        raise SystemExit(done.stderr)
    found = json.loads(done.stdout)["verdict"]
    return {
        "case": case,
        "seed": seed,
        "unix_s": round(time.time()),
        "load": os.getloadavg()[0],
        "wall_s": round(time.monotonic() - started_s, 1),
        **{key: found[key] for key in KEPT},
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=100)
    parser.add_argument("--pairs", type=int, default=12)
    parser.add_argument("--output", type=Path, required=True)
    arguments = parser.parse_args()
    arguments.output.parent.mkdir(parents=True, exist_ok=True)
    first = int(time.time())
    cases = itertools.islice(itertools.cycle(CASES), arguments.count)
    with arguments.output.open("a") as output:
        for number, case in enumerate(cases):
            line = verdict(case, first + number, arguments.pairs)
            output.write(json.dumps(line) + "\n")
            output.flush()
    lines = [json.loads(text) for text in arguments.output.read_text().splitlines()]
    print(len(lines), "verdicts:", dict(Counter(line["outcome"] for line in lines)))


if __name__ == "__main__":
    main()
