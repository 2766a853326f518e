"""Rules: what they allow, and what is wrong with a rules file."""

from __future__ import annotations

from pathlib import Path

import pytest

from lsmtune.errors import InputError
from lsmtune.experiment.contest import (
    Rules,
    broken_rules,
    load_rules,
    parse_rules,
    rules_text,
)
from lsmtune.model.config import Config, OptionValue

MIB, GIB = 2**20, 2**30
CACHE = "block_based_table_factory.block_cache"


def broken(engine: str, options: dict[str, OptionValue], rules: Rules | None = None) -> list[str]:
    found = broken_rules(rules or load_rules(engine), Config(options), "a.properties")
    return [each.rule for each in found]


@pytest.mark.parametrize(
    ("engine", "options", "expected"),
    [
        ("leveldb", {}, []),
        ("leveldb", {"write_buffer_size": GIB - 8 * MIB}, []),
        ("leveldb", {"write_buffer_size": GIB - 8 * MIB + 1}, ["memory"]),
        ("leveldb", {"write_buffer_size": 512 * MIB, "cache_size": 512 * MIB}, []),
        ("leveldb", {"max_file_size": GIB}, []),
        ("leveldb", {"max_file_size": GIB + 1}, ["file-size"]),
        ("leveldb", {"cache_size": 2 * GIB, "max_file_size": 2 * GIB}, ["memory", "file-size"]),
        ("rocksdb", {}, []),
        ("rocksdb", {CACHE: GIB}, ["memory"]),
        ("rocksdb", {CACHE: GIB - 64 * MIB}, []),
        ("rocksdb", {CACHE: "2G"}, ["memory"]),
        ("rocksdb", {CACHE: "{capacity=2G;num_shard_bits=4}"}, ["memory"]),
        ("rocksdb", {"block_based_table_factory": "{block_cache=2G;}"}, ["memory"]),
        ("rocksdb", {CACHE: GIB, "block_based_table_factory.no_block_cache": True}, []),
        ("rocksdb", {"write_buffer_size": "1G"}, ["memory"]),
        ("rocksdb", {"target_file_size_base": GIB}, []),
        ("rocksdb", {"target_file_size_base": GIB + 1}, ["file-size"]),
        ("rocksdb", {"target_file_size_multiplier": 2}, ["file-size"]),
        ("rocksdb", {"target_file_size_multiplier": 2, "num_levels": 6}, []),
        ("memory", {"write_buffer_size": 9 * GIB}, []),
    ],
)
def test_the_restrictions_of_the_contest(
    engine: str, options: dict[str, OptionValue], expected: list[str]
) -> None:
    assert broken(engine, options) == expected


def test_a_broken_rule_has_its_figures() -> None:
    config = Config({"write_buffer_size": GIB})
    (found,) = broken_rules(load_rules("leveldb"), config, "a.properties")
    assert found.text == "write_buffer_size + cache_size <= 1GiB"
    assert found.figures == {"write_buffer_size": GIB, "cache_size": 8 * MIB}
    assert found.violation == pytest.approx(8 / 1024)


def test_what_an_entry_leaves_alone_has_the_default_of_the_version() -> None:
    rules = parse_rules(
        "version: 1\nrules:\n  cache:\n    rule: block_cache <= 16MiB\n", "r.yaml", "rocksdb"
    )
    found = [bool(broken_rules(rules, Config(), "a", version)) for version in ("7.8.3", "10.2.1")]
    assert found == [False, True]  # 8 MiB until 8.1, 32 MiB since


def test_a_rule_on_the_memory_model() -> None:
    text = "version: 1\nrules:\n  all:\n    rule: memory_model_bytes <= 128MiB\n"
    rules = parse_rules(text, "r.yaml", "rocksdb")
    assert broken("rocksdb", {"max_write_buffer_number": 8}, rules) == ["all"]
    assert broken("rocksdb", {"write_buffer_size": 16 * MIB}, rules) == []


