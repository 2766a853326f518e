"""All simulations of the statistics, in parts that processes share; a function of the seed."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from contextlib import contextmanager
from dataclasses import dataclass, field
from multiprocessing import active_children, get_context, parent_process

import numpy as np

from lsmtune.errors import LsmtuneError
from simulations.detectors import ANCHOR_CASES, NOISE_CASES, count_changes, count_held
from simulations.naive import best_single_run, student_after_every_pair
from simulations.playing import (
    CONFIDENCE,
    PAIRS_MAX,
    Look,
    Pairs,
    coins,
    draw_pairs,
    play,
    proof_rule,
    useful_looks,
)
from simulations.scenarios import SCENARIOS, Scenario

# Small enough that a bar moves, large enough that a process pays; part of the derivation of seeds.
_STUDIES_PER_PART = 100
# Of each part so many studies are looked at after every pair, to hold `useful_looks` against.
_LOOKED_AT_ALWAYS = 3


@dataclass
class Endings:
    """How the studies of one scenario ended: by proof, and by what naive scripts do."""

    proof: list[Look] = field(default_factory=list)
    student: list[Look] = field(default_factory=list)
    best_run: list[Look] = field(default_factory=list)

    def add(self, other: Endings) -> None:
        """Append the studies of `other`."""
        self.proof += other.proof
        self.student += other.student
        self.best_run += other.best_run


@dataclass
class Simulated:
    """Endings by scenario and counts by case, each of `studies` studies."""

    studies: int = 0
    endings: dict[str, Endings] = field(default_factory=dict)
    counts: dict[str, int] = field(default_factory=dict)

    def add(self, other: Simulated) -> None:
        """Append what another part found."""
        self.studies += other.studies
        for name, endings in other.endings.items():
            self.endings.setdefault(name, Endings()).add(endings)
        for name, count in other.counts.items():
            self.counts[name] = self.counts.get(name, 0) + count


def simulate(
    studies: int,
    seed: int,
    on_progress: Callable[[int, int], None] | None = None,
    *,
    processes: int = 0,
) -> Simulated:
    """`studies` >= 1 studies of every scenario and case; the same whatever `processes` is.

    0 processes stands for as many as there are cores to run on, 1 for this one. `on_progress` is
    told how many of how many studies of each scenario are done. Raises LsmtuneError when a study
    that was looked at after every pair ended otherwise than one whose useless looks were skipped.
    """
    firsts = range(0, studies, _STUDIES_PER_PART)
    parts = [(seed, first, min(_STUDIES_PER_PART, studies - first)) for first in firsts]
    workers = min(processes or len(os.sched_getaffinity(0)), len(parts))
    found: dict[int, Simulated] = {}
    done = 0
    with _mapped(parts, workers) as results:
        for first, part in results:
            found[first] = part
            done += part.studies
            if on_progress is not None:
                on_progress(done, studies)
    whole = Simulated()
    for first in firsts:
        whole.add(found[first])
    return whole


def simulate_part(seed: int, first: int, studies: int) -> Simulated:
    """The studies number `first` to `first + studies` of every scenario and case."""
    went_first = coins([seed + first + index for index in range(studies)])
    found = Simulated(studies)
    for number, scenario in enumerate(SCENARIOS):
        random = _random(seed, number, first)
        found.endings[scenario.name] = _endings(scenario, draw_pairs(scenario, random, went_first))
    for number, case in enumerate(ANCHOR_CASES, len(SCENARIOS)):
        found.counts[case.name] = count_changes(case, _random(seed, number, first), studies)
    for number, kind in enumerate(NOISE_CASES, len(SCENARIOS) + len(ANCHOR_CASES)):
        found.counts[kind.name] = count_held(kind, _random(seed, number, first), studies)
    return found


def _endings(scenario: Scenario, pairs: Pairs) -> Endings:
    useful = useful_looks(pairs.log_ratios, CONFIDENCE, scenario.smallest_effect)
    rule = proof_rule(CONFIDENCE, scenario.smallest_effect)
    columns = list(zip(pairs.baseline.tolist(), pairs.candidate.tolist(), strict=True))
    proof = [
        play(baseline, candidate, rule, (np.flatnonzero(looks) + 1).tolist())
        for (baseline, candidate), looks in zip(columns, useful, strict=True)
    ]
    for (baseline, candidate), skipped in zip(columns[:_LOOKED_AT_ALWAYS], proof, strict=False):
        check_skipping(scenario.name, play(baseline, candidate, rule, looks_at_all()), skipped)
    return Endings(proof, student_after_every_pair(pairs, CONFIDENCE), best_single_run(pairs))


def looks_at_all() -> range:
    """A look after every pair."""
    return range(1, PAIRS_MAX + 1)


def check_skipping(name: str, every: Look, skipped: Look) -> None:
    """Raises LsmtuneError when skipping looks changed how a study ended."""
    if every.pairs != skipped.pairs or every.outcome is not skipped.outcome:
        raise LsmtuneError(
            f"simulation: {name}: a proof decides where its evidence should be too little: "
            f"{every.outcome.value} after {every.pairs} pairs; without useless looks "
            f"{skipped.outcome.value} after {skipped.pairs}"
        )


def _random(seed: int, case: int, first: int) -> np.random.Generator:
    return np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(case, first)))


@contextmanager
def _mapped(
    parts: Sequence[tuple[int, int, int]], workers: int
) -> Iterator[Iterator[tuple[int, Simulated]]]:
    """The first study of each part and what it found, as they are done."""
    if workers == 1:
        yield ((part[1], simulate_part(*part)) for part in parts)
        return
    # Not forked, because the terminal's display has a thread.
    others = active_children()
    executor = ProcessPoolExecutor(workers, get_context("spawn"), _begin_worker)
    try:
        futures = {executor.submit(simulate_part, *part): part[1] for part in parts}
        yield ((futures[future], future.result()) for future in as_completed(futures))
    except BaseException:
        # A part takes seconds, and nobody wants it any more.
        for worker in active_children():
            if worker not in others:
                worker.terminate()
        raise
    finally:
        executor.shutdown(cancel_futures=True)


def _begin_worker() -> None:
    """Leave interrupts to the parent, and end with it, also when it was killed."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_end_with_parent, daemon=True).start()


def _end_with_parent() -> None:
    parent = parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)  # the main thread waits for parts that nobody will send
