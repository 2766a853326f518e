"""Studies that are watched: what is read again, when, and what is told of those that are broken."""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Iterator
from http.client import HTTPResponse
from pathlib import Path

import pytest
from live_page import Serve, Server, say
from sample_study import SampleStudy

from lsmtune.dashboard import server as server_module
from lsmtune.dashboard import watch
from lsmtune.dashboard.pages import overview_document
from lsmtune.dashboard.watch import Watched
from lsmtune.errors import LsmtuneError
from lsmtune.experiment.files import MEASUREMENTS_DB
from lsmtune.model.verdict import VerdictOutcome
from lsmtune.report.document import Table


def add_trial(study: SampleStudy, number: int) -> None:
    options = study.draw()
    study.add_trial(number, options, study.measured(options))


# --- Studies that cannot be read


@pytest.mark.parametrize("damage", ["vanished", "database", "live"])
def test_a_study_that_is_broken_does_not_break_the_others(
    serve: Serve, done: Path, study: SampleStudy, damage: str
) -> None:
    study.close()
    if damage == "vanished":
        shutil.rmtree(study.path)
    elif damage == "database":
        for path in study.path.glob(f"{MEASUREMENTS_DB}*"):
            path.unlink()
        (study.path / MEASUREMENTS_DB).write_bytes(b"no database" * 1000)
    else:
        (study.path / "live.json").write_text("{")
    server = serve(study.path, done)
    page = server.get("/")
    assert page.status == 200
    assert "Proven gain" in page.text
    assert str(study.path) in page.text
    said = server.get("/study/0")
    assert (said.status, said.text.count("\n")) == (400, 1)
    assert str(study.path) in said.text
    assert server.get("/study/1").status == 200


