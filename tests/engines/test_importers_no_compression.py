"""No compression in properties: `none` and `no` are read, and YCSB-cpp's `no` is written."""

from __future__ import annotations

from pathlib import Path

import pytest

from lsmtune.engines.formats import export, read_config
from lsmtune.engines.formats.properties import read_given
from lsmtune.engines.properties import Property, properties_of
from lsmtune.errors import InputError


@pytest.mark.parametrize(("engine", "option"), [("leveldb", "none"), ("rocksdb", "kNoCompression")])
@pytest.mark.parametrize("word", ["no", "none"])
def test_there_and_back(engine: str, option: str, word: str, tmp_path: Path) -> None:
    path = tmp_path / "a.properties"
    path.write_text(f"{engine}.compression={word}\n{engine}.write_buffer_size=65536\n")
    options = read_config(path).options
    assert options["compression"] == option
    text = export("properties", engine, options)
    assert f"\n{engine}.compression=no\n" in text
    path.write_text(text)
    assert read_config(path).options == options


def test_properties_from_several_places(tmp_path: Path) -> None:
    first, second = tmp_path / "a", tmp_path / "b"
    first.write_text("leveldb.block_size=1024\nleveldb.compression=snappy\n")
    second.write_text("leveldb.block_size=many\nleveldb.sync=true\nrecordcount=1\n")
    with pytest.raises(InputError, match=f"^{second}:1: leveldb.block_size: found 'many'"):
        read_given(properties_of([first, second], {}), "leveldb")
    found = read_given(properties_of([first, second], {"leveldb.block_size": "2048"}), "leveldb")
    assert found.options == {"block_size": 2048, "compression": "snappy"}
    assert any(note.startswith(f"{second}:2: leveldb.sync: left out") for note in found.notes)
    assert read_given({"rocksdb.cache_size": Property("1", "-p")}, "leveldb").options == {}
