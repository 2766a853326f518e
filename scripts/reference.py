"""Writes the pages of the reference for the site, from the code: `reference.py FOLDER`.

Commands are in the words of their `--help`, fields of a study file in those of its JSON Schema,
options in those of the catalogues, metrics in those of their registry. `make docs` calls it; what
it writes is not kept.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import typer
from typer.cli import get_docs_for_click

from lsmtune.cli.commands import COMMANDS, load_command
from lsmtune.cli.main import PROGRAM
from lsmtune.engines.catalogue import OptionInfo, option_catalogue
from lsmtune.engines.library import ENGINE_KINDS
from lsmtune.model.files import json_schema
from lsmtune.model.metrics import REGISTRY, Level, unit_of
from lsmtune.report.options import range_text, value_text
from lsmtune.study.models import StudyModel

MADE = "*Made from the code when this site was built.*"


def commands_page() -> str:
    """Every command with its arguments, options, examples and notes."""
    parts = [f"# Commands\n\n{MADE}"]
    for name in COMMANDS:
        command = load_command(name)
        context = typer.Context(command, info_name=name)
        text = get_docs_for_click(
            obj=command, ctx=context, name=name, indent=1, call_prefix=PROGRAM
        )
        parts.append(text.strip())
    # Examples stand in the help as paragraphs.
    return re.sub(rf"^({PROGRAM} .*)$", r"    \1", "\n\n".join(parts), flags=re.M) + "\n"


def study_file_page() -> str:
    """The fields of a study file, and of every mapping in it, a section each."""
    schema = json_schema(StudyModel)
    intro = "Relations between fields are checked when the file is read. What they mean together: "
    intro += "[searching](../searching.md), which has the settings of samplers and pruners, too; "
    intro += "[workloads](../workloads.md) for `workload`."
    parts = [f"# The study file\n\n{MADE}\n\n{intro}", _fields(schema)]
    for name, mapping in _mappings(schema):
        about = " ".join(mapping.get("description", "").split("\n\n")[0].split())
        parts.append(f"## `{name}`\n\n{about}\n\n{_fields(mapping)}")
    return "\n\n".join(parts) + "\n"


def _mappings(schema: Mapping[str, Any]) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """The mappings of a study file by dotted name, each once, in the order of the fields."""
    waiting = list(schema["properties"].items())
    seen: set[str] = set()
    while waiting:
        name, field = waiting.pop(0)
        inner: list[tuple[str, Any]] = []
        for reference in re.findall(r'"#/\$defs/(\w+)"', json.dumps(field)):
            mapping = schema["$defs"][reference]
            if reference in seen:
                continue
            seen.add(reference)
            kind = mapping.get("properties", {}).get("type", {}).get("const")
            of = f"{name}.PARAMETER" if kind else name
            # Also of a form beside others: `space` may be a name, or a mapping.
            forms = [form for form in (mapping, *mapping.get("anyOf", ())) if "properties" in form]
            for form in forms:
                yield f"{of}: {{type: {kind}}}" if kind else of, mapping | form
                inner += [(f"{of}.{n}", f) for n, f in form["properties"].items()]
            if mapping not in forms:
                inner.append((name, mapping))
        waiting = inner + waiting


def _fields(mapping: Mapping[str, Any]) -> str:
    required = mapping.get("required", ())
    rows = []
    for name, field in mapping["properties"].items():
        default = field.get("default")
        # The default of a mapping is that of its fields.
        shown = "" if default is None or "$ref" in field else json.dumps(default)
        shown = "required" if name in required else shown
        rows.append((f"`{name}`", shown, field.get("description", "")))
    return table(("field", "default", "what"), rows)


def options_page() -> str:
    """The options of every engine that has a catalogue, a section each."""
    intro = f"`{PROGRAM} options ENGINE NAME` says more of one: conditions, special values, sources"
    parts = [f"# Options\n\n{MADE}\n\n{intro}."]
    for engine in ENGINE_KINDS:
        parts += [f"## {engine}", *map(_option, option_catalogue(engine).values())]
    return "\n\n".join(parts) + "\n"


def _option(info: OptionInfo) -> str:
    changes = f"an open database can change it since {info.mutable_since}"
    if not info.mutable_since:
        changes = "an open database can change it" if info.mutable else "set when opened"
    facts = {
        "type": info.type,
        "default": value_text(info.default, info.unit),
        "searched": range_text(info),
        "changes": changes,
        "risk": ", ".join(info.risk),
        "since": info.since,
        "until": info.until,
    }
    shown = [f"- {name}: {_escaped(value)}" for name, value in facts.items() if value]
    return f"### `{info.name}`\n\n{info.trade_off}\n\n" + "\n".join(shown)


def _escaped(text: str) -> str:
    return re.sub(r"([*_<|])", r"\\\1", text)


def metrics_page() -> str:
    """The metrics by what they are of."""
    about = {
        Level.PHASE: "Of a phase",
        Level.LATENCY: "Latencies of a phase; with `TYPE.` before the name, of one operation type",
        Level.RUN: "Of all measure phases of a run together",
        Level.COUNT: "Counts: what a phase did, and nothing to make better",
        Level.COMPUTED: "Computed by a sweep, from metrics of a phase",
    }
    head = ("metric", "unit", "as an objective", "what")
    parts = [f"# Metrics\n\n{MADE} [How they are measured](../measuring.md)."]
    for level, heading in about.items():
        rows = [
            (
                f"`{m.name}`",
                unit_of(m.name),
                "maximize" if m.higher_is_better else "minimize",
                m.says,
            )
            for m in REGISTRY
            if m.level is level
        ]
        parts.append(f"## {heading}\n\n{table(head, rows)}")
    return "\n\n".join(parts) + "\n"


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table in Markdown."""
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(
        f"| {' | '.join(str(cell).replace('|', '&#124;') for cell in line)} |" for line in lines
    )


PAGES = {
    "commands.md": commands_page,
    "study-file.md": study_file_page,
    "options.md": options_page,
    "metrics.md": metrics_page,
}


def write_pages(folder: Path) -> None:
    """Writes every page into `folder`."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, page in PAGES.items():
        (folder / name).write_text(page())


if __name__ == "__main__":
    write_pages(Path(sys.argv[1]))
