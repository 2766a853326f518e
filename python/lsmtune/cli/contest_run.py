"""A contest from the texts of the command line to its leaderboard: entries, rules, rounds."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

import typer

from lsmtune.cli.choices import choose_workload, resolve_named
from lsmtune.cli.interrupts import interrupted, stop_on_interrupt
from lsmtune.cli.live import bench_display, stderr_console
from lsmtune.cli.tune_progress import RunProgress
from lsmtune.cli.verify import proof_folder
from lsmtune.driver.conversation import find_driver
from lsmtune.driver.library_facts import chosen_engine
from lsmtune.driver.messages import Message
from lsmtune.driver.native import NativeRunner
from lsmtune.engines.library import ENGINE_NAMES
from lsmtune.engines.safety import doubts
from lsmtune.engines.workload_options import with_page_cache
from lsmtune.errors import InputError
from lsmtune.experiment.contest import (
    FILE,
    Entry,
    Rules,
    all_named,
    built_in_rules,
    disqualified_entries,
    load_rules,
)
from lsmtune.experiment.observer import Observer
from lsmtune.experiment.rounds import perform
from lsmtune.experiment.schedule import Arm, Cell, Slot
from lsmtune.experiment.standings import Leaderboard, leaderboard_of_runs
from lsmtune.experiment.store import StoredMeasurement
from lsmtune.model.config import EngineIdentity
from lsmtune.model.request import Limits
from lsmtune.model.workload import Workload
from lsmtune.units import format_duration
from lsmtune.workloads.choice import WORKLOAD_FLAG, Choice

TEAMS_MIN = 2


@dataclass(frozen=True)
class ContestPlan:
    """What the command line asks for."""

    texts: tuple[str, ...]
    engine: str | None
    library: Path | None
    workload: str
    workload_set: list[str] | None
    rounds: int
    rules: Path | None
    metric: str
    confidence: float
    seed: int
    directory: Path | None
    limits: Limits


def held(plan: ContestPlan) -> Leaderboard:
    """Check the entries, run those that meet the rules, and rank them.

    Raises InputError for what the user can mend, and typer.Exit when interrupted.
    """
    engine_name, entries = entries_of(plan.texts, plan.engine)
    choice = choose_workload(plan.workload, plan.workload_set, None, None, engine_name)
    entries = [_under(choice, entry, engine_name) for entry in entries]
    rules = load_rules(plan.rules, engine_name) if plan.rules else built_in_rules(engine_name)
    driver = find_driver()
    engine, warnings = chosen_engine(engine_name, plan.library, driver)
    disqualified = disqualified_entries(entries, rules, engine)
    workload = choice.workload
    warnings = (*warnings, *_warnings(plan, workload, entries, rules, engine))
    for warning in warnings:
        typer.echo(f"lsmtune: warning: {warning}", err=True)
    out = {each.team for each in disqualified}
    cells = [
        Cell(entry.name, engine, entry.config, workload)
        for entry in entries
        if entry.name not in out
    ]
    runs = _rounds(plan, cells, driver) if cells else ()
    return leaderboard_of_runs(
        runs,
        entries,
        disqualified,
        rules,
        engine,
        workload,
        plan.metric,
        warnings=warnings,
        confidence=plan.confidence,
    )


def entries_of(texts: Sequence[str], engine: str | None) -> tuple[str, list[Entry]]:
    """The engine, and what each team handed in.

    Raises InputError for fewer than two teams, a text that names no configuration, and entries of
    different engines.
    """
    given = all_named(texts)
    if len(given) < TEAMS_MIN:
        why = f"a contest has {TEAMS_MIN} teams or more"
        raise InputError(FILE, found=" ".join(texts) or "nothing", why=why)
    resolved = {each.name: resolve_named(each.text, engine, FILE) for each in given}
    name = engine or _one_engine({n: r.engine.name for n, r in resolved.items() if r.engine})
    return name, [Entry(each.name, each.text, resolved[each.name].config) for each in given]


def _under(choice: Choice, entry: Entry, engine: str) -> Entry:
    """`entry` with the options that the workload stands for; its label is the team's name."""
    config = choice.config(entry.config, engine, entry.source)
    config = with_page_cache(config, engine, choice.workload.page_cache, WORKLOAD_FLAG)
    return replace(entry, config=replace(config, label=entry.name))


