"""Every file of `bad/` has one thing wrong, and its one-line error beside it."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from lsmtune.errors import ExitStatus, InputError
from lsmtune.study.build import load_spec, parse_spec

BAD = sorted((Path(__file__).parent / "bad").glob("*.yaml"))
MINIMAL = Path(__file__).parent / "good" / "minimal.yaml"


def error_of(path: Path) -> InputError:
    with pytest.raises(InputError) as caught:
        load_spec(path)
    assert caught.value.exit_status is ExitStatus.BAD_INPUT
    assert "\n" not in str(caught.value)
    return caught.value


@pytest.mark.parametrize("path", BAD, ids=[path.stem for path in BAD])
def test_bad_file(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(path.parent)
    expected = path.with_suffix(".expected").read_text(encoding="utf-8")
    assert f"{error_of(Path(path.name))}\n" == expected


def test_there_are_enough_of_them_and_each_has_its_own_line() -> None:
    lines = [path.with_suffix(".expected").read_text(encoding="utf-8") for path in BAD]
    assert len(BAD) >= 45
    assert len(set(lines)) == len(BAD)
    leftover = {path.stem for path in BAD[0].parent.glob("*.expected")} - {p.stem for p in BAD}
    assert not leftover


def test_a_file_that_is_absent(tmp_path: Path) -> None:
    line = str(error_of(tmp_path / "none.yaml"))
    assert line.endswith(
        "none.yaml: no such file; allowed: a study file; `lsmtune init` writes one"
    )


def test_a_directory(tmp_path: Path) -> None:
    assert str(error_of(tmp_path)).startswith(f"{tmp_path}: is a directory")


def test_a_pipe_is_not_read(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    assert "is not a regular file" in str(error_of(tmp_path / "pipe"))


def test_a_path_through_a_file(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    assert "cannot be read: Not a directory" in str(error_of(tmp_path / "file" / "study.yaml"))


def test_a_file_without_permission(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "study.yaml"
    path.touch()

    def refuse(_: Path) -> int:
        raise PermissionError(13, "Permission denied")

    # As root, which tests may be, no mode of a file refuses.
    monkeypatch.setattr("lsmtune.model.text.open_plain", refuse)
    assert str(error_of(path)) == f"{path}: cannot be read: Permission denied"


def test_a_file_that_is_too_large(tmp_path: Path) -> None:
    path = tmp_path / "study.yaml"
    path.write_bytes(b"#" * (2**20 + 1))
    assert "is too large: 1048577 bytes" in str(error_of(path))


def test_every_prefix_of_a_good_file_loads_or_fails_in_one_line() -> None:
    text = MINIMAL.read_text(encoding="utf-8")
    errors: list[str] = []
    for length in range(len(text)):
        try:
            parse_spec(text[:length], Path("study.yaml"))
        except InputError as error:
            errors.append(str(error))
    # All but the text without its last newline.
    assert len(errors) == len(text) - 1
    assert not any("\n" in line for line in errors)
