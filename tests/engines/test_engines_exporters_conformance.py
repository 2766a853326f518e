"""lsmtune's own export formats in the suite for all of them."""

from __future__ import annotations

import json

from lsmtune.engines.formats import EXPORTERS
from lsmtune.testing.exporters import ExporterSuite


class TestRocksdbOptions(ExporterSuite):
    name = "rocksdb-options"


class TestProperties(ExporterSuite):
    name = "properties"


class TestDbBench(ExporterSuite):
    name = "db_bench"


class TestBenchmarkSh(ExporterSuite):
    name = "benchmark.sh"


class TestEkvsb(ExporterSuite):
    name = "ekvsb"


class TestCpp(ExporterSuite):
    name = "c++"


class TestJava(ExporterSuite):
    name = "java"


class TestRust(ExporterSuite):
    name = "rust"


class TestGo(ExporterSuite):
    name = "go"


class TestPython(ExporterSuite):
    name = "python"


class TestJson(ExporterSuite):
    name = "json"

    def read(self, text: str) -> object:
        return json.loads(text)


class TestSetOptions(ExporterSuite):
    name, needs_other = "set-options", True


def test_every_format_of_lsmtunes_own_is_in_the_suite() -> None:
    tested = {each.name for each in ExporterSuite.__subclasses__()}
    assert {name for name in EXPORTERS if EXPORTERS.origin(name) is None} <= tested
