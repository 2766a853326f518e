"""What a trace does not say, and who fits a workload to it may."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Wishes:
    """How a workload is to be fitted; None: from the trace, as far as that tells.

    `records` keys were in the database; `ranges` equal ranges of them are modelled. Seeks read
    `scan_length` entries. `load_value_bytes` is the size of the values that were there before the
    trace. The run has `operations` operations, as many as the trace where None, in `threads`
    threads, at the rate of the trace with `at_rate`.
    """

    records: int | None = None
    ranges: int | None = None
    scan_length: int = 1
    load_value_bytes: int | None = None
    operations: int | None = None
    threads: int = 1
    at_rate: bool = False
