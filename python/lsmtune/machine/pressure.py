"""How much programs wait for what they share: the kernel's pressure stall information."""

from __future__ import annotations

import re
from pathlib import Path

from lsmtune.machine.kernel_files import ROOT, text_of

RESOURCES = ("cpu", "io", "memory")
_SOME = re.compile(r"^some .*?\bavg60=(\d+(?:\.\d+)?)", re.M)


def waiting_share(resource: str, root: Path = ROOT) -> float | None:
    """The share of the last minute in which some program waited for one of RESOURCES.

    From /proc/pressure (Linux kernel documentation, `accounting/psi.rst`); None where the kernel
    does not account for it.
    """
    found = _SOME.search(text_of(root / "proc/pressure" / resource) or "")
    return None if found is None else float(found[1]) / 100.0
