"""What to set for a workload of another size, in the words of its family."""

from __future__ import annotations

import math

from lsmtune.records.workload import Workload
from lsmtune.workloads.registry import FAMILIES

_NUM = ("num",)


def sizes_for(workload: Workload, num: int) -> dict[str, int]:
    """The parameters that give `workload` `num` keys, and its operations in proportion.

    Of a workload file, whose fields have no such names, `num` alone.
    """
    family = FAMILIES.get(workload.name)
    keys, *others = _NUM if family is None else family.sizes
    factor = num / workload.num
    last = workload.phases[-1].operations
    if last is None:
        return {keys: num}
    return {keys: num, **{name: _rounded(last * factor) for name in others}}


def size_flags(workload: Workload, num: int) -> str:
    """The same as a command line has it: `-w recordcount=N -w operationcount=M`."""
    return " ".join(f"-w {name}={value}" for name, value in sizes_for(workload, num).items())


def _rounded(wanted: float) -> int:
    """Up to two digits."""
    unit = int(10 ** max(0, len(str(math.ceil(wanted))) - 2))
    return math.ceil(round(wanted / unit, 6)) * unit
