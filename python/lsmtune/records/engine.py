"""Which engine and which library: the identity that a measurement belongs to."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Build(StrEnum):
    """How an engine library was compiled."""

    RELEASE = "release"
    ASSERTIONS_ON = "assertions-on"
    UNKNOWN = "unknown"


@dataclass(frozen=True)
class EngineIdentity:
    """An engine at a known version; `library` is None for engines built into the driver."""

    name: str
    version: str | None = None
    library: str | None = None
    build: Build = Build.UNKNOWN
