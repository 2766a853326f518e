from __future__ import annotations

import contextlib
import errno
import json
import os
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

import pytest
from storage_parts import unprivileged

from lsmtune.errors import InputError, LsmtuneError
from lsmtune.experiment.files import (
    MARKER,
    claim,
    is_owned,
    remove_owned,
    run_directory,
    sweep_leftovers,
)
from lsmtune.machine.files import temporary_folder
from troubles import disk_is_full


def leftover(parent: Path, name: str = "run-old") -> Path:
    directory = parent / name
    claim(directory, "run", parent)
    (directory / "db").mkdir()
    (directory / "db" / "000004.log").write_text("x")
    return directory


def test_a_new_folder_is_marked_and_says_by_whom(tmp_path: Path) -> None:
    claim(tmp_path / "a" / "b", "study")
    content = json.loads((tmp_path / "a" / "b" / MARKER).read_text())
    assert content.keys() == {"tool", "version", "purpose", "created", "id"}
    assert (content["tool"], content["purpose"]) == ("lsmtune", "study")


def test_an_empty_folder_is_adopted_and_a_marked_one_kept(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    claim(tmp_path / "empty", "study")
    before = (tmp_path / "empty" / MARKER).read_text()
    claim(tmp_path / "empty", "other")
    assert (tmp_path / "empty" / MARKER).read_text() == before


def test_a_folder_that_is_not_ours_is_refused_and_left_alone(tmp_path: Path) -> None:
    (tmp_path / "thesis.tex").write_text("years of work")
    with pytest.raises(InputError, match="this folder is not ours"):
        claim(tmp_path, "study")
    assert [p.name for p in tmp_path.iterdir()] == ["thesis.tex"]
    with pytest.raises(InputError, match="is a file"):
        claim(tmp_path / "thesis.tex", "study")


def test_a_link_to_a_marked_folder_is_not_ours(tmp_path: Path) -> None:
    real = leftover(tmp_path)
    (tmp_path / "run-link").symlink_to(real)
    assert not is_owned(tmp_path / "run-link")
    # It was said to have content and no marker.
    with pytest.raises(InputError, match=f"ours: it is a link; .*; allowed: {real} itself"):
        claim(tmp_path / "run-link", "run")
    with pytest.raises(LsmtuneError, match="not deleted"):
        remove_owned(tmp_path / "run-link", "run", tmp_path)
    assert (real / "db" / "000004.log").exists()


def test_a_full_disk_is_a_clear_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "mkdtemp", disk_is_full)
    with pytest.raises(LsmtuneError, match="the disk is full"), run_directory(tmp_path):
        pass


def test_a_run_directory_is_fresh_marked_and_gone_afterwards(tmp_path: Path) -> None:
    with run_directory(tmp_path) as first:
        (first / "db").mkdir()
        with run_directory(tmp_path) as second:
            assert first != second
            assert is_owned(second)
    assert list(tmp_path.iterdir()) == []


