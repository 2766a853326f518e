"""lsmtune's own reports in the suite for all of them."""

from __future__ import annotations

from pathlib import Path
from typing import ClassVar

import pytest
from sample_study import SampleStudy, fill, finished

from lsmtune.report.study import FORMATS
from lsmtune.testing.reports import ReportSuite


class TestHtml(ReportSuite):
    """On the study that the suite makes, as a package has it."""

    name = "html"


class OfMadeUpStudies(ReportSuite):
    made: ClassVar[list[Path]]

    def folders(self, home: Path) -> list[Path]:  # noqa: ARG002
        """A finished study, and one without a verdict."""
        return self.made


@pytest.fixture(scope="module", autouse=True)
def _made_up_studies(tmp_path_factory: pytest.TempPathFactory) -> None:
    whole = finished(tmp_path_factory.mktemp("finished"))
    begun = SampleStudy(tmp_path_factory.mktemp("unfinished"))
    fill(begun, trials=4)
    for study in (whole, begun):
        study.close()
    OfMadeUpStudies.made = [whole.path, begun.path]


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
