"""`lsmtune doctor` on made-up machines, and its calibration on a runner without an engine."""

from __future__ import annotations

import json
import re
import signal
import sys
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from lsmtune.cli import doctor
from lsmtune.cli.flags import LimitFlags
from lsmtune.driver import library_facts, native
from lsmtune.driver.library_facts import Listing, engine_findings
from lsmtune.engines.library import Library
from lsmtune.machine import findings, host
from lsmtune.machine.awake import AwakeClock
from lsmtune.machine.filesystem import Mount
from lsmtune.machine.findings import Finding, Level
from lsmtune.model.config import Build, EngineIdentity
from lsmtune.model.measurement import Outcome, RunError
from lsmtune.model.request import RunRequest
from lsmtune.proof import standalone as calibration_module

sys.path.insert(0, str(Path(__file__).parent.parent / "study"))

from fake_runner import FakeRunner, Noisy


def put(root: Path, path: str, text: str) -> None:
    file = root / path
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)


def known(build: Build, compressions: tuple[str, ...] = ("none", "snappy")) -> Library:
    path = Path("/opt/librocksdb.so")
    return Library(path, EngineIdentity("rocksdb", "9.0", str(path), build), compressions, "test")


@pytest.mark.parametrize(
    ("library", "levels"),
    [
        (known(Build.RELEASE), ["ok", "warning"]),
        (known(Build.ASSERTIONS_ON), ["warning", "warning"]),
        (known(Build.SLOW_SNAPPY), ["warning", "warning"]),
        (known(Build.OWN_SNAPPY), ["ok", "warning"]),
        (known(Build.UNKNOWN), ["warning", "warning"]),
        (known(Build.RELEASE, ("none",)), ["ok", "note", "warning"]),
    ],
)
def test_each_engine_has_a_finding(library: Library, levels: list[str]) -> None:
    found = list(engine_findings(Listing((library,), ())))
    assert [f.level.value for f in found] == levels
    assert all(f.next_step for f in found if f.level is not Level.OK)


def test_a_warning_of_the_registry_becomes_a_finding() -> None:
    listing = Listing((), ("registered library x is gone; next step: lsmtune engines remove x",))
    finding = list(engine_findings(listing))[-1]
    assert finding.text == "registered library x is gone"
    assert finding.next_step == "lsmtune engines remove x"


@pytest.mark.parametrize(
    ("mount", "level", "said"),
    [
        (Mount("ext4", "/dev/sda", "/", (), rotational=False), "ok", "ext4 on /dev/sda"),
        (Mount("xfs", "/dev/sda", "/", (), rotational=True), "note", "says that it turns"),
        (Mount("tmpfs", "none", "/"), "warning", "is memory"),
        (Mount("nfs4", "server:/", "/"), "warning", "on another machine"),
    ],
)
def test_the_kind_of_disk_is_judged(mount: Mount, level: str, said: str) -> None:
    (found,) = findings.mount_findings(mount, Path("/d"))
    assert found.level == level
    assert said in found.text
    assert bool(found.next_step) == (level != "ok")


def test_options_of_a_mount_that_bear_on_writes_are_warned_of() -> None:
    mount = Mount("ext4", "/dev/sda", "/", ("rw", "sync", "nobarrier"), rotational=False)
    found = list(findings.mount_findings(mount, Path("/d")))
    assert [f.level for f in found] == [Level.OK, Level.WARNING, Level.WARNING]
    assert "sync" in found[1].text
    assert "nobarrier" in found[2].text


def test_memory_limits_and_how_a_run_is_held_are_told(tmp_path: Path) -> None:
    put(tmp_path, "proc/self/cgroup", "0::/job\n")
    put(tmp_path, "sys/fs/cgroup/job/memory.max", "1048576\n")
    put(tmp_path, "sys/fs/cgroup/job/memory.current", "524288\n")
    memory, held = findings.memory_findings(tmp_path)
    assert "limited to 1MiB here, 512KiB used" in memory.text
    assert held.level is Level.NOTE
    assert "no group above this process gives memory limits" in held.text
    assert held.next_step


