"""`lsmtune dashboard`: studies in a browser, while they run."""

from __future__ import annotations

import os
import secrets
import socket
from pathlib import Path
from typing import Annotated

import typer

from lsmtune.cli.flags import command, option
from lsmtune.cli.ls import listed
from lsmtune.errors import InputError
from lsmtune.experiment.folder import default_folder

EXAMPLES = (
    "lsmtune dashboard study.yaml",
    "lsmtune dashboard one.lsmtune other.lsmtune --port 9000",
    "lsmtune dashboard study.yaml --host 0.0.0.0",
)
PORT = 8517
HOST = "Where to listen; beyond this machine a token is wanted."
app = typer.Typer()


@command(app, "dashboard", EXAMPLES)
def _dashboard(
    studies: Annotated[
        list[Path] | None,
        typer.Argument(help="Study files or their folders; by default all that are here."),
    ] = None,
    host: str = option("--host NAME", HOST, "127.0.0.1"),
    port: int = option("--port N", "0 for one that is free.", PORT, number=(0, 65535)),
) -> None:
    """Show studies in a browser: what runs now, the best so far, and the whole report."""
    import uvicorn

    from lsmtune.dashboard.server import LOOPBACK, make_app

    paths = [_folder(path) for path in studies or ()]
    if not studies:
        here = sorted(Path().iterdir())
        paths = [path for path in here if os.access(path, os.X_OK) and listed(path)]
    if not paths:
        why = "there is no study here"
        raise InputError("dashboard", why=why, allowed="a study file, or its folder")
    name = f"[{host}]" if ":" in host else host
    local = name in LOOPBACK
    token = "" if local else secrets.token_urlsafe(16)
    bound = _listening(host, port)
    query = f"?token={token}" if token else ""
    address = f"http://{name}:{bound.getsockname()[1]}/{query}"
    app = make_app(
        paths,
        LOOPBACK if local else (),
        token,
        ready=lambda: typer.echo(f"{address}  (Ctrl-C ends this page, and no study)"),
        is_ending=lambda: server.should_exit,
    )
    config = uvicorn.Config(app, log_level="warning", timeout_graceful_shutdown=5)
    server = uvicorn.Server(config)
    try:
        server.run(sockets=[bound])
    except KeyboardInterrupt:  # what uvicorn ends with when it was interrupted
        pass
    finally:
        bound.close()


def _listening(host: str, port: int) -> socket.socket:
    """A socket that browsers may connect to from now on."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        return socket.create_server((host, port), family=family)
    except OSError as error:
        reason = (error.strerror or str(error)).partition(" (")[0]
        why, allowed = f"cannot listen there: {reason}", "another --host, another --port"
        raise InputError("dashboard", f"{host}, port {port}", why=why, allowed=allowed) from None


def _folder(path: Path) -> Path:
    if not path.exists():
        raise InputError(str(path), why="there is no such study")
    return path if path.is_dir() else default_folder(path)
