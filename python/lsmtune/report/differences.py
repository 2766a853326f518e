"""What differs between two configurations: as a table, in lines, and in one line."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from lsmtune.engines.differences import Difference, differences
from lsmtune.model.config import Config, OptionValue
from lsmtune.report import words as text
from lsmtune.report.document import Cell, Column, Paragraph, Table

_NOT_SET = "not set"  # and nothing is known of what the engine does then


def option_cell(value: OptionValue | None, unit: str, *, is_set: bool) -> Cell:
    """What a configuration has of an option: what it sets, or else the engine's default."""
    if is_set:
        return Cell(text.option_with_size(value, unit))
    default = _NOT_SET if value is None else f"{text.option_with_size(value, unit)} (default)"
    return Cell(default, tone="sys")


def here_cell(each: Difference) -> Cell:
    """What the one configuration has of the option."""
    return option_cell(each.value, each.unit, is_set=each.is_set)


def there_cell(each: Difference) -> Cell:
    """What the other configuration has of it."""
    return option_cell(each.other_value, each.unit, is_set=each.other_is_set)


def difference_table(differing: Sequence[Difference], here: str, there: str) -> Table | Paragraph:
    """Each option with what the configurations `here` and `there` have of it."""
    if not differing:
        return Paragraph("No option differs.", "quiet")
    columns = (
        Column("option", key="option", number=False),
        Column(here, here_cell, number=False),
        Column(there, there_cell, number=False),
    )
    return Table.of(columns, differing, "Options that differ", style="options")


def difference_lines(
    config: Config,
    baseline: Config,
    engine: str,
    defaults: Mapping[str, OptionValue],
    most: int | None = None,
) -> list[str]:
    """`most` of the options that differ, each beside the baseline's value; the rest is counted."""
    differing = differences(engine, config.options, baseline.options, defaults)
    lines = [
        f"{each.option} = {_value(each.value, each.unit)}   "
        f"(baseline: {_value(each.other_value, each.unit)})"
        for each in differing[:most]
    ]
    more = len(differing) - len(lines)
    same = len(config.options.keys() - {each.option for each in differing})
    lines += [f"and {more} more"] if more else []
    return lines + ([f"{'and' if lines else 'all'} {same} as in the baseline"] if same else [])


def differences_text(differing: Sequence[Difference], width: int) -> str:
    """`write_buffer_size=4MiB, max_background_jobs=6, 14 more`: as many as `width` characters hold.

    At least one; the last part of a dotted name stands for the whole.
    """
    options = [f"{d.option.rpartition('.')[2]}={_value(d.value, d.unit)}" for d in differing]
    for count in range(len(options), 0, -1):
        more = [f"{len(options) - count} more"] if count < len(options) else []
        line = ", ".join([*options[:count], *more])
        if len(line) <= width or count == 1:
            return line
    return ""


def _value(value: OptionValue | None, unit: str) -> str:
    return _NOT_SET if value is None else text.option(value, unit)
