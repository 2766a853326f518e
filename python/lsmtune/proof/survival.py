"""What a finalist keeps when things go wrong: who is to be recommended has to survive.

Its process dies (`crash_test.py`), and the power fails (`power_loss.py`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from lsmtune.experiment.measurer import Measurer
from lsmtune.experiment.schedule import Arm
from lsmtune.model.codec import encode
from lsmtune.model.request import POWER_STATES_DEFAULT
from lsmtune.model.verdict import Verdict, VerdictOutcome
from lsmtune.proof.crash_test import (
    WHAT_IT_IS,
    CrashOutcome,
    CrashTest,
    crash_line,
    crash_test,
    strictest,
)
from lsmtune.proof.power_loss import PowerTest, power_line, power_test


@dataclass(frozen=True)
class SurvivalPlan:
    """Which tests are made: `no_crash_test` and `no_power_test` are what the user said against one.

    Empty: it is made, the power test with `power_states` states.
    """

    no_crash_test: str = ""
    no_power_test: str = ""
    power_states: int = POWER_STATES_DEFAULT

    @property
    def expected_s(self) -> float:
        """About how long the tests take."""
        crash = 0.0 if self.no_crash_test else _CRASH_S
        return crash + (0.0 if self.no_power_test else _RECORDED_S + self.power_states * _STATE_S)


BOTH = SurvivalPlan()
# RocksDB on two cores, as measured: a load that is killed and read back; one that is recorded, and
# each state of that.
_CRASH_S, _RECORDED_S, _STATE_S = 3.0, 1.5, 0.12


@dataclass(frozen=True)
class Survival:
    """What the tests of a configuration say; None where one was not called for."""

    crash: CrashTest | None = None
    power: PowerTest | None = None

    def lines(self) -> list[str]:
        """One line for each, for people."""
        crash = [] if self.crash is None else [f"crash test: {crash_line(self.crash)}"]
        power = [] if self.power is None else [f"power loss: {power_line(self.power)}"]
        return crash + power

    def document(self) -> Mapping[str, object]:
        """The same with stable keys and JSON values."""
        return {"crash_test": encode(self.crash), "power_test": encode(self.power)}


UNTESTED = Survival()


@dataclass(frozen=True)
class Survived:
    """A verdict in the light of the tests."""

    verdict: Verdict
    survival: Survival = UNTESTED


def survived(
    verdict: Verdict, candidate: Arm, measurer: Measurer, *, study_seed: int, plan: SurvivalPlan
) -> Survived | None:
    """`verdict`, if `candidate` keeps what its durability class promises.

    A candidate that is not `better` is nobody's finalist, and not tested. One that fails is
    `worse`, like one that lost data in a run, and is not tested further. What could not be done
    changes nothing. None when the measurer's stop event ended it; raises what the tests raise.
    """
    if verdict.outcome is not VerdictOutcome.BETTER:
        return Survived(verdict)
    durability = strictest(measurer.workloads).durability
    crash: CrashTest | None = CrashTest(CrashOutcome.NOT_DONE, durability, why=plan.no_crash_test)
    if not plan.no_crash_test:
        crash = crash_test(candidate, measurer, study_seed=study_seed)
    if crash is None:
        return None
    if crash.outcome is CrashOutcome.FAILED:
        return Survived(
            verdict.but(VerdictOutcome.WORSE, f"{crash.why} ({WHAT_IT_IS})"), Survival(crash)
        )
    engine, why = candidate.engine.name, plan.no_power_test
    power: PowerTest | None = PowerTest(CrashOutcome.NOT_DONE, engine, durability, why=why)
    if not plan.no_power_test:
        power = power_test(candidate, measurer, study_seed=study_seed, tries=plan.power_states)
    if power is None:
        return None
    if power.outcome is CrashOutcome.FAILED:
        verdict = verdict.but(VerdictOutcome.WORSE, f"{power.why} (power loss)")
    return Survived(verdict, Survival(crash, power))
