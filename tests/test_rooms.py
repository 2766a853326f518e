"""Rooms import only from rooms above them, as the table in docs/architecture.md says."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = ROOT / "python" / "lsmtune"
ARCHITECTURE = ROOT / "docs" / "architecture.md"

_TABLE_LINE = re.compile(r"^\| *(\d*) *\| *`(\w+)(?:\.py|/)` *\|", re.M)


def rows_of(text: str) -> dict[str, int]:
    """Room -> row of the table in `text`; a line without a number continues the row above."""
    rows: dict[str, int] = {}
    row = 0
    for number, room in _TABLE_LINE.findall(text):
        row = int(number) if number else row
        rows[room] = row
    return rows


def room_of(path: Path) -> str:
    """The room that a file of the package belongs to."""
    relative = path.relative_to(PACKAGE)
    return relative.parts[0] if len(relative.parts) > 1 else relative.stem


def imported_rooms(source: str) -> set[str]:
    """Rooms that a module imports from, anywhere in it."""
    names: list[str] = []
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            names += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            module = "." * node.level + (node.module or "")
            if node.level:
                raise ValueError(f"relative import {module}: rooms are named in full")
            if module == "lsmtune":
                names += [f"lsmtune.{alias.name}" for alias in node.names]
            else:
                names.append(module)
    return {name.split(".")[1] for name in names if name.startswith("lsmtune.")}


def violations(room: str, source: str, rows: dict[str, int]) -> list[str]:
    """What `source`, a module of `room`, imports and may not."""
    return [
        f"{room} (row {rows[room]}) imports {other} (row {rows[other]})"
        for other in sorted(imported_rooms(source))
        if other != room and rows[other] >= rows[room]
    ]


MODULES = sorted(p for p in PACKAGE.rglob("*.py") if p != PACKAGE / "__init__.py")


def test_the_table_names_every_room_of_the_package() -> None:
    rows = rows_of(ARCHITECTURE.read_text())
    assert {room_of(path) for path in MODULES} <= set(rows)
    assert rows["errors"] == rows["units"] == 1
    assert rows["cli"] == max(rows.values())


@pytest.mark.parametrize("path", MODULES, ids=lambda p: str(p.relative_to(PACKAGE)))
def test_a_module_imports_only_from_rooms_above_its_own(path: Path) -> None:
    rows = rows_of(ARCHITECTURE.read_text())
    assert violations(room_of(path), path.read_text(), rows) == []


ROWS = {"errors": 1, "units": 1, "model": 2, "proof": 5, "study": 5}


@pytest.mark.parametrize(
    ("room", "source", "found"),
    [
        ("model", "from lsmtune.errors import InputError", 0),
        ("model", "from lsmtune.model.config import Config", 0),
        ("model", "import lsmtune.study.build", 1),
        ("errors", "from lsmtune import units", 1),
        ("study", "def late():\n    from lsmtune.proof import verdict", 1),
        ("study", "import os, json\nfrom lsmtune.model import config", 0),
    ],
)
def test_the_check_itself_sees_siblings_late_and_upward_imports(
    room: str, source: str, found: int
) -> None:
    assert len(violations(room, source, ROWS)) == found


def module_name(path: Path) -> str:
    """The dotted name of a file of the package."""
    parts = path.relative_to(PACKAGE.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def imported_at_once(body: list[ast.stmt]) -> Iterator[str]:
    """Modules, and names in them, that are imported when a module is: not those in functions."""
    for node in body:
        if isinstance(node, ast.ImportFrom) and node.module:
            yield node.module
            yield from (f"{node.module}.{alias.name}" for alias in node.names)
        elif isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.If) and "TYPE_CHECKING" not in ast.unparse(node.test):
            yield from imported_at_once(node.body)


def circle(sources: dict[str, str]) -> list[str]:
    """Modules that import each other in a circle, the first one twice; empty without one."""
    graph = {
        name: {other for other in imported_at_once(ast.parse(source).body) if other in sources}
        for name, source in sources.items()
    }
    for name, others in graph.items():
        others.discard(name)
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        return list(error.args[1])
    return []


def test_no_modules_import_each_other_in_a_circle() -> None:
    assert circle({module_name(path): path.read_text() for path in PACKAGE.rglob("*.py")}) == []


def test_the_check_itself_sees_a_circle() -> None:
    assert circle({"a": "from b import c", "b": "import a"}) in (["a", "b", "a"], ["b", "a", "b"])
    assert circle({"a": "from b import c", "b": "def late():\n    import a"}) == []
