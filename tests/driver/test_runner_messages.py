"""Reading the driver's lines: the golden ones whole, every wrong one with the field's name."""

from __future__ import annotations

import contextlib
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lsmtune.driver.collect import Collector
from lsmtune.driver.messages import (
    PROTOCOL_VERSION,
    BackgroundWork,
    Failed,
    Finished,
    Hello,
    IntervalPassed,
    Paused,
    PhaseFinished,
    Probed,
    Verified,
    parse_message,
)
from lsmtune.errors import InputError
from lsmtune.model.codec import ProtocolError
from lsmtune.model.measurement import Interval, LevelWork, Outcome

GOLDEN = Path(__file__).parents[2] / "protocol" / "golden"
LINES = [
    line
    for file in sorted(GOLDEN.glob("messages-*.jsonl"))
    for line in file.read_text().split("\n")
]
LINES = [line for line in LINES if line]


# What is left out where it is not known, or not asked for.
OPTIONAL = {
    "keys_beyond",
    "keys_scanned",
    "files_per_level",
    "bytes_per_level",
    "page_cache_cached_share",
    "operations_by_type",
    "replay",
}

# Their own keys are free.
BY_TYPE = {"latencies", "operations_by_type", "skipped"}


def golden(kind: str, file: str) -> dict[str, Any]:
    """The first message of that type in that golden file."""
    messages = map(json.loads, (GOLDEN / file).read_text().splitlines())
    found: dict[str, Any] = next(message for message in messages if message["type"] == kind)
    return found


def test_golden_messages_are_read_with_their_values() -> None:
    assert parse_message(json.dumps(golden("hello", "messages-run.jsonl"))) == Hello(
        PROTOCOL_VERSION, "0.1.0"
    )
    step = parse_message(json.dumps(golden("interval", "messages-run.jsonl")))
    assert isinstance(step, IntervalPassed)
    assert step.index == 0
    assert step.interval() == Interval(
        0.25, 0.25, 40000, 40000, 160000.0, 50000000, cpu_s=0.24, steal_s=0.01
    )
    phase = parse_message(json.dumps(golden("phase_finished", "messages-run.jsonl")))
    assert isinstance(phase, PhaseFinished)
    assert phase.phase.latency_us_p999 == 210.0
    assert phase.phase.latencies["put"].count == 100000
    assert phase.phase.keys_found is None
    assert parse_message(json.dumps(golden("finished", "messages-probe.jsonl"))) == Finished(
        Outcome.OK, 0.1, 0.05, 9000000, 0
    )
    paused = parse_message(json.dumps(golden("paused", "messages-slices.jsonl")))
    assert paused == Paused(0, 0, 0, elapsed_s=0.0, cpu_s=0.0, steal_s=0.0)
    failed = parse_message(json.dumps(golden("failed", "messages-failed.jsonl")))
    assert isinstance(failed, Failed)
    assert failed.error.nearest == ("write_buffer_size",)
    probed = parse_message(json.dumps(golden("probed", "messages-probe.jsonl")))
    assert isinstance(probed, Probed)
    assert probed.options[0].name == "write_buffer_size"


def test_what_is_left_out_is_not_known() -> None:
    cold = golden("phase_finished", "messages-cold.jsonl")
    found = parse_message(json.dumps(cold))
    assert isinstance(found, PhaseFinished)
    assert found.phase.page_cache_cached_share == cold["phase"]["page_cache_cached_share"]
    del cold["phase"]["page_cache_cached_share"]
    found = parse_message(json.dumps(cold))
    assert isinstance(found, PhaseFinished)
    assert found.phase.page_cache_cached_share is None
    verified = parse_message(json.dumps(golden("verified", "messages-check.jsonl")))
    assert isinstance(verified, Verified)
    assert (verified.keys_checked, verified.keys_beyond) == (312440, 0)
    assert verified.keys_scanned == 312438


def test_compactions_come_by_level() -> None:
    work = parse_message(json.dumps(golden("background_work", "messages-run.jsonl")))
    assert isinstance(work, BackgroundWork)
    assert work.levels == (LevelWork(1, 1, 5900000),)


def paths(message: dict[str, Any]) -> list[list[str | int]]:
    """Every place in `message` but those under `BY_TYPE`, whose keys are free."""
    found: list[list[str | int]] = []

    def walk(value: Any, path: list[str | int]) -> None:
        pairs = (
            value.items()
            if isinstance(value, dict)
            else enumerate(value)
            if isinstance(value, list)
            else ()
        )
        for key, inner in pairs:
            found.append([*path, key])
            if key not in BY_TYPE:
                walk(inner, [*path, key])

    walk(message, [])
    return [path for path in found if path != ["type"]]


