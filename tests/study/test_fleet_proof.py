from __future__ import annotations

import math
import sys
import time
from collections import Counter
from collections.abc import Sequence
from concurrent.futures import Future
from dataclasses import replace
from pathlib import Path
from statistics import NormalDist
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from fake_runner import ENGINE, MIB, FakeRunner, phase
from fleet_parts import LocalFleet, LocalHost, fleet_of, local_host, speed, tuned_on
from simulated_hosts import SimulatedRunner
from size_parts import Buffering, mixed
from study_parts import Recorder, make_spec, stored

from lsmtune.driver.messages import Hello, Message
from lsmtune.experiment.schedule import Arm, Slot
from lsmtune.experiment.store import Role, StoredMeasurement
from lsmtune.fleet.head import HostRunner
from lsmtune.fleet.host import Answer, HostLostError, Work, Worker
from lsmtune.fleet.proof import fleet_verdict, host_pairs, is_unstable
from lsmtune.model.config import Config
from lsmtune.model.measurement import Measurement, Outcome
from lsmtune.model.request import Limits, RunRequest
from lsmtune.model.verdict import VerdictOutcome
from lsmtune.proof.pairs import Pair
from lsmtune.stats.intervals import random_effects
from lsmtune.study.feasible import Feasibility
from lsmtune.study.promotion import promote, promotion_of, stored_beliefs


def host_with(path: Path, name: str, gain: float) -> LocalHost:
    """A host on which whatever is not the baseline is `gain` times as fast."""

    def own(options: object) -> float:
        return speed({}) * (gain if options else 1.0)

    runner = SimulatedRunner(own, noise=0.01, run_s=0.02)
    return LocalHost(name, Worker(path / name, runner))


@pytest.mark.parametrize(
    ("gains", "outcome"),
    [
        ([1.40, 1.41, 1.40, 1.39], VerdictOutcome.BETTER),
        ([1.60, 1.50, 1.10, 0.80], VerdictOutcome.NOT_PROVEN),
        ([1.60, 1.35, 1.50, 1.30], VerdictOutcome.NOT_PROVEN),
    ],
)
def test_an_effect_that_differs_from_host_to_host_is_unstable_and_not_recommended(
    tmp_path: Path, gains: list[float], outcome: VerdictOutcome
) -> None:
    fleet = LocalFleet([host_with(tmp_path, f"h{n}", gain) for n, gain in enumerate(gains)])
    spec = make_spec(tmp_path, budget="{trials: 4}", default="unit: bytes")
    result, _ = tuned_on(spec, tmp_path / "s", fleet)
    assert result.verdict is not None
    assert result.verdict.outcome is outcome
    unstable = "unstable" in result.verdict.why
    assert unstable == (gains[0] > 1.5 and min(gains) > 1.0)
    rows = [row for row in stored(tmp_path / "s") if row.role is Role.PROOF_CANDIDATE]
    assert len(rows) == 4 * 4
    # The pairs of two hosts have no seed in common.
    seeds = {name: {r.seed for r in rows if r.measurement.host == name} for name in ("h0", "h1")}
    assert not seeds["h0"] & seeds["h1"]


def one_pair(number: int, host: str, candidate: Outcome = Outcome.OK, gain: float = 1.5) -> Pair:
    """A pair on `host` in which the candidate is `gain` times as fast, unless it ends otherwise."""

    def run(role: Role, outcome: Outcome, value: float) -> list[StoredMeasurement]:
        phases = (phase(value),) if outcome is Outcome.OK else ()
        observed = Measurement(
            *(outcome, ENGINE, {}, "fillrandom", number, 0.0, 1.0), phases=phases, host=host
        )
        return [StoredMeasurement(number, role, None, number, Config({}), observed)]

    noise = 1.0 + 0.01 * (number % 3)
    return Pair(
        run(Role.PROOF_BASELINE, Outcome.OK, 100.0),
        run(Role.PROOF_CANDIDATE, candidate, 100.0 * gain * noise),
    )


