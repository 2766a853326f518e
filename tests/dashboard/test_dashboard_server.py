"""The pages of the live page, who may see them, and what may be asked of a tuner."""

from __future__ import annotations

import re
import threading
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from live_page import Serve, Server, say
from page import read
from sample_study import BEST, SampleStudy, changed, fill

from lsmtune.dashboard.pages import compared_document, run_name
from lsmtune.dashboard.server import LOOPBACK, change_of
from lsmtune.dashboard.watch import Watched
from lsmtune.errors import InputError
from lsmtune.model.goal import Objective
from lsmtune.model.measurement import Outcome
from lsmtune.report.document import Notices, Paragraph
from lsmtune.study.live import REQUESTS_FILE, LiveRun, Requests, begin_live, read_requests
from lsmtune.study.spec import Budget

HEADERS = {
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cache-control": "no-store",
}
EVIL = "<img src=x onerror=alert(1)></script>"


@pytest.fixture(scope="module")
def both(done: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Server, Path]]:
    """For requests that change nothing: pages of `done` and of a study that runs, its folder."""
    sample = SampleStudy(tmp_path_factory.mktemp("running"))
    fill(sample, trials=8)
    say(sample.path)
    server = Server([done, sample.path], LOOPBACK, "")
    yield server, sample.path
    server.stop()
    sample.close()


def checked(html: str) -> Any:
    """The page, which must be whole, load nothing from elsewhere, and run no script but ours."""
    page = read(html)
    assert page.unbalanced == []
    assert len(page.ids) == len(set(page.ids))
    assert [link for link in page.links if not link.startswith(("#", "/", "data:"))] == []
    assert {given["src"] for given, _ in page.scripts} <= {"/page.js", "/live.js"}
    assert not {name for name in page.attributes if name == "style" or name.startswith("on")}
    assert not {"img", "iframe"} & set(page.tags)
    return page


# --- Pages


def test_one_study_is_shown_at_once_and_several_in_a_table(
    serve: Serve, done: Path, study: SampleStudy
) -> None:
    alone = serve(done).get("/")
    assert (alone.status, alone.headers["location"]) == (303, "/study/0")
    said = serve(done, study.path).get("/")
    assert said.status == 200
    page = checked(said.text)
    assert {"/study/0", "/study/1", "/compare"} <= set(page.links)
    assert str(done) in page.text
    assert "Proven gain" in page.text
    assert "Not running" in page.text
    assert "Running" in page.text.replace("Not running", "")


def test_the_page_of_a_study_is_its_report_and_what_happens_now(serve: Serve, done: Path) -> None:
    said = serve(done).get("/study/0")
    page = checked(said.text)
    sections = [name for name in page.ids if not name.endswith("-title")]
    assert sections == [
        *("said", "now", "verdict", "price", "deploy", "compared", "found", "trust"),
        *("failures", "trials", "raw"),
    ]
    assert "No tuner works on this study." in page.text
    assert "Each trial over the baseline, and the best so far" in page.plots


def test_the_run_on_the_machine_is_shown(serve: Serve, study: SampleStudy) -> None:
    series = ((1.0, 300_000.0), (2.0, 310_000.0))
    run = LiveRun("trial", 7, 7, None, 0, "fillrandom", BEST, 0.0, "fillrandom", "measure", series)
    notes = ("drift: the machine became slower",)
    say(study.path, run=run, time_s=7200.0, spent_s=1800.0, trials=40, notes=notes)
    page = checked(serve(study.path).get("/study/0").text)
    assert "Operations per second of fillrandom of fillrandom" in page.plots
    assert "Trial 7." in page.text
    # By what the tuner has spent: the rows of the study know nothing of loads and of lost runs, and
    # those of a fleet overlap.
    assert re.search(r"time so far\s*30m", page.text)
    assert re.search(r"time left\s*1h30m", page.text)
    assert "drift: the machine became slower" in page.text


def test_the_baseline_on_more_data_is_called_so() -> None:
    """It was `promotion 0`."""
    run = LiveRun("promotion", 0, None, None, 0, "fillrandom", {}, 0.0)
    assert run_name(run) == "the baseline at the size of the proof"


