"""Plots: places, ticks, and markup that holds any data."""

from __future__ import annotations

import math
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st
from page import read

from lsmtune.report.chart import (
    BOTTOM,
    DOTS_MAX,
    HOVERS_MAX,
    Axis,
    Chart,
    Form,
    Place,
    Point,
    Rule,
    Series,
    Span,
    draw,
    si,
)

EVIL = '</title></svg><script>alert(1)</script>"&'
POINTS = [Point(n, value, low=value - 1, high=value + 1) for n, value in enumerate((2.0, 4.0, 8.0))]
# Where a mark is, in per cent; where a line goes, in thousandths.
_PLACES = re.compile(r' (?:cx|cy|x|y)="(-?[\d.]+)%"')
_PATHS = re.compile(r' d="([^"]*)"')


def drawn(chart: Chart) -> str:
    html = draw(chart)
    assert read(html).unbalanced == []
    return html


def of(points: list[Point], form: Form = Form.DOT, x: Axis | None = None, **more: Axis) -> Chart:
    return Chart("a plot", x or Axis(), more.get("y", Axis()), [Series(form, "tuned", points)])


def of_series(*series: Series) -> Chart:
    return Chart("a plot", Axis(), Axis(), series)


def places(html: str) -> list[tuple[float, float]]:
    """Where the round marks are: right and down, from 0 to 1."""
    found = re.findall(r'cx="([\d.]+)%" cy="([\d.]+)%"', html)
    return [(float(x) / 100, float(y) / 100) for x, y in found]


def ticks(html: str) -> list[str]:
    return re.findall(r'<text [^>]*class="tick"[^>]*>([^<]*)</text>', html)


@pytest.mark.parametrize("form", Form)
def test_every_form_is_drawn_and_named(form: Form) -> None:
    html = drawn(Chart("a plot", Axis("x"), Axis("y"), [Series(form, "warn", POINTS, "its name")]))
    area, legend = html.split('<ul class="legend"')
    assert re.search(r'<(path|circle) class="[^"]* warn[^>]* (d="M|cx=)', area)
    assert " warn" in legend
    assert "its name" in legend


def test_equal_ratios_have_equal_lengths_on_a_log_axis() -> None:
    points = [Point(10.0**power, 1.0) for power in (0, 1, 2)] + [Point(0.0, 1.0), Point(-1.0, 1.0)]
    across = [x for x, _ in places(drawn(of(points, x=Axis(log=True))))]
    assert len(across) == 3  # what is not above zero has no place
    assert across[1] - across[0] == pytest.approx(across[2] - across[1], abs=1e-3)


def test_rows_of_names_stand_from_the_top_down_with_every_name() -> None:
    names = [f"option {n}" for n in range(30)]
    html = drawn(of([Point(1.0, name) for name in names], y=Axis(names=names)))
    down = [y for _, y in places(html)]
    assert down == sorted(down)
    assert re.findall(r'class="name"[^>]*>([^<]*)<', html) == names


def test_names_along_x_are_a_dozen_at_most_and_slanted_where_they_are_long() -> None:
    few = drawn(of([Point("a", 1.0), Point("b", 2.0)], x=Axis(names=["a", "b"])))
    assert [x for x, _ in places(few)] == [0.25, 0.75]
    assert "slanted" not in few
    names = [f"some_long_name_{n}" for n in range(30)]
    many = drawn(of([Point(name, 1.0) for name in names], x=Axis(names=names)))
    assert "slanted" in many
    assert len(places(many)) == 30
    assert len(re.findall("some_long_name", many)) <= 12


def test_names_aside_stand_before_the_numbers() -> None:
    points = [Point("-1", 1.0), Point("inactive", 1.0), Point(100, 1.0), Point(10_000, 1.0)]
    html = drawn(of(points, x=Axis(log=True, aside=["-1", "inactive"])))
    across = [x for x, _ in places(html)]
    assert across == sorted(across)
    assert across[2] - across[1] > 0.05
    assert {"-1", "inactive"} <= set(ticks(html))


def test_a_point_of_an_unknown_name_or_without_a_value_has_no_place() -> None:
    points = [Point("c", 1.0), Point("a", None), Point("a", math.nan), Point("a", 1.0)]
    assert len(places(drawn(of(points, x=Axis(names=["a", "b"]))))) == 1


