#!/usr/bin/env python3
"""Make `python/lsmtune/engines/catalogues/rocksdb.json` from OPTIONS files and db_bench's help.

    scripts/rocksdb_catalogue.py --flags HELP OPTIONS-file... > .../catalogues/rocksdb.json

Each OPTIONS file is one that a RocksDB of another version wrote when it opened a database with
its defaults; HELP is what `db_bench --help` prints. The catalogue is the union over versions.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
from configparser import RawConfigParser
from pathlib import Path
from typing import Any

# Options that RocksDB reads from an OPTIONS file and never writes into one.
READ_ONLY_OPTIONS = {"TableOptions/BlockBasedTable": ("block_cache",)}


def read_sections(text: str) -> tuple[str, dict[str, dict[str, str]]]:
    """Version of the RocksDB that wrote `text`, and section -> option -> default."""
    parser = RawConfigParser(delimiters=("=",))
    parser.optionxform = str  # type: ignore[assignment,method-assign]
    parser.read_string(text)
    sections = {name.partition(" ")[0]: dict(parser[name]) for name in parser.sections()}
    version = sections.pop("Version")["rocksdb_version"]
    return version, sections


def read_flags(text: str) -> dict[str, str]:
    """Flag -> type of the flags that `db_bench --help` lists for its own source file."""
    _, _, own = text.partition("db_bench_tool.cc:")
    own = re.split(r"\n\n?  Flags from ", own)[0]
    return dict(re.findall(r"^    -(\w+) \(.*?\)\s+type:\s+(\w+)", own, re.M | re.S))


def main() -> None:
    """Read the files named on the command line and print the catalogue."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--flags", type=Path, required=True)
    parser.add_argument("options", type=Path, nargs="+")
    arguments = parser.parse_args()
    flags = read_flags(arguments.flags.read_text())
    versions: list[str] = []
    options: dict[str, dict[str, Any]] = {}
    for path in arguments.options:
        version, sections = read_sections(path.read_text())
        versions.append(version)
        for section, found in sections.items():
            names: dict[str, str | None] = {
                **found,
                **dict.fromkeys(READ_ONLY_OPTIONS.get(section, ()), None),
            }
            for name, default in names.items():
                entry = options.setdefault(name, {"section": section, "defaults": {}})
                if entry["section"] != section:
                    sys.exit(f"{name} is in {entry['section']} and in {section}")
                entry["defaults"][version] = default
    for name, entry in options.items():
        if name in flags:
            entry["db_bench_type"] = flags[name]
    made = "scripts/rocksdb_catalogue.py, from OPTIONS files of the versions and db_bench --help"
    lines = (f"{json.dumps(name)}: {json.dumps(entry)}" for name, entry in sorted(options.items()))
    head = f'"made_by": {json.dumps(made)},\n"versions": {json.dumps(versions)},\n"options": {{\n'
    print("{\n" + head + ",\n".join(lines) + "\n}\n}")


if __name__ == "__main__":
    main()
