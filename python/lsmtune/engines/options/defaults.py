"""The defaults of an engine's options, for all who ask what an option has that nothing sets."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from types import MappingProxyType

from lsmtune.engines.names import ENGINE_KINDS
from lsmtune.engines.options.info import option_catalogue
from lsmtune.records.config import OptionValue


@functools.cache
def catalogue_defaults(engine: str | None, version: str | None = None) -> Mapping[str, OptionValue]:
    """Option to default, of the options of `version` of which the catalogue knows one.

    None stands for the newest version that the catalogue knows. Empty for an engine without a
    catalogue.
    """
    if engine is None or engine not in ENGINE_KINDS:
        return MappingProxyType({})
    found = {
        name: info.default if version is None else info.default_in(version)
        for name, info in option_catalogue(engine).items()
        if version is None or info.exists_in(version)
    }
    return MappingProxyType({name: value for name, value in found.items() if value is not None})