def test_governors_and_quotas_are_judged(tmp_path: Path) -> None:
    assert [f.subject for f in findings.cpu_findings(tmp_path)] == ["cpu", "governor"]
    put(tmp_path, "sys/devices/system/cpu/cpu0/cpufreq/scaling_governor", "powersave\n")
    put(tmp_path, "sys/devices/system/cpu/smt/active", "1\n")
    put(tmp_path, "proc/self/cgroup", "0::/\n")
    put(tmp_path, "sys/fs/cgroup/cpu.max", "50000 100000\n")
    cpu, governor = findings.cpu_findings(tmp_path)
    assert cpu.level is Level.WARNING
    assert "limited to the time of 0.5, two to a core" in cpu.text
    assert governor.level is Level.WARNING
    assert "performance" in governor.next_step


@pytest.mark.parametrize(("quota", "told"), [(100, "100"), (12.5, "12.5"), (1.75, "1.75")])
def test_a_quota_is_told_as_it_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, quota: float, told: str
) -> None:
    """It was rounded to two digits: `1e+02` processors, and 12 or 1.8 of them."""
    monkeypatch.setattr(host, "usable_cores", lambda: tuple(range(128)))
    put(tmp_path, "proc/self/cgroup", "0::/\n")
    put(tmp_path, "sys/fs/cgroup/cpu.max", f"{int(quota * 100_000)} 100000\n")
    cpu, _governor = findings.cpu_findings(tmp_path)
    assert re.search(rf"limited to the time of {re.escape(told)}($|:)", cpu.text)


