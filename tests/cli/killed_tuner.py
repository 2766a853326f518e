"""Starts the real `lsmtune tune`, kills it at random moments, and keeps account of what it said.

By hand, on any study: `python killed_tuner.py STUDY KILLS SEED`.
"""

from __future__ import annotations

import os
import random
import re
import signal
import subprocess
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path

import psutil

import lsmtune
from lsmtune.driver.conversation import DRIVER_NAME
from lsmtune.experiment.folder import StudyFolder, default_folder
from patience import PATIENCE_S, wait_until, wait_until_over

# The environment reaches every driver that the tuner starts, and no other driver has this in it.
TAG = "LSMTUNE_KILL_TEST"
RUN_LINE = re.compile(
    r"^(baseline|anchor \d+|trial \d+(?: run \d+)?|pair \d+ (?:baseline|candidate)): "
)
START_S = 1.5  # a kill "just after the start" comes within this: imports included
LONGEST_DELAY_S = 0.35

Rows = dict[tuple[str, int | None, int | None, int], int]


@dataclass
class KilledTuner:
    """One study that is tuned and killed; the account of it grows from kill to kill."""

    study: Path
    environment: dict[str, str]
    said: set[str] = field(default_factory=set)
    rows: Rows = field(default_factory=dict)
    stored_at_kill: list[int] = field(default_factory=list)
    driver_gone_s: list[float] = field(default_factory=list)
    leftovers: set[Path] = field(default_factory=set)
    leftovers_seen: int = 0
    statuses: list[int] = field(default_factory=list)

    @property
    def folder(self) -> Path:
        return default_folder(self.study)

    @property
    def log(self) -> Path:
        return self.study.with_suffix(".stderr")

    def start(self) -> subprocess.Popen[str]:
        with self.log.open("w") as log:
            return subprocess.Popen(
                [sys.executable, "-m", "lsmtune.cli.main", "tune", str(self.study)],
                env=self.environment,
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
            )

    def runs_said(self) -> list[str]:
        """The runs that the tuner said are done, since its start."""
        matches = map(RUN_LINE.match, self.log.read_text().splitlines())
        return [match.group(1) for match in matches if match]

    def kill(self, wanted_rows: int | None, delay_s: float) -> None:
        """Start it, and kill it `delay_s` after that many runs are stored, or after its start."""
        with self.start() as tuner:
            wanted = 0 if wanted_rows is None else max(0, wanted_rows - len(self.rows))
            wait_until(lambda: self._said_so_many(wanted, tuner))
            time.sleep(delay_s)
            tuner.send_signal(signal.SIGKILL)
            self.statuses.append(tuner.wait())
        self._wait_for_drivers()
        self._account()

    def _said_so_many(self, wanted: int, tuner: subprocess.Popen[str]) -> bool:
        said = len(self.runs_said())
        assert said >= wanted or tuner.poll() is None, f"ended: {self.log.read_text()}"
        return said >= wanted

    def finish(self) -> str:
        """Start it once more, and let it end; its standard output."""
        with self.start() as tuner:
            out, _ = tuner.communicate(timeout=2 * PATIENCE_S)
        self.statuses.append(tuner.returncode)
        self._account()
        return out

    def _wait_for_drivers(self) -> None:
        started = time.monotonic()
        wait_until_over(self._processes())
        self.driver_gone_s.append(time.monotonic() - started)

    def _processes(self) -> list[psutil.Process]:
        drivers = (p for p in psutil.process_iter(["name"]) if p.info["name"] == DRIVER_NAME)
        return [driver for driver in drivers if _tag(driver) == self.environment[TAG]]

    def _account(self) -> None:
        """Nothing that was stored may have vanished, and nothing that was said may be missing."""
        said = self.runs_said()
        if said:
            # It came past its start, which removes what the kills before it left.
            still_there = {path for path in self.leftovers if path.exists()}
            assert not still_there, f"leftovers: {still_there}"
            self.leftovers.clear()
        before, self.rows = self.rows, stored_rows(self.folder)
        lost = {place: row for place, row in before.items() if self.rows.get(place) != row}
        assert not lost, f"lost or stored anew: {lost}"
        assert not self.said & set(said), f"run twice: {self.said & set(said)}"
        self.said |= set(said)
        unstored = self.said - {_spoken(*place) for place in self.rows}
        assert not unstored, f"said to be done and not stored: {unstored}"
        self.stored_at_kill.append(len(self.rows))
        runs = self.folder / "runs"
        left = set(runs.iterdir()) if runs.is_dir() else set()
        self.leftovers_seen += len(left - self.leftovers)
        self.leftovers |= left


def stored_rows(folder: Path) -> Rows:
    """Row id by role, trial, pair and repeat; fails when a place has two rows."""
    if not (folder / "measurements.db").is_file():
        return {}
    with StudyFolder.open(folder) as opened:
        stored = opened.measurements.all() if _has_tables(opened) else []
    places = [(row.role.value, row.trial, row.pair, row.repeat) for row in stored]
    assert len(set(places)) == len(places), "a run was counted twice"
    return {place: row.id for place, row in zip(places, stored, strict=True)}


def moments(kills: int, runs: int, seed: int) -> list[tuple[int | None, float]]:
    """For each kill, the runs to wait for (None: none, it just started) and the delay in seconds.

    One in five comes just after the start; the others are spread over the study's `runs`, which
    end a few runs before its end, so that none comes too late.
    """
    source = random.Random(seed)
    early = kills // 5
    late = sorted(source.sample(range(runs - 3), kills - early))
    plan: list[tuple[int | None, float]] = [
        (wanted, source.uniform(0.0, LONGEST_DELAY_S)) for wanted in late
    ]
    for _ in range(early):
        plan.insert(source.randint(0, len(plan)), (None, source.uniform(0.0, START_S)))
    return plan


def tagged_environment(tag: str, **more: str) -> dict[str, str]:
    """This process's environment, with the tag, and the package under test on the path."""
    path = str(Path(lsmtune.__file__).parent.parent)
    return {**os.environ, "PYTHONPATH": path, TAG: tag, **more}


def _has_tables(folder: StudyFolder) -> bool:
    # A kill between the creation of the file and its first transaction leaves it empty.
    return (folder.path / "measurements.db").stat().st_size > 0


def _spoken(role: str, trial: int | None, pair: int | None, repeat: int) -> str:
    if trial is not None:
        return f"trial {trial}" + (f" run {repeat + 1}" if repeat else "")
    if role == "anchor":
        return f"anchor {repeat}"
    return role if pair is None else f"pair {pair + 1} {role.removeprefix('proof_')}"


def _tag(process: psutil.Process) -> str | None:
    try:
        if process.status() == psutil.STATUS_ZOMBIE:
            return None
        return process.environ().get(TAG)
    except psutil.Error:
        return None


def main(study: Path, kills: int, seed: int, runs: int) -> None:
    tuner = KilledTuner(study, tagged_environment(f"by hand {os.getpid()}"))
    started = time.monotonic()
    for wanted, delay_s in moments(kills, runs, seed):
        tuner.kill(wanted, delay_s)
    print(tuner.finish())
    print(f"stored at each kill and at the end: {tuner.stored_at_kill}")
    print(f"driver gone after, longest: {max(tuner.driver_gone_s):.3f} s")
    print(f"run folders that kills left, all removed by the next start: {tuner.leftovers_seen}")
    print(f"statuses: {tuner.statuses}; {time.monotonic() - started:.1f} s")


if __name__ == "__main__":
    main(Path(sys.argv[1]), *map(int, sys.argv[2:5]))
