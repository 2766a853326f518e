"""Release a version: set it everywhere, date the changelog, commit and tag. Nothing is pushed.

    make release VERSION=0.2.0

`__version__` of python/lsmtune/__init__.py is the source, which wheels and the sdist read. The
crate of the driver has the same. Everything is checked before anything is written.
"""

from __future__ import annotations

import re
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path

CHECKOUT = Path(__file__).resolve().parents[1]
CHANGELOG = "CHANGELOG.md"
# File -> what stands before the version in it, and after it.
PLACES = {
    "python/lsmtune/__init__.py": (r'^__version__ = "', '"'),
    "driver/Cargo.toml": (r'^name = "lsmtune-driver"\nversion = "', '"'),
    "driver/Cargo.lock": (r'^name = "lsmtune-driver"\nversion = "', '"'),
    "driver/fuzz/Cargo.lock": (r'^name = "lsmtune-driver"\nversion = "', '"'),
}
_VERSION = re.compile(r"(\d+)\.(\d+)\.(\d+)")
_UNRELEASED = re.compile(r"^## Unreleased\n(.*?)(?=^## |\Z)", re.M | re.S)


class RefusedError(Exception):
    """Why there is no release."""


def git(*arguments: str) -> str:
    """What git says. Raises RefusedError when it fails."""
    command = ["git", "-C", str(CHECKOUT), *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise RefusedError(f"git {arguments[0]}: {' '.join((done.stderr or done.stdout).split())}")
    return done.stdout


def numbers(version: str) -> tuple[int, ...]:
    """`version` as something to order by. Raises RefusedError unless it is three numbers."""
    found = _VERSION.fullmatch(version)
    if found is None:
        raise RefusedError(f"VERSION: found {version!r}; allowed: three numbers, such as 0.2.0")
    return tuple(map(int, found.groups()))


def with_version(file: str, text: str, version: str | None = None) -> tuple[str, str]:
    """The version that `text`, of `file`, states, and the text with `version` in its place."""
    before, after = PLACES[file]
    places = list(re.finditer(rf"({before})([^\"]+){after}", text, re.M))
    if len(places) != 1:
        raise RefusedError(f"{file}: found {len(places)} places with the version; allowed: one")
    found = places[0]
    return found[2], text[: found.start(2)] + (version or found[2]) + text[found.end(2) :]


def agreed_version(texts: dict[str, str]) -> str:
    """The version that all places state. Raises RefusedError when they differ."""
    stated = {file: with_version(file, texts[file])[0] for file in PLACES}
    if len(set(stated.values())) != 1:
        listed = ", ".join(f"{file} says {version}" for file, version in stated.items())
        raise RefusedError(f"the versions differ: {listed}")
    return next(iter(stated.values()))


def dated(changelog: str, version: str, day: str) -> str:
    """`changelog` with what was unreleased below a heading of this version and day."""
    found = _UNRELEASED.search(changelog)
    if found is None or not re.search(r"^- ", found[1], re.M):
        raise RefusedError(f"{CHANGELOG}: no lines below `## Unreleased`; next step: write some")
    if re.search(rf"^## {re.escape(version)}\b", changelog, re.M):
        raise RefusedError(f"{CHANGELOG}: has a heading of {version} already")
    heading = f"## Unreleased\n\n## {version} ({day})\n"
    return changelog[: found.start()] + heading + found[1] + changelog[found.end() :]


def release(version: str, day: str) -> None:
    """Make the commit and the tag of `version`.

    Raises RefusedError, and then nothing is changed.
    """
    wanted = numbers(version)
    changed = git("status", "--porcelain").splitlines()
    if changed:
        raise RefusedError(f"{changed[0][3:]}: is not committed; next step: commit, or remove it")
    before = {file: (CHECKOUT / file).read_text(encoding="utf-8") for file in (*PLACES, CHANGELOG)}
    current = agreed_version(before)
    released = [
        tag[1:] for tag in git("tag", "--list", "v*").split() if _VERSION.fullmatch(tag[1:])
    ]
    newest = max(map(numbers, released), default=())
    if wanted <= newest or wanted < numbers(current):
        last = f"v{'.'.join(map(str, newest))} is tagged" if newest else "nothing is tagged"
        raise RefusedError(f"VERSION: found {version}; the checkout has {current}, and {last}")
    after = {file: with_version(file, before[file], version)[1] for file in PLACES}
    after[CHANGELOG] = dated(before[CHANGELOG], version, day)
    try:
        for file, text in after.items():
            (CHECKOUT / file).write_text(text, encoding="utf-8")
        git("commit", "--quiet", "--message", f"Release {version}", "--", *after)
    except BaseException:
        for file, text in before.items():
            (CHECKOUT / file).write_text(text, encoding="utf-8")
        raise
    git("tag", "--annotate", f"v{version}", "--message", f"lsmtune {version}")


def main(arguments: list[str]) -> int:
    """Release the version that is the one argument; returns the exit status."""
    try:
        release(arguments[0] if len(arguments) == 1 else "", f"{datetime.now(UTC):%Y-%m-%d}")
    except RefusedError as error:
        print(f"release: {error}", file=sys.stderr)
        return 2
    print(
        f"tagged v{arguments[0]}; next: the rest of docs/releasing.md, then git push --follow-tags"
    )
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
