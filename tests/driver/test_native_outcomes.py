"""Every outcome of a run, with a driver that misbehaves on demand; and nothing is ever left."""

from __future__ import annotations

import contextlib
import json
import os
import re
import signal
import threading
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import psutil
import pytest

from lsmtune.driver import process, watch
from lsmtune.driver import runner as run_directory
from lsmtune.driver.collect import KILLED, judge
from lsmtune.driver.messages import (
    PROTOCOL_VERSION,
    IntervalPassed,
    Message,
)
from lsmtune.driver.native import NativeRunner
from lsmtune.driver.watch import Ending
from lsmtune.errors import ExitStatus, InputError, LsmtuneError
from lsmtune.machine.cgroup import MemoryGroup, memory_group, memory_group_obstacle
from lsmtune.model.config import Build, EngineIdentity
from lsmtune.model.measurement import Measurement, Outcome
from lsmtune.model.request import RunRequest
from lsmtune.model.workload import PageCache
from patience import PATIENCE_S, wait_until_over
from troubles import why_not_ok

MakeRequest = Callable[..., RunRequest]


@pytest.fixture
def run(fake_driver: Path, make_request: MakeRequest) -> Callable[..., Measurement]:
    def run_it(behaviour: str, **changes: object) -> Measurement:
        return NativeRunner(fake_driver).run(make_request(behaviour, **changes))

    return run_it


def wait_until_its_child_is_over(tmp_path: Path) -> None:
    with contextlib.suppress(psutil.NoSuchProcess):
        wait_until_over([psutil.Process(int((tmp_path / "run-1" / "child.pid").read_text()))])


@pytest.fixture
def run_past_deadline(fake_driver: Path, make_request: MakeRequest) -> Callable[[str], Measurement]:
    """Performs a run whose clock passes the deadline of 700 ms once it has said `until`."""

    def run_it(behaviour: str, until: type[Message] = IntervalPassed) -> Measurement:
        now_s = [0.0]

        def on_message(message: Message) -> None:
            if isinstance(message, until):
                now_s[0] = 1.0

        request = make_request(behaviour, deadline_s=0.7)
        return NativeRunner(fake_driver, clock=lambda: now_s[0]).run(request, on_message)

    return run_it


def test_a_run_that_ends_well_keeps_everything(
    fake_driver: Path, make_request: MakeRequest, tmp_path: Path
) -> None:
    heard: list[Message] = []
    measurement = NativeRunner(fake_driver).run(make_request("ok"), heard.append)
    assert measurement.outcome is Outcome.OK
    assert measurement.error is None
    assert measurement.warnings == ()
    assert measurement.engine == EngineIdentity(
        "rocksdb", "10.2.1", "/opt/rocksdb/librocksdb.so", Build.RELEASE
    )
    (phase,) = measurement.phases
    assert phase.operations == 100000
    assert [step.operations_total for step in phase.intervals] == [40000, 82000]
    assert (phase.flushes, phase.compactions) == (2, 1)
    assert phase.write_amplification == 1.07
    assert phase.latencies["put"].histogram_ns_base64.startswith("HISTF")
    assert measurement.verification is not None
    assert measurement.verification.keys_checked == 4100
    assert measurement.options_not_taken[0].effective == "20"
    assert (measurement.cpu_s, measurement.rss_bytes_max) == (0.9, 61000000)
    assert measurement.intervals_unfinished == ()
    assert len(heard) == 9
    sent = json.loads((tmp_path / "run-1" / "request.json").read_text())
    assert sent["options"] == {"fake": "ok"}
    assert sent["directory"] == str(tmp_path / "run-1" / "db")


def test_a_last_line_without_its_newline_counts(run: Callable[..., Measurement]) -> None:
    assert run("no_newline").outcome is Outcome.OK


@pytest.mark.parametrize("behaviour", ["hang", "close_pipe", "flood"])
def test_a_run_past_its_deadline_is_killed(
    run_past_deadline: Callable[[str], Measurement], behaviour: str
) -> None:
    measurement = run_past_deadline(behaviour)
    assert measurement.outcome is Outcome.TIMEOUT
    assert "deadline of 700ms" in why_not_ok(measurement)
    assert measurement.phases == ()
    assert measurement.intervals_unfinished
    assert measurement.phase_unfinished == "fillrandom"


