"""What programs can perform of a Workload: the checks that several of them share.

Each raises one InputError whose source is the program and whose field is the workload's.
"""

from __future__ import annotations

from collections.abc import Collection

from lsmtune.errors import InputError
from lsmtune.records.workload import (
    Durability,
    PageCache,
    Phase,
    PhaseKind,
    SineRate,
    Workload,
)

NATIVE = "native"


def cannot(
    program: str, field: str, *, found: object = None, why: str = "", allowed: str = ""
) -> InputError:
    """The error for something that `program` cannot perform, and lsmtune's own driver can."""
    said = why or "it cannot perform this"
    return InputError(f"--runner {program}", field, found=found, why=said, allowed=allowed)


def check_number_keys(program: str, workload: Workload) -> None:
    """Refuses what db_bench and its like have no words for: keys of YCSB, several databases."""
    if workload.keys is not None:
        raise cannot(program, "keys", why="it has no keys of YCSB")
    if workload.key_sizes is not None:
        raise cannot(program, "key_sizes", why="its keys all have one size")
    check_one_database(program, workload)


def check_one_database(program: str, workload: Workload) -> None:
    """Refuses several databases or column families, and a page cache emptied before measuring."""
    if workload.databases != 1:
        raise cannot(program, "databases", found=workload.databases, allowed="1")
    if workload.column_families != 1:
        raise cannot(program, "column_families", found=workload.column_families, allowed="1")
    if workload.page_cache is PageCache.COLD:
        raise cannot(program, "page_cache", found="cold", allowed="warm, direct")


def check_durability(program: str, workload: Workload, can: Collection[Durability]) -> None:
    """Refuses a durability that is not among those that the program `can` do."""
    if workload.durability not in can:
        allowed = ", ".join(durability.value for durability in Durability if durability in can)
        raise cannot(program, "durability", found=workload.durability.value, allowed=allowed)


def check_closed_loop(program: str, workload: Workload, *, waves: bool = False) -> None:
    """Refuses rates, replays and companions in every phase.

    With `waves` it leaves the rate of a mix that is a sine to the caller.
    """
    for phase in workload.phases:
        wave = waves and phase.mix is not None and isinstance(phase.rate, SineRate)
        if phase.is_open_loop and not wave:
            raise cannot(
                program,
                f"{phase.name}: rate",
                why="it holds no rate by the intended start of each operation",
            )
        if phase.replay is not None:
            raise cannot(program, f"{phase.name}: replay", why="it replays no trace of lsmtune's")
        if phase.companions:
            raise cannot(program, f"{phase.name}: companions", why="its threads all do the same")


def performing(workload: Workload) -> list[tuple[int, Phase]]:
    """The phases that perform operations, with their places in the workload."""
    return [
        (index, phase)
        for index, phase in enumerate(workload.phases)
        if phase.kind is not PhaseKind.SETTLE
    ]


def settled_after(workload: Workload, index: int) -> int | None:
    """The place of the settle phase right behind phase `index`; None where there is none."""
    following = index + 1
    if following < len(workload.phases) and workload.phases[following].kind is PhaseKind.SETTLE:
        return following
    return None


def leading_settle(workload: Workload) -> bool:
    """Whether the workload begins with a settle phase, before anything was written."""
    return bool(workload.phases) and workload.phases[0].kind is PhaseKind.SETTLE
