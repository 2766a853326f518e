"""The loop of a proof: order, ends, what counts after an interruption, and what is said of it."""

from __future__ import annotations

from dataclasses import replace

import pytest
from fake_runner import ENGINE, MIB, FakeRunner, default_speed, phase
from proof_parts import (
    BASELINE,
    CANDIDATE,
    WORKLOAD,
    Recorder,
    measurer_of,
    proof,
    proved,
)

from lsmtune.errors import InputError
from lsmtune.experiment.folder import StudyFolder
from lsmtune.experiment.schedule import Stream, candidate_first, derive_seed
from lsmtune.experiment.store import Role
from lsmtune.model.config import Config
from lsmtune.model.goal import Direction, Goal, Objective
from lsmtune.model.measurement import Measurement, OptionNotTaken, Outcome, Verification
from lsmtune.model.request import RunRequest
from lsmtune.model.verdict import VerdictOutcome
from lsmtune.proof.paired import ProofPlan
from made_up import add_run

A, B = Role.PROOF_BASELINE, Role.PROOF_CANDIDATE


def equal(noise: float = 0.01) -> FakeRunner:
    """Both sides are the same but for noise."""
    return FakeRunner(speed=lambda _options: 1e5, noise=noise)


def is_candidate(request: RunRequest) -> bool:
    return bool(request.config.options)


def failing(outcome: Outcome, *numbers: int, candidate: bool) -> FakeRunner:
    """Fails the runs of one side in the pairs of these numbers."""
    seeds = {derive_seed(1, Stream.PROOF, number) for number in numbers}
    return FakeRunner(
        fails=lambda r: outcome if is_candidate(r) == candidate and r.seed in seeds else None
    )


def test_a_coin_orders_each_pair_and_both_sides_share_a_fresh_seed(folder: StudyFolder) -> None:
    runner, observer = equal(), Recorder()
    proved(folder, runner, observer, plan=ProofPlan(pairs=10))
    orders = {True: [B, A], False: [A, B]}
    expected = [role for pair in range(10) for role in orders[candidate_first(1, pair)]]
    assert [role for role, *_ in observer.of("run_started")] == expected
    assert expected[::2].count(A) not in (0, 10)
    seeds = [request.seed for request in runner.requests]
    assert seeds[::2] == seeds[1::2] == [derive_seed(1, Stream.PROOF, n) for n in range(10)]
    assert list(folder.runs_path.iterdir()) == []


# With fewer pairs no interval has an end; of a gain every other metric is to have one as well, each
# of them at a higher confidence.
LEAST, TOLD = 6, 8


def test_it_ends_as_soon_as_the_verdict_is_clear(folder: StudyFolder) -> None:
    slow = FakeRunner(speed=lambda options: 1e10 / default_speed(options))
    verdict = proved(folder, slow)
    assert (verdict.outcome, verdict.pairs) == (VerdictOutcome.WORSE, LEAST)


def test_a_gain_is_followed_until_its_price_is_known(folder: StudyFolder) -> None:
    observer = Recorder()
    verdict = proved(folder, observer=observer)
    assert (verdict.outcome, verdict.pairs) == (VerdictOutcome.BETTER, TOLD)
    assert all(other.ratio_low is not None for other in verdict.others)
    assert verdict.ratio == pytest.approx(1.5, rel=0.05)
    assert (verdict.why, verdict.what_it_takes, verdict.pairs_wanted) == ("", "", None)
    told = [judged for (judged,) in observer.of("pair_judged")]
    assert [judged.pairs for judged in told] == list(range(1, TOLD + 1))  # type: ignore[attr-defined]
    assert [judged.ratio_low is None for judged in told] == [True] * 5 + [False] * 3  # type: ignore[attr-defined]


def test_the_direction_turns_the_verdict(folder: StudyFolder) -> None:
    objective = Objective("throughput_ops_s", Direction.MINIMIZE)
    verdict = proved(folder, goal=Goal((objective,)))
    assert verdict.outcome is VerdictOutcome.WORSE


def test_it_ends_when_what_is_left_does_not_matter(folder: StudyFolder) -> None:
    plan = ProofPlan(smallest_effect=0.03)
    verdict = proved(folder, equal(), plan=plan)
    assert verdict.outcome is VerdictOutcome.EQUIVALENT
    assert verdict.pairs < plan.pairs
    assert verdict.ratio_low is not None
    assert verdict.ratio_high is not None
    assert 1 / 1.03 <= verdict.ratio_low < 1 < verdict.ratio_high <= 1.03


