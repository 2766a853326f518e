"""How a configuration is named on the command line: presets and option files.

Options, studies and trials are in test_cli_export.py.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from lsmtune.cli.choices import resolve_named
from lsmtune.engines.ready import known_presets
from lsmtune.errors import InputError

OPTIONS = """\
[Version]
rocksdb_version=9.1.0
[DBOptions]
wal_dir=/fast
[CFOptions "default"]
write_buffer_size=2097152
"""


@pytest.fixture
def options(home: Path) -> Path:
    path = home / "OPTIONS-7"
    path.write_text(OPTIONS)
    return path


def test_a_preset_by_its_name() -> None:
    name, chosen = next((n, p) for n, p in known_presets().items() if p.options)
    named = resolve_named(name)
    assert named.config.options == dict(chosen.options)
    assert named.config.label == name
    assert named.engine is not None
    assert named.engine.name == chosen.engine


def test_an_option_file_and_what_was_left_out_of_it(
    options: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    named = resolve_named(str(options))
    assert named.config.options == {"write_buffer_size": 2 << 20}
    assert named.config.label == str(options)
    assert named.engine is not None
    assert (named.engine.name, named.engine.version) == ("rocksdb", "9.1.0")
    assert "4: wal_dir: left out: /fast is a place on another machine" in capsys.readouterr().err


def test_a_properties_file_of_the_engine(home: Path) -> None:
    path = home / "a.properties"
    path.write_text("leveldb.compression=snappy\nleveldb.block_size=8192\n")
    expected = {"compression": "snappy", "block_size": 8192}
    assert resolve_named("a.properties", "leveldb").config.options == expected


def test_flags_of_db_bench_need_the_engine(home: Path) -> None:
    (home / "flags").write_text("--open_files=9\n")
    assert resolve_named("flags", "rocksdb").config.options == {"max_open_files": 9}
    with pytest.raises(InputError, match="flags do not say it"):
        resolve_named("flags")


def test_options_may_be_longer_than_a_file_name() -> None:
    """`File name too long` was the answer to a configuration of a dozen nested options."""
    options = {f"block_based_table_factory.option_{number}": number for number in range(12)}
    text = ",".join(f"{name}={value}" for name, value in options.items())
    assert len(text) > 255
    assert resolve_named(text).config.options == options
    with pytest.raises(InputError, match="neither options, nor a preset, nor a file"):
        resolve_named("x" * 300)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("rocksdb-gist-winer", "did you mean rocksdb-gist-winner"),
        ("defualt", "did you mean default"),
        ("OPTIONS-8", "allowed: default, name=value,name=value, a preset, an OPTIONS"),
        ("OPTIONS-7#3", "only a study has trials"),
        ("notes.txt", "is in no format that can be imported"),
        ("space.json", "holds a space and no configuration"),
    ],
)
def test_what_names_no_configuration_is_refused(
    home: Path, options: Path, text: str, message: str
) -> None:
    assert options.is_file()
    (home / "notes.txt").write_text("hello\n")
    (home / "space.json").write_text('{"a": {"_type": "uniform", "_value": [0, 1]}}')
    with pytest.raises(InputError, match=message):
        resolve_named(text, source="--baseline")


@pytest.mark.parametrize("text", ["rocksdb-gist-winner", "OPTIONS-7"])
def test_a_configuration_of_another_engine_is_refused(options: Path, text: str) -> None:
    assert options.is_file()
    with pytest.raises(InputError, match=r"--engine: .*found 'leveldb'.*allowed: rocksdb"):
        resolve_named(text, "leveldb", "--candidate")


def test_an_option_file_is_exported_in_another_form(lsmtune: Any, options: Path) -> None:
    said = lsmtune("export", str(options), "--format", "db_bench")
    assert (said.status, said.out) == (0, "--write_buffer_size=2097152\n")
    assert said.err.startswith("lsmtune: note: ")


def test_what_is_exported_names_the_same_configuration(lsmtune: Any, home: Path) -> None:
    text = "write_buffer_size=64MiB,compression=kZSTD,max_open_files=-1"
    formats = ("rocksdb-options", "properties", "db_bench")
    for name in formats:
        said = lsmtune("export", text, "--engine", "rocksdb", "--format", name, "--output", name)
        assert said.status == 0, said.err
        assert (home / name).is_file()
        assert resolve_named(name, "rocksdb").config.options == resolve_named(text).config.options


def test_of_several_objectives_the_best_is_the_one_that_the_study_picks(
    lsmtune: Any, study: Path, fake_driver: Path
) -> None:
    assert fake_driver.is_file()
    several = "objectives: [{metric: throughput_ops_s}, {metric: write_amplification}]\n"
    pick = "pick: {best: throughput_ops_s}\nsampler: {name: random}\n"
    study.write_text(study.read_text() + several + pick)
    said = lsmtune("tune", str(study), "--json")
    assert said.status == 0, said.err
    best = said.json()["best"]
    named = resolve_named(str(study)).config
    assert named.label == f"{study}#{best['trial']}"
    assert dict(named.options) == best["options"]


def test_a_study_that_had_other_memory_is_said_where_it_is_compared(
    lsmtune: Any, study: Path, fake_driver: Path
) -> None:
    """The page cache of 4 GiB gave another ratio than the 768 MiB of the study, in silence."""
    assert fake_driver.is_file()
    study.write_text(study.read_text() + "limits: {memory: 768MiB}\n")
    assert lsmtune("tune", str(study), "--json").status == 0
    flags = ("--engine", "rocksdb", "--workload", "fillrandom", "-w", "num=1000", "--pairs", "6")
    compared = ("verify", "default", str(study), *flags, "--no-crash-test", "--no-power-test")
    line = f"{study} was searched with --memory 768MiB, and is compared with 4GiB"
    assert line in lsmtune(*compared).err
    assert "was searched with" not in lsmtune(*compared, "--memory", "768MiB").err
