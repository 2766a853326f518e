"""Where outputs of programs lie: goldens of our own, and those of others where they are here."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from lsmtune.errors import InputError

GOLDEN = Path(__file__).parent / "golden"
SHARED = Path(
    os.environ.get("LSMTUNE_TEST_SHARED", Path(__file__).resolve().parents[3] / "shared" / "data")
)
PEER_OUTPUT = SHARED / "peer-output"
CONTEST_LOGS = SHARED / "dku-contest" / "results"


def golden(name: str) -> str:
    """The text of one of our goldens."""
    return (GOLDEN / name).read_text(encoding="utf-8")


def refusal(parse: Callable[[str, str], object], text: str) -> str:
    """What `parse` refuses `text` with, named `out`; empty where it reads it."""
    try:
        parse(text, "out")
    except InputError as error:
        return str(error)
    return ""


def files_of(folder: Path, pattern: str) -> list[object]:
    """The files of a folder that is not in this repository, as parameters of a test."""
    found = sorted(folder.glob(pattern))
    if found:
        return [pytest.param(path, id=path.name) for path in found]
    absent = pytest.mark.skip(reason=f"{folder}/{pattern}: not here; LSMTUNE_TEST_SHARED names it")
    return [pytest.param(Path(), marks=absent, id=pattern)]
