"""YCSB-cpp as the peer: one process per load or run, with its own HDR histograms on.

YCSB-cpp counts opening and closing the database as part of its runtime, which the driver does not.
`opening_s` measures both with a call that does next to nothing, so that they can be taken off.
"""

from __future__ import annotations

import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from lsmtune.programs.ycsb_cpp_output import YcsbPhase, parse_ycsb_log

# Types that YCSB-cpp files an operation under whose key was not there.
_FAILED = "-FAILED"
_LOOKUPS = ("READ", "UPDATE")  # an update begins with a lookup; a read-modify-write is one of each
# With -s the counts are printed when a phase begins and ends; nothing in between.
_NO_STATUS_BETWEEN_S = "100000"


@dataclass(frozen=True)
class YcsbCpp:
    """The program, the engine that it was built with, and what it is to open databases with.

    `properties` are `rocksdb.*` or `leveldb.*`, without the database's folder.
    """

    binary: Path
    engine: str
    properties: Mapping[str, str]

    def load(self, database: Path, workload: Path, properties: Mapping[str, str]) -> YcsbPhase:
        """Loads an empty `database`. Raises CalledProcessError, InputError for its output."""
        return self._call("-load", database, workload, properties)

    def run(self, database: Path, workload: Path, properties: Mapping[str, str]) -> YcsbPhase:
        """Runs on a loaded `database`. Raises as `load`."""
        return self._call("-run", database, workload, properties)

    def opening_s(self, database: Path, workload: Path, properties: Mapping[str, str]) -> float:
        """Seconds that opening and closing take, where a run does nothing between them.

        By one thread: one of several that has nothing to do closes the database under the others.
        """
        none = {**properties, "operationcount": "0", "threadcount": "1"}
        return self._call("-run", database, workload, none).elapsed_s

    def _call(
        self, what: str, database: Path, workload: Path, properties: Mapping[str, str]
    ) -> YcsbPhase:
        given = {
            **self.properties,
            f"{self.engine}.dbname": str(database),
            f"{self.engine}.destroy": "false",
            "status.interval": _NO_STATUS_BETWEEN_S,
            **properties,
        }
        settings = [word for name, value in given.items() for word in ("-p", f"{name}={value}")]
        command = [str(self.binary), what, "-db", self.engine, "-P", str(workload), "-s", *settings]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
        return parse_ycsb_log(done.stdout, self.binary.name).phases[-1]


def lookups(phase: YcsbPhase) -> tuple[int, int]:
    """Keys that lookups of `phase` found, and keys that they did not find."""
    counts = {name: latency.count for name, latency in phase.by_type.items()}
    found = sum(counts.get(name, 0) for name in _LOOKUPS)
    return found, sum(counts.get(name + _FAILED, 0) for name in _LOOKUPS)
