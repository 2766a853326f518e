"""fjall in lsmtune's suite for engines, and found, measured and tuned by its name alone."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from lsmtune.cli.main import main
from lsmtune.testing.engines import EngineSuite


class TestFjall(EngineSuite):
    name = "fjall"
    small = ("max_memtable_size", 1 << 20)
    mistyped = (("max_memtabel_size", "max_memtable_size"), ("cache_sise", "cache_size"))
    bad_values = (("block_size", 1000), ("compression", "snappy"), ("level_ratio", "x"))
    durabilities = ("sync", "wal")


def test_it_is_tuned_by_its_name_in_the_space_that_it_lists(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    study = tmp_path / "study.yaml"
    study.write_text(
        "version: 1\nname: fjall\nengine: {name: fjall}\nseed: 1\nspace: fjall-all\n"
        "workload: {name: fillrandom, num: 5000}\nburst: true\n"
        "budget: {trials: 2}\nproof: {pairs: 6}\n"
    )
    assert main(["tune", str(study), "--json", "--quiet"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["verdict"]["outcome"] in ("better", "worse", "equivalent", "not_proven")
    assert main(["report", str(study), "--format", "json", "--output", "-"]) in (0, 2)
