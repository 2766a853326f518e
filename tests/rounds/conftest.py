"""The fake runner, and folders in memory, live with the tests of the loop."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent / "study"))

from memory_folder import tmp_path

__all__ = ["tmp_path"]