@pytest.mark.parametrize(
    ("end", "outcome"),
    [
        (Outcome.OK, VerdictOutcome.BETTER),
        (Outcome.CRASHED, VerdictOutcome.NOT_PROVEN),
        (Outcome.DATA_LOSS, VerdictOutcome.WORSE),
    ],
)
def test_a_candidate_that_fails_on_one_host_alone_is_not_better(
    tmp_path: Path, end: Outcome, outcome: VerdictOutcome
) -> None:
    spec = make_spec(tmp_path)
    pairs = {host: [one_pair(n, host) for n in range(4)] for host in "ab"}
    pairs["c"] = [one_pair(0, "c", end)]
    measurer = SimpleNamespace(workloads=[w.workload for w in spec.workloads], scale=1.0)
    circumstances = Feasibility(spec).circumstances({})
    verdict = fleet_verdict(spec, pairs, measurer, circumstances)  # type: ignore[arg-type]
    assert verdict.outcome is outcome
    assert (f"ended {end.value} on c" in verdict.why) == (end is not Outcome.OK)


def test_the_only_pair_of_a_second_host_is_left_out(tmp_path: Path) -> None:
    """It counted as one more pair of the first host."""
    spec = make_spec(tmp_path)
    pairs = {"a": [one_pair(n, "a") for n in range(6)], "b": [one_pair(6, "b", gain=9.0)]}
    measurer = SimpleNamespace(workloads=[w.workload for w in spec.workloads], scale=1.0)
    circumstances = Feasibility(spec).circumstances({})
    verdict = fleet_verdict(spec, pairs, measurer, circumstances)  # type: ignore[arg-type]
    assert verdict.pairs == 6
    assert verdict.ratio == pytest.approx(1.5, rel=0.02)
    assert "measured on one host: nothing is known of others" in verdict.notes


@pytest.mark.parametrize(
    ("methods", "common"), [(("whole", "whole"), "whole"), (("slices", "whole"), "")]
)
def test_hosts_whose_pairs_are_by_two_methods_have_none_in_common(
    tmp_path: Path, methods: tuple[str, str], common: str
) -> None:
    """All pairs were said to be by the method of the first one."""
    spec = make_spec(tmp_path)

    def by(method: str, pair: Pair) -> Pair:
        def side(runs: Sequence[StoredMeasurement]) -> list[StoredMeasurement]:
            return [replace(r, measurement=replace(r.measurement, paired_by=method)) for r in runs]

        return Pair(side(pair.baseline), side(pair.candidate))

    pairs = {
        host: [by(method, one_pair(n, host)) for n in range(4)]
        for host, method in zip("ab", methods, strict=True)
    }
    measurer = SimpleNamespace(workloads=[w.workload for w in spec.workloads], scale=1.0)
    circumstances = Feasibility(spec).circumstances({})
    verdict = fleet_verdict(spec, pairs, measurer, circumstances)  # type: ignore[arg-type]
    assert verdict.method == common


def test_two_hosts_that_differ_have_no_bounds_at_a_high_confidence(tmp_path: Path) -> None:
    """They lie beyond the range of floats, which was an error at the end of the proof."""
    spec = make_spec(tmp_path)
    spec = replace(spec, proof=replace(spec.proof, confidence=0.9999))
    pairs = {
        host: [one_pair(n, host, gain=gain) for n in range(4)]
        for host, gain in (("a", 1.5), ("b", 2.5))
    }
    measurer = SimpleNamespace(workloads=[w.workload for w in spec.workloads], scale=1.0)
    circumstances = Feasibility(spec).circumstances({})
    verdict = fleet_verdict(spec, pairs, measurer, circumstances)  # type: ignore[arg-type]
    assert verdict.outcome is VerdictOutcome.NOT_PROVEN
    assert verdict.ratio is not None
    assert (verdict.ratio_low, verdict.ratio_high) == (None, None)


