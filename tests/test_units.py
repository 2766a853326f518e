from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lsmtune.units import (
    BYTES_PER_UNIT,
    UnitError,
    format_bytes,
    format_duration,
    option_value,
    parse_bytes,
    parse_duration,
    parse_share,
)


@pytest.mark.parametrize(
    ("text", "size_bytes"),
    [
        ("4MiB", 4 * 2**20),
        (" 4 MiB ", 4 * 2**20),
        ("1.5GiB", 3 * 2**29),
        ("4096", 4096),
        (4096, 4096),
        (0, 0),
        ("10MB", 10_000_000),
        ("1kB", 1000),
        ("7B", 7),
        ("0.5KiB", 512),
    ],
)
def test_sizes(text: object, size_bytes: int) -> None:
    assert parse_bytes(text) == size_bytes


@pytest.mark.parametrize(
    ("text", "nearest"),
    [
        ("4M", "4MiB"),
        ("4k", "4KiB"),
        ("4K", "4KiB"),
        ("2 mib", "2MiB"),
        ("4KB", "4kB"),
        ("4 elephants", ""),
        ("", ""),
        ("MiB", ""),
        ("-4MiB", ""),
        ("0.3B", ""),
        ("1e3B", ""),
        ("٤KiB", ""),
        ("99999999999TiB", ""),
        (-1, ""),
        (2**63, ""),
        (True, ""),
        (1.0, ""),
        (None, ""),
        (["4MiB"], ""),
    ],
)
def test_bad_sizes(text: object, nearest: str) -> None:
    with pytest.raises(UnitError) as caught:
        parse_bytes(text)
    assert caught.value.nearest == nearest
    assert "\n" not in str(caught.value)


@given(st.integers(0, 2**20), st.sampled_from(sorted(BYTES_PER_UNIT)))
def test_any_whole_number_of_a_unit_is_read(number: int, unit: str) -> None:
    assert parse_bytes(f"{number}{unit}") == number * BYTES_PER_UNIT[unit]


@given(st.integers(0, 2**50))
def test_formatted_sizes_are_close(size_bytes: int) -> None:
    text = format_bytes(size_bytes)
    unit = next(unit for unit in ("TiB", "GiB", "MiB", "KiB", "B") if text.endswith(unit))
    shown = float(text.removesuffix(unit)) * BYTES_PER_UNIT[unit]
    assert abs(shown - size_bytes) <= 0.0051 * BYTES_PER_UNIT[unit]


@pytest.mark.parametrize(
    ("size_bytes", "text"),
    [(0, "0B"), (1023, "1023B"), (4 * 2**20, "4MiB"), (1536, "1.5KiB"), (100 * 2**30, "100GiB")],
)
def test_format_bytes(size_bytes: int, text: str) -> None:
    assert format_bytes(size_bytes) == text


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("90s", 90),
        ("30m", 1800),
        ("2h", 7200),
        ("500ms", 0.5),
        ("1h30m", 5400),
        ("1m500ms", 60.5),
        ("1.5h", 5400),
        ("90", 90),
        ("0.25", 0.25),
        (90, 90),
        (2.5, 2.5),
        ("0s", 0),
    ],
)
def test_durations(text: object, seconds: float) -> None:
    assert parse_duration(text) == seconds


@pytest.mark.parametrize(
    "text",
    [
        *("", "s", "30m1h", "1h1h", "5d", "-5s", "1 h", "1:30", "ten", "1e3", "9999999h"),
        *(-1, True, None, float("nan"), float("inf"), 10**400),
    ],
)
def test_bad_durations(text: object) -> None:
    with pytest.raises(UnitError):
        parse_duration(text)


@pytest.mark.parametrize("stated", [0.00005, "0.00005", "5e-05", "0.005%", " 0.005 % "])
def test_a_small_share_is_one_as_a_number_and_as_text(stated: object) -> None:
    """A study file's 0.00005 was refused, and `--smallest-effect 0.00005` was taken."""
    assert parse_share(stated) == pytest.approx(0.00005)


@pytest.mark.parametrize("stated", [0, 0.0, 1, 1.5, -0.1, True, None, "100%", "", "5e-400", "٤%"])
def test_bad_shares(stated: object) -> None:
    with pytest.raises(UnitError):
        parse_share(stated)


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0, "0s"),
        (0.5, "500ms"),
        (0.9999, "1s"),
        (2.5, "2.5s"),
        (59.96, "1m"),
        (110, "1m50s"),
        (5400, "1h30m"),
        (3605, "1h5s"),
    ],
)
def test_format_duration(seconds: float, text: str) -> None:
    assert format_duration(seconds) == text


@given(st.floats(0, 1e6))
def test_formatted_durations_read_back(seconds: float) -> None:
    assert parse_duration(format_duration(seconds)) == pytest.approx(seconds, abs=0.051)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("4MiB", 4 * 2**20),
        ("4M", "4M"),
        ("4m", "4m"),
        ("-1", -1),
        ("0.5", 0.5),
        ("1e-3", 0.001),
        ("true", True),
        ("false", False),
        ("no", "no"),
        ("010", "010"),
        ("10.2.1", "10.2.1"),
        ("inf", "inf"),
        ("1e999", "1e999"),
        ("kNoCompression", "kNoCompression"),
        ("{block_size=4M}", "{block_size=4M}"),
        (7, 7),
        (True, True),
    ],
)
def test_option_values(text: str | int | bool, value: object) -> None:
    found = option_value(text)
    assert found == value
    assert type(found) is type(value)


@given(st.text())
def test_option_values_keep_text_or_type_it(text: str) -> None:
    try:
        found = option_value(text)
    except UnitError:
        return
    assert found == text if isinstance(found, str) else isinstance(found, int | float)


def test_a_number_of_more_digits_than_python_converts_stays_text() -> None:
    """It ended every command that met one in an unexpected error."""
    assert option_value("9" * 5000) == "9" * 5000
    assert option_value("9" * 30) == int("9" * 30)
    assert option_value("9" * 400) == "9" * 400  # no float is as large
