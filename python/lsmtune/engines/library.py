"""An engine library: a file that can be loaded, and what is known of it."""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass
from pathlib import Path

from lsmtune.records.engine import EngineIdentity


@dataclass(frozen=True)
class Library:
    """One engine library.

    `identity.version` is None and `compressions` is empty until the driver has probed it.
    `origin` says where it came from: `rocksdbjni 10.2.1 jar`, `distribution package`,
    `user: /path`.
    """

    path: Path
    identity: EngineIdentity
    compressions: tuple[str, ...]
    origin: str


def version_key(version: str | None) -> tuple[int, ...]:
    """`version` as something to order by: `10.2.1` after `7.8.3`, unknown before both."""
    return tuple(int(part) for part in re.findall(r"\d+", version or ""))


def file_sha256(path: Path) -> str:
    """The SHA-256 of a file's bytes, in hexadecimal."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
