"""RocksDB's option catalogue: complete, checked, and in agreement with what the engine writes."""

from __future__ import annotations

from pathlib import Path

import pytest
from option_cases import choices_in, constraint_in

from lsmtune.engines import catalogue as catalogues
from lsmtune.engines.catalogue import (
    OptionInfo,
    listed_catalogue,
    option_catalogue,
    parse_catalogue,
)
from lsmtune.engines.option_names import (
    CF_SECTION,
    DB_SECTION,
    TABLE_OPTION,
    TABLE_SECTION,
    catalogue,
    split_structure,
)
from lsmtune.errors import InputError
from lsmtune.model.config import OptionValue, option_text
from lsmtune.space.expression import make_expression

CATALOGUE = option_catalogue("rocksdb")
WRITTEN = catalogue().options
VERSIONS = ("7.8.3", "10.2.1", "10.10.1")
SECTION = {"db": DB_SECTION, "column_family": CF_SECTION, "table": TABLE_SECTION}

# What no OPTIONS file of defaults shows, and why.
NOT_WRITTEN = {
    "rate_limiter_bytes_per_sec": "RocksDB reads it and never writes it",
    "compression_per_level": "written only when it is not empty",
    **{
        name: "a part of an object, which is written in full only when it is not the default one"
        for name in CATALOGUE
        if name.startswith("memtable_factory.") and name != "memtable_factory.id"
    },
    **{
        name: "RocksDB writes nothing of the block cache into an OPTIONS file"
        for name in CATALOGUE
        if name.startswith(f"{TABLE_OPTION}.block_cache")
    },
}

# What the Optuna gist tunes, and the options that say it.
GIST = {
    "disable-advise-random-on-open": ("advise_random_on_open",),
    "disable-auto-compactions": ("disable_auto_compactions",),
    "use-direct-io-for-flush-and-compaction": ("use_direct_io_for_flush_and_compaction",),
    "use-direct-reads": ("use_direct_reads",),
    "use-fsync": ("use_fsync",),
    "bytes-per-sync": ("bytes_per_sync",),
    "compaction-readahead-size": ("compaction_readahead_size",),
    "compaction-style": ("compaction_style",),
    "level-zero-file-num-compaction-trigger": ("level0_file_num_compaction_trigger",),
    "level-zero-slowdown-writes-trigger": ("level0_slowdown_writes_trigger",),
    "level-zero-stop-writes-trigger": ("level0_stop_writes_trigger",),
    "max-background-compactions": ("max_background_compactions",),
    "max-background-flushes": ("max_background_flushes",),
    "max-bytes-for-level-base": ("max_bytes_for_level_base",),
    "max-bytes-for-level-multiplier": ("max_bytes_for_level_multiplier",),
    "max-write-buffer-number": ("max_write_buffer_number",),
    "memtable-prefix-bloom-ratio": ("memtable_prefix_bloom_size_ratio",),
    "min-write-buffer-number": ("min_write_buffer_number_to_merge",),
    "min-write-buffer-number-to-merge": ("min_write_buffer_number_to_merge",),
    "num-levels": ("num_levels",),
    # A helper function of RocksDB that sets these.
    "optimize-for-point-lookup": (
        f"{TABLE_OPTION}.data_block_index_type",
        f"{TABLE_OPTION}.data_block_hash_table_util_ratio",
        f"{TABLE_OPTION}.filter_policy",
        f"{TABLE_OPTION}.block_cache",
        "memtable_prefix_bloom_size_ratio",
        "memtable_whole_key_filtering",
    ),
    "parallelism": ("max_background_jobs",),
    "table-cache-num-shard-bits": ("table_cache_numshardbits",),
    "target-file-size-base": ("target_file_size_base",),
    "write-buffer-size": ("write_buffer_size",),
    "block-opt-block-size": (f"{TABLE_OPTION}.block_size",),
    "block-opt-lru-cache": (f"{TABLE_OPTION}.block_cache",),
    "block-opt-bloom-filter-bits-per-key": (f"{TABLE_OPTION}.filter_policy",),
    "block-opt-bloom-filter-block-based": (f"{TABLE_OPTION}.filter_policy",),
    "block-opt-index-type": (f"{TABLE_OPTION}.index_type",),
    "block-opt-disable-cache": (f"{TABLE_OPTION}.no_block_cache",),
    "block-opt-cache-index-and-filter-blocks": (f"{TABLE_OPTION}.cache_index_and_filter_blocks",),
    "memtable-factory": ("memtable_factory.id",),
    "memtable-factory-hashlinklist-bucket-count": ("memtable_factory.bucket_count",),
    "memtable-factory-hashskiplist": (
        "memtable_factory.bucket_count",
        "memtable_factory.skiplist_height",
        "memtable_factory.branching_factor",
    ),
}


