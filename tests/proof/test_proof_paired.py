from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from fake_runner import ENGINE, MIB, FakeRunner
from study_parts import Recorder, make_spec

from lsmtune.errors import InputError
from lsmtune.proof.measurer import Measurer
from lsmtune.proof.paired import ProofPlan, prove
from lsmtune.proof.seeds import Stream, derive_seed
from lsmtune.records.config import Config
from lsmtune.records.goal import Goal
from lsmtune.records.measurement import Outcome
from lsmtune.records.objective import Direction, Objective
from lsmtune.records.request import RunRequest
from lsmtune.records.verdict import Verdict, VerdictOutcome
from lsmtune.storage.folder import StudyFolder
from lsmtune.storage.measurements import Role

BASELINE = Config({}, "default")
CANDIDATE = Config({"write_buffer_size": 8 * MIB}, "x#1")
A, B = Role.PROOF_BASELINE, Role.PROOF_CANDIDATE


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[StudyFolder]:
    with StudyFolder.create_or_resume(tmp_path / "s", make_spec(tmp_path)) as opened:
        yield opened


def proof(
    folder: StudyFolder,
    runner: FakeRunner | None = None,
    observer: Recorder | None = None,
    *,
    candidate: Config = CANDIDATE,
    objective: Objective | None = None,
    plan: ProofPlan | None = None,
) -> Verdict:
    runner, observer = runner or FakeRunner(), observer or Recorder()
    spec = make_spec(folder.path)
    measurer = Measurer(
        folder, runner, ENGINE, (spec.workload,), spec.limits, observer, observer.stop, runner.clock
    )
    return prove(
        BASELINE,
        candidate,
        Goal((objective or spec.objective,)),
        measurer,
        observer,
        study_seed=1,
        plan=plan or ProofPlan(),
    )


def is_candidate(request: RunRequest) -> bool:
    return bool(request.config.options)


def failing(outcome: Outcome, *numbers: int, candidate: bool) -> FakeRunner:
    """Fails the runs of one side in the pairs of these numbers."""
    seeds = {derive_seed(1, Stream.PROOF, number) for number in numbers}
    return FakeRunner(
        fails=lambda r: outcome if is_candidate(r) == candidate and r.seed in seeds else None
    )


def test_pairs_are_interleaved_and_share_fresh_seeds(folder: StudyFolder) -> None:
    runner, observer = FakeRunner(), Recorder()
    verdict = proof(folder, runner, observer)
    assert verdict.outcome is VerdictOutcome.BETTER
    assert verdict.ratio == pytest.approx(1.5, rel=0.05)
    roles = [what[1] for what in observer.told if what[0] == "run_started"]
    assert roles == [A, B, B, A, A, B, B, A, A, B]
    seeds = [request.seed for request in runner.requests]
    assert seeds[::2] == seeds[1::2]
    assert len(set(seeds)) == 5
    assert list(folder.runs_path.iterdir()) == []


def test_the_direction_turns_the_verdict(folder: StudyFolder) -> None:
    objective = Objective("throughput_ops_s", Direction.MINIMIZE)
    assert proof(folder, objective=objective).outcome is VerdictOutcome.WORSE


def test_equal_values_prove_nothing(folder: StudyFolder) -> None:
    runner = FakeRunner(speed=lambda _options: 1e5, noise=0.0)
    assert proof(folder, runner).outcome is VerdictOutcome.NOT_PROVEN


def test_equal_configurations_are_rarely_called_different(folder: StudyFolder) -> None:
    """The whole path, runs and all; the rate itself is tested on more proofs, without runs."""
    runner, proofs = FakeRunner(speed=lambda _options: 1e5), 20
    verdicts = [
        proof(folder, runner, candidate=Config({"write_buffer_size": size})).outcome
        for size in range(1, proofs + 1)
    ]
    different = proofs - verdicts.count(VerdictOutcome.NOT_PROVEN)
    assert different / proofs <= 0.05 + 4.0 * math.sqrt(0.05 * 0.95 / proofs)


