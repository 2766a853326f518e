"""The words of verdicts and failures, and what the displays show."""

from __future__ import annotations

import io
import json
import threading
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console, RenderableType

from lsmtune.cli.live import bench_display, bench_view, sparkline, tune_display, tune_view
from lsmtune.cli.output import failure
from lsmtune.cli.tune_progress import Plan, RunLine, RunProgress, TuneProgress
from lsmtune.driver.messages import PhaseFinished, PhaseStarted, parse_message
from lsmtune.experiment.schedule import Arm, Slot
from lsmtune.experiment.store import Role, StoredMeasurement
from lsmtune.model.config import Config, EngineIdentity
from lsmtune.model.goal import Goal, Objective, WeightedWorkload
from lsmtune.model.measurement import Measurement, Outcome, RunError
from lsmtune.model.verdict import GuardResult, MetricRatio, ProvedAt, Verdict, VerdictOutcome
from lsmtune.model.workload import Phase, PhaseKind, Workload
from lsmtune.report.terminal import blocks_view
from lsmtune.report.verdict import running_line, verdict_blocks, verdict_line
from lsmtune.report.words import quantity
from lsmtune.study.trials import TrialEnd
from patience import wait_until

GOLDEN = Path(__file__).parents[2] / "protocol" / "golden" / "messages-run.jsonl"
MESSAGES = [parse_message(line) for line in GOLDEN.read_text().splitlines()]
WORKLOAD = Workload(
    "fillrandom",
    (Phase("fillrandom", PhaseKind.MEASURE, "fillrandom", operations_per_thread=100_000),),
    num=100_000,
)
GOAL = Goal((Objective(),))
WORKLOADS = (WeightedWorkload("writes", WORKLOAD, 1.0),)

BETTER = Verdict(
    VerdictOutcome.BETTER,
    "sustained_throughput_ops_s",
    "maximize",
    confidence=0.95,
    pairs=5,
    ratio=1.42,
    ratio_low=1.37,
    ratio_high=1.47,
)


@pytest.mark.parametrize(
    ("verdict", "line"),
    [
        (
            BETTER,
            "1.42x the baseline (sustained_throughput_ops_s), 95 % CI 1.37 to 1.47, 5 pairs",
        ),
        (
            replace(
                BETTER,
                outcome=VerdictOutcome.NOT_PROVEN,
                ratio=1.011,
                ratio_low=0.981,
                ratio_high=1.06,
                why="the interval includes 1",
            ),
            "no proven gain: 1.011x the baseline (sustained_throughput_ops_s), 95 % CI 0.981 to "
            "1.06, 5 pairs; the interval includes 1",
        ),
        (
            replace(
                BETTER, metric="latency_us_p99", direction="minimize", ratio=0.5, ratio_low=0.4,
                ratio_high=0.6, confidence=0.99, pairs=8,
            ),
            "0.50x the baseline (latency_us_p99, lower is better), 99 % CI 0.40 to 0.60, 8 pairs",
        ),
        (
            replace(
                BETTER, outcome=VerdictOutcome.WORSE, ratio=None, ratio_low=None, why="lost data"
            ),
            "worse; lost data",
        ),
        (
            replace(
                BETTER, outcome=VerdictOutcome.NOT_PROVEN, ratio_low=None, ratio_high=None, pairs=1
            ),
            "no proven gain: 1.42x the baseline (sustained_throughput_ops_s), no interval, 1 pair",
        ),
    ],
)  # fmt: skip
def test_a_verdict_in_one_line(verdict: Verdict, line: str) -> None:
    assert verdict_line(verdict) == line


def lines_of(verdict: Verdict) -> list[str]:
    """What a command prints of a verdict, without the spaces between columns."""
    told = text_of(blocks_view(verdict_blocks(verdict)), 300)
    return [" ".join(line.split()) for line in told.splitlines()]


