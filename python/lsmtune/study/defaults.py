"""What options have that a configuration leaves alone, in the engine that is measured."""

from __future__ import annotations

from collections.abc import Mapping

from lsmtune.engines.options import catalogue_defaults
from lsmtune.records.config import OptionValue
from lsmtune.spec import Spec


def engine_defaults(spec: Spec, version: str | None) -> Mapping[str, OptionValue]:
    """Option to default: what the study file states, else what the catalogue knows.

    `version` is the engine's: a ready space has the defaults of the newest one, which may not be
    those of the engine that is measured. None stands for the newest version of the catalogue.
    """
    own = {p.name: p.default for p in spec.space.parameters if p.default is not None}
    return {**own, **catalogue_defaults(spec.engine_name, version), **spec.stated_defaults}
