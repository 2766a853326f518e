"""lsmtune's own reports in the suite for all of them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from sample_study import SampleStudy, fill, finished

from lsmtune.report.study import FORMATS
from lsmtune.testing.reports import ReportSuite


class TestHtml(ReportSuite):
    """On the study that the suite makes, as a package has it."""

    name = "html"


class OfMadeUpStudies(ReportSuite):
    def folders(self, home: Path) -> Iterator[Path]:
        """A finished study, and one without a verdict."""
        for name in ("finished", "unfinished"):
            (home / name).mkdir()
            study = finished(home / name) if name == "finished" else SampleStudy(home / name)
            if name == "unfinished":
                fill(study, trials=4)
            study.close()
            yield study.path


class TestHtmlOfMadeUpStudies(OfMadeUpStudies):
    name = "html"


class TestMarkdown(OfMadeUpStudies):
    name = "md"


class TestJson(OfMadeUpStudies):
    name = "json"


class TestCsv(OfMadeUpStudies):
    name = "csv"


class TestParquet(OfMadeUpStudies):
    name = "parquet"


def test_every_report_of_lsmtunes_own_is_in_the_suite() -> None:
    tested = {each.name for each in OfMadeUpStudies.__subclasses__()}
    assert {name for name in FORMATS if FORMATS.origin(name) is None} <= tested
