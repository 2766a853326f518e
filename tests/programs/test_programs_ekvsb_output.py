"""The records of ekvsb and its summary, computed as `ekvsb summary` does."""

from __future__ import annotations

import json
from io import StringIO
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from program_parts import PEER_OUTPUT, files_of

from lsmtune.errors import InputError
from lsmtune.model.config import Config, EngineIdentity
from lsmtune.model.request import Limits, RunRequest
from lsmtune.model.workload import Phase, PhaseKind, Workload
from lsmtune.programs.ekvsb import PROGRAM, EkvsbRecord, read_records, summarise
from lsmtune.programs.program import FoundProgram, StepOutput

RECORD = (
    '{"seqno":0,"key":"k","method":"GET",'
    '"start_time":0.5,"elapsed":0.25,"exists":true,"error":null}'
)


def record(elapsed_s: float, exists: bool | None = None, error: str | None = None) -> EkvsbRecord:
    return EkvsbRecord("GET", elapsed_s, exists, error is not None)


def printed(*records: str) -> str:
    """As `execute` in ekvsb's main.rs prints them."""
    return "[\n  " + ",\n  ".join(records) + "\n]\n"


def read(text: str) -> list[EkvsbRecord]:
    return list(read_records(StringIO(text).read, "run"))


def test_records_are_read_as_they_come() -> None:
    found = read(printed(RECORD, RECORD.replace("GET", "PUT")))
    assert [one.method for one in found] == ["GET", "PUT"]
    assert (found[0].exists, found[0].elapsed_s) == (True, 0.25)


def test_a_run_that_was_cut_off_between_records_is_read_and_no_run_is_refused() -> None:
    for text in ("[", "[]", "[\n]\n"):
        assert read(text) == []
    for text in (f"[{RECORD}", f"[\n  {RECORD},\n", f"[{RECORD}]"):
        assert len(read(text)) == 1
    with pytest.raises(InputError, match="run: offset 0: ends too early; allowed: a JSON array"):
        read("")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[1]", "run: offset 1: no record of ekvsb"),
        (printed(RECORD.replace("GET", "SCAN")), "run: offset 4: method: found 'SCAN'"),
        (printed(RECORD.replace('"GET"', "[]")), "run: offset 4: method: found []"),
        (printed(RECORD.replace("0.25", "-1")), "run: offset 4: elapsed: found -1"),
        (printed(RECORD.replace("true", "1")), "run: offset 4: exists: found 1"),
    ],
)
def test_what_is_no_record_is_refused_with_its_offset(text: str, said: str) -> None:
    with pytest.raises(InputError) as error:
        read(text)
    assert str(error.value).startswith(said)


def test_a_phase_that_took_no_time_is_said(tmp_path: Path) -> None:
    """An ekvsb that cuts times to microseconds did 0 operations per second."""
    phase = Phase("load", PhaseKind.MEASURE, "fillseq", operations_per_thread=2)
    request = RunRequest(
        EngineIdentity("rocksdb"), Config(), Workload("w", (phase,), num=2), 1, tmp_path, Limits()
    )
    (step,) = PROGRAM.plan(request, FoundProgram("ekvsb", Path("/ekvsb"))).steps
    stdout = tmp_path / "stdout.log"
    fast = RECORD.replace("GET", "PUT").replace("0.25", "0.0")
    stdout.write_text(printed(fast, fast))
    with pytest.raises(InputError, match="ekvsb: load took less time than it can tell: 0 seconds"):
        step.read(StepOutput(stdout, stdout, 0, 1, 0.0, None, 0))


def test_the_summary_takes_the_elements_that_ekvsb_takes() -> None:
    # main.rs: times[len / 2], times[len * 95 / 100], times[len * 99 / 100], of all in order.
    records = [record(float(n), exists=n % 2 == 0) for n in range(1, 11)]
    records[3] = record(4.0, error="lost")
    summary = summarise(records)
    assert summary == {
        "oks": 9,
        "errors": 1,
        "existence": {"exists": 4, "absents": 5, "unknowns": 1},
        "elapsed": 55.0,
        "ops": 10 / 55.0,
        "latency": {"min": 1.0, "median": 6.0, "p95": 10.0, "p99": 10.0, "max": 10.0},
    }


@given(st.lists(st.floats(1e-9, 10.0), max_size=300))
def test_the_summary_of_any_run_agrees_with_its_definition(times: list[float]) -> None:
    summary = summarise(record(time) for time in times)
    ordered = sorted(times)
    for percent, name in ((50, "median"), (95, "p95"), (99, "p99")):
        expected = ordered[len(ordered) * percent // 100] if ordered else 0.0
        assert summary["latency"][name] == expected  # type: ignore[index]
    assert summary["ops"] == (len(times) / sum(times) if times else None)


@pytest.mark.parametrize("path", files_of(PEER_OUTPUT, "ekvsb-summary-*.json"))
def test_our_summary_has_the_fields_of_our_peers_and_their_arithmetic(path: Path) -> None:
    theirs = json.loads(path.read_text())
    ours = summarise([record(0.5, exists=True)])
    assert list(ours) == list(theirs)
    for part in ("existence", "latency"):
        assert list(ours[part]) == list(theirs[part])  # type: ignore[call-overload]
    # Operations by the sum of their times.
    assert theirs["ops"] == (theirs["oks"] + theirs["errors"]) / theirs["elapsed"]


@pytest.mark.parametrize("path", files_of(PEER_OUTPUT, "ekvsb-run-head.json.txt"))
def test_the_head_of_a_run_of_our_peers_is_read(path: Path) -> None:
    with path.open() as file:
        summary = summarise(read_records(file.read, path.name))
    existence, latency = summary["existence"], summary["latency"]
    assert isinstance(existence, dict)
    assert isinstance(latency, dict)
    assert (summary["oks"], existence["unknowns"], latency["max"]) == (4, 4, 0.001471906)