def written_default(name: str, version: str) -> str | None:
    """The default of `name` in the OPTIONS file that RocksDB `version` wrote; None if not in it."""
    head, _, field = name.removeprefix(f"{TABLE_OPTION}.").partition(".")
    option = WRITTEN.get(head)
    text = None if option is None else option.defaults.get(version)
    if text is None or not field or field == "id":
        return text
    return split_structure(text).get(field) if text.startswith("{") else None


def means(value: OptionValue | None, text: str) -> bool:
    """Whether RocksDB's `text` means `value`."""
    if value == "skip_list":
        return text == "SkipListFactory"
    if isinstance(value, float):
        return float(text) == value
    return value is not None and option_text(value) == text


def test_there_are_enough_options_of_every_kind() -> None:
    assert len(CATALOGUE) >= 150
    scopes = [info.scope for info in CATALOGUE.values()]
    assert min(scopes.count(scope) for scope in SECTION) >= 30
    assert {info.effect for info in CATALOGUE.values()} == {"layout", "runtime"}


@pytest.mark.parametrize("tuned", GIST)
def test_everything_that_the_gist_tunes_is_there(tuned: str) -> None:
    for name in GIST[tuned]:
        assert CATALOGUE[name].searchable


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("name", CATALOGUE)
def test_the_default_is_what_the_engine_writes(name: str, version: str) -> None:
    info = CATALOGUE[name]
    written = written_default(name, version)
    if name in NOT_WRITTEN:
        assert written is None
        return
    assert info.exists_in(version) == (written is not None)
    if written is not None:
        assert means(info.default_in(version), written), f"{info.default_in(version)} {written}"
        head = name.removeprefix(f"{TABLE_OPTION}.").partition(".")[0]
        assert WRITTEN[head].section == SECTION[info.scope]


@pytest.mark.parametrize("info", CATALOGUE.values(), ids=lambda info: info.name)
def test_the_parameter_reaches_all_that_the_entry_names(info: OptionInfo) -> None:
    parameter = info.parameter()
    named = [info.default, info.low, info.high, *info.choices, *(v for v, _ in info.specials)]
    for value in named:
        assert value is None or parameter.contains(value)
    assert {c.name: c.values for c in parameter.conditions} == dict(info.condition)
    assert parameter.default == info.default


@pytest.mark.parametrize("info", CATALOGUE.values(), ids=lambda info: info.name)
def test_constraints_are_conditions_over_options_that_the_defaults_keep(info: OptionInfo) -> None:
    for version in (*VERSIONS, "11.8.1"):
        values = {other.name: other.default_in(version) for other in CATALOGUE.values()}
        known = {name: value for name, value in values.items() if value is not None}
        for text in constraint_in(info, version):
            constraint = make_expression(text, "rocksdb.yaml", info.name)
            assert constraint.is_condition
            assert constraint.names <= CATALOGUE.keys()
            if info.default is not None:
                assert constraint.evaluate(known) is True


def test_every_trade_off_is_a_sentence_of_its_own() -> None:
    sentences = [info.trade_off for info in CATALOGUE.values()]
    assert len(set(sentences)) == len(sentences)
    assert all(sentence.count(". ") == 0 for sentence in sentences)


def test_sources_are_files_of_rocksdb() -> None:
    for info in CATALOGUE.values():
        assert Path(info.source).suffix in {".h", ".cc"}, info.name


def test_versions_decide_what_there_is() -> None:
    hint = CATALOGUE["access_hint_on_compaction_start"]
    assert hint.exists_in("8.11.4")
    assert not hint.exists_in("9.0.0")
    flush = CATALOGUE["memtable_op_scan_flush_trigger"]
    assert not flush.exists_in("10.1.3")
    assert flush.exists_in("10.2.1")
    readahead = CATALOGUE["compaction_readahead_size"]
    assert (readahead.default_in("8.5.4"), readahead.default_in("8.6.7")) == (0, 2 << 20)
    cache = CATALOGUE[f"{TABLE_OPTION}.block_cache.id"]
    assert choices_in(cache, "7.8.3") == ("lru_cache",)
    assert choices_in(cache, "8.7.3") == cache.choices
    recycled = CATALOGUE["recycle_log_file_num"]
    assert constraint_in(recycled, "9.0.1") != constraint_in(recycled, "9.1.1")


