"""A study file's text from its fields: in the usual order, sizes with units, a line each."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

from lsmtune.importers.names import known_options
from lsmtune.units import BYTES_PER_UNIT

_ORDER = (
    "version",
    "name",
    "engine",
    "runner",
    "workload",
    "objective",
    "baseline",
    "options",
    "start",
    "space",
    "sampler",
    "budget",
    "limits",
    "seed",
    "allow_unsafe",
)
# Fields whose names are options, so that a number may be a size.
_OF_OPTIONS = ("baseline", "options")
_SIZED = ("low", "high", "step", "default")
_LINE_MAX = 100
_PLAIN = re.compile(
    r"[A-Za-z_/][A-Za-z0-9_./-]*( [A-Za-z0-9_./-]+)*|([0-9.]+(ms|[hms]))+", re.ASCII
)
# Plain words that YAML, old or new, reads as something else than text.
_WORDS = frozenset(["true", "false", "yes", "no", "on", "off", "y", "n", "null", "none"])
_UNITS = ("TiB", "GiB", "MiB", "KiB")


def render_study(
    raw: Mapping[str, Any],
    comments: Mapping[str, str] | None = None,
    header: tuple[str, ...] = (),
) -> str:
    """The text of a study file whose fields are `raw`; it reads back as the same values.

    `comments` maps a dotted field (`space.name`, `workload`) to a line that stands above it;
    `header` are the lines of a comment at the top.
    """
    said = dict(comments or {})
    engine = str((raw.get("engine") or {}).get("name", ""))
    lines = [f"# {line}" for line in header]
    known = [name for name in _ORDER if name in raw]
    block = False
    for name in [*known, *(name for name in raw if name not in _ORDER)]:
        if name in said or isinstance(raw[name], Mapping | list) or block:
            lines.append("")
        block = isinstance(raw[name], Mapping | list)
        lines += _comment(said.get(name), "")
        lines += _field(name, raw[name], engine, said)
    return "\n".join(lines) + "\n"


def render_options(options: Mapping[str, Any], engine: str) -> str:
    """Options as a mapping, to stand under `baseline:` or `options:` of a study file."""
    sized = _sized_options(options, engine)
    return "".join(f"{name}: {_inline(value)}\n" for name, value in sized.items())


def _comment(text: str | None, indent: str) -> list[str]:
    return [] if text is None else [f"{indent}# {' '.join(text.split())}"]


def _field(name: str, value: Any, engine: str, comments: Mapping[str, str]) -> list[str]:
    if not isinstance(value, Mapping):
        return (
            [f"{name}: {_inline(value)}"]
            if not isinstance(value, list)
            else [f"{name}:", *_items(value)]
        )
    if not value:
        return [f"{name}: {{}}"]
    if name in _OF_OPTIONS:
        value = _sized_options(value, engine)
    if name == "space":
        value = {key: _sized(item) for key, item in value.items()}
    lines = [f"{name}:"]
    for key, item in value.items():
        lines += _comment(comments.get(f"{name}.{key}"), "  ")
        lines += list(_entry(key, item))
    return lines


def _entry(key: str, item: Any) -> Iterator[str]:
    line = f"  {_inline(key)}: {_inline(item)}"
    if len(line) <= _LINE_MAX or not isinstance(item, Mapping):
        yield line
        return
    yield f"  {_inline(key)}:"
    for inner, value in item.items():
        yield f"    {_inline(inner)}: {_inline(value)}"


def _items(value: list[Any]) -> list[str]:
    return [f"  - {_inline(item)}" for item in value]


def _inline(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{_inline(k)}: {_inline(v)}" for k, v in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(_inline, value)) + "]"
    if isinstance(value, str) and not isinstance(value, _Size):
        plain = _PLAIN.fullmatch(value) is not None and value.lower() not in _WORDS
        return value if plain else json.dumps(value, ensure_ascii=False)
    return str(value) if not isinstance(value, float) else repr(value)


class _Size(str):
    """A size with its unit, which needs no quotes."""


def _sized_options(options: Mapping[str, Any], engine: str) -> dict[str, Any]:
    known = known_options(engine) if engine in ("rocksdb", "leveldb") else {}
    return {
        name: _size(value) if name in known and known[name].in_bytes else value
        for name, value in options.items()
    }


def _sized(parameter: Any) -> Any:
    """A parameter of a size with its bounds as sizes; the unit then goes without saying."""
    if not isinstance(parameter, Mapping) or parameter.get("unit") != "bytes":
        return parameter
    sized = {k: _size(v) if k in _SIZED else v for k, v in parameter.items()}
    if any(isinstance(value, _Size) for value in sized.values()):
        del sized["unit"]
    return sized


def _size(value: Any) -> Any:
    """`value` in the largest unit of which it is a whole multiple."""
    if isinstance(value, bool) or not isinstance(value, int) or value < 1024:
        return value
    for unit in _UNITS:
        if value % BYTES_PER_UNIT[unit] == 0:
            return _Size(f"{value // BYTES_PER_UNIT[unit]}{unit}")
    return value
