"""Runs that are too short to show what is sustained: longer ones come before the search."""

from __future__ import annotations

import math
import re
import sqlite3
import threading
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest
from size_parts import (
    ROCKSDB,
    Buffering,
    ByBytes,
    FallingAtFirst,
    Flushing,
    Rising,
    large,
    mixed,
    run_large,
)
from study_parts import Recorder, make_spec, stored, tuned

from lsmtune.driver.messages import Message
from lsmtune.engines.scaling import PROCESS_BYTES, THREAD_BYTES
from lsmtune.experiment.folder import StudyFolder
from lsmtune.experiment.measurer import Measurer
from lsmtune.experiment.run_length import can_change, longer_by, scaled_num
from lsmtune.experiment.schedule import Arm, Slot
from lsmtune.experiment.store import Role
from lsmtune.model.codec import encode
from lsmtune.model.config import OptionValue
from lsmtune.model.measurement import Interval, Measurement, Outcome
from lsmtune.model.request import RunRequest
from lsmtune.model.verdict import VerdictOutcome
from lsmtune.model.workload import Mix, Phase, PhaseKind, Replay, Workload
from lsmtune.report.source import read_study
from lsmtune.space.parameter import make_number
from lsmtune.space.range import Range
from lsmtune.space.space import make_space
from lsmtune.study.budget import PROMOTED_MAX
from lsmtune.study.build import parse_spec
from lsmtune.study.finalist import for_proof
from lsmtune.study.observer import verdict_document
from lsmtune.study.promotion import kinds_first, promote
from lsmtune.study.size import RunSize, at_scale, lengths, stored_size
from lsmtune.study.start import baseline_config, candidate_config, open_study


def test_a_study_of_short_runs_makes_them_longer_before_it_searches(tmp_path: Path) -> None:
    spec, runner, observer = make_spec(tmp_path), Flushing(500), Recorder()
    result = tuned(spec, tmp_path / "study", runner, observer)
    sizes = [request.workload.num for request in runner.requests]
    assert sizes[0] == 1000
    assert set(sizes[1:]) == {4500}
    assert result.verdict is not None
    assert result.verdict.outcome is VerdictOutcome.BETTER
    assert result.verdict.proved_at[0].records == 4500
    assert result.verdict.proved_at[0].baseline_flushes == 9
    assert any("4.5 times as long" in line for line in observer.warnings)
    # The short run is no baseline, and its time is spent all the same.
    rows = stored(tmp_path / "study")
    assert [row.role for row in rows].count(Role.BASELINE) == 1
    with StudyFolder.open(tmp_path / "study") as folder:
        assert folder.measurements.spent_s() > sum(row.wall_s for row in rows)
        assert read_study(folder).spec.workload.num == 4500


def test_the_baseline_sees_two_cycles_of_level_0_where_there_is_time(tmp_path: Path) -> None:
    """Its runs of 7 flushes, with a trigger of 4, had one compaction of level 0 or two, by chance.

    With one YCSB D was 1.3 times as fast as with two, and wrote less than half: nothing was better.
    """
    runner = Flushing(150)  # 6 flushes in 1,000 records
    tuned(make_spec(tmp_path), tmp_path / "study", runner)
    assert {request.workload.num for request in runner.requests[1:]} == {1500}
    # Where the budget does not hold that, five flushes are as good as they were.
    short = make_spec(tmp_path, budget="{time: 20s}")
    runner = Flushing(150)
    tuned(short, tmp_path / "short", runner)
    assert {request.workload.num for request in runner.requests} == {1000}


def test_a_study_that_goes_on_keeps_its_longer_runs(tmp_path: Path) -> None:
    observer = Recorder()
    observer.stop_at = ("trial_finished", 2)
    assert tuned(make_spec(tmp_path), tmp_path / "study", Flushing(500), observer).interrupted
    runner = Flushing(500)
    tuned(make_spec(tmp_path), tmp_path / "study", runner)
    assert {request.workload.num for request in runner.requests} == {4500}


def test_smaller_runs_become_longer_with_the_others(tmp_path: Path) -> None:
    """They were of a thirtieth of the keys, with a tenth of the memtables, and had no more time."""
    more = "pruner: {name: median, rungs: {num: [100, 1000], deadlines: [4s, 40s]}}"
    spec, runner = make_spec(tmp_path, more=more), Flushing(500)
    tuned(spec, tmp_path / "study", runner)
    of_trials = [request for request in runner.requests if request.trial is not None]
    smaller = [request for request in of_trials if request.workload.num != 4500]
    assert {request.workload.num for request in smaller} == {450}
    assert {request.limits.deadline_s for request in smaller} == {18.0}
    whole = {request.trial: request for request in of_trials if request.workload.num == 4500}
    assert {request.limits.deadline_s for request in whole.values()} == {180.0}
    for request in smaller:
        if request.trial in whole:
            memtable, full = (
                int(str(each.config.options["write_buffer_size"]))
                for each in (request, whole[request.trial])
            )
            assert memtable == pytest.approx(full * 450 / 4500, rel=0.01)


