"""Pages as a browser draws them. Their pictures are kept in `build/pictures`, to be looked at."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from urllib.request import url2pathname

import pytest
from chromium import NARROW, WIDE, Browser, Page
from contest_parts import board
from live_page import Server, say
from sample_study import BEST, SampleStudy, fill, finished
from sweep_parts import cells_of, runs_of, sweep_of

from lsmtune.dashboard import watch
from lsmtune.dashboard.server import LOOPBACK
from lsmtune.experiment.sweep_tables import summarise
from lsmtune.report.leaderboard import board_document
from lsmtune.report.render import to_html
from lsmtune.report.study import write_as
from lsmtune.report.sweep import sweep_document
from lsmtune.study.live import REQUESTS_FILE, LiveRun, read_requests

PAGES = ("report", "live", "sweep", "contest")
SHEETS_MAX = 4
# Each plot, and how many of its marks and lines have a place in it. What is drawn is neither the
# grid nor a word; marks may reach out of the plot by half their size.
PLOTS = """
[...document.querySelectorAll("figure.chart")].map((figure) => {
  const area = figure.querySelector(".area").getBoundingClientRect();
  const shapes = [...figure.querySelectorAll(
    ".lines path:not(.grid), .over circle, .over svg path")];
  const boxes = shapes.map((shape) => shape.getBoundingClientRect());
  const isInside = (box) => box.right >= area.left - 9 && box.left <= area.right + 9
    && box.bottom >= area.top - 9 && box.top <= area.bottom + 9;
  const marks = [...figure.querySelectorAll(".over circle, .over svg path")];
  return {
    label: figure.getAttribute("aria-label"),
    width: area.width, height: area.height,
    drawn: boxes.filter((box) => box.width + box.height > 0 && isInside(box)).length,
    astray: marks.filter((mark) => !isInside(mark.getBoundingClientRect())).length,
    numbers: shapes.every((shape) => ["d", "cx", "cy"].every(
      (name) => !/nan|inf|none/i.test(shape.getAttribute(name)))),
  };
})
"""
# What is wider than the page, and does not scroll by itself.
TOO_WIDE = """
[...document.querySelectorAll("body *")].filter((each) =>
  each.getBoundingClientRect().right > innerWidth + 1
  && !each.closest(".scroll, pre, svg, .skip")).map((each) => each.outerHTML.slice(0, 120))
"""


@pytest.fixture(scope="session")
def live_study(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a study whose tuner is this process, in the middle of a run."""
    sample = SampleStudy(tmp_path_factory.mktemp("live"))
    fill(sample, trials=24)
    sample.close()
    series = tuple((0.25 * n, 300_000.0 + 9_000.0 * (n % 7)) for n in range(1, 60))
    run = LiveRun(
        "trial", 24, 24, None, 0, "fillrandom", BEST, 0.0, "fillrandom", "measure", series
    )
    say(sample.path, run=run, time_s=7200.0, trials=40, notes=("drift: 3 % slower",))
    return sample.path


