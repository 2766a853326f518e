"""The server of the live page: pages, a stream of what changed, and requests to the tuner.

It listens on the loopback unless it is asked for more, and then wants a token. Pages load nothing
from elsewhere, and run no script but theirs.
"""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import json
import re
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from markupsafe import Markup
from starlette.applications import Starlette
from starlette.datastructures import MutableHeaders
from starlette.requests import Request
from starlette.responses import (
    HTMLResponse,
    JSONResponse,
    PlainTextResponse,
    RedirectResponse,
    Response,
    StreamingResponse,
)
from starlette.routing import Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from lsmtune.dashboard.pages import compared_document, diff_document, overview_document
from lsmtune.dashboard.watch import Studies, Watched
from lsmtune.errors import InputError, LsmtuneError, disk_trouble
from lsmtune.report.document import Document
from lsmtune.report.render import environment, read_asset, section_html
from lsmtune.study.live import Requests, State, ask
from lsmtune.units import UnitError, parse_duration
from lsmtune.workloads.choice import options_of, pieces_of

LOOPBACK = ("127.0.0.1", "localhost", "[::1]")
_TOKEN = "token"
_HEADERS = {
    "content-security-policy": "default-src 'none'; script-src 'self'; style-src 'self'; "
    "connect-src 'self'; img-src data:; form-action 'self'; frame-ancestors 'none'; "
    "base-uri 'none'",
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cache-control": "no-store",
}
_EVERY_S = 1.0
_BODY_BYTES_MAX = 100_000
_NUMBER = re.compile(r"[0-9]{1,9}")


