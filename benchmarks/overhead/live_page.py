"""Does an open live page disturb a run? Slices of one run, with the page open and closed.

    .venv/bin/python benchmarks/overhead/live_page.py --study STUDY.lsmtune --json live_page.json

A copy of the folder of a study that ran plays one that is under way: each second its `live.json`
gets another point of a series, and every five seconds it gets another trial. That goes on all the
time. Beside it RocksDB reads random keys for some minutes. In one of each two slices of this run
`lsmtune dashboard` watches the folder and a reader follows the stream of the page; in the other one
both are stopped. The order within a pair is random. The ratio of the pairs has an interval by
`stats.intervals.paired_ratio`; it is to lie within 2 % of 1.
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
from typing import Any, NamedTuple

import numpy as np
import psutil

from lsmtune.experiment.files import MEASUREMENTS_DB
from lsmtune.experiment.store import MeasurementStore, Role
from lsmtune.stats.intervals import paired_ratio
from lsmtune.study.live import LiveRun, begin_live

LSMTUNE = str(Path(sys.executable).with_name("lsmtune"))
RUN_EVERY_S, SLICE_S = 5.0, 2.0


class Slice(NamedTuple):
    """A part of the run; its ends are seconds of the wall's clock."""

    is_open: bool
    began_s: float
    ended_s: float


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
            live = begin_live(path, time.monotonic, threading.Event(), time_s=None, trials=None)
            number = max(row.trial or 0 for row in trials)
            series: tuple[tuple[float, float], ...] = ()
            while not ended.wait(1.0):
                point = (time.monotonic() - began_s, 1e4 + random.random())
                series = (*series, point)[-240:]
                run = LiveRun(
                    *("trial", number, number, None, 0, "ycsb-a", row.config.options, began_s),
                    series=series,
                )
                live.say(run=run)
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


def toggled(processes: list[psutil.Process], run: subprocess.Popen[str]) -> list[Slice]:
    """Opens and closes the page while `run` lasts."""
    dice, slices = random.Random(1), list[Slice]()
    while run.poll() is None:
        for is_open in dice.sample([True, False], 2):
            for process in processes:
                process.resume() if is_open else process.suspend()
            began_s = time.time()
            time.sleep(SLICE_S)
            slices.append(Slice(is_open, began_s, time.time()))
    return slices


def rates(phase: dict[str, Any], slices: list[Slice]) -> dict[bool, list[float]]:
    """Operations per second of the slices within `phase`, by whether the page was open.

    Element i of both is of pair i.
    """
    began_s = phase["started_unix_us"] / 1e6
    times_s = [0.0, *(each["elapsed_s"] for each in phase["intervals"])]
    counts = [0, *(each["operations_total"] for each in phase["intervals"])]
    found: dict[bool, list[float]] = {True: [], False: []}
    for first, second in zip(slices[::2], slices[1::2], strict=True):
        if first.began_s < began_s or second.ended_s > began_s + times_s[-1]:
            continue
        for each in (first, second):
            ends = [each.began_s - began_s, each.ended_s - began_s]
            low, high = np.interp(ends, times_s, counts)
            found[each.is_open].append((high - low) / (each.ended_s - each.began_s))
    return found


def main() -> None:
    """Runs it, and prints the interval."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--study", type=Path, required=True, help="the folder of a study")
    parser.add_argument("--seconds", type=int, default=300)
    parser.add_argument("--directory", type=Path, help="where the database is made")
    parser.add_argument("--json", type=Path)
    arguments = parser.parse_args()
    command = [LSMTUNE, "bench", "--engine", "rocksdb", "--workload", "readrandom", "--json"]
    sizes = ["-w", "num=200000", "-w", f"duration_s={arguments.seconds}"]
    with tempfile.TemporaryDirectory(dir=arguments.directory) as root:
        path, output = Path(root) / "study.lsmtune", Path(root) / "run.json"
        shutil.copytree(arguments.study, path, symlinks=True)
        with under_way(path), page(path) as processes, output.open("w") as told:
            began_s, began_cpu_s = time.monotonic(), cpu_s(processes)
            run = subprocess.Popen([*command, *sizes, "--dir", root], stdout=told, text=True)
            slices = toggled(processes, run)
            used_s = cpu_s(processes) - began_cpu_s
            share = 2 * used_s / (time.monotonic() - began_s)  # it was open for half of the time
        phase = json.loads(output.read_text())["measurements"][0]["phases"][-1]
    found = rates(phase, slices)
    ratio = paired_ratio(found[False], found[True])
    line = {
        "load": os.getloadavg()[0],
        "pairs": ratio.pairs,
        "open_over_closed": [ratio.ratio, ratio.low, ratio.high],
        "page_cpu_share": share,
    }
    print(json.dumps(line))
    if arguments.json:
        named = {"open": found[True], "closed": found[False]}
        arguments.json.write_text(json.dumps(line | named) + "\n")


if __name__ == "__main__":
    main()
