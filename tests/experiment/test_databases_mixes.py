"""Golden databases of mixes: the key holds all that shapes what is loaded, and nothing else."""

from __future__ import annotations

from dataclasses import replace

import pytest
from database_parts import LIMITS, Requests

from lsmtune.experiment.database_key import LibraryDigests, order_of
from lsmtune.model.workload import Workload
from lsmtune.proof.crash_test import load_of
from lsmtune.workloads.stated import make_workload


def digest(make_request: Requests, workload: Workload) -> str:
    order = order_of(replace(make_request(), workload=workload), LibraryDigests())
    assert order is not None
    return order.digest


@pytest.mark.parametrize(
    ("name", "given"),
    [
        ("ycsb-a", {"recordcount": 500}),
        ("ycsb-a", {"fieldlength": 50}),
        ("ycsb-a", {"fieldlengthdistribution": "uniform"}),
        ("ycsb-a", {"insertorder": "ordered"}),
        ("ycsb-a", {"zeropadding": 30}),
        ("ycsb-a", {"insertstart": 5}),
        ("ycsb-a", {"threadcount": 2}),
        ("ycsb-a", {"column_families": 2}),
        ("udb", {}),
    ],
)
def test_what_is_loaded_otherwise_is_another_database(
    make_request: Requests, name: str, given: dict[str, object]
) -> None:
    changed = make_workload(name, given, "test")
    assert digest(make_request, changed) != digest(
        make_request, make_workload("ycsb-a", {}, "test")
    )


def test_workloads_that_load_alike_share_a_database(make_request: Requests) -> None:
    alike = [make_workload(f"ycsb-{letter}", {}, "test") for letter in "abcdef"]
    alike.append(make_workload("ycsb-a", {"operationcount": 5, "target": 9}, "test"))
    assert len({digest(make_request, workload) for workload in alike}) == 1


def test_several_databases_are_not_copied(make_request: Requests) -> None:
    workload = make_workload("ycsb-a", {"databases": 2}, "test")
    assert order_of(replace(make_request(), workload=workload), LibraryDigests()) is None


def test_the_load_that_is_killed_has_plain_keys_of_the_same_size() -> None:
    workload = make_workload("udb", {"databases": 2, "column_families": 3}, "test")
    load = load_of(workload, LIMITS, 1_000_000)
    assert (load.key_bytes, load.key_sizes, load.databases, load.column_families) == (
        27,
        None,
        1,
        1,
    )
    assert load.num == 1_000_000 // (27 + workload.value_bytes)
    ycsb = load_of(make_workload("ycsb-a", {}, "test"), LIMITS, 1_000_000)
    assert (ycsb.keys, ycsb.key_bytes) == (None, 23)