def test_a_study_that_vanishes_while_it_is_watched_is_told(
    study: SampleStudy, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its database stayed open, and the page went on to show a study that was gone."""
    monkeypatch.setattr(watch, "SHARE_MAX", 1e9)
    watched = Watched("0", study.path)
    assert len(watched.shown().analysis.history.trials) == 8
    study.close()
    kept = study.path.with_name("kept")
    study.path.rename(kept)
    with pytest.raises(LsmtuneError, match="no such study"):
        watched.shown()
    kept.rename(study.path)
    assert len(watched.shown().analysis.history.trials) == 8


def test_studies_are_sorted_by_the_number_of_their_best_ratio(done: Path) -> None:
    """By its text `10.20` came before `9.10`."""
    shown = Watched("0", done).shown()
    table = overview_document([shown], {}).sections[0].blocks[0]
    assert isinstance(table, Table)
    (row,) = table.cells()
    cells = {column.label: cell for column, cell in row}
    assert cells["best of the search"].key == shown.analysis.history.best_ratio is not None


# --- When a study is read again


def test_a_study_that_grows_is_read_as_rarely_as_its_reading_is_dear(
    study: SampleStudy, monkeypatch: pytest.MonkeyPatch
) -> None:
    now_s, really_read = [0.0], watch.read_study

    def read_slowly(*given: object) -> object:
        now_s[0] += 2.0
        return really_read(*given)  # type: ignore[arg-type]

    monkeypatch.setattr(watch, "read_study", read_slowly)
    watched = Watched("0", study.path, lambda: now_s[0])

    def trials() -> int:
        return len(watched.shown().analysis.history.trials)

    before = watched.stamp()
    assert (trials(), now_s) == (8, [2.0])
    after = watched.stamp()
    assert after == before
    add_trial(study, 8)
    for when_s in (2.0, 200.0, 401.9):
        now_s[0] = when_s
        assert watched.stamp() == after
        assert (trials(), now_s) == (8, [when_s])
    now_s[0] = 402.0
    assert watched.stamp() != after
    assert (trials(), now_s) == (9, [404.0])
    # What did not change is not read again.
    now_s[0] = 9999.0
    assert (trials(), now_s) == (9, [9999.0])


def test_the_files_to_deploy_are_shown_that_come_after_the_verdict(
    study: SampleStudy, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A page that had read the study in between never had them, as no row came any more."""
    monkeypatch.setattr(watch, "SHARE_MAX", 1e9)
    watched = Watched("0", study.path)
    assert watched.shown().analysis.result_files == ()
    before = watched.stamp()
    file = study.folder.write_result("OPTIONS", "[Version]\n")
    assert watched.stamp() != before
    assert watched.shown().analysis.result_files == (file,)


def test_a_study_that_cannot_be_read_is_not_tried_all_the_time(
    study: SampleStudy, monkeypatch: pytest.MonkeyPatch
) -> None:
    now_s = [0.0]

    def fail(*_given: object) -> object:
        now_s[0] += 2.0
        raise OSError(5, "Input/output error", str(study.path))

    monkeypatch.setattr(watch, "read_study", fail)
    watched = Watched("0", study.path, lambda: now_s[0])
    for _ in range(3):
        with pytest.raises(LsmtuneError, match="Input/output error"):
            watched.shown()
    assert now_s == [2.0]


def test_a_study_that_could_not_be_read_once_is_read_when_it_can_be(
    study: SampleStudy, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As no row came any more, the page showed the error until it was started anew."""
    monkeypatch.setattr(watch, "SHARE_MAX", 1e9)
    watched = Watched("0", study.path)
    kept = (study.path / "study.yaml").rename(study.path / "kept.yaml")
    with pytest.raises(LsmtuneError):
        watched.shown()
    kept.rename(study.path / "study.yaml")
    assert len(watched.shown().analysis.history.trials) == 8


# --- The stream of what changed


class Events:
    """The events of a stream, in their order."""

    def __init__(self, response: HTTPResponse) -> None:
        self._response = response

    def next(self) -> tuple[str, dict[str, str]]:
        """What the stream says next; `("", {})` where that is that nothing is new."""
        lines = [line.decode().rstrip("\n") for line in iter(self._response.readline, b"\n")]
        if lines[0].startswith(":"):
            return "", {}
        name, data = lines
        return name.removeprefix("event: "), json.loads(data.removeprefix("data: "))

    def until_quiet(self) -> list[str]:
        """Which sections came until nothing was new three times in a row."""
        came, quiet = [], 0
        while quiet < 3:
            name, data = self.next()
            quiet = 0 if name else quiet + 1
            came += [data.get("id", name)] if name else []
        return came

    def first(self) -> list[str]:
        """Which sections come with the next event, and then until it is quiet."""
        name, data = self.next()
        while not name:
            name, data = self.next()
        return [data.get("id", name), *self.until_quiet()]


@pytest.fixture
def server(serve: Serve, study: SampleStudy, monkeypatch: pytest.MonkeyPatch) -> Server:
    monkeypatch.setattr(server_module, "_EVERY_S", 0.01)
    monkeypatch.setattr(watch, "SHARE_MAX", 1e9)
    return serve(study.path)


@pytest.fixture
def events(server: Server) -> Iterator[Events]:
    """The stream of the page as it is shown."""
    page = server.get("/study/0").text
    version = page.partition('data-version="')[2].partition('"')[0]
    connection, response = server.open("GET", f"/study/0/events?version={version}")
    assert response.getheader("content-type", "").startswith("text/event-stream")
    yield Events(response)
    response.close()
    connection.close()


def test_what_is_shown_already_does_not_come_again(events: Events) -> None:
    assert events.until_quiet() == []


def test_a_page_of_an_earlier_day_gets_every_section(server: Server) -> None:
    connection, response = server.open("GET", "/study/0/events?version=old")
    came = Events(response).until_quiet()
    response.close()
    connection.close()
    assert came[:2] == ["now", "verdict"]
    assert {"found", "trials", "raw"} <= set(came)


def test_what_the_tuner_says_changes_one_section(events: Events, study: SampleStudy) -> None:
    assert events.until_quiet() == []
    say(study.path, notes=("drift: the machine became slower",))
    assert events.first() == ["now"]
    # The file is new, and says the same.
    say(study.path, notes=("drift: the machine became slower",))
    assert events.until_quiet() == []


def test_a_tuner_that_is_killed_is_told_to_a_page_that_is_open(
    server: Server, study: SampleStudy
) -> None:
    """It leaves its file as it was, and the page went on to say that it runs."""
    with subprocess.Popen(["sleep", "600"]) as tuner:
        say(study.path, pid=tuner.pid)
        connection, response = server.open("GET", "/study/0/events")
        events = Events(response)
        try:
            assert events.until_quiet()[0] == "now"
        finally:
            tuner.kill()
        tuner.wait()
        name, now = events.next()
        while not name:
            name, now = events.next()
    assert (now["id"], "No tuner works on this study." in now["html"]) == ("now", True)
    response.close()
    connection.close()


def test_a_trial_changes_the_sections_that_have_it(events: Events, study: SampleStudy) -> None:
    assert events.until_quiet() == []
    add_trial(study, 8)
    came = events.first()
    assert {"found", "trials"} <= set(came)
    assert "deploy" not in came


def test_a_section_that_is_gone_is_told_to_a_page_that_is_open(
    server: Server, study: SampleStudy
) -> None:
    """A study that goes on takes its verdict back, and the page kept the price of the old one."""
    study.set_verdict(VerdictOutcome.BETTER, 1.4)
    page = server.get("/study/0").text
    assert 'id="price"' in page
    version = page.partition('data-version="')[2].partition('"')[0]
    connection, response = server.open("GET", f"/study/0/events?version={version}")
    events = Events(response)
    assert events.until_quiet() == []
    study.folder.measurements.set_verdict(None)
    name, told = events.next()
    while not name:
        name, told = events.next()
    while name == "section":
        name, told = events.next()
    assert name == "sections"
    assert "verdict" in told["ids"]
    assert "price" not in told["ids"]
    response.close()
    connection.close()


def test_trouble_is_told_once_and_the_stream_goes_on(events: Events, study: SampleStudy) -> None:
    assert events.until_quiet() == []
    live, broken = study.path / "live.json", study.path / "broken.json"
    said = live.read_text()
    broken.write_text("{")
    broken.replace(live)  # at once: half of a file is trouble, too
    assert events.first() == ["trouble"]
    broken.write_text(said)
    broken.replace(live)
    # Nothing else has changed: the page would show the trouble for ever.
    name, told = events.next()
    while not name:
        name, told = events.next()
    assert (name, told) == ("trouble", {"text": ""})
    assert events.until_quiet() == []
    say(study.path, notes=("all is well",))
    assert events.first() == ["now"]


def test_streams_end_with_the_server(serve: Serve, study: SampleStudy) -> None:
    server = serve(study.path)
    connection, response = server.open("GET", "/study/0/events")
    assert response.readline() == b"event: section\n"
    server.stop()
    assert response.read().endswith(b"\n\n")
    connection.close()
