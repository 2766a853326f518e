"""Whether one run was long enough: pure functions of what it observed."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
from fake_runner import ENGINE, phase
from hypothesis import given
from hypothesis import strategies as st

from lsmtune.experiment.run_length import factor_advised, length_warnings, scaled_num
from lsmtune.model.measurement import Interval, LevelWork, Measurement, Outcome, PhaseMeasurement

LONG = replace(
    phase(1e5),
    flushes=40,
    compactions=30,
    levels=(LevelWork(1, 20, 1 << 30), LevelWork(2, 10, 1 << 30)),
    bytes_per_level=(1 << 20, 10 << 20, 90 << 20, 0, 0, 0, 0),
    elapsed_s=10.0,
    drain_s=2.0,
)


def measured(*phases: PhaseMeasurement) -> Measurement:
    return Measurement(Outcome.OK, ENGINE, {}, "fillrandom", 1, 0.0, 10.0, phases)


def intervals(*throughputs: float, last_s: float = 1.0) -> tuple[Interval, ...]:
    lengths = [1.0] * (len(throughputs) - 1) + [last_s]
    return tuple(
        Interval(float(k), length, 1, 1, value, 1)
        for k, (value, length) in enumerate(zip(throughputs, lengths, strict=True))
    )


def test_a_long_run_is_not_warned_of() -> None:
    assert length_warnings(measured(LONG)) == []
    assert factor_advised(measured(LONG)) == 1.0


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"flushes": 1}, "flushed 1 time; 20 make a rate of writing"),
        ({"flushes": 19}, "flushed 19 times;"),
        ({"levels": (LevelWork(1, 20, 1),)}, "compacted into level 2 0 times; 3 into each"),
        (
            {"levels": (LevelWork(1, 2, 1), LevelWork(2, 1, 1))},
            "compacted into level 1 2 times, level 2 1 time;",
        ),
        (
            {"bytes_per_level": (0, 90, 10)},
            "the tree still grows: level 2, its last one, holds 10% of the data",
        ),
        ({"drain_s": 10.5}, "took longer than the phase itself (10.5 s after 10 s)"),
    ],
)
def test_each_sign_of_a_short_run_is_told(change: dict[str, object], said: str) -> None:
    lines = length_warnings(measured(replace(LONG, **change)))
    assert len(lines) == 1
    assert lines[0].startswith("fillrandom: ")
    assert said in lines[0]


def test_keys_in_order_need_no_compaction() -> None:
    moved = replace(LONG, compactions=0, levels=())
    assert length_warnings(measured(moved)) == []
    assert factor_advised(measured(moved)) == 1.0


def test_only_measure_phases_that_write_and_say_so_are_judged() -> None:
    short = replace(LONG, flushes=1)
    for change in ({"kind": "load"}, {"user_bytes_written": 0}, {"flushes": None}):
        silent = measured(replace(short, **change))
        assert length_warnings(silent) == []
        assert factor_advised(silent) is None


def test_an_unknown_tree_is_not_guessed_at() -> None:
    unknown = replace(LONG, bytes_per_level=None, levels=None)
    assert length_warnings(measured(unknown)) == []


def test_a_falling_throughput_is_told() -> None:
    falling = [1e5 * (1.0 - k / 40) for k in range(30)]
    lines = length_warnings(measured(replace(LONG, intervals=intervals(*falling))))
    assert len(lines) == 1
    assert lines[0].startswith("fillrandom: not steady: ")
    few = replace(LONG, intervals=intervals(*falling[::5]))
    assert length_warnings(measured(few)) == []


def test_a_last_interval_that_was_cut_off_does_not_count() -> None:
    steady = [1e5 + 100 * (-1) ** k for k in range(30)]
    cut = replace(LONG, intervals=intervals(*steady, 10.0, last_s=0.01))
    assert length_warnings(measured(cut)) == []


# What RocksDB 10.10.1 had pending in MiB, at its most in each tenth of 2,000,000 overwrites of 1 KB
# and of 4,000,000 with a trigger of 8 files (docs/benchmarks/carry/pending_by_length.jsonl).
MOUNTING = (0, 682, 789, 877, 1038, 1134, 1362, 1511, 1576, 1793)
LEVEL = (0, 1223, 1247, 1470, 1592, 1810, 1489, 1968, 1968, 1929)


@pytest.mark.parametrize(
    ("pending_mib", "written_bytes", "behind"),
    [(MOUNTING, 2 * 1016 * 10**6, "78%"), (LEVEL, 4 * 1016 * 10**6, ""), (MOUNTING, 10**11, "")],
)
def test_compactions_that_still_fall_behind_are_told(
    pending_mib: tuple[int, ...], written_bytes: int, behind: str
) -> None:
    """A guard of space held in such a run, and the database took twice the space later."""
    steps = zip(intervals(*(1e5 for _ in pending_mib)), pending_mib, strict=True)
    series = tuple(replace(step, pending_compaction_bytes=mib << 20) for step, mib in steps)
    ran = replace(LONG, intervals=series, user_bytes_written=written_bytes)
    lines = length_warnings(measured(ran))
    assert [behind in line for line in lines] == ([True] if behind else [])


def test_the_factor_makes_enough_flushes_and_compactions() -> None:
    assert factor_advised(measured(replace(LONG, flushes=4))) == 5.0
    levels = (LevelWork(1, 20, 1), LevelWork(2, 1, 1))
    assert factor_advised(measured(replace(LONG, flushes=10, levels=levels))) == 3.0
    assert factor_advised(measured(LONG, replace(LONG, flushes=8))) == 2.5
    assert factor_advised(measured(replace(LONG, flushes=0))) is None


@given(st.integers(1, 10**9), st.floats(1.0, 1e4))
def test_a_scaled_number_is_at_least_what_is_wanted_and_has_two_digits(
    num: int, factor: float
) -> None:
    found = scaled_num(num, factor)
    assert num * factor * (1 - 1e-12) - 1e-5 <= found
    if found != num:
        assert found <= math.ceil(num * factor) * 1.1 + 1
        assert str(found).rstrip("0") == str(found)[:2].rstrip("0")
