"""Does an open live page disturb a run? The same configuration, with the page open and closed.

    .venv/bin/python benchmarks/overhead/live_page.py --study STUDY.lsmtune --json live_page.json

A copy of the folder of a study that ran plays one that is under way: each second its `live.json`
gets another point of a series, and every five seconds it gets another trial. That goes on in all
runs. In one run of each pair `lsmtune dashboard` watches the folder and a reader follows the stream
of the page; in the other one both are stopped. The order within a pair is random. The ratio of the
pairs has an interval by `stats.intervals.paired_ratio`; it is to lie within 2 % of 1.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import replace
from pathlib import Path

import psutil

from lsmtune.experiment.files import MEASUREMENTS_DB
from lsmtune.experiment.store import MeasurementStore, Role
from lsmtune.stats.intervals import paired_ratio
from lsmtune.study.live import LIVE_FILE, Live, LiveRun, State, _write

LSMTUNE = str(Path(sys.executable).with_name("lsmtune"))
RUN_EVERY_S = 5.0


@contextmanager
def under_way(path: Path) -> Iterator[None]:
    """The study at `path` changes as one does that is under way."""
    ended = threading.Event()
    with closing(MeasurementStore(path / MEASUREMENTS_DB)) as store:
        trials = store.of(Role.TRIAL)
    if not trials:
        raise SystemExit(f"{path}: no trial was run")

    def change() -> None:
        with closing(MeasurementStore(path / MEASUREMENTS_DB)) as store:
            row, began_s = trials[-1], time.monotonic()
            number = max(row.trial or 0 for row in trials)
            series: tuple[tuple[float, float], ...] = ()
            while not ended.wait(1.0):
                now_s = time.monotonic()
                series = (*series, (now_s - began_s, 1e4 + random.random()))[-240:]
                run = LiveRun(
                    *("trial", number, number, None, 0, "ycsb-a", row.config.options, began_s),
                    series=series,
                )
                _write(path / LIVE_FILE, Live(os.getpid(), State.RUNNING, now_s, run=run))
                if len(series) % RUN_EVERY_S == 0:
                    number += 1
                    store.insert(replace(row, trial=number))

    thread = threading.Thread(target=change)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()


@contextmanager
def page(path: Path) -> Iterator[list[psutil.Process]]:
    """The processes of a live page of `path` that somebody follows."""
    server = subprocess.Popen(
        [LSMTUNE, "dashboard", str(path), "--port", "0"],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    address = None
    while address is None:
        line = server.stdout.readline() if server.stdout else ""
        if not line:
            raise SystemExit("the live page did not begin")
        address = re.search(r"http://\S+", line)
    follow = (
        "import sys, urllib.request as r\n"
        "for line in r.urlopen(sys.argv[1] + 'study/0/events'): pass"
    )
    urllib.request.urlopen(address[0]).read()
    reader = subprocess.Popen([sys.executable, "-c", follow, f"{address[0].rstrip('/')}/"])
    try:
        yield [psutil.Process(server.pid), psutil.Process(reader.pid)]
    finally:
        for process in (server, reader):
            process.send_signal(signal.SIGCONT)
            process.kill()
            process.wait()


def cpu_s(processes: list[psutil.Process]) -> float:
    """Seconds of the processor that they had together."""
    return sum(sum(process.cpu_times()[:2]) for process in processes)


def rate(seed: int, arguments: argparse.Namespace) -> float:
    """Operations per second of one run."""
    sizes = [flag for size in arguments.size for flag in ("-w", size)]
    command = [LSMTUNE, "bench", "--engine", "rocksdb", "--workload", arguments.workload, *sizes]
    with tempfile.TemporaryDirectory(dir=arguments.directory) as folder:
        done = subprocess.run(
            [*command, "--seed", str(seed), "--dir", folder, "--json"],
            capture_output=True,
            text=True,
            check=True,
        )
    phases = json.loads(done.stdout)["measurements"][0]["phases"]
    return float(phases[-1]["sustained_throughput_ops_s"])


def main() -> None:
    """Runs the pairs, and prints the interval."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--study", type=Path, required=True, help="the folder of a study")
    parser.add_argument("--pairs", type=int, default=30)
    parser.add_argument("--workload", default="readrandom")
    parser.add_argument("--size", action="append", default=[])
    parser.add_argument("--directory", type=Path, help="where databases are made")
    parser.add_argument("--json", type=Path)
    arguments = parser.parse_args()
    dice = random.Random(1)
    rates: dict[bool, list[float]] = {True: [], False: []}
    with tempfile.TemporaryDirectory() as root:
        path = Path(root) / "study.lsmtune"
        shutil.copytree(arguments.study, path, symlinks=True)
        with under_way(path), page(path) as processes:
            began_s, began_cpu_s = time.monotonic(), cpu_s(processes)
            for pair in range(arguments.pairs):
                for is_open in dice.sample([True, False], 2):
                    for process in processes:
                        process.resume() if is_open else process.suspend()
                    rates[is_open].append(rate(pair + 1, arguments))
                print(pair, *(round(rates[each][-1]) for each in (True, False)), flush=True)
            used_s = cpu_s(processes) - began_cpu_s
            share = 2 * used_s / (time.monotonic() - began_s)  # it was open for half of the time
    interval = paired_ratio(rates[False], rates[True])
    found = {
        "load": os.getloadavg()[0],
        "open_over_closed": [interval.ratio, interval.low, interval.high],
        "page_cpu_share": share,
        "open": rates[True],
        "closed": rates[False],
    }
    print({name: found[name] for name in ("load", "open_over_closed", "page_cpu_share")})
    if arguments.json:
        arguments.json.write_text(json.dumps(found) + "\n")


if __name__ == "__main__":
    main()
