"""What keeps a configuration from being recommended: unsafe options, and too much memory."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from lsmtune.engines.catalogue import option_catalogue
from lsmtune.engines.library import ENGINE_KINDS
from lsmtune.engines.memory_model import MemoryModel, memory_model
from lsmtune.model.config import Config, EngineIdentity, option_text
from lsmtune.model.request import Limits
from lsmtune.model.workload import Durability
from lsmtune.study.safety import UnsafeUse, check_allowance, unsafe_uses
from lsmtune.units import format_bytes

ALLOW_FLAG = "--allow-unsafe"
_PARTS_SHOWN = 2  # of a memory model: the rest is small


@dataclass(frozen=True)
class Doubts:
    """What speaks against one Config, under `durability` and `limits`, before it has run.

    `memory` is the model of a Config that may come to use more than the limit, else None.
    """

    engine: str
    unsafe: tuple[UnsafeUse, ...]
    durability: Durability
    memory: MemoryModel | None
    limits: Limits

    def reasons(self, allowed: Collection[str] = ()) -> list[str]:
        """A clause for each doubt, less the unsafe options that the user has `allowed`."""
        refused = [self._unsafe_text(use) for use in self.unsafe if use.option not in allowed]
        return refused + self._memory_texts()

    def warnings(self, allowed: Collection[str]) -> list[str]:
        """A clause for each unsafe option that the user has `allowed`."""
        return [self._unsafe_text(use) for use in self.unsafe if use.option in allowed]

    def _unsafe_text(self, use: UnsafeUse) -> str:
        what = f"{use.option}={option_text(use.value)}"
        info = option_catalogue(self.engine).get(use.option)
        risks = ", ".join(info.risk).replace("_", " ") if info else ""
        risk = f"; risk: {risks}" if risks else ""
        return f"{what} is unsafe under durability {self.durability.value} ({use.reason}{risk})"

    def _memory_texts(self) -> list[str]:
        if self.memory is None:
            return []
        largest = sorted(self.memory.parts.items(), key=lambda part: -part[1])[:_PARTS_SHOWN]
        parts = ", ".join(f"{name} {format_bytes(size)}" for name, size in largest)
        total, limit = self.memory.total_bytes, self.limits.memory_bytes
        return [
            f"by the memory model it may come to use {format_bytes(total)} ({parts}), "
            f"more than the limit of {format_bytes(limit)} (--memory)"
        ]


def doubts(
    engine: EngineIdentity, config: Config, durability: Durability, limits: Limits, source: str
) -> Doubts:
    """What speaks against `config`.

    Raises `InputError`, naming `source`, for a value that the memory model cannot read.
    """
    model = None
    if engine.name in ENGINE_KINDS:
        version = engine.version or ""
        model = memory_model(engine.name, config.options, version=version, source=source)
        model = model if model.total_bytes > limits.memory_bytes else None
    unsafe = unsafe_uses(engine.name, config.options, durability)
    return Doubts(engine.name, unsafe, durability, model, limits)


def check_allowed(allowed: Sequence[str], engine: str, several: Sequence[Doubts]) -> None:
    """Raises `InputError` for an allowance of `--allow-unsafe` that none of `several` needs."""
    used = {use.option for each in several for use in each.unsafe}
    unused = "no configuration here has it with an unsafe value"
    for name in allowed:
        check_allowance(name, engine, used, ALLOW_FLAG, "", unused)
