"""One part of a workload that was fitted to a trace, and how well it fits."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True)
class FittedPart:
    """What was fitted (`mix`, `keys`, ...), by which `model`, and how far it is from the trace.

    `distances` are pairs of a measure's name and its value, 0 where nothing differs; a part whose
    first distance is above `limit` does not fit. `curve` has rows of (x, trace, model), where there
    is something to draw.
    """

    name: str
    model: str
    distances: tuple[tuple[str, float], ...]
    limit: float
    warnings: tuple[str, ...] = ()
    curve: tuple[tuple[float, float, float], ...] = field(default=(), repr=False)

    @property
    def fits(self) -> bool:
        """Whether the first distance is within the limit."""
        return not self.distances or self.distances[0][1] <= self.limit