def test_load_steal_and_waiting_are_judged(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.getloadavg", lambda: (99.0, 1.0, 1.0))
    monkeypatch.setattr("psutil.cpu_times_percent", lambda _s: SimpleNamespace(steal=50.0))
    put(tmp_path, "proc/pressure/io", "some avg10=9.0 avg60=40.00 avg300=1.0 total=1\n")
    found = {f.subject: f for f in findings.quiet_findings(tmp_path)}
    assert {f.level for f in found.values()} == {Level.WARNING}
    assert "50.0 %" in found["steal"].text
    assert "40 %" in found["disk load"].text
    assert "99.00" in found["load"].text


def test_a_slow_clock_is_warned_of(tmp_path: Path) -> None:
    assert findings.clock_finding(tmp_path).level is Level.NOTE
    for clock, level in (("hpet", Level.WARNING), ("tsc", Level.OK)):
        put(tmp_path, "sys/devices/system/clocksource/clocksource0/current_clocksource", clock)
        assert findings.clock_finding(tmp_path).level is level


def test_a_missing_driver_and_folder_are_problems_and_fail(
    lsmtune: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LSMTUNE_DRIVER", str(tmp_path / "absent"))
    said = lsmtune("doctor", "--dir", str(tmp_path / "absent"), "--json")
    assert said.status == 1
    problems = {f["subject"] for f in said.json()["findings"] if f["level"] == "problem"}
    assert problems == {"driver", "disk"}


@pytest.mark.engine
def test_every_subject_is_looked_at_on_this_machine(
    lsmtune: Any, driver: Path, tmp_path: Path
) -> None:
    assert driver.is_file()
    said = lsmtune("doctor", "--dir", str(tmp_path))
    assert said.status == 0, said.out
    lines = said.out.splitlines()
    subjects = {line.split(None, 1)[1].split(":")[0] for line in lines}
    wanted = {"driver", "rocksdb", "leveldb", "disk", "page cache", "memory", "memory limit"}
    assert wanted | {"cpu", "governor", "load", "clock", "noise"} <= subjects
    assert all("next step: " in line for line in lines if line.startswith("warning"))


# --- calibration


@pytest.fixture
def runner(fake_driver: Path, monkeypatch: pytest.MonkeyPatch) -> Noisy:
    """The runner of every calibration; no other finding takes time."""
    assert fake_driver.is_file()
    noisy = Noisy(0.05, fake_s=0.02)
    monkeypatch.setattr(native, "NativeRunner", lambda _driver: noisy)
    # Its clock is the runner's, whose time no busy machine takes.
    clock = AwakeClock(noisy.clock)
    monkeypatch.setattr(calibration_module, "AwakeClock", lambda: clock)
    monkeypatch.setattr(
        "lsmtune.cli.doctor.examine", lambda _directory: [Finding(Level.OK, "driver", "there")]
    )
    return noisy


CALIBRATE = ("doctor", "--engine", "memory", "-w", "num=1000", "--calibrate")


@pytest.mark.usefixtures("runner")
def test_a_calibration_says_what_noise_hides(lsmtune: Any, home: Path) -> None:
    said = lsmtune(*CALIBRATE, "1s", "--json")
    assert said.status == 0, said.err
    document = said.json()
    assert [f["subject"] for f in document["findings"]] == ["driver"]
    found = document["calibration"]
    assert found["metric"] == "sustained_throughput_ops_s"
    assert found["workload"]["num"] == 1000
    assert found["num_recommended"] == 5000
    (method,) = found["methods"]
    assert method["method"] == "whole"
    assert method["pairs"] >= 5
    assert "not lsmtune's own driver" in method["why"]
    noise = method["metrics"]["sustained_throughput_ops_s"]
    assert 0.01 < noise["run_log_sd"] < 0.15
    assert noise["pair_log_sd_low"] < noise["pair_log_sd"] < noise["pair_log_sd_high"]
    assert [p["budget_s"] for p in noise["provable"]] == [60, 600, 3600]
    effects = [p["smallest_effect"] for p in noise["provable"]]
    assert effects == sorted(effects, reverse=True)
    assert [n["effect"] for n in noise["needed"]] == [0.05, 0.01]
    assert noise["needed"][0]["pairs"] < noise["needed"][1]["pairs"]
    assert any("flushed 4 times" in line for line in found["warnings"])
    assert list(home.iterdir()) == []


@pytest.mark.usefixtures("runner")
def test_a_calibration_is_a_table_for_people(lsmtune: Any) -> None:
    said = lsmtune(*CALIBRATE, "1s")
    assert said.status == 0, said.err
    for words in (
        "ok      driver: there",
        "by whole: ",
        "smallest difference provable in a time:",
        "to prove a difference in sustained_throughput_ops_s: 5 % takes ",
        "run length: at least -w num=5000",
        "warning: fillrandom: flushed 4 times",
    ):
        assert words in said.out
    assert "noise: not measured" not in said.out


@pytest.mark.usefixtures("runner")
def test_a_time_too_short_for_two_pairs_is_refused_with_one_that_does(
    lsmtune: Any, home: Path
) -> None:
    said = lsmtune(*CALIBRATE, "1ms")
    assert said.status == 2
    assert said.err.count("\n") == 1
    assert "--calibrate: too short for 2 pairs of runs; found '1ms'; allowed: a longer time" in (
        said.err
    )
    assert list(home.iterdir()) == []


def test_a_run_that_fails_ends_it_in_one_line(lsmtune: Any, runner: Noisy, home: Path) -> None:
    runner.fails = lambda _request: Outcome.CRASHED
    said = lsmtune(*CALIBRATE, "1s")
    assert said.status == 1
    assert "ended crashed: made to end crashed" in said.err.splitlines()[-1]
    assert list(home.iterdir()) == []


def test_an_option_that_the_engine_refuses_is_the_users(
    lsmtune: Any, runner: Noisy, monkeypatch: pytest.MonkeyPatch
) -> None:
    error = RunError("unknown_option", "no", "options.x", "x", None, ("y",))
    monkeypatch.setattr(
        Noisy,
        "_measurement",
        lambda self, request, _outcome: replace(
            FakeRunner._measurement(self, request, Outcome.INVALID), error=error
        ),
    )
    said = lsmtune(*CALIBRATE, "1s", "-o", "x=1")
    assert said.status == 2
    assert said.err.splitlines()[-1] == "lsmtune: doctor: -o x: unknown option; did you mean y?"
    assert len(runner.requests) == 2


def test_ctrl_c_keeps_nothing_and_says_so(lsmtune: Any, runner: Noisy, home: Path) -> None:
    def interrupt(_request: RunRequest) -> Outcome | None:
        if len(runner.requests) == 3:
            signal.raise_signal(signal.SIGINT)
        return None

    runner.fails = interrupt
    said = lsmtune(*CALIBRATE, "60s", "--json")
    assert said.status == 130
    assert json.loads(said.out)["error"] == {
        "status": 130,
        "message": "interrupted; nothing was kept",
    }
    assert "interrupted; nothing was kept" in said.err
    assert list(home.iterdir()) == []


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        (["--calibrate", "60"], "--engine: needed by --calibrate; allowed: rocksdb, leveldb"),
        (["--calibrate", "soon"], "--calibrate: found 'soon'; allowed: seconds as a number"),
        (["--calibrate", "0s"], "--calibrate: found '0s'; allowed: a duration above 0"),
        (["--calibrate", "9", "--engine", "rocks"], "--engine: found 'rocks'; allowed: rocksdb"),
        (["--calibrate", "9", "--engine", "noop"], "--engine: found 'noop'; allowed: rocksdb"),
        (
            ["--calibrate", "9", "--engine", "memory", "--workload", "fillrandm"],
            "--workload: found 'fillrandm'",
        ),
        (["--engine", "memory"], "--engine: has no effect without --calibrate TIME"),
        (["-w", "num=5"], "-w/--workload-set: has no effect without --calibrate TIME"),
        (["-o", "a=5"], "-o/--option: has no effect without --calibrate TIME"),
        (["--seed", "1"], "--seed: has no effect without --calibrate TIME"),
        (["--deadline", "1h"], "--deadline: has no effect without --calibrate TIME"),
        (["--calibrate", "9", "--engine", "memory", "--memory", "much"], "--memory: found 'much'"),
    ],
)
@pytest.mark.usefixtures("fake_driver")
def test_wrong_flags_are_one_line(lsmtune: Any, arguments: list[str], line: str) -> None:
    assert lsmtune("doctor", *arguments).refusal.startswith(f"lsmtune: {line}")


