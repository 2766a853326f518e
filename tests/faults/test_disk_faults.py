"""A few of the faults of `under_way.py`; docs/faults.md sums up what all of them came to."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import lsmtune

pytestmark = pytest.mark.engine

# The case, what becomes of the command, and what its last line says.
CASES = [
    ("sweep python write:eio:at=40%", "ended", "disk I/O error"),
    ("sweep python write:enospc:from=60%", "ended", "the disk is full"),
    ("sweep python read:eio:at=1%", "ended", "engine.log: Input/output error"),
    ("sweep python open:emfile:at=50%", "ended", "Too many open files|unable to open"),
    ("sweep python sync:eio:at=50%", "ended", "Input/output error|disk I/O error"),
    ("sweep python write:short:from=1%", "went on", ""),
    ("sweep python write:eintr:from=1%", "went on", ""),
    ("sweep python link:eperm:from=1%", "went on", ""),
    ("sweep python sync-folder:einval:from=1%", "went on", ""),
    ("sweep driver write:eio:at=50%", "ended", "the disk failed in phase"),
    ("sweep driver write:eintr:from=1%", "went on", ""),
    ("tune driver sync:eio:from=60%", "ended", "the disk failed"),
]


@pytest.fixture(scope="module")
def told(
    driver: Path, leveldb_library: Path, tmp_path_factory: pytest.TempPathFactory
) -> dict[str, Any]:
    """What became of each case; all of them in one process, which has imported all once."""
    path = str(Path(lsmtune.__file__).parent.parent)
    environment = {
        **os.environ,
        "PYTHONPATH": path,
        "LSMTUNE_DRIVER": str(driver),
        "LSMTUNE_TEST_LEVELDB": str(leveldb_library),
        "TMPDIR": str(tmp_path_factory.mktemp("faults")),
    }
    done = subprocess.run(
        [sys.executable, str(Path(__file__).with_name("under_way.py"))],
        input="\n".join(case for case, _, _ in CASES),
        env=environment,
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    return {each["case"]: each for each in map(json.loads, done.stdout.splitlines())}


@pytest.mark.parametrize(("case", "kind", "words"), CASES)
def test_a_fault_ends_in_one_line_and_the_same_command_goes_on(
    told: dict[str, Any], case: str, kind: str, words: str
) -> None:
    """No row is lost, changed or doubled, and nothing is left; see `under_way.check`."""
    seen = told[case]
    assert seen["wrong"] == [], seen
    assert seen["hit"], seen
    assert seen["kind"] == kind, seen
    assert any(word in seen["line"] for word in words.split("|")), seen
