"""Constraints: which names they may use, and when they can be checked."""

from __future__ import annotations

import pytest

from lsmtune.errors import InputError
from lsmtune.space.constraint import Constraint, ConstraintKind, guard_limit, make_constraint

OPTIONS = (
    "write_buffer_size",
    "max_write_buffer_number",
    "block_based_table_factory.block_cache",
    "block_based_table_factory.block_size",
    "blob.block_size",
    "stall_s",
)
METRICS = ("latency_us_p99", "rss_bytes_max", "stall_s", "num")
FACTS = ("num", "data_bytes")


def made(text: str) -> Constraint:
    return make_constraint(text, OPTIONS, METRICS, FACTS, "study.yaml", "constraints[1]")


def refused(text: str) -> str:
    with pytest.raises(InputError) as caught:
        made(text)
    return str(caught.value)


def test_an_option_may_be_named_by_its_last_part() -> None:
    constraint = made("write_buffer_size * max_write_buffer_number + block_cache <= 1GiB")
    full = "block_based_table_factory.block_cache"
    assert constraint.full_names["block_cache"] == full
    assert constraint.kind is ConstraintKind.OPTIONS
    assert constraint.option_names == {"write_buffer_size", "max_write_buffer_number", full}
    values = {"write_buffer_size": 2**28, "max_write_buffer_number": 4, full: 2**29}
    assert constraint.violation(values) == 0.5
    assert not constraint.holds(values)
    assert constraint.holds(values | {"max_write_buffer_number": 2})
    assert "num" not in constraint.full_names


def test_a_metric_makes_it_one_on_the_outcome() -> None:
    constraint = made("rss_bytes_max <= 4 * write_buffer_size + data_bytes")
    assert constraint.kind is ConstraintKind.OUTCOME
    assert constraint.metric_names == {"rss_bytes_max"}
    assert constraint.fact_names == {"data_bytes"}
    assert constraint.option_names == {"write_buffer_size"}


def test_facts_alone_can_be_checked_before_a_run() -> None:
    assert made("data_bytes <= 1GiB").kind is ConstraintKind.OPTIONS


def test_an_option_goes_before_a_metric_and_a_metric_before_a_fact() -> None:
    assert made("stall_s <= 1").kind is ConstraintKind.OPTIONS
    assert made("num <= 1").kind is ConstraintKind.OUTCOME


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("write_bufer_size < 3", "found 'write_bufer_size'; did you mean write_buffer_size?"),
        ("block_cach < 3", "did you mean block_cache?"),
        ("latency_us_p999 < 3", "did you mean latency_us_p99?"),
        (
            "block_size < 3",
            "the last part of several options; found 'block_size'; allowed: "
            "blob.block_size, block_based_table_factory.block_size",
        ),
        ("size < 3", "no such option, metric or fact; found 'size'"),
        ("1 < 2", "names no option, metric or fact"),
        ("write_buffer_size * 2", "is a value, not a condition"),
        ("write_buffer_size <", "something is missing at column 20"),
    ],
)
def test_bad_constraints(text: str, told: str) -> None:
    line = refused(text)
    assert line.startswith("study.yaml: constraints[1]: ")
    assert told in line


def test_a_name_alone_is_a_condition_until_its_value_says_otherwise() -> None:
    constraint = made("write_buffer_size")
    assert constraint.violation({"write_buffer_size": True}) == 0
    with pytest.raises(InputError, match="a number where true or false is wanted"):
        constraint.violation({"write_buffer_size": 4})


def test_a_constraint_over_several_lines_is_shown_in_one() -> None:
    assert made("write_buffer_size\n  <= 1GiB").text == "write_buffer_size <= 1GiB"


def test_the_baselines_value_is_that_of_the_one_metric_beside_it() -> None:
    constraint = made("latency_us_p99 <= 1.25 * baseline")
    assert constraint.kind is ConstraintKind.OUTCOME
    assert constraint.metric_names == {"latency_us_p99"}
    assert constraint.baseline_names == {"latency_us_p99"}
    assert constraint.violation({"latency_us_p99": 150, "baseline.latency_us_p99": 100}) == 0.2


def test_of_several_metrics_the_baselines_is_named_in_full() -> None:
    text = "latency_us_p99 + rss_bytes_max <= baseline.latency_us_p99 + 5"
    assert made(text).baseline_names == {"latency_us_p99"}
    wrong = refused("latency_us_p99 + rss_bytes_max <= 2 * baseline")
    assert "baseline stands for the baseline's value of one metric" in wrong
    assert "allowed: one metric beside it, or baseline.METRIC" in wrong
    assert "baseline stands for" in refused("write_buffer_size <= baseline")


@pytest.mark.parametrize(
    "text", ["baseline.stall_s <= 5", "baseline.latency_us_p99 <= baseline.rss_bytes_max"]
)
def test_what_the_baseline_alone_decides_is_refused(text: str) -> None:
    """It held for every candidate or for none, by the baseline's own run."""
    wrong = refused(text)
    assert wrong.startswith("study.yaml: constraints[1]: ")
    assert "names nothing of the candidate" in wrong
    assert "allowed: a metric of the candidate beside them, such as " in wrong


@pytest.mark.parametrize(
    ("guard", "limit"),
    [
        ("put.stall_s <=1.5*baseline", 1.5),
        ("put.stall_s < 0.5 * baseline * 3", 1.5),
        ("put.stall_s <= baseline", 1.0),
        ("put.stall_s < baseline", 1.0),
        ("put.stall_s <= 0.9 * baseline", 0.9),
        ("put.stall_s / baseline <= 1.25", 1.25),
        ("baseline.put.stall_s * 3 >= put.stall_s", 3.0),
        ("put.stall_s - baseline <= 0.1 * baseline and put.stall_s <= 2 * baseline", 1.1),
        ("0.5 * baseline <= put.stall_s <= 1.5 * baseline", 1.5),
        # No multiple of the baseline's value.
        ("put.stall_s <= baseline + 3", None),
        ("put.stall_s / (baseline - 1) <= 3", None),
        # No limit.
        ("put.stall_s >= 0.9 * baseline", None),
        ("put.stall_s >= 1.1 * baseline", None),
        # Not of one metric alone, or not of the baseline.
        ("put.stall_s <= 3", None),
        ("put.stall_s + value_bytes <= 2 * baseline", None),
        ("put.stall_s <= 2 * baseline.stall_s", None),
    ],
)
def test_the_limit_of_a_guard_however_it_is_spelt(guard: str, limit: float | None) -> None:
    """Of all spellings but three a report's price had no figure, and its plot no limit."""
    assert guard_limit(guard) == (None if limit is None else ("put.stall_s", limit))