def test_a_tuner_that_was_killed_does_not_run_for_ever(serve: Serve, study: SampleStudy) -> None:
    say(study.path, pid=2**22 + 1)  # greater than any of Linux
    assert "No tuner works on this study." in serve(study.path).get("/study/0").text


def test_a_process_that_has_the_number_of_a_killed_tuner_is_not_taken_for_it(
    serve: Serve, study: SampleStudy
) -> None:
    """In a container that was started again it soon has."""
    begun = begin_live(study.path, lambda: 0.0, threading.Event(), Budget()).live
    server, idle = serve(study.path), "No tuner works on this study."
    assert idle not in server.get("/study/0").text
    say(study.path, began=(begun.began or 0) - 1)
    assert idle in server.get("/study/0").text
    assert server.post("0", {"do": "stop"}).status == 400


def test_two_trials_and_two_studies_beside_each_other(
    serve: Serve, done: Path, study: SampleStudy
) -> None:
    server = serve(done, study.path)
    page = checked(server.get("/study/0/diff?one=1&other=2").text)
    assert "trial 1 and trial 2" in page.text
    assert "write_buffer_size" in page.text
    page = checked(server.get("/compare?one=0&other=1").text)
    assert "Proven gain" in page.text
    assert "Options that differ" in page.text


def test_two_studies_of_one_metric_in_two_phases_ask_different_questions(done: Path) -> None:
    """Nothing was said where the objectives were the p99 latency of gets and that of puts."""
    one = Watched("0", done).shown()
    objectives = (Objective(one.analysis.metric, phase="reads"),)
    other = replace(one, analysis=changed(one.analysis, objectives=objectives))
    for both, told in (((one, one), False), ((one, other), True)):
        blocks = compared_document(*both).sections[-1].blocks
        assert any(isinstance(block, Notices) for block in blocks) is told


def test_a_study_with_nothing_to_deploy_is_not_said_to_deploy_the_defaults(
    done: Path, tmp_path: Path
) -> None:
    sample = SampleStudy(tmp_path)
    sample.add_baseline()
    sample.close()
    both = Watched("0", done).shown(), Watched("1", sample.path).shown()
    (block,) = (b for b in compared_document(*both).sections[-1].blocks if isinstance(b, Paragraph))
    assert block.text == f"Nothing to deploy yet: {sample.spec.name}."


@pytest.mark.parametrize(
    ("path", "line"),
    [
        ("/study/7", "study: place: found '7'; allowed: 0, 1"),
        ("/study/7/events", "study: place: found '7'; allowed: 0, 1"),
        ("/compare?one=0", "study: other: found ''; allowed: 0, 1"),
        ("/study/0/diff?one=1", "diff: other: found ''; allowed: the number of a trial"),
        ("/study/0/diff?one=-1&other=2", "diff: one: found '-1'; allowed: the number of a trial"),
        ("/study/0/diff?one=1&other=9999", "diff: the study has not both trials [1, 9999]"),
    ],
)
def test_what_is_not_there_is_one_line(both: tuple[Server, Path], path: str, line: str) -> None:
    said = both[0].get(path)
    assert (said.status, said.text) == (400, f"{line}\n")


def test_a_number_of_five_thousand_digits_is_one_line(serve: Serve, done: Path) -> None:
    """Python reads no more than 4,300 digits: it was an internal error."""
    server, digits = serve(done), "1" * 5000
    said = server.get(f"/study/0/diff?one={digits}&other=1")
    assert (said.status, said.text.count("\n")) == (400, 1)
    with pytest.raises(InputError, match="a number above 0"):
        change_of({"do": "extend", "trials": digits})


