"""The engine library inside a `rocksdbjni` jar: RocksDB's releases for Java carry one."""

from __future__ import annotations

import platform
import shutil
import zipfile
from pathlib import Path

from lsmtune.errors import InputError

# Names inside the jar, by `platform.machine()`. They need glibc; the musl builds in the jar of
# all platforms have names of their own.
_MEMBERS = {
    "x86_64": "librocksdbjni-linux64.so",
    "aarch64": "librocksdbjni-linux-aarch64.so",
    "ppc64le": "librocksdbjni-linux-ppc64le.so",
    "s390x": "librocksdbjni-linux-s390x.so",
    "riscv64": "librocksdbjni-linux-riscv64.so",
}


def extract_library(jar: Path, folder: Path, source: str) -> Path:
    """Copy this machine's engine library out of `jar` into `folder`; returns the new file.

    Raises InputError, naming `source`, when the file is no jar or holds none for this machine.
    """
    machine = platform.machine()
    wanted = _MEMBERS.get(machine)
    try:
        with zipfile.ZipFile(jar) as archive:
            libraries = [n for n in archive.namelist() if n.endswith(".so")]
            if wanted is None or wanted not in libraries:
                why = f"holds no RocksDB library for {machine}"
                allowed = wanted or "a machine among " + ", ".join(_MEMBERS)
                raise InputError(
                    source, found=", ".join(libraries) or str(jar), why=why, allowed=allowed
                )
            target = folder / wanted
            with archive.open(wanted) as inside, target.open("wb") as outside:
                shutil.copyfileobj(inside, outside)
            return target
    except zipfile.BadZipFile as error:
        raise InputError(source, found=str(jar), why=f"not a jar ({error})") from error
    except OSError as error:
        raise InputError(source, found=str(jar), why=str(error.strerror)) from error
