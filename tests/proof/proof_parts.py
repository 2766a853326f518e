"""A folder, an observer and a proof for tests, without a study."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest
from fake_runner import ENGINE, MIB, FakeRunner, Recording

from lsmtune.driver.runner import Runner
from lsmtune.experiment.folder import StudyFolder
from lsmtune.experiment.measurer import Databases, Measurer
from lsmtune.experiment.schedule import Arm, Slot
from lsmtune.experiment.store import StoredMeasurement
from lsmtune.model.config import Config
from lsmtune.model.goal import Direction, Goal, Objective
from lsmtune.model.request import LIMITS_DEFAULT
from lsmtune.model.verdict import Verdict
from lsmtune.model.workload import Phase, PhaseKind, Workload
from lsmtune.proof.file_log import Kind, Record
from lsmtune.proof.paired import ProofPlan, prove

BASELINE = Config({}, "default")
CANDIDATE = Config({"write_buffer_size": 8 * MIB}, "x#1")
PHASE = Phase("fillrandom", PhaseKind.MEASURE, "fillrandom", operations_per_thread=1000)
WORKLOAD = Workload("fillrandom", (PHASE,), num=1000)


def arm(config: Config) -> Arm:
    return Arm(ENGINE, config)


def open_folder(path: Path) -> StudyFolder:
    return StudyFolder.create_or_resume(path, {}, text="{}", directions=(Direction.MAXIMIZE,))


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[StudyFolder]:
    with open_folder(tmp_path / "s") as opened:
        yield opened


class Recorder(Recording):
    """What a proof says."""

    def run_started(self, place: Slot, _arm: Arm, _workload: Workload) -> None:
        self._note("run_started", place.role, place.pair, place.workload)

    def run_finished(self, stored: StoredMeasurement) -> None:
        self._note("run_finished", stored.role, stored.pair, stored.workload)

    def pair_judged(self, verdict: Verdict) -> None:
        self._note("pair_judged", verdict)


def measurer_of(
    folder: StudyFolder,
    runner: Runner,
    observer: Recorder,
    clock: FakeRunner,
    workloads: Sequence[Workload] = (WORKLOAD,),
    databases: Databases | None = None,
) -> Measurer:
    return Measurer(
        folder,
        runner,
        workloads,
        LIMITS_DEFAULT,
        observer,
        observer.stop,
        clock.clock,
        databases=databases,
    )


def proof(
    folder: StudyFolder,
    runner: FakeRunner | None = None,
    observer: Recorder | None = None,
    *,
    candidate: Config = CANDIDATE,
    goal: Goal | None = None,
    plan: ProofPlan | None = None,
    measurer: Measurer | None = None,
    seed: int = 1,
) -> Verdict | None:
    """One call of `prove`; with the fake runner, which is no driver of ours, unless told else."""
    runner, observer = runner or FakeRunner(), observer or Recorder()
    return prove(
        arm(BASELINE),
        arm(candidate),
        goal or Goal((Objective(),)),
        measurer or measurer_of(folder, runner, observer, runner),
        study_seed=seed,
        plan=plan or ProofPlan(),
    )


def proved(folder: StudyFolder, *arguments: object, **options: object) -> Verdict:
    """The same of a proof that is not interrupted."""
    verdict = proof(folder, *arguments, **options)  # type: ignore[arg-type]
    assert verdict is not None
    return verdict


def said(*lines: object) -> list[Record]:
    """One mark for each line; a string is as it is."""
    texts = [line if isinstance(line, str) else json.dumps(line) + "\n" for line in lines]
    marks = [Record(Kind.MARKED, file=9, data=text.encode()) for text in texts]
    return [Record(Kind.HELLO, path="/db"), *marks]


def interval(operations: int, index: int = 0) -> dict[str, object]:
    return {
        "type": "interval",
        "index": index,
        "elapsed_s": 1.0,
        "interval_s": 0.001,
        "operations": 1,
        "operations_total": operations,
        "throughput_ops_s": 1.0,
        "rss_bytes": 1,
        "cpu_s": 1.0,
        "steal_s": None,
    }
