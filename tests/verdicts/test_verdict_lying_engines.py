"""Engines that lie do not win: a part of the table, and the table itself."""

from __future__ import annotations

import json
from pathlib import Path

import lying_engines
import pytest
from lying_engines import CASES, ENGINES, row_of, rows, table, verdict

DOCUMENT = Path(__file__).parents[2] / "docs" / "benchmarks" / "verdicts" / "lying_engines.jsonl"


# The fixtures name the libraries, also where the environment does not.
@pytest.fixture
def libraries(
    rocksdb_library: Path, leveldb_library: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for engine, library in (("rocksdb", rocksdb_library), ("leveldb", leveldb_library)):
        monkeypatch.setenv(lying_engines.VARIABLES[engine], str(library))


@pytest.mark.engine
@pytest.mark.usefixtures("libraries")
@pytest.mark.parametrize(
    ("engine", "lie", "why"),
    [
        ("leveldb", "drop_writes:2", "data_loss"),
        ("rocksdb", "short_scan:5", "a scan left out key"),
        ("leveldb", "hold_flushes:1", "was told to flush and did not"),
    ],
)
def test_a_lie_does_not_win_even_without_the_crash_test(engine: str, lie: str, why: str) -> None:
    case = next(case for case in CASES if case.lie == lie)
    found = verdict(case, engine, crash_test=False)
    assert found["outcome"] == ("worse" if case.loses else "not_proven")
    assert why in str(found["why"])


def test_the_table_that_is_kept_has_every_lie_and_no_winner() -> None:
    kept = [json.loads(line) for line in DOCUMENT.read_text().splitlines()]
    assert [line for line in kept if line["outcome"] == "better"] == []
    told = [row_of(*asked) for asked in rows(ENGINES) if not asked[0].tunes]
    assert all(any(row.items() <= line.items() for line in kept) for row in told)
    losing = {case.lie for case in CASES if case.loses and not case.tunes}
    assert {line["outcome"] for line in kept if line["lie"] in losing} == {"worse"}


def test_a_lie_that_wins_is_counted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def won(case: lying_engines.Case, engine: str, *, crash_test: bool) -> dict[str, object]:
        return {**row_of(case, engine, crash_test), "outcome": "better", "ratio": 2.0}

    monkeypatch.setattr(lying_engines, "verdict", won)
    output = tmp_path / "rows.jsonl"
    asked = ["--only", "hold_flushes:1", "--engine", "rocksdb", "--output", str(output)]
    assert lying_engines.main(asked) == 1
    said = capsys.readouterr().out
    assert "| `hold_flushes:1` | `verify fillrandom` | better (2.00) / better (2.00) |  |" in said
    assert "3 verdicts, 3 lies won" in said
    # What is there already is not measured again.
    assert lying_engines.main(asked) == 1
    assert len(output.read_text().splitlines()) == 3
    assert "| `drop_puts:50` |" not in table([json.loads(output.read_text().splitlines()[0])])
