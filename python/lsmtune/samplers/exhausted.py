"""The end of a search for lack of configurations."""

from __future__ import annotations

from lsmtune.errors import LsmtuneError


class SpaceExhaustedError(LsmtuneError):
    """There is no configuration left that was not tried: the search is over, not broken."""
