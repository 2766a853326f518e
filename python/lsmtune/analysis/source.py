"""What analysis reads of a study: its description and every stored run, once, as plain values."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from lsmtune.records.config import Config, OptionValue
from lsmtune.records.objective import Objective
from lsmtune.records.verdict import Verdict
from lsmtune.records.workload import Workload
from lsmtune.space import Parameter
from lsmtune.spec import load_spec
from lsmtune.storage.folder import StudyFolder
from lsmtune.storage.measurements import StoredMeasurement

MACHINE_FACT = "machine"
_NOT_DEPLOYABLE = ("report.", "result.json")


@dataclass(frozen=True)
class StudyRecords:
    """A study as stored; everything else in analysis is a pure function of it.

    `measurements` are in the order in which they were stored. `result_files` are those of the
    study's `result/` folder that an engine or a program reads. `unsafe_allowed` maps the unsafe
    options that the study file allows to the reason why they are unsafe. `machine` is what
    the tuner noted of the machine it ran on, if it did.
    """

    name: str
    path: Path
    objective: Objective
    workload: Workload
    baseline: Config
    fixed: Mapping[str, OptionValue]
    parameters: tuple[Parameter, ...]
    measurements: tuple[StoredMeasurement, ...]
    verdict: Verdict | None = None
    result_files: tuple[Path, ...] = ()
    unsafe_allowed: Mapping[str, str] = field(default_factory=dict)
    machine: Mapping[str, str] = field(default_factory=dict)


def read_study(folder: StudyFolder) -> StudyRecords:
    """Everything that `folder` holds; raises InputError when its files cannot be read."""
    spec = load_spec(folder.path / "study.yaml")
    return StudyRecords(
        name=spec.name,
        path=folder.path.absolute(),
        objective=spec.objective,
        workload=spec.workload,
        baseline=spec.baseline,
        fixed=dict(spec.fixed),
        parameters=spec.space.parameters,
        measurements=tuple(folder.measurements.all()),
        verdict=folder.measurements.verdict(),
        result_files=_result_files(folder.result_path.absolute()),
        unsafe_allowed=dict(spec.unsafe_options),
        machine=_machine(folder),
    )


def _result_files(directory: Path) -> tuple[Path, ...]:
    if not directory.is_dir():
        return ()
    files = (path for path in directory.iterdir() if path.is_file())
    return tuple(
        sorted(path for path in files if not path.name.startswith((".", *_NOT_DEPLOYABLE)))
    )


def _machine(folder: StudyFolder) -> dict[str, str]:
    """The store's fact `machine`: an object of names and values."""
    noted = folder.measurements.fact(MACHINE_FACT)
    if not isinstance(noted, Mapping):
        return {}
    return {str(name): str(value) for name, value in noted.items() if value is not None}
