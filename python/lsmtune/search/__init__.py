"""Ask and tell from Python: a search whose trials the caller runs, wherever and however."""

from lsmtune.search.search import Search
from lsmtune.search.trial import FinishedTrial, Trial

__all__ = ["FinishedTrial", "Search", "Trial"]