def test_after_all_pairs_it_says_what_it_would_take(folder: StudyFolder) -> None:
    verdict = proved(folder, equal(0.1), plan=ProofPlan(pairs=8, smallest_effect=0.05))
    assert (verdict.outcome, verdict.pairs) == (VerdictOutcome.NOT_PROVEN, 8)
    assert verdict.why == "the interval includes 1"
    assert verdict.pairs_wanted is not None
    assert verdict.pairs_wanted > 8
    more = verdict.pairs_wanted - 8
    told = f"takes about {verdict.pairs_wanted} pairs, {more} more (about "
    assert told in verdict.what_it_takes


@pytest.mark.parametrize(
    ("outcome", "verdict"),
    [(Outcome.CRASHED, VerdictOutcome.NOT_PROVEN), (Outcome.DATA_LOSS, VerdictOutcome.WORSE)],
)
def test_a_candidate_that_fails_ends_the_proof(
    folder: StudyFolder, outcome: Outcome, verdict: VerdictOutcome
) -> None:
    found = proved(folder, failing(outcome, 2, candidate=True))
    assert found.outcome is verdict
    assert found.why == (
        f"a run of the candidate ended {outcome.value} (made to end {outcome.value})"
    )
    assert (found.pairs, found.pairs_failed) == (2, 1)
    assert found.pairs_wanted is None
    # The same command again runs nothing, and says the same.
    again = FakeRunner()
    assert proved(folder, again) == found
    assert again.requests == []


def test_a_baseline_that_fails_now_and_then_is_run_again(folder: StudyFolder) -> None:
    found = proved(folder, failing(Outcome.CRASHED, 0, 3, candidate=False))
    assert found.outcome is VerdictOutcome.BETTER
    assert (found.pairs, found.pairs_failed) == (TOLD, 2)


def test_a_baseline_that_keeps_failing_ends_the_proof(folder: StudyFolder) -> None:
    found = proved(folder, failing(Outcome.TIMEOUT, *range(9), candidate=False))
    assert found.outcome is VerdictOutcome.NOT_PROVEN
    assert found.why == (
        "the baseline has no value in 3 pairs: a run of it ended timeout (made to end timeout)"
    )
    assert (found.pairs, found.pairs_failed) == (0, 3)


def test_a_candidate_is_not_blamed_for_what_the_baseline_does_too(folder: StudyFolder) -> None:
    full = FakeRunner(fails=lambda _request: Outcome.DISK_FULL)
    found = proved(folder, full)
    assert found.outcome is VerdictOutcome.NOT_PROVEN
    assert found.why == (
        "a run of the baseline and one of the candidate ended disk_full (made to end disk_full)"
    )


def test_a_metric_that_nobody_observes_is_said_to_be_one(folder: StudyFolder) -> None:
    found = proved(folder, goal=Goal((Objective("read_amplification", Direction.MINIMIZE),)))
    assert found.outcome is VerdictOutcome.NOT_PROVEN
    assert found.why == "a run of either configuration did not observe read_amplification"


@pytest.mark.parametrize(
    ("candidate", "why", "pairs"),
    [
        (False, "a run of the candidate observed stall_s of 0, which has no product", 1),
        (
            True,
            "the baseline has no value in 3 pairs: a run of it observed stall_s of 0, which has no "
            "product",
            3,
        ),
    ],
)
def test_a_side_that_never_stalls_has_no_product_and_is_not_said_to_have_failed(
    folder: StudyFolder, candidate: bool, why: str, pairs: int
) -> None:
    """It was said not to have observed the product; or to have failed: "a run of it ended "."""
    both = Goal((Objective(), Objective("stall_s", Direction.MINIMIZE)))
    stalls = {candidate: 0.1, not candidate: 0.0}
    runner = FakeRunner(figures=lambda r: {"stall_s": stalls[is_candidate(r)]})
    found = proved(folder, runner, goal=both)
    assert (found.outcome, found.why) == (VerdictOutcome.NOT_PROVEN, why)
    assert (found.pairs, found.pairs_failed) == (0, pairs)


def test_no_more_pairs_are_run_where_a_value_has_no_ratio(folder: StudyFolder) -> None:
    """Of a candidate that never stalled all thirty pairs were run, and said no more than one."""
    runner = FakeRunner(figures=lambda r: {"stall_s": 0.0 if is_candidate(r) else 0.1})
    found = proved(folder, runner, goal=Goal((Objective("stall_s", Direction.MINIMIZE),)))
    assert (found.outcome, found.pairs) == (VerdictOutcome.NOT_PROVEN, 2)
    assert found.why == "candidate values must be finite and above zero, found 0.0"


def test_no_pair_is_begun_that_would_pass_the_deadline(folder: StudyFolder) -> None:
    # A pair takes 2 s of the fake clock.
    runner = equal()
    found = proved(folder, runner, plan=ProofPlan(pairs=20, deadline_s=15.0))
    assert found.pairs == 7
    assert found.why == "the time budget allowed 7 of 20 pairs"
    assert len(runner.requests) == 14
    assert found.pairs_wanted is not None