def wrecked(message: dict[str, Any], path: list[str | int], wreck: object) -> str:
    copy = json.loads(json.dumps(message))
    place = copy
    for key in path[:-1]:
        place = place[key]
    if wreck is KeyError:
        del place[path[-1]]
    else:
        place[path[-1]] = wreck
    return json.dumps(copy)


# The summary of a trace is handed on as it is; `traces/` reads it, and has its own tests.
PLACES = [
    (message, path)
    for message in map(json.loads, LINES)
    if message["type"] != "trace_summary"
    for path in paths(message)
]


@pytest.mark.parametrize(
    ("message", "path"),
    PLACES,
    ids=[f"{message['type']}.{'.'.join(map(str, path))}" for message, path in PLACES],
)
def test_a_field_of_a_wrong_type_or_missing_is_named(
    message: dict[str, Any], path: list[str | int]
) -> None:
    named = [str(key) for key in path if isinstance(key, str)][-1]
    with pytest.raises((ProtocolError, InputError), match=named):
        parse_message(wrecked(message, path, {"strange": [1]}))
    if path[-1] in OPTIONAL:
        parse_message(wrecked(message, path, KeyError))
    elif isinstance(path[-1], str):
        with pytest.raises((ProtocolError, InputError), match=f"{named}.*|found None"):
            parse_message(wrecked(message, path, KeyError))


@pytest.mark.parametrize(
    ("line", "why"),
    [
        ("", "not a line of JSON"),
        ("Segmentation fault", "not a line of JSON"),
        ("[1]", "found [1]; allowed: an object"),
        ("{}", "message.type: found None"),
        ('{"type": 7}', "message.type: found 7"),
        ('{"type": "intervall"}', "did you mean interval?"),
        ('{"type":"phase_started","index":true,"name":"a","kind":"load"}', "phase_started.index"),
        ('{"type":"phase_started","index":1.0,"name":"a","kind":"load"}', "phase_started.index"),
        ('{"type":"verified","keys_checked":1,"keys_lost":0,"keys_wrong":0,"reopen_s":NaN}', "NaN"),
        ('{"type":"phase_finished","index":0}', "phase_finished.phase: missing field"),
        ('{"type":"background_work","indx":0}', "indx: unknown field; did you mean index?"),
        (
            '{"type":"finished","outcome":"invalid","elapsed_s":1,"cpu_s":1,"rss_bytes_max":1,'
            '"database_bytes":1}',
            "finished.outcome: found 'invalid'; allowed: ok",
        ),
        ("[" * 100_000, "not a line of JSON"),
    ],
)
def test_wrong_lines_say_what_is_wrong(line: str, why: str) -> None:
    with pytest.raises(ProtocolError) as caught:
        parse_message(line)
    assert why in str(caught.value)


@pytest.mark.parametrize(
    "version", [0, PROTOCOL_VERSION - 1, PROTOCOL_VERSION + 1, "2", None, True, 1.5]
)
def test_another_version_is_refused_whatever_else_it_says(version: object) -> None:
    with pytest.raises(InputError, match="protocol_version"):
        parse_message(json.dumps({"type": "hello", "protocol_version": version, "more": 1}))


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)


@given(st.sampled_from(PLACES), json_values)
def test_no_value_anywhere_raises_anything_else(
    place: tuple[dict[str, Any], list[str | int]], value: object
) -> None:
    message, path = place
    line = wrecked(message, path, value)
    with contextlib.suppress(ProtocolError, InputError):
        parse_message(line)


@given(st.binary(max_size=60))
def test_no_bytes_raise_anything_else(line: bytes) -> None:
    with pytest.raises(ProtocolError):
        parse_message(line)


def test_a_run_between_two_phases_is_after_the_one_that_is_done() -> None:
    """It was after its last phase, whichever were to come."""
    collector, places = Collector(), list[str]()
    for line in (GOLDEN / "messages-run.jsonl").read_text().splitlines():
        collector.take(parse_message(line))
        places.append(collector.where)
    assert list(dict.fromkeys(places)) == [
        "while opening the engine",
        "before its first phase",
        "in phase fillrandom",
        "after phase fillrandom",
    ]


def test_a_pause_in_a_phase_that_was_never_announced_is_refused() -> None:
    collector = Collector()
    collector.take(Hello(PROTOCOL_VERSION, "0"))
    with pytest.raises(ProtocolError, match=r"Paused.index: found 0, a phase never announced"):
        collector.take(Paused(0, 0, 0, 0.0, 0.0, None))
