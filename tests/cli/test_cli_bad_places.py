"""Places and streams that cannot be used: one line, a status, nothing made and nothing lost."""

from __future__ import annotations

import errno
import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import psutil
import pytest

from lsmtune.driver import runner as run_directory
from lsmtune.errors import InputError
from lsmtune.machine.files import write_output
from patience import PATIENCE_S, in_time, wait_until
from troubles import disk_is_full

BENCH = ("bench", "--engine", "memory", "--workload", "fillrandom", "-w", "num=1000")
EXPORT = ("export", "write_buffer_size=4MiB", "--engine", "rocksdb", "--format", "db_bench")

pytestmark = pytest.mark.usefixtures("fake_driver")


@pytest.mark.parametrize(
    ("directory", "line"),
    [
        ("file", "file: is a file, and a folder is needed here"),
        ("file/below", "file/below: cannot be used: Not a directory"),
        ("dangling", "dangling: cannot be used: File exists"),
        ("x" * 300, "cannot be used: File name too long"),
        ("\udcff", "command line: found '\\udcff'; allowed: text and names in UTF-8"),
    ],
)
def test_a_study_folder_that_cannot_be(
    lsmtune: Any, study: Path, directory: str, line: str
) -> None:
    (study.parent / "file").write_text("mine")
    (study.parent / "dangling").symlink_to("nowhere")
    before = sorted(study.parent.iterdir())
    said = lsmtune("tune", str(study), "--dir", directory)
    assert (said.status, said.out, said.err.count("\n")) == (2, "", 1)
    assert line in said.err
    assert sorted(study.parent.iterdir()) == before
    assert (study.parent / "file").read_text() == "mine"


