"""What the tests of this room share: made-up engine libraries, and where real ones are."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from lsmtune.engines.libraries import distribution_libraries

# A library with the engine's entry point and methods that check themselves with assertions.
_SOURCE = """
#include <cassert>
#include <cstdio>
namespace {engine} {{
struct Slice {{ {methods} }};
{definitions}
}}
extern "C" void {engine}_open(int n) {{ {engine}::Slice s; {calls} }}
"""


def compile_library(path: Path, engine: str, *, flags: tuple[str, ...] = ()) -> Path:
    """Compile a made-up library of `engine` with 30 checked methods to `path`."""
    numbers = range(30)
    text = _SOURCE.format(
        engine=engine,
        methods=" ".join(f"void method{n}(int a);" for n in numbers),
        definitions="\n".join(
            f'void Slice::method{n}(int a) {{ assert(a > {n}); std::printf("%d", a); }}'
            for n in numbers
        ),
        calls=" ".join(f"s.method{n}(n);" for n in numbers),
    )
    source = path.with_suffix(".cc")
    source.write_text(text)
    subprocess.run(["c++", "-shared", "-fPIC", *flags, str(source), "-o", str(path)], check=True)
    return path


def distribution_library(engine: str) -> Path:
    """The distribution's library of `engine`; the test is skipped when there is none."""
    found = distribution_libraries(engine)
    if not found:
        pytest.skip(f"no {engine} package of the distribution is installed: make test-tools")
    return found[0].path


def rocksdb_db_bench() -> Path:
    """RocksDB's db_bench; the test is skipped when there is none."""
    found = shutil.which("db_bench")
    if found is None:
        pytest.skip("db_bench is not installed (package rocksdb-tools): make test-tools")
    return Path(found)
