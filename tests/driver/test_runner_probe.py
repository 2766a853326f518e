"""Probing a library through the driver, without an engine."""

from __future__ import annotations

from pathlib import Path

import pytest

from lsmtune.driver.native import probe
from lsmtune.errors import InputError, LsmtuneError
from lsmtune.model.config import EngineIdentity
from lsmtune.model.request import Limits


def test_a_probe_says_what_the_library_is(fake_driver: Path, tmp_path: Path) -> None:
    found = probe(fake_driver, "leveldb", None, tmp_path)
    assert found.identity == EngineIdentity("leveldb", "1.22", "/opt/leveldb/libleveldb.so.1")
    assert found.compressions == ("none", "snappy")
    assert found.options == (("write_buffer_size", "4194304"), ("compression", "snappy"))


def test_a_library_that_is_not_there_is_the_users_to_mend(
    fake_driver: Path, tmp_path: Path
) -> None:
    with pytest.raises(InputError, match="no such file"):
        probe(fake_driver, "leveldb", tmp_path / "libleveldb.so", tmp_path)


def test_a_probe_that_hangs_or_lies_fails(fake_driver: Path, tmp_path: Path) -> None:
    text = fake_driver.read_text()
    fake_driver.write_text(text.replace('get("fake", "ok")', 'get("fake", "silent")'))
    limits = Limits(0.5, 1 << 30, 1 << 30)
    with pytest.raises(LsmtuneError, match="probing it as leveldb failed: not done"):
        probe(fake_driver, "leveldb", None, tmp_path, limits)
