"""What `lsmtune options` shows: values, ranges and conditions in words, and tables of options."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from lsmtune.engines.catalogue import OptionInfo
from lsmtune.engines.ready import Preset, ReadySpace
from lsmtune.engines.safety import UNSAFE_OPTIONS, UnsafeOption
from lsmtune.model.config import OptionValue, option_text
from lsmtune.model.workload import Durability
from lsmtune.report.document import Table as ReportTable
from lsmtune.report.document import words
from lsmtune.report.terminal import terminal_table
from lsmtune.space.parameter import Parameter
from lsmtune.units import BYTES_PER_UNIT

NOTHING = "-"
_BINARY = ("TiB", "GiB", "MiB", "KiB")


def value_text(value: OptionValue | None, unit: str) -> str:
    """`value` as people read it, exactly: `64MiB` only where it is a whole number of MiB."""
    if value is None:
        return NOTHING
    if isinstance(value, bool | str):
        return option_text(value)
    if unit.startswith("bytes"):
        return size_text(value) + unit.removeprefix("bytes")
    number = f"{value:,}" if isinstance(value, int) else option_text(value)
    return f"{number} {unit}" if unit else number


def size_text(size: float) -> str:
    """A number of bytes in the largest binary unit that it is a whole multiple of."""
    if size == 0:
        return "0"
    for unit in _BINARY:
        if size % BYTES_PER_UNIT[unit] == 0:
            return f"{size // BYTES_PER_UNIT[unit]}{unit}"
    return f"{size:,}B"


def default_text(info: OptionInfo) -> str:
    """The engine's default; a size also as the number that an option file holds."""
    text = value_text(info.default, info.unit)
    if info.unit.startswith("bytes") and isinstance(info.default, int) and "i" in text:
        return f"{text} ({info.default})"
    return text


def range_text(info: OptionInfo) -> str:
    """What a search tries: `64KiB to 512MiB, log, steps of 64KiB`, or the choices."""
    if info.low is None or info.high is None:
        return " | ".join(option_text(choice) for choice in info.choices) or NOTHING
    parts = [f"{value_text(info.low, _bare(info))} to {value_text(info.high, info.unit)}"]
    if info.log:
        parts.append("log")
    if info.step is not None:
        parts.append(f"steps of {value_text(info.step, info.unit)}")
    parts += [f"or {value_text(value, '')}" for value, _ in info.specials]
    return ", ".join(parts)


def _bare(info: OptionInfo) -> str:
    """The unit of a range's lower end: left out where the upper end states it."""
    return info.unit if info.unit.startswith("bytes") else ""


def parameter_range(parameter: Parameter) -> str:
    """The same for a parameter of a ready space."""
    numbers = parameter.numbers
    if numbers is None:
        return " | ".join(option_text(choice) for choice in parameter.choices)
    parts = [f"{value_text(n, parameter.unit)}" for n in (numbers.low, numbers.high)]
    shown = [" to ".join(parts)]
    if numbers.log:
        shown.append("log")
    if numbers.step is not None:
        shown.append(f"steps of {value_text(numbers.step, parameter.unit)}")
    shown += [f"or {special.value}" for special in parameter.specials]
    return ", ".join(shown)


def condition_text(name: str, values: tuple[OptionValue, ...]) -> str:
    """`compaction_style is kCompactionStyleUniversal`."""
    return f"{name} is {' or '.join(option_text(value) for value in values)}"


def versions_text(info: OptionInfo) -> str:
    """The versions with the option, in words."""
    if info.since and info.until:
        return f"{info.since} to {info.until}"
    if info.since:
        return f"since {info.since}"
    return f"up to {info.until}" if info.until else "all that the catalogue covers"


# --- What `lsmtune options` shows to people: tables of options, ready spaces and presets, or one

_EFFECTS = {
    "layout": "layout: changes what is on disk",
    "runtime": "runtime: changes nothing on disk",
}
_VERIFY = "lsmtune verify --workload fillrandom --baseline default"


def options_table(infos: Iterable[OptionInfo]) -> RenderableType:
    """A line per option."""
    rows = [
        (
            info.name,
            value_text(info.default, info.unit),
            range_text(info),
            info.effect,
            " ".join(info.risk) or NOTHING,
        )
        for info in infos
    ]
    return _table(("name", "default", "range", "effect", "risk"), rows)


