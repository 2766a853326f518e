"""How old a golden database may become before a run on a copy of it is another run.

RocksDB compacts files that have reached an age (`ttl`, `periodic_compaction_seconds`;
rocksdb/advanced_options.h). In a copy of an old database all files would have reached it at once,
and the run would rewrite the whole tree, which none on a freshly loaded database does.
"""

from __future__ import annotations

import math

from lsmtune.records.config import Config, OptionValue

_AGE_OPTIONS = ("ttl", "periodic_compaction_seconds")
# What block-based tables get where neither option is set (rocksdb/advanced_options.h).
_TTL_DEFAULT_S = 30 * 24 * 3600.0
# Old enough for a long study, and far from the age even for a run of many hours.
_SHARE = 0.25


def age_max_s(config: Config, engine: str) -> float:
    """The greatest age, in seconds, of a golden database for runs with `config`."""
    if engine != "rocksdb":
        return math.inf
    ages_s = [_seconds(config.options.get(name, 0)) for name in _AGE_OPTIONS]
    return _SHARE * min([age_s for age_s in ages_s if age_s > 0] + [_TTL_DEFAULT_S])


def _seconds(value: OptionValue) -> float:
    """The value of an option in seconds; 0 when it is off, or no number, which the engine says."""
    return float(value) if isinstance(value, int | float) else 0.0
