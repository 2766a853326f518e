"""The options by which an engine reads and writes past the kernel's page cache."""

from __future__ import annotations

from collections.abc import Mapping

from lsmtune.errors import InputError
from lsmtune.records.config import Config, OptionValue, option_text
from lsmtune.records.workload import PageCache

# rocksdb/options.h: both are off by default. LevelDB maps its tables and has nothing of the kind.
_DIRECT: Mapping[str, Mapping[str, OptionValue]] = {
    "rocksdb": {"use_direct_reads": True, "use_direct_io_for_flush_and_compaction": True},
}


def with_page_cache(
    config: Config,
    engine_name: str,
    page_cache: PageCache,
    source: str,
    field: str = "page_cache",
) -> Config:
    """`config` with the options that `page_cache` stands for, which a result then carries too.

    Raises InputError naming `source` and `field` for `direct` on an engine that cannot do it, and
    for an option of `config` that says the opposite.
    """
    if page_cache is not PageCache.DIRECT:
        return config
    wanted = _DIRECT.get(engine_name)
    if wanted is None:
        allowed = f"warm, cold; {engine_name} has no direct I/O"
        raise InputError(source, field, found=page_cache.value, allowed=allowed)
    for name, value in wanted.items():
        given = config.options.get(name, value)
        if option_text(given) != option_text(value):
            allowed = f"{option_text(value)}, because page_cache is direct"
            raise InputError(source, name, found=option_text(given), allowed=allowed)
    return Config({**config.options, **wanted}, config.label)