def test_a_burst_is_measured_as_it_is_stated(tmp_path: Path) -> None:
    runner = Flushing(500)
    result = tuned(make_spec(tmp_path, more="burst: true"), tmp_path / "study", runner)
    assert {request.workload.num for request in runner.requests} == {1000}
    assert result.verdict is not None
    assert result.verdict.outcome is VerdictOutcome.BETTER


def test_a_deadline_that_does_not_hold_longer_runs_is_told_of(tmp_path: Path) -> None:
    """Then nothing can be proved better, and the user hears it before the search."""
    spec, runner, observer = make_spec(tmp_path), Flushing(500), Recorder()
    spec = replace(spec, limits=replace(spec.limits, deadline_s=3.0))
    result = tuned(spec, tmp_path / "study", runner, observer)
    assert {request.workload.num for request in runner.requests} == {1000}
    (line,) = (line for line in observer.warnings if "nothing can be proved better so" in line)
    # 3 s a run, and a candidate may be slower: 6 s would do. The time budget is long enough.
    assert "for which limits.deadline is too short; nothing" in line
    assert "(--dir DIR) with limits.deadline: 1m or more, smaller memtables, or burst" in line
    assert result.verdict is not None
    assert result.verdict.outcome is VerdictOutcome.NOT_PROVEN
    assert "at least 5 are wanted" in result.verdict.why


def test_operations_are_what_grows_unless_the_phase_fills() -> None:
    load = Phase("load", PhaseKind.LOAD, "filluniquerandom", operations=1000)
    read = Phase("read", PhaseKind.MEASURE, "overwrite", operations=500, duration_s=2.0)
    longer = longer_by(Workload("mixed", (load, read), num=1000), 3.0)
    assert longer.num == 1000
    assert longer.phases[0] == load
    assert (longer.phases[1].operations, longer.phases[1].duration_s) == (1500, 6.0)
    fill = Phase("fill", PhaseKind.MEASURE, "fillrandom", operations_per_thread=1000)
    longer = longer_by(Workload("fill", (fill,), num=1000), 2.5)
    assert (longer.num, longer.phases[0].operations_per_thread) == (2500, 2500)


@pytest.mark.parametrize(
    ("phase", "can"),
    [
        (Phase("a", PhaseKind.MEASURE, "overwrite", operations=1), True),
        (Phase("a", PhaseKind.MEASURE, replay=Replay("trace")), False),
        (Phase("a", PhaseKind.MEASURE, mix=Mix((("get", 1.0),)), operations=1), True),
    ],
)
def test_the_length_of_a_trace_is_its_own(phase: Phase, can: bool) -> None:
    assert can_change(Workload("w", (phase,), num=1)) is can


# --- a target that the budget does not hold


def test_a_target_that_the_budget_does_not_hold_is_searched_as_a_model(tmp_path: Path) -> None:
    """A run at the target takes 200 s; in 20 minutes there are six."""
    spec, runner, observer = large(tmp_path, "{time: 20m}"), ByBytes(), Recorder()
    result = run_large(spec, tmp_path / "study", runner, observer)
    nums = [request.workload.num for request in runner.requests]
    search, proof = nums[1], nums[-1]
    assert max(nums) < 10_000_000
    assert search < proof, "the proof has the largest size for which there is time"
    model = runner.requests[1]
    # The model has as much less of everything: memtable, memory.
    assert float(str(model.config.options["write_buffer_size"])) == pytest.approx(
        search / 1e7 * (64 << 20), rel=0.01
    )
    fixed = PROCESS_BYTES + THREAD_BYTES
    assert model.limits.memory_bytes == pytest.approx(
        fixed + search / 1e7 * ((1 << 30) - fixed), rel=0.01
    )
    # What is recommended, and the rows, are those of the target.
    assert result.best is not None
    assert int(str(result.best.options["write_buffer_size"])) >= 2 << 20
    assert result.verdict is not None
    at = result.verdict.proved_at[0]
    assert (at.records, at.share_of_target) == (proof, pytest.approx(proof / 1e7, rel=0.001))
    told = verdict_document(result.verdict)
    assert told["proved_at"] == [encode(at)], "scripts read it, too"
    assert any("of the target, where it was found" in note for note in result.verdict.notes)
    assert any("searches a model" in line for line in observer.warnings)
    # The time of the proof counts once.
    assert result.spent_s <= 1200.0
    assert not any("more than its time budget" in line for line in observer.warnings)


