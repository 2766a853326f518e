"""From what the first runs of a baseline were to the size of a study's runs: a table of cases."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from fake_runner import phase
from size_parts import LARGE, ONE_LENGTH, ROCKSDB
from study_parts import make_spec

from lsmtune.experiment.store import Role, StoredMeasurement
from lsmtune.model.config import Config
from lsmtune.model.measurement import Interval, Measurement, Outcome
from lsmtune.model.workload import Phase, PhaseKind, Replay, Workload
from lsmtune.study.build import parse_spec
from lsmtune.study.resize import resized
from lsmtune.study.size import RunSize

SMALL = "{name: fillrandom, num: 1000}"
READS = "{name: readrandom, num: 10000000, duration_s: 30}"
# Operations that take 200 s at the target, and a limit of time beside them.
LIMITED = "{{name: ycsb-a, recordcount: 10000000, operationcount: 10000000, maxexecutiontime: {}}}"
# They add half of the records that there are, at any scale, and get slower by that.
INSERTS = "{name: ycsb-d, recordcount: 10000000, operationcount: 100000000}"
FALLING = tuple(Interval(n / 4, 0.25, 25, 25 * n, 100.0 - n, None) for n in range(1, 41))
GROWS = {"flushes": 20, "operations": 6_000_000, "intervals": FALLING}
FIRST = RunSize(scale=0.06, proof_scale=0.06)  # of what is large
AGAIN = replace(FIRST, tries=1, proof_scale=0.5)
STEADY, TWICE, FULL = {"flushes": 9}, {"flushes": 2}, {"flushes": 1, "user_bytes_written": 64 << 20}


@pytest.mark.parametrize(
    ("workload", "more", "size", "took", "figures", "expected", "told"),
    [
        # What is steady runs as stated, and is not looked at again.
        (SMALL, "", RunSize(), (1.0, 0.0), STEADY, {"settled": True, "longer": ()}, ""),
        (SMALL, "", RunSize(settled=True), (1.0, 0.0), TWICE, {"tries": 0, "longer": ()}, ""),
        (SMALL, "burst: true", RunSize(), (1.0, 0.0), TWICE, {"settled": True, "longer": ()}, ""),
        # What flushes too seldom becomes longer, as long as there are time and tries.
        (
            *(SMALL, "", RunSize(), (1.0, 0.0), TWICE),
            *({"settled": False, "longer": (4.5,), "tries": 1}, "are 4.5 times as long; a run"),
        ),
        (
            *(SMALL, "limits: {deadline: 3s}", RunSize(), (1.0, 0.0), TWICE),
            *({"settled": True, "longer": ()}, "limits.deadline is too short; nothing can be"),
        ),
        (
            *(SMALL, "", RunSize(tries=4, longer=(2.0,)), (1.0, 0.0), TWICE),
            *({"settled": True, "longer": (2.0,)}, "longer 4 times, 1,000 times as long at most"),
        ),
        # YCSB B had to be 9 times as long after a load of 2.8 s, which counted 9 times, too; so did
        # opening a social graph's database nine times in each run.
        (SMALL, "budget: {time: 18m}", RunSize(), (1.0, 0.0, 30.0), FULL, {"longer": (9.0,)}, ""),
        (SMALL, "budget: {time: 18m}", RunSize(), (1.0, 4.0, 30.0), FULL, {"longer": (6.0,)}, ""),
        # What the time does not hold is searched on less data, by what the runs take now.
        (
            *(LARGE, "budget: {time: 20m}", FIRST, (12.0, 0.0), STEADY),
            *({"scale": pytest.approx(0.075), "settled": True}, "the time budget does not hold"),
        ),
        (
            *(LARGE, "budget: {time: 20m}", AGAIN, (12.0, 0.0), STEADY),
            *({"scale": 0.06, "proof_scale": pytest.approx(0.13, rel=0.1)}, "the proof has 0.1"),
        ),
        # Stopped before its first trial, and given more time: it stays a model, and says so.
        (
            *(LARGE, "budget: {time: 6h}", replace(AGAIN, settled=True, time_s=1200.0)),
            *((12.0, 0.0), STEADY, {"scale": 0.06}, "began with a time budget of 20m"),
        ),
        # Its model's inserts counted as a share of the target's data: runs 16 times too long.
        (INSERTS, "budget: {time: 1h}", FIRST, (12.0, 0.0), GROWS, {"longer": ()}, ""),
        # 30 of 33 s were a duration's, which are as many at the target.
        (READS, "budget: {time: 1h}", FIRST, (30.0, 0.0, 3.1), {}, {"scale": 1.0}, "about 1m2"),
        # A limit of YCSB's that no run comes to made the runs of trials longer than needed.
        (LIMITED.format(600), "budget: {time: 6h}", FIRST, (12.0, 0.0), STEADY, {"flushes": 9}, ""),
        (LIMITED.format(150), "budget: {time: 6h}", FIRST, (12.0, 0.0), STEADY, {"flushes": 0}, ""),
    ],
)
def test_the_size_of_the_runs_follows_from_what_was_measured(
    workload: str,
    more: str,
    size: RunSize,
    took: tuple[float, ...],
    figures: dict[str, object],
    expected: dict[str, object],
    told: str,
    tmp_path: Path,
) -> None:
    """`took` are the seconds of the measure phase, and of opening a database; then of its load."""
    text = make_spec(tmp_path).text.replace("workload:\n  name: fillrandom\n  num: 1000\n", "")
    text = text if "budget" not in more else text.replace("budget: {trials: 8}\n", "")
    limits = "" if "limits" in more else "limits: {deadline: 1h}\n"
    text = f"{text}workload: {workload}\n{limits}{more}\n{ONE_LENGTH}\n"
    spec = parse_spec(text, tmp_path / "small.yaml")
    written = {"compactions": 1, **figures} if figures else {"user_bytes_written": 0}
    name = spec.workload.measured_names[0]
    measured = replace(phase(1e5), name=name, elapsed_s=took[0], **written)  # type: ignore[arg-type]
    run = Measurement(Outcome.OK, ROCKSDB, {}, name, 1, 0.0, sum(took[:2]), (measured,))
    row = StoredMeasurement(1, Role.BASELINE, None, None, Config(), run, sum(took))
    new, line = resized(spec, size, [row], 0.0)
    assert {field: getattr(new, field) for field in expected} == expected
    assert told in line


@pytest.mark.parametrize(("flushes", "more"), [(2, ""), (9, ""), (2, "burst: true")])
def test_a_trace_that_is_too_short_is_said_before_the_search(
    flushes: int, more: str, tmp_path: Path
) -> None:
    """A study of one searched to its end, and then said that its runs can prove nothing."""
    spec = make_spec(tmp_path, more=more)
    replay = Phase("replay", PhaseKind.MEASURE, replay=Replay("production.trace"))
    workload = Workload("trace", (replay,), num=1000)
    spec = replace(spec, workloads=(replace(spec.workloads[0], workload=workload),))
    measured = replace(phase(1e5), name="replay", flushes=flushes, compactions=1)
    run = Measurement(Outcome.OK, ROCKSDB, {}, "trace", 1, 0.0, 1.0, (measured,))
    row = StoredMeasurement(1, Role.BASELINE, None, None, Config(), run, 1.0)
    size, line = resized(spec, RunSize(), [row], 0.0)
    assert (size.settled, size.longer) == (True, ())
    is_short = flushes == 2 and not more
    assert ("(flushed 2 times, at least 5 are wanted), and a study makes none" in line) is is_short
