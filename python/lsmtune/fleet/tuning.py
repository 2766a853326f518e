"""A study on several hosts: each has one step at a time, and what follows is decided by the head.

What is run next follows from what is stored, as on one machine. A free host gets a trial that is to
be run again, an anchor that is due on it, or a new trial; the sampler knows of the trials that run.
A host that is given up loses its step: a trial is put back and measured again on another one. What
is not in the folder is not needed: a head that died goes on from there.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

from lsmtune.errors import InputError, InterruptedByUserError, LsmtuneError
from lsmtune.experiment.measurer import Measurer
from lsmtune.experiment.schedule import Arm
from lsmtune.experiment.store import Role, StoredMeasurement
from lsmtune.fleet.head import (
    HOSTS_MAX,
    Ended,
    Head,
    HostFolder,
    HostObserver,
    HostRunner,
    HostStore,
    Member,
    Step,
    rows_by_host,
)
from lsmtune.fleet.host import Fleet, Host, HostFacts, HostLostError, differences, refusal
from lsmtune.fleet.proof import NOT_TESTED, fleet_verdict, host_pairs, pairs_by_host, pairs_each
from lsmtune.model.codec import encode
from lsmtune.proof.survival import Survived
from lsmtune.search.sampler import SpaceExhaustedError
from lsmtune.study.budget import SearchBudget
from lsmtune.study.feasible import Feasibility
from lsmtune.study.judging import JudgedTrial, Promotion
from lsmtune.study.loop import Begun, Promoting, Tuning
from lsmtune.study.observer import TuneResult
from lsmtune.study.session import FLEET_ELAPSED, FLEET_HOSTS
from lsmtune.study.size import lengths
from lsmtune.study.start import is_baseline, stored_baseline

# The stored fact: how many pairs each host has, by finalist and `proof.pairs`.
_PAIRS_EACH = "fleet_pairs_each"
_TICK_S = 0.5


@dataclass
class FleetParts:
    """The hosts, and what the head's own machine has of the software that all must have.

    `kept` are those that a Tuning leaves to the next one, of runs of another size. `discarded`
    counts the answers that came too late, over all sessions of the study. It is looked for new
    hosts every `look_s` seconds.
    """

    fleet: Fleet
    reference: HostFacts
    kept: list[Host] = field(default_factory=list)
    discarded: int = 0
    look_s: float = 5.0


class FleetTuning(Tuning):
    """A Tuning whose runs are performed by the hosts of `parts`. For the thread that runs it."""

    def __init__(self, parts: FleetParts, *args: Any) -> None:
        """`args` are those of a Tuning."""
        super().__init__(*args)
        self._parts = parts
        self._head = Head(self._folder)
        self._members: list[Member] = []
        self._rows: dict[str, list[StoredMeasurement]] = {}  # by host, for its HostStore
        self._clock = self._measurer.clock
        elapsed_s = self._folder.measurements.fact(FLEET_ELAPSED)
        self._before_s, self._began_s = float(elapsed_s or 0.0), self._clock()
        self._looked_s = -math.inf
        self._running: dict[int, Member] = {}  # trials
        self._reason: str | None = None
        self._is_waiting = False

    def _refuse_other_kind(self) -> None:
        store = self._folder.measurements
        if store.fact(FLEET_HOSTS) is None:
            if store.all():
                why = "was begun on one machine, and cannot go on in a fleet"
                raise InputError(
                    str(self._folder.path), why=why, allowed="another folder (--dir DIR)"
                )
            store.set_fact(FLEET_HOSTS, {})

    def run(self) -> TuneResult:
        """See `Tuning`. What still runs when it is left counts no more."""
        try:
            return super().run()
        finally:
            for member in self._members:
                self._head.release(member)
            self._head.drain()  # what came too late is counted
            self._parts.kept = [member.host for member in self._members]
            self._parts.discarded = self._head.leases.discarded

    # --- Time is that of the wall: hosts work at once.

    @property
    def _spent_s(self) -> float:
        return self._before_s + self._clock() - self._began_s

    def _excuse(self, seconds: float) -> None:
        self._began_s += seconds

    @property
    def _budget(self) -> SearchBudget:
        # No test of what the best survives comes after the proof.
        other_s, at_once = 2 * self._startup_s, max(1, len(self._members))
        return replace(super()._budget, other_s=other_s, at_once=at_once)

    # --- The hosts.

    def _look(self) -> None:
        """Now and then, take in the hosts that came, and note the time: a step may be a proof."""
        now_s = self._clock()
        if self._members and now_s - self._looked_s < self._parts.look_s:
            return
        self._looked_s = now_s
        self._folder.measurements.set_fact(FLEET_ELAPSED, self._spent_s)
        kept, self._parts.kept = self._parts.kept, []
        for host in [*kept, *self._parts.fleet.hosts()]:
            try:
                self._join(host)
            except HostLostError as error:
                host.give_up()
                self._observer.warning(f"{host.name}: {error}")
        if not self._members and not self._is_waiting:
            self._observer.warning("no host has a free slot: waiting for one")
        self._is_waiting = not self._members

    def _join(self, host: Host) -> None:
        store = self._folder.measurements
        known: dict[str, Any] = store.fact(FLEET_HOSTS) or {}
        if any(member.name == host.name for member in self._members):
            raise HostLostError("another host has this name: give it one of its own (--name NAME)")
        facts, reference = host.facts(self._engine), self._parts.reference
        if why := refusal(facts, reference):
            raise HostLostError(why)
        if host.name not in known:
            if len(known) >= HOSTS_MAX:
                raise HostLostError(f"a study has at most {HOSTS_MAX} hosts")
            known[host.name] = {"index": len(known), **encode(facts)}
            store.set_fact(FLEET_HOSTS, known)
        first = next(iter(known.values()))
        if other := differences(facts, HostFacts(first["software"], first["hardware"])):
            self._observer.warning(f"{host.name} {other}")
        self._members.append(self._member(host, int(known[host.name]["index"])))

    def _member(self, host: Host, index: int) -> Member:
        """A host with all that measures on it."""
        member = Member(host, index, self._measurer)

        def warn(text: str) -> None:
            line = f"{host.name}: {text}"
            self._head.call(member.token, lambda: self._observer.warning(line))

        cache = self._measurer.databases
        databases_bytes = 0 if cache is None else self._spec.databases.size_bytes
        rows = self._rows.setdefault(host.name, [])
        store = HostStore(self._head, self._folder.measurements, member, rows)
        member.measurer = replace(
            self._measurer,
            folder=HostFolder(self._folder.path, store),
            runner=HostRunner(self._head, member, databases_bytes, warn),
            observer=HostObserver(warn),
            # Each host loads and keeps its own.
            databases=None if cache is None else lambda request, _cancel: request,
            lengths=None,  # until its baseline is known
        )
        return member

    def _give_up(self, member: Member, why: str) -> None:
        self._members.remove(member)
        self._running = {n: m for n, m in self._running.items() if m is not member}
        member.host.give_up()
        self._observer.warning(f"{member.name} is given up: {why}")

    # --- Steps: given out, and ended.

    def _drive(self, assign: Callable[[Member], Step | None]) -> bool:
        """Give steps to free hosts until there is none and nothing runs; False: interrupted."""
        while True:
            self._live.keep_up()  # nothing else is said while all hosts are busy
            if not self._stop.is_set():
                self._look()
                for member in [m for m in self._members if m.token is None]:
                    step = assign(member)
                    if step is not None:
                        self._head.start(member, step)
            busy = any(member.token is not None for member in self._members)
            if not busy and (self._members or self._stop.is_set()):
                return not self._stop.is_set()
            ended = self._head.attend(_TICK_S)
            if ended is not None:
                self._take(ended)

    def _take(self, ended: Ended) -> None:
        """A host has nothing to do any more."""
        member, step, error = ended.member, ended.step, ended.error
        self._folder.measurements.set_fact(FLEET_ELAPSED, self._spent_s)
        if error is None:
            step.ended(ended.result)
        elif isinstance(error, HostLostError) or (
            not step.fatal and isinstance(error, LsmtuneError)
        ):
            self._give_up(member, str(error))
            step.lost()
        else:
            raise error

    # --- The baseline, on every host that joins.

    def _resume(self) -> Sequence[StoredMeasurement]:
        rows = super()._resume()
        self._rows = rows_by_host(rows)
        return rows

    def _measure_baseline(self) -> bool:
        """On the first host; the others follow while it searches already."""

        def assign(member: Member) -> Step | None:
            waiting = not any(m.ready or m.token is not None for m in self._members)
            return self._admission(member) if waiting else None

        while not any(m.ready for m in self._members):
            if not self._drive(assign):
                return False
        return not self._stop.is_set()

    def _admission(self, member: Member) -> Step:
        """The baseline on a host, and its calibration against itself."""
        first = not any(m.ready for m in self._members)

        def work(measurer: Measurer) -> Sequence[StoredMeasurement] | None:
            def settle(baseline: Sequence[StoredMeasurement]) -> None:
                if first:
                    self._head.call(member.token, lambda: self._settle_size(baseline))

            searched = bool(measurer.folder.measurements.of(Role.TRIAL))
            return self._baseline_on(measurer, settle, searched=searched)

        def ended(baseline: Sequence[StoredMeasurement] | None) -> None:
            if baseline is None:
                return
            member.ready = True
            member.measurer.lengths = self._measurer.lengths = lengths(self._spec, self._size)
            self._feasibility = Feasibility(self._spec, self._remember_baseline())

        return Step(work, ended, fatal=first)

    def _use_baseline(self, baseline: Sequence[StoredMeasurement]) -> None:
        """Show trials against the host that began the study, which drift brings values to."""
        rows, spec = self._folder.measurements.of(Role.BASELINE), self._spec
        for known in rows_by_host(rows).values():
            own = stored_baseline(known, spec.goal, len(spec.workloads))
            if len(own) == len(spec.workloads):
                baseline = own
                break
        super()._use_baseline(baseline)

    # --- The search.

    def _search(self) -> str | None:
        self._reason = self._used_up() or None  # hosts are taken in all the same
        while self._drive(self._assigned):
            if self._reason is not None:
                return self._reason
        return None

    def _assigned(self, member: Member) -> Step | None:
        """What a free host does next; None where there is nothing, for the `_reason`."""
        if not member.ready:
            return self._admission(member)
        # A pause begins when nothing runs: else the runs under way would be charged for it.
        if self._live.pause_asked and any(m.token is not None for m in self._members):
            return None
        self._attend()
        if self._stop.is_set():
            return None
        if self._reason is None:
            self._reason = self._time_ends() or None
        if self._reason is not None:
            return None
        if (repeated := self._repeat_for(member)) is not None:
            return self._of_trial(member, repeated, self._new_repeat(repeated))
        if self._anchor_due(member.name):
            return Step(*self._new_anchor())
        new = sum(number not in self._observations.trials for number in self._running)
        try:
            end = self._trials_end(len(self._observations.trials) + new)
            if not end:
                number, begun = self._new_trial(
                    member.name, lambda report: self._head.call(member.token, report)
                )
                return self._of_trial(member, number, begun)
        except SpaceExhaustedError as error:
            end = str(error)
        except InterruptedByUserError:
            self._stop.set()
            return None
        except InputError as error:
            raise self._placed(error) from None
        # What runs now may be lost, or ask for a repeat; and one may be for another host.
        ready = (m for m in self._members if m.ready)
        waits = any(m.token is not None or self._repeat_for(m) is not None for m in ready)
        self._reason = None if waits else end
        return None

    def _repeat_for(self, member: Member) -> int | None:
        """The trial to run again, on this host: one that has not had it, where there is one.

        Where none is to be repeated, the best is, until two hosts had it: what one host alone is
        good at is no finalist for all. The baseline, the best until it is beaten, was on all.
        """
        judgement, runs_max = self._observations.judgement, self._spec.noise.repeats_max
        number = judgement.next_repeat(runs_max)
        of_best = number is None and runs_max > 1 and not self._spec.goal.several
        number = judgement.best if of_best else number
        if number is None or number in self._running:
            return None
        trial = self._observations.trials[number]
        had = {each.host for each in trial.rounds}
        if of_best and (len(had) > 1 or is_baseline(self._spec, trial.config)):
            return None
        others = any(m.ready and m.name not in had for m in self._members)
        return None if member.name in had and (of_best or others) else number

    def _of_trial(self, member: Member, number: int, begun: Begun) -> Step:
        """What was `begun` of a trial, which no other host has meanwhile."""
        run, end = begun
        self._running[number] = member

        def ended(result: Any) -> None:
            self._running.pop(number)
            end(result)

        return Step(run, ended, partial(end, None))

    # --- The proof: on all hosts at once, each with pairs of its own.

    def _promoted(self, begin: Callable[[str], Promoting]) -> Promotion | None:
        """See `Tuning`: on one host that is ready."""
        results: list[Promotion | None] = []
        begun: list[Member] = []

        def assign(member: Member) -> Step | None:
            if not member.ready:
                return self._admission(member)
            if results or any(m.token is not None for m in begun if m in self._members):
                return None
            begun.append(member)
            return Step(begin(member.name), results.append)

        while not results:
            if not self._drive(assign):
                return None
        return results[0]

    def _pairs_each(self, finalist: int) -> int:
        """How many pairs each host has: fixed once, whichever hosts a proof goes on with."""
        store, proof = self._folder.measurements, f"{finalist} {self._spec.proof.pairs}"
        known: dict[str, int] = store.fact(_PAIRS_EACH) or {}
        if proof not in known:
            known[proof] = pairs_each(self._spec, sum(m.ready for m in self._members))
            store.set_fact(_PAIRS_EACH, known)
        return known[proof]

    def _proved(
        self, best: JudgedTrial, measurer: Measurer, notes: Sequence[str], left_s: float
    ) -> Survived | None:
        spec, finalist = self._spec, Arm(self._engine, best.config)
        begun: set[str] = set()  # hosts; one that is lost begins once more when it comes back
        each = self._pairs_each(best.number)
        # For a host that comes in the midst of the proof as well.
        until_s = self._clock() + left_s
        self._observer.proof_started(each * len(self._members))

        def assign(member: Member) -> Step | None:
            if not member.ready:  # one that was lost, and came back
                return self._admission(member)
            if member.name in begun:
                return None
            begun.add(member.name)

            def work(measurer: Measurer) -> None:
                sized = self._at_proof(measurer, best.number, left_s)
                host_pairs(spec, sized, self._baseline, finalist, member.index, each, until_s)

            return Step(work, lambda _: None, lambda: begun.discard(member.name))

        if not self._drive(assign):
            return None
        rows = self._folder.measurements.all()
        pairs = pairs_by_host(rows, self._baseline, finalist, len(spec.workloads))
        circumstances = self._feasibility.circumstances(finalist.config.options)
        verdict = fleet_verdict(spec, pairs, measurer, circumstances)
        return Survived(replace(verdict, notes=(*verdict.notes, *notes, NOT_TESTED)))
