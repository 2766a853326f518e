"""Run a command of cargo or go that builds with a binding of RocksDB, on a library that is there.

    .venv/bin/python scripts/with_rocksdb.py LIBRARY PROJECT COMMAND...

The binding links LIBRARY in place of a RocksDB that it would compile for many minutes. What
is built is kept in the cache; the crate rocksdb takes 30 s of one core, grocksdb 20 s.
"""

from __future__ import annotations

import fcntl
import json
import os
import shutil
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

GO_MODULE = "github.com/linxGnu/grocksdb"


def main(library: Path, project: Path, command: list[str]) -> None:
    """Becomes `command`, in the folder `project`."""
    if shutil.which(command[0]) is None:
        sys.exit(f"{command[0]} is not installed")
    os.chdir(project)
    kept = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "lsmtune" / "bindings"
    environment = dict(os.environ, LD_LIBRARY_PATH=str(kept / "lib"))
    link(kept / "lib" / "librocksdb.so", library)
    settings = _of_go(kept) if command[0] == "go" else _of_rust(kept)
    os.execvpe(command[0], command, environment | settings)


def _of_rust(kept: Path) -> dict[str, str]:
    """The crate's bindgen reads RocksDB's header with libclang, whose wheel has no C headers.

    One command at a time: the file that `cargo run` builds has one name, whatever is in it.
    """
    lock = os.open(kept / "lock", os.O_CREAT | os.O_RDWR)
    fcntl.flock(lock, fcntl.LOCK_EX)
    os.set_inheritable(lock, True)
    settings = {
        "CARGO_TARGET_DIR": str(kept / "target"),
        "ROCKSDB_LIB_DIR": str(kept / "lib"),
        "BINDGEN_EXTRA_CLANG_ARGS": f"-I{said_by('cc', '-print-file-name=include')}",
    }
    if (clang := find_spec("clang")) is not None:
        settings["LIBCLANG_PATH"] = str(Path(clang.submodule_search_locations[0]) / "native")
    return settings


def _of_go(kept: Path) -> dict[str, str]:
    """The module brings RocksDB's header along, in another place than it looks for it."""
    module = json.loads(said_by("go", "mod", "download", "-json", GO_MODULE))
    link(kept / "include" / "rocksdb" / "c.h", Path(module["Dir"]) / "c.h")
    return {
        "GOFLAGS": f"{os.environ.get('GOFLAGS', '')} -tags=grocksdb_no_link".strip(),
        "CGO_CFLAGS": f"-I{kept / 'include'}",
        "CGO_LDFLAGS": f"-L{kept / 'lib'} -lrocksdb",
    }


def said_by(*command: str) -> str:
    """Standard output of a program; it ends this one where it fails."""
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=False)
    if done.returncode:
        sys.exit(done.returncode)
    return done.stdout.strip()


def link(place: Path, to: Path) -> None:
    """`place` leads to `to`, at each moment of several of these programs."""
    if place.is_symlink() and place.readlink() == to:
        return
    place.parent.mkdir(parents=True, exist_ok=True)
    made = place.with_name(f"{place.name}.{os.getpid()}")
    made.symlink_to(to)
    made.replace(place)


if __name__ == "__main__":
    main(Path(sys.argv[1]).absolute(), Path(sys.argv[2]), sys.argv[3:])
