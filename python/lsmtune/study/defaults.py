"""What options have that a configuration leaves alone, in the engine that is measured."""

from __future__ import annotations

from collections.abc import Mapping

from lsmtune.engines.names import ENGINE_KINDS
from lsmtune.engines.options import option_catalogue
from lsmtune.records.config import OptionValue
from lsmtune.spec import Spec


def engine_defaults(spec: Spec, version: str | None) -> Mapping[str, OptionValue]:
    """Option to default: what the study file states, else what the catalogue knows.

    `version` is the engine's: a ready space has the defaults of the newest one, which may not be
    those of the engine that is measured. None stands for the newest version of the catalogue.
    """
    known = {p.name: p.default for p in spec.space.parameters}
    catalogue = option_catalogue(spec.engine_name) if spec.engine_name in ENGINE_KINDS else {}
    for name, info in catalogue.items():
        if version is None:
            known[name] = info.default
        elif info.exists_in(version):
            known[name] = info.default_in(version)
    known |= spec.stated_defaults
    return {name: value for name, value in known.items() if value is not None}
