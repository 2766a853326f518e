from __future__ import annotations

from pathlib import Path

import pytest

from lsmtune.engines.ready import known_spaces
from lsmtune.engines.safety import UNSAFE_OPTIONS, UnsafeOption, flattened, unsafe_reason
from lsmtune.errors import InputError
from lsmtune.model.workload import Durability
from lsmtune.study.build import parse_spec
from lsmtune.study.spec import Spec


def study(engine: str = "rocksdb", durability: str = "wal", rest: str = "") -> Spec:
    text = f"""\
version: 1
name: safety
engine: {{name: {engine}}}
workload: {{name: fillrandom, durability: {durability}}}
space:
  write_buffer_size: {{type: int, low: 1MiB, high: 64MiB}}
budget: {{trials: 1}}
{rest}
"""
    return parse_spec(text, Path("study.yaml"))


@pytest.mark.parametrize("unsafe", UNSAFE_OPTIONS, ids=lambda unsafe: unsafe.option)
def test_each_unsafe_option_is_refused_or_marked(unsafe: UnsafeOption) -> None:
    option = unsafe.option
    durability = min(unsafe.under).value
    value = min(unsafe.values)
    with pytest.raises(InputError, match=r"^study\.yaml:8: options\..*unsafe under durability"):
        study(durability=durability, rest=f"options: {{{option}: {value}}}")
    allowed = f"options: {{{option}: {value}}}\nallow_unsafe: [{option}]"
    assert set(study(durability=durability, rest=allowed).unsafe_options) == {option}


def test_safe_values_of_the_same_options_pass() -> None:
    rest = "options: {disable_auto_compactions: false, compaction_style: kCompactionStyleUniversal}"
    assert study(rest=rest).unsafe_options == {}


@pytest.mark.parametrize("value", ["1", "true", "'1'", "TRUE", "'true'"])
def test_every_spelling_of_true_is_seen(value: str) -> None:
    with pytest.raises(InputError, match="unsafe"):
        study(rest=f"baseline: {{disable_auto_compactions: {value}}}")


def test_a_number_of_the_space_that_reaches_one_is_seen() -> None:
    text = study().text.replace("write_buffer_size", "disable_auto_compactions")
    text = text.replace("low: 1MiB, high: 64MiB", "low: 0, high: 1")
    with pytest.raises(InputError, match=r"space\.disable_auto_compactions: unsafe"):
        parse_spec(text, Path("study.yaml"))


# The last ones in RocksDB's own spelling: `ParseInt` of its `util/string_util.cc`.
@pytest.mark.parametrize("value", ["1000", "1000000", "'1000'", "-1", "-2", "1k", "1M"])
def test_a_level_0_without_bound_is_unsafe(value: str) -> None:
    """The tree is never put in order within the measurement, and the bill comes later."""
    with pytest.raises(InputError, match="level 0 grows without bound"):
        study(rest=f"options: {{level0_stop_writes_trigger: {value}}}")
    assert study(rest="options: {level0_stop_writes_trigger: 999}").unsafe_options == {}


@pytest.mark.parametrize("bounds", ["low: 8, high: 4096", "low: -1, high: 64"])
def test_a_space_that_reaches_an_unbounded_level_0_is_seen(bounds: str) -> None:
    """At -1 it has no bound either: a range that begins there was searched without a word."""
    text = study().text.replace("write_buffer_size", "level0_slowdown_writes_trigger")
    reaching = text.replace("low: 1MiB, high: 64MiB", bounds)
    with pytest.raises(InputError, match=r"space\.level0_slowdown_writes_trigger: unsafe"):
        parse_spec(reaching, Path("study.yaml"))
    parse_spec(text.replace("low: 1MiB, high: 64MiB", "low: 8, high: 64"), Path("study.yaml"))


# That one is of a study that let FIFO delete data, and is kept to show what came of it.
@pytest.mark.parametrize("name", sorted(set(known_spaces()) - {"rocksdb-gist"}))
def test_no_ready_space_holds_what_is_unsafe(name: str) -> None:
    """`rocksdb-full` had a special value that a newer rule of this file refused."""
    engine = name.partition("-")[0]
    text = study(engine).text
    lines = [
        line for line in text.splitlines() if not line.startswith(("space:", "  write_buffer"))
    ]
    parse_spec("\n".join([*lines, f"space: {name}"]), Path("study.yaml"))


def test_the_durability_class_decides() -> None:
    assert unsafe_reason("rocksdb", "manual_wal_flush", True, Durability.NONE) == ""
    assert unsafe_reason("rocksdb", "manual_wal_flush", True, Durability.WAL)
    assert unsafe_reason("rocksdb", "avoid_flush_during_shutdown", True, Durability.WAL) == ""
    assert unsafe_reason("rocksdb", "avoid_flush_during_shutdown", True, Durability.NONE)


@pytest.mark.parametrize("option", ["manual_wal_flush", "avoid_flush_during_shutdown"])
def test_of_several_workloads_each_durability_class_is_looked_at(option: str) -> None:
    """Beside one without a log, what loses the log of another needed no `allow_unsafe`."""
    one = "workload: {name: fillrandom, durability: wal}"
    two = "workloads: [{name: fillrandom, durability: wal}, {name: readrandom, durability: none}]"
    text = study(rest=f"options: {{{option}: false}}").text.replace(one, two)
    assert parse_spec(text, Path("study.yaml")).unsafe_options == {}
    text = text.replace(f"{option}: false", f"{option}: true")
    with pytest.raises(InputError, match="unsafe under durability"):
        parse_spec(text, Path("study.yaml"))
    allowed = parse_spec(f"{text}allow_unsafe: [{option}]\n", Path("study.yaml"))
    assert set(allowed.unsafe_options) == {option}


def test_an_option_of_another_engine_is_no_concern() -> None:
    assert unsafe_reason("leveldb", "paranoid_checks", False, Durability.WAL) == ""
    assert study("leveldb", rest="options: {paranoid_checks: false}").unsafe_options == {}


@pytest.mark.parametrize("name", ["sync", "disableWAL", "disable_wal"])
def test_durability_is_not_an_option(name: str) -> None:
    with pytest.raises(InputError, match="durability belongs to the workload"):
        study(rest=f"options: {{{name}: true}}\nallow_unsafe: [{name}]")


def test_nested_options_are_seen_at_any_depth() -> None:
    text = "{block_size=4096;a={b=1;c={d=x}};checksum=kNoChecksum}"
    assert dict(flattened({"t": text})) == {
        "t": text,
        "t.block_size": "4096",
        "t.a": "{b=1;c={d=x}}",
        "t.a.b": "1",
        "t.a.c": "{d=x}",
        "t.a.c.d": "x",
        "t.checksum": "kNoChecksum",
    }


@pytest.mark.parametrize("text", ["{", "{}", "{;;}", "{a=1", "{}}", "{{}", "{a={b=1}", "{=}"])
def test_broken_nesting_does_not_hang_or_crash(text: str) -> None:
    assert next(iter(flattened({"t": text}))) == ("t", text)
    assert len(list(flattened({"t": text}))) < 5
