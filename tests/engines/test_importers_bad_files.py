"""Every file of `importers_bad/` has one thing wrong, and its one-line error beside it.

The folder is the format; in `detect` it is left to be found out. To make the expected lines anew
after a change that is wanted: LSMTUNE_GOLDEN=write.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from importer_parts import BAD, GOOD, import_file

from lsmtune.engines.formats import IMPORTERS, read_config
from lsmtune.engines.formats.base import ImportedConfig, yaml_document
from lsmtune.errors import ExitStatus, InputError
from lsmtune.model.text import FILE_BYTES_MAX

DETECT = "detect"
FILES = sorted(p for p in BAD.glob("*/*") if p.suffix != ".expected")
# What only another file of the folder names.
PARTS = ("nni-config/wrong.json",)
CASES = [path for path in FILES if str(path.relative_to(BAD)) not in PARTS]
ENGINES = {"db_bench": "rocksdb"}


def error_of(path: Path, folder: str) -> InputError:
    with pytest.raises(InputError) as caught:
        import_file(path, None if folder == DETECT else folder, engine=ENGINES.get(folder))
    assert caught.value.exit_status is ExitStatus.BAD_INPUT
    assert "\n" not in str(caught.value)
    return caught.value


@pytest.mark.parametrize("path", CASES, ids=[str(path.relative_to(BAD)) for path in CASES])
def test_bad_file(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(path.parent)
    expected = path.with_name(f"{path.name}.expected")
    line = f"{error_of(Path(path.name), path.parent.name)}\n"
    if os.environ.get("LSMTUNE_GOLDEN") == "write":
        expected.write_text(line, encoding="utf-8")
    assert line == expected.read_text(encoding="utf-8")


def test_there_are_enough_of_them_for_every_format_and_each_has_its_own_line() -> None:
    assert {path.parent.name for path in CASES} == {*IMPORTERS, DETECT}
    lines = [p.with_name(f"{p.name}.expected").read_text(encoding="utf-8") for p in CASES]
    assert len(lines) >= 95
    assert len(set(lines)) == len(lines)
    assert {p.name for p in BAD.glob("*/*.expected")} == {f"{p.name}.expected" for p in CASES}


def test_a_file_that_is_absent_or_none(tmp_path: Path) -> None:
    assert str(error_of(tmp_path / "none", DETECT)).endswith(
        "none: no such file; allowed: a file to import"
    )
    assert "is a directory" in str(error_of(tmp_path, DETECT))
    os.mkfifo(tmp_path / "pipe")
    assert "is not a regular file" in str(error_of(tmp_path / "pipe", DETECT))
    (tmp_path / "file").touch()
    assert "cannot be read" in str(error_of(tmp_path / "file" / "below", DETECT))


def test_a_file_that_is_too_large(tmp_path: Path) -> None:
    path = tmp_path / "LOG"
    with path.open("wb") as file:
        file.truncate(FILE_BYTES_MAX + 1)
    assert "is too large" in str(error_of(path, DETECT))
    path.write_text('{"a": "' + "x" * (1 << 20) + '"}')
    assert "is too large" in str(error_of(path, "mlos"))


def test_an_alias_that_grows_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "config.yml"
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]" for n in range(1, 9)]
    path.write_text("\n".join(lines))
    assert "holds more than" in str(error_of(path, "nni-config"))
    path.write_text("a: &a [*a]\n")
    error_of(path, "nni-config")


def test_unknown_formats_and_other_engines_are_refused() -> None:
    path = GOOD / "rocksdb-options.ini"
    with pytest.raises(InputError, match="did you mean rocksdb-options"):
        import_file(path, "rocksdb-option")
    for name in ("rocksdb-options.ini", "rocksdb-log-78.LOG"):
        with pytest.raises(InputError, match=r"--engine: .*found 'leveldb'; allowed: rocksdb"):
            import_file(path.with_name(name), engine="leveldb")
    with pytest.raises(InputError, match=r"--engine: has no property of rocksdb"):
        import_file(BAD / "properties" / "no-engine.properties", "properties", engine="rocksdb")
    with pytest.raises(InputError, match="flags do not say it"):
        import_file(path.with_name("db_bench.flags"))
    # The engine of a plugin was an unexpected error.
    with pytest.raises(InputError, match="--engine: has no db_bench; found 'mine'"):
        import_file(path.with_name("db_bench.flags"), engine="mine")


def test_only_an_option_file_is_a_configuration() -> None:
    assert isinstance(read_config(GOOD / "rocksdb-options.ini"), ImportedConfig)
    with pytest.raises(InputError, match="holds a space and no configuration"):
        read_config(GOOD / "nni-space.json")


def _ten_times(number: int) -> str:
    before = ", ".join([f"*a{number - 1}"] * 10)
    return f"a{number}: &a{number}\n  <<: [{before}]\n"


@pytest.mark.parametrize(
    ("text", "why"),
    [
        (
            "a0: &a0 {x: 1}\n" + "".join(map(_ten_times, range(1, 9))),
            "holds more than 20000 values where aliases are followed",
        ),
        ("a: &a [*a]\n", "an alias of what it stands in"),
        ("a: &a {b: {<<: *a}}\n", "an alias of what it stands in"),
        (f"? {'x' * 1001}\n: 1\n", "names of more than 1000 characters are not allowed"),
    ],
)
def test_a_short_file_does_not_grow_without_bound(text: str, why: str) -> None:
    """Merge keys of below 1 KB ran for 40 s."""
    with pytest.raises(InputError, match=why):
        yaml_document(text, "f.yml")


def test_an_alias_that_is_small_is_followed() -> None:
    document = yaml_document("b: &b {c: 1}\nd: *b\ne: {<<: *b}\nf: {<<: *b, c: 2}\n", "f.yml")
    assert document.data == {"b": {"c": 1}, "d": {"c": 1}, "e": {"c": 1}, "f": {"c": 2}}
    lines = [document.line(name, "c") for name in "bdef"]
    assert lines == [1, 1, 3, 4]  # a merged field is of the line that merges it