class FoldsWhenLarge(ByBytes):
    """On little data the largest memtable is the best; on more than `folds_at`, the smallest is."""

    def __init__(self, folds_at: int) -> None:
        super().__init__()
        self._folds_at = folds_at

    def _measurement(self, request: RunRequest, outcome: Outcome) -> Measurement:
        found = super()._measurement(request, outcome)
        num = request.workload.num
        memtable_bytes = float(str(request.config.options.get("write_buffer_size", 64 << 20)))
        speed = memtable_bytes / (num * 116) * (1.0 if num < self._folds_at else -1.0)
        value = 100_000.0 * (1.0 + speed)
        figures = {"throughput_ops_s": value, "sustained_throughput_ops_s": value}
        phases = tuple(replace(p, **figures) for p in found.phases)  # type: ignore[arg-type]
        return replace(found, phases=phases)


def test_what_is_best_on_a_model_alone_is_not_what_is_proved(tmp_path: Path) -> None:
    """Some of the best run at the size of the proof first, and there another one is the best."""
    spec, observer = large(tmp_path, "{time: 20m}"), Recorder()
    result = run_large(spec, tmp_path / "study", FoldsWhenLarge(1_000_000), observer)
    rows = stored(tmp_path / "study")
    larger = [row for row in rows if row.role is Role.PROMOTION]
    assert [row.trial is None for row in larger] == [True, *[False] * PROMOTED_MAX]
    sizes = {row.trial: row.config.options["write_buffer_size"] for row in larger[1:]}
    searched = {
        row.trial: row.measurement.phases[-1].sustained_throughput_ops_s
        for row in rows
        if row.role is Role.TRIAL
    }
    best_first = sorted(searched, key=lambda n: -(searched[n] or 0))
    options = {row.trial: row.config.options for row in rows if row.role is Role.TRIAL}
    tried = {n: options[n] for n in best_first if n is not None}
    assert list(sizes) == kinds_first(spec.space, tried, {}, PROMOTED_MAX)
    assert result.best_trial == min(sizes, key=lambda n: int(str(sizes[n])))
    candidates = {row.trial for row in larger} - {None}
    proved = {str(row.config.options) for row in rows if row.role is Role.PROOF_CANDIDATE}
    assert proved == {str(row.config.options) for row in larger if row.trial == result.best_trial}
    assert result.verdict is not None
    (told,) = (note for note in result.verdict.notes if ": 0 of their" in note)
    assert "the search ran on too little data" in told
    with StudyFolder.open(tmp_path / "study") as folder:
        assert read_study(folder).judgement.best == result.best_trial, "the report says the same"
    assert candidates >= {result.best_trial}


def test_a_search_that_goes_on_is_not_bound_to_what_was_promoted_before_it(tmp_path: Path) -> None:
    """Its best trial was that of the session before, whatever it found.

    Where no time was left to run its best on more data, that one was proved once more.
    """
    spec, observer = large(tmp_path, "{time: 20m}"), Recorder()
    before = run_large(spec, tmp_path / "study", FoldsWhenLarge(1_000_000), Recorder())
    observer.stop_at = ("trial_finished",)
    more = replace(spec, budget=replace(spec.budget, time_s=7200.0))
    now = run_large(more, tmp_path / "study", FoldsWhenLarge(1_000_000), observer)
    assert now.interrupted
    searched = {
        row.trial: row.measurement.phases[-1].sustained_throughput_ops_s or 0.0
        for row in stored(tmp_path / "study")
        if row.role is Role.TRIAL
    }
    assert now.best_trial == max(searched, key=lambda trial: searched[trial]) != before.best_trial
    with StudyFolder.open(tmp_path / "study") as folder:
        assert read_study(folder).judgement.best == now.best_trial, "the report says the same"


def memtable_bytes(request: RunRequest) -> float:
    return float(str(request.config.options.get("write_buffer_size", 64 << 20)))


def is_baseline_of_large(request: RunRequest) -> bool:
    """Whether it runs the default memtable, at the scale of the request."""
    each = memtable_bytes(request) / request.workload.num
    return each == pytest.approx((64 << 20) / 1e7, rel=0.01)


class SeldomWithOthers(ByBytes):
    """The baseline flushes 9 times in a run as stated, others, which are faster, 4 times."""

    def _measurement(self, request: RunRequest, outcome: Outcome) -> Measurement:
        found = super()._measurement(request, outcome)
        num = request.workload.num
        length = (request.workload.phases[-1].operations_per_thread or num) / num
        is_baseline = is_baseline_of_large(request)
        rate = 50_000.0 if is_baseline else 55_000.0 + 1e-5 * memtable_bytes(request)
        figures = {"throughput_ops_s": rate, "sustained_throughput_ops_s": rate}
        figures["flushes"] = round(length * (9 if is_baseline else 4))
        phases = tuple(replace(p, **figures) for p in found.phases)  # type: ignore[arg-type]
        return replace(found, phases=phases)


