"""Trials per hour on N hosts of one machine, whose runs sleep, as one JSON line for each N.

    .venv/bin/python benchmarks/fleet/scaling.py --hosts 1 2 4 8 16 --run 15 --each 6

The rate is that of the search: trials but the first of each host, over the time from the first of
these to the end of the last. `share` is it over N times 1 / the length of a run.
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from cluster import Cluster, simulated, tuned

from lsmtune.experiment.folder import StudyFolder
from lsmtune.experiment.store import Role
from lsmtune.fleet.host import Host


def measured(hosts: int, run_s: float, each: int, port: int) -> dict[str, object]:
    """One study on so many hosts, of `each` trials a host."""
    with tempfile.TemporaryDirectory(prefix="fleet-") as name:
        base = Path(name)
        runner = simulated(run_s, base / "runs.jsonl")
        with Cluster(base, port) as cluster:
            for host in range(hosts):
                cluster.start(f"h{host}")
            fleet = cluster.fleet(runner)
            ready: list[Host] = []
            began_s = time.monotonic()
            while len(ready) < hosts and time.monotonic() - began_s < 180.0:
                ready += fleet.hosts()
                cluster.start_again()
                time.sleep(0.5)
            try:
                result, parts, told = tuned(
                    *(base, _All(ready), runner), trials=each * hosts, search_only=True
                )
            finally:
                fleet.close()
        with StudyFolder.open(base / "study") as folder:
            rows = folder.measurements.all()
        trials = [row for row in rows if row.role is Role.TRIAL]
        runs = [row.measurement for row in trials]
        first_s, last_s = (
            min(r.started_unix_s for r in runs),
            max(r.started_unix_s + r.elapsed_s for r in runs),
        )
        # Other hosts join while the first searches: from the moment that all do.
        joined_s = max(
            min(r.started_unix_s for r in runs if r.host == host) for host in {r.host for r in runs}
        )
        steady = [r for r in runs if r.started_unix_s >= joined_s]
        window_s = max(r.started_unix_s + r.elapsed_s for r in steady) - joined_s
        ends = sorted(r.started_unix_s + r.elapsed_s for r in steady)
        # Up to the last moment at which every host had work: after it the search runs out.
        until_s = min(
            max(r.started_unix_s + r.elapsed_s for r in steady if r.host == host)
            for host in {r.host for r in steady}
        )
        done = sum(end <= until_s for end in ends)
        rate = done / (until_s - joined_s)
        return {
            "hosts": hosts,
            "run_s": run_s,
            "trials": result.trials,
            "outcomes": dict(result.counts),
            "hosts_used": len({r.host for r in runs}),
            "per_host": sorted(Counter(r.host for r in runs).values()),
            "all_s": last_s - first_s,
            "window_s": window_s,
            "trials_per_hour": 3600 * rate,
            "share": rate * run_s / hosts,
            "discarded": parts.discarded,
            "told": list(told),
        }


class _All:
    """Hosts that are there already."""

    def __init__(self, hosts: Sequence[Host]) -> None:
        self._hosts = hosts

    def hosts(self) -> Sequence[Host]:
        """Once."""
        hosts, self._hosts = self._hosts, ()
        return hosts

    def close(self) -> None:
        """Nothing."""


def main() -> None:
    """See the module."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--hosts", type=int, nargs="+", default=[1, 2, 4, 8, 16])
    parser.add_argument("--run", type=float, default=15.0, help="seconds of a run")
    parser.add_argument("--each", type=int, default=6, help="trials a host")
    parser.add_argument("--port", type=int, default=16479)
    arguments = parser.parse_args()
    for hosts in arguments.hosts:
        found = measured(hosts, arguments.run, arguments.each, arguments.port)
        print(json.dumps(found), flush=True)


if __name__ == "__main__":
    main()
