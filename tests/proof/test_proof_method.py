"""How the runs of a pair share the machine: what is chosen, and what a stalling scout changes."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from fake_runner import FakeRunner, phase
from proof_parts import (
    BASELINE,
    CANDIDATE,
    PHASE,
    WORKLOAD,
    Recorder,
    arm,
    measurer_of,
    proof,
    proved,
)

from lsmtune.driver.native import NativeRunner
from lsmtune.experiment import measurer as measurer_room
from lsmtune.experiment.folder import StudyFolder
from lsmtune.model.config import EngineIdentity
from lsmtune.model.goal import Goal, Objective
from lsmtune.model.measurement import Measurement, Outcome
from lsmtune.model.request import PairMethod, RunRequest
from lsmtune.model.verdict import VerdictOutcome
from lsmtune.model.workload import PageCache, Phase, Workload
from lsmtune.proof.calibration import calibrate
from lsmtune.proof.paired import ProofPlan
from lsmtune.proof.pairs import choose, judged_sides, refusal, stalled_share, stored_pairs

WHOLE, SLICES, DUET = PairMethod.WHOLE, PairMethod.SLICES, PairMethod.DUET
RATED = replace(PHASE, rate_ops_s=1000.0)


def of(*phases: Phase, page_cache: PageCache = PageCache.WARM) -> list[Workload]:
    return [replace(WORKLOAD, phases=phases, page_cache=page_cache)]


def run_of(stall_s: float | None, outcome: Outcome = Outcome.OK) -> Measurement:
    seen = replace(phase(1e5), elapsed_s=10.0, stall_s=stall_s)
    return Measurement(outcome, EngineIdentity("x"), {}, "w", 1, 0.0, 10.0, (seen,))


def test_what_is_chosen_without_a_wish() -> None:
    assert choose(None, of(PHASE), native=True).method is SLICES
    program = choose(None, of(PHASE), native=False)
    assert (program.method, "cannot be stopped" in program.why) == (WHOLE, True)
    rated = choose(None, of(PHASE, RATED), native=True)
    assert (rated.method, "at a fixed rate" in rated.why) == (WHOLE, True)


@pytest.mark.parametrize("asked", PairMethod)
def test_a_wish_is_followed_whatever_the_scout_shows(asked: PairMethod) -> None:
    assert choose(asked, of(RATED), native=False, scout=[run_of(9.0)]).method is asked


@pytest.mark.parametrize(
    ("stalls_s", "method"),
    [
        ([0.0, 0.0], SLICES),
        ([0.1, 0.1], SLICES),  # one in a hundred is tolerated
        ([0.0, 0.2], WHOLE),
        ([0.2, 0.0], WHOLE),
        ([None, None], SLICES),  # LevelDB does not say
        ([], SLICES),
    ],
)
def test_either_side_of_a_scout_that_stalls_decides(
    stalls_s: list[float | None], method: PairMethod
) -> None:
    found = choose(None, of(PHASE), native=True, scout=[run_of(s) for s in stalls_s])
    assert found.method is method
    assert bool(found.why) == (method is WHOLE)


def test_the_share_of_a_stall() -> None:
    assert stalled_share(run_of(0.5)) == 0.05
    assert stalled_share(run_of(None)) == 0.0
    assert stalled_share(run_of(0.5, Outcome.CRASHED)) == 0.0


def test_wishes_that_cannot_be_met() -> None:
    assert refusal(None, of(RATED), native=False) == ""
    assert refusal(WHOLE, of(RATED), native=False) == ""
    assert "at a fixed rate" in refusal(SLICES, of(RATED), native=True)
    assert "cannot be stopped" in refusal(SLICES, of(PHASE), native=False)
    assert "half of the cores" in refusal(DUET, of(PHASE), native=False)
    assert refusal(DUET, of(RATED), native=True) == ""


def test_runs_that_share_files_share_what_is_cached_of_them() -> None:
    """Two copies of one loaded database: to drop the cache of one drops the other's."""
    cold = of(PHASE, page_cache=PageCache.COLD)
    assert choose(None, cold, native=True).method is WHOLE
    for method in (SLICES, DUET):
        assert "page_cache is cold" in refusal(method, cold, native=True)
    assert refusal(WHOLE, cold, native=True) == ""


class Driver(NativeRunner):
    """Our own driver, as far as a proof can tell."""

    def __init__(self, fake: FakeRunner) -> None:
        super().__init__(Path("driver"))
        self.fake = fake

    def run(self, request: RunRequest, *arguments: Any) -> Measurement:
        return self.fake.run(request, *arguments)


class Stalling(FakeRunner):
    """A candidate that stalls, and whose stalls cost it nothing in slices."""

    def _measurement(self, request: RunRequest, outcome: Outcome) -> Measurement:
        found = super()._measurement(request, outcome)
        in_slices = request.slices != 0
        value = 2e5 if in_slices else 5e4
        seen = replace(phase(value if request.config.options else 1e5), stall_s=0.3)
        return replace(found, phases=(seen,))


@pytest.fixture
def together(monkeypatch: pytest.MonkeyPatch) -> list[tuple[PairMethod, int]]:
    """Pairs of runs that are on at the same time, by the fake runner; what was asked for."""
    asked: list[tuple[PairMethod, int]] = []

    def run_pair(
        runner: Driver,
        first: RunRequest,
        second: RunRequest,
        method: PairMethod,
        *,
        on_message: Any,
        cancel: Any,
    ) -> tuple[Measurement, Measurement]:
        asked.append((method, first.slices))
        requests = [replace(r, slices=r.slices or 20) for r in (first, second)]
        # Both speak before either has ended.
        found = [
            runner.fake.run(request, lambda said, index=index: on_message(index, said), cancel)
            for index, request in enumerate(requests)
        ]
        on_message(0, "a late word of the first")
        return found[0], found[1]

    monkeypatch.setattr(measurer_room, "run_pair", run_pair)
    return asked


