"""`lsmtune options`: all of an engine's options, one in detail, ready spaces, presets."""

from __future__ import annotations

from typing import Any

import pytest

from lsmtune.engines.catalogue import option_catalogue
from lsmtune.engines.library import ENGINE_KINDS
from lsmtune.engines.ready import known_presets, known_spaces
from lsmtune.report.options import value_text

TABLE = "block_based_table_factory"


def facts(page: str) -> dict[str, str]:
    """Label -> text of the facts on a page about one option."""
    lines = [line[2:] for line in page.splitlines() if line.startswith("  ") and line[2] != " "]
    pairs = (line.split("  ", 1) for line in lines)
    return {label.strip(): text.strip() for label, text in pairs}


@pytest.mark.parametrize("engine", ENGINE_KINDS)
def test_the_table_has_a_line_for_every_option(lsmtune: Any, engine: str) -> None:
    said = lsmtune("options", engine)
    assert said.status == 0
    head, *lines = said.out.splitlines()
    assert head.split() == ["name", "default", "range", "effect", "risk"]
    assert [line.split()[0] for line in lines] == list(option_catalogue(engine))


def test_one_option_is_told_exactly(lsmtune: Any) -> None:
    said = lsmtune("options", "rocksdb", "write_buffer_size")
    assert said.status == 0
    lines = said.out.splitlines()
    assert lines[0].rstrip() == "write_buffer_size  (rocksdb, column family, int)"
    assert " ".join(f"{lines[1]} {lines[2]}".split()) == (
        option_catalogue("rocksdb")["write_buffer_size"].trade_off
    )
    told = facts(said.out)
    assert told["default"] == "64MiB (67108864)"
    assert told["search range"] == "1MiB to 1GiB, log, steps of 1MiB"
    assert told["effect"].startswith("layout")
    assert told["while open"] == "can be changed (SetOptions)"
    assert told["scales with"] == "data"
    assert told["source"] == "include/rocksdb/options.h"
    assert told["in spaces"].startswith("rocksdb-basic, rocksdb-write")
    assert "rocksdb-optimize-for-small-db (2MiB)" in said.out


def test_conditions_specials_constraints_and_versions_are_told(lsmtune: Any) -> None:
    name = "compaction_options_universal.max_read_amp"
    told = facts(lsmtune("options", "rocksdb", name).out)
    assert told["only when"] == "compaction_style is kCompactionStyleUniversal"
    assert told["must hold"].startswith(f"{name} <= 0 or")
    assert told["versions"] == "since 9.4"
    page = lsmtune("options", "rocksdb", "compaction_readahead_size").out
    assert "0 means" in page
    assert "up to " in page
    older = option_catalogue("rocksdb")["compaction_readahead_size"].older_defaults
    assert older
    assert f"up to {older[-1][0]}" in page


def test_unsafe_values_are_told_as_they_are_spelled(lsmtune: Any) -> None:
    told = facts(lsmtune("options", "rocksdb", "compaction_style").out)
    assert told["unsafe"].startswith("kCompactionStyleFIFO: FIFO deletes")
    assert "unsafe" not in facts(lsmtune("options", "rocksdb", "num_levels").out)
    # 1,000 was refused as well, and only -1 was told.
    told = facts(lsmtune("options", "rocksdb", "level0_stop_writes_trigger").out)
    assert told["unsafe"].startswith("-1 or 1,000 and more: level 0 grows")


def test_a_nested_option_is_found_by_its_last_part_where_only_one_has_it(lsmtune: Any) -> None:
    assert lsmtune("options", "rocksdb", "block_size").out.startswith(f"{TABLE}.block_size  (")
    refusal = lsmtune("options", "rocksdb", "max_dict_bytes").refusal
    assert "compression_opts.max_dict_bytes, bottommost_compression_opts.max_dict_byt" in refusal


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        ([], "options: ENGINE: missing; allowed: rocksdb, leveldb"),
        (["rocksb"], "did you mean rocksdb?"),
        (["memory"], "options: found 'memory'; allowed: rocksdb, leveldb"),
        (["rocksdb", "write_bufer_size"], "did you mean write_buffer_size?"),
        (["rocksdb", "bloc_size"], f"did you mean {TABLE}.block_size?"),
        (["rocksdb", "rocksdb-wrte"], "did you mean rocksdb-write?"),
        (["leveldb", "rocksdb-write"], "no option, ready space or preset of leveldb"),
        (["rocksdb", "num_levels", "--spaces"], "NAME: given with --spaces or --presets"),
    ],
)
def test_a_wrong_name_is_one_line_with_the_nearest(
    lsmtune: Any, arguments: list[str], line: str
) -> None:
    assert line in lsmtune("options", *arguments).refusal


