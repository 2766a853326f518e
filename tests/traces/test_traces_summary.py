"""The summary of a trace as the driver says it, read strictly."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from lsmtune.model.codec import ProtocolError
from lsmtune.model.measurement import TraceDamage
from lsmtune.traces.summary import trace_summary

GOLDEN = Path(__file__).parents[2] / "protocol" / "golden" / "messages-inspect.jsonl"


def golden() -> dict[str, Any]:
    lines = map(json.loads, GOLDEN.read_text().splitlines())
    found: dict[str, Any] = next(line for line in lines if line["type"] == "trace_summary")
    del found["type"]
    return found


def test_the_golden_summary_is_read_with_its_values() -> None:
    summary = trace_summary(golden())
    reason = "the file ends after 4 of the 29 bytes of a payload"
    assert summary.damage == TraceDamage(2383, 40, reason)
    assert (summary.records, summary.rocksdb_version) == (39, "7.8")


@pytest.mark.parametrize("field", sorted(golden().keys() - {"scan_lengths"}))
def test_every_field_must_be_there_and_no_other(field: str) -> None:
    document = golden()
    del document[field]
    with pytest.raises(ProtocolError, match=field):
        trace_summary(document)
    with pytest.raises(ProtocolError, match=f"{field}x"):
        trace_summary(golden() | {f"{field}x": 1})


def test_a_trace_without_records_has_a_summary() -> None:
    """Its windows begin at no time, by which the driver "broke the protocol"."""
    windows = {"window_s": 0.001, "started_unix_us": None, "steps": []}
    summary = trace_summary(golden() | {"windows": windows})
    assert (summary.windows.started_unix_us, summary.windows.steps) == (None, ())