def paired(folder: StudyFolder, fake: FakeRunner, observer: Recorder, plan: ProofPlan) -> Any:
    measurer = measurer_of(folder, Driver(fake), observer, fake)
    return proof(folder, fake, observer, measurer=measurer, plan=plan)


def test_slices_serve_a_driver_of_ours(
    folder: StudyFolder, together: list[tuple[PairMethod, int]]
) -> None:
    fake, observer = FakeRunner(), Recorder()
    verdict = paired(folder, fake, observer, ProofPlan())
    assert (verdict.outcome, verdict.pairs) == (VerdictOutcome.BETTER, 8)
    assert verdict.method == "slices"
    assert {stored.measurement.paired_by for stored in folder.measurements.all()} == {"slices"}
    # Of the first pair nothing is known; a phase of one second has six slices or so.
    assert together == [(SLICES, 0), *[(SLICES, 6)] * 7]
    assert len({r.directory for r in fake.requests}) == 16
    starts = [told for told in observer.told if told[0] in ("run_started", "run_finished")]
    assert [what for what, *_ in starts[:4]] == ["run_started"] * 2 + ["run_finished"] * 2
    assert "a late word of the first" not in [said for (said,) in observer.of("run_message")]


def test_a_scout_that_stalls_does_not_count_and_whole_runs_follow(
    folder: StudyFolder, together: list[tuple[PairMethod, int]]
) -> None:
    fake, observer = Stalling(), Recorder()
    verdict = paired(folder, fake, observer, ProofPlan())
    assert verdict.outcome is VerdictOutcome.WORSE
    assert (verdict.method, verdict.pairs) == ("whole", 6)
    assert max(verdict.candidate_values) == 5e4  # the scout said that it was twice as good
    assert len(together) == 1
    (warning,) = observer.of("warning")
    assert "a run stalled for 30.0% of its time" in str(warning[0])
    assert verdict.notes[0] == warning[0]
    # Guards were judged by the scout, too.
    pairs = stored_pairs(folder.measurements, arm(BASELINE), arm(CANDIDATE))
    assert (len(pairs), len(judged_sides(pairs, Goal((Objective(),)), verdict))) == (7, 6)
    # The scout is known when the proof goes on.
    again, quiet = Stalling(), Recorder()
    assert paired(folder, again, quiet, ProofPlan()) == verdict
    assert again.requests == []


def test_a_candidate_that_loses_data_in_a_scout_is_worse_whatever_stalled(
    folder: StudyFolder, together: list[tuple[PairMethod, int]]
) -> None:
    """The baseline stalled there, so that whole runs followed and the loss did not count."""
    fake = Stalling(fails=lambda r: Outcome.DATA_LOSS if r.config.options and r.slices else None)
    verdict = paired(folder, fake, Recorder(), ProofPlan())
    assert (verdict.outcome, verdict.method) == (VerdictOutcome.WORSE, "slices")
    assert (verdict.pairs, verdict.pairs_failed, len(together)) == (0, 1, 1)
    assert verdict.why.startswith("a run of the candidate ended data_loss")


def test_slices_that_were_asked_for_stay_and_their_stalls_are_told(
    folder: StudyFolder, together: list[tuple[PairMethod, int]]
) -> None:
    fake, observer = Stalling(), Recorder()
    verdict = paired(folder, fake, observer, ProofPlan(method=SLICES))
    assert (verdict.method, verdict.outcome) == ("slices", VerdictOutcome.BETTER)
    assert verdict.notes[0].startswith("a run stalled in 8 of 8 pairs")
    assert len(together) == 8


def test_pairs_of_another_method_are_not_mixed_in(
    folder: StudyFolder, together: list[tuple[PairMethod, int]]
) -> None:
    fake = FakeRunner(speed=lambda _options: 1e5)
    paired(folder, fake, Recorder(), ProofPlan(pairs=6))
    other = FakeRunner(speed=lambda _options: 1e5)
    verdict = paired(folder, other, Recorder(), ProofPlan(pairs=7, method=WHOLE))
    assert (verdict.pairs, len(other.requests)) == (7, 14)
    back = paired(folder, other, Recorder(), ProofPlan(pairs=7))
    assert (back.method, back.pairs) == ("slices", 7)
    assert len(other.requests) == 16
    assert len(together) == 7


def test_a_calibration_cuts_its_runs_as_a_proof_does(
    folder: StudyFolder, together: list[tuple[PairMethod, int]]
) -> None:
    fake, observer = FakeRunner(), Recorder()
    measurer = measurer_of(folder, Driver(fake), observer, fake)
    goal = Goal((Objective(),))
    found = calibrate(arm(BASELINE), goal, measurer, study_seed=1, pairs=3)
    assert (found.method, found.pairs) == (SLICES, 3)
    assert together == [(SLICES, 0), (SLICES, 6), (SLICES, 6)]


def test_a_program_is_never_run_beside_another(folder: StudyFolder) -> None:
    with pytest.raises(ValueError, match="can pair runs by slices"):
        proof(folder, plan=ProofPlan(method=SLICES))
    observer = Recorder()
    assert proved(folder, observer=observer).method == "whole"
    assert observer.of("warning") == []  # nothing else could be expected


def test_the_phases_of_all_workloads_decide(folder: StudyFolder) -> None:
    fake, observer = FakeRunner(), Recorder()
    rated = replace(WORKLOAD, phases=(RATED,))
    measurer = measurer_of(folder, Driver(fake), observer, fake, workloads=(WORKLOAD, rated))
    assert choose(None, measurer.workloads, native=measurer.native).method is WHOLE
