"""A PostgreSQL server of the tests' own, where Debian's package `postgresql` is installed.

Its cluster lies in a temporary folder, and it listens on a socket there alone.
"""

from __future__ import annotations

import os
import pwd
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path

import pytest

_USERS = ("postgres", "nobody")  # whom root becomes: PostgreSQL refuses to run as root


def programs() -> Path | None:
    """Where `initdb` and `pg_ctl` are."""
    on_path = shutil.which("initdb")
    found = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"))
    places = [Path(on_path)] if on_path else found[-1:]
    return places[0].parent if places else None


@contextmanager
def cluster(directory: Path) -> Iterator[str]:
    """A server whose files are in `directory`, while the context lasts: the URL of a database."""
    where = programs()
    assert where is not None
    as_other: list[str] = []
    if os.getuid() == 0:
        user = next(name for name in _USERS if name in {each.pw_name for each in pwd.getpwall()})
        shutil.chown(directory, user)
        as_other = ["runuser", "-u", user, "--"]
    data, log = directory / "data", directory / "log"

    def run(*command: str) -> None:
        done = subprocess.run(
            [*as_other, *command], cwd=directory, capture_output=True, text=True, check=False
        )
        told = log.read_text() if log.is_file() else ""
        assert done.returncode == 0, f"{command[0]}: {done.stdout}{done.stderr}{told}"

    run(str(where / "initdb"), "-D", str(data), "-U", "tuner", "-A", "trust", "--no-sync")
    # What a kill of the server itself leaves is PostgreSQL's own promise.
    settings = f"-c listen_addresses= -k {directory} -c fsync=off"
    control = [str(where / "pg_ctl"), "-D", str(data), "-w", "-l", str(log)]
    run(*control, "-o", settings, "start")
    try:
        yield f"postgresql://tuner@/postgres?host={directory}"
    finally:
        run(*control, "-m", "immediate", "stop")


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    """The URL of a server; skips where there is none, or no way to talk to it."""
    if programs() is None:
        pytest.skip("PostgreSQL is not installed (Debian's package postgresql)")
    if find_spec("psycopg") is None:
        pytest.skip("psycopg is not installed (pip install 'lsmtune[postgres]')")
    memory = Path("/dev/shm")
    where = memory if os.access(memory, os.W_OK) else None
    with tempfile.TemporaryDirectory(prefix="lsmtune-pg-", dir=where) as name:
        Path(name).chmod(0o755)
        with cluster(Path(name)) as url:
            yield url
