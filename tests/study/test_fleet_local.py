from __future__ import annotations

import json
import threading
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import replace
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from fleet_parts import LocalFleet, LocalHost, fleet_of, hosts_of, local_host, together, tuned_on
from optuna.trial import TrialState
from simulated_hosts import SimulatedRunner
from study_parts import Recorder, make_spec, stored, trials_of, tuned

from lsmtune.errors import InputError
from lsmtune.experiment.folder import StudyFolder
from lsmtune.experiment.store import MeasurementStore, Role, StoredMeasurement
from lsmtune.fleet.head import Leases, Member, Step
from lsmtune.fleet.host import (
    Answer,
    Host,
    HostFacts,
    HostLostError,
    Work,
    Worker,
    differences,
    host_facts,
    refusal,
)
from lsmtune.fleet.proof import fleet_verdict
from lsmtune.fleet.tuning import FleetTuning
from lsmtune.model.config import EngineIdentity
from lsmtune.model.verdict import Verdict, VerdictOutcome
from lsmtune.study.build import parse_spec
from lsmtune.study.observer import TuneResult
from lsmtune.study.session import FLEET_ELAPSED
from lsmtune.study.start import open_study
from lsmtune.study.trials import TrialEnd
from patience import PATIENCE_S


def runs_of(log: Path) -> list[tuple[float, float]]:
    """When each run of a host began and ended."""
    lines: list[dict[str, Any]] = [json.loads(line) for line in log.read_text().splitlines()]
    lines = [line for line in lines if line["what"] != "lasts"]
    return [(a["unix_s"], b["unix_s"]) for a, b in zip(lines[::2], lines[1::2], strict=True)]


def test_a_study_on_three_hosts_shares_its_trials_and_each_host_has_one_run_at_a_time(
    tmp_path: Path,
) -> None:
    observer = Recorder()
    spec = make_spec(tmp_path, budget="{trials: 12}", noise="{calibration: 3, anchors: 2}")
    result, _ = tuned_on(spec, tmp_path / "s", together(hosts_of(tmp_path, 3)), observer)
    assert result.counts == {"ok": 12}
    rows = stored(tmp_path / "s")
    first = [row for row in rows if row.role is Role.TRIAL and row.repeat == 0]
    assert sorted(row.trial or 0 for row in first) == list(range(12))
    assert len({row.measurement.host for row in first}) == 3
    for role in (Role.BASELINE, Role.CALIBRATION, Role.PROOF_CANDIDATE):
        assert {row.measurement.host for row in rows if row.role is role} == {"a", "b", "c"}
    for host in range(3):
        runs = runs_of(tmp_path / f"{host}.jsonl")
        assert all(one[1] <= other[0] for one, other in pairwise(runs))
    began = sorted(run for host in range(3) for run in runs_of(tmp_path / f"{host}.jsonl"))
    assert any(other[0] < one[1] for one, other in pairwise(began))  # hosts work at once
    assert result.verdict is not None
    assert result.verdict.outcome is VerdictOutcome.BETTER
    assert "3 hosts" in " ".join(result.verdict.notes)
    with StudyFolder.open(tmp_path / "s") as folder:
        # By the clock, as in `show` and the report: it was what all hosts took together.
        assert result.spent_s == folder.measurements.fact(FLEET_ELAPSED)


def test_a_slow_host_makes_its_trials_no_worse(tmp_path: Path) -> None:
    spec = make_spec(tmp_path, budget="{trials: 16}")
    fleet = together(hosts_of(tmp_path, 2, lambda n: (1.0, 0.5)[n]))
    result, _ = tuned_on(spec, tmp_path / "s", fleet)
    assert {row.measurement.host for row in trials_of(tmp_path / "s")} == {"a", "b"}
    alone = tuned(spec, tmp_path / "alone")
    assert result.best_value == pytest.approx(alone.best_value, rel=0.1)
    assert result.verdict is not None
    assert result.verdict.ratio == pytest.approx(1.5, abs=0.1)


