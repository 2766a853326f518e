"""The engines that are loaded from a library, and what tells their libraries apart."""

from __future__ import annotations

from dataclasses import dataclass

from lsmtune.errors import InputError, nearest_name


@dataclass(frozen=True)
class EngineKind:
    """What lsmtune must know of an engine to recognise its library.

    `entry_point` is a C function that every version exports; `namespace` is the C++ namespace
    of its classes; `soname_stem` is the part of the file name before `.so`.
    """

    name: str
    entry_point: str
    namespace: str
    soname_stem: str


ENGINE_KINDS = {
    kind.name: kind
    for kind in (
        EngineKind("rocksdb", "rocksdb_open", "rocksdb", "librocksdb"),
        EngineKind("leveldb", "leveldb_open", "leveldb", "libleveldb"),
    )
}

# Engines that are part of the driver: nothing to install, nothing to register.
BUILT_IN_ENGINES = ("memory", "noop")

ENGINE_NAMES = (*ENGINE_KINDS, *BUILT_IN_ENGINES)

# `noop` stores nothing, so a study of it would compare nothing.
STUDY_ENGINES = tuple(name for name in ENGINE_NAMES if name != "noop")


def engine_kind(name: str, source: str = "engine") -> EngineKind:
    """The engine called `name`. Raises InputError, naming `source`, for any other name."""
    kind = ENGINE_KINDS.get(name)
    if kind is None:
        allowed = ", ".join(ENGINE_KINDS)
        nearest = nearest_name(name, ENGINE_KINDS)
        raise InputError(source, found=name, allowed=allowed, nearest=nearest)
    return kind
