"""What is said on a terminal of 80 columns, on none, and to programs; the engine is made up."""

from __future__ import annotations

import fcntl
import os
import pty
import re
import select
import signal
import struct
import subprocess
import sys
import termios
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from lsmtune.cli.commands import COMMANDS, load_command
from lsmtune.cli.live import _print_line
from lsmtune.cli.tune_progress import Plan, RunLine
from lsmtune.engines.differences import Difference
from lsmtune.model.config import Config, EngineIdentity
from lsmtune.model.goal import Direction, Goal, Objective
from patience import PATIENCE_S

pytestmark = pytest.mark.usefixtures("fake_driver")
COLUMNS = 80
_ESCAPES = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")
_COLOURS = re.compile(r"\x1b\[(?:\d+;)*(?:[34][0-8]|9[0-7])[;\d]*m")
MEMORY = ("--engine", "memory", "--workload", "fillrandom", "-w", "num=1000")


class Terminal:
    """The command line in a process of its own, on a terminal of 80 columns and 24 lines."""

    def __init__(self, *arguments: str) -> None:
        ours, theirs = pty.openpty()
        fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, COLUMNS, 0, 0))
        unset = ("COLUMNS", "LINES", "NO_COLOR", "FORCE_COLOR")
        kept = {name: value for name, value in os.environ.items() if name not in unset}
        path = {"PYTHONPATH": ":".join(sys.path), "PYTHONUTF8": "1", "TERM": "xterm-256color"}
        self.process = subprocess.Popen(
            [sys.executable, "-m", "lsmtune.cli.main", *arguments],
            env=kept | path,
            stdin=theirs,
            stdout=theirs,
            stderr=theirs,
            start_new_session=True,
        )
        os.close(theirs)
        self._ours = ours
        self.seen = ""

    def until(self, text: str) -> None:
        """Returns once `text` was shown, escapes left out."""
        while text not in _ESCAPES.sub("", self.seen):
            assert self._read(), f"ended without {text!r}: {self.seen[-2000:]!r}"

    def finish(self) -> int:
        while self._read():
            pass
        os.close(self._ours)
        return self.process.wait(PATIENCE_S)

    def _read(self) -> bool:
        assert select.select([self._ours], [], [], PATIENCE_S)[0], "it says nothing"
        try:
            part = os.read(self._ours, 65536)
        except OSError:  # nobody has its other end any more
            part = b""
        self.seen += part.decode(errors="replace")
        return bool(part)

    @property
    def lines(self) -> Iterator[str]:
        """Every line that was shown, in each state that it had."""
        for line in re.split(r"[\r\n]+", self.seen):
            yield _ESCAPES.sub("", line)


def test_a_search_is_shown_in_80_columns_with_what_happens_now_and_until_when(study: Path) -> None:
    """The options column once began with what no configuration differs in, and was cut off."""
    hang = "options: {fake: hang, allow_concurrent_memtable_write: true}\n"
    study.write_text(f"{study.read_text()}{hang}")
    terminal = Terminal("tune", str(study), "--budget", "1h")
    terminal.until("█")
    terminal.process.send_signal(signal.SIGINT)
    assert terminal.finish() == 130
    shown = "\n".join(terminal.lines)
    progress = shown.partition("lsmtune: interrupted")[0]
    assert max(map(len, progress.splitlines())) <= COLUMNS
    assert re.search(r"at most (?:1h|59m\S*) left, until \d\d:\d\d", shown)
    assert re.search(r"now +baseline: fillrandom \d+ % (?:\S+ left )?168,000 ops/s █", shown)
    assert "allow_concurrent_memtable_write" not in shown
    assert "warning: stopping; the state is kept" in progress


def test_a_proof_and_a_measurement_are_shown_in_80_columns(home: Path) -> None:
    assert home.is_dir()
    for command in (
        ("verify", *MEMORY, "default", "a=1", "--pairs", "6"),
        ("bench", *MEMORY, "--repeat", "2"),
    ):
        terminal = Terminal(*command)
        status = terminal.finish()
        shown = "\n".join(terminal.lines)
        assert status == (3 if command[0] == "verify" else 0), shown
        progress = shown.partition("a=1: no proven gain")[0]
        assert max(map(len, progress.splitlines())) <= COLUMNS
        assert "last intervals" in shown or "differs in" in shown
        assert _COLOURS.search(terminal.seen) or command[0] == "bench"  # bench has bold type only