def test_a_run_that_says_nothing_is_killed_at_its_deadline(run: Callable[..., Measurement]) -> None:
    started_s = time.monotonic()
    measurement = run("silent", deadline_s=0.7)
    assert measurement.outcome is Outcome.TIMEOUT
    assert 0.7 <= time.monotonic() - started_s < PATIENCE_S
    assert "deadline of 700ms" in why_not_ok(measurement)
    assert (measurement.phases, measurement.intervals_unfinished) == ((), ())


def test_the_whole_group_is_killed(
    run_past_deadline: Callable[[str], Measurement], tmp_path: Path
) -> None:
    assert run_past_deadline("hang_with_child").outcome is Outcome.TIMEOUT
    wait_until_its_child_is_over(tmp_path)


def test_a_child_of_the_driver_does_not_outlive_a_good_run(
    run: Callable[..., Measurement], tmp_path: Path
) -> None:
    """It holds the message pipe open, so there is never an end of file."""
    assert run("leave_child").outcome is Outcome.OK
    wait_until_its_child_is_over(tmp_path)


def test_without_a_control_group_resident_memory_is_watched(
    fake_driver: Path, make_request: MakeRequest
) -> None:
    runner = NativeRunner(fake_driver, make_memory_group=lambda _: None)
    measurement = runner.run(make_request("eat_memory", memory_bytes=100 << 20))
    assert measurement.outcome is Outcome.OUT_OF_MEMORY
    assert measurement.memory_limited_by == "watch"
    assert re.search("resident memory of .* is over the limit of 100MiB", why_not_ok(measurement))
    assert len(measurement.intervals_unfinished) == 1


def test_a_control_group_holds_the_run_where_one_can_be_made(
    run: Callable[..., Measurement],
) -> None:
    obstacle = memory_group_obstacle()
    if obstacle:
        pytest.skip(obstacle)
    measurement = run("eat_memory", memory_bytes=100 << 20)
    assert measurement.outcome is Outcome.OUT_OF_MEMORY
    assert measurement.memory_limited_by == "cgroup"
    assert "limit of 100MiB of its control group" in why_not_ok(measurement)
    assert len(measurement.intervals_unfinished) == 1
    group = memory_group(1 << 30)
    assert group is not None
    with group:  # beside those of the run, of which nothing is left
        assert list(group.path.parent.glob(f"lsmtune-{os.getpid()}-*")) == [group.path]


def test_a_control_group_that_refuses_the_run_is_said_and_memory_watched(
    fake_driver: Path, make_request: MakeRequest, tmp_path: Path
) -> None:
    class Refusing(MemoryGroup):
        def add(self, pid: int) -> None:
            raise LsmtuneError(f"{self.path}: no place for {pid}")

        def remove(self) -> None:
            pass

    runner = NativeRunner(
        fake_driver, make_memory_group=lambda limit: Refusing(tmp_path, limit, "none")
    )
    measurement = runner.run(make_request("ok"))
    assert measurement.outcome is Outcome.OK
    assert measurement.memory_limited_by == "watch"
    assert "memory is watched only" in measurement.warnings[0]