def test_a_verdict_with_all_that_goes_with_it() -> None:
    others = (
        MetricRatio("drain_s", "minimize", 0.5, 0.4, 0.6),
        MetricRatio("rss_bytes_max", "minimize", 1.5, 1.4, None),
        MetricRatio("score", "", 1.01, None, None),
        MetricRatio("stall_s", "minimize"),
    )
    guards = (
        GuardResult("rss_bytes_max <= 2 * baseline", 12, 1, 1.5, 1.4, 1.6, "load"),
        GuardResult("latency_us_p99 <= 2 * baseline", 12, 12, 3.0),
        GuardResult("stall_s <= 2 * baseline", 0, 0),
    )
    verdict = replace(
        BETTER,
        outcome=VerdictOutcome.NOT_PROVEN,
        why="the interval includes 1",
        pairs=12,
        others=others,
        guards=guards,
        proved_at=(ProvedAt("w", 1, 2000, 3, 4, share_of_target=0.5),),
        confidence_each=1 - 0.05 / 3,
        what_it_takes="about 40 pairs",
        notes=("mind this",),
    )
    together = "All these intervals hold together at 95 %: each one is at 98.33 % (Bonferroni), "
    assert lines_of(verdict) == [
        verdict_line(verdict),
        "what it takes: about 40 pairs",
        "proved at w: 1 record (0.5 of the target), 2,000 operations; "
        "baseline and candidate: 3 and 4 flushes",
        "guard ratio interval the candidate",
        "rss_bytes_max <= 2 * baseline 1.50\u00d7 1.40 to 1.60 held; broken in 1 of 12 pairs; "
        "in load",
        "latency_us_p99 <= 2 * baseline 3.00\u00d7 broken in 12 of 12 pairs",
        "stall_s <= 2 * baseline \u2013 no pair observed it",
        "metric better is ratio interval the candidate is",
        "drain lower 0.50\u00d7 0.40 to 0.60 better",
        "peak resident memory lower 1.50\u00d7 1.40 to \u2013 not told apart",
        "score 1.010\u00d7 not told apart",
        "stall lower \u2013 not told apart",
        f"{together}because who looks at several metrics finds one that differs by chance.",
        "warning: mind this",
    ]
    assert lines_of(BETTER) == [verdict_line(BETTER)]


def test_what_the_pairs_say_so_far() -> None:
    assert running_line(BETTER) == "after 5 pairs: 1.42x, 95 % CI 1.37 to 1.47"
    assert running_line(replace(BETTER, pairs=1, ratio=None)) == "after 1 pair: no ratio yet"
    unbounded = replace(BETTER, pairs=2, ratio_low=None, ratio_high=None)
    assert running_line(unbounded) == "after 2 pairs: 1.42x, no interval"


@pytest.mark.parametrize(
    ("error", "line"),
    [
        (
            RunError("bad_option_value", "m", "options.a", "lots", "a number"),
            "bench: -o a: found 'lots'; allowed: a number",
        ),
        (
            RunError("library", "x.so is no engine", "engine.library"),
            "bench: --library: x.so is no engine",
        ),
        (RunError("request", "num is zero", "workload.num"), "bench: workload.num: num is zero"),
        (RunError("unknown_option", "m", "options.zz"), "bench: -o zz: unknown option"),
    ],
)
def test_what_the_driver_refused_in_words_of_the_command_line(error: RunError, line: str) -> None:
    engine = EngineIdentity("memory")
    run = Measurement(Outcome.INVALID, engine, {}, "fillrandom", 1, 0.0, 0.0, error=error)
    assert str(failure(run, "bench")) == line


def text_of(view: RenderableType, width: int = 80) -> str:
    console = Console(width=width, file=io.StringIO())
    with console.capture() as captured:
        console.print(view)
    return captured.get()


def test_the_bench_view_while_a_phase_runs_and_after() -> None:
    run = RunProgress(WORKLOAD)
    assert "fillrandom" in text_of(bench_view(run))
    for message in MESSAGES[:5]:
        run.run_message(message)
    running = text_of(bench_view(run))
    assert "82 %" in running
    assert "168,000 ops/s  ██" in running
    for message in MESSAGES[5:]:
        run.run_message(message)
    assert "100 %" in text_of(bench_view(run))


@pytest.mark.parametrize("announced", [(("load", 0), ("settle", 1), ("read", 2)), (("read", 2),)])
def test_a_run_on_a_database_that_was_settled_unasked(announced: tuple[tuple[str, int]]) -> None:
    load = Phase("load", PhaseKind.LOAD, "fillseq", operations_per_thread=10)
    read = Phase("read", PhaseKind.MEASURE, "readseq", operations_per_thread=10)
    run = RunProgress(Workload("w", (load, read), num=10))
    for name, index in announced:
        run.run_message(PhaseStarted(index, name, "measure"))
    assert [known.phase.name for known in run.phases] == ["load", "settle", "read"]
    assert [known.started for known in run.phases] == [len(announced) > 1] * 2 + [True]


ARM = Arm(EngineIdentity("memory"), Config())
ASKED = (ARM.config, ARM.engine)  # the baseline of a Plan, and its engine
NOW = datetime(2026, 11, 20, 13, 59, 30, tzinfo=UTC)


def stored(role: Role, number: int, factor: float, outcome: Outcome) -> StoredMeasurement:
    (phase,) = (m.phase for m in MESSAGES if isinstance(m, PhaseFinished))
    phase = replace(phase, sustained_throughput_ops_s=100_000 * factor)
    measurement = Measurement(
        outcome, EngineIdentity("memory"), {}, "fillrandom", 1, 0.0, 2.0, (phase,)
    )
    trial = number if role is Role.TRIAL else None
    pair = number if role in (Role.PROOF_BASELINE, Role.PROOF_CANDIDATE) else None
    return StoredMeasurement(1, role, trial, pair, Config({"a": number}), measurement, 2.0)