def option_view(engine: str, info: OptionInfo, used: Mapping[str, Sequence[str]]) -> RenderableType:
    """All that is known of one option; `used` is which ready spaces and presets have it."""
    facts = [
        ("default", default_text(info)),
        *[(f"  up to {last}", value_text(old, info.unit)) for last, old in info.older_defaults],
        ("search range", range_text(info)),
        *[("", f"{value} means {meaning}") for value, meaning in info.specials],
        *[("", f"{choice} since {version}") for choice, version in info.choices_since.items()],
        *[("only when", condition_text(*condition)) for condition in info.condition.items()],
        *[("must hold", text) for text in info.constraint],
        ("effect", _EFFECTS[info.effect]),
        ("while open", "can be changed (SetOptions)" if info.mutable else "cannot be changed"),
        ("scales with", info.scales_with or NOTHING),
        ("risk", ", ".join(info.risk) or NOTHING),
        *[("unsafe", _unsafe_text(unsafe, info)) for unsafe in _unsafe(engine, info.name)],
        ("versions", versions_text(info)),
        ("source", info.source),
        *[(label, ", ".join(names)) for label, names in used.items() if names],
    ]
    about = f"{engine}, {info.scope.replace('_', ' ')}, {info.type}"
    return Group(_title(info.name, about), Text(info.trade_off), Text(), _facts(facts))


def spaces_table(spaces: Iterable[ReadySpace]) -> RenderableType:
    """A line per ready space."""
    rows = [(space.name, len(space.parameters), space.summary) for space in spaces]
    return _table(("name", "parameters", "what it is for"), rows)


def space_view(space: ReadySpace) -> RenderableType:
    """The parameters of one ready space, and what comes with them."""
    conditional = any(parameter.conditions for parameter in space.parameters)
    rows = [
        (
            parameter.name,
            value_text(parameter.default, parameter.unit),
            parameter_range(parameter),
            *([_when(parameter)] if conditional else []),
        )
        for parameter in space.parameters
    ]
    table = _table(("name", "default", "range", *(["only when"] if conditional else [])), rows)
    facts = [
        *[("constraint", text) for text in space.constraints],
        *[("fixed", f"{name}={value_text(value, '')}") for name, value in space.fixed.items()],
        ("in a study", f"space: {space.name}"),
    ]
    if space.unsafe:
        facts.append(("", f"allow_unsafe: [{', '.join(space.unsafe)}]"))
    about = f"{space.engine}, {len(space.parameters)} parameters"
    title = _title(space.name, about)
    return Group(title, Text(space.summary), Text(), table, Text(), _facts(facts))


def presets_table(presets: Iterable[Preset]) -> RenderableType:
    """A line per preset."""
    rows = [(preset.name, len(preset.options), preset.summary) for preset in presets]
    return _table(("name", "options", "what it is"), rows)


def preset_view(preset: Preset, infos: Mapping[str, OptionInfo]) -> RenderableType:
    """The options of one preset beside the engine's defaults, and its notes."""
    rows = []
    for name, value in preset.options.items():
        unit = infos[name].unit if name in infos else ""
        default = value_text(infos[name].default, unit) if name in infos else NOTHING
        rows.append((name, value_text(value, unit), default))
    facts = [
        *[("note", note) for note in preset.notes],
        ("source", preset.source),
        ("against default", f"{_VERIFY} --engine {preset.engine} --candidate {preset.name}"),
    ]
    parts: list[RenderableType] = [_title(preset.name, preset.engine), Text(preset.summary), Text()]
    if preset.options:
        parts += [_table(("option", "value", "default"), rows), Text()]
    return Group(*parts, _facts(facts))


def _when(parameter: Parameter) -> str:
    conditions = [condition_text(c.name, c.values) for c in parameter.conditions]
    return " and ".join(conditions) or NOTHING


def _unsafe(engine: str, name: str) -> list[UnsafeOption]:
    return [u for u in UNSAFE_OPTIONS if (u.engine, u.option) == (engine, name)]


def _unsafe_text(unsafe: UnsafeOption, info: OptionInfo) -> str:
    """Which values a study has to allow, and why."""
    known = [value_text(value, "") for value in unsafe.unsafe_values(info.choices)]
    values = " or ".join(known or sorted(unsafe.values))
    classes = " or ".join(sorted(durability.value for durability in unsafe.under))
    under = "" if unsafe.under == frozenset(Durability) else f" with durability {classes}"
    return f"{values}{under}: {unsafe.reason}; refused unless allow_unsafe names the option"


def _table(columns: Iterable[str], rows: Sequence[Sequence[str | int]]) -> RenderableType:
    return terminal_table(ReportTable(words(*columns), rows))


def _title(name: str, about: str) -> Text:
    return Text.assemble((name, "bold"), f"  ({about})")


def _facts(facts: Sequence[tuple[str, str]]) -> RenderableType:
    table = Table(box=None, pad_edge=False, show_header=False)
    table.add_column(style="dim", no_wrap=True)
    table.add_column(overflow="fold")
    previous = ""
    for label, text in facts:
        # A label is said once for all the lines that belong to it.
        # As Text, since `[a, b]` in a plain cell would be markup.
        table.add_row(Text("" if label == previous else label), Text(text))
        previous = label
    return Padding(table, (0, 0, 0, 2))
