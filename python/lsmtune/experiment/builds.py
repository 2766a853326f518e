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
from lsmtune.experiment.database_key import library_sha256
from lsmtune.experiment.folder import StudyFolder
from lsmtune.model.codec import decode, encode
from lsmtune.model.config import Build, EngineIdentity

# The stored fact: what each library said of itself in its first run, by its path, and in it the
# SHA-256 of its file, which folders of an older lsmtune lack.
_ENGINES, _SHA256 = "engines", "sha256"

_Known = tuple[str, Mapping[str, Any]]  # one of them, with its path


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
    known: Mapping[str, dict[str, Any]] = folder.measurements.fact(_ENGINES) or {}
    engine, place = answered or asked, asked.library or asked.name
    sha256: str | None = None
    if asked.library is not None:
        with suppress(OSError):  # of a file that is not there; the run itself says so
            sha256 = library_sha256(Path(asked.library))
    now = encode(engine) | {_SHA256: sha256}
    if place not in known and sha256 is not None:
        same = (moved for moved, each in known.items() if each.get(_SHA256) == sha256)
        place = next(same, place)
    before = known.get(place)
    if before is not None and _differ(before, now):
        raise _refusal(folder, (place, before), (place, now))
    if before is None and known and alone:
        raise _refusal(folder, next(iter(known.items())), (place, now))
    if answered is None or engine.version is None:
        return
    if before is None:
        # The engine's own words win; how it was built only the request knows.
        if engine.build is Build.UNKNOWN:
            engine = replace(engine, build=asked.build)
        before = encode(engine)
    elif sha256 is None or before.get(_SHA256) is not None:
        return
    folder.measurements.set_fact(_ENGINES, {**known, place: before | {_SHA256: sha256}})


def _refusal(folder: StudyFolder, before: _Known, now: _Known) -> InputError:
    first, found = _told_apart(before, now)
    return InputError(
        str(folder.path),
        "engine",
        why="measurements of two versions or builds of an engine cannot be compared",
        found=found,
        allowed=f"{first}, with which this study began, or another folder (--dir DIR)",
    )


def _differ(before: Mapping[str, Any], now: Mapping[str, Any]) -> bool:
    """Whether the two are known to be different builds: what is not known of one does not count."""
    one, other = decode(EngineIdentity, before), decode(EngineIdentity, now)
    if other.version is not None and (one.name, one.version) != (other.name, other.version):
        return True
    if one.build is not other.build and Build.UNKNOWN not in (one.build, other.build):
        return True
    digests = before.get(_SHA256), now[_SHA256]
    return None not in digests and digests[0] != digests[1]


def _told_apart(*both: _Known) -> list[str]:
    """Each of two builds in words: as much as it takes to tell one from the other."""
    texts = []
    for _, entry in both:
        engine = decode(EngineIdentity, entry)
        build = "" if engine.build is Build.UNKNOWN else f" ({engine.build.value})"
        texts.append(f"{engine.title}{build}")
    if both[0][0] != both[1][0]:
        return [f"{text} at {place}" for text, (place, _) in zip(texts, both, strict=True)]
    if texts[0] == texts[1]:
        digests = (str(entry.get(_SHA256))[:12] for _, entry in both)
        texts = [f"{text}, SHA-256 {d}" for text, d in zip(texts, digests, strict=True)]
    return texts
