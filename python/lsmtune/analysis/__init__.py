"""What a stored study says: tidy tables, pure functions of what storage holds."""

from lsmtune.analysis.source import StudyRecords, read_study
from lsmtune.analysis.study import StudyAnalysis, analyse

__all__ = ["StudyAnalysis", "StudyRecords", "analyse", "read_study"]