def test_what_has_no_value_stands_at_the_bottom_and_moves_nothing() -> None:
    alone = places(drawn(of([Point(1, 5.0), Point(2, 6.0)])))
    both = places(drawn(of([Point(1, 5.0), Point(2, 6.0), Point(1, BOTTOM), Point(2, math.inf)])))
    assert both[:2] == alone
    assert both[2][1] > 0.95
    assert both[3][1] < 0.05


def test_a_line_is_broken_where_there_is_no_value() -> None:
    html = drawn(of([Point(1, 1.0), Point(2, None), Point(3, 3.0), Point(4, 1.0)], Form.LINE))
    (path,) = re.findall(r'class="line tuned [^"]*" d="([^"]*)"', html)
    assert (path.count("M"), path.count("L")) == (2, 1)
    steps = drawn(of([Point(1, 1.0), Point(2, 3.0)], Form.STEPS))
    assert re.search(r'd="M[\d. ]+H[\d.]+L[\d. ]+"', steps)


def test_marks_rules_and_words_beyond_the_axis_are_left_out() -> None:
    axis = Axis(low=0.0, high=10.0)
    points = [Point(5.0, 1.0), Point(50.0, 1.0), Point(-50.0, 1.0)]
    rules = [Rule(5.0, "inside", upright=True), Rule(70.0, "outside", upright=True)]
    series = [Series(Form.DOT, "tuned", points)]
    html = drawn(Chart("a plot", axis, Axis(), series, rules, [Span(8, 80)]))
    assert len(places(html)) == 1
    assert "inside" in html
    assert "outside" not in html
    assert '<rect class="span" x="800" y="0" width="200"' in html


def test_a_limit_of_an_axis_that_it_cannot_have_is_that_of_the_data() -> None:
    """`<= 0 * baseline` as a guard put the beginning of a log axis at 0."""
    html = drawn(of([Point(1.0, 1.0), Point(10.0, 1.0)], x=Axis(log=True, low=0.0, high=math.nan)))
    assert len(places(html)) == 2


@pytest.mark.parametrize(
    ("low", "high", "log", "told"),
    [
        (0.0, 100.0, False, ["0", "20", "40", "60", "80", "100"]),
        (0.0, 3e6, False, ["0", "1M", "2M", "3M"]),
        (1e-16, 5e-16, False, ["1e-16", "2e-16", "3e-16", "4e-16", "5e-16"]),
        (1.0, 1e9, True, ["1", "100", "10k", "1M", "100M"]),
        (1.0, 100.0, True, ["1", "10", "100"]),
        (0.5, 2.0, True, ["0.5", "1", "2"]),
        (1.0, 1.2, True, ["1", "1.05", "1.1", "1.15", "1.2"]),
    ],
)
def test_ticks_are_round(low: float, high: float, log: bool, told: list[str]) -> None:
    html = drawn(of([Point(low, 1.0), Point(high, 1.0)], x=Axis(log=log, low=low, high=high)))
    # Those of y, where there is one value, come after.
    assert ticks(html)[: len(told)] == told


def test_one_value_stands_in_the_middle() -> None:
    for value in (0.0, 7.0, -7.0, 1e20, 1e-200):
        assert places(drawn(of([Point(value, value)]))) == [(0.5, 0.5)]
    assert places(drawn(of([Point(0.0, 0.0)], y=Axis(zero=True)))) == [(0.5, 1.0)]


def test_words_of_others_are_escaped() -> None:
    series = [
        Series(form, "tuned", [Point(EVIL, EVIL, EVIL)], EVIL) for form in (Form.STAR, Form.DOT)
    ]
    names = Axis(EVIL, names=[EVIL])
    for y in (names, Axis(EVIL, names=[EVIL, "b"])):
        html = drawn(Chart(EVIL, names, y, series, [Rule(0.5, EVIL)]))
        page = read(html)
        assert page.plots == [EVIL]
        assert "script" not in page.tags
        assert page.text.count(EVIL) >= 8
    slanted = drawn(of([Point(EVIL, 1.0)], x=Axis(names=[EVIL, EVIL * 2])))
    assert "script" not in read(slanted).tags


