"""Kills, stops and interrupts every command that measures, and its runs, and keeps account.

By hand: `python tests/faults/kills.py KILLS SEED [COMMAND ...]`, with LSMTUNE_TEST_LEVELDB and
LSMTUNE_TEST_ROCKSDB set as `make test` sets them. Ctrl-C ends it with the table of what was done.

A session is one command in a home of its own. It is disturbed several times; whenever it ended, the
same command is started again. Then it is left alone until it is done. After each start its rows
are compared with all that were ever seen, and at the end nothing may be left.
"""

from __future__ import annotations

import contextlib
import json
import math
import os
import random
import re
import shlex
import shutil
import signal
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psutil

sys.path.insert(0, str(Path(__file__).parent.parent))

import lsmtune
from lsmtune.driver.conversation import DRIVER_NAME
from lsmtune.machine.cgroup import PREFIX, groups
from patience import PATIENCE_S, wait_until

TRACE = Path(__file__).parents[2] / "driver" / "tests" / "data" / "mixgraph-7.8.trace"
# Inherited by all that a command starts, and by nothing else on this machine.
TAG = "LSMTUNE_KILLS"
START_S = 1.5  # a signal "just after the start" comes within this: imports included
LONGEST_DELAY_S = 0.4
STOP_S, LONGEST_STOP_S = 0.5, 20.0
# Less than the longest stop: a run that was stopped would pass it, if that time were the run's.
DEADLINE = "15s"

DONE = (0, 3, 4)  # done; not proved, and proved worse, which are results as well
RUN_LINE = re.compile(r"^[a-z]+ ?[^:\n]*: ok\b", re.MULTILINE)
BY_SOMEBODY = "by whom is not known"  # said of a run that was killed from outside
GIVEN_UP = re.compile(f"^lsmtune: .*({BY_SOMEBODY}|stopped by a signal from outside)", re.MULTILINE)

SPINNING = """\
import json, os, time
parameters = json.load(open(os.environ["LSMTUNE_PARAMETERS"]))["parameters"]
while time.process_time() < 0.15:
    pass
with open(os.environ["LSMTUNE_RESULTS"], "a") as results:
    results.write(json.dumps({"score": 1000 - parameters["size"]}) + "\\n")
"""
STUDY = """\
version: 1
name: killed
{engine}
baseline: {{write_buffer_size: 64KiB}}
space:
  write_buffer_size: {{type: int, low: 1MiB, high: 16MiB, step: 64KiB}}
workload: {{name: fillrandom, num: 2000}}
burst: true
budget: {{trials: 8}}
limits: {{deadline: 15s}}
proof: {{pairs: 8, power_states: 4}}
noise: {{calibration: 0, anchors: 3, repeats: 2}}
"""
BURST = "objective: {metric: throughput_ops_s}"  # what db_bench tells
OWN_PROGRAM = """\
version: 1
name: killed
runner: {{command: [{python}, spinning.py]}}
objective: {{metric: score, direction: maximize}}
baseline: {{size: 500}}
space:
  size: {{type: int, low: 1, high: 500}}
budget: {{trials: 8}}
limits: {{deadline: 15s}}
proof: {{pairs: 8}}
"""


@dataclass(frozen=True)
class Command:
    """A command line on tiny workloads.

    `store` is the folder of its rows below the home, empty where it keeps none, and `rows` are the
    fewest that it has by role when it is done. `runs` is a part of the command line of its runs,
    and `files` are what it reads.
    """

    line: str
    store: str = ""
    rows: Mapping[str, int] = field(default_factory=dict)
    runs: str = DRIVER_NAME
    files: Mapping[str, str] = field(default_factory=dict)


