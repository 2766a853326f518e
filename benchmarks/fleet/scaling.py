"""Trials per hour on N hosts of one machine, whose runs sleep, as one JSON line for each N.

    sudo .venv/bin/python benchmarks/fleet/scaling.py --apart --hosts 1 2 4 8 16 --run 20 --each 6

The cycle of a host is the time from the start of a trial to the start of its next one, over the
whole search. Hosts work at once, so the rate is the sum over hosts of 1 / the mean of their cycles:
what the search does while it lasts, whatever its first and last minutes are like. `share` is that
rate over N times 1 / the length of a run: 1 where no host ever waits. `gap_s` is what a host waits
between two trials; `head_cpu_s` is the processor time of the tuner for each trial.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from contextlib import ExitStack
from itertools import pairwise
from pathlib import Path
from statistics import median

from cluster import Cluster, fleet_at, simulated, tuned
from network import Network
from simulated_hosts import Hosts

from lsmtune.experiment.folder import StudyFolder
from lsmtune.experiment.store import Role
from lsmtune.fleet.host import Host

_READY_S = 600.0  # all hosts are there; on a busy machine Ray's daemons start slowly


def measured(hosts: int, run_s: float, each: int, port: int, *, apart: bool) -> dict[str, object]:
    """One study on so many hosts, of `each` trials a host; `apart`: in network namespaces."""
    with ExitStack() as stack:
        base = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="fleet-")))
        network = stack.enter_context(Network(base)) if apart else None
        cluster = stack.enter_context(Cluster(base, port, network))
        for host in range(hosts):
            cluster.start(f"h{host}")
        command = [sys.executable, __file__, "--within", str(base), cluster.join]
        command += ["--hosts", str(hosts), "--run", str(run_s), "--each", str(each)]
        tuner = subprocess.Popen(cluster.on("head", command), stdout=subprocess.DEVNULL)
        while tuner.poll() is None:
            cluster.start_again()
            time.sleep(0.5)
        if tuner.returncode:
            raise SystemExit(f"the tuner ended with status {tuner.returncode}")
        return dict(json.loads((base / "found.json").read_text()))


def tune_here(base: Path, address: str, hosts: int, run_s: float, each: int) -> None:
    """The tuner, in a process of its own: on the head, and apart from what Ray prints."""
    runner = simulated(run_s, base / "runs.jsonl")
    fleet = fleet_at(address, runner)
    ready: list[Host] = []
    began_s = time.monotonic()
    while len(ready) < hosts and time.monotonic() - began_s < _READY_S:
        ready += fleet.hosts()
        time.sleep(0.5)
    before_s = time.process_time()
    try:
        result, parts, told = tuned(
            *(base, Hosts(ready), runner), trials=each * hosts, search_only=True
        )
    finally:
        cpu_s = time.process_time() - before_s
        fleet.close()
    with StudyFolder.open(base / "study") as folder:
        rows = folder.measurements.all()
    starts: dict[str, list[float]] = defaultdict(list)
    for row in rows:
        if row.role is Role.TRIAL:
            starts[row.measurement.host].append(row.measurement.started_unix_s)
    cycles = [
        later - earlier for of_host in starts.values() for earlier, later in pairwise(of_host)
    ]
    means = {h: (s[-1] - s[0]) / (len(s) - 1) for h, s in starts.items() if len(s) > 1}
    rate = sum(1.0 / mean for mean in means.values())
    gaps = sorted(cycle - run_s for cycle in cycles)
    found = {
        "hosts": hosts,
        "run_s": run_s,
        "trials": result.trials,
        "outcomes": dict(result.counts),
        "hosts_used": len(starts),
        "per_host": sorted(map(len, starts.values())),
        "cycles": len(cycles),
        "gap_s_p50": median(gaps),
        "gap_s_max": gaps[-1],
        "head_cpu_s": cpu_s / result.trials,
        "trials_per_hour": 3600 * rate,
        "share": rate * run_s / hosts,
        "load_average": os.getloadavg()[0],
        "discarded": parts.discarded,
        "told": list(told),
    }
    (base / "found.json").write_text(json.dumps(found))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--hosts", type=int, nargs="+", default=[1, 2, 4, 8, 16])
    parser.add_argument("--run", type=float, default=15.0, help="seconds of a run")
    parser.add_argument("--each", type=int, default=6, help="trials a host")
    parser.add_argument("--port", type=int, default=16479)
    parser.add_argument("--apart", action="store_true", help="in network namespaces, as root")
    parser.add_argument("--within", nargs=2, metavar=("BASE", "ADDRESS"), help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.within:
        base, address = asked.within
        tune_here(Path(base), address, *asked.hosts, asked.run, asked.each)
        return
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    for hosts in asked.hosts:
        found = measured(hosts, asked.run, asked.each, asked.port, apart=asked.apart)
        print(json.dumps(found), flush=True)


if __name__ == "__main__":
    main()
