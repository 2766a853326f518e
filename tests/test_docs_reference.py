"""The reference of the site has everything that the code has, and is made from nothing else."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from lsmtune.cli.commands import COMMANDS, load_command
from lsmtune.engines.catalogue import option_catalogue
from lsmtune.engines.library import ENGINE_KINDS
from lsmtune.model.files import json_schema
from lsmtune.model.metrics import REGISTRY
from lsmtune.study.models import StudyModel

ROOT = Path(__file__).resolve().parent.parent


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    folder = tmp_path_factory.mktemp("reference")
    subprocess.run([sys.executable, ROOT / "scripts" / "reference.py", folder], check=True)
    return {path.name: path.read_text() for path in folder.iterdir()}


def first_cells(page: str) -> list[str]:
    return re.findall(r"^\| `([^`]+)` \|", page, re.M)


def test_the_commands_have_every_flag(pages: dict[str, str]) -> None:
    sections = re.split(r"^## `lsmtune (\S+)`$", pages["commands.md"], flags=re.M)
    assert sections[1::2] == list(COMMANDS)
    for name, text in zip(sections[1::2], sections[2::2], strict=True):
        flags = [flag for each in load_command(name).params for flag in each.opts if "--" in flag]
        assert [flag for flag in flags if not re.search(rf"{flag}[ `,]", text)] == []


def test_the_study_file_has_every_field(pages: dict[str, str]) -> None:
    schema = json_schema(StudyModel)
    mappings = [schema, *schema["$defs"].values()]
    fields = {name for mapping in mappings for name in mapping.get("properties", {})}
    assert fields | {"use", "without"} == set(first_cells(pages["study-file.md"]))


def test_the_options_are_those_of_the_catalogues(pages: dict[str, str]) -> None:
    known = [name for engine in ENGINE_KINDS for name in option_catalogue(engine)]
    assert re.findall(r"^### `([^`]+)`$", pages["options.md"], re.M) == known


def test_the_metrics_are_those_of_the_registry(pages: dict[str, str]) -> None:
    assert sorted(first_cells(pages["metrics.md"])) == sorted(metric.name for metric in REGISTRY)


def test_the_site_has_every_page_of_the_reference(pages: dict[str, str]) -> None:
    nav = yaml.safe_load((ROOT / "mkdocs.yml").read_text())["nav"]
    (reference,) = (each["Reference"] for each in nav if "Reference" in each)
    shown = {path for each in reference for path in each.values() if "reference/" in path}
    assert shown == {f"docs/reference/{name}" for name in pages}