def commands() -> dict[str, Command]:
    """All that measure, by name; without db_bench those that need it are left out."""
    leveldb, rocksdb = (os.environ[f"LSMTUNE_TEST_{name}"] for name in ("LEVELDB", "ROCKSDB"))
    on_leveldb = f"--engine leveldb --library {shlex.quote(leveldb)}"
    on_rocksdb = f"--engine rocksdb --library {shlex.quote(rocksdb)}"
    fill, kept = "-w num=2000", f"--dir kept --deadline {DEADLINE}"
    tiny = "--workload fillrandom --baseline write_buffer_size=64KiB"
    teams = "a=default b=write_buffer_size=64KiB c=write_buffer_size=1MiB"

    def tune(engine: str, runs: str = DRIVER_NAME) -> Command:
        files = {"study.yaml": STUDY.format(engine=engine)}
        return Command("tune study.yaml", "study.lsmtune", {"trial": 8}, runs, files)

    def keeping(line: str, **rows: int) -> Command:
        return Command(f"{line} {fill} {kept}", "kept", rows)

    own = {"study.yaml": OWN_PROGRAM.format(python=sys.executable), "spinning.py": SPINNING}
    known = {
        "tune, LevelDB": tune(f"engine: {{name: leveldb, library: {leveldb}}}"),
        "tune, RocksDB": tune(f"engine: {{name: rocksdb, library: {rocksdb}}}"),
        "tune, own program": Command(
            "tune study.yaml", "study.lsmtune", {"trial": 8}, "spinning.py", own
        ),
        "verify": keeping(f"verify {on_leveldb} {tiny} --candidate write_buffer_size=4MiB"),
        "verify, nothing kept": Command(
            f"verify {on_rocksdb} {tiny} --candidate default {fill} --deadline {DEADLINE}"
        ),
        "bench": Command(
            f"bench {on_leveldb} --workload fillrandom {fill} --repeat 8 --deadline {DEADLINE}"
        ),
        "sweep": keeping(
            f"sweep {on_leveldb} --workload fillrandom --axis value_bytes=50,100,200 --repeat 4",
            round=12,
        ),
        "contest": keeping(
            f"contest {teams} {on_rocksdb} --workload fillrandom --rounds 4", round=12
        ),
        "minimise": keeping(
            f"minimise {on_leveldb} {tiny} --candidate write_buffer_size=4MiB,max_open_files=500"
            " --pairs 8"
        ),
        "doctor": Command(f"doctor {on_leveldb} {fill} --calibrate 30s"),
        "workload replay": Command(
            f"workload replay {shlex.quote(str(TRACE))} {on_rocksdb} {fill} --repeat 8"
        ),
    }
    if db_bench := shutil.which("db_bench"):
        program = f"runner: {{program: rocksdb-db_bench, path: {db_bench}}}"
        known["tune, db_bench"] = tune(f"engine: {{name: rocksdb}}\n{program}\n{BURST}", "db_bench")
        known["bench, db_bench"] = Command(
            f"bench --engine rocksdb --workload fillrandom {fill} --repeat 8"
            " --runner rocksdb-db_bench",
            runs="db_bench",
        )
    return known


@dataclass(frozen=True)
class Blow:
    """A signal to the command or to a run of it, `delay_s` after so many runs were begun."""

    number: signal.Signals
    at_run: bool
    after_runs: int
    delay_s: float
    stop_s: float = 0.0

    def __str__(self) -> str:
        stopped = f" for {self.stop_s:.1f} s" if self.stop_s else ""
        return f"{self.number.name}{stopped} to the {'run' if self.at_run else 'tuner'}"

    @property
    def ends(self) -> bool:
        """Whether the command ends of it."""
        return not self.at_run and self.number is not signal.SIGSTOP


SIGNALS = (signal.SIGKILL, signal.SIGTERM, signal.SIGHUP, signal.SIGINT, signal.SIGSTOP)


