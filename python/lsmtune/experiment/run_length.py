"""Whether one run was long enough to say what an engine sustains, and how long would be.

An LSM-tree takes writes into memory and pays for them later, so that the length of a run counts in
flushes and in compactions into each level that holds data, not in seconds. All functions are pure.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from lsmtune.model.measurement import Measurement, PhaseMeasurement
from lsmtune.stats.noise import INTERVALS_LEAST, stationarity

# With n flushes, the one that is under way at either end of a run makes up to 1 / n of it: 5 %.
FLUSHES_WANTED = 20
# A level that was compacted into less often has had its price paid by chance more than by rule.
COMPACTIONS_WANTED = 3


def run_length(measurement: Measurement) -> list[str]:
    """What makes the measure phases of a run too short, or not steady; a line each."""
    measured = [phase for phase in measurement.phases if phase.kind == "measure"]
    return [f"{phase.name}: {line}" for phase in measured for line in _of_phase(phase)]


def factor_wanted(measurement: Measurement) -> float | None:
    """How many times as long the run should be for enough flushes and compactions, at least 1.

    By a linear scale, which is all that one run tells; a larger tree has more levels, so that it
    is worth asking again of the longer run. None where no measure phase says how often it flushed.
    """
    measured = [phase for phase in measurement.phases if phase.kind == "measure"]
    factors = [factor for phase in measured if (factor := _factor(phase)) is not None]
    return max([1.0, *factors]) if factors else None


def scaled_num(num: int, factor: float) -> int:
    """`num` operations times `factor`, rounded up to two digits: 1.3 times 100,000 is 130,000."""
    wanted = math.ceil(round(num * factor, 6))
    if wanted <= num:
        return num
    unit = int(10 ** max(0, len(str(wanted)) - 2))
    return -(-wanted // unit) * unit


def _of_phase(phase: PhaseMeasurement) -> list[str]:
    lines = []
    if _writes(phase) and phase.flushes is not None:
        lines += _few_flushes(phase)
        lines += _few_compactions(phase)
        lines += _growing(phase.bytes_per_level)
        if phase.drain_s is not None and phase.drain_s > phase.elapsed_s:
            lines.append(
                "what it left to flush and compact took longer than the phase itself "
                f"({phase.drain_s:.3g} s after {phase.elapsed_s:.3g} s)"
            )
    return lines + _unsteady(phase)


def _writes(phase: PhaseMeasurement) -> bool:
    return (phase.user_bytes_written or 0) > 0


def _few_flushes(phase: PhaseMeasurement) -> list[str]:
    if phase.flushes is None or phase.flushes >= FLUSHES_WANTED:
        return []
    times = "time" if phase.flushes == 1 else "times"
    return [f"flushed {phase.flushes} {times}; {FLUSHES_WANTED} make a rate of writing"]


def _few_compactions(phase: PhaseMeasurement) -> list[str]:
    """Levels that hold data and were hardly compacted into, of a phase that compacted at all.

    A phase without any compaction may need none: files of keys in order are only moved down.
    """
    few = [
        f"level {level} {count} {'time' if count == 1 else 'times'}"
        for level, count in _compactions(phase).items()
        if count < COMPACTIONS_WANTED
    ]
    if not few or not phase.compactions:
        return []
    return [f"compacted into {', '.join(few)}; {COMPACTIONS_WANTED} into each that holds data"]


def _compactions(phase: PhaseMeasurement) -> dict[int, int]:
    """Compactions into each level below the first that holds data; empty where not known."""
    if phase.levels is None or phase.bytes_per_level is None:
        return {}
    done = {work.level: work.compactions for work in phase.levels}
    held = range(1, len(phase.bytes_per_level))
    return {level: done.get(level, 0) for level in held if phase.bytes_per_level[level] > 0}


def _growing(bytes_per_level: Sequence[int] | None) -> list[str]:
    """Whether the deepest level is still being built: less in it than in those above it.

    A full tree has most of its data in its last level, as each may hold several times what the
    one above it may (10 times by the default of both engines). Until then writes pay for fewer
    levels than they will.
    """
    held = [(level, size) for level, size in enumerate(bytes_per_level or ()) if size > 0]
    if not held:
        return []
    (last, size), above = held[-1], sum(size for _, size in held[:-1])
    if last == 0 or size >= above:
        return []
    return [
        f"the tree still grows: level {last}, its last one, holds {size / (size + above):.0%} "
        "of the data"
    ]


def _unsteady(phase: PhaseMeasurement) -> list[str]:
    values = _throughputs(phase)
    if len(values) < INTERVALS_LEAST:
        return []
    found = stationarity(values)
    return [] if found.steady else [f"not steady: {found.why}"]


def _throughputs(phase: PhaseMeasurement) -> list[float]:
    """Of the intervals, without a last one cut off so early that its rate says little."""
    intervals = list(phase.intervals)
    if len(intervals) > 1 and intervals[-1].interval_s < intervals[-2].interval_s / 2:
        intervals.pop()
    return [interval.throughput_ops_s for interval in intervals]


def _factor(phase: PhaseMeasurement) -> float | None:
    if not _writes(phase) or not phase.flushes:
        return None
    wanted = [FLUSHES_WANTED / phase.flushes]
    if phase.compactions:
        done = _compactions(phase).values()
        wanted += [COMPACTIONS_WANTED / count for count in done if count > 0]
    return max(1.0, *wanted)