@pytest.mark.parametrize(
    ("outcome", "verdict"),
    [(Outcome.CRASHED, VerdictOutcome.NOT_PROVEN), (Outcome.DATA_LOSS, VerdictOutcome.WORSE)],
)
def test_a_candidate_that_fails_ends_the_proof(
    folder: StudyFolder, outcome: Outcome, verdict: VerdictOutcome
) -> None:
    runner = failing(outcome, 2, candidate=True)
    found = proof(folder, runner)
    assert found.outcome is verdict
    assert found.why == (
        f"a run of the candidate ended {outcome.value} (made to end {outcome.value})"
    )
    assert (found.pairs, found.pairs_failed) == (2, 1)
    # The same command again runs nothing, and says the same.
    again = FakeRunner()
    assert proof(folder, again) == found
    assert again.requests == []


def test_a_baseline_that_fails_now_and_then_is_run_again(folder: StudyFolder) -> None:
    found = proof(folder, failing(Outcome.CRASHED, 0, 3, candidate=False))
    assert found.outcome is VerdictOutcome.BETTER
    assert (found.pairs, found.pairs_failed) == (5, 2)


def test_a_baseline_that_keeps_failing_ends_the_proof(folder: StudyFolder) -> None:
    found = proof(folder, failing(Outcome.TIMEOUT, *range(9), candidate=False))
    assert found.outcome is VerdictOutcome.NOT_PROVEN
    assert found.why == "the baseline failed in 3 pairs"
    assert (found.pairs, found.pairs_failed) == (0, 3)


def test_the_deadline_takes_pairs_but_not_below_the_minimum(folder: StudyFolder) -> None:
    # A pair takes 2 s of the fake clock.
    found = proof(folder, plan=ProofPlan(pairs=20, deadline_s=15.0))
    assert found.pairs == 7
    assert found.why == "the time budget allowed 7 of 20 pairs"
    assert found.outcome is VerdictOutcome.BETTER


def test_without_time_the_minimum_is_run(folder: StudyFolder) -> None:
    assert proof(folder, plan=ProofPlan(pairs=20, deadline_s=-3.0)).pairs == 5


def test_an_interrupted_proof_goes_on_with_its_complete_pairs(folder: StudyFolder) -> None:
    observer = Recorder()
    observer.stop_at = ("run_started", A, 3)  # the second run of pair 3, as 3 is odd
    found = proof(folder, observer=observer)
    assert found.outcome is VerdictOutcome.NOT_PROVEN
    assert found.why == "interrupted after 3 of 5 pairs"
    runner = FakeRunner()
    resumed = proof(folder, runner)
    assert resumed.outcome is VerdictOutcome.BETTER
    assert resumed.pairs == 5
    assert len(runner.requests) == 4
    # Half of pair 3 is stored already: the pair is run anew, on a seed that none had.
    seen = {stored.measurement.seed for stored in folder.measurements.all()}
    assert derive_seed(1, Stream.PROOF, 5) in seen


def test_raising_the_number_of_pairs_begins_anew_instead_of_looking_twice(
    folder: StudyFolder,
) -> None:
    """Adding pairs until the verdict pleases is how a false gain is found."""
    proof(folder, plan=ProofPlan(pairs=5))
    runner, observer = FakeRunner(), Recorder()
    assert proof(folder, runner, observer, plan=ProofPlan(pairs=6)).pairs == 6
    assert len(runner.requests) == 12
    assert any("begins anew" in str(what) for what in observer.told)
    again = FakeRunner()
    assert proof(folder, again, plan=ProofPlan(pairs=6)).pairs == 6
    assert again.requests == []


def test_pairs_of_another_candidate_do_not_count(folder: StudyFolder) -> None:
    proof(folder)
    runner = FakeRunner()
    other = proof(folder, runner, candidate=Config({"write_buffer_size": 9 * MIB}))
    assert len(runner.requests) == 10
    assert other.pairs == 5
    assert len({stored.pair for stored in folder.measurements.of(B)}) == 10


def test_an_engine_of_another_version_is_refused(folder: StudyFolder) -> None:
    proof(folder)
    runner = FakeRunner(engine=replace(ENGINE, version="2.0"))
    with pytest.raises(InputError, match=r"found 'memory 2.0 .*allowed: memory 1.0 "):
        proof(folder, runner, candidate=Config({"write_buffer_size": 9 * MIB}))


def test_fewer_pairs_than_the_minimum_cannot_be_planned() -> None:
    with pytest.raises(ValueError, match="at least 5 pairs, found 4"):
        ProofPlan(pairs=4)
