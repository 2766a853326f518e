"""What packages add by entry points: found, refused in one line, and said by `lsmtune plugins`."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from importlib.metadata import EntryPoint
from pathlib import Path

import pytest

from lsmtune import plugins
from lsmtune.errors import InputError, by_name
from lsmtune.plugins import GROUPS, Plugins
from lsmtune.search.gp import KIND as GP
from lsmtune.search.sampler import SamplerKind

ANNEALING = SamplerKind("annealing", "cools down", (), False, GP.make)


Known = Callable[..., Plugins[SamplerKind]]


@pytest.fixture
def known(monkeypatch: pytest.MonkeyPatch) -> Known:
    """The sampler `gp`, and what these entry points add."""

    def with_entries(*entries: tuple[str, str]) -> Plugins[SamplerKind]:
        found = [EntryPoint(name, value, plugins.SAMPLERS) for name, value in entries]
        monkeypatch.setattr(plugins, "_installed", lambda _group: found)
        return Plugins(plugins.SAMPLERS, {"gp": GP})

    return with_entries


def problem(kinds: Plugins[SamplerKind], name: str) -> str:
    with pytest.raises(InputError) as caught:
        by_name(kinds, name, "s.yaml:3", "sampler.name")
    assert "\n" not in str(caught.value)
    return str(caught.value)


def test_a_package_adds_a_sampler_by_an_entry_point(known: Known) -> None:
    kinds = known(("annealing", f"{__name__}:ANNEALING"))
    assert [*kinds] == ["gp", "annealing"]  # after lsmtune's own
    assert by_name(kinds, "annealing", "s", "f") is ANNEALING
    assert kinds.origin("gp") is None
    assert str(kinds.origin("annealing")).startswith(f"{__name__}:ANNEALING of the package")


@pytest.mark.parametrize(
    ("value", "line"),
    [
        ("no_such_package:KIND", "cannot be loaded from no_such_package:KIND of .*ModuleNotFound"),
        ("lsmtune.search.gp:NONE", "cannot be loaded from .*AttributeError"),
        ("lsmtune.search.gp:np", "is no SamplerKind, but a module: lsmtune.search.gp:np of the"),
        ("lsmtune.search.gp:KIND", "calls itself 'gp': lsmtune.search.gp:KIND of the package"),
    ],
)
def test_a_broken_plugin_says_why_when_it_is_named_and_breaks_nothing_else(
    value: str, line: str, known: Known
) -> None:
    kinds = known(("other", value))
    pattern = rf"^s.yaml:3: sampler.name: {line}.*; found 'other'$"
    assert re.search(pattern, problem(kinds, "other"))
    assert "other" in kinds
    assert "allowed: gp, other" in problem(kinds, "another")
    assert [*kinds.usable()] == ["gp"]
    assert by_name(kinds, "gp", "s") is GP
    [(name, _, why)] = kinds.added()
    assert (name, why in problem(kinds, "other")) == ("other", True)


def test_a_name_that_two_packages_take_is_nobodys(known: Known) -> None:
    kinds = known(("other", "one:KIND"), ("other", "two:KIND"))
    line = "is the name of 2 plugins; uninstall all but one of one:KIND of the package unknown"
    assert line in problem(kinds, "other")


def test_lsmtunes_own_names_stay_its_own(known: Known) -> None:
    kinds = known(("gp", f"{__name__}:ANNEALING"))
    assert kinds["gp"] is GP
    assert [why for _, _, why in kinds.added()] == ["has a name that is taken: it is lsmtune's own"]


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder on the path, for a package's metadata."""
    monkeypatch.syspath_prepend(tmp_path)
    plugins._installed.cache_clear()
    yield tmp_path
    plugins._installed.cache_clear()


def install(folder: Path, lines: str) -> None:
    info = folder / "lsmtune_broken-1.2.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: lsmtune-broken\nVersion: 1.2\n")
    (info / "entry_points.txt").write_text(lines)


def test_a_package_of_broken_plugins_is_listed_and_every_command_still_works(
    package: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    install(package, "".join(f"[{group}]\nbroken = no_such:KIND\n" for group in GROUPS))
    from lsmtune.cli.doctor import plugin_findings
    from lsmtune.cli.main import main
    from lsmtune.cli.plugins import listed as listed_plugins

    assert main(["plugins", "--json"]) == 0
    listed = [p for p in json.loads(capsys.readouterr().out)["plugins"] if p["name"] == "broken"]
    assert {p["kind"] for p in listed} == {
        group.rpartition(".")[2].removesuffix("s") for group in GROUPS
    }
    assert {(p["package"], p["version"]) for p in listed} == {("lsmtune-broken", "1.2")}
    assert all("ModuleNotFoundError" in p["problem"] for p in listed)
    found = [f for f in plugin_findings(listed_plugins()) if "lsmtune-broken 1.2: the" in f.text]
    assert len(found) == len(GROUPS)
    assert all(f.level == "warning" and "ModuleNotFoundError" in f.text for f in found)
    config = ["write_buffer_size=4MiB", "--engine", "leveldb", "--format"]
    assert main(["export", *config, "properties"]) == 0
    assert main(["workload", "list"]) == 0
    capsys.readouterr()
    assert main(["export", *config, "broken"]) == 2
    said = capsys.readouterr().err
    assert said.startswith("lsmtune: --format: cannot be loaded from no_such:KIND of the package")
    assert "lsmtune-broken 1.2" in said


def test_a_plugin_that_ends_the_program_when_it_is_imported_is_a_broken_one(
    package: Path,
) -> None:
    """`lsmtune doctor` said that line alone, and ended."""
    (package / "leaves_at_once.py").write_text("raise SystemExit('needs a licence')\n")
    install(package, "[lsmtune.samplers]\nbroken = leaves_at_once:KIND\n")
    from lsmtune.cli.plugins import listed

    (found,) = [plugin for plugin in listed() if plugin["name"] == "broken"]
    assert "SystemExit: needs a licence" in found["problem"]


def test_doctor_has_a_line_for_each_package(package: Path) -> None:
    from lsmtune.cli.doctor import plugin_findings
    from lsmtune.cli.plugins import listed

    lines = "[lsmtune.samplers]\ngp = lsmtune.search.gp:KIND\n"
    install(package, f"{lines}annealing = {__name__}:ANNEALING\n")
    found = [f for f in plugin_findings(listed()) if f.text.startswith("lsmtune-broken 1.2: ")]
    assert [(f.level.value, f.text) for f in found] == [
        (
            "warning",
            "lsmtune-broken 1.2: the sampler gp has a name that is taken: it is lsmtune's own",
        ),
        ("ok", "lsmtune-broken 1.2: sampler annealing"),
    ]
    assert found[0].next_step == "install another version of lsmtune-broken, or uninstall it"
