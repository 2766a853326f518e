"""The JSON report: every table of the analysis, with stable keys."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from enum import Enum
from pathlib import PurePath
from typing import Any

from lsmtune.analysis import StudyAnalysis
from lsmtune.report.headline import headline

FORMAT_VERSION = 1


def render(analysis: StudyAnalysis) -> str:
    """The whole analysis as one JSON document; numbers that are not finite become null."""
    document = {
        "format_version": FORMAT_VERSION,
        "headline": _plain(headline(analysis)),
        **_plain(analysis),
    }
    return json.dumps(document, indent=2, ensure_ascii=False, allow_nan=False) + "\n"


def _plain(value: object) -> Any:
    if isinstance(value, Enum):
        return value.value
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if value is None or isinstance(value, str | int):
        return value
    if isinstance(value, PurePath):
        return str(value)
    if is_dataclass(value) and not isinstance(value, type):
        return {f.name: _plain(getattr(value, f.name)) for f in fields(value)}
    if isinstance(value, Mapping):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    raise TypeError(f"{type(value).__name__} has no form in JSON")
