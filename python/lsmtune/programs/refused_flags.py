"""How programs refuse a flag that they do not know, and what they say they know.

RocksDB's db_bench  "ERROR: unknown command line flag 'val_size'"   (gflags)
LevelDB's db_bench  "Invalid flag '--val_size=100'"
YCSB-cpp            "Unknown option '-x'", with exit status 0
ekvsb               "error: unexpected argument '--val-size' found" (clap)
"""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import dataclass

from lsmtune.errors import nearest_name

_REFUSALS = (
    re.compile(r"ERROR: unknown command line flag '(?P<flag>[^']*)'"),
    re.compile(r"Invalid flag '(?P<flag>[^']*)'"),
    re.compile(r"Unknown option '(?P<flag>[^']*)'"),
    re.compile(r"error: (?:unexpected argument|Found argument) '(?P<flag>[^']*)'.*"),
)
# gflags: `    -value_size (Size of each value ...) type: int32 default: 100`.
_HELP_FLAG = re.compile(r"^ +-(?P<flag>[A-Za-z0-9_]+) \(", re.MULTILINE)


@dataclass(frozen=True)
class RefusedFlag:
    """A flag that a program did not take, without its value; `nearest` is "" where none is near."""

    flag: str
    nearest: str

    @property
    def line(self) -> str:
        """What to tell the user."""
        hint = f"; did you mean {self.nearest}?" if self.nearest else ""
        return f"unknown flag {self.flag}{hint}"


def refused_flag(text: str, known: Collection[str] = ()) -> RefusedFlag | None:
    """The flag that `text`, a program's stderr, says it does not know; None where it does not.

    `known` are the program's flags, without dashes.
    """
    for line in text.splitlines():
        for pattern in _REFUSALS:
            if (match := pattern.match(line.strip())) is not None:
                return unknown_flag(match["flag"], known)
    return None


def unknown_flag(flag: str, known: Collection[str]) -> RefusedFlag:
    """`flag` as an unknown one, beside the nearest of `known`."""
    name = flag.lstrip("-").partition("=")[0]
    # A flag that is known, and refused all the same, is one of a newer version.
    nearest = "" if name in known else nearest_name(name, known)
    return RefusedFlag(f"--{name}", f"--{nearest}" if nearest else "")


def gflags_known(help_text: str) -> tuple[str, ...]:
    """The flags that the help of a program with gflags lists."""
    return tuple(match["flag"] for match in _HELP_FLAG.finditer(help_text))