class Gate:
    """Lets in who names this server as its host and, where there is a token, has it.

    Every answer gets the headers of this server, also one that says that there is no such page.

    A page of another site that makes a browser resolve its own name to this machine is kept out by
    the name; one that makes it send a form, by the origin.
    """

    def __init__(self, app: ASGIApp, hosts: tuple[str, ...], token: str) -> None:
        self._app, self._hosts, self._token = app, hosts, token
        # A browser gives it to every port of a host, and each may have a page of its own.
        self._cookie = f"{_TOKEN}-{hashlib.sha256(token.encode()).hexdigest()[:8]}"

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """One request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return

        async def send_strictly(message: Message) -> None:
            if message["type"] == "http.response.start":
                MutableHeaders(scope=message).update(_HEADERS)
            await send(message)

        request = Request(scope)
        refused = self._refused(request)
        if refused is not None:
            answer = PlainTextResponse(f"{refused}\n", 403)
            await answer(scope, receive, send_strictly)
            return
        given = request.query_params.get(_TOKEN)
        if self._token and given and request.method == "GET":
            # From now on the cookie has it, and no link or log.
            response = RedirectResponse(request.url.path, 303)
            response.set_cookie(self._cookie, given, httponly=True, samesite="strict")
            await response(scope, receive, send_strictly)
            return
        await self._app(scope, receive, send_strictly)

    def _refused(self, request: Request) -> str | None:
        host = request.headers.get("host", "")
        name = host if host.endswith("]") else host.rpartition(":")[0] or host
        if self._hosts and name not in self._hosts:
            return f"this page is not at {host}"
        origin = request.headers.get("origin")
        if request.method not in ("GET", "HEAD") and origin != f"{request.url.scheme}://{host}":
            return "a request from another page"
        given = request.query_params.get(_TOKEN) or request.cookies.get(self._cookie, "")
        if self._token and not hmac.compare_digest(given.encode(), self._token.encode()):
            return "a token is needed: open the address that lsmtune dashboard printed"
        return None


def make_app(
    paths: list[Path],
    hosts: tuple[str, ...] = LOOPBACK,
    token: str = "",
    *,
    ready: Callable[[], None] = lambda: None,
    is_ending: Callable[[], bool] = lambda: False,
) -> ASGIApp:
    """The application for the study folders at `paths`.

    Args:
        paths: of study folders, also of running studies.
        hosts: names under which it may be asked for; empty for any.
        token: what a browser must know; empty for nothing.
        ready: called when it can answer.
        is_ending: whether streams are to end.
    """
    studies = Studies(paths)
    server = _Server(studies, is_ending)

    @asynccontextmanager
    async def lifespan(_app: Starlette) -> AsyncIterator[None]:
        studies.begin()
        ready()
        yield
        studies.close()

    routes = [
        Route("/", server.overview),
        Route("/page.css", partial(_asset, "report.css", "text/css")),
        Route("/page.js", partial(_asset, "report.js", "text/javascript")),
        Route("/live.js", partial(_asset, "live.js", "text/javascript")),
        Route("/compare", server.compare),
        Route("/study/{place}", server.study),
        Route("/study/{place}/events", server.events),
        Route("/study/{place}/diff", server.diff),
        Route("/study/{place}/requests", server.requests, methods=["POST"]),
    ]
    explained = {LsmtuneError: _explained}
    return Gate(
        Starlette(routes=routes, exception_handlers=explained, lifespan=lifespan), hosts, token
    )


async def _asset(name: str, kind: str, _request: Request) -> Response:
    return Response(str(read_asset(name)), media_type=kind)


async def _explained(_request: Request, error: Exception) -> Response:
    return PlainTextResponse(f"{error}\n", 400)


def _page(
    document: Document,
    fragments: Mapping[str, str] | None = None,
    *,
    links: Mapping[str, str] | None = None,
    live: str = "",
    version: str = "",
) -> Response:
    """A page; `fragments` are the sections of `document` where they are drawn already."""
    drawn = fragments or {section.id: section_html(section) for section in document.sections}
    sections = {name: Markup(html) for name, html in drawn.items()}
    page = environment().get_template("live.html")
    html = page.render(d=document, sections=sections, links=links, live=live, version=version)
    return HTMLResponse(html)


def _version(fragments: Mapping[str, str]) -> str:
    return hashlib.sha256("".join(fragments.values()).encode()).hexdigest()[:16]


class _Server:
    def __init__(self, studies: Studies, is_ending: Callable[[], bool]) -> None:
        self._studies, self._is_ending = studies, is_ending

    def _study(self, request: Request, name: str = "place") -> Watched:
        place = request.path_params.get(name) or request.query_params.get(name, "")
        if place not in self._studies.all:
            known = ", ".join(self._studies.all)
            raise InputError("study", name, found=place, allowed=known)
        return self._studies.all[place]

    async def overview(self, _request: Request) -> Response:
        """All studies; the only one at once."""
        if len(self._studies.all) == 1:
            return RedirectResponse("/study/0", 303)
        shown, broken = await self._studies.read(self._studies.overview)
        links = {each.place: each.analysis.name for each in shown}
        return _page(overview_document(shown, broken), links=links)

    async def study(self, request: Request) -> Response:
        """One study."""
        study = self._study(request)
        document, fragments = await self._studies.read(study.page)
        version = _version(fragments)
        return _page(document, fragments, live=f"/study/{study.place}", version=version)

    async def compare(self, request: Request) -> Response:
        """Two studies."""
        both = [self._study(request, name) for name in ("one", "other")]
        one, other = [await self._studies.read(study.shown) for study in both]
        return _page(compared_document(one, other))

    async def diff(self, request: Request) -> Response:
        """Two trials of a study."""
        study, numbers = self._study(request), []
        for name in ("one", "other"):
            given = request.query_params.get(name, "")
            if _NUMBER.fullmatch(given) is None:
                raise InputError("diff", name, found=given, allowed="the number of a trial")
            numbers.append(int(given))
        return _page(diff_document(await self._studies.read(study.shown), *numbers))

    async def events(self, request: Request) -> Response:
        """A stream of server-sent events: each section's HTML as it changes."""
        stream = self._changes(self._study(request), request, request.query_params.get("version"))
        return StreamingResponse(stream, media_type="text/event-stream")

    async def _changes(
        self, study: Watched, request: Request, version: str | None
    ) -> AsyncIterator[str]:
        known: Mapping[str, str] | None = None
        troubled = False
        stamp: tuple[float | None, float, bool] | None = None
        while not (self._is_ending() or await request.is_disconnected()):
            now = study.stamp()
            if now != stamp:
                stamp = now
                try:
                    _, fragments = await self._studies.read(study.page)
                except LsmtuneError as error:
                    troubled = True
                    yield _event("trouble", {"text": str(error)})
                    continue
                if troubled:  # it is over, also where no section has changed
                    troubled = False
                    yield _event("trouble", {"text": ""})
                if known is None:
                    # What the page was made of, where nothing has changed since.
                    known = fragments if version == _version(fragments) else {}
                for name, html in fragments.items():
                    if known.get(name) != html:
                        yield _event("section", {"id": name, "html": html})
                if known.keys() != fragments.keys():  # one may be gone
                    yield _event("sections", {"ids": list(fragments)})
                known = fragments
            else:
                yield ": nothing new\n\n"
            await asyncio.sleep(_EVERY_S)

    async def requests(self, request: Request) -> Response:
        """What a user asks of the tuner, as JSON: one of stop, pause, resume, add, extend."""
        study, body = self._study(request), b""
        async for piece in request.stream():
            body += piece
            if len(body) > _BODY_BYTES_MAX:
                raise InputError("request", why=f"longer than {_BODY_BYTES_MAX:,} bytes")
        try:
            wanted = json.loads(body)
        except (ValueError, RecursionError):
            raise InputError("request", why="is no JSON") from None
        change, live = change_of(wanted), study.live()
        if live is None or live.state is State.ENDED:
            allowed = "one that a tuner works on"
            raise InputError(str(study.path), why="no tuner works on this study", allowed=allowed)
        try:
            asked = ask(study.path, change)
        except OSError as error:
            raise disk_trouble(error, study.path) from None
        return JSONResponse({"stop": asked.stop, "pause": asked.pause})


