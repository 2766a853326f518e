"""A made-up machine: files below a folder that stands for `/`."""

from __future__ import annotations

from pathlib import Path


def put(root: Path, path: str, text: str) -> Path:
    """Write a file of the made-up machine."""
    file = root / path
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)
    return file