@pytest.fixture(scope="session")
def files(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Pages that are files."""
    folder = tmp_path_factory.mktemp("pages")
    sample = finished(folder)
    sample.close()
    with sample.opened() as opened:
        made = {"report": write_as(opened, "html", folder / "report.html")[0]}
    sweep = sweep_of()
    cells = cells_of(sweep)
    documents = {
        "sweep": sweep_document(summarise(sweep, cells, runs_of(cells, 3))),
        "contest": board_document(board()),
    }
    for name, document in documents.items():
        made[name] = folder / f"{name}.html"
        made[name].write_text(to_html(document), encoding="utf-8")
    return made


Open = Callable[..., Page]


@pytest.fixture
def opened(browser: Browser, files: dict[str, Path], server: Server) -> Iterator[Open]:
    """Opens a page by its name."""
    pages = []

    def open_page(name: str, **given: object) -> Page:
        url = f"{server.origin}/" if name == "live" else files[name].as_uri()
        pages.append(Page(browser, url, **given))  # type: ignore[arg-type]
        return pages[-1]

    yield open_page
    for page in pages:
        page.close()


@pytest.mark.parametrize("name", PAGES)
def test_every_plot_is_drawn_and_nothing_comes_from_elsewhere(
    opened: Open, server: Server, pictures: Path, name: str
) -> None:
    page = opened(name)
    page.picture(pictures / f"{name}-wide.png")
    plots = page.run(PLOTS)
    assert plots
    for plot in plots:
        assert plot["drawn"] >= 1, plot
        assert plot["width"] > 100, plot
        assert plot["height"] > 40, plot
        assert (plot["astray"], plot["numbers"]) == (0, True), plot
    assert page.run(TOO_WIDE) == []
    assert page.complaints() == []
    asked = page.requests()
    if name == "live":
        assert all(url.startswith(f"{server.origin}/") for url in asked), asked
    else:
        assert [Path(url2pathname(url.removeprefix("file://"))).name for url in asked] == [
            f"{name}.html"
        ]


@pytest.mark.parametrize("name", PAGES)
def test_a_phone_shows_it_without_scrolling_sideways(
    opened: Open, pictures: Path, name: str
) -> None:
    page = opened(name, width=NARROW)
    page.picture(pictures / f"{name}-narrow.png")
    assert page.run(TOO_WIDE) == []
    assert page.run("document.documentElement.scrollWidth") <= NARROW


@pytest.mark.parametrize("name", PAGES)
def test_it_is_dark_where_the_reader_wants_that(opened: Open, pictures: Path, name: str) -> None:
    page = opened(name, dark=True)
    page.picture(pictures / f"{name}-dark.png")
    colours = page.run(
        "[getComputedStyle(document.body), getComputedStyle(document.querySelector('.card'))]"
        ".map((style) => [style.backgroundColor, style.color])"
    )
    for back, ink in colours:
        numbers = [sum(map(int, colour[4:-1].split(","))) for colour in (back, ink)]  # rgb(1, 2, 3)
        assert numbers[0] < 150 < 500 < numbers[1]


def test_a_report_prints_on_four_sheets(opened: Open, pictures: Path) -> None:
    sheets = opened("report").printed(pictures / "report.pdf")
    assert 1 <= sheets <= SHEETS_MAX


@pytest.mark.parametrize("name", PAGES)
def test_the_first_key_offers_to_skip_what_leads_to_the_sections(opened: Open, name: str) -> None:
    page = opened(name)
    page.press("Tab")
    assert page.run("document.activeElement.className") == "skip"
    href = page.run("document.activeElement.getAttribute('href')")
    assert page.run(f"document.querySelector({json.dumps(href)}) !== null")


# What can be reached by keyboard, in the order of the document; an end in `details` that are closed
# cannot.
STOPS = """
window.stops = [...document.querySelectorAll(
  "a[href], button, input, select, summary, [tabindex='0']")].filter(
  (each) => each.checkVisibility() && !each.disabled);
stops.map((each) => each.outerHTML.slice(0, 120));
"""
# The stop that has the focus: its number, and whether a reader sees it and that it has the focus.
STOP = """
(() => {
  const stop = document.activeElement, box = stop.getBoundingClientRect();
  const left = Math.max(box.left, 0), right = Math.min(box.right, innerWidth);
  const top = Math.max(box.top, 0), bottom = Math.min(box.bottom, innerHeight);
  const there = document.elementFromPoint((left + right) / 2, (top + bottom) / 2);
  const style = getComputedStyle(stop);
  return {
    number: stops.indexOf(stop),
    isSeen: right - left > 4 && bottom - top > 4 && stop.contains(there),
    isMarked: stop.matches(":focus-visible") && style.outlineStyle !== "none"
      && parseFloat(style.outlineWidth) >= 2 && style.outlineColor !== "rgba(0, 0, 0, 0)",
  };
})()
"""


@pytest.mark.parametrize("name", PAGES)
@pytest.mark.parametrize("width", [WIDE, NARROW])
def test_a_keyboard_reaches_everything_in_order_and_gets_out_again(
    opened: Open, name: str, width: int
) -> None:
    page = opened(name, width=width)
    stops = page.run(STOPS)
    assert len(stops) >= 5
    for number, html in enumerate(stops):
        page.press("Tab")
        stop = page.run(STOP)
        assert (stop, html) == ({"number": number, "isSeen": True, "isMarked": True}, html)
        role, label = page.focused()
        assert label.strip(), (role, html)
    page.press("Tab")
    assert page.run("stops.indexOf(document.activeElement)") < 1  # out of the page, or at its top


@pytest.mark.parametrize("name", PAGES)
@pytest.mark.parametrize("dark", [False, True])
def test_axe_finds_nothing(opened: Open, axe: str, name: str, dark: bool) -> None:
    page = opened(name, dark=dark)
    page.run(axe)
    found = page.run("axe.run().then((all) => all.violations)")
    assert [(each["id"], [node["html"] for node in each["nodes"]]) for each in found] == []


def test_the_live_page_follows_the_tuner_and_asks_it(opened: Open, live_study: Path) -> None:
    page = opened("live")
    assert page.run("location.pathname") == "/study/0"
    before = (live_study / "live.json").read_text()
    say(live_study, notes=("<i>another note</i>",))
    page.wait_until("document.getElementById('now').textContent.includes('<i>another note</i>')")
    page.run("document.querySelector('[data-do=pause]').click()")
    page.wait_until("document.getElementById('said').textContent.includes('The tuner does it')")
    assert read_requests(live_study).pause
    page.run("document.querySelector('[data-do=add]').click()")
    page.wait_until("document.getElementById('said').textContent.includes('allowed: name=value')")
    (live_study / "live.json").write_text(before)
    (live_study / REQUESTS_FILE).unlink()


# What a reader did to the table of trials, and where the page is.
DONE = """
(() => {
  const table = document.querySelector(".scroll[aria-label^=Trials]");
  const sorted = table.querySelector("th[aria-sort]");
  return {
    isOpen: table.closest("details").open,
    sorted: sorted && [sorted.textContent, sorted.getAttribute("aria-sort")],
    scrolled: [table.scrollLeft, table.scrollTop],
    focused: document.activeElement.textContent,
    top: table.getBoundingClientRect().top,
  };
})()
"""


TRIALS = "document.querySelector('.scroll[aria-label^=Trials]')"


@pytest.mark.parametrize("is_new", [False, True])
def test_a_page_that_changes_stays_as_its_reader_left_it(
    browser: Browser, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, is_new: bool
) -> None:
    """Also where there `is_new` section, for which the page is loaded again."""
    monkeypatch.setattr(watch, "SHARE_MAX", 1e9)
    sample = SampleStudy(tmp_path)
    fill(sample, trials=30)
    say(sample.path)
    server = Server([sample.path], LOOPBACK, "")
    page = Page(browser, f"{server.origin}/", width=NARROW)
    try:
        page.run(f"{TRIALS}.closest('details').open = true")
        page.run(f"{TRIALS}.querySelectorAll('th button')[1].focus()")
        page.press("Enter")
        page.press("Enter")
        page.run(f"{TRIALS}.scrollTo(30, 40); scrollBy(0, -60)")
        before = page.run(DONE)
        assert (before["isOpen"], before["scrolled"]) == (True, [30, 40])
        assert before["sorted"] == [before["focused"], "descending"]
        page.run(f"document.getElementById({'found' if is_new else 'none'!r})?.remove()")
        page.forget()
        options = sample.draw()
        sample.add_trial(30, options, sample.measured(options))
        say(sample.path, notes=("a line above the table",) * 5)
        if is_new:
            page.wait_for_load()
        page.wait_until("document.getElementById('now').textContent.includes('a line above')")
        page.wait_until(f"{TRIALS}.querySelectorAll('tbody tr').length === 31")
        after = page.run(DONE)
        tops = before.pop("top"), after.pop("top")
        assert after == before
        if not is_new:
            assert abs(tops[0] - tops[1]) <= 1
        assert page.complaints() == []
    finally:
        page.close()
        server.stop()
        sample.close()