class Dying(LocalHost):
    """Is killed, or silent, while it measures its run number `at`."""

    def __init__(self, host: LocalHost, at: int, *, silent: bool) -> None:
        super().__init__(host.name, host._worker)
        self._left, self._silent = at, silent
        self.asked: list[Future[Answer]] = []

    def submit(self, token: int, work: Work) -> Any:
        self._left -= 1
        if not self._left:
            if self._silent:
                self.silent.set()
            else:
                self.alive = False
        self.asked.append(super().submit(token, work))
        return self.asked[-1]


@pytest.mark.parametrize("silent", [False, True])
def test_a_host_that_is_lost_costs_no_trial_and_doubles_none(tmp_path: Path, silent: bool) -> None:
    observer = Recorder()
    lost = Dying(local_host(tmp_path, "b", run_s=0.6 if silent else 0.02), 4, silent=silent)
    fleet = LocalFleet([local_host(tmp_path, "a", run_s=0.05), lost])
    spec = make_spec(tmp_path, budget="{trials: 10}")
    result, _ = tuned_on(spec, tmp_path / "s", fleet, observer)
    assert result.counts == {"ok": 10}
    numbers = Counter(row.trial for row in trials_of(tmp_path / "s"))
    assert set(numbers.values()) == {1}
    warnings = observer.warnings
    assert any("b is given up" in str(text) for text in warnings)
    with StudyFolder.open(tmp_path / "s") as folder:
        states = Counter(trial.state for trial in folder.optuna_study().trials)
    assert states[TrialState.COMPLETE] == 10
    assert states[TrialState.RUNNING] == 0


def test_a_host_that_dies_before_it_said_what_it_is_lets_its_slot_go(tmp_path: Path) -> None:
    """The fleet took its slot for one in use, and the host was left out until the tuner ended."""

    class Dead(LocalHost):
        is_given_up = False

        def facts(self, engine: EngineIdentity) -> HostFacts:  # noqa: ARG002
            raise HostLostError("the actor died")

        def give_up(self) -> None:
            self.is_given_up = True

    dead = Dead("b", local_host(tmp_path, "b")._worker)
    observer, fleet = Recorder(), LocalFleet([local_host(tmp_path, "a"), dead])
    result, _ = tuned_on(make_spec(tmp_path, budget="{trials: 2}"), tmp_path / "s", fleet, observer)
    assert result.counts == {"ok": 2}
    assert "b: the actor died" in observer.warnings
    assert dead.is_given_up


def test_a_search_of_a_small_space_tries_again_what_its_last_host_lost(tmp_path: Path) -> None:
    """The other host had asked for more, heard that nothing was left, and the search had ended."""
    lost = Dying(local_host(tmp_path, "b", run_s=0.6), 2, silent=True)
    fleet = LocalFleet([local_host(tmp_path, "a", run_s=0.1), lost])
    text = make_spec(tmp_path, budget="{trials: 50}").text
    text = text.replace("high: 16MiB", "high: 3MiB").replace("high: 16,", "high: 5,")
    spec = parse_spec(text, tmp_path / "small.yaml")
    result, _ = tuned_on(spec, tmp_path / "s", fleet)
    alone = tuned(spec, tmp_path / "alone")
    assert result.counts == alone.counts == {"ok": 8}
    tried = [row.config.options for row in trials_of(tmp_path / "s")]
    assert all(tried.count(options) == 1 for options in tried)


def test_what_a_silent_host_says_later_is_discarded_and_counted(tmp_path: Path) -> None:
    silent = Dying(local_host(tmp_path, "b", run_s=0.6), 3, silent=True)
    other, came = local_host(tmp_path, "a", run_s=0.1), threading.Event()
    # The study goes on until that has come, and is not over before the host is silent.
    other.on_trial = lambda count: count < 6 or came.wait(PATIENCE_S)

    class Heard(Recorder):
        def warning(self, text: str) -> None:
            super().warning(text)
            if "given up" in text:
                # After the head was told.
                silent.asked[-1].add_done_callback(lambda _: came.set())
                silent.silent.clear()

    fleet = LocalFleet([other, silent])
    spec = make_spec(tmp_path, budget="{trials: 12}")
    result, parts = tuned_on(spec, tmp_path / "s", fleet, Heard())
    assert result.counts == {"ok": 12}
    assert parts.discarded == 1
    rows = trials_of(tmp_path / "s")
    assert sum(row.measurement.host == "b" for row in rows) <= 2


