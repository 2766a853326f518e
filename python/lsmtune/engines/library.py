"""An engine library: a file that can be loaded, and what its ELF file tells of it.

The file tells which engine it is, for which machine, and which build. How a release build is told
from one with assertions: an assertion that is compiled in leaves the signature of the function
around it (`__PRETTY_FUNCTION__`, for example `void leveldb::Slice::remove_prefix(size_t)`) among
the read-only strings, and nothing else in either engine does. Signatures inside the engine's own
namespace, counted in real libraries:

    rocksdbjni 10.2.1, linux64 and linux-aarch64 (release)      0
    rocksdbjni 10.10.1, linux64 (release)                       0
    Debian 12 librocksdb.so.7.8 (assertions on)              2516
    LevelDB 1.22, CMAKE_BUILD_TYPE=Release                      0
    Debian 12 libleveldb.so.1d, 1.23 (assertions on)          126

That `__assert_fail` is imported tells nothing: the release rocksdbjni imports it too, for the
compression libraries inside it.

A release may hold a Snappy that was compiled without optimisation, as rocksdbjni does: its build
passes no CMAKE_BUILD_TYPE to that of Snappy. It compresses 4 KiB at 290 MB/s where another build of
it makes 1,260 MB/s, so that every other compression seems better than it is. What tells: functions
of a few instructions, which a compiler that optimises puts into their callers, are exported.
"""

from __future__ import annotations

import hashlib
import importlib.metadata
import os
import platform
import re
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import platformdirs
from elftools.common.exceptions import ELFError
from elftools.elf.elffile import ELFFile
from elftools.elf.hash import GNUHashSection
from elftools.elf.sections import Symbol, SymbolTableSection

from lsmtune import plugins
from lsmtune.errors import InputError
from lsmtune.model.config import Build, EngineIdentity

# Engines of which lsmtune knows libraries and options. NAME is the C++ namespace of its classes,
# `libNAME.so` its library, and `NAME_open` a C function that every version exports.
ENGINE_KINDS = ("rocksdb", "leveldb")


@dataclass(frozen=True)
class PluginEngine:
    """An engine of another package, whose library speaks `driver/include/lsmtune_engine.h`.

    `library` says where it is, and raises InputError where it is not. Its options are those that
    the library lists.
    """

    name: str
    library: Callable[[], Path]


PLUGIN_ENGINES: plugins.Plugins[PluginEngine] = plugins.Plugins(plugins.ENGINES, {})

# Engines that are part of the driver: nothing to install, nothing to register.
BUILT_IN_ENGINES = ("memory", "noop")

ENGINE_NAMES = tuple(dict.fromkeys((*ENGINE_KINDS, *PLUGIN_ENGINES, *BUILT_IN_ENGINES)))

# `noop` stores nothing, so a study of it would compare nothing.
STUDY_ENGINES = tuple(name for name in ENGINE_NAMES if name != "noop")


# --- folders


def lsmtune_home() -> Path:
    """The folder named by LSMTUNE_HOME, else the platform's folder for user data. Not created."""
    chosen = os.environ.get("LSMTUNE_HOME")
    if chosen:
        return Path(chosen).expanduser().absolute()
    return platformdirs.user_data_path("lsmtune")


def engines_folder() -> Path:
    """Where engine libraries and their registry live. Not created."""
    return lsmtune_home() / "engines"


def logs_folder() -> Path:
    """Where the logs of downloads and builds are kept. Not created."""
    return lsmtune_home() / "logs"


# --- what a wheel brings


def packaged_file(name: str) -> Path | None:
    """The file `name` of the installed distribution; None where it has none, as in a checkout."""
    try:
        files = importlib.metadata.files("lsmtune") or []
    except importlib.metadata.PackageNotFoundError:
        return None
    return next((Path(str(file.locate())) for file in files if file.name == name), None)


# --- libraries


@dataclass(frozen=True)
class Library:
    """One engine library.

    Until the driver has probed it, `identity.version` is None, and `compressions` are those that
    its recipe promises, if any. `origin` says where it came from: `rocksdbjni 10.10.1 jar`,
    `packaged with lsmtune`, `distribution package`, `user: /path`.
    """

    path: Path
    identity: EngineIdentity
    compressions: tuple[str, ...]
    origin: str

    @classmethod
    def unprobed(
        cls,
        path: Path,
        engine: str,
        origin: str,
        build: Build = Build.UNKNOWN,
        promised: tuple[str, ...] = (),
    ) -> Library:
        """A library of `engine` that the driver has not probed."""
        return cls(path, EngineIdentity(engine, None, str(path), build), promised, origin)


def version_key(version: str | None) -> tuple[int, ...]:
    """`version` as something to order by: `10.2.1` after `7.8.3`, unknown before both."""
    return tuple(int(part) for part in re.findall(r"\d+", version or ""))


