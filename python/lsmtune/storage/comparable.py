"""Which parts of a study make its measurements comparable, and which of them changed."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from typing import Protocol

from lsmtune.records.objective import Direction
from lsmtune.storage.codec import encode


class StudyDescription(Protocol):
    """What storage has to know of a Spec, which it may not import."""

    @property
    def text(self) -> str:
        """The study file as written."""

    @property
    def directions(self) -> Sequence[Direction]:
        """Which way each objective is better."""

    def comparable_parts(self) -> Mapping[str, object]:
        """All that makes two of its runs comparable, by name: records and JSON values."""


def part_digests(study: StudyDescription) -> dict[str, str]:
    """A digest of each comparable part."""
    return {name: _digest(part) for name, part in study.comparable_parts().items()}


def changed_parts(stored: Mapping[str, str], now: Mapping[str, str]) -> list[str]:
    """The names of the parts that differ."""
    return [name for name in now if stored.get(name) != now[name]]


def _digest(part: object) -> str:
    text = json.dumps(encode(part), sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()
