"""A Config, which is a complete, valid assignment of engine options, and the engine it is for."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from types import MappingProxyType

OptionValue = str | int | float | bool


@dataclass(frozen=True)
class Config:
    """Options that differ from the engine's defaults, in the engine's own spelling.

    `options` maps an option's name to its value; nested options use a dot
    (`block_based_table_factory.block_size`). `label` says where the Config came from
    (`default`, a file's name, `study.yaml#17`).
    """

    options: Mapping[str, OptionValue] = field(default_factory=dict)
    label: str = "default"

    def __post_init__(self) -> None:
        object.__setattr__(self, "options", MappingProxyType(dict(sorted(self.options.items()))))

    def engine_options(self) -> dict[str, str]:
        """The options as text the engines parse: booleans as `true`/`false`."""
        return {name: option_text(value) for name, value in self.options.items()}


def option_text(value: OptionValue) -> str:
    """`value` as the engines' option parsers read it."""
    if isinstance(value, bool):
        return "true" if value else "false"
    return repr(value) if isinstance(value, float) else str(value)


class Build(StrEnum):
    """How an engine library was compiled."""

    RELEASE = "release"
    OWN_SNAPPY = "release-own-snappy"
    """With lsmtune's Snappy in the place of the library's (docs/measuring.md)."""
    SLOW_SNAPPY = "release-slow-snappy"
    """Its Snappy was compiled without optimisation."""
    ASSERTIONS_ON = "assertions-on"
    UNKNOWN = "unknown"

    @property
    def is_release(self) -> bool:
        """Whether it is one that a verdict for a deployment can rest on."""
        return self in (Build.RELEASE, Build.OWN_SNAPPY)


@dataclass(frozen=True)
class EngineIdentity:
    """An engine at a known version; `library` is None for engines built into the driver."""

    name: str
    version: str | None = None
    library: str | None = None
    build: Build = Build.UNKNOWN

    @property
    def title(self) -> str:
        """`rocksdb 10.2.1`; the name alone where the version is not known."""
        return f"{self.name} {self.version}" if self.version else self.name
