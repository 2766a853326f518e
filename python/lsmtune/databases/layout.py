"""Which options of a Config a loaded database depends on.

An option is of the *layout* when the files of a loaded and settled database depend on it, and of
the *runtime* otherwise; the catalogues (`engines/options/*.yaml`) say which, with the reason where
it is not plain. Two configurations with the same layout can start from copies of one database.

An option that no catalogue knows counts as layout: taking a runtime option for a layout one costs
a load, the other way round it makes the measurement wrong.
"""

from __future__ import annotations

import functools
from collections.abc import Set
from dataclasses import dataclass
from itertools import chain

from lsmtune.engines.options import option_catalogue
from lsmtune.records.config import Config
from lsmtune.space import make_expression

LAYOUT_LABEL = "layout"
RUNTIME_LABEL = "runtime"


@dataclass(frozen=True)
class Split:
    """The options of a Config: those that its database is loaded with, and the others."""

    layout: Config
    runtime: Config


def split(config: Config, engine: str) -> Split:
    """`config` of an engine that has a catalogue, split. Raises InputError for another engine.

    With the layout go those runtime options without which the engine would refuse or change it:
    the ones that a constraint of the catalogue ties to options of the layout, directly or through
    others (RocksDB's vector memtable needs `allow_concurrent_memtable_write` off).
    """
    catalogue = option_catalogue(engine)
    given = config.options.keys()
    layout = {n for n in given if n not in catalogue or catalogue[n].effect == "layout"}
    wider = layout | _tied(layout, engine) & given
    while wider != layout:
        layout, wider = wider, wider | _tied(wider, engine) & given
    return Split(
        Config({name: config.options[name] for name in layout}, LAYOUT_LABEL),
        Config({name: config.options[name] for name in given - layout}, RUNTIME_LABEL),
    )


def _tied(names: Set[str], engine: str) -> set[str]:
    return set(chain.from_iterable(tie for tie in _ties(engine) if not tie.isdisjoint(names)))


@functools.cache
def _ties(engine: str) -> tuple[frozenset[str], ...]:
    """The option names of each constraint of the catalogue, of whatever version of the engine."""
    ties = set()
    for info in option_catalogue(engine).values():
        older = chain.from_iterable(texts for _, texts in info.older_constraint)
        for text in (*info.constraint, *older):
            ties.add(make_expression(text, "option catalogue", info.name).names)
    return tuple(ties)
