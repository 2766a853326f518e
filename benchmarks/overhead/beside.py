"""Does what stands beside a run disturb it? Slices of one run, with it and without it.

    .venv/bin/python benchmarks/overhead/beside.py page --study STUDY.lsmtune --json live_page.json
    .venv/bin/python benchmarks/overhead/beside.py fleet --json idle_fleet.json

RocksDB reads random keys for some minutes. In one of each two slices of this run the programs
beside it go on, in the other one they are stopped (SIGSTOP). The order within a pair is random. The
ratio of the pairs has an interval by `stats.intervals.paired_ratio`; it is to lie within 2 % of 1.

`page`: `lsmtune dashboard` and a reader of its stream. A copy of the folder of a study that ran
plays one that is under way: each second its `live.json` gets another point of a series, and every
five seconds it gets another trial. That goes on all the time.

`fleet`: the head of a fleet and a host, as `lsmtune worker` starts them, with all daemons of Ray's.
No study uses them.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import re
import secrets
import shutil
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import psutil

from lsmtune.cli.worker import own_address
from lsmtune.experiment.files import MEASUREMENTS_DB
from lsmtune.experiment.store import MeasurementStore, Role
from lsmtune.stats.intervals import paired_ratio
from lsmtune.study.live import LiveRun, begin_live
from lsmtune.study.spec import Budget

LSMTUNE = str(Path(sys.executable).with_name("lsmtune"))
RUN_EVERY_S, SLICE_S = 5.0, 2.0
PORT = 17679
REST_S = 20.0  # in which daemons that were started come to rest


class Slice(NamedTuple):
    """A part of the run; its ends are seconds of the wall's clock."""

    beside: bool
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
            live = begin_live(path, time.monotonic, threading.Event(), Budget())
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
def page(path: Path) -> Iterator[list[subprocess.Popen[str]]]:
    """A live page of `path`, and somebody who follows it."""
    with ended_after() as started:
        server = subprocess.Popen(
            [LSMTUNE, "dashboard", str(path), "--port", "0"],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        started.append(server)
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
        command = [sys.executable, "-c", follow, f"{address[0].rstrip('/')}/"]
        reader = subprocess.Popen(command, text=True)
        started.append(reader)
        yield started


@contextmanager
def fleet(home: Path) -> Iterator[list[subprocess.Popen[str]]]:
    """The head of a fleet and a host of it, both on this machine, at rest. Needs a network."""
    address = own_address("192.0.2.1:9")  # Ray does not take a loopback
    # A token of its own, so that none is left in the user's folder.
    environment = os.environ | {"LSMTUNE_HOME": str(home), "RAY_AUTH_TOKEN": secrets.token_hex(32)}
    head = ("--begin", address, "--port", str(PORT))
    host = ("--join", f"{address}:{PORT}", "--dir", str(home))
    with ended_after() as started:
        for number, arguments in enumerate((head, host), 1):
            worker = subprocess.Popen(
                [LSMTUNE, "worker", *arguments],
                env=environment,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                text=True,
            )
            started.append(worker)
            while raylets(started) < number:
                if worker.poll() is not None:
                    raise SystemExit(f"lsmtune worker {' '.join(arguments)} ended")
                time.sleep(0.5)
        time.sleep(REST_S)
        yield started


def raylets(started: Sequence[subprocess.Popen[str]]) -> int:
    """How many daemons of Ray's they have."""
    count = 0
    for process in family(started):
        with suppress(psutil.NoSuchProcess):
            count += process.name() == "raylet"
    return count


@contextmanager
def ended_after() -> Iterator[list[subprocess.Popen[str]]]:
    """A list of processes that are ended with all that they started, whatever happens."""
    started = list[subprocess.Popen[str]]()
    try:
        yield started
    finally:
        for process in reversed(family(started)):
            with suppress(psutil.NoSuchProcess):
                process.resume()
                process.kill()
        for child in started:
            child.wait()


def family(started: Sequence[subprocess.Popen[str]]) -> list[psutil.Process]:
    """Those processes and all that descend from them, now."""
    found = list[psutil.Process]()
    for child in started:
        with suppress(psutil.NoSuchProcess):
            parent = psutil.Process(child.pid)
            found += [parent, *parent.children(recursive=True)]
    return found


def cpu_s(started: Sequence[subprocess.Popen[str]]) -> dict[int, float]:
    """Seconds of the processor that each process of theirs had, by its number."""
    used = dict[int, float]()
    for process in family(started):
        with suppress(psutil.NoSuchProcess):
            used[process.pid] = sum(process.cpu_times()[:2])
    return used


def toggled(started: Sequence[subprocess.Popen[str]], run: subprocess.Popen[str]) -> list[Slice]:
    """Stops and continues them while `run` lasts."""
    dice, slices = random.Random(1), list[Slice]()
    while run.poll() is None:
        for beside in dice.sample([True, False], 2):
            for process in family(started):
                with suppress(psutil.NoSuchProcess):
                    process.resume() if beside else process.suspend()
            began_s = time.time()
            time.sleep(SLICE_S)
            slices.append(Slice(beside, began_s, time.time()))
    return slices


def rates(phase: dict[str, Any], slices: list[Slice]) -> dict[bool, list[float]]:
    """Operations per second of the slices within `phase`, by whether they were beside it.

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
            found[each.beside].append((high - low) / (each.ended_s - each.began_s))
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("what", choices=("page", "fleet"))
    parser.add_argument("--study", type=Path, help="page: the folder of a study")
    parser.add_argument("--seconds", type=int, default=300)
    parser.add_argument("--directory", type=Path, help="where the database is made")
    parser.add_argument("--json", type=Path)
    arguments = parser.parse_args()
    if (arguments.what == "page") != (arguments.study is not None):
        parser.error("--study is for page, which needs it")
    command = [LSMTUNE, "bench", "--engine", "rocksdb", "--workload", "readrandom", "--json"]
    sizes = ["-w", "num=200000", "-w", f"duration_s={arguments.seconds}"]
    sizes += ["--deadline", f"{arguments.seconds + 600}s"]
    with tempfile.TemporaryDirectory(dir=arguments.directory) as root, ExitStack() as stack:
        output = Path(root) / "run.json"
        if arguments.study is None:
            started = stack.enter_context(fleet(Path(root) / "home"))
        else:
            path = Path(root) / "study.lsmtune"
            shutil.copytree(arguments.study, path, symlinks=True)
            stack.enter_context(under_way(path))
            started = stack.enter_context(page(path))
        began_s, before = time.monotonic(), cpu_s(started)
        with output.open("w") as told:
            run = subprocess.Popen([*command, *sizes, "--dir", root], stdout=told, text=True)
            slices = toggled(started, run)
            passed_s, after = time.monotonic() - began_s, cpu_s(started)
        if run.returncode != 0:
            raise SystemExit("the run failed")
        phase = json.loads(output.read_text())["measurements"][0]["phases"][-1]
    found = rates(phase, slices)
    ratio = paired_ratio(found[False], found[True])
    line = {
        "load": os.getloadavg()[0],
        "pairs": ratio.pairs,
        "with_over_without": [ratio.ratio, ratio.low, ratio.high],
        "processes": len(after),
        # They went on for half of the time.
        "cpu_share": 2 * sum(used - before.get(pid, 0.0) for pid, used in after.items()) / passed_s,
    }
    print(json.dumps(line))
    if arguments.json:
        named = {"with": found[True], "without": found[False]}
        arguments.json.write_text(json.dumps(line | named) + "\n")


if __name__ == "__main__":
    main()
