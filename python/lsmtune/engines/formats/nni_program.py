"""What the program of an NNI trial gives to db_bench.

NNI's example for RocksDB (`examples/trials/systems/rocksdb-fillrandom/main.py`, up to v2) and its
copies call db_bench with a dictionary of flags, over which they put the parameters of the trial.
Such a program is read, never run.
"""

from __future__ import annotations

import ast
import os
import re
import shlex
import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lsmtune.engines.formats.base import ImportRequest
from lsmtune.engines.formats.db_bench import read
from lsmtune.errors import InputError
from lsmtune.model.config import OptionValue
from lsmtune.model.text import read_text

_PROGRAM = re.compile(r".*\.(py|sh|bash)")
_CALLED = "db_bench"
_BENCHMARK = "benchmarks"
# Flags of db_bench, and the parameters of a workload that mean the same.
_WORKLOAD_FLAGS = {
    "num": "num",
    "reads": "reads",
    "threads": "threads",
    "duration": "duration_s",
    "key_size": "key_bytes",
    "value_size": "value_bytes",
    "compression_ratio": "compression_ratio",
}
_DURABILITY_FLAGS = {"disable_wal": "none", "sync": "sync"}
# Where the database lies, and what is printed: not worth a note.
_WITHOUT_EFFECT = frozenset({"db", "histogram", "statistics", "stats_interval", "progress_reports"})


@dataclass(frozen=True)
class Programs:
    """The programs that a command names: the text of each, and the names of those `missing`."""

    texts: Mapping[Path, str]
    missing: tuple[str, ...]

    @property
    def only_call_db_bench(self) -> bool:
        """Whether the native workload can stand in: one calls db_bench, or cannot start at all."""
        return bool(self.missing) or any(_CALLED in text for text in self.texts.values())

    def benchmark(
        self, engine: str
    ) -> tuple[dict[str, Any], Mapping[str, OptionValue], tuple[str, ...]]:
        """Fields of a workload, options of `engine`, and notes; all empty where nothing is said."""
        for path, text in self.texts.items():
            flags = _flags(text) if _CALLED in text else {}
            if not flags:
                continue
            workload: dict[str, Any] = {"name": flags.pop(_BENCHMARK)}
            for flag, parameter in _WORKLOAD_FLAGS.items():
                if flag in flags:
                    workload[parameter] = flags.pop(flag)
            for flag, durability in _DURABILITY_FLAGS.items():
                if flags.pop(flag, 0) in (1, True, "1", "true"):
                    workload["durability"] = durability
            words = [f"--{n}={v}" for n, v in flags.items() if n not in _WITHOUT_EFFECT]
            if not words:
                return workload, {}, ()
            config = read(ImportRequest(shlex.join(words), path, engine))
            # Line 1 is that of the flags put together, and not of the program.
            notes = tuple(note.replace(f"{path}:1:", f"{path}:", 1) for note in config.notes)
            return workload, config.options, notes
        return {}, {}, ()


def programs_of(command: str, folder: Path) -> Programs:
    """The Python and shell programs that `command` names, relative to `folder`."""
    try:
        words = shlex.split(command)
    except ValueError:
        words = command.split()
    paths = [folder / word for word in words if _PROGRAM.fullmatch(word)]
    # `Path.is_file` raises OSError for a name that is too long.
    there = [path for path in paths if os.path.isfile(path)]  # noqa: PTH113
    missing = tuple(path.name for path in paths if path not in there)
    return Programs({path: _text_of(path) for path in there}, missing)


def _text_of(path: Path) -> str:
    """The text of a program; empty for one that is no text in UTF-8, which stays the trial."""
    try:
        return read_text(path, "a program")
    except InputError:
        return ""


def _flags(text: str) -> dict[str, Any]:
    """The first dictionary of a Python program that says `benchmarks`: its plain values."""
    try:
        with warnings.catch_warnings(action="ignore"):  # of the program's own, such as "\\d"
            tree = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return {}
    for node in ast.walk(tree):
        if not isinstance(node, ast.Dict):
            continue
        plain = {
            key.value: value.value
            for key, value in zip(node.keys, node.values, strict=True)
            if isinstance(key, ast.Constant) and isinstance(value, ast.Constant)
        }
        if isinstance(plain.get(_BENCHMARK), str):
            return {name: value for name, value in plain.items() if isinstance(name, str)}
    return {}
