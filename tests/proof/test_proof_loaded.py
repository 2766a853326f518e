"""What an observer of runs is told of the databases that the runs start from."""

from __future__ import annotations

from proof_parts import Recorder

from lsmtune.experiment.databases import Preparation
from lsmtune.experiment.measurer import LoadTelling


def test_what_is_wrong_with_every_database_of_a_search_is_said_once() -> None:
    recorder = Recorder()
    telling = LoadTelling(recorder)
    for size in ("1.38MiB", "2.45MiB"):
        note = f"the loaded database was not kept: {size} do not fit into the 1KiB"
        telling.run_prepared(Preparation(True, note=note))
    telling.run_prepared(Preparation(True))
    telling.run_prepared(Preparation(False, note="loading the database ended crashed: by SIGSEGV"))
    told = [text for (text,) in recorder.of("warning")]
    assert told == [
        "the loaded database was not kept: 1.38MiB do not fit into the 1KiB",
        "loading the database ended crashed: by SIGSEGV",
    ]