@pytest.mark.parametrize("form", [Form.DOT, Form.RING, Form.DIAMOND, Form.CROSS])
def test_many_marks_are_one_small_path(form: Form) -> None:
    """Each trial's options under the pointer, in every plot, were most of a page of a megabyte."""
    few, many = HOVERS_MAX, 6 * HOVERS_MAX
    points = [Point(n, math.sin(n), "write_buffer_size=64MiB\n" * 10) for n in range(many)]
    html = drawn(of(points[:few], form))
    assert html.count("<title>") == few
    best = Series(Form.STAR, "tuned", points[:1])
    html = drawn(of_series(Series(form, "warn", points, "trials"), best))
    assert html.count("<title>") == 1  # that of the few
    assert html.count("h0") == many
    assert '<circle class="dot warn"' in html  # in the legend
    assert len(html) < 20 * many


def test_means_stay_strokes_among_many_marks() -> None:
    """A contest of forty teams: their means became dots among those of the rounds."""
    points = [Point(n, 1.0) for n in range(40)]
    rounds = Series(Form.DOT, "ink", points * 10)
    html = drawn(of_series(rounds, Series(Form.TICK, "info", points, "mean")))
    assert html.count('class="tick info"') == 41  # and the legend's


def test_round_numbers_are_short() -> None:
    shown = [si(value) for value in (0, 0.05, 1200, -1.5e6, 30e6, 2e9)]
    assert shown == ["0", "0.05", "1.2k", "-1.5M", "30M", "2G"]


NUMBERS = st.floats() | st.integers(-(2**70), 2**70) | st.sampled_from([0.0, 1.0, 1.0 + 1e-15])
NAMES = ["a", "b", "<c>"]
PLACES: st.SearchStrategy[Place] = st.none() | NUMBERS | st.sampled_from([*NAMES, "d"])
MAYBE = st.none() | NUMBERS
AXES = st.builds(
    Axis,
    st.text(max_size=3),
    names=st.sampled_from([(), NAMES]),
    log=st.booleans(),
    aside=st.sampled_from([(), ("d",), ("d", "a", "e", "f")]),
    low=MAYBE,
    high=MAYBE,
    zero=st.booleans(),
)
ONE_SERIES = st.builds(
    Series,
    st.sampled_from(Form),
    st.just("tuned"),
    st.lists(st.builds(Point, PLACES, PLACES, st.text(max_size=2), low=MAYBE, high=MAYBE)),
)
CHARTS = st.builds(
    Chart,
    st.just("a plot"),
    AXES,
    AXES,
    st.lists(ONE_SERIES, max_size=3),
    st.lists(st.builds(Rule, NUMBERS, st.just("r"), upright=st.booleans()), max_size=2),
    st.lists(st.builds(Span, NUMBERS, NUMBERS, st.just("s")), max_size=2),
)


@given(CHARTS)
def test_any_data_gives_markup_within_bounds(chart: Chart) -> None:
    html = drawn(chart)
    assert "nan" not in html
    assert "inf" not in html
    # A slanted word begins a little to the right of its place.
    assert all(-0.01 <= float(place) <= 101.01 for place in _PLACES.findall(html))
    for path in _PATHS.findall(html):
        assert all(abs(float(n)) <= 1500 for n in re.findall(r"-?[\d.]+", path)), path
    assert len(ticks(html)) <= 2 * 12 + len(chart.rules) + len(chart.spans)


def test_a_plot_of_very_many_marks_stays_small_and_says_that_it_leaves_some_out() -> None:
    points = [Point(n, float(n * 7919 % 1000)) for n in range(20 * DOTS_MAX)]
    html = drawn(of(points))
    assert f"Of {20 * DOTS_MAX:,} marks one is drawn where several lie." in html
    assert len(html) < 60_000
    few = drawn(of(points[:DOTS_MAX]))
    assert "where several lie" not in few
    assert few.count("h0") == DOTS_MAX


def test_a_line_of_steps_has_its_steps_alone() -> None:
    heights = [1.0, 1.0, 1.0, 2.0, 2.0, 2.0]
    points = [Point(n, height) for n, height in enumerate(heights)]
    whole, gap = drawn(of(points, Form.STEPS)), [*points[:2], Point(9, None), *points[2:]]
    (path,) = (each for each in _PATHS.findall(whole) if "L" in each)
    assert path.count("L") == 2, "the one step, and the end"
    assert path.rpartition("L")[2].split()[0] == f"{1000 * 1.04 / 1.08:.1f}"
    parts = max(_PATHS.findall(drawn(of(gap, Form.STEPS))), key=len).split("M")
    assert len(parts) == 3, "a gap stays one"
