"""An axis of a sweep: a workload parameter or an engine option, and the values that it takes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from lsmtune.records.config import OptionValue, option_text


class AxisKind(StrEnum):
    """What an axis sets; the values are also the words of the sweep file."""

    WORKLOAD = "workload"
    OPTION = "options"


@dataclass(frozen=True)
class Axis:
    """`values` of the workload parameter or option `name`, in the order in which they are shown.

    `texts` are the values as the user wrote them (`4MiB`), by which cells are named.
    """

    kind: AxisKind
    name: str
    values: tuple[OptionValue, ...]
    texts: tuple[str, ...]

    @classmethod
    def of(
        cls,
        kind: AxisKind,
        name: str,
        values: Sequence[OptionValue],
        texts: Sequence[str] | None = None,
    ) -> Axis:
        """An axis; without `texts` the values are named as the engines read them."""
        told = tuple(option_text(value) for value in values) if texts is None else tuple(texts)
        return cls(kind, name, tuple(values), told)

    @property
    def field(self) -> str:
        """Where the axis stands in a sweep file, dotted."""
        return f"axes.{self.kind.value}.{self.name}"
