"""A plot as data, and as SVG: two axes, and series of points on them.

The SVG needs no script. Lines lie in a drawing of 1000 by 1000 that is stretched to the room there
is; marks and words lie above it, placed in per cent, and are not stretched. So words have one size
on a phone, on a desk and in print. Colours are classes of the page's style sheet, for light and
dark.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from html import escape

# Where a point without a value stands: on the lower edge of the plot.
BOTTOM = -math.inf
Place = float | str | None


def si(value: float) -> str:
    """A round number, short: `1.2k`, `30M`, `0.05`."""
    for power, letter in ((9, "G"), (6, "M"), (3, "k")):
        if abs(value) >= 10**power:
            return f"{value / 10**power:.4g}{letter}"
    return f"{value:.4g}"


class Form(StrEnum):
    """What a series is drawn as."""

    LINE = "line"
    STEPS = "steps"  # a line that keeps its value until the next point
    BAND = "band"  # between `low` and `high` of each point
    DOT = "dot"
    RING = "ring"
    STAR = "star"
    DIAMOND = "diamond"
    CROSS = "cross"
    BAR = "bar"  # from 0, along x
    WHISKER = "whisker"  # from `low` to `high` of each point: along x where y has names, else y
    TICK = "tick"  # a short stroke across x
    CROWD = "crowd"  # dots that say nothing under the pointer; many marks become these


@dataclass(frozen=True)
class Point:
    """One point; `x` and `y` are numbers, or names of an axis that has names.

    A line is broken where `y` is None. `hover` is told under the pointer.
    """

    x: Place
    y: Place
    hover: str = ""
    low: float | None = None
    high: float | None = None


@dataclass(frozen=True)
class Series:
    """Points of one form and one tone.

    Attributes:
        tone: of the style sheet: `tuned`, `baseline`, `ink`, `muted`, `bad`, `warn`, `info`.
        name: what the legend says; nothing where it is empty.
        style: more classes: `faint`, `large`, `dash`, `dots`, `thin`.
    """

    form: Form
    tone: str
    points: Sequence[Point]
    name: str = ""
    style: str = ""


@dataclass(frozen=True)
class Axis:
    """One axis: of numbers, or of `names` in their order.

    Attributes:
        log: whether equal ratios have equal lengths; what is not above zero has no place.
        aside: names that stand beside the numbers, at the beginning of the axis.
        low: where it begins; with the data where None, or at 0 where `zero`.
        high: where it ends.
        ticks: places and what is written there; round numbers where there are none.
        format: writes a round number.
    """

    title: str = ""
    names: Sequence[str] = ()
    log: bool = False
    aside: Sequence[str] = ()
    low: float | None = None
    high: float | None = None
    zero: bool = False
    ticks: Sequence[tuple[float, str]] = ()
    format: Callable[[float], str] = si


@dataclass(frozen=True)
class Rule:
    """A line across the plot at a value of y, or of x where `upright`."""

    at: float
    text: str = ""
    tone: str = "baseline"
    upright: bool = False


@dataclass(frozen=True)
class Span:
    """A part of the x axis that is shaded, with a word at its top."""

    low: float
    high: float
    text: str = ""


@dataclass(frozen=True)
class Chart:
    """A plot; `label` is for those who do not see it.

    `height` is in pixels of the page, by default that of one beside text. Where y has names, each
    stands above its row and has no room at the side.
    """

    label: str
    x: Axis
    y: Axis
    series: Sequence[Series]
    rules: Sequence[Rule] = ()
    spans: Sequence[Span] = ()
    height: int = 280


# --- Where things are

_STEPS = (1.0, 2.0, 2.5, 5.0, 10.0)
_TICKS_MAX = 6
_NAMES_MAX = 12  # along x: more would lie over one another
_LETTERS_MAX = 48  # of all names along x: more of them are slanted
_SLANT, _SLANT_LONG = 30, 45  # degrees; the style sheet leaves room below for either
_LONG = 20  # letters of a name
_ROOM = 0.04  # of the axis, on either side of the data
_ASIDE = 0.14  # of the axis, for each name beside the numbers
_ASIDE_MAX = 0.45
_ROW_CENTRE = 0.7  # of a row, whose name stands above its marks
# What an axis holds; greater values stand at its ends.
_LEAST, _MOST = 1e-100, 1e100
_SAME = 1e-9  # of a value: what is closer to it is drawn as one with it


class _Scale:
    """Turns places of an axis into shares of its length, from 0 to 1."""

    def __init__(self, axis: Axis, values: Iterable[Place], centre: float = 0.5) -> None:
        self.axis, self._centre = axis, centre
        numbers = [value for value in values if isinstance(value, int | float)]
        known = [value for value in numbers if self._has_place(value)] or [1.0]
        low = axis.low if axis.low is not None and self._has_place(axis.low) else min(known)
        high = axis.high if axis.high is not None and self._has_place(axis.high) else max(known)
        if axis.zero and not axis.log:
            low, high = min(low, 0.0), max(high, 0.0)
        self._aside = min(_ASIDE_MAX, _ASIDE * len(axis.aside))
        self.start, self.end = self._number(low), self._number(high)
        greatest = max(abs(self.start), abs(self.end))
        least = _SAME if axis.log else _LEAST
        if self.end - self.start <= max(_SAME * greatest, least):
            # One value stands in the middle of a little room of its own, above 0 if it is 0.
            room = _ROOM if axis.log else _ROOM * greatest if greatest > _LEAST else 1.0
            below = 0.0 if axis.zero and low == 0 else room
            self.start, self.end = self.start - below, max(self.start, self.end) + room
            return
        room = _ROOM * (self.end - self.start)
        if axis.low is None and not (axis.zero and low == 0):
            self.start -= room
        if axis.high is None and not (axis.zero and high == 0):
            self.end += room

    def _has_place(self, value: float) -> bool:
        """Whether the axis can hold `value`; beyond these, steps between ticks are no numbers."""
        return _LEAST <= value <= _MOST if self.axis.log else abs(value) <= _MOST

    def _number(self, value: float) -> float:
        return math.log10(value) if self.axis.log else value

    def share(self, place: Place) -> float | None:
        """Where `place` is; None for what has no place."""
        if place is None:
            return None
        if isinstance(place, str):
            if place in self.axis.names:
                return (self.axis.names.index(place) + self._centre) / len(self.axis.names)
            if place in self.axis.aside:
                shares = (self.axis.aside.index(place) + 0.5) / len(self.axis.aside)
                return self._aside * shares
            return None
        if abs(place) > _MOST:
            return 0.02 if place < 0 else 0.98
        if not self._has_place(place):
            return None
        along = (self._number(place) - self.start) / (self.end - self.start)
        begin = self._aside + (0.04 if self._aside else 0.0)
        share = begin + along * (1 - begin)
        return -0.5 if share < -0.5 else 1.5 if share > 1.5 else share

    def ticks(self) -> list[tuple[float, str]]:
        """Shares and what is written there."""
        axis = self.axis
        if axis.names:
            stride = math.ceil(len(axis.names) / _NAMES_MAX)
            shown = [name for n, name in enumerate(axis.names) if n % stride == 0]
            return [(self.share(name) or 0.0, name) for name in shown]
        numbers = list(axis.ticks) or [(value, axis.format(value)) for value in self._round()]
        places = [(self.share(value), label) for value, label in numbers]
        names = [(self.share(name), name) for name in axis.aside]
        return [
            (at, label)
            for at, label in (*names, *places)
            if at is not None and label and _is_inside(at)
        ]

    def _round(self) -> list[float]:
        """Round numbers: powers of ten with 2 and 5 between few of them, or even steps."""
        if self.axis.log:
            first, last = math.floor(self.start), math.ceil(self.end)
            stride = (last - first) // _TICKS_MAX + 1 if last - first > _TICKS_MAX else 1
            for digits in ((1,), (1, 3), (1, 2, 5)):
                powers = range(first, last + 1, stride)
                some = [digit * 10.0**power for power in powers for digit in digits]
                if sum(self.start <= math.log10(value) <= self.end for value in some) >= 3:
                    return some
            return _even(10**self.start, 10**self.end)
        return _even(self.start, self.end)


def _even(low: float, high: float) -> list[float]:
    """Multiples of 1, 2, 2.5 or 5 times a power of ten, at most `_TICKS_MAX`."""
    rough = (high - low) / (_TICKS_MAX - 1)
    power = 10.0 ** math.floor(math.log10(rough))
    step = next(power * each for each in _STEPS if power * each >= rough * (1 - 1e-9))
    first, last = math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9)
    digits = 2 - math.floor(math.log10(step))
    return [round(number * step, digits) for number in range(first, last + 1)]


def _is_inside(share: float) -> bool:
    """Whether a share is within the plot, with what rounding may add."""
    return -1e-9 <= share <= 1 + 1e-9


# A point, and where it is as shares of both axes.
_Placed = tuple[Point, float, float]


# --- The drawing

_SYMBOLS = {
    Form.STAR: "M0-8 2-2.6 7.8-2.5 3.2 1.1 4.8 6.6 0 3.3-4.8 6.6-3.2 1.1-7.8-2.5-2-2.6Z",
    Form.DIAMOND: "M0-6 5 0 0 6-5 0Z",
    Form.CROSS: "M-4-4 4 4M-4 4 4-4",
    Form.TICK: "M0-9V9",
}
_MARKS = frozenset({Form.DOT, Form.RING, Form.STAR, Form.DIAMOND, Form.CROSS})
# In a plot with more marks than this, a series with more than a few is one path of dots, which say
# nothing under the pointer: the page stays small.
HOVERS_MAX = 300
_FEW = 30
# Of a larger crowd one dot is drawn in each cell of a grid as fine as the dots: so a page with any
# number of trials stays below a megabyte.
DOTS_MAX = 2_000
_CELLS = (80, 40)


def draw(chart: Chart) -> str:
    """The plot as a figure of HTML."""
    points = [point for series in chart.series for point in series.points]
    xs, ys = [point.x for point in points], [point.y for point in points]
    # The ends of intervals lie along x where y has names.
    (xs if chart.y.names else ys).extend(end for p in points for end in (p.low, p.high))
    xs.extend(span.low for span in chart.spans)
    for rule in chart.rules:
        (xs if rule.upright else ys).append(rule.at)
    x, y = _Scale(chart.x, xs), _Scale(chart.y, ys, _ROW_CENTRE)
    stretched, above = list(_grid(chart, x, y)), list(_words(chart, x, y))
    shown = _as_drawn(chart.series)
    for series in shown:
        lines, marks = _series(series, x, y)
        stretched += lines
        above += marks
    slanted = {0: "", _SLANT: " slanted", _SLANT_LONG: " slanted long"}[_slanted(chart)]
    named = " named" if chart.y.names else slanted
    titled = f'<p class="axis">{escape(chart.y.title)}</p>' if chart.y.title else ""
    many = max((len(s.points) for s in shown if s.form is Form.CROWD), default=0)
    thinned = ""
    if many > DOTS_MAX:
        thinned = f'<p class="axis">Of {many:,} marks one is drawn where several lie.</p>'
    return (
        f'<figure class="chart{named}" role="img" aria-label="{escape(chart.label)}">{titled}'
        f'<div class="area"><svg class="lines" viewBox="0 0 1000 1000" height="{chart.height}" '
        f'preserveAspectRatio="none" aria-hidden="true">{"".join(stretched)}</svg>'
        f'<svg class="over" height="{chart.height}" aria-hidden="true">{"".join(above)}</svg></div>'
        f'<p class="axis x">{escape(chart.x.title)}</p>{_legend(shown)}{thinned}</figure>'
    )


def _as_drawn(series: Sequence[Series]) -> Sequence[Series]:
    """`series`; those with many marks as a crowd where there are too many of them."""
    marks = [each for each in series if each.form in _MARKS]
    if sum(len(each.points) for each in marks) <= HOVERS_MAX:
        return series
    return [
        replace(each, form=Form.CROWD) if each in marks and len(each.points) > _FEW else each
        for each in series
    ]


def _grid(chart: Chart, x: _Scale, y: _Scale) -> Iterator[str]:
    """Lines at the ticks, shaded spans, and rules."""
    for _, low, high in _spans(chart, x):
        width = max(1000 * (high - low), 3.0)
        place = f'x="{1000 * low:.0f}" y="0" width="{width:.0f}" height="1000"'
        yield f'<rect class="span" {place}/>'
    horizontal = [] if chart.y.names else [f"M0 {_down(at)}H1000" for at, _ in y.ticks()]
    upright = [f"M{1000 * at:.0f} 0V1000" for at, _ in x.ticks()] if chart.y.names else []
    yield f'<path class="grid" d="{"".join(horizontal + upright)}M0 1000H1000"/>'
    for rule, at in _rules(chart, x, y):
        path = f"M{1000 * at:.0f} 0V1000" if rule.upright else f"M0 {_down(at)}H1000"
        yield f'<path class="line dash {rule.tone}" d="{path}"/>'


def _spans(chart: Chart, x: _Scale) -> Iterator[tuple[Span, float, float]]:
    """The spans that have a place, and where each begins and ends."""
    for span in chart.spans:
        low, high = x.share(span.low), x.share(span.high)
        if low is not None and high is not None:
            yield span, min(max(low, 0.0), 1.0), min(max(high, 0.0), 1.0)


def _rules(chart: Chart, x: _Scale, y: _Scale) -> Iterator[tuple[Rule, float]]:
    """The rules that lie within the plot, and where."""
    for rule in chart.rules:
        at = (x if rule.upright else y).share(rule.at)
        if at is not None and _is_inside(at):
            yield rule, at


def _words(chart: Chart, x: _Scale, y: _Scale) -> Iterator[str]:
    """What is written at ticks, rules and spans."""
    slanted = _slanted(chart)
    for at, label in x.ticks():
        if slanted:
            turned = f'text-anchor="end" transform="translate(0 14) rotate(-{slanted})"'
            words = f'<text class="tick" {turned}>{escape(label, quote=False)}</text>'
            yield f'<svg x="{100 * at + 1:.2f}%" y="100%" overflow="visible">{words}</svg>'
        else:
            anchor = "start" if at < 0.02 else "end" if at > 0.98 else "middle"
            yield _text(at, 0.0, label, f'class="tick" text-anchor="{anchor}" dy="1.4em"')
    for number, name in enumerate(chart.y.names):
        # At the top of its row, from the left edge on.
        yield _text(0.0, 1 - number / len(chart.y.names), name, 'class="name" dy="1em"')
    for at, label in [] if chart.y.names else y.ticks():
        yield _text(0.0, at, label, 'class="tick" text-anchor="end" dx="-8" dy="0.32em"')
    for rule, share in _rules(chart, x, y):
        place = (share, 1.0) if rule.upright else (1.0, share)
        anchor = "middle" if rule.upright else "end"
        if rule.text:
            yield _text(*place, rule.text, f'class="tick" text-anchor="{anchor}" dy="-0.4em"')
    for span, low, high in _spans(chart, x):
        if span.text:
            style = 'class="tick warn" text-anchor="middle" dy="1.1em"'
            yield _text((low + high) / 2, 1.0, span.text, style)


def _slanted(chart: Chart) -> int:
    """By how many degrees names along x are turned that would lie over one another, or 0.

    A low plot is a narrow one, too.
    """
    if sum(map(len, chart.x.names)) <= _LETTERS_MAX * min(1.0, chart.height / 320):
        return 0
    return _SLANT_LONG if max(map(len, chart.x.names)) > _LONG else _SLANT


def _text(x: float, y: float, label: str, style: str) -> str:
    place = f'x="{100 * x:.2f}%" y="{100 * (1 - y):.2f}%"'
    return f"<text {place} {style}>{escape(label, quote=False)}</text>"


def _down(share: float) -> str:
    return f"{1000 * (1 - share):.0f}"


def _series(series: Series, x: _Scale, y: _Scale) -> tuple[list[str], list[str]]:
    """What of a series is stretched, and what is not."""

    def place(point: Point) -> _Placed | None:
        across, share = x.share(point.x), y.share(point.y)
        if across is None or share is None:
            return None
        return point, across, 1 - share if y.axis.names else share

    placed = [place(point) for point in series.points]
    classes = f"{series.form} {series.tone} {series.style}".strip()
    if series.form in (Form.LINE, Form.STEPS):
        line = f"line {series.tone} {series.style}"
        return [f'<path class="{line}" d="{_path(placed, series.form)}"/>'], []
    known = [each for each in placed if each is not None]
    if series.form is Form.BAND:
        return [_band(known, y, series)], []
    if series.form in (Form.BAR, Form.WHISKER):
        return [_intervals(known, x, y, series)], []
    known = [(p, a, s) for p, a, s in known if _is_inside(a) and _is_inside(s)]
    if series.form is Form.CROWD:
        if len(known) > DOTS_MAX:
            across_cells, down_cells = _CELLS
            cells = {(int(a * across_cells), int(s * down_cells)): (p, a, s) for p, a, s in known}
            known = list(cells.values())
        path = "".join(f"M{1000 * across:.0f} {_down(share)}h0" for _, across, share in known)
        return [f'<path class="{classes}" d="{path}"/>'], []
    return [], [_mark(series, classes, *each) for each in known]


def _path(placed: Sequence[_Placed | None], form: Form) -> str:
    path, pen, level = [], "M", math.nan
    for number, each in enumerate(placed, 1):
        if each is None:
            pen = "M"
            continue
        _, across, share = each
        more = number < len(placed) and placed[number] is not None
        if form is Form.STEPS and pen == "L" and share == level and more:
            continue  # on the way to the next step
        level = share
        if form is Form.STEPS and pen == "L":
            path.append(f"H{1000 * across:.1f}")
        path.append(f"{pen}{1000 * across:.1f} {1000 * (1 - share):.1f}")
        pen = "L"
    return "".join(path)


def _band(known: Sequence[_Placed], y: _Scale, series: Series) -> str:
    upper = [(across, y.share(point.high)) for point, across, _ in known]
    lower = [(across, y.share(point.low)) for point, across, _ in reversed(known)]
    ends = [f"{1000 * a:.1f} {1000 * (1 - s):.1f}" for a, s in (*upper, *lower) if s is not None]
    return f'<path class="area-of {series.tone}" d="M{"L".join(ends)}Z"/>' if ends else ""


def _intervals(known: Sequence[_Placed], x: _Scale, y: _Scale, series: Series) -> str:
    is_bar, path = series.form is Form.BAR, []
    upright = not is_bar and not y.axis.names
    for point, across, share in known:
        scale = y if upright else x
        low = scale.share(0.0 if is_bar else point.low)
        high = scale.share(point.x if is_bar else point.high)
        if low is None or high is None:
            continue
        if upright:
            path.append(f"M{1000 * across:.1f} {_down(low)}V{_down(high)}")
        else:
            left, right = (1000 * min(max(end, 0.0), 1.0) for end in (low, high))
            path.append(f"M{left:.1f} {_down(share)}H{right:.1f}")
    return f'<path class="{series.form} {series.tone} {series.style}" d="{"".join(path)}"/>'


def _mark(series: Series, classes: str, point: Point, across: float, share: float) -> str:
    x, y = f"{100 * across:.2f}%", f"{100 * (1 - share):.2f}%"
    title = f"<title>{escape(point.hover, quote=False)}</title>" if point.hover else ""
    if series.form in (Form.DOT, Form.RING):
        radius = 6 if "large" in series.style else 4
        return f'<circle class="{classes}" cx="{x}" cy="{y}" r="{radius}">{title}</circle>'
    # A symbol about its own origin, in a drawing that begins at the place.
    shape = f'<path class="{classes}" d="{_SYMBOLS[series.form]}">{title}</path>'
    return f'<svg x="{x}" y="{y}" overflow="visible">{shape}</svg>'


def _legend(series: Sequence[Series]) -> str:
    items = []
    for each in (one for one in series if one.name):
        form = Form.DOT if each.form is Form.CROWD else each.form
        classes = f"{form} {each.tone} {each.style}".strip()
        if form in _SYMBOLS:
            symbol = f'<path class="{classes}" d="{_SYMBOLS[each.form]}"/>'
            shape = f'<g transform="translate(8 6)">{symbol}</g>'
        elif form in (Form.DOT, Form.RING):
            shape = f'<circle class="{classes}" cx="8" cy="6" r="4"/>'
        else:
            kind = "band" if each.form is Form.BAND else f"line {each.style}"
            shape = f'<path class="{kind} {each.tone}" d="M0 6H16"/>'
        mark = f'<svg width="16" height="12" overflow="visible" aria-hidden="true">{shape}</svg>'
        items.append(f"<li>{mark} {escape(each.name, quote=False)}</li>")
    return f'<ul class="legend" aria-hidden="true">{"".join(items)}</ul>' if items else ""