def _one_engine(of: dict[str, str]) -> str:
    """The engine that all teams' files are for."""
    names = sorted(set(of.values()))
    if len(names) == 1:
        return names[0]
    if not names:
        why = "is missing: no entry says which engine it is for"
        raise InputError("--engine", why=why, allowed=", ".join(ENGINE_NAMES))
    found = ", ".join(f"{team} ({engine})" for team, engine in of.items())
    raise InputError(FILE, found=found, why="entries of one engine make a contest")


def _warnings(
    plan: ContestPlan,
    workload: Workload,
    entries: Sequence[Entry],
    rules: Rules,
    engine: EngineIdentity,
) -> Iterator[str]:
    """Rules that say nothing here, and what may be wrong with an entry."""
    if rules.elsewhere:
        yield f"no rule for {engine.name}: {', '.join(rules.elsewhere)} ({rules.source})"
    for entry in entries:
        found = doubts(engine, entry.config, workload.durability, plan.limits, entry.source)
        for reason in found.reasons():
            yield f"{entry.name}: {reason}"


def _rounds(
    plan: ContestPlan, cells: Sequence[Cell], driver: Path
) -> tuple[StoredMeasurement, ...]:
    with (
        proof_folder(plan.directory) as folder,
        _shown(cells, plan.rounds) as observer,
        stop_on_interrupt(observer.note) as stop,
    ):
        runs = perform(
            cells,
            plan.rounds,
            folder,
            NativeRunner(driver),
            plan.limits,
            plan.seed,
            observer,
            stop,
            source=FILE,
        )
        stopped = stop.is_set() and len(runs) < len(cells) * plan.rounds
    if stopped:
        raise interrupted(plan.directory)
    return runs


class ContestObserver(Observer):
    """What the contest is doing now: a live table on a terminal, else a line for each run."""

    def __init__(self, workload: Workload, rounds: int, prints_lines: bool) -> None:
        self.progress = RunProgress(workload)
        self.title = ""
        self._rounds = rounds
        self._prints_lines = prints_lines
        self._done, self._of = 0, 0

    def rounds_started(self, done: int, of: int) -> None:
        """How many runs are stored already."""
        self._done, self._of = done, of

    def run_started(self, slot: Slot, arm: Arm, workload: Workload) -> None:
        """A run begins."""
        self.progress.restart(workload)
        done = f"{self._done} of {self._of} runs done"
        self.title = f"round {slot.round + 1} of {self._rounds}: {arm.label} ({done})"

    def run_message(self, message: Message) -> None:
        """The driver said something."""
        self.progress.message(message)

    def run_finished(self, run: StoredMeasurement) -> None:
        """A run ended; a line for it, always where it failed."""
        self._done += 1
        error = run.measurement.error
        outcome = run.measurement.outcome.value.replace("_", " ")
        why = f": {error.message}" if error is not None else ""
        took = format_duration(round(run.wall_s, 1))
        which = f"run {self._done} of {self._of}: round {run.round + 1}, {run.arm}"
        line = f"{which}: {outcome}{why} ({took})"
        if self._prints_lines or why:
            self.note(line)

    def note(self, text: str) -> None:
        """Say `text` beside the results."""
        print(text, file=sys.stderr, flush=True)


@contextmanager
def _shown(cells: Sequence[Cell], rounds: int) -> Iterator[ContestObserver]:
    """The observer of the rounds, shown while the context lasts."""
    is_terminal = stderr_console().is_terminal
    observer = ContestObserver(cells[0].workload, rounds, prints_lines=not is_terminal)
    with bench_display(observer.progress, lambda: observer.title):
        yield observer