def test_a_run_directory_of_a_folder_that_is_named_from_here_is_removed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Since Python 3.12 `mkdtemp` returns absolute paths, which ended `tune study.yaml`."""
    mkdtemp = tempfile.mkdtemp
    monkeypatch.setattr(
        tempfile, "mkdtemp", lambda *of, **named: str(Path(mkdtemp(*of, **named)).absolute())
    )
    monkeypatch.chdir(tmp_path)
    study = Path("study")
    claim(study, "study")
    (study / "runs").mkdir()
    with run_directory(study / "runs", study) as directory:
        assert is_owned(directory)
    assert not directory.exists()


def test_a_run_directory_is_gone_after_an_error(tmp_path: Path) -> None:
    def fail() -> None:
        with run_directory(tmp_path) as directory:
            (directory / "db").mkdir()
            raise RuntimeError

    with pytest.raises(RuntimeError):
        fail()
    assert list(tmp_path.iterdir()) == []


def test_the_sweep_takes_ours_and_leaves_all_else(tmp_path: Path) -> None:
    ours = leftover(tmp_path)
    unmarked = tmp_path / "run-unmarked"
    unmarked.mkdir()
    (unmarked / "precious").write_text("x")
    (tmp_path / "run-killed-before-its-marker").mkdir()
    (tmp_path / "an-empty-folder").mkdir()
    (tmp_path / "note.txt").write_text("x")
    outside = leftover(tmp_path.parent, f"{tmp_path.name}-outside")
    (tmp_path / "run-link").symlink_to(outside)
    sweep_leftovers(tmp_path, tmp_path)
    assert not ours.exists()
    left = sorted(p.name for p in tmp_path.iterdir())
    assert left == ["an-empty-folder", "note.txt", "run-link", "run-unmarked"]
    assert (outside / "db" / "000004.log").exists()
    assert (unmarked / "precious").exists()


def test_links_inside_a_run_are_removed_not_followed(tmp_path: Path) -> None:
    precious = tmp_path / "precious"
    precious.mkdir()
    (precious / "x").write_text("x")
    ours = leftover(tmp_path)
    (ours / "link").symlink_to(precious)
    (ours / "db" / "link").symlink_to(precious)
    remove_owned(ours, "run", tmp_path)
    assert (precious / "x").exists()
    assert not ours.exists()


def test_what_a_killed_bench_left_goes_with_the_next_one_and_what_is_in_use_stays(
    tmp_path: Path,
) -> None:
    ours, unmarked = leftover(tmp_path), tmp_path / "run-of-somebody"
    unmarked.mkdir()
    with run_directory(tmp_path) as one, run_directory(tmp_path) as other:
        assert {path.name for path in tmp_path.iterdir()} == {one.name, other.name, unmarked.name}
        assert not ours.exists()
    assert [path.name for path in tmp_path.iterdir()] == [unmarked.name]


def test_another_users_run_that_cannot_be_looked_into_is_left_alone() -> None:
    """`bench` in a folder that several users share ended with `Permission denied`."""
    with unprivileged() as shared:
        theirs = leftover(shared, "run-of-another-user")
        theirs.chmod(0)
        try:
            with run_directory(shared) as ours:
                assert set(shared.iterdir()) == {theirs, ours}
            assert list(shared.iterdir()) == [theirs]
        finally:
            theirs.chmod(0o755)


def test_what_a_killed_probe_left_goes_with_the_next_one_and_what_is_in_use_stays(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    program = (
        "import sys, tempfile; from lsmtune.machine.files import temporary_folder\n"
        "tempfile.tempdir = sys.argv[1]\n"
        "with temporary_folder('probe') as folder: print(folder, flush=True); input()"
    )
    strange = tmp_path / "lsmtune-probe-of-somebody"
    strange.mkdir()
    with subprocess.Popen(
        [sys.executable, "-c", program, str(tmp_path)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as killed:
        assert killed.stdout is not None
        left = Path(killed.stdout.readline().strip())
        with temporary_folder("probe") as one, temporary_folder("probe") as other:
            assert set(tmp_path.iterdir()) == {left, one, other, strange}
        killed.kill()
    assert left.is_dir()
    with temporary_folder("probe") as folder:
        assert set(tmp_path.iterdir()) == {folder, strange}
    assert list(tmp_path.iterdir()) == [strange]


def test_the_marker_goes_last(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A kill in the middle of a removal leaves a directory that can still be swept."""
    ours = leftover(tmp_path)

    def killed(_path: Path) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr("shutil.rmtree", killed)
        with pytest.raises(KeyboardInterrupt):
            remove_owned(ours, "run", tmp_path)
    assert is_owned(ours)
    sweep_leftovers(tmp_path, tmp_path)
    assert not ours.exists()


def test_a_driver_that_still_writes_is_waited_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ours = leftover(tmp_path)
    tried_again = threading.Event()

    def write() -> None:
        number = 0
        while not tried_again.is_set():
            number += 1
            try:
                with contextlib.suppress(FileExistsError):  # removed while pathlib looked at it
                    (ours / "db").mkdir(exist_ok=True)
                (ours / "db" / f"{number}.sst").write_text("x")
                (ours / f"{number}.log").write_text("x")
            except FileNotFoundError:
                return

    writer = threading.Thread(target=write)
    writer.start()
    monkeypatch.setattr(time, "sleep", lambda _s: tried_again.set())
    remove_owned(ours, "run", tmp_path)
    writer.join()
    assert not ours.exists()


