"""What every export format must do: say each option, or say that it does not."""

from __future__ import annotations

from typing import ClassVar

from lsmtune.engines.catalogue import OptionInfo, has_catalogue, option_catalogue
from lsmtune.engines.formats import EXPORTERS, exported
from lsmtune.engines.formats.base import Exported, ExportFormat, ExportRequest
from lsmtune.engines.library import ENGINE_KINDS
from lsmtune.errors import InputError
from lsmtune.model.config import OptionValue
from lsmtune.space.parameter import same_value


class ExporterSuite:
    """The tests of one export format, installed by its package or lsmtune's own.

    Attributes:
        name: As `--format` has it.
        needs_other: Whether it writes what differs from another configuration.
    """

    name: ClassVar[str]
    needs_other: ClassVar[bool] = False

    @property
    def format(self) -> ExportFormat:
        """What it says of itself."""
        return EXPORTERS[self.name]

    @property
    def engines(self) -> tuple[str, ...]:
        """Those with a catalogue that it serves."""
        return tuple(e for e in self.format.engines or tuple(ENGINE_KINDS) if has_catalogue(e))

    def read(self, text: str) -> object:
        """What a reader makes of the text; raises for one that it cannot read. Not checked here."""
        return text

    def written(self, engine: str, **options: OptionValue) -> Exported:
        """The text that says `options`, and what it leaves out."""
        other = self.defaults(engine, tuple(options)) if self.needs_other else {}
        return exported(self.name, ExportRequest(engine, options, None, "a test", other))

    def defaults(self, engine: str, names: tuple[str, ...]) -> dict[str, OptionValue]:
        """The engine's own values of these options, as far as they are known."""
        catalogue = option_catalogue(engine)
        known = {name: catalogue[name].default for name in names if name in catalogue}
        return {name: value for name, value in known.items() if value is not None}

    def test_it_says_what_it_is(self) -> None:
        assert self.format.name == self.name
        assert self.format.file_name
        assert "/" not in self.format.file_name

    def test_a_configuration_without_options_is_a_whole_text(self) -> None:
        for engine in self.engines:
            made = self.written(engine)
            self.read(made.text)
            assert made.text == self.written(engine).text
            if self.format.comment:
                assert made.text.startswith(self.format.comment)

    def test_every_option_is_said_or_said_to_be_left_out(self) -> None:
        for engine in self.engines:
            lost = []
            for info in option_catalogue(engine).values():
                value = _another_value(info)
                if value is None:
                    continue
                made, without = self.written(engine, **{info.name: value}), self.written(engine)
                self.read(made.text)
                said = made.text != without.text
                left_out = [each.option for each in made.left_out]
                if not said and info.name not in left_out:
                    lost.append(info.name)
                assert all(each.why for each in made.left_out)
            assert lost == []

    def test_an_unknown_option_is_written_as_it_is_or_named_in_a_refusal(self) -> None:
        for engine in self.engines:
            try:
                said = self.written(engine, no_such_option=1).text
            except InputError as refused:
                said = str(refused).partition("\n")[0]
            assert "no_such_option" in said


def _another_value(info: OptionInfo) -> OptionValue | None:
    """A value worth searching that is not the default; None where there is none."""
    values: tuple[OptionValue, ...] = info.choices
    if info.low is not None and info.high is not None:
        values = (info.low, info.high)
    for value in values:
        if info.default is None or not same_value(value, info.default):
            return value
    return None