def test_nothing_is_calibrated_where_something_must_be_mended(
    lsmtune: Any, runner: Noisy, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    broken = Finding(Level.PROBLEM, "disk", "full", "free some space")
    monkeypatch.setattr("lsmtune.cli.doctor.examine", lambda _directory: [broken])
    said = lsmtune(*CALIBRATE, "1s", "--json", "--dir", str(tmp_path))
    assert said.status == 1
    assert said.json()["calibration"] is None
    assert "--calibrate: not done, since a problem was found" in said.err
    assert runner.requests == []


@pytest.mark.engine
def test_a_real_engine_is_calibrated_by_both_methods(
    lsmtune: Any, driver: Path, rocksdb_library: Path, home: Path
) -> None:
    assert driver.is_file()
    found: list[dict[str, Any]] = []
    # A busy machine takes longer for two pairs of each.
    for time_s in (6, 24, 96):
        said = lsmtune(
            "doctor", "--engine", "rocksdb", "--library", str(rocksdb_library), "--dir", str(home),
            "-w", "num=5000", "--calibrate", str(time_s), "--json",
        )  # fmt: skip
        assert list(home.iterdir()) == []
        found = json.loads(said.out)["calibration"]["methods"] if said.status == 0 else []
        if found and all(method["metrics"] for method in found):
            break
    assert [method["method"] for method in found] == ["slices", "whole"], said.err
    assert all("sustained_throughput_ops_s" in method["metrics"] for method in found)


@pytest.mark.usefixtures("fake_driver")
class TestMerges:
    """A workload that merges is treated as by every other command."""

    def test_they_are_refused_where_the_engine_has_none(self, lsmtune: Any) -> None:
        refusal = lsmtune(
            "doctor", "--engine", "leveldb", "--workload", "up2x", "--calibrate", "9s"
        ).refusal
        assert "--workload: up2x merges, which leveldb cannot; allowed: rocksdb" in refusal

    def test_they_come_with_their_operator(self, monkeypatch: pytest.MonkeyPatch) -> None:
        engine = EngineIdentity("rocksdb")
        monkeypatch.setattr(library_facts, "chosen_engine", lambda *_: (engine, ()))
        given = doctor.CalibrationFlags("rocksdb", None, "up2x")
        request = doctor._request("9s", given, LimitFlags())
        assert request.config.options == {"merge_operator": "put"}
