"""What the tests of a finalist make of its verdict; both tests are stand-ins here."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from fake_runner import FakeRunner
from proof_parts import CANDIDATE, WORKLOAD, Recorder, arm, measurer_of, open_folder

from lsmtune.experiment.schedule import Arm
from lsmtune.model.request import POWER_STATES_DEFAULT
from lsmtune.model.verdict import Verdict, VerdictOutcome
from lsmtune.model.workload import Durability
from lsmtune.proof import survival
from lsmtune.proof.crash_test import CrashOutcome, CrashTest
from lsmtune.proof.power_loss import PowerTest
from lsmtune.proof.survival import BOTH, UNTESTED, Survival, SurvivalPlan, Survived, survived

SYNC = Durability.SYNC
BETTER = Verdict(VerdictOutcome.BETTER, "throughput_ops_s", "maximize", 0.95, 9, why="as seen")
KEPT = CrashTest(CrashOutcome.PASSED, SYNC, 1000, 1000)
STATES = PowerTest(CrashOutcome.PASSED, "memory", SYNC, states=40, states_ordered=9)


class Stand:
    """Two tests that find what they are told to, and remember what they were asked."""

    def __init__(self, patch: pytest.MonkeyPatch, path: Path) -> None:
        self.crash: CrashTest | None = KEPT
        self.power: PowerTest | None = STATES
        self.asked: list[tuple[str, Arm, dict[str, Any]]] = []
        self.path = path
        patch.setattr(survival, "crash_test", self.crash_test)
        patch.setattr(survival, "power_test", self.power_test)

    def crash_test(self, tried: Arm, *between: object, **named: Any) -> CrashTest | None:
        assert between == self.between
        self.asked.append(("crash", tried, named))
        return self.crash

    def power_test(self, tried: Arm, *between: object, **named: Any) -> PowerTest | None:
        assert between == self.between
        self.asked.append(("power", tried, named))
        return self.power

    def __call__(self, plan: SurvivalPlan = BOTH, verdict: Verdict = BETTER) -> Survived | None:
        runner, observer = FakeRunner(), Recorder()
        workloads = (WORKLOAD, replace(WORKLOAD, durability=SYNC))
        with open_folder(self.path) as folder:
            measurer = measurer_of(folder, runner, observer, runner, workloads)
            self.between = (measurer,)
            return survived(
                verdict, arm(CANDIDATE), measurer, study_seed=7, plan=plan
            )  # fmt: skip


@pytest.fixture
def stand(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Stand:
    return Stand(monkeypatch, tmp_path)


def test_who_survives_both_stays_better(stand: Stand) -> None:
    assert stand(SurvivalPlan(power_states=12)) == Survived(BETTER, Survival(KEPT, STATES))
    assert stand.asked == [
        ("crash", arm(CANDIDATE), {"study_seed": 7}),
        ("power", arm(CANDIDATE), {"study_seed": 7, "tries": 12}),
    ]


@pytest.mark.parametrize(
    "outcome", [each for each in VerdictOutcome if each is not VerdictOutcome.BETTER]
)
def test_who_is_not_better_is_not_tested(stand: Stand, outcome: VerdictOutcome) -> None:
    verdict = replace(BETTER, outcome=outcome)
    assert stand(verdict=verdict) == Survived(verdict, UNTESTED)
    assert stand.asked == []


def test_who_fails_the_crash_test_is_worse_and_not_tested_further(stand: Stand) -> None:
    stand.crash = replace(KEPT, outcome=CrashOutcome.FAILED, why="lost 3")
    worse = replace(BETTER, outcome=VerdictOutcome.WORSE, why="lost 3 (process crash); as seen")
    assert stand() == Survived(worse, Survival(stand.crash))
    assert len(stand.asked) == 1


def test_who_fails_the_power_test_is_worse(stand: Stand) -> None:
    stand.power = replace(STATES, outcome=CrashOutcome.FAILED, why="lost 4")
    found = stand(verdict=replace(BETTER, why=""))
    worse = replace(BETTER, outcome=VerdictOutcome.WORSE, why="lost 4 (power loss)")
    assert found == Survived(worse, Survival(KEPT, stand.power))


def test_what_could_not_be_done_changes_nothing(stand: Stand) -> None:
    stand.crash = CrashTest(CrashOutcome.NOT_DONE, SYNC, why="no library")
    stand.power = PowerTest(CrashOutcome.NOT_DONE, "memory", SYNC, why="no library")
    assert stand() == Survived(BETTER, Survival(stand.crash, stand.power))


def test_what_the_user_said_against_a_test_is_its_reason(stand: Stand) -> None:
    crash = CrashTest(CrashOutcome.NOT_DONE, SYNC, why="--no-crash-test")
    power = PowerTest(CrashOutcome.NOT_DONE, "memory", SYNC, why="not asked for")
    plan = SurvivalPlan("--no-crash-test", "not asked for")
    assert stand(plan) == Survived(BETTER, Survival(crash, power))
    assert stand.asked == []
    assert stand(replace(plan, no_crash_test="")) == Survived(BETTER, Survival(KEPT, power))


@pytest.mark.parametrize("name", ["crash", "power"])
def test_an_interrupt_in_either_ends_both(stand: Stand, name: str) -> None:
    setattr(stand, name, None)
    assert stand() is None
    assert stand.asked[-1][0] == name


def test_each_test_has_a_line_and_a_part_of_the_document() -> None:
    assert Survival(KEPT, STATES).lines() == [
        "crash test: passed (1,000 acknowledged writes under durability sync; process crash)",
        "power loss: passed (40 computed states after a power loss, 9 of them such as ext4 leaves; "
        "durability sync)",
    ]
    document = Survival(KEPT, STATES).document()
    assert list(document) == ["crash_test", "power_test"]
    assert dict(document["crash_test"])["keys_checked"] == 1000  # type: ignore[call-overload]
    assert dict(document["power_test"])["states_ordered"] == 9  # type: ignore[call-overload]
    assert UNTESTED.lines() == []
    assert UNTESTED.document() == {"crash_test": None, "power_test": None}


def test_the_time_that_is_told_is_that_of_the_tests_that_are_made() -> None:
    neither = SurvivalPlan("no", "no")
    assert neither.expected_s == 0.0
    crash_s = SurvivalPlan("", "no").expected_s
    power_s = [SurvivalPlan("no", power_states=states).expected_s for states in (0, 100, 200)]
    assert 0.0 < power_s[0] < crash_s  # no state, and the load is recorded all the same
    assert power_s[2] - power_s[1] == pytest.approx(power_s[1] - power_s[0])
    assert power_s[1] - power_s[0] == pytest.approx(12.0)  # 0.12 s each, as measured
    default = SurvivalPlan("no", power_states=POWER_STATES_DEFAULT).expected_s
    assert BOTH.expected_s == pytest.approx(crash_s + default)