def test_spaces_and_presets_are_listed_for_one_engine_or_for_all(lsmtune: Any) -> None:
    spaces = lsmtune("options", "--spaces").out
    assert all(name in spaces for name in known_spaces())
    both = lsmtune("options", "leveldb", "--spaces", "--presets").out
    assert "leveldb-contest" in both
    assert "leveldb-point-lookup" in both
    assert "rocksdb-" not in both.replace("RocksDB", "")


def test_a_space_shows_its_parameters_constraints_and_what_it_needs(lsmtune: Any) -> None:
    contest = lsmtune("options", "leveldb", "leveldb-contest").out
    assert "write_buffer_size + cache_size <= 1GiB" in contest
    assert "max_open_files=10,000" in contest
    assert "space: leveldb-contest" in contest
    assert "allow_unsafe" not in contest
    gist = lsmtune("options", "rocksdb", "rocksdb-gist").out
    assert all(p.name in gist for p in known_spaces()["rocksdb-gist"].parameters)
    assert "allow_unsafe: [compaction_style, disable_auto_compactions]" in gist
    assert "memtable_factory.id is vector" in gist


def test_a_preset_shows_its_options_beside_the_defaults_and_its_notes(lsmtune: Any) -> None:
    said = lsmtune("options", "rocksdb", "rocksdb-optimize-for-small-db").out
    rows = [line.split() for line in said.splitlines()]
    assert ["write_buffer_size", "2MiB", "64MiB"] in rows
    assert "WriteBufferManager" in said
    assert "options/options.cc" in said
    assert "UNSAFE, data loss" in lsmtune("options", "rocksdb", "rocksdb-gist-winner").out
    for name in known_presets():
        assert lsmtune("options", known_presets()[name].engine, name).status == 0


def test_json_has_every_field(lsmtune: Any) -> None:
    document = lsmtune("options", "rocksdb", "--json").json()
    assert document["engine"] == "rocksdb"
    assert [option["name"] for option in document["options"]] == list(option_catalogue("rocksdb"))
    option = lsmtune("options", "rocksdb", "write_buffer_size", "--json").json()["option"]
    wanted = {"type": "int", "default": 64 * 2**20, "unit": "bytes", "low": 2**20, "log": True}
    assert wanted.items() <= option.items()
    assert {"scope", "effect", "mutable", "risk", "since", "until", "trade_off"} <= option.keys()


def test_json_of_spaces_and_presets(lsmtune: Any) -> None:
    both = lsmtune("options", "leveldb", "--spaces", "--presets", "--json").json()
    assert [s["name"] for s in both["spaces"]] == [n for n in known_spaces() if n[:3] == "lev"]
    assert both["presets"][0] == {
        "name": "leveldb-default",
        "engine": "leveldb",
        "options": {},
        "summary": known_presets()["leveldb-default"].summary,
        "source": known_presets()["leveldb-default"].source,
        "suits": [],
        "notes": [],
    }
    space = lsmtune("options", "rocksdb", "rocksdb-gist", "--json").json()["space"]
    assert space["unsafe"] == ["compaction_style", "disable_auto_compactions"]
    buckets = next(p for p in space["parameters"] if p["name"] == "memtable_factory.bucket_count")
    assert (buckets["type"], buckets["log"]) == ("int", True)
    assert buckets["when"] == {"memtable_factory.id": ["prefix_hash", "hash_linkedlist"]}
    preset = lsmtune("options", "rocksdb", "rocksdb-increase-parallelism", "--json").json()
    assert preset["preset"]["options"] == {"max_background_jobs": 16}


def test_help_shows_examples(lsmtune: Any) -> None:
    said = lsmtune("options", "--help")
    assert "lsmtune options rocksdb write_buffer_size" in said.out


@pytest.mark.parametrize(
    ("value", "unit", "text"),
    [
        (64 * 2**20, "bytes", "64MiB"),
        (253_269_056, "bytes", "253,269,056B"),
        (0, "bytes", "0"),
        (16 * 2**20, "bytes/s", "16MiB/s"),
        (1_000_000, "us", "1,000,000 us"),
        (24.112568220334577, "", "24.112568220334577"),
        (True, "", "true"),
        (None, "bytes", "-"),
        ("[a, b]", "", "[a, b]"),
    ],
)
def test_values_are_written_exactly(value: Any, unit: str, text: str) -> None:
    assert value_text(value, unit) == text
