"""docs/workloads.md: its workload files are right, and its tables have every name and no other."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from lsmtune.model.distribution import KEY_DISTRIBUTIONS, SIZE_DISTRIBUTIONS
from lsmtune.model.files import fields_of
from lsmtune.model.workload import MIX_OPERATIONS, Mix, Phase
from lsmtune.workloads.file import WorkloadFile, parse_workload_file
from lsmtune.workloads.stated import WORKLOAD_NAMES

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "workloads.md").read_text()
FILES = re.findall(r"^```workload\n(.*?)^```$", PAGE, re.M | re.S)


@pytest.mark.parametrize("text", FILES, ids=lambda text: text.splitlines()[1])
def test_every_workload_file_of_the_page_is_read(text: str) -> None:
    assert parse_workload_file(text, Path("w.yaml")).phases


def test_the_page_shows_what_it_promises() -> None:
    assert len(FILES) >= 4
    assert all(word in "".join(FILES) for word in ("companions", "steps", "sine", "databases"))


def section(heading: str) -> str:
    return PAGE.split(f"\n## {heading}\n", 1)[1].split("\n## ", 1)[0]


def test_every_name_is_in_the_table() -> None:
    table = section("Named workloads").replace("`ycsb-a` to `ycsb-f`", "")
    named = set(re.findall(r"`([a-z0-9-]+)`", table)) | {f"ycsb-{letter}" for letter in "abcdef"}
    assert named == set(WORKLOAD_NAMES)


def test_every_distribution_and_its_parameters() -> None:
    rows = re.findall(r"^\| `(\w+)` \|([^|]*)\|", section("Distributions"), re.M)
    shown = [(name, re.findall(r"`(\w+)`", parameters)) for name, parameters in rows]
    known = [*KEY_DISTRIBUTIONS.items(), *SIZE_DISTRIBUTIONS.items()]
    assert shown == [(name, list(parameters)) for name, parameters in known]


def test_every_field_of_a_workload_file() -> None:
    text = section("Workload files")
    fields = {*fields_of(WorkloadFile), *fields_of(Phase), *fields_of(Mix)}
    unsaid = {field for field in fields if f"`{field}`" not in text} - {
        "version",
        "about",
        "phases",
    }
    assert unsaid == set()
    assert all(f"`{operation}`" in text for operation in MIX_OPERATIONS)