def test_what_a_silent_host_says_after_the_last_step_is_counted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    silent = Dying(local_host(tmp_path, "b", run_s=0.6), 3, silent=True)

    def late(*of: Any) -> Verdict:
        came = threading.Event()
        silent.asked[-1].add_done_callback(lambda _: came.set())  # after the head was told
        silent.silent.clear()
        assert came.wait(PATIENCE_S)
        return fleet_verdict(*of)

    monkeypatch.setattr("lsmtune.fleet.tuning.fleet_verdict", late)
    fleet = LocalFleet([local_host(tmp_path, "a", run_s=0.1), silent])
    _, parts = tuned_on(make_spec(tmp_path, budget="{trials: 8}"), tmp_path / "s", fleet)
    assert parts.discarded == 1


def test_a_head_that_stops_goes_on_from_its_folder_with_other_hosts(tmp_path: Path) -> None:
    class Fifth(Recorder):
        def trial_finished(self, number: int, end: TrialEnd, *, best: bool) -> None:
            super().trial_finished(number, end, best=best)
            if len(self.of("trial_finished")) == 5:
                self.stop.set()

    spec = make_spec(tmp_path, budget="{trials: 10}")
    result, _ = tuned_on(spec, tmp_path / "s", together(hosts_of(tmp_path, 2)), Fifth())
    assert result.interrupted
    hosts = [local_host(tmp_path, name, run_s=0.02) for name in "bc"]
    result, _ = tuned_on(spec, tmp_path / "s", together(hosts))
    assert result.counts == {"ok": 10}
    numbers = Counter(row.trial for row in trials_of(tmp_path / "s"))
    assert set(numbers.values()) == {1}
    assert {row.measurement.host for row in trials_of(tmp_path / "s")} == {"a", "b", "c"}


def test_a_head_that_is_killed_in_the_proof_does_not_forget_how_long_that_took(
    tmp_path: Path,
) -> None:
    """The time was noted when a host ended its step: all pairs of it are one."""
    slept_s = 0.0

    class Killing(LocalFleet):
        def hosts(self) -> Sequence[Host]:
            nonlocal slept_s
            if slept_s:
                raise KeyboardInterrupt
            if any(row.role is Role.PROOF_CANDIDATE for row in stored(tmp_path / "s")):
                slept_s = 1000.0
            return super().hosts()

    fleet = Killing([local_host(tmp_path, "a", run_s=0.05)])
    spec = make_spec(tmp_path, budget="{trials: 12}")
    with pytest.raises(KeyboardInterrupt):
        tuned_on(spec, tmp_path / "s", fleet, clock=lambda: time.monotonic() + slept_s)
    with StudyFolder.open(tmp_path / "s") as folder:
        assert folder.measurements.fact(FLEET_ELAPSED) > 1000.0


def test_a_host_that_joins_late_has_a_baseline_before_its_trials(tmp_path: Path) -> None:
    first, late = (local_host(tmp_path, name, run_s=0.02) for name in ("first", "late"))
    fleet, had_one = LocalFleet([first]), threading.Event()
    late.on_trial = lambda count: had_one.set() if count == 2 else None
    first.on_trial = lambda count: count < 6 or had_one.wait(PATIENCE_S)

    class Joins(Recorder):
        def trial_finished(self, number: int, end: TrialEnd, *, best: bool) -> None:
            super().trial_finished(number, end, best=best)
            if number == 1:
                fleet.add(late)

    spec = make_spec(tmp_path, budget="{trials: 14}", noise="{calibration: 2, anchors: 5}")
    tuned_on(spec, tmp_path / "s", fleet, Joins())
    roles = [r.role for r in stored(tmp_path / "s") if r.measurement.host == "late"]
    assert roles[:3] == [Role.BASELINE, Role.CALIBRATION, Role.CALIBRATION]
    assert Role.TRIAL in roles


