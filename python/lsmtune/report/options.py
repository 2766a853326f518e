"""What `lsmtune options` shows: values, ranges and conditions in words, and tables of options."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence

from lsmtune.engines.catalogue import OptionInfo
from lsmtune.engines.ready import Preset, ReadySpace
from lsmtune.engines.safety import UnsafeOption, unsafe_options
from lsmtune.model.config import OptionValue, option_text
from lsmtune.model.workload import Durability
from lsmtune.report.document import Block, Facts, Paragraph, Table, words
from lsmtune.space.parameter import Parameter
from lsmtune.space.range import Range
from lsmtune.units import exact_bytes

NOTHING = "-"


def value_text(value: OptionValue | None, unit: str) -> str:
    """`value` as people read it, exactly: `64MiB` only where it is a whole number of MiB."""
    if value is None:
        return NOTHING
    if isinstance(value, bool | str):
        return option_text(value)
    if unit.startswith("bytes"):
        size = exact_bytes(value) or (f"{value:,}B" if value else "0")
        return size + unit.removeprefix("bytes")
    number = f"{value:,}" if isinstance(value, int) else option_text(value)
    return f"{number} {unit}" if unit else number


def range_text(info: OptionInfo) -> str:
    """What a search tries: `64KiB to 512MiB, log, steps of 64KiB`, or the choices."""
    if info.low is None or info.high is None:
        return " | ".join(option_text(choice) for choice in info.choices) or NOTHING
    numbers = Range(info.low, info.high, info.log, info.step)
    return _range(numbers, info.unit, [value for value, _ in info.specials])


def parameter_range(parameter: Parameter) -> str:
    """The same for a parameter of a ready space."""
    if parameter.numbers is None:
        return " | ".join(option_text(choice) for choice in parameter.choices)
    specials = [special.value for special in parameter.specials]
    return _range(parameter.numbers, parameter.unit, specials)


def _range(numbers: Range, unit: str, specials: Sequence[float]) -> str:
    # The unit of the lower end is left out where the upper end states it.
    bare = unit if unit.startswith("bytes") else ""
    parts = [f"{value_text(numbers.low, bare)} to {value_text(numbers.high, unit)}"]
    parts += ["log"] if numbers.log else []
    parts += [] if numbers.step is None else [f"steps of {value_text(numbers.step, unit)}"]
    return ", ".join([*parts, *(f"or {value_text(special, '')}" for special in specials)])


def condition_text(name: str, values: tuple[OptionValue, ...]) -> str:
    """`compaction_style is kCompactionStyleUniversal`."""
    return f"{name} is {' or '.join(option_text(value) for value in values)}"


# --- What `lsmtune options` shows to people: tables of options, ready spaces and presets, or one

_EFFECTS = {
    "layout": "layout: changes what is on disk",
    "runtime": "runtime: changes nothing on disk",
}
_VERIFY = "lsmtune verify --workload fillrandom --baseline default"


def options_table(infos: Iterable[OptionInfo]) -> Table:
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
    return Table(words("name", "default", "range", "effect", "risk"), rows)


def option_view(engine: str, info: OptionInfo, used: Mapping[str, Sequence[str]]) -> list[Block]:
    """All that is known of one option; `used` is which ready spaces and presets have it."""
    default = value_text(info.default, info.unit)
    if info.unit.startswith("bytes") and isinstance(info.default, int) and "i" in default:
        default = f"{default} ({info.default})"  # also as the number that an option file holds
    since, until = info.since, info.until
    versions = f"up to {until}" if until else "all that the catalogue covers"
    if since:
        versions = f"{since} to {until}" if until else f"since {since}"
    unsafe = unsafe_options(engine).get(info.name)
    unsafe_facts = [] if unsafe is None else [("unsafe", _unsafe_text(unsafe, info))]
    facts = [
        ("default", default),
        *[(f"  up to {last}", value_text(old, info.unit)) for last, old in info.older_defaults],
        ("search range", range_text(info)),
        *[("", f"{value} means {meaning}") for value, meaning in info.specials],
        *[("", f"{choice} since {version}") for choice, version in info.choices_since.items()],
        *[("only when", condition_text(*condition)) for condition in info.condition.items()],
        *[("must hold", text) for text in info.constraint],
        ("effect", _EFFECTS[info.effect]),
        ("while open", _changed(info)),
        ("scales with", info.scales_with or NOTHING),
        ("risk", ", ".join(info.risk) or NOTHING),
        *unsafe_facts,
        ("versions", versions),
        ("source", info.source),
        *[(label, ", ".join(names)) for label, names in used.items() if names],
    ]
    about = f"{engine}, {info.scope.replace('_', ' ')}, {info.type}"
    return _view(info.name, about, info.trade_off, facts)


def _changed(info: OptionInfo) -> str:
    """Whether an open database can change the option."""
    if not info.mutable:
        return "cannot be changed"
    since = f" since {info.mutable_since}" if info.mutable_since else ""
    return f"can be changed{since} (SetOptions)"


def spaces_table(spaces: Iterable[ReadySpace]) -> Table:
    """A line per ready space."""
    rows = [(space.name, len(space.parameters), space.summary) for space in spaces]
    return Table(words("name", "parameters", "what it is for"), rows)


def space_view(space: ReadySpace) -> list[Block]:
    """The parameters of one ready space, and what comes with them."""
    rows: list[tuple[str, ...]] = []
    for parameter in space.parameters:
        default = value_text(parameter.default, parameter.unit)
        conditions = [condition_text(each.name, each.values) for each in parameter.conditions]
        when = " and ".join(conditions) or NOTHING
        rows.append((parameter.name, default, parameter_range(parameter), when))
    columns = words("name", "default", "range", "only when")
    if not any(parameter.conditions for parameter in space.parameters):
        columns, rows = columns[:-1], [row[:-1] for row in rows]
    table = Table(columns, rows)
    facts = [
        *[("constraint", text) for text in space.constraints],
        *[("fixed", f"{name}={value_text(value, '')}") for name, value in space.fixed.items()],
        ("in a study", f"space: {space.name}"),
    ]
    if space.unsafe:
        facts.append(("", f"allow_unsafe: [{', '.join(space.unsafe)}]"))
    about = f"{space.engine}, {len(space.parameters)} parameters"
    return _view(space.name, about, space.summary, facts, table)


def presets_table(presets: Iterable[Preset]) -> Table:
    """A line per preset."""
    rows = [(preset.name, len(preset.options), preset.summary) for preset in presets]
    return Table(words("name", "options", "what it is"), rows)


def preset_view(preset: Preset, infos: Mapping[str, OptionInfo]) -> list[Block]:
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
    tables = [Table(words("option", "value", "default"), rows)] if rows else []
    return _view(preset.name, preset.engine, preset.summary, facts, *tables)


def _unsafe_text(unsafe: UnsafeOption, info: OptionInfo) -> str:
    """Which values a study has to allow, and why."""
    known = [value_text(value, "") for value in info.choices if unsafe.is_unsafe(value)]
    more = [f"{value_text(unsafe.at_least, '')} and more"] if math.isfinite(unsafe.at_least) else []
    values = " or ".join([*(known or sorted(unsafe.values)), *more])
    classes = " or ".join(sorted(durability.value for durability in unsafe.under))
    under = "" if set(unsafe.under) == set(Durability) else f" with durability {classes}"
    return f"{values}{under}: {unsafe.reason}; refused unless allow_unsafe names the option"


def _view(
    name: str, about: str, summary: str, facts: Sequence[tuple[str, str]], *tables: Table
) -> list[Block]:
    """A title, a sentence, perhaps a table, and facts."""
    title = Paragraph(f"{name}  ({about})", "title")
    between = [block for table in tables for block in (table, Paragraph(""))]
    return [title, Paragraph(summary), Paragraph(""), *between, Facts(facts)]