def blows(count: int, source: random.Random, longest_stop_s: float) -> list[Blow]:
    """`count` of them: each signal at the command and at a run in turn, in an order of chance."""
    kinds = [(number, at_run) for number in SIGNALS for at_run in (False, True)]
    order: list[tuple[signal.Signals, bool]] = []
    while len(order) < count:
        order += source.sample(kinds, len(kinds))
    found = []
    for number, at_run in order[:count]:
        early = not at_run and source.random() < 0.2
        longest_s = START_S if early else LONGEST_DELAY_S
        stop_s = math.exp(source.uniform(math.log(STOP_S), math.log(longest_stop_s)))
        found.append(
            Blow(
                number,
                at_run,
                after_runs=0 if early else source.randint(1, 4),
                delay_s=source.uniform(0.0, longest_s),
                stop_s=stop_s if number is signal.SIGSTOP else 0.0,
            )
        )
    return found


Row = dict[str, Any]
PLACE = ("role", "arm", "library", "workload", "round", "pair", "trial", "repeat", "rung", "seed")


@dataclass
class Session:
    """One command in a home of its own, and the account of what was done to it."""

    name: str
    command: Command
    folder: Path
    done: list[Blow] = field(default_factory=list)
    faults: list[str] = field(default_factory=list)
    rows: dict[int, Row] = field(default_factory=dict)
    compared: int = 0
    pids: list[int] = field(default_factory=list)
    _process: subprocess.Popen[str] | None = None
    _seen: set[psutil.Process] = field(default_factory=set)

    def __post_init__(self) -> None:
        for name in ("home", "tmp", "lsmtune"):
            (self.folder / name).mkdir(parents=True)
        for name, text in self.command.files.items():
            (self.home / name).write_text(text)

    @property
    def home(self) -> Path:
        """Where the command is started."""
        return self.folder / "home"

    @property
    def log(self) -> Path:
        """What the command said on standard error since its last start."""
        return self.folder / f"stderr-{len(self.pids)}"

    def fault(self, what: str) -> None:
        """Note that something is not as it should be."""
        self.faults.append(f"{self.name}: {what} ({self.log})")

    def perform(self, planned: Sequence[Blow]) -> None:
        """All of `planned`, and then until it is done."""
        try:
            for blow in planned:
                if not self._strike(blow):
                    break  # it was done before
            self._finish()
        finally:
            self._end()

    # --- one blow

    def _strike(self, blow: Blow) -> bool:
        """Whether it could be done before the command was done."""
        process = self._process or self._start()
        self._seen.clear()
        if not self._wait(lambda: len(self._seen) >= blow.after_runs):
            return False
        time.sleep(blow.delay_s)
        victim: psutil.Process | None = None
        with contextlib.suppress(psutil.NoSuchProcess):
            victim = psutil.Process(process.pid)
        if blow.at_run:
            if not self._wait(lambda: bool(self._runs())):
                return False
            living = self._runs()
            victim = living[-1] if living else None
        if victim is None:
            return self._process is not None
        try:
            victim.send_signal(blow.number)
        except psutil.NoSuchProcess:
            return True
        if blow.number is signal.SIGSTOP:
            time.sleep(blow.stop_s)
            with contextlib.suppress(psutil.NoSuchProcess):  # a run may be ended meanwhile
                victim.send_signal(signal.SIGCONT)
        status = process.wait(PATIENCE_S) if blow.ends else None
        if blow.number is signal.SIGKILL and status in DONE:
            return False  # it was done before the signal came
        self.done.append(blow)
        if status is not None:
            self._check_end(blow, status)
        return True

    def _wait(self, condition: Callable[[], bool]) -> bool:
        """Whether `condition` came to hold before the command ended."""
        process = self._process
        assert process is not None

        def over() -> bool:
            self._seen |= set(self._runs())
            return condition() or process.poll() is not None

        wait_until(over, f"{self.name}, {self.log}")
        return process.poll() is None

    def _start(self) -> subprocess.Popen[str]:
        self.pids.append(0)
        with self.log.open("w") as log:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "lsmtune.cli.main", *shlex.split(self.command.line)],
                cwd=self.home,
                env={
                    **os.environ,
                    "PYTHONPATH": str(Path(lsmtune.__file__).parent.parent),
                    "LSMTUNE_HOME": str(self.folder / "lsmtune"),
                    "TMPDIR": str(self.folder / "tmp"),
                    TAG: str(self.folder),
                },
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=log,
                text=True,
            )
        self.pids[-1] = self._process.pid
        return self._process

    def _runs(self) -> list[psutil.Process]:
        """The living runs of the command, the oldest first."""
        found = []
        assert self._process is not None
        with contextlib.suppress(psutil.Error):
            for child in psutil.Process(self._process.pid).children(recursive=True):
                with contextlib.suppress(psutil.Error):
                    if self.command.runs in " ".join(child.cmdline()):
                        found.append((child.create_time(), child.pid, child))
        return [child for _, _, child in sorted(found, key=lambda each: each[:2])]

    # --- what must hold

    def _check_end(self, blow: Blow, status: int) -> None:
        """After the command was ended."""
        self._process = None
        said = self.log.read_text()
        if blow.number is signal.SIGKILL:
            if status != -signal.SIGKILL:
                self.fault(f"{blow}: exit status {status}")
        elif status < 0 and not blow.after_runs and 'cli/main.py", line' not in said:
            said = ""  # Python's own answer, before a line of lsmtune was performed
        elif status not in (*DONE, 130):
            self.fault(f"{blow}: exit status {status}: {said.splitlines()[-1:]}")
        elif status == 130 and len(re.findall("^lsmtune: .*interrupted", said, re.MULTILINE)) != 1:
            self.fault(f"{blow}: not told in one line: {said.splitlines()[-2:]}")
        self._check_text(said)
        wait_until(lambda: not self._tagged(), f"left behind: {self._tagged()}")
        self._account()

    def _check_text(self, said: str) -> None:
        for word in ("Traceback", "unexpected error"):
            if word in said:
                self.fault(f"{word} on standard error")

    def _account(self) -> None:
        """No row may be lost, changed or doubled; no run be blamed."""
        now = self._stored()
        for number, row in self.rows.items():
            self.compared += 1
            if now.get(number) != row:
                self.fault(f"row {number} is lost or was changed")
        places = Counter(tuple(row[name] for name in PLACE) for row in now.values())
        for place, count in places.items():
            if count > 1:
                self.fault(f"{count} rows of {place}")
        for number in now.keys() - self.rows.keys():
            row = now[number]
            error = (json.loads(row["measurement"]).get("error") or {}).get("message", "")
            if row["outcome"] != "ok" and BY_SOMEBODY not in error:
                self.fault(f"row {number} of {row['role']} is {row['outcome']}: {error}")
        self.rows = now
        logs = (self.folder / f"stderr-{number}" for number in range(1, len(self.pids) + 1))
        said = sum(len(RUN_LINE.findall(log.read_text())) for log in logs)
        if self.command.store and said > len(now):
            self.fault(f"{said} runs were said to be done, {len(now)} are stored")

    def _stored(self) -> dict[int, Row]:
        path = self.home / self.command.store / "measurements.db"
        if not self.command.store or not path.is_file():
            return {}
        with contextlib.closing(sqlite3.connect(path)) as database:
            database.row_factory = sqlite3.Row
            known = "SELECT 1 FROM sqlite_master WHERE name = 'runs'"
            if not database.execute(known).fetchone():
                return {}
            return {row["id"]: dict(row) for row in database.execute("SELECT * FROM runs")}

    def _finish(self) -> None:
        """Let it end by itself, and look at all that it left."""
        while True:
            status = (self._process or self._start()).wait(4 * PATIENCE_S)
            self._process = None
            said = self.log.read_text()
            if status != 1 or not GIVEN_UP.search(said):
                break  # else it was struck where it tries no longer: the user looks why
            self._account()
        if status not in DONE:
            self.fault(f"ended with {status}: {said.splitlines()[-1:]}")
        self._check_text(said)
        self._account()
        roles = Counter(row["role"] for row in self.rows.values())
        if self.command.store and not (roles and roles >= Counter(self.command.rows)):
            self.fault(f"rows are missing: {dict(roles)}")
        for left in self._leftovers():
            self.fault(f"left behind: {left}")

    def _leftovers(self) -> Iterator[str]:
        yield from (f"{p}" for p in self._tagged())
        yield from (str(path) for path in (self.folder / "tmp").iterdir())
        inputs = {*self.command.files, self.command.store}
        yield from (str(path) for path in self.home.iterdir() if path.name not in inputs)
        for folder in (self.home, self.folder / "lsmtune"):
            for path in folder.rglob("*"):
                if path.parent.name == "runs" or path.suffix in (".part", ".tmp", ".building"):
                    yield str(path)
        for group in [*groups(Path("/"), "memory"), *groups(Path("/"))]:
            for pid in self.pids:
                yield from map(str, group.glob(f"{PREFIX}{pid}-*"))

    def _tagged(self) -> list[psutil.Process]:
        """Every living process that the command has ever started."""
        found = []
        for process in psutil.process_iter():
            with contextlib.suppress(psutil.Error):
                zombie = process.status() == psutil.STATUS_ZOMBIE
                if not zombie and process.environ().get(TAG) == str(self.folder):
                    found.append(process)
        return found

    def _end(self) -> None:
        """Whatever happened, nothing of it goes on."""
        for process in self._tagged():
            with contextlib.suppress(psutil.NoSuchProcess):
                process.kill()
        if self._process is not None:
            self._process.wait()