def test_a_fleet_keeps_no_time_for_tests_that_it_does_not_make(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Up to a tenth of the time was kept for the crash test and the power test of the best."""
    monkeypatch.setattr("lsmtune.study.session.survival_s", lambda *_: 1e9)
    spec = make_spec(tmp_path, budget="{time: 1h, trials: 4}")
    result, _ = tuned_on(spec, tmp_path / "s", fleet_of(tmp_path, 1))
    assert result.counts == {"ok": 4}


def test_a_search_that_its_time_ended_does_not_go_on_when_the_command_is_repeated(
    tmp_path: Path,
) -> None:
    """On a fleet it did where the proof had left enough of the time that was kept for it."""
    slept_s = [0.0]

    class Sleeps(Recorder):
        def trial_finished(self, number: int, end: TrialEnd, *, best: bool) -> None:
            super().trial_finished(number, end, best=best)
            slept_s[0] += 1800.0

    def clock() -> float:
        return time.monotonic() + slept_s[0]

    spec = make_spec(tmp_path, budget="{trials: 40, time: 1h}")
    ended, _ = tuned_on(spec, tmp_path / "s", fleet_of(tmp_path, 1), Sleeps(), clock=clock)
    assert ended.trials == 2
    with open_study(tmp_path / "s", spec) as folder:
        folder.measurements.set_fact(FLEET_ELAPSED, 60.0)
    repeated, _ = tuned_on(spec, tmp_path / "s", fleet_of(tmp_path, 1))
    assert repeated.trials == 2
    # All hosts are taken in before the pairs of each are counted: each of two had all of them.
    more = replace(spec, proof=replace(spec.proof, pairs=12))
    tuned_on(more, tmp_path / "s", fleet_of(tmp_path, 2))
    rows = [row for row in stored(tmp_path / "s") if row.role is Role.PROOF_CANDIDATE]
    assert Counter(row.measurement.host for row in rows) == {"a": 6, "b": 6}
    longer = replace(spec, budget=replace(spec.budget, time_s=7200.0, trials=4))
    assert tuned_on(longer, tmp_path / "s", fleet_of(tmp_path, 1))[0].trials == 4


def test_a_study_of_one_machine_does_not_go_on_in_a_fleet(tmp_path: Path) -> None:
    spec = make_spec(tmp_path, budget="{trials: 2}")
    tuned(spec, tmp_path / "s")
    with pytest.raises(InputError, match="was begun on one machine"):
        tuned_on(spec, tmp_path / "s", fleet_of(tmp_path, 1))


def test_a_study_that_waited_for_a_host_in_vain_goes_on_on_one_machine(tmp_path: Path) -> None:
    """It was refused as the fleet's, though nothing was measured there."""
    spec, stop = make_spec(tmp_path, budget="{trials: 2}"), threading.Event()
    stop.set()
    assert tuned_on(spec, tmp_path / "s", LocalFleet([]), stop=stop)[0].interrupted
    with open_study(tmp_path / "s", spec) as opened:
        opened.measurements.set_fact(FLEET_ELAPSED, 60.0)
    assert tuned(spec, tmp_path / "s").counts == {"ok": 2}
    with StudyFolder.open(tmp_path / "s") as folder:
        assert folder.measurements.fact(FLEET_ELAPSED) is None


def test_a_study_of_a_fleet_does_not_go_on_on_one_machine(tmp_path: Path) -> None:
    spec = make_spec(tmp_path, budget="{trials: 2}")
    tuned_on(spec, tmp_path / "s", fleet_of(tmp_path, 1))
    before = len(stored(tmp_path / "s"))
    with pytest.raises(InputError, match=r"was begun on a fleet.*--fleet"):
        tuned(spec, tmp_path / "s")
    assert len(stored(tmp_path / "s")) == before


def test_a_slow_host_that_goes_on_alone_makes_the_gain_no_larger(tmp_path: Path) -> None:
    observer = Recorder()
    observer.stop_at = ("trial_finished", 2)
    spec = make_spec(tmp_path, budget="{trials: 6}")
    begun, _ = tuned_on(spec, tmp_path / "s", fleet_of(tmp_path, 1), observer)
    slow = LocalFleet([local_host(tmp_path, "slow", effect=0.5)])
    result, _ = tuned_on(spec, tmp_path / "s", slow)
    assert result.baseline_value == begun.baseline_value


def test_a_host_that_returns_to_a_study_with_as_many_as_it_may_have_is_taken(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("lsmtune.fleet.tuning.HOSTS_MAX", 1)
    observer = Recorder()
    observer.stop_at = ("trial_finished", 2)
    spec = make_spec(tmp_path, budget="{trials: 4}")
    tuned_on(spec, tmp_path / "s", fleet_of(tmp_path, 1), observer)
    again = Recorder()
    again.stop_at = ("warning", "a: a study has at most 1 hosts")  # it would wait for a host
    result, _ = tuned_on(spec, tmp_path / "s", fleet_of(tmp_path, 1), again)
    assert not result.interrupted
    assert result.counts == {"ok": 4}


def test_a_stale_token_is_refused_by_the_host_and_by_the_head(tmp_path: Path) -> None:
    host = local_host(tmp_path, "a")
    host.submit(7, Work(())).exception(PATIENCE_S)
    with pytest.raises(HostLostError, match="lease 6 ended"):
        host._worker.perform(6, Work(()))
    host.close()
    facts: dict[str, object] = {}

    class Facts:
        fact, set_fact = facts.get, facts.__setitem__

    leases = Leases(Facts())  # type: ignore[arg-type]
    first = leases.grant()
    leases.end(first)
    assert not leases.holds(first)
    assert leases.grant() > first
    leases.discard()
    again = Leases(Facts())  # type: ignore[arg-type]
    assert again.grant() > first + 1
    assert again.discarded == 1  # a tuner that was killed takes no count along


def test_other_software_is_refused_and_other_hardware_is_told() -> None:
    one = HostFacts({"driver": "a" * 64, "library": "b" * 64}, {"kernel": "6.1", "memory": "8"})
    other = HostFacts({"driver": "c" * 64}, {"kernel": "6.1", "memory": "16"})
    assert refusal(one, one) == differences(one, one) == ""
    assert refusal(other, one) == (
        f"is refused: driver is {'c' * 12} and not {'a' * 12}, library is not there and not "
        f"{'b' * 12}"
    )
    assert differences(other, one) == (
        "differs, and is compared with its own baseline: memory 16 (elsewhere 8)"
    )


def test_a_host_whose_library_has_another_snappy_is_refused(tmp_path: Path) -> None:
    """The driver takes what lies beside the library: without it a host is half as fast."""
    library = tmp_path / "librocksdb.so"
    library.write_bytes(b"library")
    engine = EngineIdentity("rocksdb", "10.10.1", str(library))
    alone = host_facts(engine, SimulatedRunner(lambda _: 1.0), tmp_path)
    (tmp_path / "librocksdb.snappy.so").write_bytes(b"snappy")
    beside = host_facts(engine, SimulatedRunner(lambda _: 1.0), tmp_path)
    assert "Snappy is its own and not " in refusal(alone, beside)
    assert refusal(beside, beside) == ""


def on_speed(
    path: Path,
    names: str,
    speed: Callable[[int], float],
    kind: type[LocalHost] = LocalHost,
    **study: Any,
) -> TuneResult:
    """A study with repeats on hosts whose speed follows from the MiB of a write buffer."""

    def of(options: Mapping[str, object]) -> float:
        return speed(int(str(options.get("write_buffer_size", 2 << 20))) >> 20)

    runner = partial(SimulatedRunner, of)
    hosts = [kind(name, Worker(path / name, runner(run_s=0.1))) for name in names]
    begun = [threading.Event() for _ in hosts]

    def begin(host: int, count: int) -> None:
        """No second trial before all hosts have begun one: the search might end without them."""
        begun[host].set()
        assert count == 1 or all(each.wait(PATIENCE_S) for each in begun)

    for number, host in enumerate(hosts if kind is LocalHost else []):
        host.on_trial = partial(begin, number)
    spec = make_spec(path, noise="{calibration: 0, anchors: 0, repeats: 3}", **study)
    return tuned_on(spec, path / "s", LocalFleet(hosts), like=runner())[0]


def hosts_of_best(path: Path, result: TuneResult) -> set[str]:
    best = [row for row in trials_of(path / "s") if row.trial == result.best_trial]
    return {row.measurement.host for row in best}


def test_a_trial_that_is_clearly_the_best_goes_to_a_second_host_before_the_proof(
    tmp_path: Path,
) -> None:
    result = on_speed(tmp_path, "abc", lambda mib: 1000.0 * 2.0**mib, budget="{trials: 8}")
    assert len(hosts_of_best(tmp_path, result)) > 1
    assert result.counts == {"ok": 8}


def test_a_search_does_not_end_while_a_repeat_waits_for_another_free_host(tmp_path: Path) -> None:
    """The host that had the last best trial was asked first, and the search had ended."""
    result = on_speed(tmp_path, "ab", lambda mib: 1000.0 * 2.0**mib, budget="{trials: 4}", seed=3)
    assert hosts_of_best(tmp_path, result) == {"a", "b"}


def test_a_search_does_not_end_while_the_host_that_lacks_the_best_is_at_an_anchor(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The other host had nothing to do, and the best was proved without a run on a second one."""
    at_anchor, idle = threading.Event(), threading.Event()

    class Waits(LocalHost):
        def submit(self, token: int, work: Work) -> Future[Answer]:
            if self.name == "b" and at_anchor.is_set():
                assert idle.wait(PATIENCE_S)
            elif self.name == "a" and work.requests[0].trial:
                assert at_anchor.wait(PATIENCE_S)
            return super().submit(token, work)

    def due(_tuning: FleetTuning, host: str = "") -> bool:
        is_due = host == "b" and not at_anchor.is_set()
        if is_due:
            at_anchor.set()
        return is_due

    def watched(tuning: FleetTuning, member: Member) -> Step | None:
        step = assigned(tuning, member)
        if step is None and member.name == "a":
            idle.set()
        return step

    assigned = FleetTuning._assigned
    monkeypatch.setattr(FleetTuning, "_assigned", watched)
    monkeypatch.setattr(FleetTuning, "_anchor_due", due)
    result = on_speed(
        tmp_path, "ab", lambda mib: 1000.0 * 2.0**mib, Waits, budget="{trials: 4}", seed=3
    )
    assert hosts_of_best(tmp_path, result) == {"a", "b"}


def test_a_baseline_that_nothing_beats_is_not_run_again_as_the_best(tmp_path: Path) -> None:
    result = on_speed(tmp_path, "ab", lambda mib: 1000.0 / 2.0**mib, budget="{trials: 4}")
    assert result.best_trial == 0
    assert len(hosts_of_best(tmp_path, result)) == 1


def test_a_host_that_joins_costs_no_reading_of_what_others_measured(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    read: Counter[int] = Counter()
    whole: Counter[str] = Counter()
    of, every = MeasurementStore.of, MeasurementStore.all

    def counted(store: MeasurementStore, role: Role, after: int = 0) -> list[StoredMeasurement]:
        rows = of(store, role, after)
        read.update(row.id for row in rows if role is Role.CALIBRATION)
        return rows

    def counted_all(store: MeasurementStore) -> list[StoredMeasurement]:
        whole[store._path.parent.name] += 1
        return every(store)

    spec = make_spec(tmp_path, noise="{calibration: 3, anchors: 0, repeats: 1}")
    with monkeypatch.context() as patched:
        patched.setattr(MeasurementStore, "all", counted_all)
        tuned_on(spec, tmp_path / "one", fleet_of(tmp_path, 1))
        patched.setattr(MeasurementStore, "of", counted)
        tuned_on(spec, tmp_path / "s", fleet_of(tmp_path, 4))
    assert whole["s"] == whole["one"] > 0
    assert {row.id for row in stored(tmp_path / "s") if row.role is Role.CALIBRATION} == set(read)
    assert set(read.values()) == {1}
