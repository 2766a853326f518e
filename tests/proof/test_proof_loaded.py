"""What an observer of runs is told of the databases that the runs start from."""

from __future__ import annotations

from pathlib import Path

from fake_runner import FakeRunner
from proof_parts import Recorder

from lsmtune.experiment.databases import DatabaseCache
from lsmtune.experiment.observer import Preparation


def test_what_is_wrong_with_every_database_of_a_search_is_said_once(tmp_path: Path) -> None:
    recorder = Recorder()
    cache = DatabaseCache(tmp_path, FakeRunner(), 1024, observer=recorder)
    for size in ("1.38MiB", "2.45MiB"):
        note = f"the loaded database was not kept: {size} do not fit into the 1KiB"
        cache.report(Preparation(True, note=note))
    cache.report(Preparation(True))
    cache.report(Preparation(False, note="loading the database ended crashed: by SIGSEGV"))
    told = [text for (text,) in recorder.of("warning")]
    assert told == [
        "the loaded database was not kept: 1.38MiB do not fit into the 1KiB",
        "loading the database ended crashed: by SIGSEGV",
    ]
