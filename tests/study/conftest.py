"""Fixtures of the tests that tune."""

from memory_folder import tmp_path

__all__ = ["tmp_path"]
