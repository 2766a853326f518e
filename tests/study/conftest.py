"""Fixtures of the tests that tune."""

from memory_folder import tmp_path

from postgres import server

__all__ = ["server", "tmp_path"]
