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
        (0.0034, "0.0034\u00d7"),  # was 0.00, also as both ends of its interval
        (0.083, "0.083\u00d7"),
        (0.0, "0.00\u00d7"),
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
    assert text.option_with_size(10_587_353, "bytes") == "10587353 (~10.1MiB)"
    assert text.option_with_size(4 << 20, "bytes") == "4MiB"
    assert text.option_with_size(10_587_353) == "10587353"


def test_metrics_have_names() -> None:
    assert text.metric_label("latency_us_p999") == "p99.9 latency"
    assert text.metric_label("stall_s") == "stall"
    assert text.metric_label("rss_bytes_max") == "peak resident memory"


@pytest.mark.parametrize(
    ("metric", "value", "label", "told"),
    [
        ("requests_s", 52_000.0, "requests s", "52,000"),  # was `14h26m40s` of `requests`
        ("rows_s", 1234.5, "rows s", "1,234"),
        ("cpu_usage", 87.0, "cpu usage", "87"),  # was 87 µs
        ("memory_used_mb", 512.0, "memory used mb", "512"),
        ("throughput_mb_s", 180.0, "throughput", "180 MB/s"),  # was `3m`
        ("sustained_throughput_mb_s", 12.5, "sustained throughput", "12.5 MB/s"),
        ("queue_us_p99", 1500.0, "queue us p99", "1.5 ms"),
        ("cache_bytes", 4096.0, "cache", "4KiB"),
        ("kilobytes", 4096.0, "kilobytes", "4,096"),
        ("elapsed_s", 90.0, "elapsed", "1m30s"),
        ("reads_ops_s", 5.0, "reads", "5 ops/s"),
        ("latency_us_p99^-0.5 * throughput_ops_s^0.5", 3.0, "weighted objectives", "3"),
    ],
)
def test_a_metric_has_the_unit_that_its_name_says_and_no_other(
    metric: str, value: float, label: str, told: str
) -> None:
    """Rates of programs ended in `_s` and were shown as hours; any name with `us` in it was µs."""
    assert text.metric_label(metric) == label
    assert text.quantity(metric, value) == told
