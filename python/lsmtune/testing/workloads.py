"""What every family of workloads must do: read its parameters, and be a workload that runs."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import ClassVar

import pytest

from lsmtune.driver.conversation import find_driver
from lsmtune.driver.native import NativeRunner
from lsmtune.errors import InputError
from lsmtune.model.config import Config, EngineIdentity, OptionValue
from lsmtune.model.measurement import Outcome
from lsmtune.model.request import Limits, RunRequest
from lsmtune.model.workload import PhaseKind, Workload
from lsmtune.workloads.file import parse_workload_file, workload_text
from lsmtune.workloads.parameter import WorkloadFamily
from lsmtune.workloads.stated import FAMILIES, make_workload, sizes_for

_LIMITS = Limits(deadline_s=120.0, memory_bytes=4 << 30, disk_bytes=2 << 30)
_KEYS = 1000


class WorkloadSuite:
    """The tests of one family of workloads, installed by its package or lsmtune's own.

    Attributes:
        name: As `--workload` has it.
        small: Parameters of a workload that runs in a second; those that give 1,000 keys unless
            given.
    """

    name: ClassVar[str]
    small: ClassVar[Mapping[str, object]] = MappingProxyType({})

    @property
    def family(self) -> WorkloadFamily:
        """What it says of itself."""
        return FAMILIES[self.name]

    def workload(self) -> Workload:
        """A small one."""
        small = self.small or sizes_for(make_workload(self.name, {}, "suite"), _KEYS)
        return make_workload(self.name, small, "suite")

    def test_it_says_what_it_is(self) -> None:
        family = self.family
        assert family.name == self.name
        assert family.description
        for name, parameter in family.parameters.items():
            assert parameter.name == name
            assert parameter.description
            assert parameter.domain.allowed
            if parameter.default is not None:
                assert parameter.domain.read(parameter.default) == parameter.default
        assert set(family.sizes) <= set(family.parameters)
        assert not family.no_effect.keys() & family.parameters.keys()

    def test_its_defaults_are_a_workload_that_measures(self) -> None:
        workload = make_workload(self.name, {}, "suite")
        assert workload == make_workload(self.name, {}, "suite")
        assert any(phase.kind is PhaseKind.MEASURE for phase in workload.phases)
        names = [phase.name for phase in workload.phases]
        assert len(set(names)) == len(names)

    def test_it_can_be_kept_as_a_workload_file(self) -> None:
        workload = self.workload()
        assert parse_workload_file(workload_text(workload), Path("suite.yaml")) == workload

    def test_what_is_wrong_is_one_line_that_names_the_parameter(self) -> None:
        with pytest.raises(InputError, match="suite: no_such_parameter: unknown workload param"):
            make_workload(self.name, {"no_such_parameter": 1}, "suite")
        for name in (*self.family.parameters, *self.family.no_effect):
            with pytest.raises(InputError, match=f"^suite: {name}: ") as caught:
                make_workload(self.name, {name: ["no", "value"]}, "suite")
            assert "\n" not in str(caught.value)

    def test_the_driver_performs_it(self, tmp_path: Path) -> None:
        self.perform(tmp_path, EngineIdentity("memory"))

    def perform(self, folder: Path, engine: EngineIdentity, **options: OptionValue) -> None:
        """Run a small one. The engine `memory` has no merges: override the test above for those."""
        workload = self.workload()
        request = RunRequest(engine, Config(options), workload, 7, folder, _LIMITS)
        measured = NativeRunner(find_driver()).run(request)
        assert measured.outcome is Outcome.OK, measured.error
        assert [phase.name for phase in measured.phases] == [p.name for p in workload.phases]
