"""What a workload asks of its engine: options for it, and things that not every engine can do."""

from __future__ import annotations

from collections.abc import Mapping

from lsmtune.errors import InputError
from lsmtune.model.config import Config, OptionValue, option_text
from lsmtune.model.workload import PageCache, Workload
from lsmtune.space.parameter import same_value

# rocksdb/options.h: both are off by default. LevelDB maps its tables and has nothing of the kind.
_DIRECT: Mapping[str, Mapping[str, OptionValue]] = {
    "rocksdb": {"use_direct_reads": True, "use_direct_io_for_flush_and_compaction": True},
}


def with_page_cache(
    config: Config, engine_name: str, page_cache: PageCache, source: str, field: str = "page_cache"
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
        if not same_value(given, value):
            allowed = f"{option_text(value)}, because page_cache is direct"
            raise InputError(source, name, found=option_text(given), allowed=allowed)
    return Config({**config.options, **wanted}, config.label)


# --- merges and column families

_MERGE_OPERATOR = "merge_operator"
# The operand of a merge is a whole new value, for RocksDB's PutOperator. An OPTIONS file has its
# last name (utilities/merge_operators/put.cc, put_operators.h).
_PUT = "put"
_PUTS = (_PUT, "put_v1", "PutOperator")


def merges(workload: Workload) -> bool:
    """Whether any phase of `workload`, or what works beside it, merges."""
    return any("merge" in phase.doing for phase in workload.phases)


def check_workload(workload: Workload, engine_name: str, source: str, field: str = "") -> None:
    """Raises InputError, naming `source` and `field`, for what `engine_name` cannot do at all."""
    if engine_name != "leveldb":  # whose C interface has neither (leveldb/c.h)
        return
    if merges(workload):
        why = f"{workload.name} merges, which {engine_name} cannot"
        raise InputError(source, field, why=why, allowed="rocksdb")
    if workload.column_families > 1:
        why = f"{engine_name} has no column families"
        found = workload.column_families
        raise InputError(source, field or "column_families", found=found, why=why, allowed="1")


def with_merge_operator(
    config: Config, engine_name: str, workload: Workload, source: str
) -> Config:
    """`config` with the merge operator that the merges of `workload` are made for.

    Raises InputError for another operator: it would take the operands for something else.
    """
    if engine_name != "rocksdb" or not merges(workload):
        return config
    given = config.options.get(_MERGE_OPERATOR, _PUT)
    if option_text(given) not in _PUTS:
        allowed = f"{_PUT}: the workload's merges are whole new values"
        raise InputError(source, _MERGE_OPERATOR, found=option_text(given), allowed=allowed)
    return Config({**config.options, _MERGE_OPERATOR: given}, config.label)
