"""What makes the runs of a folder comparable, and what of it changed."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence

from lsmtune.rounds.cell import Cell
from lsmtune.storage.codec import encode

_CELLS = "cells"
_PARTS = "parts"
_SHOWN = 3

PlanFacts = Mapping[str, Mapping[str, Mapping[str, str]]]


def plan_facts(
    cells: Sequence[Cell], parts: Mapping[str, object]
) -> dict[str, dict[str, dict[str, str]]]:
    """Digests of what each cell consists of, and of the `parts` that all of them share.

    The number of rounds is no part of a plan: it may be raised.
    """
    return {
        _CELLS: {cell.name: _cell_facts(cell) for cell in cells},
        _PARTS: {"all": {name: _digest(part) for name, part in parts.items()}},
    }


def changes(stored: PlanFacts, now: PlanFacts) -> list[str]:
    """What differs, in words; empty where nothing does."""
    before, after = stored[_CELLS], now[_CELLS]
    lines = _named("cells that are new", [name for name in after if name not in before])
    lines += _named("cells that are gone", [name for name in before if name not in after])
    for name in after:
        if name in before:
            lines += [f"{what} of {name}" for what in _different(before[name], after[name])]
    shared = _different(stored[_PARTS]["all"], now[_PARTS]["all"])
    lines = [*shared, *lines]
    more = len(lines) - _SHOWN
    return lines if more <= 0 else [*lines[:_SHOWN], f"{more} more"]


def _cell_facts(cell: Cell) -> dict[str, str]:
    engine = cell.engine
    return {
        # A library may be moved; what it is, its version and build say.
        "engine": _digest([engine.name, engine.version, engine.build]),
        "options": _digest(cell.config.engine_options()),
        "workload": _digest(cell.workload),
    }


def _different(before: Mapping[str, str], after: Mapping[str, str]) -> list[str]:
    return [name for name in sorted({*before, *after}) if before.get(name) != after.get(name)]


def _named(what: str, names: Sequence[str]) -> list[str]:
    more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
    return [f"{what} ({', '.join(names[:_SHOWN])}{more})"] if names else []


def _digest(part: object) -> str:
    text = json.dumps(encode(part), sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()