def test_a_finalist_whose_steady_runs_have_no_time_on_more_data_is_proved_on_less(
    tmp_path: Path,
) -> None:
    """The proof had short runs on more data, in which the finalist flushed too seldom."""
    spec = large(tmp_path, "{time: 20m}")
    result = run_large(spec, tmp_path / "study", SeldomWithOthers(), Recorder())
    with StudyFolder.open(tmp_path / "study") as folder:
        size = stored_size(folder)
    assert size.grows
    assert result.verdict is not None
    at = result.verdict.proved_at[0]
    assert size.scale <= at.share_of_target < size.proof_scale
    assert at.candidate_flushes is not None
    assert at.candidate_flushes >= 5
    assert any("no time for runs" in note for note in result.verdict.notes)
    assert result.spent_s <= 1200.0


def test_longer_runs_of_a_proof_leave_a_slower_candidate_time_to_end(tmp_path: Path) -> None:
    """They might take all of the deadline, and a candidate a hundredth slower ended the proof."""
    spec = large(tmp_path, "{time: 2h}")
    spec = replace(spec, limits=replace(spec.limits, deadline_s=400.0))
    result = run_large(spec, tmp_path / "study", SeldomWithOthers(), Recorder())
    assert result.verdict is not None
    assert result.verdict.pairs >= 6
    roles = (Role.PROOF_BASELINE, Role.PROOF_CANDIDATE)
    rows = [row for row in stored(tmp_path / "study") if row.role in roles]
    longest_s = max(row.measurement.elapsed_s for row in rows)
    assert longest_s <= 0.5 * spec.limits.deadline_s * 1.01


class SlowsDown(ByBytes):
    """Flushes six times; up to one operation a record takes `saved` of its time less."""

    def __init__(self, saved: float) -> None:
        super().__init__()
        self._saved = saved

    def _measurement(self, request: RunRequest, outcome: Outcome) -> Measurement:
        found = super()._measurement(request, outcome)
        saved_s = self._saved * request.workload.num / 50_000
        self.now_s -= saved_s
        elapsed_s = found.elapsed_s - saved_s
        length = (request.workload.phases[-1].operations_per_thread or 0) / request.workload.num
        figures = {"elapsed_s": elapsed_s, "flushes": round(6 * length)}
        phases = tuple(replace(p, **figures) for p in found.phases)  # type: ignore[arg-type]
        return replace(found, phases=phases, elapsed_s=elapsed_s)


@pytest.mark.parametrize(("saved", "minutes"), [(0.8, 15), (0.65, 10)])
def test_the_sizes_are_those_that_steady_runs_allow(
    tmp_path: Path, saved: float, minutes: int
) -> None:
    """The first run told how long the others take, and was too short to: YCSB B became 2.1 times as
    slow after it, and 6 pairs on twice the data of the search took two thirds of its ten minutes.
    """
    spec, observer = large(tmp_path, f"{{time: {minutes}m}}"), Recorder()
    result = run_large(spec, tmp_path / "study", SlowsDown(saved), observer)
    first, then = observer.warnings
    with StudyFolder.open(tmp_path / "study") as folder:
        size = stored_size(folder)
    said = re.search(r"searches a model with ([\d.]+) of .* proves at ([\d.]+)", first)
    assert said is not None
    scale, proof_scale = map(float, said.groups())
    assert size.scale <= size.proof_scale < proof_scale / 1.4
    if saved == 0.8:  # the search is smaller, too
        assert size.scale < scale / 1.4
        assert f"a model with {size.scale:.2g} of" in then
    else:  # the baseline runs no third time
        assert size.scale == pytest.approx(scale, rel=0.05)
        assert f"the proof has {size.proof_scale:.2g} of the target" in then
    assert result.spent_s <= 60.0 * minutes


def test_without_time_to_choose_between_two_trials_none_is_promoted(tmp_path: Path) -> None:
    """The baseline alone ran on more data, which told nothing, and the proof lacked a pair."""
    spec = large(tmp_path, "{time: 20m}")
    arms = [SimpleNamespace(number=n, config=candidate_config(spec, n, {})) for n in (1, 2)]
    measurer = SimpleNamespace(
        folder=SimpleNamespace(
            measurements=SimpleNamespace(all=list, set_fact=lambda *_: None, fact=lambda _: None)
        ),
        clock=lambda: 0.0,
    )
    found = promote(
        *(spec, Arm(ROCKSDB, baseline_config(spec)), arms, measurer),  # type: ignore[arg-type]
        rows=[],
        believed={},
        run_s=26.0,
        deadline_s=380.0,
    )
    assert found is not None
    assert (found.baseline, found.values) == (None, {})


def test_a_promotion_that_was_stopped_goes_on_and_runs_nothing_twice(tmp_path: Path) -> None:
    spec, observer = large(tmp_path, "{time: 20m}"), Recorder()
    observer.stop_at = ("run_finished", Role.PROMOTION)
    assert run_large(spec, tmp_path / "study", ByBytes(), observer).interrupted
    before = [row for row in stored(tmp_path / "study") if row.role is Role.PROMOTION]
    assert len(before) == 1
    result = run_large(spec, tmp_path / "study", ByBytes(), Recorder())
    rows = [row for row in stored(tmp_path / "study") if row.role is Role.PROMOTION]
    assert rows[0] == before[0]
    assert len({row.trial for row in rows}) == len(rows) == 1 + PROMOTED_MAX
    assert result.verdict is not None


