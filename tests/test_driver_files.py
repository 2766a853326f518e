"""The files of the driver import each other one way, and none is too long to be read."""

import re
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

SOURCES = Path(__file__).resolve().parents[1] / "driver" / "src"
DRIVER = {str(path.relative_to(SOURCES)): path.read_text() for path in SOURCES.rglob("*.rs")}

_IGNORED = re.compile(r'#\[cfg\(test\)\]\s*mod .*|//[^\n]*|"(?:\\.|[^"\\])*"', re.DOTALL)
_BRACES = re.compile(r"((?:\w+::)+)\{([^{}]*)\}")
_EXPORT = re.compile(r"pub(?:\([^)]*\))? use ([^;]+);")
_PATH = re.compile(r"\b(?:\w+::)+\w+")


def code_of(text: str) -> str:
    """The code of a file without its tests; `use a::{b, c::d};` becomes `use a::b,a::c::d;`."""
    code = _IGNORED.sub("", text)
    while match := _BRACES.search(code):
        paths = [match[1] + part.strip() for part in match[2].split(",") if part.strip()]
        code = code.replace(match[0], ",".join(paths))
    return code


def circle(files: dict[str, str]) -> tuple[str, ...]:
    """The modules of a circle among `files`, if there is one.

    A module and those around it are one unit: what its parents define, it may use.
    """
    modules = {}
    for path, text in files.items():
        names = [name for name in Path(path).with_suffix("").parts if name not in {"mod", "lib"}]
        modules["crate", *names] = code_of(text)

    def paths(module: tuple[str, ...], code: str) -> list[tuple[str, ...]]:
        """The paths in `code` that begin in this crate, from its root on."""
        inside = []
        for names in (path.split("::") for path in _PATH.findall(code)):
            ups = [name for name in names if name in {"self", "super"}]
            if names[0] == "crate":
                inside.append(tuple(names))
            elif ups or (*module, names[0]) in modules:
                inside.append((*module[: len(module) - ups.count("super")], *names[len(ups) :]))
        return inside

    exports: dict[tuple[str, ...], tuple[str, ...]] = {}
    for module, code in modules.items():
        exported = paths(module, ";".join(_EXPORT.findall(code)))
        exports |= {(*module, path[-1]): path for path in exported}

    def home(path: tuple[str, ...]) -> tuple[str, ...]:
        """The module that defines what `path` names, whichever module exports it too."""
        module = next(path[:n] for n in range(len(path), 0, -1) if path[:n] in modules)
        name = path[: len(module) + 1]
        return home(exports[name]) if name != module and name in exports else module

    graph = {}
    for module, code in modules.items():
        homes = {home(path) for path in paths(module, _EXPORT.sub("", code))}
        graph[module] = {other for other in homes if module[: len(other)] != other}
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        return tuple("::".join(module) for module in error.args[1])
    return ()


def test_the_files_of_the_driver_import_each_other_one_way() -> None:
    assert circle(DRIVER) == ()


@pytest.mark.parametrize(
    "code", ["use super::{a::A, Shared};", "use crate::room::A;", "fn f() { super::a::g() }"]
)
def test_the_check_sees_a_circle_however_it_is_written(code: str) -> None:
    room = {"room/mod.rs": "mod a;\npub use a::A;", "room/a.rs": "use super::b;"}
    assert circle({"lib.rs": "", **room, "room/b.rs": code})
    assert not circle({"lib.rs": "", **room, "room/b.rs": "use super::Shared;\n// " + code})


def test_no_file_of_the_driver_is_longer_than_500_lines() -> None:
    assert [path for path, text in DRIVER.items() if text.count("\n") > 500] == []
