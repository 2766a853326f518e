"""A disk that is full, and what a run says of what went wrong."""

from __future__ import annotations

import errno
import os
from typing import NoReturn

from lsmtune.model.measurement import Measurement


def disk_is_full(*_arguments: object, **_named: object) -> NoReturn:
    """In the place of a call of the operating system."""
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def why_not_ok(measurement: Measurement) -> str:
    """Why the run did not end well, which is one line."""
    assert measurement.error is not None
    assert "\n" not in measurement.error.message
    return measurement.error.message
