"""lsmtune's own families of workloads in the suite for all of them."""

from __future__ import annotations

from pathlib import Path

import pytest

from lsmtune.model.config import EngineIdentity
from lsmtune.testing.workloads import WorkloadSuite
from lsmtune.workloads.stated import FAMILIES


class TestUp2x(WorkloadSuite):
    name = "up2x"

    @pytest.mark.engine
    def test_the_driver_performs_it(self, tmp_path: Path, rocksdb_library: Path) -> None:
        """It has merges."""
        engine = EngineIdentity("rocksdb", None, str(rocksdb_library))
        self.perform(tmp_path, engine, merge_operator="put")


# A class for each of the others, as a package has one for its own.
for _name in FAMILIES:
    if _name != TestUp2x.name and FAMILIES.origin(_name) is None:
        globals()[f"Test_{_name}"] = type(f"Test_{_name}", (WorkloadSuite,), {"name": _name})
