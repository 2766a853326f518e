"""Kills of workers, raylets and the tuner while a study runs on a fleet, and what is left of it.

    .venv/bin/python benchmarks/fleet/chaos.py --kills 30 --hosts 3 --trials 60

Each kill is a SIGKILL, of a worker that measures, of the raylet of a host (the host then joins
again), or of the tuner (the same command then goes on). Then: every trial of the budget is stored
once, no two runs of one host overlap, and nothing stored was of a lease that had ended. One JSON
document.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter, defaultdict
from itertools import pairwise
from pathlib import Path

import psutil
from cluster import Cluster, simulated, tuned

from lsmtune.experiment.folder import StudyFolder
from lsmtune.experiment.store import Role


def tune_here(base: Path, address: str, run_s: float, trials: int) -> None:
    """The tuner, in a process of its own."""
    from lsmtune.fleet.on_ray import RayFleet

    runner = simulated(run_s, base / "runs.jsonl")
    fleet = RayFleet(address, runner)
    try:
        result, parts, told = tuned(base, fleet, runner, trials=trials)
    finally:
        fleet.close()
    found = {"outcomes": dict(result.counts), "discarded": parts.discarded, "told": list(told)}
    (base / "tuned.json").write_text(json.dumps(found))


def overlaps(log: Path) -> tuple[int, int]:
    """How many runs began while another of the same host lasted, and how many runs there were."""
    spans: dict[tuple[str, str], list[float]] = {}
    for line in log.read_text().splitlines():
        try:
            said = json.loads(line)
        except ValueError:  # cut off by a kill
            continue
        directory = Path(said["directory"])
        span = spans.setdefault((directory.parents[1].name, directory.name), [said["unix_s"]] * 2)
        span[1] = said["unix_s"]
    hosts: dict[str, list[list[float]]] = defaultdict(list)
    for (host, _), span in spans.items():
        hosts[host].append(span)
    count = 0
    for of_host in hosts.values():
        of_host.sort()
        count += sum(one[1] > other[0] for one, other in pairwise(of_host))
    return count, len(spans)


def kill(what: str, cluster: Cluster, base: Path, tuner: subprocess.Popen[bytes]) -> str:
    """One SIGKILL; what was hit, empty where there was nothing to."""
    if what == "tuner":
        tuner.kill()
        return "tuner"
    if what == "worker":
        lines = (base / "runs.jsonl").read_text().splitlines()[-5:]
        for line in reversed(lines):
            pid = json.loads(line)["pid"]
            if psutil.pid_exists(pid):
                os.kill(pid, signal.SIGKILL)
                return "worker"
        return ""
    name = random.choice([n for n in cluster.daemons if n != "head"])
    family = psutil.Process(cluster.daemons[name].pid).children(recursive=True)
    for process in family:
        if process.name() == "raylet":
            process.kill()
            time.sleep(1.0)
            cluster.daemons[name].terminate()
            cluster.daemons[name].wait(40.0)
            cluster.start(name)
            return "raylet"
    return ""


def main() -> None:
    """See the module."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kills", type=int, default=30)
    parser.add_argument("--hosts", type=int, default=3)
    parser.add_argument("--trials", type=int, default=60)
    parser.add_argument("--run", type=float, default=1.5, help="seconds of a run")
    parser.add_argument("--every", type=int, default=3, help="runs that begin between two kills")
    parser.add_argument("--port", type=int, default=16679)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--tuner", nargs=2, metavar=("BASE", "ADDRESS"), help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.tuner:
        tune_here(Path(asked.tuner[0]), asked.tuner[1], asked.run, asked.trials)
        return
    random.seed(asked.seed)
    hit: Counter[str] = Counter()
    with tempfile.TemporaryDirectory(prefix="chaos-") as name:
        base = Path(name)
        with Cluster(base, asked.port) as cluster:
            for host in range(asked.hosts):
                cluster.start(f"h{host}")
            command = [sys.executable, __file__, "--tuner", str(base), cluster.join]
            command += ["--run", str(asked.run), "--trials", str(asked.trials)]
            errors = (base / "tuner.err").open("ab")
            tuner = subprocess.Popen(command, stderr=errors, stdout=subprocess.DEVNULL)
            sessions, begun, log = 1, 0, base / "runs.jsonl"
            while True:
                time.sleep(0.2)
                if tuner.poll() is not None:
                    if tuner.returncode == 0:
                        break
                    tuner = subprocess.Popen(command, stderr=errors, stdout=subprocess.DEVNULL)
                    sessions += 1
                now = log.read_text().count('"began"') if log.exists() else 0
                if now >= begun + asked.every and hit.total() < asked.kills:
                    what = random.choices(["worker", "raylet", "tuner"], [3, 2, 1])[0]
                    done = kill(what, cluster, base, tuner)
                    hit.update([done] if done else [])
                    begun = now
                    print(time.strftime("%X"), now, dict(hit), file=sys.stderr, flush=True)
        with StudyFolder.open(base / "study") as folder:
            rows = folder.measurements.all()
        stored = Counter(row.trial for row in rows if row.role is Role.TRIAL)
        twice, runs = overlaps(base / "runs.jsonl")
        found = {
            "kills": dict(hit),
            "sessions": sessions,
            "trials_wanted": asked.trials,
            "trials_stored": len(stored),
            "trials_doubled": sum(count > 1 for count in stored.values()),
            "runs_begun": runs,
            "runs_stored": len(rows),
            "runs_beside_another": twice,
            **json.loads((base / "tuned.json").read_text()),
            "tuner_errors": (base / "tuner.err").read_text()[-1500:],
        }
    print(json.dumps(found))


if __name__ == "__main__":
    main()
