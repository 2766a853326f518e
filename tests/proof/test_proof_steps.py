"""A minimisation carried out, without an engine: steps as proofs in one folder."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from fake_runner import FakeRunner
from killable_runner import KillableRunner, left
from proof_parts import BASELINE, WORKLOAD, Recorder, arm, measurer_of, open_folder

from lsmtune.experiment.folder import StudyFolder
from lsmtune.experiment.schedule import Arm, Stream, derive_seed
from lsmtune.experiment.store import Role, StoredMeasurement
from lsmtune.model.config import Config, EngineIdentity, OptionValue
from lsmtune.model.goal import Objective
from lsmtune.model.measurement import Outcome
from lsmtune.model.request import LIMITS_DEFAULT, RunRequest
from lsmtune.model.verdict import Verdict, VerdictOutcome
from lsmtune.proof import minimise as minimise_file
from lsmtune.proof.crash_test import CrashOutcome
from lsmtune.proof.minimise import (
    Comparison,
    Kind,
    Minimisation,
    PairedSteps,
    Step,
    StepObserver,
    StepOverError,
    minimise,
    minimised,
    without_same_values,
)
from lsmtune.proof.paired import ProofPlan
from lsmtune.proof.standalone import Verification
from lsmtune.stats.sequential import pairs_at_least
from lsmtune.units import format_duration

# Two of them matter, one does not.
GAINS = {"cache": 1.5, "idle": 1.0, "threads": 1.4}
ALL_ON = Config(dict.fromkeys(GAINS, 1), "winner")
EACH = 1 - 0.05 / 6  # the confidence of each of six steps
CRASHED = "a run ended crashed (made to end crashed)"


def speed(options: dict[str, object]) -> float:
    gain = 1e5
    for name, factor in GAINS.items():
        gain *= factor if name in options else 1.0
    return gain


def machine(**named: Any) -> FakeRunner:
    """With so little noise that the least pairs tell everything."""
    return FakeRunner(speed, noise=0.001, **named)


def killable(**named: Any) -> KillableRunner:
    return KillableRunner(speed, noise=0.001, **named)


class Steps(Recorder, StepObserver):
    """Ends a step, when told to, at the first run without its option that fails."""

    ends_steps = False

    def step_begins(self, step: Step, steps: int) -> None:
        self._note("step_begins", step.kind, step.option, step.to_come, steps)
        self.kind = step.kind

    def run_finished(self, stored: StoredMeasurement) -> None:
        super().run_finished(stored)
        bad = stored.measurement.outcome is not Outcome.OK
        if self.ends_steps and bad and self.kind is Kind.OPTION:
            raise StepOverError


def verification(candidate: Config = ALL_ON, **named: Any) -> Verification:
    plan = named.pop("plan", ProofPlan(pairs=12, smallest_effect=0.02))
    both = arm(named.pop("baseline", BASELINE)), arm(candidate)
    return Verification(
        *both, WORKLOAD, Objective(), LIMITS_DEFAULT, seed=5, plan=plan, **named
    )  # fmt: skip


def minimised_by(
    path: Path,
    runner: FakeRunner,
    observer: Steps | None = None,
    *,
    refusal: Callable[[Arm], str] = lambda _arm: "",
    asked: Verification | None = None,
) -> Minimisation:
    observer = observer or Steps()
    stop = observer.stop
    return minimised(asked or verification(), refusal, path, runner, observer, stop)


def test_the_options_that_matter_are_kept_and_every_step_is_told(tmp_path: Path) -> None:
    runner, observer = machine(), Steps()
    found = minimised_by(tmp_path, runner, observer)
    assert found.config.options == {"cache": 1, "threads": 1}
    assert found.is_proven
    assert found.complete
    assert observer.of("step_begins") == [
        (Kind.WHOLE, "", 5, 6),
        (Kind.OPTION, "cache", 4, 6),
        (Kind.OPTION, "idle", 3, 6),
        (Kind.OPTION, "threads", 2, 6),
        (Kind.LOSS, "", 1, 6),
        (Kind.GAIN, "", 0, 6),
    ]
    first, gain = found.first, found.gain
    assert first is not None
    assert gain is not None
    assert first.ratio == pytest.approx(2.1, rel=0.02)
    assert gain.ratio == pytest.approx(2.1, rel=0.02)
    assert first.confidence == gain.confidence == pytest.approx(EACH)
    assert first.metric == Objective().metric
    assert [e.verdict.ratio for e in found.effects] == pytest.approx([1.5, 1.0, 1.4], rel=0.02)
    # A pair has both its runs on a seed of the verification, which no other pair has.
    seeds = [request.seed for request in runner.requests]
    assert seeds[::2] == seeds[1::2] == [
        derive_seed(5, Stream.PROOF, pair) for pair in range(len(seeds) // 2)
    ]  # fmt: skip
    assert {request.limits for request in runner.requests} == {LIMITS_DEFAULT}
    assert {request.workload for request in runner.requests} == {WORKLOAD}
    # A program that is not lsmtune's driver cannot be tested further, which is said.
    assert found.survival.crash is not None
    assert found.survival.crash.outcome is CrashOutcome.NOT_DONE


def test_a_minimisation_that_is_repeated_goes_on_from_the_pairs_it_has(tmp_path: Path) -> None:
    first = minimised_by(tmp_path, machine())
    again = machine()
    assert minimised_by(tmp_path, again) == first
    assert again.requests == []


def test_without_a_gain_nothing_is_tried_nor_tested(tmp_path: Path) -> None:
    runner = KillableRunner()  # to which the options are all the same
    found = minimised_by(tmp_path, runner)
    assert found.why == "there is no proven gain to keep"
    assert (found.survival.crash, found.survival.power) == (None, None)
    assert runner.kills == []


def test_a_result_that_loses_writes_is_not_proven(tmp_path: Path) -> None:
    runner = killable(leaves=lambda _config: left(lost=3))
    found = minimised_by(tmp_path, runner)
    assert [kill[0].config.options for kill in runner.kills] == [{"cache": 1, "threads": 1}]
    assert runner.kills[0][0].seed == derive_seed(5, Stream.CRASH, 0)
    assert not found.is_proven
    assert found.gain is not None
    assert found.gain.outcome is VerdictOutcome.WORSE
    assert found.why == found.gain.why
    assert found.why.startswith("lost 3 of 1,000 acknowledged writes")
    assert found.survival.crash is not None
    assert found.survival.crash.outcome is CrashOutcome.FAILED


def test_a_result_that_survives_stays_as_it_was_proven(tmp_path: Path) -> None:
    found = minimised_by(tmp_path, killable())
    assert found.is_proven
    assert found.why == ""
    assert found.survival.crash is not None
    assert found.survival.crash.outcome is CrashOutcome.PASSED


def test_an_interrupt_in_the_tests_leaves_the_result_incomplete(tmp_path: Path) -> None:
    observer = Steps()
    observer.stop_at = ("run_started", Role.CRASH, None, 0)
    found = minimised_by(tmp_path, killable(), observer)
    assert not found.complete
    assert found.config.options == {"cache": 1, "threads": 1}


def test_an_interrupt_in_a_step_leaves_the_result_incomplete(tmp_path: Path) -> None:
    observer = Steps()
    observer.stop_at = ("step_begins", Kind.OPTION, "threads", 2, 6)
    found = minimised_by(tmp_path, machine(), observer)
    assert not found.complete
    assert [effect.option for effect in found.effects] == ["cache", "idle"]
    assert found.gain is None


def test_what_may_not_be_recommended_costs_no_run(tmp_path: Path) -> None:
    runner = machine()
    needed = {"cache": 1, "threads": 1}

    def refusal(tried: Arm) -> str:
        return "is not safe" if tried.config.options == needed else ""

    found = minimised_by(tmp_path, runner, refusal=refusal)
    effects = {effect.option: effect for effect in found.effects}
    assert effects["idle"].why == "without it is not safe"
    assert effects["idle"].verdict.why == "is not safe"
    assert effects["idle"].verdict.confidence == pytest.approx(EACH)
    assert effects["idle"].verdict.metric == Objective().metric
    assert needed not in [request.config.options for request in runner.requests]
    assert found.config.options == ALL_ON.options


def test_no_option_is_put_back_to_make_what_may_not_be_recommended(tmp_path: Path) -> None:
    """Each is too little to matter, all are the gain; without the least of them it is not safe."""
    gains = {"a": 1.016, "b": 1.014, "c": 1.012}
    winner, mixture = Config(dict.fromkeys(gains, 1), "winner"), {"a": 1, "b": 1}

    def rate(options: dict[str, object]) -> float:
        return 1e5 * math.prod(gain for name, gain in gains.items() if name in options)

    def refusal(tried: Arm) -> str:
        return "is not safe" if tried.config.options == mixture else ""

    runner, asked = FakeRunner(rate, noise=0.001), verification(winner)
    found = minimised_by(tmp_path, runner, refusal=refusal, asked=asked)
    assert mixture not in [request.config.options for request in runner.requests]
    assert found.config.options == winner.options
    assert found.effects[-1].why == "without it is not safe"


def crashes_without_idle(request: RunRequest) -> Outcome | None:
    alone = {"cache", "threads"} == set(request.config.options)
    return Outcome.CRASHED if alone else None


@pytest.mark.parametrize("ended_at_once", [False, True])
def test_an_option_without_which_runs_fail_stays(tmp_path: Path, ended_at_once: bool) -> None:
    observer, runner = Steps(), machine(fails=crashes_without_idle)
    observer.ends_steps = ended_at_once
    found = minimised_by(tmp_path, runner, observer)
    effects = {effect.option: effect for effect in found.effects}
    assert effects["idle"].kept
    assert effects["idle"].why == f"without it {CRASHED}"
    if ended_at_once:
        assert effects["idle"].verdict.why == CRASHED
        failed = [r for r in runner.requests if crashes_without_idle(r)]
        assert len(failed) == 1
    again = machine(fails=crashes_without_idle)
    assert minimised_by(tmp_path, again).config.options == ALL_ON.options
    assert again.requests == []


def test_the_riskiest_option_is_tried_first(tmp_path: Path) -> None:
    """Both do the same together, and the one that is tried first goes."""
    both = {"max_background_jobs": 4, "unordered_write": True}
    engine = EngineIdentity("rocksdb", "10.2.1")
    asked = replace(verification(Config(both)), baseline=Arm(engine, BASELINE))
    asked = replace(asked, candidate=Arm(engine, Config(both)))
    runner = FakeRunner(lambda options: 2e5 if options else 1e5, 0.001, engine=engine)
    observer = Steps()
    found = minimised_by(tmp_path, runner, observer, asked=asked)
    tried = [option for kind, option, *_ in observer.of("step_begins") if kind is Kind.OPTION]
    assert tried == ["unordered_write", "max_background_jobs"]
    assert found.config.options == {"max_background_jobs": 4}


def test_an_option_that_no_catalogue_has_is_as_risky_as_any(tmp_path: Path) -> None:
    engine = EngineIdentity("rocksdb", "10.2.1")
    asked = replace(verification(), baseline=Arm(engine, BASELINE), candidate=Arm(engine, ALL_ON))
    observer = Steps()
    minimised_by(tmp_path, machine(engine=engine), observer, asked=asked)
    tried = [option for kind, option, *_ in observer.of("step_begins") if kind is Kind.OPTION]
    assert tried == ["cache", "idle", "threads"]


# --- one step


@pytest.fixture
def plans(monkeypatch: pytest.MonkeyPatch) -> list[ProofPlan]:
    """What each step may take."""
    seen: list[ProofPlan] = []
    prove = minimise_file.prove

    def noted(*arguments: Any, **named: Any) -> Verdict | None:
        seen.append(named["plan"])
        return prove(*arguments, **named)

    monkeypatch.setattr(minimise_file, "prove", noted)
    return seen


class OneByOne:
    """Steps of a minimisation on the clock of the fake runner, to which a run takes a second."""

    def __init__(self, folder: StudyFolder, time_s: float | None = None) -> None:
        self.runner, self.observer = machine(), Steps()
        plan = ProofPlan(pairs=20, deadline_s=time_s, smallest_effect=0.02)
        measurer = measurer_of(folder, self.runner, self.observer, self.runner)
        self.steps = PairedSteps(verification(plan=plan), measurer, self.observer)

    def __call__(self, kind: Kind, to_come: int, off: str = "") -> Comparison:
        without = Config({name: 1 for name in GAINS if name != off} if off else {})
        found = self.steps(without, ALL_ON, Step(kind, 0.99, to_come, off))
        assert found is not None
        return found


LEAST = pairs_at_least(0.99)  # a pair takes 2 s


def test_every_step_has_its_share_of_the_time_that_is_left(
    folder: StudyFolder, plans: list[ProofPlan]
) -> None:
    ask = OneByOne(folder, time_s=500.0)
    assert ask(Kind.WHOLE, 5).verdict.outcome is VerdictOutcome.BETTER
    gain_s = ask.runner.now_s  # which the last step will take again
    assert gain_s >= 2 * LEAST
    ask(Kind.OPTION, 4, "cache")
    now_s = ask.runner.now_s
    ask(Kind.LOSS, 1)
    ask(Kind.GAIN, 0)
    shares = [plan.deadline_s for plan in plans]
    assert shares[:3] == [500.0, (500.0 - 2 * gain_s) / 4, 500.0 - now_s - gain_s]
    # The pairs of the two last steps were there from the first.
    assert shares[3] == 500.0 - ask.runner.now_s
    assert {(plan.confidence, plan.pairs, plan.smallest_effect) for plan in plans} == {
        (0.99, 20, 0.02)
    }  # fmt: skip
    assert ask.observer.of("warning") == []
    assert [told[3] for told in ask.observer.of("step_begins")] == [6, 6, 6, 6]


def test_without_a_budget_no_step_has_a_deadline(
    folder: StudyFolder, plans: list[ProofPlan]
) -> None:
    ask = OneByOne(folder)
    ask(Kind.WHOLE, 5)
    ask(Kind.OPTION, 4, "idle")
    assert [plan.deadline_s for plan in plans] == [None, None]
    assert ask.observer.of("warning") == []


def test_a_budget_that_is_too_short_for_the_steps_is_said(folder: StudyFolder) -> None:
    ask = OneByOne(folder, time_s=100.0)
    ask(Kind.WHOLE, 5)
    gain_s = round(ask.runner.now_s)
    needed_s = 4 * LEAST * 2 + gain_s
    assert ask.observer.of("warning") == [
        (
            f"{format_duration(100 - gain_s)} are left for 5 steps, which take at least {LEAST} "
            f"pairs each to prove anything, about {format_duration(needed_s)} in all: an option of "
            "which nothing is known is kept",
        )
    ]


def test_a_budget_that_just_suffices_is_not_warned_of(folder: StudyFolder, tmp_path: Path) -> None:
    ask = OneByOne(folder)
    ask(Kind.WHOLE, 5)
    gain_s = ask.runner.now_s
    enough_s = gain_s + 4 * LEAST * 2 + gain_s
    for time_s, warnings in ((enough_s, 0), (enough_s - 1.0, 1)):
        with open_folder(tmp_path / f"{time_s}") as other:
            ask = OneByOne(other, time_s)
            ask(Kind.WHOLE, 5)
            assert len(ask.observer.of("warning")) == warnings


@pytest.mark.parametrize(("time_s", "kept"), [(400.0, 2), (150.0, 2), (60.0, 3)])
def test_what_is_not_known_when_the_time_is_over_is_kept(
    folder: StudyFolder, time_s: float, kept: int
) -> None:
    """The closing proof has its share of the time, however little there is."""
    ask = OneByOne(folder, time_s)
    found = minimise(BASELINE, ALL_ON, ask.steps, confidence=0.95)
    assert ask.runner.now_s <= time_s + 2.0
    assert found.is_proven
    assert len(found.kept) == kept
    if kept == 3:
        assert all(effect.why.startswith("not known: ") for effect in found.kept)


def test_a_step_says_how_runs_of_either_side_failed(folder: StudyFolder) -> None:
    ask = OneByOne(folder)
    ask.runner.fails = lambda request: (
        Outcome.TIMEOUT if request.config.options == ALL_ON.options else None
    )
    found = ask(Kind.OPTION, 4, "idle")
    assert (found.baseline_failure, found.candidate_failure) == (
        "", "a run ended timeout (made to end timeout)"
    )  # fmt: skip


def test_a_step_that_is_interrupted_says_nothing(folder: StudyFolder) -> None:
    ask = OneByOne(folder)
    ask.observer.stop.set()
    assert ask.steps(BASELINE, ALL_ON, Step(Kind.WHOLE, 0.99, 5)) is None


# --- differences that make none


ROCKSDB = EngineIdentity("rocksdb", "10.2.1")


@pytest.mark.parametrize(
    ("baseline", "candidate", "left_over", "same"),
    [
        # One side says what the other leaves to the engine's default.
        ({}, {"write_buffer_size": 64 << 20}, {}, ("write_buffer_size",)),
        (
            {"write_buffer_size": "67108864"},
            {},
            {"write_buffer_size": "67108864"},
            ("write_buffer_size",),
        ),
        ({}, {"write_buffer_size": 1 << 20}, {"write_buffer_size": 1 << 20}, ()),
        # Only what differs is told, and one that is the same does not hide the next.
        (
            {"max_background_jobs": 3},
            {"max_background_jobs": 4, "write_buffer_size": 64 << 20},
            {"max_background_jobs": 4},
            ("write_buffer_size",),
        ),
        # RocksDB reads `64M` as the number that it stands for.
        ({}, {"write_buffer_size": "64M"}, {}, ("write_buffer_size",)),
        # Of what no catalogue knows, nothing is known to be the default.
        ({}, {"unheard_of": 1}, {"unheard_of": 1}, ()),
    ],
)
def test_a_difference_to_the_default_that_is_none_goes(
    baseline: dict[str, OptionValue],
    candidate: dict[str, OptionValue],
    left_over: dict[str, OptionValue],
    same: tuple[str, ...],
) -> None:
    found = without_same_values(Config(baseline), Config(candidate, "winner"), ROCKSDB)
    assert found == (Config(left_over, "winner"), same)


def test_the_default_is_that_of_the_engines_version() -> None:
    candidate = Config({"compaction_readahead_size": 2 << 20})
    new, old = ROCKSDB, EngineIdentity("rocksdb", "7.8.3")
    assert without_same_values(BASELINE, candidate, new)[1] == ("compaction_readahead_size",)
    assert without_same_values(BASELINE, candidate, old) == (candidate, ())
    assert without_same_values(BASELINE, candidate, EngineIdentity("rocksdb")) == (candidate, ())