def test_a_promotion_of_another_host_is_left_and_not_mixed_with_that_of_this_one(
    tmp_path: Path,
) -> None:
    spec = make_spec(tmp_path)
    arms = {None: Config({}), 1: Config({"write_buffer_size": 4 * MIB})}
    rows: list[StoredMeasurement] = []

    def promoted(repeat: int, host: str, trial: int | None, value: float) -> StoredMeasurement:
        observed = Measurement(
            *(Outcome.OK, ENGINE, {}, "fillrandom", 1, 0.0, 1.0), phases=(phase(value),), host=host
        )
        number = len(rows) + 1
        return StoredMeasurement(
            number, Role.PROMOTION, trial, None, arms[trial], observed, repeat=repeat
        )

    rows += [promoted(0, "a", None, 100.0)]
    rows += [promoted(0, "a", 1, 150.0)]

    def measured(
        _arm: Arm, _seed: int, slot: Slot, *, stored: list[StoredMeasurement], **_: object
    ) -> list[StoredMeasurement]:
        if not stored:
            rows.append(promoted(slot.repeat, host, slot.trial, 80.0 if slot.trial else 50.0))
        return stored or rows[-1:]

    facts: dict[str, object] = {}
    own = SimpleNamespace(
        all=lambda: [row for row in rows if row.measurement.host == host],
        set_fact=facts.__setitem__,
        fact=facts.get,
    )
    measurer = SimpleNamespace(
        folder=SimpleNamespace(measurements=own),
        limits=spec.limits,
        clock=lambda: 0.0,
        length_of=lambda _: 1.0,
        measure_workloads=measured,
    )
    best_first = [SimpleNamespace(number=1, config=arms[1])]
    baseline = Arm(ENGINE, arms[None])
    for host, known, values in (("a", 2, {1: 150.0}), ("b", 4, {1: 80.0})):
        found = promote(
            *(spec, baseline, best_first, measurer),  # type: ignore[arg-type]
            rows=list(rows),
            believed={n: NormalDist(0.1 * n, 0.2) for n in (1, 2)},
            host=host,
            run_s=1.0,
            deadline_s=math.inf,
        )
        assert len(rows) == known
        assert found is not None
        # The report, and the next session, read the rows of both.
        assert found == promotion_of(rows, spec, stored_beliefs(own))  # type: ignore[arg-type]
        assert found.believed == {1: NormalDist(0.1, 0.2)}
        assert found.values == values
    assert [row.repeat for row in rows] == [0, 0, 1, 1]


def test_a_fleet_proves_in_runs_as_long_as_those_of_its_finalist(tmp_path: Path) -> None:
    runner = Buffering()
    fleet = LocalFleet([LocalHost("a", Worker(tmp_path / "a", runner))])
    result, _ = tuned_on(mixed(tmp_path), tmp_path / "s", fleet, like=runner)
    of_trials = {
        request.trial: request.workload.phases[-1].operations
        for request in runner.requests
        if request.trial is not None
    }
    assert (of_trials[result.best_trial] or 0) > 6000
    proved = {request.workload.phases[-1].operations for request in runner.requests[-8:]}
    assert proved == {of_trials[result.best_trial]}


def test_a_cancel_that_comes_late_does_not_end_the_next_run(tmp_path: Path) -> None:
    worker = Worker(tmp_path / "w", SimulatedRunner(speed, run_s=0.01))
    request = RunRequest(
        *(ENGINE, Config({}), make_spec(tmp_path).workload, 1, Limits(), tmp_path / "none")
    )

    def outcome(number: int) -> Outcome:
        (found,) = worker.perform(1, Work((request,), number=number)).measurements
        return found.outcome

    assert outcome(1) is Outcome.OK
    worker.cancel(1, 1)
    assert outcome(2) is Outcome.OK
    worker.cancel(1, 3)  # before it begins
    assert outcome(3) is Outcome.CANCELLED
    worker.close()


def test_what_a_run_said_at_its_end_is_told(tmp_path: Path) -> None:
    """FakeRunner says hello, and its run is over long before the first poll."""
    worker = Worker(tmp_path / "w", FakeRunner())
    request = RunRequest(
        *(ENGINE, Config({}), make_spec(tmp_path).workload, 1, Limits(), tmp_path / "none")
    )
    member = SimpleNamespace(token=1, host=LocalHost("a", worker))
    runner = HostRunner(None, member, 0, print)  # type: ignore[arg-type]
    heard: list[Message] = []
    runner.run(request, heard.append)
    assert heard == [Hello(1, "fake")]
    worker.close()


def test_a_fleet_of_one_host_proves_as_one_machine_does(tmp_path: Path) -> None:
    spec = make_spec(tmp_path, budget="{trials: 8}", pairs=8)
    result, _ = tuned_on(spec, tmp_path / "s", fleet_of(tmp_path, 1))
    assert result.verdict is not None
    assert result.verdict.outcome is VerdictOutcome.BETTER
    assert "measured on one host" in result.verdict.notes[0]