def test_a_study_from_start_to_end() -> None:
    now = [0.0]
    plan = Plan(*ASKED, GOAL, WORKLOADS, trials=4, time_s=None, pairs=5)
    progress = TuneProgress(plan, lambda: now[0])
    progress.study_started(None, 0)
    progress.run_started(Slot(Role.BASELINE, 0), ARM, WORKLOAD)
    progress.run_message(MESSAGES[2])
    progress.run_message(MESSAGES[3])
    view = text_of(tune_view(progress, NOW, 80))
    assert "now          baseline: fillrandom 40 % 160,000 ops/s █" in view
    now[0] = 2.0
    progress.run_finished(stored(Role.BASELINE, 0, 1.0, Outcome.OK))
    progress.run_finished(stored(Role.TRIAL, 0, 1.5, Outcome.OK))
    progress.trial_finished(0, TrialEnd(Outcome.OK, (150_000.0,)), best=True)
    progress.best_changed(0, 150_000.0, 1.5)
    progress.run_finished(stored(Role.TRIAL, 1, 1.2, Outcome.CRASHED))
    progress.trial_finished(1, TrialEnd(Outcome.CRASHED), best=False)
    view = text_of(tune_view(progress, NOW, 80))
    best = "best so far  trial 0: 150,000 ops/s, 1.50x the baseline's, better (not yet proved)"
    assert best[:79] in view
    assert "             a=0\n" in view.replace(" " * 50, "")
    assert "  150,000 ops/s  1.50 better    2s  a=0" in view
    assert "2 of 4 trials, 1 crashed, 2s" in view
    assert "at most 24s left, until 13:59" in view
    assert "14 %" in view
    progress.proof_started(5)
    progress.run_started(Slot(Role.PROOF_CANDIDATE, 0, pair=0), ARM, WORKLOAD)
    progress.run_finished(stored(Role.PROOF_CANDIDATE, 0, 1.4, Outcome.OK))
    view = text_of(tune_view(progress, NOW, 80))
    assert "pair 1 candidate" in view
    assert "proof run 1 of at most 10" in view
    assert "at most 18s left" in view
    progress.finished(None)
    assert "100 %" in text_of(tune_view(progress, NOW, 80))


