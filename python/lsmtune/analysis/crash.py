"""What became of the tuned configuration's database when its process was killed."""

from __future__ import annotations

from lsmtune.analysis.runs import chosen
from lsmtune.analysis.source import StudyRecords
from lsmtune.proof.crash_test import CrashTest


def crash_test(records: StudyRecords) -> CrashTest | None:
    """The latest crash test of the configuration that the study puts forward, if it was made."""
    tuned = chosen(records)
    if tuned is None:
        return None
    options = tuned.config.engine_options()
    return next((t for of, t in reversed(records.crash_tests) if dict(of) == options), None)
