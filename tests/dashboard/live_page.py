"""A live page on a server of its own, and what a tuner would say."""

from __future__ import annotations

import http.client
import json
import os
import socket
import threading
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import uvicorn

from lsmtune.dashboard.server import make_app
from lsmtune.model.codec import encode
from lsmtune.study.live import LIVE_FILE, Live, State
from patience import PATIENCE_S


@dataclass(frozen=True)
class Answer:
    """What the server said."""

    status: int
    headers: dict[str, str]
    text: str


class Server:
    """A live page on a port of its own; ends with the test."""

    def __init__(self, paths: list[Path], hosts: tuple[str, ...], token: str) -> None:
        self._socket = socket.create_server(("127.0.0.1", 0))
        self.port = self._socket.getsockname()[1]
        self.host = f"127.0.0.1:{self.port}"
        self.origin = f"http://{self.host}"
        app = make_app(paths, hosts, token, is_ending=lambda: self._server.should_exit)
        self._server = uvicorn.Server(uvicorn.Config(app, log_level="warning"))
        run = self._server.run
        self._thread = threading.Thread(target=run, kwargs={"sockets": [self._socket]})
        self._thread.start()

    def stop(self) -> None:
        self._server.should_exit = True
        self._thread.join()
        self._socket.close()

    def open(
        self, method: str, path: str, body: str | None = None, **headers: str
    ) -> tuple[http.client.HTTPConnection, http.client.HTTPResponse]:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=PATIENCE_S)
        connection.request(method, path, body, {"host": self.host, **headers})
        return connection, connection.getresponse()

    def ask(self, method: str, path: str, body: str | None = None, **headers: str) -> Answer:
        connection, response = self.open(method, path, body, **headers)
        try:
            told = {name.lower(): value for name, value in response.getheaders()}
            return Answer(response.status, told, response.read().decode())
        finally:
            connection.close()

    def get(self, path: str, **headers: str) -> Answer:
        return self.ask("GET", path, **headers)

    def post(self, place: str, wanted: Any) -> Answer:
        """What the page sends when a button is pressed."""
        body = wanted if isinstance(wanted, str) else json.dumps(wanted)
        return self.ask("POST", f"/study/{place}/requests", body, origin=self.origin)


Serve = Callable[..., Server]


def say(folder: Path, **changes: Any) -> None:
    """What the tuner of `folder` says, replaced as a tuner replaces it."""
    live = Live(**{"pid": os.getpid(), "state": State.RUNNING, "now_s": 0.0, **changes})
    new = folder / "live.new"
    new.write_text(json.dumps(encode(live)))
    new.replace(folder / LIVE_FILE)