def _event(name: str, data: Mapping[str, object]) -> str:
    return f"event: {name}\ndata: {json.dumps(data)}\n\n"


# --- What may be asked of a tuner


def change_of(wanted: Any) -> Callable[[Requests], Requests]:
    """What a request of the page does to what is asked. Raises InputError for any other."""
    given = wanted if isinstance(wanted, dict) else {}
    match given.get("do"):
        case "stop":
            return lambda asked: replace(asked, stop=True)
        case "pause" | "resume" as what:
            return lambda asked: replace(asked, pause=what == "pause")
        case "add":
            stated = pieces_of(str(given.get("options", "")), at=",\n")
            options = options_of("options", [text for text in stated if text])
            if not options:
                raise InputError("options", found="", allowed="name=value, name=value")
            return lambda asked: replace(asked, add=(*asked.add, options))
        case "extend":
            return _extension(given)
    allowed = "stop, pause, resume, add, extend"
    raise InputError("request", "do", found=given.get("do"), allowed=allowed)


def _extension(given: Mapping[str, object]) -> Callable[[Requests], Requests]:
    changes: dict[str, Any] = {}
    if given.get("time"):
        try:
            changes["time_s"] = parse_duration(str(given["time"]))
        except UnitError as error:
            raise InputError("budget", "time", found=error.found, allowed=error.allowed) from None
        if not changes["time_s"]:  # which the tuner takes for no change
            raise InputError("budget", "time", found=given["time"], allowed="a time above 0")
    if given.get("trials"):
        trials = str(given["trials"])
        if _NUMBER.fullmatch(trials) is None or not int(trials):
            raise InputError("budget", "trials", found=trials, allowed="a number above 0")
        changes["trials"] = int(trials)
    if not changes:
        raise InputError("budget", why="nothing to change", allowed="a time in all, trials in all")
    return lambda asked: replace(asked, **changes)