def test_of_each_kind_of_trial_one_is_promoted_before_another_of_it() -> None:
    """The four best trials of a search were one configuration, but for a MiB of cache."""
    memtable = make_number("write_buffer_size", Range(1 << 20, 101 << 20))
    trigger = make_number("level0_file_num_compaction_trigger", Range(2, 12))
    space = make_space([memtable, trigger])

    def options(memtable_mib: int, trigger: int) -> dict[str, OptionValue]:
        values = (memtable_mib << 20, trigger)
        return dict(zip((p.name for p in space.parameters), values, strict=True))

    best_first = {
        9: options(50, 4),
        7: options(52, 4),
        8: options(50, 5),  # a tenth of one range of two
        3: options(90, 4),
        4: options(91, 5),
        1: options(50, 12),
    }
    assert kinds_first(space, best_first, {}, 6) == [9, 3, 1, 7, 8, 4]
    assert kinds_first(space, best_first, {}, 4) == [9, 3, 1, 7]
    assert kinds_first(space, best_first, {}, 2) == [9, 3]
    same = dict.fromkeys((2, 5), options(50, 4))
    assert kinds_first(space, same, {}, 4) == [2, 5]
    assert kinds_first(space, {}, {}, 4) == []


def test_a_budget_that_holds_the_target_has_no_model(tmp_path: Path) -> None:
    """But for the first run, by which it is known."""
    spec, runner = large(tmp_path, "{time: 6h, trials: 3}"), ByBytes()
    result = run_large(spec, tmp_path / "study", runner, Recorder())
    nums = [request.workload.num for request in runner.requests]
    assert nums[0] < 1_000_000
    assert set(nums[1:]) == {10_000_000}
    assert result.verdict is not None
    assert result.verdict.proved_at[0].share_of_target == 1.0


class Taking(ByBytes):
    """A database takes 1.5 times its data, and a run that may not do so fails."""

    def _measurement(self, request: RunRequest, outcome: Outcome) -> Measurement:
        taken_bytes = round(1.5 * 116 * request.workload.num)
        is_full = taken_bytes > request.limits.disk_bytes
        found = super()._measurement(request, Outcome.DISK_FULL if is_full else outcome)
        phases = tuple(replace(p, database_bytes_max=taken_bytes) for p in found.phases)
        return replace(found, phases=phases)


def test_a_proof_on_more_data_than_the_search_stays_below_the_disk_limit(tmp_path: Path) -> None:
    """Its runs ended as `disk_full`, after hours of a search on a model that the disk held."""
    spec, runner = large(tmp_path, "{time: 20m}"), Taking()
    spec = replace(spec, limits=replace(spec.limits, disk_bytes=160 << 20))
    run_large(spec, tmp_path / "study", runner, Recorder())
    assert {row.measurement.outcome for row in stored(tmp_path / "study")} == {Outcome.OK}


def test_a_study_that_was_stopped_in_its_first_run_is_sized_by_its_file_of_today(
    tmp_path: Path,
) -> None:
    """Begun without a time budget, it ran on the whole target in whatever time it then had."""
    observer, stopped = Recorder(), ByBytes()
    observer.stop_at = ("run_started", Role.BASELINE)
    assert run_large(large(tmp_path, "{trials: 3}"), tmp_path / "s", stopped, observer).interrupted
    assert [request.workload.num for request in stopped.requests] == [10_000_000]
    again = ByBytes()
    run_large(large(tmp_path, "{time: 7m}"), tmp_path / "s", again, Recorder())
    assert again.requests[0].workload.num < 1_000_000


def test_a_model_that_is_as_small_as_the_first_run_is_told_of(tmp_path: Path) -> None:
    spec, runner, observer = large(tmp_path, "{time: 7m}"), ByBytes(), Recorder()
    run_large(spec, tmp_path / "study", runner, observer)
    assert len({request.workload.num for request in runner.requests[:5]}) == 1
    assert any("searches a model" in line for line in observer.warnings)


@pytest.mark.parametrize(("memory", "smaller"), [("1GiB", False), ("4GiB", True)])
def test_a_model_has_less_data_where_memory_holds_them_all_and_time_is_short(
    memory: str, *, smaller: bool, tmp_path: Path
) -> None:
    """YCSB B, 300,000 records in 4 GiB and 6 minutes, searched in vain with runs of 0.2 s.

    On 64 MiB of data steady runs of it needed 7 minutes. Less data were not tried, as in little
    memory the process itself counts; here none of it is short.
    """
    spec, runner, observer = large(tmp_path, "{time: 4m}", memory), ByBytes(), Recorder()
    result = run_large(spec, tmp_path / "study", runner, observer)
    first, *others = [request.workload.num for request in runner.requests]
    assert first == round(10_000_000 * (64 << 20) / (10_000_000 * 116))
    assert (max(others) < first) is smaller
    assert result.spent_s <= 240.0 or not smaller