@pytest.mark.parametrize("less", [True, False])
def test_a_run_that_had_less_memory_than_it_was_given_says_so(
    fake_driver: Path, make_request: MakeRequest, tmp_path: Path, less: bool
) -> None:
    """In a container of 512 MiB a study of 1 GiB said nothing, and the kernel killed at half."""

    class Made(MemoryGroup):
        def add(self, pid: int) -> None:
            pass

        def oom_kills(self) -> int:
            return 0

        def remove(self) -> None:
            pass

    def make(limit: int) -> MemoryGroup:
        return Made(tmp_path, limit // 2 if less else limit, "none")

    request = make_request("ok", memory_bytes=1 << 30)
    warnings = NativeRunner(fake_driver, make_memory_group=make).run(request).warnings
    said = "had 512MiB of memory, not 1GiB: lsmtune itself is limited to that"
    assert (said in warnings) is less


@pytest.mark.parametrize("cache", PageCache)
@pytest.mark.parametrize("memory_bytes", [64 << 20, 128 << 20])
def test_a_run_whose_files_were_cached_past_its_limit_says_so(
    fake_driver: Path, make_request: MakeRequest, memory_bytes: int, cache: PageCache
) -> None:
    """Without a control group all reads came from the page cache, and nobody was told."""
    request = make_request("ok", memory_bytes=memory_bytes)
    request = replace(request, workload=replace(request.workload, page_cache=cache))
    runner = NativeRunner(fake_driver, make_memory_group=lambda _: None)
    warnings = runner.run(request).warnings  # 61 MB of process, and 7 MB of database
    if memory_bytes == 64 << 20 and cache is not PageCache.DIRECT:
        assert warnings[0].startswith("no control group held it to 64MiB, page cache included")
    else:
        assert warnings == ()


def test_disk_over_the_limit_is_killed(run: Callable[..., Measurement]) -> None:
    measurement = run("fill_disk", disk_bytes=16 << 20)
    assert measurement.outcome is Outcome.DISK_FULL
    assert "over the limit of 16MiB" in why_not_ok(measurement)


def test_too_little_free_space_is_said_before_anything_runs(
    run: Callable[..., Measurement], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(run_directory, "FREE_BYTES_MIN", 1 << 62)
    # No outcome: the next configuration would meet the same disk, and the user can mend it.
    with pytest.raises(LsmtuneError, match=r"run-1: .* free, and a run needs at least .*; free so"):
        run("ok")
    assert list((tmp_path / "run-1").iterdir()) == []


@pytest.mark.parametrize("name", ["SIGABRT", "SIGSEGV", "SIGBUS"])
def test_a_crash_names_its_signal_and_keeps_the_engines_last_words(
    run: Callable[..., Measurement], name: str
) -> None:
    measurement = run("crash", signal=signal.Signals[name].value)
    assert measurement.outcome is Outcome.CRASHED
    assert f"killed by {name} in phase fillrandom" in why_not_ok(measurement)
    assert "Assertion `n < 2' failed" in why_not_ok(measurement)
    assert measurement.error is not None
    assert measurement.error.found == "db.cc:12: void f(): Assertion `n < 2' failed."


@pytest.mark.parametrize("name", ["SIGKILL", "SIGTERM", "SIGHUP"])
def test_who_kills_a_driver_from_outside_is_not_guessed(
    run: Callable[..., Measurement], name: str
) -> None:
    measurement = run("crash", signal=signal.Signals[name].value)
    assert measurement.outcome is Outcome.DISTURBED
    assert measurement.error is not None
    assert measurement.error.kind == KILLED
    assert f"killed by {name} in phase fillrandom, by whom is not known" in why_not_ok(measurement)


def test_out_of_memory_is_said_where_the_kernel_has_counted_it() -> None:
    killed = Ending(None, "", -signal.SIGKILL, oom_killed=True)
    judgement = judge(None, killed, "in phase fillrandom", "")
    assert judgement.outcome is Outcome.OUT_OF_MEMORY
    stranger = judge(None, replace(killed, oom_killed=False), "in phase fillrandom", "")
    assert stranger.outcome is Outcome.DISTURBED


def test_a_crash_keeps_the_phases_measured_before_it(run: Callable[..., Measurement]) -> None:
    measurement = run("crash_after_phase")
    assert measurement.outcome is Outcome.CRASHED
    assert [phase.name for phase in measurement.phases] == ["fillrandom"]
    assert len(measurement.phases[0].intervals) == 1
    assert len(measurement.intervals_unfinished) == 1


@pytest.mark.parametrize(
    ("name", "outcome"), [("SIGKILL", Outcome.DISTURBED), ("SIGSEGV", Outcome.CRASHED)]
)
def test_a_driver_that_dies_in_the_middle_of_a_message_is_judged_by_its_death(
    run: Callable[..., Measurement], name: str, outcome: Outcome
) -> None:
    """It had broken the protocol, so that who was killed from outside had crashed."""
    measurement = run("die_in_a_message", signal=signal.Signals[name].value)
    assert measurement.outcome is outcome
    assert f"killed by {name} in phase fillrandom" in why_not_ok(measurement)


@pytest.mark.parametrize("status", [0, 3])
def test_an_exit_without_a_last_message_is_a_crash(
    run: Callable[..., Measurement], status: int
) -> None:
    measurement = run("stop_early", status=status)
    assert measurement.outcome is Outcome.CRASHED
    assert f"exited with status {status} before it had finished" in why_not_ok(measurement)


@pytest.mark.parametrize(
    ("behaviour", "why"),
    [
        ("garbage", "not a line of JSON"),
        ("endless_line", "a line of more than"),
        ("no_hello", "the first message is Opened; allowed: hello"),
    ],
)
def test_a_driver_that_breaks_the_protocol_has_crashed(
    run: Callable[..., Measurement],
    monkeypatch: pytest.MonkeyPatch,
    behaviour: str,
    why: str,
) -> None:
    monkeypatch.setattr(process, "_LINE_BYTES_MAX", 4 << 20)
    measurement = run(behaviour)
    assert measurement.outcome is Outcome.CRASHED
    assert why in why_not_ok(measurement)


def test_a_driver_of_another_version_is_refused(run: Callable[..., Measurement]) -> None:
    with pytest.raises(InputError, match="protocol_version") as caught:
        run("wrong_version")
    assert caught.value.exit_status is ExitStatus.BAD_INPUT
    found, allowed = PROTOCOL_VERSION + 1, PROTOCOL_VERSION
    assert f"found {found}; allowed: {allowed}" in str(caught.value)
    assert "make setup" in str(caught.value)


def test_the_drivers_own_failures_pass_through(
    fake_driver: Path, make_request: MakeRequest, tmp_path: Path
) -> None:
    outcomes = []
    for line in (1, 2, 3):
        measurement = NativeRunner(fake_driver).run(make_request("fail", line=line))
        outcomes.append(measurement.outcome)
        assert why_not_ok(measurement)
        (tmp_path / "run-1").rename(tmp_path / f"done-{line}")
        if line == 1:
            assert measurement.error is not None
            assert measurement.error.nearest == ("write_buffer_size",)
    assert outcomes == [Outcome.INVALID, Outcome.DATA_LOSS, Outcome.CANCELLED]


def test_a_driver_that_does_not_exit_after_its_last_message_is_killed_with_a_warning(
    run: Callable[..., Measurement], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(watch, "EXIT_GRACE_S", 0.2)
    measurement = run("linger", deadline_s=60.0)
    assert measurement.outcome is Outcome.OK
    assert "did not exit" in measurement.warnings[0]


def test_a_crash_after_the_last_message_is_a_warning(run: Callable[..., Measurement]) -> None:
    measurement = run("die_after")
    assert measurement.outcome is Outcome.OK
    assert "killed by SIGSEGV after its last message" in measurement.warnings[0]


@pytest.mark.parametrize("behaviour", ["obey", "hang"])
def test_cancel_asks_first_and_kills_after_a_grace(
    fake_driver: Path,
    make_request: MakeRequest,
    monkeypatch: pytest.MonkeyPatch,
    behaviour: str,
) -> None:
    monkeypatch.setattr(watch, "CANCEL_GRACE_S", 0.5 if behaviour == "hang" else PATIENCE_S)
    cancel = threading.Event()

    def on_message(message: Message) -> None:
        if isinstance(message, IntervalPassed):
            cancel.set()

    measurement = NativeRunner(fake_driver).run(make_request(behaviour), on_message, cancel)
    assert measurement.outcome is Outcome.CANCELLED
    killed = "killed because it did not stop" in why_not_ok(measurement)
    assert killed == (behaviour == "hang")
    assert len(measurement.intervals_unfinished) == 1


def test_what_the_user_can_mend_is_an_input_error(
    fake_driver: Path, make_request: MakeRequest, tmp_path: Path
) -> None:
    request = make_request("ok")
    with pytest.raises(InputError, match="No such file"):
        NativeRunner(tmp_path / "nowhere").run(request)
    (tmp_path / "text").write_text("not a program")
    (tmp_path / "text").chmod(0o755)
    with pytest.raises(InputError, match=r"text: cannot be used: Exec format error.*make setup"):
        NativeRunner(tmp_path / "text").run(request)
    with pytest.raises(InputError, match="no such file"):
        NativeRunner(fake_driver).run(
            replace(request, engine=EngineIdentity("rocksdb", library="/nowhere/librocksdb.so"))
        )


def test_a_disk_that_fails_is_no_outcome_of_a_run(run: Callable[..., Measurement]) -> None:
    """Or the configuration would be blamed, and the search led away from it."""
    with pytest.raises(LsmtuneError) as caught:
        run("disk_fails")
    assert str(caught.value).startswith(
        "the disk failed in phase fillrandom: IO error: /db/000003.log: Input/output error; "
    )
    assert caught.value.exit_status is ExitStatus.FAILED


def test_a_file_beyond_a_limit_is_an_error_and_no_death(tmp_path: Path) -> None:
    """`ulimit -f`: Python ignores the signal, and so has the driver that it starts."""
    log, command = tmp_path / "log", ["sh", "-c", "grep SigIgn /proc/$$/status"]
    with process.ChildProcess(command, log) as child:
        while not child.exited():
            child.lines(0.1)
    ignored = int(log.read_text().split()[1], 16)
    assert ignored >> (signal.SIGXFSZ - 1) & 1
