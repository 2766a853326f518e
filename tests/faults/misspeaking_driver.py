"""The real driver behind a pipe that spoils what it says: its place in `REAL_DRIVER`.

`MISSPEAK=truncate` cuts a message of the second run in the middle and lets nothing follow it: that
is a trial, after the baseline. The file `MISSPEAK_RUNS` has a byte for each run so far.
`MISSPEAK=version` changes the version that the driver states.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path


def main() -> int:
    """Passes messages on, spoilt."""
    output = int(sys.argv[sys.argv.index("--output-fd") + 1])
    read_fd, write_fd = os.pipe()
    arguments = [os.environ["REAL_DRIVER"], "--output-fd", str(write_fd)]
    with subprocess.Popen(arguments, pass_fds=(write_fd,)) as driver:
        os.close(write_fd)
        with os.fdopen(read_fd, "rb") as messages:
            for line in messages:
                spoilt = spoil(line)
                os.write(output, spoilt)
                if not spoilt.endswith(b"\n"):
                    driver.kill()
                    break
        driver.wait()
    return driver.returncode


def spoil(line: bytes) -> bytes:
    """`line`, as this driver says it."""
    how = os.environ["MISSPEAK"]
    if how == "version" and b'"hello"' in line:
        return re.sub(rb'"protocol_version":\d+', b'"protocol_version":999', line)
    if how == "truncate" and b'"phase_finished"' in line:
        with Path(os.environ["MISSPEAK_RUNS"]).open("ab") as runs:
            runs.write(b".")
            if runs.tell() == 2:
                return line[: len(line) // 2]
    return line


if __name__ == "__main__":
    sys.exit(main())
