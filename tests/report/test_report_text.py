from __future__ import annotations

import pytest

from lsmtune.report import words as text


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (1.4213, "1.42\u00d7"),
        (1.013, "1.013\u00d7"),
        (0.5, "0.50\u00d7"),
        (250.4, "250\u00d7"),
        (None, "\u2013"),
    ],
)
def test_ratio(value: float | None, expected: str) -> None:
    assert text.ratio(value) == expected


@pytest.mark.parametrize(
    ("metric", "value", "expected"),
    [
        ("sustained_throughput_ops_s", 1_234_567.8, "1,234,568 ops/s"),
        ("latency_us_p99", 12.345, "12.35 µs"),
        ("latency_us_p99", 12_345.0, "12.35 ms"),
        ("database_bytes", 3 * 2**20, "3MiB"),
        ("write_amplification", 2.25, "2.25"),
        ("drain_s", 0.5, "500 ms"),
        ("drain_s", 0.0004, "400 µs"),
        ("drain_s", 754.2, "12m34.2s"),
        ("drain_s", float("nan"), "\u2013"),
        ("drain_s", None, "\u2013"),
    ],
)
def test_quantity(metric: str, value: float | None, expected: str) -> None:
    assert text.quantity(metric, value) == expected


@pytest.mark.parametrize(
    ("value", "unit", "expected"),
    [
        (4 << 20, "bytes", "4MiB"),
        (4_000_001, "bytes", "4000001"),
        (-1, "bytes", "-1"),
        (4 << 20, "", "4194304"),
        (True, "", "true"),
        (0.5, "", "0.5"),
        (None, "", "\u2013"),
    ],
)
def test_an_option_is_shown_without_loss(
    value: int | float | bool | None, unit: str, expected: str
) -> None:
    assert text.option(value, unit) == expected


def test_an_odd_size_is_told_with_about_how_much_it_is() -> None:
    assert text.option_told(10_587_353, "bytes") == "10587353 (~10.1MiB)"
    assert text.option_told(4 << 20, "bytes") == "4MiB"
    assert text.option_told(10_587_353) == "10587353"


def test_metrics_have_names() -> None:
    assert text.metric_label("latency_us_p999") == "p99.9 latency"
    assert text.metric_label("stall_s") == "stall"
    assert text.metric_label("rss_bytes_max") == "peak resident memory"
