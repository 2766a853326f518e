"""Which build of which engine an experiment has measured: it goes on with no other.

Measurements of two versions, or two builds, of one library cannot be compared. Arms of two
libraries can: that is what their comparison asks.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

from lsmtune.errors import InputError
from lsmtune.experiment.database_key import digest_of
from lsmtune.experiment.folder import StudyFolder
from lsmtune.model.codec import decode, encode
from lsmtune.model.config import Build, EngineIdentity

# The stored fact: what each library said of itself in its first run, by its path, and in it the
# SHA-256 of its file.
_ENGINES, _SHA256 = "engines", "sha256"


def refuse_other(
    folder: StudyFolder,
    asked: EngineIdentity,
    answered: EngineIdentity | None = None,
    *,
    alone: bool = False,
) -> None:
    """Raises InputError when the library of `asked` is not the build that `folder` has measured.

    `answered` is what the engine said of itself; the first answer is kept. `alone`: all arms of the
    experiment are of this library, so that one which was not measured is refused, too. By the
    SHA-256 of its file a library that was moved is the same one, and one that was compiled again in
    its place is another one.
    """
    known: Mapping[str, Mapping[str, Any]] = folder.measurements.fact(_ENGINES) or {}
    engine, place = answered or asked, asked.library or asked.name
    if engine.build is Build.UNKNOWN:  # how it was built only the request may know
        engine = replace(engine, build=asked.build)
    sha256: str | None = None
    if asked.library is not None:
        with suppress(OSError):  # of a file that is not there; the run itself says so
            sha256 = digest_of(Path(asked.library))
    now = encode(engine) | {_SHA256: sha256}
    place_before = place
    if alone and known and place not in known:
        place_before = next(iter(known))  # the one library that was measured
    before = known.get(place_before)
    if before is not None and _differ(before, now):
        raise InputError(
            str(folder.path),
            "engine",
            why="measurements of two versions or builds of an engine cannot be compared",
            found=_described(place, now),
            allowed=f"{_described(place_before, before)}, with which this study began, or "
            "another folder (--dir DIR)",
        )
    if place not in known and answered is not None and engine.version is not None:
        folder.measurements.set_fact(_ENGINES, {**known, place: now})


def _differ(before: Mapping[str, Any], now: Mapping[str, Any]) -> bool:
    """Whether the two are known to be different builds: what is not known of one does not count."""
    one, other = decode(EngineIdentity, before), decode(EngineIdentity, now)
    if other.version is not None and (one.name, one.version) != (other.name, other.version):
        return True
    digests = before[_SHA256], now[_SHA256]
    if None not in digests:
        return bool(digests[0] != digests[1])
    return one.build is not other.build and Build.UNKNOWN not in (one.build, other.build)


def _described(place: str, entry: Mapping[str, Any]) -> str:
    """A build in words."""
    engine, digest = decode(EngineIdentity, entry), entry[_SHA256]
    build = "" if engine.build is Build.UNKNOWN else f" ({engine.build.value})"
    file = "" if digest is None else f", SHA-256 {digest[:12]} at {place}"
    return f"{engine.title}{build}{file}"