def test_the_current_folder_has_no_name_in_utf_8(
    lsmtune: Any, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    strange = home / "\udcff"
    strange.mkdir()
    monkeypatch.chdir(strange)
    assert "allowed: a path in UTF-8" in lsmtune(*BENCH).refusal
    assert list(strange.iterdir()) == []


@pytest.mark.parametrize(
    "command", [("verify", *BENCH[1:], "--candidate", "a=1"), BENCH, ("tune", "study.yaml")]
)
def test_a_full_disk_is_no_result(
    lsmtune: Any, study: Path, monkeypatch: pytest.MonkeyPatch, command: Sequence[str]
) -> None:
    assert study.is_file()
    monkeypatch.setattr(run_directory, "FREE_BYTES_MIN", 1 << 62)
    said = lsmtune(*command)
    assert (said.status, said.out) == (1, "")
    assert "free some space and repeat the command" in said.err.splitlines()[-1]
    assert list(study.parent.rglob("run-*")) == []


def test_a_study_that_met_a_full_disk_goes_on_without_a_spoiled_trial(
    lsmtune: Any, study: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert lsmtune("tune", str(study), "--trials", "1").status == 0
    with monkeypatch.context() as full:
        full.setattr(run_directory, "FREE_BYTES_MIN", 1 << 62)
        assert lsmtune("tune", str(study)).status == 1
    said = lsmtune("tune", str(study), "--json")
    assert said.status == 0, said.err
    assert (said.json()["trials"], said.json()["outcomes"]) == (2, {"ok": 2})


@pytest.mark.parametrize("command", [("init", "--output"), (*EXPORT, "--output")])
def test_an_output_file_is_written_whole_or_not_at_all(
    lsmtune: Any, home: Path, monkeypatch: pytest.MonkeyPatch, command: Sequence[str]
) -> None:
    monkeypatch.setattr(os, "fsync", disk_is_full)
    said = lsmtune(*command, "made")
    assert (said.status, said.out, said.err.count("\n")) == (1, "", 1)
    assert said.err.startswith("lsmtune: made: the disk is full; ")
    assert list(home.iterdir()) == []


def test_an_output_file_may_be_a_device_and_not_a_folder(tmp_path: Path) -> None:
    write_output(Path("/dev/null"), "text")
    assert Path("/dev/null").is_char_device()
    with pytest.raises(InputError, match="is a directory; allowed: a file to write"):
        write_output(tmp_path, "text")
    with pytest.raises(InputError, match="no such folder"):
        write_output(tmp_path / "a" / "b", "text")


def test_a_home_that_is_a_file(lsmtune: Any, home: Path, tmp_path: Path) -> None:
    assert home.is_dir()
    (tmp_path / "home").write_text("")
    refusal = lsmtune("engines", "install", "leveldb").refusal
    assert "home/engines: cannot be used: Not a directory" in refusal


def test_a_study_of_which_every_trial_fails_has_failed_and_says_why(
    lsmtune: Any, study: Path
) -> None:
    space = "  fake: {type: categorical, choices: [crash, exit_early]}\n"
    study.write_text(study.read_text().replace("budget:", f"{space}budget:"))
    said = lsmtune("tune", str(study), "--json", "--require-gain")
    assert said.status == 1
    assert said.json()["outcomes"] == {"crashed": 2}
    last = said.err.splitlines()[-1]
    assert last.startswith(f"lsmtune: {study}: none of 2 trials gave a value; the last one ended")
    assert said.err.count(": killed by ") + said.err.count(": exited with status") >= 2


# --- streams


def start(
    arguments: Sequence[str], folder: Path, shell: str, encoding: str = "utf-8"
) -> subprocess.Popen[str]:
    """The command line in a process of its own, its streams set up by `shell`."""
    return subprocess.Popen(
        ["bash", "-c", f'exec "$@" {shell}', "bash", sys.executable, "-m", "lsmtune.cli.main",
         *arguments],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": ":".join(sys.path)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        encoding=encoding,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("arguments", "shell", "status", "line"),
    [
        (BENCH, ">&-", 0, ""),
        (BENCH, "<&- >&- 2>&-", 0, ""),
        (EXPORT, ">&-", 0, ""),
        (BENCH, "> /dev/full", 1, "lsmtune: standard output: No space left on device\n"),
        (EXPORT, "> /dev/full", 1, "lsmtune: standard output: No space left on device\n"),
        (EXPORT, "| true", 0, ""),
    ],
)
def test_streams_that_take_nothing(
    home: Path, arguments: Sequence[str], shell: str, status: int, line: str
) -> None:
    out, err = (process := start(arguments, home, shell)).communicate(timeout=PATIENCE_S)
    assert (process.returncode, out, err) == (status, "", line)
    assert list(home.iterdir()) == []


def test_a_study_goes_on_where_nobody_takes_what_it_says(study: Path) -> None:
    """A log on a full disk, or a reader of it that ended, was its end; an error lost its status."""
    process = start(["tune", study.name, "--json"], study.parent, "2> /dev/full")
    out, _ = process.communicate(timeout=PATIENCE_S)
    assert (process.returncode, json.loads(out)["trials"]) == (0, 2)
    refused = start(["tune", "none.yaml"], study.parent, "2> /dev/full")
    refused.communicate(timeout=PATIENCE_S)
    assert refused.returncode == 2


@pytest.mark.parametrize(
    ("shell", "status", "line"),
    [
        ("> /dev/full", 1, "lsmtune: standard output: No space left on device\n"),
        ("| true", 0, ""),
    ],
)
def test_a_file_is_not_blamed_for_a_stream_that_takes_no_summary_of_it(
    home: Path, shell: str, status: int, line: str
) -> None:
    """`run.json: cannot be read: No space left on device`, and exit status 2."""
    record = '{"seqno": 0, "method": "GET", "start_time": 0.0, "elapsed": 0.1, "exists": true}'
    (home / "run.json").write_text(f"[{record}]")
    process = start(["workload", "summary", "run.json"], home, shell)
    out, err = process.communicate(timeout=PATIENCE_S)
    assert (process.returncode, out, err) == (status, "", line)


def test_errors_do_not_get_into_the_result_when_there_is_nowhere_to_tell_them(home: Path) -> None:
    process = start([*BENCH, "-o", "fake=crash", "--json"], home, "2>&-")
    out, _ = process.communicate(timeout=PATIENCE_S)
    assert process.returncode == 1
    assert "lsmtune:" not in out


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_whatever_ends_a_bench_it_cleans_up_and_says_so(home: Path, number: int) -> None:
    process = start([*BENCH, "-o", "fake=hang"], home, "")
    wait_until(lambda: list(home.rglob("request.json")))
    (driver,) = psutil.Process(process.pid).children()
    process.send_signal(number)
    out, err = process.communicate(timeout=PATIENCE_S)
    said = "lsmtune: interrupted; nothing was kept\n"
    assert (process.returncode, out, err) == (130, "", said)
    assert not driver.is_running()
    assert list(home.iterdir()) == []


def test_a_closed_terminal_does_not_end_what_was_started_with_nohup(home: Path) -> None:
    shell = f"trap '' HUP; exec {sys.executable} -m lsmtune.cli.main {' '.join(BENCH)}"

    def is_told_in_time() -> bool:
        """Whether the terminal was closed while the run lasted, which is a second."""
        nohup = subprocess.Popen(
            ["bash", "-c", f"{shell} -o fake=hang --deadline 1s --json"],
            cwd=home,
            env={**os.environ, "PYTHONPATH": ":".join(sys.path)},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        wait_until(lambda: nohup.poll() is not None or list(home.glob("*/runs/*/request.json")))
        lasts = nohup.poll() is None
        nohup.send_signal(signal.SIGHUP)
        out, _ = nohup.communicate(timeout=PATIENCE_S)
        assert '"timeout"' in out
        return lasts

    in_time(is_told_in_time)


@pytest.mark.parametrize(
    ("encoding", "sign"), [("ascii", "+/-"), ("latin-1", "\N{PLUS-MINUS SIGN}")]
)
def test_a_terminal_that_lacks_a_character_shows_it_in_ascii(
    home: Path, monkeypatch: pytest.MonkeyPatch, encoding: str, sign: str
) -> None:
    monkeypatch.setenv("PYTHONIOENCODING", encoding)
    process = start([*BENCH, "--repeat", "3"], home, "", encoding=encoding)
    out, err = process.communicate(timeout=PATIENCE_S)
    assert process.returncode == 0, err
    assert sign in out
    process = start(
        [*BENCH, "-o", "a\N{MULTIPLICATION SIGN}\N{BALLOT X}=1"], home, "2>&1", encoding=encoding
    )
    out, _ = process.communicate(timeout=PATIENCE_S)
    assert "unexpected" not in out


def test_an_error_of_the_system_without_a_file_is_not_blamed_on_standard_output(
    lsmtune: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> None:
        raise OSError(errno.EMFILE, "Too many open files")

    monkeypatch.setattr("lsmtune.cli.doctor.doctor", refuse, raising=False)
    monkeypatch.setattr("lsmtune.cli.workload.print_view", refuse, raising=False)
    monkeypatch.setattr("lsmtune.cli.workload.print_json", refuse, raising=False)
    said = lsmtune("workload", "list", "--json")
    assert said.status == 1
    assert "standard output" not in said.err
    assert "Too many open files" in said.err


# --- where a result is written to

OUTPUTS = [
    ("export", "write_buffer_size=4MiB", "--engine", "rocksdb", "--format", "db_bench", "--output"),
    ("init", "--engine", "rocksdb", "--force", "--output"),
    ("workload", "export", "ycsb-a", "--format", "ycsb", "--force", "--output"),
    ("report", "study.yaml", "--format", "csv", "--output"),
]


def home_of(lsmtune: Callable[..., Any], study: Path, command: str) -> Path:
    """The folder of `study`, which is tuned where a report is to be made of it."""
    assert command != "report" or lsmtune("tune", str(study)).status == 0
    return study.parent


@pytest.mark.parametrize("arguments", OUTPUTS, ids=lambda arguments: arguments[0])
def test_a_device_stays_a_device_a_link_a_link_and_a_dash_is_stdout(
    lsmtune: Callable[..., Any], study: Path, arguments: tuple[str, ...]
) -> None:
    """A report to /dev/null replaced that by a file of 4.9 MB, and `-` became the name of one."""
    home = home_of(lsmtune, study, arguments[0])
    pipe = home / "pipe"
    os.mkfifo(pipe)
    reader = os.open(pipe, os.O_RDWR | os.O_NONBLOCK)
    said = lsmtune(*arguments, str(pipe))
    assert said.status == 0, said.err
    through = os.read(reader, 1 << 20)
    os.close(reader)
    assert through
    assert pipe.is_fifo()
    target, link = home / "target", home / "link"
    link.symlink_to(target)
    assert lsmtune(*arguments, str(link)).status == 0
    assert link.is_symlink()
    # The first lines of a study file say where it is.
    assert target.read_bytes().splitlines()[-1] == through.splitlines()[-1]
    to_stdout = lsmtune(*arguments, "-")
    assert to_stdout.status == 0
    assert to_stdout.out.encode().splitlines()[-1] == through.splitlines()[-1]
    assert not (home / "-").exists()


def test_a_text_of_any_length_that_standard_output_does_not_take_blames_that(
    lsmtune: Callable[..., Any], study: Path
) -> None:
    """Of a page it was said that the disk of `the operating system` is full."""
    home = home_of(lsmtune, study, "report")
    process = start(["report", "study.yaml", "--output", "-"], home, "> /dev/full")
    _, err = process.communicate(timeout=PATIENCE_S)
    assert process.returncode == 1
    assert err.splitlines()[-1] == "lsmtune: standard output: No space left on device"


@pytest.mark.parametrize("arguments", OUTPUTS, ids=lambda arguments: arguments[0])
def test_no_folder_is_made_for_a_result(
    lsmtune: Callable[..., Any], study: Path, arguments: tuple[str, ...]
) -> None:
    home = home_of(lsmtune, study, arguments[0])
    said = lsmtune(*arguments, str(home / "none" / "file"))
    assert said.status == 2
    assert f"no such folder: {home / 'none'}" in said.err
    assert not (home / "none").exists()


def test_a_link_to_itself_is_no_place_to_write(tmp_path: Path) -> None:
    """It was an unexpected error, after the study was done."""
    (tmp_path / "loop").symlink_to("loop")
    with pytest.raises(InputError, match="loop: is a link to itself; allowed: a file to write"):
        write_output(tmp_path / "loop", "x")
    assert (tmp_path / "loop").is_symlink()
