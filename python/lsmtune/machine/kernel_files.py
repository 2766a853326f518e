"""What the kernel says in small files below /proc and /sys; None is what it does not say.

Every reader of this room takes the folder that stands for `/`, so that tests can hand it a made-up
machine.
"""

from __future__ import annotations

from pathlib import Path

ROOT = Path("/")


def text_of(path: Path) -> str | None:
    """The text of a file without the white space around it; None where it cannot be read."""
    try:
        return path.read_text(encoding="utf-8", errors="replace").strip()
    except OSError:
        return None


def number_of(path: Path) -> int | None:
    """The whole number in a file; None where there is none, as in `max`."""
    text = text_of(path)
    return int(text) if text and text.lstrip("-").isdecimal() else None


def field_of(path: Path, name: str) -> int | None:
    """The number after `name` in a file of lines `name number`."""
    for line in (text_of(path) or "").splitlines():
        words = line.split()
        if len(words) == 2 and words[0] == name and words[1].isdecimal():
            return int(words[1])
    return None