def test_a_first_pair_that_passes_the_deadline_is_ended(folder: StudyFolder) -> None:
    runner = FakeRunner()
    found = proved(folder, runner, plan=ProofPlan(deadline_s=0.5))
    assert (found.outcome, found.pairs) == (VerdictOutcome.NOT_PROVEN, 0)
    assert found.why == "the time budget allowed 0 of 30 pairs"
    assert found.what_it_takes == "at least 6 pairs, 6 more"
    assert len(runner.requests) == 1
    assert folder.measurements.all() == []


def test_without_time_nothing_is_run_but_what_must_be(folder: StudyFolder) -> None:
    assert proved(folder, plan=ProofPlan(deadline_s=-3.0)).pairs == 0
    least = ProofPlan(deadline_s=-3.0, pairs_least=6)
    assert proved(folder, equal(), plan=least).pairs == 6


def test_an_interrupted_proof_goes_on_with_its_complete_pairs(folder: StudyFolder) -> None:
    observer = Recorder()
    second = A if candidate_first(1, 3) else B
    observer.stop_at = ("run_started", second, 3, 0)
    assert proof(folder, observer=observer) is None
    assert len(folder.measurements.all()) == 6
    runner = FakeRunner()
    resumed = proved(folder, runner)
    assert resumed.outcome is VerdictOutcome.BETTER
    assert resumed.pairs == TOLD
    assert len(runner.requests) == 2 * TOLD - 6


def test_a_pair_that_a_kill_cut_in_half_is_run_anew_on_another_seed(folder: StudyFolder) -> None:
    proof(folder, equal(), plan=ProofPlan(pairs=6))
    half = folder.measurements.of(A)[0]
    add_run(folder.measurements, A, half.measurement, config=BASELINE, pair=6)
    runner = equal()
    assert proved(folder, runner, plan=ProofPlan(pairs=7)).pairs == 7
    assert {request.seed for request in runner.requests} == {derive_seed(1, Stream.PROOF, 7)}


def test_more_pairs_go_on_from_those_that_are_there(folder: StudyFolder) -> None:
    """Each look was allowed for, so that adding pairs finds no gain that is not there."""
    first = proved(folder, equal(), plan=ProofPlan(pairs=6))
    runner, observer = equal(), Recorder()
    verdict = proved(folder, runner, observer, plan=ProofPlan(pairs=9))
    assert len(runner.requests) == 6
    assert verdict.pairs == 9
    assert verdict.baseline_values[:6] == first.baseline_values
    assert observer.of("warning") == []
    fewer = FakeRunner()
    assert proved(folder, fewer, plan=ProofPlan(pairs=6)).pairs == 9
    assert fewer.requests == []


def test_pairs_of_an_older_lsmtune_open_and_do_not_count(folder: StudyFolder) -> None:
    """It tossed no coin, and kept a fact of its own."""
    proof(folder, equal(), plan=ProofPlan(pairs=6))
    for role, config in ((A, BASELINE), (B, CANDIDATE)):
        for pair in range(6, 11):
            run = folder.measurements.of(role)[0].measurement
            old = replace(run, paired_by="")
            add_run(folder.measurements, role, old, config=config, pair=pair)
    folder.measurements.set_fact("proof_plan", {"first_pair": 0, "pairs": 5})
    runner = equal()
    assert proved(folder, runner, plan=ProofPlan(pairs=7)).pairs == 7
    assert [r.seed for r in runner.requests] == [derive_seed(1, Stream.PROOF, 11)] * 2


def test_pairs_of_another_candidate_do_not_count(folder: StudyFolder) -> None:
    proof(folder)
    runner = FakeRunner()
    other = proved(folder, runner, candidate=Config({"write_buffer_size": 9 * MIB}))
    assert len(runner.requests) == 2 * TOLD
    assert other.pairs == TOLD
    assert len({stored.pair for stored in folder.measurements.of(B)}) == 2 * TOLD


def test_an_engine_of_another_version_is_refused(folder: StudyFolder) -> None:
    proof(folder)
    runner = FakeRunner(engine=replace(ENGINE, version="2.0"))
    with pytest.raises(InputError, match=r"found 'memory 2.0 .*allowed: memory 1.0 "):
        proof(folder, runner, candidate=Config({"write_buffer_size": 9 * MIB}))


@pytest.mark.parametrize(("confidence", "least"), [(0.95, 6), (0.99, 8), (0.5, 3)])
def test_fewer_pairs_than_can_prove_anything_cannot_be_planned(
    confidence: float, least: int
) -> None:
    with pytest.raises(ValueError, match=f"at least {least} pairs, found {least - 1}"):
        ProofPlan(pairs=least - 1, confidence=confidence)
    assert ProofPlan(pairs=least, confidence=confidence).pairs == least


