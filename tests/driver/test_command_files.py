"""Files of programs: reading what is none may not hang or fill the memory; others are followed."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from lsmtune.model.command import CommandSpec, JsonLines, JsonPointers, Results
from lsmtune.model.config import Config, EngineIdentity
from lsmtune.model.measurement import Measurement, Outcome
from lsmtune.model.request import Limits, RunRequest
from lsmtune.model.text import NotPlainError, open_plain
from lsmtune.model.workload import Workload
from lsmtune.programs import command as command_results
from lsmtune.programs import command_process as followed_file
from lsmtune.programs.command import CommandRunner
from lsmtune.programs.command_process import FollowedFile, ResultError
from troubles import why_not_ok

PROGRAM = (sys.executable, "-S", str(Path(__file__).parent / "program.py"))
WHY = {
    "pipe": "is not a regular file",
    "folder": "is a directory",
    "zeros": "is not a regular file",
}
THINGS = pytest.mark.parametrize("thing", WHY)


def run(tmp_path: Path, results: Results, *arguments: str) -> Measurement:
    directory = tmp_path / "run-1"
    directory.mkdir()
    request = RunRequest(
        engine=EngineIdentity("program"),
        config=Config({}),
        workload=Workload("program", (), num=0),
        seed=7,
        directory=directory,
        limits=Limits(20.0, 1 << 30, 1 << 30),
        trial=3,
    )
    spec = CommandSpec((*PROGRAM, *arguments), Path("/"), results=results, metrics=("score",))
    return CommandRunner(spec).run(request)


@THINGS
@pytest.mark.parametrize("lives_s", ["0", "0.3"])
def test_no_file_in_the_place_of_the_results_is_invalid(
    tmp_path: Path, thing: str, lives_s: str
) -> None:
    """A pipe without a writer kept lsmtune from the deadline; a folder ended the whole study."""
    place = tmp_path / "run-1" / "results.jsonl"
    measurement = run(tmp_path, JsonLines(), "misplace", thing, str(place), lives_s)
    assert measurement.outcome is Outcome.INVALID
    assert why_not_ok(measurement) == f"results.jsonl: {WHY[thing]}"


@THINGS
def test_no_file_in_the_place_of_a_document_is_invalid(tmp_path: Path, thing: str) -> None:
    """A link to /dev/zero, a file of size 0, was read until the memory was full."""
    results = JsonPointers({"score": "/a"}, "out.json")
    place = tmp_path / "run-1" / "work" / "out.json"
    measurement = run(tmp_path, results, "misplace", thing, str(place), "0")
    assert measurement.outcome is Outcome.INVALID
    assert why_not_ok(measurement) == f"{place}: {WHY[thing]}"


def test_a_document_that_is_too_long_is_invalid(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(command_results, "_TEXT_BYTES_MAX", 10)
    results = JsonPointers({"score": "/a"}, "out.json")
    measurement = run(tmp_path, results, "document", '{{"a": 1234567890}}')
    assert measurement.outcome is Outcome.INVALID
    assert why_not_ok(measurement).endswith("out.json: more than 10 bytes")


def test_a_pointer_behind_the_end_of_a_list_is_invalid(tmp_path: Path) -> None:
    """What the library has for `/-` is no JSON value, and could not be shown."""
    results = JsonPointers({"score": "/-"}, "out.json")
    measurement = run(tmp_path, results, "document", "[1, 2]")
    assert measurement.outcome is Outcome.INVALID
    assert why_not_ok(measurement).endswith("/-: points behind the end of a list")


def test_plain_files_and_links_to_them_are_opened(tmp_path: Path) -> None:
    file, link, pipe = tmp_path / "file", tmp_path / "link", tmp_path / "pipe"
    file.write_bytes(b"text")
    link.symlink_to(file)
    os.mkfifo(pipe)
    with open_plain(link) as opened:
        assert opened.read() == b"text"
    with pytest.raises(NotPlainError, match="is not a regular file"):
        open_plain(pipe)
    with pytest.raises(FileNotFoundError):
        open_plain(tmp_path / "absent")


# --- files that are followed while they grow


def test_lines_come_once_and_whole(tmp_path: Path) -> None:
    path = tmp_path / "results"
    file = FollowedFile(path)
    assert file.read() == ([], False)
    path.write_bytes(b"one\n\n  \ntw")
    assert file.read() == ([b"one", b"", b"  "], False)
    with path.open("ab") as added:
        added.write(b"o\nthree")
    assert file.read() == ([b"two"], False)
    assert file.read() == ([], False)
    assert file.last() == b"three"
    assert file.last() == b""


def test_a_file_that_is_begun_anew_is_read_from_its_start(tmp_path: Path) -> None:
    path = tmp_path / "results"
    file = FollowedFile(path)
    path.write_bytes(b"a long line\n")
    assert file.read()[0] == [b"a long line"]
    path.write_bytes(b"short\n")
    assert file.read()[0] == [b"short"]


def test_much_is_read_in_parts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(followed_file, "_BYTES_PER_READ", 10)
    monkeypatch.setattr(followed_file, "_LINE_BYTES_MAX", 12)
    path = tmp_path / "results"
    path.write_bytes(b"12345678\nabcdefgh\n")
    file = FollowedFile(path)
    assert file.read() == ([b"12345678"], True)
    assert file.read() == ([b"abcdefgh"], False)
    with path.open("ab") as added:
        added.write(b"x" * 40)
    assert file.read() == ([], True)
    with pytest.raises(ResultError, match="results: a line of more than 12 bytes"):
        file.read()


def test_what_is_read_at_once_is_little_enough_to_obey_limits_in_between(tmp_path: Path) -> None:
    """A flood of lines kept the disk limit of 20 MiB from being seen before 1 GiB was written."""
    path = tmp_path / "results"
    path.write_bytes(b'{"ops": 1}\n' * 200_000)
    lines, more = FollowedFile(path).read()
    assert more
    assert 1000 < len(lines) < 20_000
