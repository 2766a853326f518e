"""Bytes and durations: text to number and back, and option values as the user writes them.

Sizes take the binary units B, KiB, MiB, GiB, TiB and the decimal units kB, MB, GB. The bare
letters of the engines (`4M`) are refused here, because people read them both ways; in an option's
value they pass untouched as text, because there the engine is the one that reads them.
"""

from __future__ import annotations

import difflib
import math
import re
from decimal import Decimal

BYTES_PER_UNIT = {
    "B": 1,
    "KiB": 2**10,
    "MiB": 2**20,
    "GiB": 2**30,
    "TiB": 2**40,
    "kB": 10**3,
    "MB": 10**6,
    "GB": 10**9,
}
SECONDS_PER_UNIT = {
    "h": Decimal(3600),
    "m": Decimal(60),
    "s": Decimal(1),
    "ms": Decimal("0.001"),
}
_BINARY = ("TiB", "GiB", "MiB", "KiB")
BYTES_ALLOWED = f"a whole number of bytes, or one with a unit of {', '.join(BYTES_PER_UNIT)}"
DURATION_ALLOWED = "seconds as a number, or with units h, m, s, ms, largest first (90s, 1h30m)"

# No real size or time is this large; the bound keeps every number inside 64 bits.
_LARGEST_BYTES = 2**63 - 1
_LARGEST_S = 10 * 365 * 86400

# What people write for the binary units.
_UNIT_MEANT = {"k": "KiB", "m": "MiB", "g": "GiB", "t": "TiB", "b": "B"}
_BYTES = re.compile(r"(\d+(?:\.\d+)?)\s*([A-Za-z]*)", re.ASCII)
_DURATION = re.compile(r"(?:\d+(?:\.\d+)?(?:ms|[hms]))+", re.ASCII)
_DURATION_PART = re.compile(r"(\d+(?:\.\d+)?)(ms|[hms])", re.ASCII)
_INTEGER = re.compile(r"-?(?:0|[1-9]\d*)", re.ASCII)
DIGITS_MAX = 30  # more than any size or count has; one of 400 becomes no float
_FLOAT = re.compile(r"-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][-+]?\d+)?", re.ASCII)


def is_digits(text: str) -> bool:
    """Whether `text` is a whole number from 0: `int` refuses "²", a digit, and 4,301 of them."""
    return text.isascii() and text.isdigit() and len(text) <= DIGITS_MAX


SHARE_ALLOWED = "a share above 0 and below 100%, such as 5% or 0.05"


class UnitError(ValueError):
    """Text that is not a size or a duration; the parts are there for an `InputError`."""

    def __init__(self, found: object, allowed: str, nearest: str = "") -> None:
        self.found = found
        self.allowed = allowed
        self.nearest = nearest
        hint = f"; did you mean {nearest}?" if nearest else ""
        super().__init__(f"found {found!r}; allowed: {allowed}{hint}")


def parse_bytes(value: object) -> int:
    """A size in bytes: a whole number, or text such as `4096`, `4MiB`, `1.5 GiB`, `10MB`.

    Raises `UnitError` (a `ValueError`) for anything else, a fraction of a byte and a negative
    number included.
    """
    if isinstance(value, int) and not isinstance(value, bool):
        if not 0 <= value <= _LARGEST_BYTES:
            raise UnitError(value, f"0 to {_LARGEST_BYTES} bytes")
        return value
    if not isinstance(value, str):
        raise UnitError(value, BYTES_ALLOWED)
    match = _BYTES.fullmatch(value.strip())
    if match is None:
        raise UnitError(value, BYTES_ALLOWED, _nearest_size(value))
    number, unit = match.groups()
    if unit and unit not in BYTES_PER_UNIT:
        raise UnitError(value, BYTES_ALLOWED, _nearest_size(value))
    size = Decimal(number) * BYTES_PER_UNIT[unit or "B"]
    if size != size.to_integral_value():
        raise UnitError(value, f"{BYTES_ALLOWED}; this is {size.normalize():f} bytes")
    if size > _LARGEST_BYTES:
        raise UnitError(value, f"0 to {_LARGEST_BYTES} bytes")
    return int(size)


def _nearest_size(text: str) -> str:
    match = re.fullmatch(r"(\d+(?:\.\d+)?)\s*([A-Za-z]+)", text.strip(), re.ASCII)
    if match is None:
        return ""
    number, unit = match.groups()
    meant = _UNIT_MEANT.get(unit.lower())
    if meant is None:
        by_case = {name.lower(): name for name in BYTES_PER_UNIT}
        close = difflib.get_close_matches(unit.lower(), by_case, n=1, cutoff=0.6)
        meant = by_case[close[0]] if close else None
    return "" if meant is None else f"{number}{meant}"


def format_bytes(size_bytes: int) -> str:
    """`size_bytes` for people: the largest binary unit, at most two decimals (`4MiB`, `1.18MiB`).

    Rounded where two decimals are not enough, so it is not the inverse of `parse_bytes`.
    """
    for unit in _BINARY:
        if abs(size_bytes) >= BYTES_PER_UNIT[unit]:
            return f"{_two_decimals(size_bytes / BYTES_PER_UNIT[unit])}{unit}"
    return f"{size_bytes}B"


