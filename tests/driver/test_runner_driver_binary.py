"""Where the driver is looked for, what is said when it is nowhere; what it says of a library."""

from __future__ import annotations

import importlib.metadata
from pathlib import Path

import pytest

from lsmtune.driver import native
from lsmtune.driver.conversation import DRIVER_NAME, find_driver
from lsmtune.driver.native import probe
from lsmtune.errors import InputError, LsmtuneError
from lsmtune.model.config import EngineIdentity
from lsmtune.model.request import Limits


def program(folder: Path, name: str = DRIVER_NAME) -> Path:
    folder.mkdir(exist_ok=True)
    path = folder / name
    path.write_text("#!/bin/sh\n")
    path.chmod(0o755)
    return path


def test_the_order_is_variable_then_beside_python_then_path(tmp_path: Path) -> None:
    explicit = program(tmp_path / "own", "my-driver")
    beside = program(tmp_path / "bin")
    on_path = program(tmp_path / "path")
    python = tmp_path / "bin" / "python"
    environment = {"PATH": str(on_path.parent)}
    assert find_driver(environment | {"LSMTUNE_DRIVER": str(explicit)}, python) == explicit
    assert find_driver(environment, python) == beside
    assert find_driver(environment, tmp_path / "elsewhere" / "python") == on_path


def test_the_driver_of_the_wheel_comes_before_one_beside_python_and_on_path(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    packaged = program(tmp_path / "packaged")

    class Entry:
        name = DRIVER_NAME

        def locate(self) -> Path:
            return packaged

    monkeypatch.setattr(importlib.metadata, "files", lambda _name: [Entry()])
    beside, on_path = program(tmp_path / "bin"), program(tmp_path / "path")
    environment = {"PATH": str(on_path.parent)}
    assert find_driver(environment, beside.with_name("python")) == packaged
    packaged.unlink()
    assert find_driver(environment, beside.with_name("python")) == beside


def test_a_variable_that_leads_nowhere_is_an_error_not_a_fallback(tmp_path: Path) -> None:
    beside = program(tmp_path / "bin")
    for name in ("driver", "x" * 300):  # which is too long to be looked up
        with pytest.raises(InputError, match=f"LSMTUNE_DRIVER: .*make setup.*/nowhere/{name[:9]}"):
            find_driver({"LSMTUNE_DRIVER": f"/nowhere/{name}"}, beside.parent / "python")


def test_nowhere_lists_every_place_and_the_next_step(tmp_path: Path) -> None:
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / DRIVER_NAME).write_text("not executable")
    with pytest.raises(InputError) as caught:
        find_driver({"PATH": "/no/path"}, tmp_path / "bin" / "python")
    text = str(caught.value)
    assert str(tmp_path / "bin" / DRIVER_NAME) in text
    assert "installed package" in text
    assert "/no/path" in text
    assert "make setup" in text
    assert "\n" not in text


# --- what it says of a library, without an engine


def test_a_probe_says_what_the_library_is(fake_driver: Path, tmp_path: Path) -> None:
    found = probe(fake_driver, "leveldb", None, tmp_path)
    assert found.engine == EngineIdentity("leveldb", "1.22", "/opt/leveldb/libleveldb.so.1")
    assert found.compressions == ("none", "snappy")
    assert [(option.name, option.default) for option in found.options] == [
        ("write_buffer_size", "4194304"),
        ("compression", "snappy"),
    ]


def test_a_library_that_is_not_there_is_the_users_to_mend(
    fake_driver: Path, tmp_path: Path
) -> None:
    with pytest.raises(InputError, match="no such file"):
        probe(fake_driver, "leveldb", tmp_path / "libleveldb.so", tmp_path)


def test_a_probe_that_hangs_or_lies_fails(
    fake_driver: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = fake_driver.read_text()
    fake_driver.write_text(text.replace('get("fake", "ok")', 'get("fake", "silent")'))
    monkeypatch.setattr(native, "PROBE_LIMITS", Limits(0.5, 1 << 30, 1 << 30))
    with pytest.raises(LsmtuneError, match="probing it as leveldb failed: not done"):
        probe(fake_driver, "leveldb", None, tmp_path)