def test_a_run_that_ends_while_the_display_is_drawn_ends_no_display(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """`deque mutated during iteration` was its end: it is drawn in a thread of its own."""
    plan = Plan(*ASKED, GOAL, WORKLOADS, trials=4, time_s=None, pairs=5)
    progress = TuneProgress(plan, lambda: 0.0)
    line = RunLine("trial 0", "ok", 1e5, 1.0, (), 2.0)
    progress.lines += [line, line]

    def meanwhile(metric: str, value: float | None) -> str:
        progress.lines.append(line)
        return quantity(metric, value)

    monkeypatch.setattr("lsmtune.cli.live.quantity", meanwhile)
    view = text_of(tune_view(progress, NOW, 80))
    assert view.count("trial 0") == 2
    assert len(progress.lines) == 4


def test_warnings_take_no_line_of_the_display() -> None:
    """Three of them hid what was said before, and stood above it all the same."""
    texts: list[str] = []
    plan = Plan(*ASKED, GOAL, WORKLOADS, trials=4, time_s=None, pairs=5)
    progress = TuneProgress(plan, lambda: 0.0, on_text=texts.append)
    progress.calibrated("calibration: 3 pairs")
    for number in range(3):
        progress.warning(f"disk {number} is slow")
    view = text_of(tune_view(progress, NOW, 80))
    assert "calibration: 3 pairs" in view
    assert "slow" not in view
    assert texts[1:] == [f"warning: disk {number} is slow" for number in range(3)]


def test_what_is_said_beside_a_display_is_printed_by_the_thread_that_draws_it(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The next drawing erased what another thread had written: of a sweep each failed run."""
    writers: list[int] = []

    class Screen(io.StringIO):
        def write(self, text: str) -> int:
            writers.append(threading.get_ident())
            return super().write(text)

    monkeypatch.setenv("TERM", "xterm-256color")
    screen = Screen()
    console = Console(file=screen, force_terminal=True, width=80)
    monkeypatch.setattr("lsmtune.cli.live.live_console", lambda: console)
    plan = Plan(*ASKED, GOAL, WORKLOADS, trials=4, time_s=None, pairs=5)
    with tune_display(plan, lambda: 0.0, observer=TuneProgress) as progress:
        begun = len(writers)
        progress.warning("the disk is slow")
        wait_until(lambda: "warning: the disk is slow" in screen.getvalue())
        assert threading.get_ident() not in writers[begun:]
    run = RunProgress(WORKLOADS[0].workload)
    with bench_display(run):
        begun = len(writers)
        run.say("run 3 of 9: crashed")
        wait_until(lambda: "run 3 of 9: crashed" in screen.getvalue())
        assert threading.get_ident() not in writers[begun:]
        run.say("the last word")
    run.say("no display any more")
    assert screen.getvalue().index("run 3") < screen.getvalue().index("last word")
    assert capsys.readouterr().err == "no display any more\n"


def test_two_runs_of_a_pair_that_are_on_at_once_keep_their_names() -> None:
    lines: list[RunLine] = []
    texts: list[str] = []
    plan = Plan(*ASKED, GOAL, WORKLOADS, trials=0, time_s=None, pairs=6)
    progress = TuneProgress(plan, lambda: 0.0, on_line=lines.append, on_text=texts.append)
    roles = Role.PROOF_CANDIDATE, Role.PROOF_BASELINE
    for role in roles:
        progress.run_started(Slot(role, 0, pair=0), ARM, WORKLOAD)
    for role in roles:
        progress.run_finished(replace(stored(role, 0, 1.0, Outcome.OK), wall_s=30.0))
    assert [line.name for line in lines] == ["pair 1 candidate", "pair 1 baseline"]
    assert [line.wall_s for line in lines] == [2.0, 2.0]  # its own time, not its share of the pair
    progress.pair_judged(BETTER)
    assert texts == ["after 5 pairs: 1.42x, 95 % CI 1.37 to 1.47"]
    assert texts[0] in text_of(tune_view(progress, NOW, 80))


def test_the_line_of_a_trial_says_what_became_of_it() -> None:
    lines: list[RunLine] = []
    plan = Plan(*ASKED, GOAL, WORKLOADS, trials=4, time_s=None, pairs=5)
    progress = TuneProgress(plan, lambda: 0.0, on_line=lines.append)
    for number, best in enumerate((True, False)):
        progress.run_started(Slot(Role.TRIAL, number, trial=number), ARM, WORKLOAD)
        progress.run_finished(stored(Role.TRIAL, number, 1.0, Outcome.OK))
        assert len(lines) == number
        end = TrialEnd(Outcome.OK, (1.0,), {} if best else {"rss_bytes_max <= 1": 2.0})
        progress.trial_finished(number, end, best=best)
    assert [(line.name, line.best, line.why) for line in lines] == [
        ("trial 0", True, ""),
        ("trial 1", False, "breaks rss_bytes_max <= 1"),
    ]


def test_the_runs_of_a_trial_are_told_apart() -> None:
    lines: list[RunLine] = []
    several = (*WORKLOADS, WeightedWorkload("reads", WORKLOAD, 2.0))
    plan = Plan(*ASKED, Goal((Objective(),), (0.5, 0.5)), several, trials=4, time_s=None, pairs=5)
    progress = TuneProgress(plan, lambda: 0.0, on_line=lines.append)
    for place in (
        Slot(Role.RUNG, 0, trial=7, workload=0, rung=0),
        Slot(Role.TRIAL, 0, trial=7, workload=0),
        Slot(Role.TRIAL, 0, trial=7, workload=1),
    ):
        progress.run_started(place, ARM, WORKLOAD)
        progress.run_finished(stored(place.role, 7, 1.0, Outcome.OK))
    progress.trial_finished(7, TrialEnd(Outcome.OK, (1.0,)), best=False)
    names = [line.name for line in lines]
    assert names == ["trial 7 writes (100,000 keys)", "trial 7 writes", "trial 7 reads"]


def test_a_time_budget_counts_the_sessions_before() -> None:
    plan = Plan(*ASKED, GOAL, WORKLOADS, trials=None, time_s=100.0, pairs=5)
    progress = TuneProgress(plan, lambda: 10.0, spent_before_s=25.0)
    assert progress.share == 0.25
    assert progress.left_s == 75.0


def test_sparkline() -> None:
    assert sparkline([]) == ""
    assert sparkline([0.0]) == ""
    assert sparkline([1.0, 4.0, 8.0]) == "▁▄█"


def test_on_a_terminal_the_display_is_live_and_stdout_stays_clean(
    lsmtune: Any, study: Path, fake_driver: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert fake_driver.exists()
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("TERM", "xterm")
    said = lsmtune("bench", "--engine", "memory", "--workload", "fillrandom", "--json")
    assert "run 1 of 1" in said.err
    json.loads(said.out)
    said = lsmtune("tune", str(study), "--json")
    assert said.status == 0
    assert "best so far" in said.err
    assert json.loads(said.out)["trials"] == 2