def exact_bytes(size_bytes: float) -> str:
    """`size_bytes` in the largest binary unit of which it is a whole multiple; empty for none."""
    for unit in _BINARY:
        if size_bytes and size_bytes % BYTES_PER_UNIT[unit] == 0:
            return f"{size_bytes // BYTES_PER_UNIT[unit]}{unit}"
    return ""


def _two_decimals(number: float) -> str:
    return f"{number:.2f}".rstrip("0").rstrip(".")


def parse_duration(value: object) -> float:
    """A duration in seconds: a number, or text such as `90`, `90s`, `500ms`, `1h30m`.

    Raises `UnitError` (a `ValueError`) for anything else, negative and endless times included.
    """
    if isinstance(value, int | float) and not isinstance(value, bool):
        if not 0 <= value <= _LARGEST_S:
            raise UnitError(value, f"0 to {_LARGEST_S} seconds")
        return float(value)
    if not isinstance(value, str):
        raise UnitError(value, DURATION_ALLOWED)
    text = value.strip()
    if re.fullmatch(r"\d+(\.\d+)?", text, re.ASCII):
        return parse_duration(float(text))
    if _DURATION.fullmatch(text) is None:
        raise UnitError(value, DURATION_ALLOWED)
    parts = _DURATION_PART.findall(text)
    sizes = [SECONDS_PER_UNIT[unit] for _, unit in parts]
    if sizes != sorted(set(sizes), reverse=True):
        raise UnitError(value, DURATION_ALLOWED)
    total = sum(Decimal(number) * SECONDS_PER_UNIT[unit] for number, unit in parts)
    return parse_duration(float(total))


def parse_share(value: object) -> float:
    """A share of a whole as a fraction: text such as `5%` or `0.05`, or a number such as 0.05.

    Raises `UnitError` for anything else, and for what is not above 0 and below 1.
    """
    # A number below 0.0001 has an exponent as text.
    number = r"(\d+(?:\.\d+)?(?:e-\d+)?)\s*(%?)"
    match = re.fullmatch(number, str(value).strip(), re.ASCII)
    if isinstance(value, bool) or match is None:
        raise UnitError(value, SHARE_ALLOWED)
    share = float(match[1]) / (100 if match[2] else 1)
    if not 0 < share < 1:
        raise UnitError(value, SHARE_ALLOWED)
    return share


def format_duration(seconds: float) -> str:
    """`seconds` for people: `500ms`, `2.5s`, `1m50s`, `1h30m`; seconds rounded to a tenth.

    Below one second, whole milliseconds.
    """
    if seconds < 1:
        milliseconds = round(seconds * 1000)
        if milliseconds < 1000:
            return f"{milliseconds}ms" if milliseconds else "0s"
    tenths = round(seconds * 10)
    minutes, tenths = divmod(tenths, 600)
    hours, minutes = divmod(minutes, 60)
    parts = [f"{hours}h" if hours else "", f"{minutes}m" if minutes else ""]
    if tenths or not (hours or minutes):
        parts.append(f"{_two_decimals(tenths / 10)}s")
    return "".join(parts)


def format_share(share: float) -> str:
    """Two digits that matter, as per cent: `3.2 %`, `57 %`, `1,571 %`."""
    return f"{100 * share:.2g} %" if share < 0.995 else f"{100 * share:,.0f} %"


def format_ratio(ratio: float) -> str:
    """Two decimals; three close to 1, where the second does not tell better from equal.

    Below a tenth, two digits that matter: of a stall 250 times shorter two decimals leave 0.
    """
    if 0 < ratio < 0.1:
        return f"{ratio:.2g}"
    return f"{ratio:.3f}" if 0.95 < ratio < 1.05 else f"{ratio:.2f}"


def whole_number(value: str | int) -> int:
    """`value` as a number. Raises ValueError for one that is longer than any number of ours."""
    if (isinstance(value, str) and len(value) > DIGITS_MAX) or abs(int(value)) >= 10**DIGITS_MAX:
        raise ValueError(f"a whole number of at most {DIGITS_MAX} digits")
    return int(value)


def option_value(value: str | int | float | bool) -> str | int | float | bool:
    """An option's value as the user wrote it, typed; what is already typed comes back as it is.

    Text with one of our byte units (`4MiB`) becomes a number of bytes; whole numbers, decimals and
    `true`/`false` become typed. All other text stays as it is, the engines' own suffixes (`4M`),
    enumerations and nested options included. Raises `UnitError` for a fraction of a byte.
    """
    if not isinstance(value, str):
        return value
    text = value.strip()
    if text in ("true", "false"):
        return text == "true"
    if _INTEGER.fullmatch(text) and len(text) <= DIGITS_MAX:
        return int(text)
    # A number that overflows to infinity is not one the engine would read as we do: leave it.
    if _FLOAT.fullmatch(text) and math.isfinite(float(text)):
        return float(text)
    if is_size_text(text):
        return parse_bytes(text)
    return value


def option_text_allowed(text: str) -> str:
    """What an option's text has to be instead, or nothing when `text` is one value."""
    if not text.strip() or not text.isprintable():
        return "text that is not empty and has no control characters"
    # The engines separate options by `;`: outside braces it would smuggle in another option.
    if not text.strip().startswith("{") and any(sign in text for sign in ";="):
        return "one value; nested options go in braces or under their dotted name"
    return ""


def is_size_text(text: str) -> bool:
    """Whether `text` is a number followed by one of our byte units."""
    match = _BYTES.fullmatch(text.strip())
    return match is not None and match.group(2) in BYTES_PER_UNIT
