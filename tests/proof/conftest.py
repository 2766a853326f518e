"""The fake runner, and the fixtures of the tests that tune, live with the tests of the loop."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent / "study"))

from files_library import files_library
from memory_folder import tmp_path
from proof_parts import folder

__all__ = ["files_library", "folder", "tmp_path"]