def test_a_driver_that_never_ends_is_a_clear_error(tmp_path: Path) -> None:
    ours = leftover(tmp_path)
    naps: list[float] = []
    here = threading.get_ident()

    def writes_again(seconds: float) -> None:
        if threading.get_ident() == here:  # threads that other tests began sleep, too
            naps.append(seconds)

    original = Path.rmdir

    def refill(path: Path) -> None:
        (path / "new.sst").write_text("x")
        original(path)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Path, "rmdir", refill)
        patch.setattr(time, "sleep", writes_again)
        with pytest.raises(LsmtuneError, match="another process still writes there"):
            remove_owned(ours, "run", tmp_path)
    assert sum(naps) == pytest.approx(10.0)


def a_study(path: Path) -> Path:
    """A folder of a study with a run that was killed."""
    claim(path, "study")
    leftover(path, "run-killed")
    return path


def test_a_link_named_runs_leads_to_nothing_that_is_deleted(tmp_path: Path) -> None:
    """Another study lay where `runs` led to, and the sweep deleted it."""
    study, elsewhere = tmp_path / "study", tmp_path / "elsewhere"
    claim(study, "study")
    a_study(elsewhere / "run-a-study")
    leftover(elsewhere)
    (study / "runs").symlink_to(elsewhere)
    sweep_leftovers(study / "runs", study)
    assert (elsewhere / "run-a-study" / "run-killed" / "db").is_dir()
    assert (elsewhere / "run-old" / "db").is_dir()
    with pytest.raises(InputError, match="is a link"), run_directory(study / "runs", study):
        pass


def test_a_study_among_the_runs_and_a_run_of_another_study_stay(tmp_path: Path) -> None:
    study, other = a_study(tmp_path / "study"), a_study(tmp_path / "other")
    inner = a_study(study / "run-inner")
    (other / "run-killed").rename(study / "run-of-another")
    sweep_leftovers(study, study)
    assert not (study / "run-killed").exists()
    for kept, why in ((inner, "is a study"), (study / "run-of-another", "made by another folder")):
        with pytest.raises(LsmtuneError, match=why):
            remove_owned(kept, "run", study)


def test_a_kill_while_the_marker_was_written_leaves_what_can_be_swept(tmp_path: Path) -> None:
    (tmp_path / "run-killed").mkdir()
    (tmp_path / "run-killed" / MARKER).touch()
    (tmp_path / "run-full").mkdir()
    (tmp_path / "run-full" / MARKER).touch()
    (tmp_path / "run-full" / "precious").touch()
    sweep_leftovers(tmp_path, tmp_path)
    assert {entry.name for entry in tmp_path.iterdir()} == {"run-full"}


def test_a_marker_that_the_machine_cannot_read_is_not_taken_for_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What failed is said, and not that the folder is somebody else's."""
    directory = leftover(tmp_path)

    def refuse(*_: object, **__: object) -> int:
        raise OSError(errno.EMFILE, "Too many open files")

    with monkeypatch.context() as patched:
        patched.setattr(os, "open", refuse)
        with pytest.raises(OSError, match="Too many open files"):
            sweep_leftovers(tmp_path, tmp_path)
    assert is_owned(directory)
    sweep_leftovers(tmp_path, tmp_path)
    assert not directory.exists()


def test_a_marker_that_is_no_small_file_says_nothing_and_is_not_waited_for(tmp_path: Path) -> None:
    """A pipe or a device among the runs was read for ever; deep JSON was an unexpected error."""
    claim(tmp_path, "study")
    names = {"run-pipe", "run-device", "run-deep"}
    for name in names:
        (leftover(tmp_path, name) / MARKER).unlink()
    os.mkfifo(tmp_path / "run-pipe" / MARKER)
    (tmp_path / "run-device" / MARKER).symlink_to("/dev/zero")
    (tmp_path / "run-deep" / MARKER).write_text("[" * (1 << 20))
    sweep_leftovers(tmp_path, tmp_path)
    assert {entry.parent.name for entry in tmp_path.glob("run-*/db")} == names