def test_what_is_too_short_for_longer_runs_is_named(tmp_path: Path) -> None:
    """A budget was named where the deadline was too short, and where no budget would do."""
    for budget, deadline, more in (
        (
            "{time: 40s}",
            "1h",
            "the time budget is too short; nothing can be proved better so: begin",
        ),
        ("{time: 40s}", "2s", "the time budget and limits.deadline are too short; nothing"),
        ("{time: 10h}", "1h", "a study makes them longer 4 times, 1,000 times as long at most; "),
    ):
        each = 400_000 if "10h" in budget else 500
        limits = f"limits: {{deadline: {deadline}}}"
        spec, observer = make_spec(tmp_path, budget=budget, more=limits), Recorder()
        tuned(spec, tmp_path / f"{each}-{deadline}", Flushing(each), observer)
        assert any(f"for which {more}" in line for line in observer.warnings), observer.warnings


def test_a_model_that_was_stopped_goes_on_at_its_sizes(tmp_path: Path) -> None:
    spec, runner, observer = large(tmp_path, "{time: 20m}"), ByBytes(), Recorder()
    observer.stop_at = ("trial_finished", 2)
    assert run_large(spec, tmp_path / "study", runner, observer).interrupted
    again = ByBytes()
    run_large(spec, tmp_path / "study", again, Recorder())
    assert not any("began with a time budget" in line for line in observer.warnings)
    searched = {request.workload.num for request in runner.requests[1:]}
    assert searched <= {request.workload.num for request in again.requests}
    assert len({request.workload.num for request in again.requests}) == 2


def test_a_model_that_gets_more_time_says_that_it_stays_a_model(tmp_path: Path) -> None:
    observer = Recorder()
    observer.stop_at = ("trial_finished", 2)
    spec = large(tmp_path, "{time: 20m}")
    assert run_large(spec, tmp_path / "study", ByBytes(), observer).interrupted
    again = Recorder()
    again.stop_at = ("trial_finished", 4)
    more = replace(spec, budget=replace(spec.budget, time_s=36_000.0))
    run_large(more, tmp_path / "study", ByBytes(), again)
    assert any("began with a time budget of 20m" in line for line in again.warnings)


def test_a_kill_while_the_size_is_decided_leaves_the_old_runs_or_none(tmp_path: Path) -> None:
    """One transaction: a short run must never be the baseline of longer ones."""
    spec, runner, observer = make_spec(tmp_path), Flushing(500), Recorder()
    observer.stop_at = ("warning",)
    tuned(spec, tmp_path / "study", runner, observer)
    with StudyFolder.open(tmp_path / "study") as folder:
        assert stored_size(folder).longer == (4.5,)
        assert folder.measurements.all() == []
    connection = sqlite3.connect(tmp_path / "study" / "measurements.db")
    connection.execute("DELETE FROM facts")  # as if it had been rolled back
    connection.commit()
    connection.close()
    runner = Flushing(500)
    tuned(spec, tmp_path / "study", runner)
    assert {request.workload.num for request in runner.requests} == {4500}


def times_as_long(request: RunRequest, made: int) -> float:
    """Two cycles of its own, where a run of the baseline has `made` flushes of 2 MiB."""
    options = request.config.options
    size = int(str(options["write_buffer_size"])) / (2 << 20)
    trigger = int(str(options.get("level0_file_num_compaction_trigger", 4)))
    return min(4.0, max(1.0, size * max(6, 1 + 2 * trigger) / made))


def test_runs_are_as_long_as_their_configuration_needs_to_flush_and_compact(tmp_path: Path) -> None:
    """YCSB A was not proven three times: finalists with large memtables flushed 3 times of 5."""
    runner = Buffering()
    result = tuned(mixed(tmp_path), tmp_path / "study", runner)
    assert result.verdict is not None
    assert result.verdict.outcome is VerdictOutcome.BETTER
    lengths = {}
    for request in runner.requests:
        if request.trial is not None:
            wanted = times_as_long(request, 9)
            lengths[request.trial] = (wanted, request.workload.phases[-1].operations)
    assert len({operations for _, operations in lengths.values()}) > 3
    for wanted, operations in lengths.values():
        assert operations == scaled_num(6000, wanted)
    # The pairs are as long as the finalist's runs were, and its flushes count.
    assert result.best_trial is not None
    proved = {request.workload.phases[-1].operations for request in runner.requests[-12:]}
    assert proved == {lengths[result.best_trial][1]}
    at = result.verdict.proved_at[0]
    assert at.candidate_flushes is not None
    assert at.candidate_flushes >= 5