def test_without_colours_and_without_progress_there_is_none(home: Path) -> None:
    assert home.is_dir()
    command = ("verify", *MEMORY, "default", "a=1", "--pairs", "6")
    terminal = Terminal(*command, "--no-color")
    assert terminal.finish() == 3
    assert not _COLOURS.search(terminal.seen)
    quiet = Terminal(*command, "--quiet")
    assert quiet.finish() == 3
    # The heads of tables are bold; nothing moves the cursor.
    assert "\x1b" not in re.sub(r"\x1b\[[0-9;]*m", "", quiet.seen)
    assert next(quiet.lines).startswith("a=1: no proven gain")


def test_quiet_leaves_warnings_and_the_result(lsmtune: Any, study: Path) -> None:
    said = lsmtune("tune", str(study), "--quiet", "--json")
    assert said.status == 0
    assert said.json()["trials"] == 2
    assert {line.partition(":")[0] for line in said.err.splitlines()} == {"warning"}
    command = ("bench", *MEMORY, "--quiet")
    assert (lsmtune(*command).err, lsmtune(*command).status) == ("", 0)


def test_no_color_is_for_one_command(
    lsmtune: Any, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert home.is_dir()
    monkeypatch.delenv("NO_COLOR", raising=False)
    assert lsmtune("options", "--presets", "--no-color").status == 0
    assert "NO_COLOR" not in os.environ


OF_ROCKSDB = EngineIdentity("rocksdb", "10.10.1")


def line_of(capsys: pytest.CaptureFixture[str], *lines: RunLine) -> list[str]:
    goal = Goal((Objective("latency_us_p99", Direction.MINIMIZE),))
    say = _print_line(Plan(Config(), OF_ROCKSDB, goal, (), trials=9, time_s=None, pairs=6))
    for line in lines:
        say(line)
    return capsys.readouterr().err.splitlines()


def test_a_line_says_better_or_worse_in_words_with_the_unit(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """`trial 6: ok 18.67 latency_us_p99 1.36x` had no unit, and 1.36x meant worse."""
    differs = [Difference("write_buffer_size", 4 << 20, True, 64 << 20, False, "bytes")]
    worse = RunLine("trial 6", "ok", 18670.0, 1.36, differs, 2.1)
    better = RunLine("trial 7", "ok", 10.0, 0.7, differs, 2.0, best=True)
    jobs = [Difference("max_background_jobs", 4, True, None, False)]
    bad = RunLine("trial 8", "crashed", None, None, jobs, 2.0, why="killed")
    assert line_of(capsys, worse, better, bad) == [
        "trial 6: 18.67 ms, 1.36x the baseline's p99 latency, worse (2.1s); write_buffer_size=4MiB",
        "trial 7: 10 µs, 0.70x the baseline's p99 latency, better, best so far (2s)",
        "trial 8: crashed: killed (2s); max_background_jobs=4",
    ]


def test_a_line_in_a_log_does_not_repeat_all_options(capsys: pytest.CaptureFixture[str]) -> None:
    many = [Difference(f"some_option_of_many_{n}", 1 << 30, True, 0, True) for n in range(30)]
    (line,) = line_of(capsys, RunLine("trial 0", "ok", 1.0, 1.0, many, 1.0))
    assert len(line) < 2 * COLUMNS
    assert line.endswith(" more")


@pytest.mark.parametrize("name", ["", *COMMANDS])
def test_each_command_has_help_that_names_values_by_kind(
    lsmtune: Any, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`<list[Path]>` and `<bool>` say nothing to who does not write Python."""
    monkeypatch.setenv("COLUMNS", "80")
    command = load_command(name) if name else None
    parts = [[name, part] for part in getattr(command, "commands", ())]
    for words in ([name] if name else [], *parts):
        said = lsmtune(*words, "--help")
        assert said.status == 0
        assert "--help" in said.out
        assert not re.search(r"<\w|\[\[|\{\w+\.\.\.", said.out), said.out
    assert command is None or command.name == name


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        (
            ("bench", *MEMORY, "--seed", "x"),
            {"source": "--seed", "found": "x"},
        ),
        (("bench", "--sed", "1"), {}),
        (("report", "nothing"), {"field": "STUDY", "why": "no such file or folder"}),
    ],
)
def test_an_error_is_json_where_json_was_asked_for(
    lsmtune: Any, arguments: tuple[str, ...], error: dict[str, str]
) -> None:
    said = lsmtune(*arguments, "--json")
    found = said.json()["error"]
    assert (said.status, found["status"]) == (2, 2)
    assert said.err == f"lsmtune: {found['message']}\n"
    assert error.items() <= found.items()


def test_a_failed_run_is_one_document_with_its_error(lsmtune: Any) -> None:
    said = lsmtune("bench", *MEMORY, "-o", "fake=crash", "-o", "signal=11", "--json")
    document = said.json()
    assert said.status == document["error"]["status"] == 1
    assert document["measurements"]
