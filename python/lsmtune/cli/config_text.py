"""Configurations in words: what of one differs from another, with the units that people use."""

from __future__ import annotations

from collections.abc import Mapping

from lsmtune.engines.catalogue import catalogue_defaults, has_catalogue, option_catalogue
from lsmtune.model.config import Config, EngineIdentity, OptionValue, option_text
from lsmtune.proof.minimise import differing_options, told_apart
from lsmtune.report.words import option

# None: the other one sets the option, and what it is otherwise is not known.
Differences = Mapping[str, OptionValue | None]


def differences(config: Config, baseline: Config, engine: EngineIdentity) -> Differences:
    """What `config` has in the options in which it differs from `baseline`, in order of names."""
    defaults = catalogue_defaults(engine.name, engine.version) if engine.version else {}
    least, _ = told_apart(baseline, config, engine)
    names = differing_options(baseline, least)
    return {name: least.options.get(name, defaults.get(name)) for name in names}


def differences_text(differs: Differences, engine_name: str, width: int) -> str:
    """`write_buffer_size=4MiB, max_background_jobs=6, 14 more`: as many as `width` characters hold.

    At least one; the last part of a dotted name stands for the whole.
    """
    told = [
        f"{name.rpartition('.')[2]}={value_text(engine_name, name, value)}"
        for name, value in differs.items()
    ]
    for count in range(len(told), 0, -1):
        more = [f"{len(told) - count} more"] if count < len(told) else []
        line = ", ".join([*told[:count], *more])
        if len(line) <= width or count == 1:
            return line
    return ""


def difference_lines(
    config: Config, baseline: Config, engine: EngineIdentity, most: int | None = None
) -> list[str]:
    """`most` of the options that differ, each beside the baseline's value; the rest is counted."""
    defaults = catalogue_defaults(engine.name, engine.version) if engine.version else {}
    differs = differences(config, baseline, engine)
    shown = list(differs.items())[:most]
    lines = []
    for name, value in shown:
        before = value_text(engine.name, name, baseline.options.get(name, defaults.get(name)))
        lines.append(f"{name} = {value_text(engine.name, name, value)}   (baseline: {before})")
    more, same = len(differs) - len(shown), len(config.options.keys() - differs.keys())
    lines += [f"and {more} more"] if more else []
    return lines + ([f"{'and' if lines else 'all'} {same} as in the baseline"] if same else [])


def value_text(engine_name: str, name: str, value: OptionValue | None) -> str:
    """A value as a study file may say it: `600MiB` where that is exact, else as it is."""
    if value is None:
        return "the engine's default" if has_catalogue(engine_name) else "not set"
    catalogue = option_catalogue(engine_name) if has_catalogue(engine_name) else {}
    return option(value, catalogue[name].unit if name in catalogue else "")


def config_text(config: Config) -> str:
    """The options as every command takes them: `name=value,name=value`."""
    pairs = (f"{name}={option_text(value)}" for name, value in config.options.items())
    return ",".join(pairs) or "default"


def config_document(config: Config) -> dict[str, object]:
    """A configuration as the commands' JSON has it."""
    return {"label": config.label, "options": dict(config.options)}