def test_a_host_that_is_lost_in_the_proof_and_comes_back_runs_the_rest_of_its_pairs(
    tmp_path: Path,
) -> None:
    """It never became ready again: after a short cut of the network the verdict was final."""

    class Lost(LocalHost):
        works = 0

        def submit(self, token: int, work: Work) -> Future[Answer]:
            self.works += 1
            self.alive = self.works < 8  # the baseline, four trials, and one whole pair
            return super().submit(token, work)

    fleet = LocalFleet([Lost("a", local_host(tmp_path, "a", run_s=0.02)._worker)])

    class Returns(Recorder):
        def warning(self, text: str) -> None:
            super().warning(text)
            if "a is given up" in text:
                fleet.add(LocalHost("a", local_host(tmp_path / "again", "a", run_s=0.02)._worker))

    spec = make_spec(tmp_path, budget="{trials: 4}", pairs=8)
    result, _ = tuned_on(spec, tmp_path / "s", fleet, Returns())
    assert result.verdict is not None
    assert result.verdict.pairs == 8
    assert result.verdict.outcome is VerdictOutcome.BETTER


def test_a_proof_that_goes_on_has_as_many_pairs_on_each_host_as_it_began_with(
    tmp_path: Path,
) -> None:
    """Most hosts come a moment after the first, which alone had all pairs of the proof then."""

    class Stops(Recorder):
        def proof_started(self, pairs: int) -> None:
            self.stop.set()
            self.pairs = pairs

    spec, observer = make_spec(tmp_path, budget="{trials: 4}", pairs=12), Stops()
    result, _ = tuned_on(spec, tmp_path / "s", fleet_of(tmp_path, 2), observer)
    assert result.interrupted
    assert observer.pairs == 2 * 6
    result, _ = tuned_on(spec, tmp_path / "s", fleet_of(tmp_path, 1))
    assert result.verdict is not None
    assert result.verdict.pairs == 6


def test_a_host_that_joins_in_the_proof_has_no_more_time_than_is_left(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It had the time of the whole proof again, and ran all its pairs after the budget was over."""
    fleet, later_s = fleet_of(tmp_path, 1), list[float]()

    def proved(*asked: Any) -> None:
        host_pairs(*asked)
        if not later_s:
            later_s.append(7200.0)
            fleet.add(local_host(tmp_path, "b", run_s=0.02))

    monkeypatch.setattr("lsmtune.fleet.tuning.host_pairs", proved)
    spec = make_spec(tmp_path, budget="{trials: 8, time: 1h}", pairs=8)
    tuned_on(spec, tmp_path / "s", fleet, clock=lambda: time.monotonic() + sum(later_s))
    rows = [row for row in stored(tmp_path / "s") if row.role is Role.PROOF_CANDIDATE]
    assert Counter(row.measurement.host for row in rows) == {"a": 8, "b": 4}


def test_a_second_worker_on_a_host_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("lsmtune.fleet.host.PATIENCE_S", 0.1)
    first = Worker(tmp_path / "w", SimulatedRunner(speed))
    with pytest.raises(HostLostError, match="another worker measures here"):
        Worker(tmp_path / "w", SimulatedRunner(speed))
    first.close()


def test_ray_is_not_imported_unless_it_is_asked_for() -> None:
    import lsmtune.cli.worker
    import lsmtune.fleet.on_ray  # noqa: F401

    assert "ray" not in sys.modules


def called_unstable(rng: np.random.Generator, effects: list[float]) -> tuple[bool, bool]:
    """By our rule, of 4 pairs a host; and by TUNA's, of one run a host. Runs vary by 10 %."""
    finalist = rng.normal(np.array(effects)[:, None], 0.1, (len(effects), 4))
    ratios = finalist - rng.normal(0.0, 0.1, finalist.shape)
    ours = is_unstable(random_effects([list(own) for own in ratios]), None)
    values = np.exp(finalist[:, 0])
    return ours, float(np.ptp(values) / values.mean()) >= 0.3


def test_noise_makes_fewer_configurations_unstable_than_by_the_rule_of_tuna() -> None:
    rng, studies = np.random.default_rng(1), 400
    same = [called_unstable(rng, [0.0] * 10) for _ in range(studies)]
    ours, tuna = (sum(each) / studies for each in zip(*same, strict=True))
    assert ours <= 0.05 + 3 * math.sqrt(0.05 * 0.95 / studies)
    assert tuna > 4 * ours
    differ = [called_unstable(rng, [math.log(0.6), *[0.0] * 9]) for _ in range(studies)]
    assert sum(each[0] for each in differ) > 0.95 * studies
