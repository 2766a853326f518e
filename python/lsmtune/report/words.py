"""Numbers, units and metrics as people read them."""

from __future__ import annotations

import math
from collections.abc import Mapping
from datetime import UTC, datetime

from lsmtune.model.config import OptionValue, option_text
from lsmtune.model.goal import Direction
from lsmtune.model.metrics import METRICS, label_of, unit_of
from lsmtune.model.verdict import GuardResult, MetricRatio, Verdict
from lsmtune.report.document import NOT_KNOWN
from lsmtune.report.tables import GAIN, Censored
from lsmtune.units import (
    UnitError,
    format_bytes,
    format_duration,
    format_ratio,
    format_share,
    parse_bytes,
)

_PRODUCT = " * "  # in the metric of a goal with several objectives
TIMES = "\N{MULTIPLICATION SIGN}"


def metric_label(metric: str) -> str:
    """`latency_us_p99` as `p99 latency`: without the unit, which `quantity` shows.

    Also of an objective's label, `readrandom.latency_us_p99`, and of a product of several.
    """
    if _PRODUCT in metric:
        return "weighted objectives"
    phase, _, name = metric.rpartition(".")
    if phase and name in METRICS:
        return f"{metric_label(name)} of {phase}"
    return label_of(metric)


def metric_unit(metric: str) -> str:
    """The unit in which `quantity` and the axes show `metric`; empty for plain numbers."""
    if _PRODUCT in metric:
        return ""
    name = metric.rpartition(".")[2]
    return unit_of(name if name in METRICS else metric)


def quantity(metric: str, value: float | None) -> str:
    """`value` of `metric` with its unit."""
    if value is None or not math.isfinite(value):
        return NOT_KNOWN
    if metric == GAIN:
        return ratio(value)
    unit = metric_unit(metric)
    if unit == "bytes":
        return format_bytes(round(value))
    if unit == "s":
        return seconds(value) if value >= 1 else duration_us(1e6 * value)
    if unit == "µs":
        return duration_us(value)
    return f"{number(value)} {unit}".strip()


def size(value: float | None) -> str:
    """A number of bytes."""
    return quantity("database_bytes", value)


def number(value: float | None) -> str:
    """Three or four digits that matter: `1,234,567`, `12.3`, `0.0012`."""
    if value is None or not math.isfinite(value):
        return NOT_KNOWN
    if value == int(value) or abs(value) >= 1000:
        return f"{value:,.0f}"
    return f"{value:.4g}"


def ratio(value: float | None) -> str:
    """A ratio with its sign."""
    if value is None or not math.isfinite(value):
        return NOT_KNOWN
    if abs(value) >= 100:
        return f"{value:,.0f}{TIMES}"
    return f"{format_ratio(value)}{TIMES}"


def interval(measured: Verdict | MetricRatio | GuardResult) -> str:
    """Both ends of the interval of a ratio, as in `0.91 to 0.95`; empty where there is none."""
    if measured.ratio_low is None and measured.ratio_high is None:
        return ""
    return f"{plain_ratio(measured.ratio_low)} to {plain_ratio(measured.ratio_high)}"


def plain_ratio(value: float | None) -> str:
    """A ratio without its sign: `0.81`, `1.013`."""
    return ratio(value).removesuffix(TIMES)


def deviation(fraction: float | None) -> str:
    """A deviation or an effect in per cent: `0.0321` as `3.2 %`, `0.25` as `25 %`."""
    if fraction is None or not math.isfinite(fraction):
        return NOT_KNOWN
    if 0 < fraction < 1e-4:
        return "< 0.01 %"
    return format_share(fraction)


def spread(fraction: float | None) -> str:
    """Half of a range over its middle: `±4.1 %`."""
    return "" if fraction is None else f"±{deviation(fraction)}"


def sentence(line: str) -> str:
    """`line` with a capital."""
    return line[:1].upper() + line[1:]


def duration_us(value: float | None) -> str:
    """Microseconds in the unit that keeps the number short."""
    if value is None or not math.isfinite(value):
        return NOT_KNOWN
    if value >= 1e6:
        return f"{number(value / 1e6)} s"
    return f"{number(value / 1e3)} ms" if value >= 1e3 else f"{number(value)} µs"


def percent(fraction: float) -> str:
    """`0.95` as `95 %`."""
    return f"{100 * fraction:.4g} %"


def share(fraction: float) -> str:
    """A measured share in whole percent: `0.123` as `12 %`, and less than one as `< 1 %`."""
    if not math.isfinite(fraction):
        return NOT_KNOWN
    return "< 1 %" if 0 < fraction < 0.005 else f"{100 * fraction:.0f} %"


def reached(censored: Censored | None) -> str:
    """Where a pruned trial was stopped: `after 2s`, `at 5,000 keys`, `at step 3`."""
    if censored is None:
        return ""
    if censored.reached_keys is not None:
        return f"at {number(censored.reached_keys)} keys"
    if censored.reached_s is None:
        return f"at step {censored.rung:,}"
    return f"after {seconds(censored.reached_s)}"


def option(value: OptionValue | None, unit: str = "") -> str:
    """An option's value as an engine reads it; a size in short form where that loses nothing."""
    if value is None:
        return NOT_KNOWN
    if unit == "bytes" and isinstance(value, int) and not isinstance(value, bool) and value >= 0:
        short = format_bytes(value)
        try:
            return short if parse_bytes(short) == value else option_text(value)
        except UnitError:  # rounded: `7.18MiB` is no whole number of bytes
            pass
    return option_text(value)


def option_with_size(value: OptionValue | None, unit: str = "") -> str:
    """As `option`, with about how much it is beside a size that has no short form."""
    shown = option(value, unit)
    if unit == "bytes" and isinstance(value, int) and value >= 1024 and shown == str(value):
        return f"{shown} (~{format_bytes(value)})"
    return shown


def options_line(options: Mapping[str, OptionValue]) -> str:
    """`name=value, name=value`; `default` when there are none."""
    return ", ".join(f"{name}={option_text(value)}" for name, value in options.items()) or "default"


def moment(unix_s: float | None) -> str:
    """A time in UTC, to the minute."""
    if unix_s is None:
        return NOT_KNOWN
    return datetime.fromtimestamp(unix_s, UTC).strftime("%Y-%m-%d %H:%M UTC")


def count(many: int, noun: str) -> str:
    """`1 pair`, `5 pairs`."""
    return f"{many:,} {noun}" if many == 1 else f"{many:,} {noun}s"


def rank(low: int, high: int) -> str:
    """`1`, or `2 to 5`."""
    return str(low) if low == high else f"{low} to {high}"


def direction_words(direction: str) -> str:
    """`higher is better` or `lower is better`; empty where nobody said which."""
    if not direction:
        return ""
    return "higher is better" if direction == Direction.MAXIMIZE else "lower is better"


def none_best(*, valued: bool) -> str:
    """What no trial did, in a study without a best one; `valued`: some trials have a value."""
    return "met what the study asks of one" if valued else "gave a value"


def outcome(name: str) -> str:
    """`out_of_memory` as `out of memory`."""
    return name.replace("_", " ")


def seconds(elapsed_s: float | None) -> str:
    """A duration."""
    if elapsed_s is None or not math.isfinite(elapsed_s) or elapsed_s < 0:
        return NOT_KNOWN
    return format_duration(elapsed_s)
