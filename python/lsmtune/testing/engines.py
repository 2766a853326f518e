"""What every engine must do behind the driver: keep what is written, and refuse what it has not.

The suite in the driver (`cargo test --test conformance plugin`) says more, of each function; this
one needs nothing but an installed lsmtune.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import ClassVar

import pytest

from lsmtune.driver.conversation import find_driver
from lsmtune.driver.native import NativeRunner, probe
from lsmtune.engines.catalogue import has_catalogue, option_catalogue
from lsmtune.engines.libraries import find_library
from lsmtune.model.config import Config, EngineIdentity, OptionValue
from lsmtune.model.measurement import Measurement, Outcome
from lsmtune.model.request import Limits, RunRequest
from lsmtune.model.workload import Durability, Phase, PhaseKind, Workload

_NUM = 5000
_LIMITS = Limits(deadline_s=120.0, memory_bytes=4 << 30, disk_bytes=2 << 30)


def _measured(operation: str, threads: int = 1) -> Phase:
    count = _NUM // threads
    return Phase(
        operation, PhaseKind.MEASURE, operation, operations_per_thread=count, threads=threads
    )


_LOAD = Phase("load", PhaseKind.LOAD, "filluniquerandom", operations_per_thread=_NUM)
_SETTLE = Phase("settle", PhaseKind.SETTLE)
_READS = (_measured("readrandom", 2), _measured("seekrandom"), _measured("readseq"))
_WRITES = (_measured("overwrite", 2), _measured("readmissing"), _measured("deleterandom"))


class EngineSuite:
    """The tests of one engine, whose library is found by its name.

    Attributes:
        name: As `--engine` has it.
        small: An option that makes memtables small, and the value.
        mistyped: Names that are none, and the one that each was meant to be.
        bad_values: Options with values that the engine does not take.
        durabilities: Those that it can provide.
        own_way: Options that are not tried at the ends of their ranges: a run decides them, or the
            library was built with a part of their values.
    """

    name: ClassVar[str]
    small: ClassVar[tuple[str, OptionValue] | None] = None
    mistyped: ClassVar[Sequence[tuple[str, str]]] = ()
    bad_values: ClassVar[Sequence[tuple[str, OptionValue]]] = ()
    durabilities: ClassVar[Sequence[str]] = ("sync", "wal", "none")
    own_way: ClassVar[Sequence[str]] = ()

    def library(self) -> Path:
        """Where its library is."""
        return find_library(self.name).path

    def run(
        self,
        folder: Path,
        phases: Sequence[Phase],
        options: Mapping[str, OptionValue] | None = None,
        durability: str = "wal",
    ) -> Measurement:
        """One run of `phases` in `folder`, with the driver that commands use."""
        workload = Workload("suite", tuple(phases), num=_NUM, durability=Durability(durability))
        folder.mkdir()
        engine = EngineIdentity(self.name, None, str(self.library()))
        request = RunRequest(engine, Config(options or {}), workload, 7, folder, _LIMITS)
        return NativeRunner(find_driver()).run(request)

    def test_its_library_says_what_it_is(self, tmp_path: Path) -> None:
        probed = probe(find_driver(), self.name, self.library(), tmp_path)
        assert probed.engine.name == self.name
        assert probed.engine.version
        assert probed.engine.version[0].isdigit()

    @pytest.mark.parametrize("durability", [each.value for each in Durability])
    def test_what_is_written_is_found_and_a_durability_that_it_has_not_is_refused(
        self, tmp_path: Path, durability: str
    ) -> None:
        options = {} if self.small is None else dict([self.small])
        phases = (_LOAD, _SETTLE, *_READS, *_WRITES, _SETTLE, _measured("readseq"))
        named = [replace(each, name=f"{place}-{each.name}") for place, each in enumerate(phases)]
        measured = self.run(tmp_path / "run", named, options, durability)
        if durability in self.durabilities:
            # The read-back found every key that it looked up, and every read was checked.
            assert measured.outcome is Outcome.OK, measured.error
            assert len(measured.phases) == len(named)
        else:
            assert measured.outcome is Outcome.INVALID
            assert "durability" in str(measured.error)

    def test_its_options_take_both_ends_of_their_ranges(self, tmp_path: Path) -> None:
        if not has_catalogue(self.name):
            pytest.skip("it lists no options")
        listed = [info for info in option_catalogue(self.name).values() if info.searchable]
        known = [info for info in listed if info.name not in self.own_way]
        assert known
        ends: list[dict[str, OptionValue]] = [{}, {}, {}]
        for info in known:
            bounds = (each for each in (info.low, info.high) if each is not None)
            choices = info.choices or tuple(bounds)
            for index, values in enumerate(ends):
                values[info.name] = choices[index % len(choices)]
        for index, values in enumerate(ends):
            # Buffers of the largest size are not filled, and need not be.
            measured = self.run(tmp_path / str(index), (_LOAD, _READS[0]), values)
            assert measured.outcome is Outcome.OK, measured.error

    def test_an_option_that_it_has_not_is_named(self, tmp_path: Path) -> None:
        for index, (mistyped, meant) in enumerate((*self.mistyped, ("no_such_option_zz", ""))):
            measured = self.run(tmp_path / str(index), (_LOAD,), {mistyped: 1})
            assert measured.outcome is Outcome.INVALID
            assert measured.error is not None
            assert mistyped in str(measured.error)
            assert measured.error.nearest[:1] == ((meant,) if meant else ())

    def test_a_value_that_it_does_not_take_is_named(self, tmp_path: Path) -> None:
        for index, (option, value) in enumerate(self.bad_values):
            measured = self.run(tmp_path / str(index), (_LOAD,), {option: value})
            assert measured.outcome is Outcome.INVALID, (option, value)
            assert option in str(measured.error)