def test_text_of_others_is_escaped(serve: Serve, tmp_path: Path, study: SampleStudy) -> None:
    (tmp_path / "evil").mkdir()
    sample = SampleStudy(tmp_path / "evil")
    fill(sample, trials=2)
    options = {**sample.draw(), "compression": EVIL, EVIL: EVIL}
    sample.add_trial(2, options, sample.failed(Outcome.CRASHED, EVIL, options))
    run = LiveRun("trial", 3, 3, None, 0, EVIL, options, 0.0, EVIL, "measure", ((1.0, 1.0),))
    say(sample.path, run=run, notes=(EVIL,), stage=EVIL)
    sample.close()
    server = serve(sample.path, study.path)
    for path in ("/study/0", "/study/0/diff?one=1&other=2"):
        page = checked(server.get(path).text)
        assert EVIL in page.text
    for path in ("/", "/compare?one=0&other=1"):
        checked(server.get(path).text)
    refused = server.get("/study/%3Cimg%3E")
    assert refused.headers["content-type"].startswith("text/plain")


# --- Who may see them


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [
        *(("GET", path, 200) for path in ("/study/0", "/page.css", "/page.js", "/live.js")),
        ("HEAD", "/study/0", 200),
        ("GET", "/", 303),
        ("GET", "/study/9", 400),
        ("GET", "/nothing", 404),
        ("GET", "/study/0/requests", 405),
        ("POST", "/study/0/requests", 403),
    ],
)
def test_every_answer_has_the_strict_headers(
    serve: Serve, done: Path, method: str, path: str, status: int
) -> None:
    """Those to pages that are not there had none."""
    said = serve(done).ask(method, path)
    assert said.status == status
    assert {name: said.headers.get(name) for name in HEADERS} == HEADERS
    policy = dict(
        part.strip().split(" ", 1) for part in said.headers["content-security-policy"].split(";")
    )
    assert policy["default-src"] == policy["frame-ancestors"] == policy["base-uri"] == "'none'"
    assert policy["script-src"] == policy["style-src"] == policy["connect-src"] == "'self'"
    assert "unsafe" not in said.headers["content-security-policy"]


@pytest.mark.parametrize("host", ["evil.example", "evil.example:8517", "127.0.0.1.evil.example"])
def test_another_name_of_this_machine_is_refused(both: tuple[Server, Path], host: str) -> None:
    """A page that makes its own name resolve to the loopback reads nothing."""
    said = both[0].get("/study/0", host=host)
    assert (said.status, said.text) == (403, f"this page is not at {host}\n")


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost:1", "[::1]:8517", "[::1]"])
def test_the_names_of_the_loopback_are_let_in(both: tuple[Server, Path], host: str) -> None:
    assert both[0].get("/page.css", host=host).status == 200


@pytest.mark.parametrize("origin", ["", "null", "http://evil.example", "https://{host}"])
def test_another_page_asks_nothing_of_a_tuner(both: tuple[Server, Path], origin: str) -> None:
    server, folder = both
    headers = {"origin": origin.format(host=server.host)} if origin else {}
    said = server.ask("POST", "/study/1/requests", '{"do": "stop"}', **headers)
    assert (said.status, said.text) == (403, "a request from another page\n")
    assert not (folder / REQUESTS_FILE).exists()


def test_beyond_this_machine_a_token_is_wanted_once(serve: Serve, study: SampleStudy) -> None:
    server = serve(study.path, hosts=(), token="secret")
    for path, cookie in (("/study/0", ""), ("/study/0?token=wrong", ""), ("/", "token=wrong")):
        said = server.get(path, cookie=cookie)
        assert (said.status, said.text.split(":")[0]) == (403, "a token is needed")
    said = server.get("/study/0?token=secret", host="tuner.example")
    assert (said.status, said.headers["location"]) == (303, "/study/0")
    cookie = said.headers["set-cookie"]
    assert {"HttpOnly", "SameSite=strict"} <= {part.strip() for part in cookie.split(";")}
    given = {"cookie": cookie.split(";")[0]}
    assert server.get("/study/0", **given).status == 200
    asking = {**given, "origin": server.origin}
    assert server.ask("POST", "/study/0/requests", '{"do": "stop"}', **asking).status == 200
    del given["cookie"]
    assert server.ask("POST", "/study/0/requests", '{"do": "stop"}', **given).status == 403


