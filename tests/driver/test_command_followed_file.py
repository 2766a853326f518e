from __future__ import annotations

from pathlib import Path

import pytest

from lsmtune.programs import command_process as followed_file
from lsmtune.programs.command_process import FollowedFile, LineTooLongError


def test_lines_come_once_and_whole(tmp_path: Path) -> None:
    path = tmp_path / "results"
    file = FollowedFile(path)
    assert file.read() == ([], False)
    path.write_bytes(b"one\n\n  \ntw")
    assert file.read() == ([b"one"], False)
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
    with pytest.raises(LineTooLongError, match="results: a line of more than 12 bytes"):
        file.read()


def test_what_is_read_at_once_is_little_enough_to_obey_limits_in_between(tmp_path: Path) -> None:
    """A flood of lines kept the disk limit of 20 MiB from being seen before 1 GiB was written."""
    path = tmp_path / "results"
    path.write_bytes(b'{"ops": 1}\n' * 200_000)
    lines, more = FollowedFile(path).read()
    assert more
    assert 1000 < len(lines) < 20_000