def test_each_workload_is_run_by_both_sides_before_the_next(folder: StudyFolder) -> None:
    runner, observer = equal(), Recorder()
    measurer = measurer_of(folder, runner, observer, runner, workloads=(WORKLOAD, WORKLOAD))
    goal = Goal((Objective(),), (0.25, 0.75))
    proof(folder, runner, observer, goal=goal, measurer=measurer, plan=ProofPlan(pairs=6))
    told = observer.of("run_started")[:4]
    assert [(pair, workload) for _, pair, workload in told] == [(0, 0), (0, 0), (0, 1), (0, 1)]
    assert [role for role, *_ in told[:2]] == [role for role, *_ in told[2:]]


def test_a_pair_that_fails_ends_with_that_workload(folder: StudyFolder) -> None:
    runner, observer = failing(Outcome.CRASHED, 0, candidate=False), Recorder()
    measurer = measurer_of(folder, runner, observer, runner, workloads=(WORKLOAD, WORKLOAD))
    goal = Goal((Objective(),), (0.25, 0.75))
    verdict = proved(folder, runner, observer, goal=goal, measurer=measurer)
    assert (verdict.outcome, verdict.pairs, verdict.pairs_failed) == (
        VerdictOutcome.BETTER,
        TOLD,
        1,
    )
    assert len(runner.requests) == 2 + TOLD * 4


class Verified(FakeRunner):
    """Runs of the candidate wrote keys that were read back, all but those of pair 2."""

    def _measurement(self, request: RunRequest, outcome: Outcome) -> Measurement:
        found = super()._measurement(request, outcome)
        if is_candidate(request) and request.seed == derive_seed(1, Stream.PROOF, 2):
            return found
        return replace(found, verification=Verification(1000, 0, 0, 0.1))


def test_a_finalist_whose_keys_nobody_read_back_is_told(folder: StudyFolder) -> None:
    verdict = proved(folder, Verified())
    assert verdict.outcome is VerdictOutcome.BETTER
    assert verdict.notes == (
        "1 of 16 runs wrote keys of which none was read back: nothing shows that their data is "
        "right",
    )


class Warned(FakeRunner):
    """Most runs say something of the machine, and one something else."""

    def _measurement(self, request: RunRequest, outcome: Outcome) -> Measurement:
        found = super()._measurement(request, outcome)
        once = [] if len(self.requests) > 1 else ["a clock went back"]
        return replace(found, warnings=("no control group held it to 1GiB", *once))


def test_what_most_runs_warn_of_is_said_with_the_verdict(folder: StudyFolder) -> None:
    verdict = proved(folder, Warned())
    runs = 2 * verdict.pairs
    assert verdict.notes[-1] == f"{runs} of {runs} runs: no control group held it to 1GiB"
    assert "clock" not in " ".join(verdict.notes)


class OneSided(FakeRunner):
    """The candidate's runs alone say something, and lack one of their options."""

    def _measurement(self, request: RunRequest, outcome: Outcome) -> Measurement:
        found = super()._measurement(request, outcome)
        if not is_candidate(request):
            return found
        lacks = (OptionNotTaken("max_open_files", "5", "20"), OptionNotTaken("a", "1", None))
        return replace(found, warnings=("read from the page cache",), options_not_taken=lacks)


def test_what_one_side_alone_says_is_said_with_the_verdict(folder: StudyFolder) -> None:
    """Half of the runs were not most of them; an option that was not taken was in none."""
    verdict = proved(folder, OneSided())
    assert verdict.notes[-2:] == (
        "the candidate: option max_open_files=5: the engine uses 20",
        f"{verdict.pairs} of {2 * verdict.pairs} runs: read from the page cache",
    )


class Trap(FakeRunner):
    """A candidate that bursts and leaves all its work behind."""

    def _measurement(self, request: RunRequest, outcome: Outcome) -> Measurement:
        found = super()._measurement(request, outcome)
        (seen,) = found.phases
        if is_candidate(request):
            seen = replace(phase(3 * seen.throughput_ops_s), drain_s=8.0)
            sustained = seen.throughput_ops_s / 9
            seen = replace(seen, sustained_throughput_ops_s=sustained)
        return replace(found, phases=(seen,))


def test_a_burst_does_not_win_where_the_objective_is_sustained(folder: StudyFolder) -> None:
    verdict = proved(folder, Trap())
    assert verdict.outcome is VerdictOutcome.WORSE
    burst = next(other for other in verdict.others if other.metric == "throughput_ops_s")
    assert burst.ratio is not None
    assert burst.ratio > 2
