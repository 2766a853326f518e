"""A program of a user's own for the command runner's tests: does what its first argument says.

Standard library only: the tests start this file with whatever interpreter runs them.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

DIRECTORY = Path(os.environ["LSMTUNE_DIRECTORY"])


def say(said: object) -> None:
    with Path(os.environ["LSMTUNE_RESULTS"]).open("a") as results:
        results.write((said if isinstance(said, str) else json.dumps(said)) + "\n")


def ok() -> None:
    """Reports what it was given, in numbers."""
    parameters = json.loads(Path(os.environ["LSMTUNE_PARAMETERS"]).read_text())["parameters"]
    say({"score": parameters["size"] * 2, "seed": int(os.environ["LSMTUNE_SEED"])})


def echo() -> None:
    """Keeps all that it was started with beside the run's directory."""
    started = {
        "arguments": sys.argv[2:],
        "environment": dict(os.environ),
        "cwd": str(Path.cwd()),
        "files": {p.name: p.read_text() for p in DIRECTORY.iterdir()},
        "trial": json.loads(Path(os.environ["LSMTUNE_PARAMETERS"]).read_text()),
    }
    (DIRECTORY.parent / "echo.json").write_text(json.dumps(started))
    say({"score": 1})


def lines() -> None:
    """Says each of its arguments as a line, the last without a line end."""
    for line in sys.argv[2:-1]:
        say(line)
    with Path(os.environ["LSMTUNE_RESULTS"]).open("a") as results:
        results.write(sys.argv[-1])


def output() -> None:
    print("\n".join(sys.argv[2:]))


def document() -> None:
    (DIRECTORY / "out.json").write_text(sys.argv[2])


def misplace() -> None:
    """Puts a pipe, a directory or a link to a device where a file was expected."""
    place = Path(sys.argv[3])
    place.unlink(missing_ok=True)
    match sys.argv[2]:
        case "pipe":
            os.mkfifo(place)
        case "folder":
            place.mkdir()
        case "zeros":
            place.symlink_to("/dev/zero")
    time.sleep(float(sys.argv[4]))


def stepwise() -> None:
    """Reports a step every 20 ms for ever."""
    for step in range(10**9):
        say({"step": step, "score": step / 2})
        time.sleep(0.02)


def stubborn() -> None:
    """Ignores SIGTERM, and so does its child."""
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    child()


def child() -> None:
    started = subprocess.Popen(["sleep", "600"])
    (DIRECTORY.parent / "child.pid").write_text(str(started.pid))
    say({"step": 1, "score": 1})
    time.sleep(600)


def strays() -> None:
    """Its child leaves the process group."""
    started = subprocess.Popen(["sleep", "600"], start_new_session=True)
    (DIRECTORY.parent / "child.pid").write_text(str(started.pid))
    say({"step": 1, "score": 1})
    time.sleep(600)


def leaves_child() -> None:
    started = subprocess.Popen(["sleep", "600"])
    (DIRECTORY.parent / "child.pid").write_text(str(started.pid))
    say({"score": 1})


def hang() -> None:
    say({"step": 1, "score": 1})
    time.sleep(600)


def crash() -> None:
    say({"score": 1})
    print("to stdout")
    print("Assertion `n < 2' failed.", file=sys.stderr, flush=True)
    number = int(sys.argv[2])
    if number < 0:
        os.kill(os.getpid(), -number)
    sys.exit(number)


def eat_memory() -> None:
    """Two children hold half of it each; the parent holds none."""
    hold = "import os, time; held = os.urandom(1 << 20) * 96; time.sleep(600)"
    for _ in range(2):
        subprocess.Popen([sys.executable, "-S", "-c", hold])
    time.sleep(600)


def share_memory() -> None:
    """Four forks share what their parent has: 96 MiB in all, 480 MiB by resident sizes."""
    held = os.urandom(1 << 20) * 96
    children = []
    for _ in range(4):
        pid = os.fork()
        if pid == 0:
            while not (DIRECTORY.parent / "looked").exists():
                time.sleep(0.01)
            os._exit(0 if held else 1)
        children.append(pid)
    say({"step": 1, "score": 1})
    for pid in children:
        os.waitpid(pid, 0)
    say({"score": 1})


def fill_disk() -> None:
    with (DIRECTORY / "data").open("wb") as data:
        for _ in range(64):
            data.write(os.urandom(1 << 20))
        data.flush()
    time.sleep(600)


def spin() -> None:
    """Half a second of processor time."""
    while time.process_time() < 0.5:
        pass
    say({"score": 1})


if __name__ == "__main__":
    {name: value for name, value in globals().items() if callable(value)}[sys.argv[1]]()