class Lasting(Buffering):
    """A run takes a second for every 6,000 operations. `cut` counts those that were cancelled."""

    cut = 0

    def run(
        self,
        request: RunRequest,
        on_message: Callable[[Message], None] | None = None,
        cancel: threading.Event | None = None,
    ) -> Measurement:
        self.now_s += (request.workload.phases[-1].operations or 0) / 6000 - self.fake_s
        found = super().run(request, on_message, cancel)
        self.cut += found.outcome is Outcome.CANCELLED
        return found


def test_a_trial_for_whose_length_no_time_is_left_does_not_begin(tmp_path: Path) -> None:
    """It was begun and cut off, with time for the two shorter ones that are now in its place."""
    runner = Lasting()
    result = tuned(mixed(tmp_path, "{time: 40s}"), tmp_path / "study", runner)
    assert runner.cut == 0
    assert result.trials == 5
    assert list(result.refused) == ["would run for longer than the search has left"]


def test_a_trial_whose_longest_run_flushes_too_seldom_is_no_finalist(tmp_path: Path) -> None:
    text = mixed(tmp_path).text.replace("operationcount: 6000", "operationcount: 5400")
    runner = Rising()
    result = tuned(parse_spec(text, tmp_path / "small.yaml"), tmp_path / "study", runner)
    tried = [int(str(request.config.options["write_buffer_size"])) for request in runner.requests]
    assert max(tried) > 14 << 20, "one that flushes four times at most in the longest run"
    assert result.best is not None
    assert int(str(result.best.options["write_buffer_size"])) <= 14 << 20
    assert result.verdict is not None
    assert result.verdict.outcome is VerdictOutcome.BETTER


def test_a_burst_has_runs_of_one_length_and_any_memtable(tmp_path: Path) -> None:
    text = mixed(tmp_path).text + "burst: true\n"
    runner = Rising()
    result = tuned(parse_spec(text, tmp_path / "small.yaml"), tmp_path / "study", runner)
    assert {request.workload.phases[-1].operations for request in runner.requests} == {6000}
    tried = [int(str(request.config.options["write_buffer_size"])) for request in runner.requests]
    assert result.best is not None
    assert result.best.options["write_buffer_size"] == max(tried)


def test_an_option_of_every_run_makes_no_run_longer_than_the_baselines(tmp_path: Path) -> None:
    """All trials and anchors ran twice as long: the baseline was taken without these options."""
    text = mixed(tmp_path).text + "options: {min_write_buffer_number_to_merge: 2}\n"
    spec = parse_spec(text, tmp_path / "small.yaml")
    known = lengths(spec, RunSize(longest=4.0))
    assert known is not None
    assert known(baseline_config(spec)) == 1.0
    assert known(candidate_config(spec, 0, {"write_buffer_size": 6 << 20})) == 3.0


def test_a_search_at_the_first_runs_size_leaves_time_for_its_larger_proof(tmp_path: Path) -> None:
    """Two trials of four ran at the proof's size: the search kept the time of smaller runs."""
    result = run_large(large(tmp_path, "{time: 15m}"), tmp_path / "study", ByBytes(), Recorder())
    with StudyFolder.open(tmp_path / "study") as folder:
        assert stored_size(folder).grows
    rows = stored(tmp_path / "study")
    assert len({row.measurement.phases[-1].user_bytes_written for row in rows[:5]}) == 1
    assert [row.role for row in rows].count(Role.PROMOTION) == 1 + PROMOTED_MAX
    assert result.spent_s <= 900.0


class Falling(ByBytes):
    """The rate of all but the baseline falls; a warmup is performed, and not measured."""

    def _measurement(self, request: RunRequest, outcome: Outcome) -> Measurement:
        found = super()._measurement(request, outcome)
        if is_baseline_of_large(request):
            return found
        step = Interval(0.25, 0.25, 100, 100, 100.0, None)
        series = tuple(
            replace(step, elapsed_s=0.25 * n, throughput_ops_s=100.0 - n) for n in range(1, 41)
        )
        return replace(found, phases=tuple(replace(p, intervals=series) for p in found.phases))


def test_a_finalist_whose_rate_moves_has_a_proof_that_does_not_measure_the_beginning(
    tmp_path: Path,
) -> None:
    runner = Falling()
    result = run_large(large(tmp_path, "{time: 40m}"), tmp_path / "study", runner, Recorder())
    assert result.verdict is not None
    searched, proved = runner.requests[2].workload, runner.requests[-1].workload
    kinds = [phase.kind for phase in proved.phases]
    assert kinds == [*(phase.kind for phase in searched.phases[:-1]), "warmup", "measure"]
    each = [(w.phases[-1].operations_per_thread or 0) / w.num for w in (searched, proved)]
    assert each[0] == pytest.approx(each[1], rel=0.05), "what is measured is as long"


