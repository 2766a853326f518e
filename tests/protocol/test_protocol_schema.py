"""The schemas of `protocol/` describe the golden files, and refuse what is not in them."""

from __future__ import annotations

import copy
import functools
import json
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from lsmtune.driver.process import CANCEL_LINE

PROTOCOL = Path(__file__).parents[2] / "protocol"
REQUESTS = sorted((PROTOCOL / "golden").glob("request-*.json"))
MESSAGE_FILES = sorted((PROTOCOL / "golden").glob("messages-*.jsonl"))
MESSAGES = [json.loads(line) for file in MESSAGE_FILES for line in file.read_text().splitlines()]

# Left out where it was not asked for.
OPTIONAL = {"keys_beyond", "keys_scanned"}


# To check a schema takes longer than to check a message.
@functools.cache
def validator(name: str, definition: str | None = None) -> Draft202012Validator:
    schema: dict[str, Any] = json.loads((PROTOCOL / f"{name}.schema.json").read_text())
    Draft202012Validator.check_schema(schema)
    if definition is not None:
        schema = {"$ref": f"#/$defs/{definition}", "$defs": schema["$defs"]}
    return Draft202012Validator(schema)


def test_there_are_golden_files_of_both_directions() -> None:
    assert len(REQUESTS) >= 5
    assert len(MESSAGE_FILES) >= 5


@pytest.mark.parametrize("path", REQUESTS, ids=lambda path: path.name)
def test_golden_requests_validate(path: Path) -> None:
    validator("request").validate(json.loads(path.read_text()))


def test_the_cancel_line_validates() -> None:
    validator("request", "cancel").validate(json.loads(CANCEL_LINE))


@pytest.mark.parametrize("message", MESSAGES, ids=lambda message: message["type"])
def test_golden_messages_validate(message: dict[str, Any]) -> None:
    validator("message").validate(message)


def test_every_message_type_has_a_golden_example() -> None:
    schema = json.loads((PROTOCOL / "message.schema.json").read_text())
    described = {arm["$ref"].rpartition("/")[2] for arm in schema["oneOf"]}
    assert described == {message["type"] for message in MESSAGES}


@pytest.mark.parametrize("message", MESSAGES, ids=lambda message: message["type"])
def test_a_message_without_a_field_or_with_a_strange_one_is_refused(
    message: dict[str, Any],
) -> None:
    check = validator("message")
    for name in message.keys() - OPTIONAL:
        assert not check.is_valid({k: v for k, v in message.items() if k != name}), name
    assert not check.is_valid(message | {"strange": 1})


def wrong_requests() -> list[tuple[str, dict[str, Any]]]:
    good = json.loads((PROTOCOL / "golden" / "request-run.json").read_text())
    load, settle = 0, 1
    wrongs = []

    def wrong(name: str, **changes: Any) -> dict[str, Any]:
        bad: dict[str, Any] = copy.deepcopy(good)
        wrongs.append((name, bad))
        bad.update(changes)
        return bad

    wrong("other version", protocol_version=good["protocol_version"] + 1)
    wrong("negative seed", seed=-1)
    wrong("option that is not text", options={"write_buffer_size": 4})
    wrong("unknown command", command="walk")
    del wrong("phase without a size")["workload"]["phases"][load]["operations_per_thread"]
    wrong("settle with an operation")["workload"]["phases"][settle]["operation"] = "fillseq"
    wrong("unknown operation")["workload"]["phases"][load]["operation"] = "fillfast"
    wrong("no phases")["workload"]["phases"] = []
    wrong("too many slices", slices=100_000)
    wrong("prepared without its ledger", prepared={"phases": 1})
    wrong("unknown page cache")["workload"]["page_cache"] = "hot"
    return wrongs


@pytest.mark.parametrize(("name", "request_"), wrong_requests(), ids=lambda value: str(value)[:30])
def test_wrong_requests_are_refused(name: str, request_: dict[str, Any]) -> None:
    assert not validator("request").is_valid(request_), name
