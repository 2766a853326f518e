"""Verdicts on engines that lie: none may win.

    .venv/bin/python benchmarks/verdicts/lying_engines.py \\
        --output docs/benchmarks/verdicts/lying_engines.jsonl

Each row is one `lsmtune verify` with `driver/tests/lying/lying_engine.c` in front of the engine as
the candidate, and the engine itself as the baseline; or one `lsmtune tune` of an engine that lies
about the one configuration that would gain by it. Rows are added to the output, one after each
verdict; those that are in it already are not measured again. Exit status 1 if a lie has won.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

SOURCE = Path(__file__).parents[2] / "driver" / "tests" / "lying" / "lying_engine.c"
ENGINES = ("rocksdb", "leveldb")
VARIABLES = {engine: f"LSMTUNE_TEST_{engine.upper()}" for engine in ENGINES}
KEPT = ("outcome", "ratio", "ratio_low", "ratio_high", "pairs", "pairs_failed", "method", "why")

# The first trial is the default; no lie is told about it.
STUDY = """\
version: 1
name: lies
engine: {{name: {engine}, library: {library}}}
workload: {{name: fillrandom, num: 50000, value_bytes: 100}}
space:
  write_buffer_size: {{type: int, low: 64KiB, high: 128MiB}}
sampler: {{name: manual, configs: [{{write_buffer_size: 96MiB}}]}}
budget: {{trials: 2}}
proof: {{pairs: 8}}
noise: {{calibration: 0, anchors: 0, repeats: 1}}
"""
OF_THE_CANDIDATE = "buffer=90000000"


@dataclass(frozen=True)
class Case:
    """A lie, as the library spells it, and where it is told.

    `honest`: what the baseline does; empty: what the engine does. `loses`: whether the lie loses
    or falsifies data, so that the candidate is worse, and not only no better.
    """

    lie: str
    workload: tuple[str, ...] = ("fillrandom", "num=50000")
    honest: str = ""
    loses: bool = True
    tunes: bool = False


_READS = ("readrandom", "num=20000", "reads=50000")
_SCANS = ("seekrandom", "num=20000", "reads=5000", "seek_nexts=20")
_ALL = ("readseq", "num=50000")
_UPDATES = ("ycsb-a", "recordcount=5000", "operationcount=20000")
_SLOW = ("fillrandom", "num=3000")

CASES = (
    # Work that is not done.
    Case("drop_puts:50"),
    Case("drop_writes:2"),
    Case("drop_writes:1"),
    Case("lose_tail:45000"),
    Case("drop_writes:2 runs=6-99"),
    Case("forget_deletes:2", ("put-get-delete", "num=20000")),
    Case("drop_writes:2", _UPDATES),
    Case("fail_after:25000", loses=False),
    Case("hold_flushes:1", loses=False),
    # Answers that are false.
    Case("not_found:50", _READS),
    Case("neighbour:50", _READS),
    Case("wrong_value:50", _READS),
    Case("wrong_length:50", _READS),
    Case("constant:1", _READS),
    Case("constant:1 opens=1-1", _READS),
    Case("wrong_after:40000", _READS),
    Case("wrong_value:50 opens=2-2", _READS),
    Case("stale:5", _UPDATES),
    Case("skip_in_scan:50", _SCANS),
    Case("wrong_in_scan:50", _SCANS),
    Case("short_scan:5", _SCANS),
    Case("short_scan:0", _SCANS),
    Case("skip_in_scan:50", _ALL),
    Case("wrong_in_scan:50", _ALL),
    Case("short_scan:1000", _ALL),
    # Speed: an engine that is slow in all that it does is the baseline.
    Case("slow:100 runs=4-999", _SLOW, "slow:100", loses=False),
    Case("defer_to_drain:100", _SLOW, "slow:100", loses=False),
    Case("defer_to_close:100", _SLOW, "slow:100", loses=False),
    # The search finds what seems to be a gain.
    Case(f"drop_writes:2 {OF_THE_CANDIDATE}", tunes=True),
    Case(f"drop_writes:2 runs=4-999 {OF_THE_CANDIDATE}", tunes=True),
    Case(f"lose_tail:45000 opens=1-1 {OF_THE_CANDIDATE}", tunes=True),
    Case(f"hold_flushes:1 {OF_THE_CANDIDATE}", loses=False, tunes=True),
)


def library_of(engine: str) -> Path:
    """The real one, which the environment names."""
    return Path(os.environ[VARIABLES[engine]])


def liar(engine: str, lie: str, folder: Path) -> Path:
    """The library that tells `lie` in front of the real engine."""
    real, library = library_of(engine), folder / f"liar-{engine}-{abs(hash(lie)):x}.so"
    # The loader looks for the engine by the name that it gives itself.
    for name in (f"lib{engine}.so.1", real.name):
        if not (folder / name).exists():
            (folder / name).symlink_to(real)
    command = ["cc", "-shared", "-fPIC", "-O2", f"-DENGINE={engine}", f'-DLIE="{lie}"', SOURCE]
    command += ["-o", library, "-Wl,--no-as-needed", real, f"-Wl,-rpath,{folder}"]
    subprocess.run(command, check=True)
    return library


def verdict(case: Case, engine: str, *, crash_test: bool, pairs: int = 12) -> dict[str, object]:
    """What lsmtune says of the liar, as a row of the table."""
    started_s = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        candidate = liar(engine, case.lie, Path(folder))
        if case.tunes:
            study = Path(folder) / "study.yaml"
            study.write_text(STUDY.format(engine=engine, library=candidate))
            flags = ["tune", study]
        else:
            baseline = liar(engine, case.honest, Path(folder)) if case.honest else None
            flags = ["verify", "--engine", engine, "--workload", case.workload[0]]
            flags += [word for size in case.workload[1:] for word in ("-w", size)]
            flags += ["--baseline-library", baseline or library_of(engine)]
            flags += ["--candidate-library", candidate, "--pairs", pairs]
            flags += [] if crash_test else ["--no-crash-test"]
        command = [sys.executable, "-m", "lsmtune.cli.main", *map(str, flags), "--json"]
        done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=folder)
    if not done.stdout:
        raise SystemExit(f"{engine} {case.lie}: {done.stderr}")
    told = json.loads(done.stdout)
    # A study whose best is its baseline has nothing to prove.
    found = told.get("verdict") or {"outcome": "not_proven", "why": "nothing beat the baseline"}
    return {
        **row_of(case, engine, crash_test),
        **{key: found.get(key) for key in KEPT},
        # Of a study: how its trials ended.
        "trials": told.get("outcomes"),
        "load": os.getloadavg()[0],
        "wall_s": round(time.monotonic() - started_s, 1),
    }


def row_of(case: Case, engine: str, crash_test: bool) -> dict[str, object]:
    """What identifies a row."""
    command = "tune fillrandom" if case.tunes else f"verify {case.workload[0]}"
    return {
        "lie": case.lie,
        "baseline": case.honest,
        "engine": engine,
        "of": command,
        "crash_test": crash_test,
    }


def rows(engines: Sequence[str]) -> Iterator[tuple[Case, str, bool]]:
    """Every case. A study has no switch for its crash test, and a lie of speed leaves it nothing.

    The crash test is done after `better` alone: without it is the harder half.
    """
    for crash_test in (False, True):
        for case in CASES:
            for engine in engines:
                if crash_test is case.tunes or not (case.tunes or case.honest):
                    yield case, engine, crash_test


def table(lines: Sequence[dict[str, object]]) -> str:
    """The rows as Markdown: lie x engine, with / without the crash test."""
    cells: dict[tuple[object, ...], dict[tuple[object, object], str]] = {}
    for line in lines:
        ratio = "" if line["ratio"] is None else f" ({line['ratio']:.2f})"
        key = (line["lie"], line["of"], line["baseline"])
        cells.setdefault(key, {})[line["engine"], line["crash_test"]] = f"{line['outcome']}{ratio}"
    text = ["| lie | of | RocksDB | LevelDB |", "|---|---|---|---|"]
    for (lie, of, baseline), found in cells.items():
        told = f"`{lie}`" + (f" beside `{baseline}`" if baseline else "")
        each = (
            " / ".join(found[engine, crash] for crash in (True, False) if (engine, crash) in found)
            for engine in ENGINES
        )
        text.append(f"| {told} | `{of}` | {' | '.join(each)} |")
    return "\n".join(text)


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--engine", choices=ENGINES, action="append")
    parser.add_argument("--only", default="", help="lies that contain this text")
    parser.add_argument("--output", type=Path, required=True)
    asked = parser.parse_args(arguments)
    asked.output.parent.mkdir(parents=True, exist_ok=True)
    kept = asked.output.read_text().splitlines() if asked.output.exists() else []
    lines = [json.loads(text) for text in kept]
    with asked.output.open("a") as output:
        for case, engine, crash_test in rows(asked.engine or ENGINES):
            row = row_of(case, engine, crash_test)
            if asked.only not in case.lie or any(row.items() <= line.items() for line in lines):
                continue
            line = verdict(case, engine, crash_test=crash_test)
            output.write(json.dumps(line) + "\n")
            output.flush()
            lines.append(line)
    print(table(lines))
    won = [line for line in lines if line["outcome"] == "better"]
    print(f"{len(lines)} verdicts, {len(won)} lies won")
    return 1 if won else 0


if __name__ == "__main__":
    raise SystemExit(main())