def test_a_rate_that_moves_is_warmed_up_also_where_the_finalist_has_longer_runs(
    tmp_path: Path,
) -> None:
    """Its own runs were twice as long, which was all that the baseline's moving rate asked for."""
    spec, runner, observer = mixed(tmp_path), FallingAtFirst(), Recorder()
    finalist = candidate_config(spec, 7, {"write_buffer_size": 4 << 20})
    with open_study(tmp_path / "study", spec) as folder:
        measurer = Measurer(
            *(folder, runner, *at_scale(spec, 1.0), observer, observer.stop, runner.clock),
            lengths=lambda config: 2.0 if config == finalist else 1.0,
        )
        (longer,) = (longer_by(workload, 2.0) for workload in measurer.workloads)
        measurer.measure(Arm(ROCKSDB, baseline_config(spec)), 1, Slot(Role.BASELINE, 0))
        slot = Slot(Role.TRIAL, 7, trial=7)
        measurer.measure(Arm(ROCKSDB, finalist), 1, slot, workload=longer)
        proof = for_proof(spec, measurer, RunSize(), 7, math.inf)
        folder.measurements.set_fact("proof_lengths", {})
        short = for_proof(spec, measurer, RunSize(), 7, 30.0)
    names = ["load", "settle", "run-warmup", "run"]
    assert [phase.name for phase in proof.workloads[0].phases] == names
    assert [phase.operations for phase in proof.workloads[0].phases[2:]] == [12_000, 12_000]
    # Where there is no time for both, what is measured comes first.
    assert short.workloads == [longer]


@pytest.mark.parametrize(
    "asked",
    [
        "metric: total_elapsed_s",
        "guards: [stall_s <= 2 * baseline]",
        # Of twice as many operations the slowest is slower, whatever the configuration.
        "guards: [latency_us_max <= 2 * baseline]",
    ],
)
def test_runs_that_are_compared_by_what_grows_with_them_have_one_length(
    asked: str, tmp_path: Path
) -> None:
    """A trial with twice the memtable took twice as long, and was the worse by that alone."""
    text = mixed(tmp_path).text
    if asked.startswith("metric"):
        text = text.replace("metric: sustained_throughput_ops_s", asked)
    else:
        text += asked + "\n"
    spec, runner = parse_spec(text, tmp_path / "small.yaml"), Buffering()
    tuned(spec, tmp_path / "study", runner)
    trials = [request for request in runner.requests if request.trial is not None]
    assert {request.workload.phases[-1].operations for request in trials} == {6000}


class SmallSecond(Buffering):
    """The second of two workloads flushes twice in a run, however long it is."""

    def _measurement(self, request: RunRequest, outcome: Outcome) -> Measurement:
        found = super()._measurement(request, outcome)
        if request.workload.name != "ycsb-b":
            return found
        return replace(found, phases=tuple(replace(p, flushes=2) for p in found.phases))


def test_a_workload_in_which_the_baseline_flushes_too_seldom_excludes_no_trial(
    tmp_path: Path,
) -> None:
    """All trials broke what the baseline broke, too, as the other workload had enough flushes."""
    of_one = "workload:\n  name: ycsb-a\n  recordcount: 1000\n  operationcount: 6000\n"
    each = "recordcount: 1000, operationcount: 6000}"
    of_two = f"workloads:\n- {{name: ycsb-a, {each}\n- {{name: ycsb-b, {each}\n"
    text = mixed(tmp_path).text.replace(of_one, of_two)
    result = tuned(parse_spec(text, tmp_path / "small.yaml"), tmp_path / "study", SmallSecond())
    assert result.best is not None


def test_runs_that_flush_often_enough_with_any_memtable_are_not_longer(tmp_path: Path) -> None:
    """Runs of 90 flushes were four times as long for a memtable with which they flush 15 times."""
    text = mixed(tmp_path).text.replace("operationcount: 6000", "operationcount: 60000")
    runner = Buffering()
    result = tuned(parse_spec(text, tmp_path / "small.yaml"), tmp_path / "study", runner)
    sizes = {int(str(r.config.options["write_buffer_size"])) for r in runner.requests}
    assert max(sizes) >= 12 << 20
    for request in runner.requests:
        if request.trial is not None:
            wanted = scaled_num(60000, times_as_long(request, 90))
            assert request.workload.phases[-1].operations == wanted
    assert result.verdict is not None
    assert result.verdict.outcome is VerdictOutcome.BETTER


def test_a_finalist_that_flushes_too_seldom_has_longer_pairs_where_all_trials_have_one_length(
    tmp_path: Path,
) -> None:
    """No trial with a larger memtable than the baseline's could be proved any more."""
    text = mixed(tmp_path).text + "guards: [stall_s <= 2 * baseline]\n"
    runner = Rising()
    result = tuned(parse_spec(text, tmp_path / "small.yaml"), tmp_path / "study", runner)
    tried = [int(str(request.config.options["write_buffer_size"])) for request in runner.requests]
    assert result.best is not None
    assert result.best.options["write_buffer_size"] == max(tried)
    assert result.verdict is not None
    assert result.verdict.outcome is VerdictOutcome.BETTER