ENTRY = """
write_buffer_size:
  type: int
  default: 64MiB
  unit: bytes
  low: 1MiB
  high: 1GiB
  log: true
  step: 1MiB
  scope: column_family
  effect: layout
  trade_off: Larger memtables mean fewer flushes for more memory.
  source: include/rocksdb/options.h
"""
KIND = """
kind:
  type: enum
  default: a
  choices: [a, b]
  scope: db
  effect: runtime
  trade_off: One is faster and the other one is smaller.
  source: x.h
"""


def test_a_good_entry_is_read() -> None:
    info = parse_catalogue(ENTRY, "x.yaml")["write_buffer_size"]
    assert (info.default, info.low, info.high, info.step) == (64 << 20, 1 << 20, 1 << 30, 1 << 20)
    assert (info.mutable, info.risk, info.specials, info.since) == (False, (), (), "")


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("a: [", "x.yaml: not YAML"),
        ("[]", "x.yaml: allowed: a mapping"),
        (ENTRY + ENTRY, "x.yaml: not YAML: write_buffer_size twice"),
        (ENTRY.replace("write_buffer_size", "a b"), "x.yaml: a b: not an option's name"),
        (ENTRY.replace("step: 1MiB", "steps: 1MiB"), "x.yaml: write_buffer_size.steps: "),
        (ENTRY.replace("high: 1GiB", "high: 1G"), "x.yaml: write_buffer_size.high"),
        (ENTRY.replace("low: 1MiB", "low: 2GiB"), "x.yaml: write_buffer_size.low: found"),
        (ENTRY.replace("  low: 1MiB\n", ""), "x.yaml: write_buffer_size.low: "),
        (
            ENTRY.replace("default: 64MiB", "default: 1"),
            "x.yaml: write_buffer_size.default: found 1",
        ),
        (ENTRY.replace("type: int", "type: bool"), "x.yaml: write_buffer_size"),
        (ENTRY.replace("type: int", "type: integer"), "x.yaml: write_buffer_size.type: Input"),
        (ENTRY.replace("scope: column_family", "scope: cf"), "x.yaml: write_buffer_size.scope: "),
        (ENTRY.replace("more memory.", "more memory"), "x.yaml: write_buffer_size.trade_off: "),
        (ENTRY + "  since: 8\n", "x.yaml: write_buffer_size.since: "),
        (ENTRY + "  specials: {2MiB: inside}\n", "x.yaml: write_buffer_size.special"),
        (ENTRY + "  condition: {kid: [a]}\n" + KIND, "did you mean kind?"),
        (ENTRY + "  condition: {kind: [c]}\n" + KIND, "condition.kind: found 'c'; allowed: a, b"),
        (ENTRY + "  older_defaults: {'8.1': 1MiB, '7.8': 2MiB}\n", "oldest first"),
        (KIND + "  choices_since: {c: '8.1'}\n", "x.yaml: kind.choices_since: found 'c'"),
        (KIND.replace("  choices: [a, b]\n", ""), "x.yaml: kind.choices: "),
        (KIND + "  low: 1\n  high: 2\n", "x.yaml: kind.low: found 1"),
    ],
)
def test_what_is_wrong_in_a_data_file_is_one_line(text: str, line: str) -> None:
    with pytest.raises(InputError) as caught:
        parse_catalogue(text, "x.yaml")
    assert line in str(caught.value)
    assert "\n" not in str(caught.value)


def test_an_engine_without_a_catalogue_is_refused() -> None:
    with pytest.raises(InputError, match="did you mean rocksdb"):
        option_catalogue("rocksbd")


def test_an_engine_of_a_plugin_may_list_no_options(monkeypatch: pytest.MonkeyPatch) -> None:
    """The driver took it; `verify` ended, when all was measured, with "allowed: a mapping"."""
    monkeypatch.setattr(catalogues, "listed_options", lambda _library: "{}")
    assert listed_catalogue(Path("libmine.so")) == {}


def test_what_a_plugin_says_of_an_option_may_have_any_letter(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """They went to YAML, which takes neither two escapes for one letter nor control characters."""
    listed = '{"cache": {"type": "bool", "default": true, "trade_off": "%s costs memory only."}}'
    for said, letter in (("\U0001f680", "\U0001f680"), ("\\u007f", "\x7f")):
        text = listed % f"Speed {said}"
        monkeypatch.setattr(catalogues, "listed_options", lambda _library, text=text: text)
        found = listed_catalogue(Path("libmine.so"))["cache"]
        assert found.trade_off.startswith(f"Speed {letter}")
    monkeypatch.setattr(catalogues, "listed_options", lambda _library: listed % "Speed \\ud83d")
    with pytest.raises(InputError, match="half of a surrogate pair"):
        listed_catalogue(Path("libmine.so"))