def perform(
    count: int,
    seed: int,
    chosen: Mapping[str, Command],
    folder: Path,
    *,
    each: int = 8,
    longest_stop_s: float = LONGEST_STOP_S,
) -> Iterator[Session]:
    """Sessions of `each` blows, the commands in turn, until `count` blows are done."""
    source, number = random.Random(seed), 0
    planned: list[Blow] = []
    while count > 0:
        if len(planned) < each:
            planned += blows(len(SIGNALS) * 2, source, longest_stop_s)
        name = list(chosen)[number % len(chosen)]
        session = Session(name, chosen[name], folder / f"{number:03d}")
        here = planned[: min(each, count)]
        session.perform(here)
        # What came too late is for the next.
        planned = planned[len(session.done) :]
        count, number = count - len(session.done), number + 1
        yield session


def table(sessions: Sequence[Session]) -> str:
    """Blows by command and signal, the rows compared and the faults, as Markdown."""
    heads = [f"{kind.name} {at}" for kind in SIGNALS for at in ("tuner", "run")]
    lines = [
        f"| command | {' | '.join(heads)} | rows compared | faults |",
        "|---" * (len(heads) + 3) + "|",
    ]
    for name in dict.fromkeys(session.name for session in sessions):
        of_it = [session for session in sessions if session.name == name]
        counts = Counter(
            f"{blow.number.name} {'run' if blow.at_run else 'tuner'}"
            for session in of_it
            for blow in session.done
        )
        cells = [str(counts[head] or "") for head in heads]
        cells += [str(sum(session.compared for session in of_it))]
        cells += [str(sum(len(session.faults) for session in of_it))]
        lines.append(f"| {name} | {' | '.join(cells)} |")
    return "\n".join(lines)


def main(count: int, seed: int, names: Sequence[str]) -> int:
    # A shell starts background jobs with SIGINT ignored, which the commands would inherit.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGHUP, signal.SIG_DFL)
    known = commands()
    folder = Path(tempfile.mkdtemp(prefix="kills-"))
    began_s = time.monotonic()
    sessions: list[Session] = []
    with contextlib.suppress(KeyboardInterrupt):  # then the table is of what was done
        for session in perform(count, seed, {name: known[name] for name in names or known}, folder):
            sessions.append(session)
            print(f"{session.name}: {', '.join(map(str, session.done))}", flush=True)
            for fault in session.faults:
                print(f"  FAULT {fault}", flush=True)
    print(f"\n{table(sessions)}\n\n{time.monotonic() - began_s:.0f} s, in {folder}")
    return 1 if any(session.faults for session in sessions) else 0


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]), int(sys.argv[2]), sys.argv[3:]))