def file_sha256(path: Path) -> str:
    """The SHA-256 of a file's bytes, in hexadecimal."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


# --- what the file tells

# Fewer than this could be a stray string of a fork (a log line that quotes a signature); both
# builds with assertions on have more than a hundred.
_SIGNATURES_OF_AN_ASSERTIONS_BUILD = 20
# Of a Snappy that was compiled without optimisation.
_NOT_INLINED = "_ZN6snappy12LittleEndian6Load32EPKv"
# What a library that speaks lsmtune_engine.h says of itself, as data.
_NAME_SYMBOL, _OPTIONS_SYMBOL = "lsmtune_engine_name", "lsmtune_engine_options"

_MACHINES = {
    "EM_X86_64": "x86_64",
    "EM_AARCH64": "aarch64",
    "EM_PPC64": "ppc64le",
    "EM_S390": "s390x",
    "EM_RISCV": "riscv64",
}


def build_type(path: Path, engine_name: str) -> Build:
    """How the library at `path` was compiled; UNKNOWN when the file does not tell.

    Raises OSError when the file cannot be read.
    """
    if engine_name not in ENGINE_KINDS:
        return Build.UNKNOWN
    with suppress(ELFError, UnicodeDecodeError), path.open("rb") as file:
        elf = ELFFile(file)
        section = elf.get_section_by_name(".rodata")
        texts = set() if section is None else set(section.data().split(b"\0"))
        # The signature of a function in the engine's namespace.
        namespace = engine_name.encode()
        signature = re.compile(rb"(?:[ -~]* )?[*&]*" + namespace + rb"::[ -~]*\([ -~]*\)")
        signatures = sum(signature.match(text) is not None for text in texts)
        if signatures >= _SIGNATURES_OF_AN_ASSERTIONS_BUILD:
            return Build.ASSERTIONS_ON
        if signatures == 0 and _exports(elf, f"{engine_name}_open"):
            if snappy_beside(path):
                return Build.OWN_SNAPPY
            return Build.SLOW_SNAPPY if _exports(elf, _NOT_INLINED) else Build.RELEASE
    return Build.UNKNOWN


def snappy_place(library: Path) -> Path | None:
    """Where the driver looks for a file that it loads first: its Snappy is taken for the library's.

    `librocksdb.snappy.so` for `librocksdb.so`; None for a library of another name.
    """
    return library.with_suffix(".snappy.so") if library.suffix == ".so" else None


def snappy_beside(library: Path) -> Path | None:
    """The file at `snappy_place`, if it is there."""
    place = snappy_place(library)
    return place if place is not None and place.is_file() else None


def detect_engine(path: Path, source: str) -> str:
    """The name of the engine whose C interface the shared library at `path` exports.

    Raises InputError, naming `source`, when the file is missing, is no ELF file, is for another
    machine, or exports no known engine's C interface.
    """
    if not path.is_file():
        why = "no such file" if not path.exists() else "not a file"
        raise InputError(source, found=str(path), why=why)
    try:
        with path.open("rb") as file:
            elf = ELFFile(file)
            machine = _MACHINES.get(elf["e_machine"], str(elf["e_machine"]))
            exported = [name for name in ENGINE_KINDS if _exports(elf, f"{name}_open")]
            own_name = _text(elf, _NAME_SYMBOL)
    except OSError as error:
        why = f"cannot be read: {error.strerror}"
        raise InputError(source, found=str(path), why=why) from error
    except (ELFError, UnicodeDecodeError) as error:
        why = f"not a shared library (no ELF file: {error})"
        raise InputError(source, found=str(path), why=why) from error
    if machine != platform.machine():
        why = f"built for {machine}, but this machine is {platform.machine()}"
        raise InputError(source, found=str(path), why=why)
    if exported or own_name:
        return exported[0] if exported else own_name
    known = [f"{name}_open" for name in ENGINE_KINDS]
    allowed = "a library that exports " + " or ".join([*known, _NAME_SYMBOL])
    raise InputError(source, found=str(path), why="not an engine library", allowed=allowed)


def listed_options(path: Path) -> str:
    """The options that a library of `lsmtune_engine.h` lists, JSON; it is read and not run.

    Raises InputError for a file that is no such library.
    """
    try:
        with path.open("rb") as file:
            text = _text(ELFFile(file), _OPTIONS_SYMBOL)
    except (OSError, ELFError, UnicodeDecodeError) as error:
        raise InputError(str(path), why=f"cannot be read: {error}") from error
    if not text:
        allowed = "a library that exports what lsmtune_engine.h lists"
        raise InputError(str(path), why=f"lacks {_OPTIONS_SYMBOL}", allowed=allowed)
    return text


def _text(elf: ELFFile, name: str) -> str:
    """The NUL-terminated text that the library exports as `name`; empty for none."""
    symbol = _symbol(elf, name)
    if symbol is None:
        return ""
    start = symbol["st_value"]
    for segment in elf.iter_segments("PT_LOAD"):
        offset = start - segment["p_vaddr"]
        if 0 <= offset < segment["p_filesz"]:
            data: bytes = segment.data()[offset:]
            return data.split(b"\0", 1)[0].decode()
    return ""


def _exports(elf: ELFFile, name: str) -> bool:
    """Whether the library defines `name` for others to call."""
    return _symbol(elf, name) is not None


def _symbol(elf: ELFFile, name: str) -> Symbol | None:
    """What the library defines as `name`."""
    # The hash table holds defined symbols only and is found at once; walking the tens of
    # thousands of dynamic symbols of RocksDB takes most of a second.
    hashed = elf.get_section_by_name(".gnu.hash")
    if isinstance(hashed, GNUHashSection):
        return hashed.get_symbol(name)
    table = elf.get_section_by_name(".dynsym")
    if not isinstance(table, SymbolTableSection):
        return None
    symbols = table.get_symbol_by_name(name) or ()
    return next((symbol for symbol in symbols if symbol["st_shndx"] != "SHN_UNDEF"), None)
