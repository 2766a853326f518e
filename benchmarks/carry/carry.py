"""Do answers carry over? Studies of ten minutes, each then verified at the size of its target.

    .venv/bin/python benchmarks/carry/carry.py --output /tmp/carry.jsonl

Eight workloads, and the quickstart with five seeds. Each is tuned with the budget of a user who is
in a hurry, which proves at a part of the target (`promised`). Then `lsmtune verify` lets the
recommended configuration meet the baseline at the whole target, or at ten times of what the proof
had where that was the target (`larger`). It runs what is stated, and runs that are not steady prove
nothing: so it has as many operations for each record as the proof came to need. A line is added for
each case; cases that the output has are left out, so that the work can be spread over several
nights. A case that failed or was stopped has no line, and goes on in its folder at the next call.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml

from lsmtune.engines.library import engines_folder
from lsmtune.experiment.run_length import can_last, longer_by, warmed_by
from lsmtune.units import parse_bytes
from lsmtune.workloads.file import workload_text
from lsmtune.workloads.stated import state_workload

LARGER = 10  # times the size of a proof that was at the target
QUICKSTART = Path(__file__).parents[2] / "examples" / "quickstart" / "study.yaml"
ROWS = {"value_bytes": 1000, "compression_ratio": 0.5}
YCSB = {"recordcount": 1_000_000, "operationcount": 500_000, "compression_ratio": 0.5}
# 1 GB, and a little less memory.
WORKLOADS: dict[str, dict[str, Any]] = {
    "fillrandom": {"num": 1_000_000, **ROWS},
    "overwrite": {"num": 1_000_000, **ROWS},
    "readrandom": {"num": 1_000_000, "reads": 500_000, **ROWS},
    "ycsb-a": YCSB,
    "ycsb-b": YCSB,
    "ycsb-d": YCSB,
    "social-graph": {"num": 3_000_000, "operations": 1_000_000},
    "put-get-delete": {"num": 500_000, **ROWS},
}
RECORDS = ("num", "recordcount")
OPERATIONS = ("reads", "operations", "operationcount")
MEMORY = "768MiB"
KEPT = ("outcome", "ratio", "ratio_low", "ratio_high", "pairs", "why", "guards", "proved_at")


def lsmtune(*arguments: str) -> tuple[int, str, str]:
    """Exit status, stdout and stderr of one command.

    It has the engines of the user's home and nothing else of it: no study begins with what another
    one has proved.
    """
    command = [str(Path(sys.executable).with_name("lsmtune")), *arguments]
    with tempfile.TemporaryDirectory() as home:
        (Path(home) / "engines").symlink_to(engines_folder())
        environment = {**os.environ, "LSMTUNE_HOME": home}
        done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
    return done.returncode, done.stdout, done.stderr


def cases() -> Iterator[tuple[str, dict[str, Any]]]:
    """Name and study."""
    for name, parameters in WORKLOADS.items():
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "study.yaml"
            sizes = [flag for k, v in parameters.items() for flag in ("-w", f"{k}={v}")]
            flags = ("--workload", name, *sizes, "--memory", MEMORY, "--output", str(path))
            status, _, said = lsmtune("init", *flags)
            if status:
                raise SystemExit(said)
            yield name, yaml.safe_load(path.read_text())
    quickstart = yaml.safe_load(QUICKSTART.read_text())
    for seed in range(1, 6):
        yield f"quickstart {seed}", {**quickstart, "seed": seed}


def carried(name: str, study: dict[str, Any], root: Path) -> dict[str, Any]:
    """Tune `study`, and verify what it recommends at its target, or at ten times that."""
    folder = root / name.replace(" ", "-")
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "study.yaml"
    path.write_text(yaml.safe_dump(study, sort_keys=False))
    status, out, said = lsmtune("tune", str(path), "--json")
    line: dict[str, Any] = {"case": name, "unix_s": round(time.time()), "load": os.getloadavg()[0]}
    if status:
        return {**line, "error": said.strip().splitlines()[-1:]}
    tuned = json.loads(out)
    promised = {key: tuned["verdict"][key] for key in KEPT}
    line |= {"tune_s": round(tuned["spent_s"], 1), "promised": promised}
    if promised["outcome"] != "better":
        return line
    at = promised["proved_at"][0]
    larger = study if at["share_of_target"] < 1.0 else times(study, LARGER)
    metric = larger["objective"]["metric"]
    limits = larger["limits"]
    begun_s = time.monotonic()
    status, out, said = lsmtune(
        *("verify", "--engine", larger["engine"]["name"]),
        *("--workload", str(lasting(larger["workload"], at, folder / "larger.yaml"))),
        *("--baseline", "default", "--candidate", str(path), "--metric", metric),
        *("--memory", str(limits["memory"]), "--deadline", "30m", "--disk", "60GiB"),
        *("--smallest-effect", "5%", "--pairs", "12", "--no-power-test", "--no-crash-test"),
        *("--dir", str(folder / "larger"), "--json"),
    )
    if status not in (0, 3, 4):
        return {**line, "error": said.strip().splitlines()[-1:]}
    verdict = json.loads(out)["verdict"]
    line["larger"] = {key: verdict[key] for key in KEPT}
    return line | {"verify_s": round(time.monotonic() - begun_s, 1)}


def times(study: dict[str, Any], factor: int) -> dict[str, Any]:
    """`study` with `factor` times the records, the operations and the memory."""
    workload = {
        key: value * factor if key in (*RECORDS, *OPERATIONS) and value is not None else value
        for key, value in study["workload"].items()
    }
    memory_bytes = parse_bytes(study["limits"]["memory"]) * factor
    return {**study, "workload": workload, "limits": {**study["limits"], "memory": memory_bytes}}


def lasting(workload: dict[str, Any], at: dict[str, Any], path: Path) -> Path:
    """`workload` as a file at `path`, with as many operations for each record as the proof had.

    At least, and as many of them before it measures. `at` is what was `proved_at`.
    """
    parameters = {k: v for k, v in workload.items() if k != "name" and v is not None}
    stated = state_workload(workload["name"], parameters, "carry").workload
    if can_last(stated):
        operations = sum(phase.operations_whole or 0 for phase in stated.measured_phases)
        stated = longer_by(stated, at["operations"] / at["records"] * stated.num / operations)
        before = sum(phase.operations or 0 for phase in stated.phases if phase.kind == "warmup")
        missing = at["warmup_operations"] / at["records"] * stated.num - before
        measured = sum(phase.operations_whole or 0 for phase in stated.measured_phases)
        stated = warmed_by(stated, missing / measured if missing > 0.01 * measured else 0.0)
    path.write_text(workload_text(stated))
    return path


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", default="", help="cases whose names contain this")
    parser.add_argument("--runs", type=Path, default=Path("carry-runs"))
    parser.add_argument("--output", type=Path, required=True)
    arguments = parser.parse_args()
    arguments.output.parent.mkdir(parents=True, exist_ok=True)
    lines = arguments.output.read_text().splitlines() if arguments.output.exists() else []
    done = {json.loads(line)["case"] for line in lines}
    for name, study in cases():
        if name in done or arguments.only not in name:
            continue
        line = carried(name, study, arguments.runs)
        if "error" not in line:
            with arguments.output.open("a") as output:
                output.write(json.dumps(line) + "\n")
        print(summary(line), flush=True)


def summary(line: dict[str, Any]) -> str:
    """One line for people."""
    told = [line["case"]]
    for key in ("promised", "larger"):
        if key in line:
            found = line[key]
            ratios = [found[name] for name in ("ratio", "ratio_low", "ratio_high")]
            broken = [g["guard"] for g in found["guards"] if 2 * g["broken"] > g["pairs"] > 0]
            told.append(f"{key}: {found['outcome']} {ratios} {broken}")
    return "; ".join([*told, *line.get("error", [])])


if __name__ == "__main__":
    main()
