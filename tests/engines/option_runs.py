"""Opening real engines with many configurations: a tiny run for each, judged by what took."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from lsmtune.driver.native import NativeRunner
from lsmtune.model.config import Config, EngineIdentity, OptionValue
from lsmtune.model.measurement import Outcome
from lsmtune.model.request import Limits, RunRequest
from lsmtune.model.workload import Phase, PhaseKind, Workload

LIMITS = Limits(deadline_s=60.0, memory_bytes=4 * 2**30, disk_bytes=8 * 2**30)
NUM = 50
TINY = Workload(
    "tiny",
    (
        Phase("load", PhaseKind.LOAD, "filluniquerandom", operations_per_thread=NUM),
        Phase("read", PhaseKind.MEASURE, "readrandom", operations_per_thread=NUM),
    ),
    num=NUM,
)
DIRECT = ("use_direct_reads", "use_direct_io_for_flush_and_compaction")


@dataclass(frozen=True)
class Opener:
    """Opens `library` of `engine` in folders below `folder`."""

    driver: Path
    engine: str
    library: Path
    folder: Path

    def trouble(self, options: Mapping[str, OptionValue]) -> str:
        """What went wrong with a run with `options`, and each that did not take; empty if none."""
        identity = EngineIdentity(self.engine, library=str(self.library))
        with tempfile.TemporaryDirectory(dir=self.folder) as folder:
            request = RunRequest(identity, Config(options), TINY, 1, Path(folder), LIMITS)
            measurement = NativeRunner(self.driver).run(request)
        if measurement.outcome is not Outcome.OK:
            return f"{measurement.outcome}: {measurement.error and measurement.error.message}"
        changed = measurement.options_not_taken
        return "; ".join(f"{o.name}={o.requested}: {o.effective}" for o in changed)

    def able(self, options: Mapping[str, OptionValue]) -> bool:
        """Whether this machine's file system can do what `options` ask of it."""
        return has_direct_io(self.folder) or not any(options.get(name) is True for name in DIRECT)


def has_direct_io(folder: Path) -> bool:
    """Whether files in `folder` can be opened for direct input and output."""
    path = folder / "direct"
    try:
        os.close(os.open(path, os.O_CREAT | os.O_WRONLY | os.O_DIRECT))
    except OSError:
        return False
    finally:
        path.unlink(missing_ok=True)
    return True