def test_a_value_that_is_no_number_names_the_entry() -> None:
    with pytest.raises(InputError, match=r"a.properties: write_buffer_size: found 'much'"):
        broken("leveldb", {"write_buffer_size": "much"})


def test_rules_of_a_file_and_of_another_engine(tmp_path: Path) -> None:
    path = tmp_path / "rules.yaml"
    path.write_text("version: 1\nrules:\n  small:\n    rule: {leveldb: block_size <= 4KiB}\n")
    assert broken("leveldb", {"block_size": 8192}, load_rules("leveldb", path)) == ["small"]
    other = load_rules("rocksdb", path)
    assert (other.constraints, other.elsewhere) == ({}, ("small",))


def test_the_built_in_text_is_a_rules_file() -> None:
    assert load_rules("leveldb") == parse_rules(rules_text()[0], "built in", "leveldb")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("version: 2\nrules: {}", "r.yaml:1: version: found 2; allowed: 1"),
        ("version: true\nrules: {}", "r.yaml:1: version: found true; allowed: 1"),
        ("rules: {}", "version: missing; allowed: 1"),
        ("version: 1", "rules: missing; allowed: at least one rule, by name"),
        ("version: 1\nrules: []", "r.yaml:2: rules: found a list"),
        ("version: 1\nrules:\n  a: b", "r.yaml:3: rules.a: found 'b'"),
        ("version: 1\nrule: {}", "r.yaml:2: rule: unknown field; allowed: version, rules; did"),
        (
            "version: 1\nrules:\n  a: {rul: b}",
            "rules.a.rul: unknown field; allowed: rule, about; did you mean rule?",
        ),
        (
            "version: 1\nrules:\n  a: {about: b}",
            "rules.a.rule: missing; allowed: a condition such as",
        ),
        ("version: 1\nrules:\n  a: {rule: 3}", "rules.a.rule: found 3"),
        ("version: 1\nrules:\n  a: {rule: block_size < 3, about: 4}", "rules.a.about: found 4"),
        ("version: 1\nrules:\n  a: {rule: block_size + 1}", "is a value, not a condition"),
        ("version: 1\nrules:\n  a: {rule: blok_size < 3}", "did you mean block_size?"),
        ("version: 1\nrules:\n  a: {rule: {leveldv: 3}}", "did you mean leveldb?"),
        (
            "version: 1\nrules:\n  a:\n    rule:\n      '': block_size < 3",
            "r.yaml:4: rules.a.rule: no such engine",
        ),
        (
            "version: 1\nrules:\n  a:\n    rule:\n      oops: block_size < 3",
            "r.yaml:5: rules.a.rule.oops: no such engine",
        ),
        ("version: 1\nrules: {}", "rules: found a mapping; allowed: at least one rule, by name"),
        ("[]", "r.yaml:1: is not a rules"),
        ("a: [", "r.yaml:1: not YAML"),
    ],
)
def test_what_is_wrong_in_a_rules_file_is_one_line(text: str, said: str) -> None:
    with pytest.raises(InputError) as caught:
        parse_rules(text, "r.yaml", "leveldb")
    assert said in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("rules", "said"),
    [
        ("{a: &a {rule: block_size < 3}, b: *a}", "r.yaml:2: anchors and aliases are not allowed"),
        ("{<<: [*a, *a]}", "r.yaml:2: anchors and aliases are not allowed in a rules file"),
        ("{a: {rule: block_size < 3}, a: {}}", "r.yaml:2: rules.a: given twice, first on line 2"),
        ("{a: !!python/name:os.system {}}", "r.yaml:2: tags are not allowed in a rules file"),
    ],
)
def test_a_rules_file_has_no_aliases_and_says_nothing_twice(rules: str, said: str) -> None:
    """Of two rules of one name, the last one counted, and nobody was told."""
    with pytest.raises(InputError) as caught:
        parse_rules(f"version: 1\nrules: {rules}", "r.yaml", "leveldb")
    assert str(caught.value).startswith(said)