def test_two_pages_of_one_machine_keep_their_tokens_apart(serve: Serve, study: SampleStudy) -> None:
    """Browsers give a cookie to every port of a host: the second page had the first one's."""
    cookies: dict[str, str] = {}
    pages = [(serve(study.path, hosts=(), token=token), token) for token in ("one", "other")]
    for server, token in pages:
        said = server.get(f"/study/0?token={token}")
        name, _, value = said.headers["set-cookie"].partition(";")[0].partition("=")
        cookies[name] = value
    kept = "; ".join(f"{name}={value}" for name, value in cookies.items())
    assert [server.get("/study/0", cookie=kept).status for server, _ in pages] == [200, 200]


# --- What may be asked of a tuner


def test_what_is_asked_reaches_the_tuner(serve: Serve, study: SampleStudy) -> None:
    server = serve(study.path)
    options = "write_buffer_size=8MiB, compression=kLZ4Compression"
    for wanted, asked in (
        ({"do": "pause"}, Requests(pause=True)),
        ({"do": "resume"}, Requests()),
        (
            {"do": "add", "options": options},
            Requests(
                add=({"write_buffer_size": 8 * 2**20, "compression": "kLZ4Compression"},),
            ),
        ),
    ):
        assert server.post("0", wanted).status == 200
        assert read_requests(study.path) == asked
    added = read_requests(study.path)
    # Once it was cut at the comma inside of the braces.
    structured = "write_buffer_size=4MiB\ncompression_opts={level=3,max_dict_bytes=0}"
    server.post("0", {"do": "add", "options": structured})
    server.post("0", {"do": "extend", "time": "2h", "trials": ""})
    server.post("0", {"do": "extend", "time": "", "trials": "90"})
    server.post("0", {"do": "stop"})
    second = {
        "write_buffer_size": 4 * 2**20,
        "compression_opts": "{level=3,max_dict_bytes=0}",
    }
    assert read_requests(study.path) == Requests(True, False, (*added.add, second), 7200.0, 90)


@pytest.mark.parametrize(
    ("wanted", "line"),
    [
        ("{", "request: is no JSON"),
        ("[" * 90_000, "request: is no JSON"),
        (" " * 100_001, "request: longer than 100,000 bytes"),
        ([], "request: do: allowed: stop, pause, resume, add, extend"),
        ({"do": "delete"}, "request: do: found 'delete'; allowed: stop, pause, resume, add, ex"),
        ({"do": "add", "options": ""}, "options: found ''; allowed: name=value, name=value"),
        ({"do": "add", "options": "a=1, b"}, "options: found 'b'; allowed: name=value"),
        ({"do": "add", "options": "a=1.5B"}, "options: a: found '1.5B'; allowed: "),
        ({"do": "extend", "time": "soon"}, "budget: time: found 'soon'; allowed: "),
        ({"do": "extend", "time": "0s"}, "budget: time: found '0s'; allowed: a time above 0"),
        ({"do": "extend", "trials": "0"}, "budget: trials: found '0'; allowed: a number above 0"),
        ({"do": "extend"}, "budget: nothing to change; allowed: a time in all, trials in all"),
    ],
)
def test_what_cannot_be_asked_is_one_line_and_changes_nothing(
    both: tuple[Server, Path], wanted: Any, line: str
) -> None:
    server, folder = both
    said = server.post("1", wanted)
    assert said.status == 400
    assert said.text.startswith(line)
    assert said.text.count("\n") == 1
    assert not (folder / REQUESTS_FILE).exists()


def test_nobody_is_told_that_a_tuner_which_is_gone_does_it(serve: Serve, done: Path) -> None:
    """A request to a finished study was accepted, and forgotten when its next session began."""
    said = serve(done).post("0", {"do": "stop"})
    assert (said.status, said.text) == (
        400,
        f"{done}: no tuner works on this study; allowed: one that a tuner works on\n",
    )
    assert not (done / REQUESTS_FILE).exists()


def test_a_request_that_cannot_be_stored_is_one_line(serve: Serve, study: SampleStudy) -> None:
    (study.path / f"{REQUESTS_FILE}.new").mkdir()
    said = serve(study.path).post("0", {"do": "stop"})
    assert said.status == 400
    assert re.fullmatch(r".*requests\.json\.new: cannot be used: Is a directory\n", said.text)
