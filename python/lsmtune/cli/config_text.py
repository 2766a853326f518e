"""Configurations in words: what of one differs from another, with the units that people use."""

from __future__ import annotations

from lsmtune.engines.differences import differences, known_defaults
from lsmtune.model.config import Config, EngineIdentity, OptionValue, option_text
from lsmtune.report.differences import NOT_SET
from lsmtune.report.words import option


def difference_lines(
    config: Config, baseline: Config, engine: EngineIdentity, most: int | None = None
) -> list[str]:
    """`most` of the options that differ, each beside the baseline's value; the rest is counted."""

    def told(value: OptionValue | None, unit: str) -> str:
        return NOT_SET if value is None else option(value, unit)

    found = differences(engine.name, config.options, baseline.options, known_defaults(engine))
    lines = [
        f"{each.option} = {told(each.value, each.unit)}   "
        f"(baseline: {told(each.other_value, each.unit)})"
        for each in found[:most]
    ]
    more, same = len(found) - len(lines), len(config.options.keys() - {f.option for f in found})
    lines += [f"and {more} more"] if more else []
    return lines + ([f"{'and' if lines else 'all'} {same} as in the baseline"] if same else [])


def config_text(config: Config) -> str:
    """The options as every command takes them: `name=value,name=value`."""
    pairs = (f"{name}={option_text(value)}" for name, value in config.options.items())
    return ",".join(pairs) or "default"


def config_document(config: Config) -> dict[str, object]:
    """A configuration as the commands' JSON has it."""
    return {"label": config.label, "options": dict(config.options)}
