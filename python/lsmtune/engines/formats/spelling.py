"""The names of options, and how another program spells them and their values, both ways.

Values are written and read with a Spelling: one table serves both, so that what is written can be
read back. Sources: `tools/db_bench_tool.cc` (flags as text or as the
enumeration's number), `include/rocksdb/{options,advanced_options,table}.h` (the numbers).
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType

from lsmtune.engines.catalogue import OptionInfo, option_catalogue
from lsmtune.engines.option_names import TRUTHS, whole_size, written_options
from lsmtune.errors import InputError
from lsmtune.model.config import OptionValue
from lsmtune.model.files import FLOAT
from lsmtune.units import is_digits, option_value

SOURCE = "export"  # of errors in what is to be written
INT_MAX, LONG_MAX = 2**31 - 1, 2**63 - 1  # of C's `int`, and of 64 bits

COMPRESSION_IN_DB_BENCH = {
    "kNoCompression": "none",
    "kSnappyCompression": "snappy",
    "kZlibCompression": "zlib",
    "kBZip2Compression": "bzip2",
    "kLZ4Compression": "lz4",
    "kLZ4HCCompression": "lz4hc",
    "kXpressCompression": "xpress",
    "kZSTD": "zstd",
}
COMPRESSION_IN_YCSB = {**COMPRESSION_IN_DB_BENCH, "kNoCompression": "no"}


def numbered(*words: str) -> dict[str, str]:
    """Each word of an enumeration with its number, from 0, as text."""
    return {word: str(number) for number, word in enumerate(words)}


COMPACTION_STYLE = numbered(
    "kCompactionStyleLevel",
    "kCompactionStyleUniversal",
    "kCompactionStyleFIFO",
    "kCompactionStyleNone",
)
COMPACTION_PRIORITY = numbered(
    "kByCompensatedSize",
    "kOldestLargestSeqFirst",
    "kOldestSmallestSeqFirst",
    "kMinOverlappingRatio",
    "kRoundRobin",
)
CHECKSUM = numbered("kNoChecksum", "kCRC32c", "kxxHash", "kxxHash64", "kXXH3")


BLOOM, RIBBON = "bloomfilter", "ribbonfilter"
# The part after the bits: whether Bloom filters are of the old kind (read by no version since
# 7.0), and the level above which Ribbon filters are Bloom filters (include/rocksdb/filter_policy.h
# has 0 when nothing is said).
_FILTER_TAILS = {BLOOM: ("", "false"), RIBBON: ("", "0")}


def filter_bits(name: str, text: str) -> tuple[str, int]:
    """Kind (BLOOM, RIBBON) and bits per key of a filter policy; 0 bits for `nullptr`.

    Raises InputError, naming `name`, for any other policy and for a fraction of a bit, which
    the flags and properties of both programs do not take.
    """
    if text == "nullptr":
        return BLOOM, 0
    kind, _, rest = text.partition(":")
    bits, _, tail = rest.partition(":")
    if not is_digits(bits) or int(bits) == 0 or tail not in _FILTER_TAILS.get(kind, ()):
        allowed = "nullptr, bloomfilter:BITS, ribbonfilter:BITS with whole BITS"
        raise InputError(SOURCE, name, found=text, allowed=allowed)
    return kind, int(bits)


def bloom_bits(name: str, text: str, where: str) -> int:
    """Bits per key as of `filter_bits`, which also refuses a Ribbon filter: `where` has none."""
    kind, bits = filter_bits(name, text)
    if kind != BLOOM:
        allowed = f"nullptr, bloomfilter:BITS in {where}"
        raise InputError(SOURCE, name, found=text, allowed=allowed)
    return bits


def filter_policy(kind: str, bits: int) -> str:
    """The policy's text, as RocksDB reads it; the inverse of `filter_bits`."""
    return f"{kind}:{bits}" if bits else "nullptr"


# What gflags takes for a truth.
_GFLAGS_TRUTHS = TRUTHS | {"t": True, "y": True, "yes": True, "f": False, "n": False, "no": False}


@dataclass(frozen=True)
class Spelling:
    """An option's `name` in the other program.

    `say` takes the option's name here and its value's text, and raises InputError for what the
    program does not take. `read` is its inverse; its ValueError says what is allowed.
    """

    name: str
    say: Callable[[str, str], str]
    read: Callable[[str], OptionValue]
    is_truth: bool = False


def number(
    name: str,
    low: int | None = None,
    high: int | None = None,
    where: str = "",
    *,
    without: int | None = None,
) -> Spelling:
    """A whole number but `without`; `where` says whose bounds `low` and `high` are."""

    def say(option: str, text: str) -> str:
        whole = whole_size(text)
        if whole is None:
            raise InputError(SOURCE, option, found=text, allowed="a whole number")
        outside = (low is not None and whole < low) or (high is not None and whole > high)
        if outside or whole == without:
            allowed = f"{low} to {high}{where}"
            allowed += "" if without is None else f", but not {without}"
            raise InputError(SOURCE, option, found=text, allowed=allowed)
        return str(whole)

    def read(text: str) -> int:
        # `int` takes 1_000 and the digits of other scripts, which are no numbers to a program in C.
        if not is_digits(text.removeprefix("-")):
            raise ValueError("a whole number")
        return int(text)

    return Spelling(name, say, read)


def decimal(name: str) -> Spelling:
    """A number with a point, passed on as it is."""

    def read(text: str) -> float:
        if FLOAT.fullmatch(text) is None or not math.isfinite(float(text)):
            raise ValueError("a number")
        return float(text)

    return Spelling(name, lambda _option, text: text, read)


def boolean(name: str) -> Spelling:
    """True or false; RocksDB has `1` and `0` as well."""

    def say(option: str, text: str) -> str:
        if (truth := TRUTHS.get(text.lower())) is None:
            raise InputError(SOURCE, option, found=text, allowed="true, false")
        return "true" if truth else "false"

    def read(text: str) -> bool:
        if text.lower() not in _GFLAGS_TRUTHS:
            raise ValueError("true, false")
        return _GFLAGS_TRUTHS[text.lower()]

    return Spelling(name, say, read, is_truth=True)


def word(name: str, known: Mapping[str, str]) -> Spelling:
    """One of the engine's words, by the program's own; the first engine's word is read back."""
    back: dict[str, str] = {}
    for ours, theirs in known.items():
        back.setdefault(theirs, ours)

    def say(option: str, text: str) -> str:
        if text not in known:
            raise InputError(SOURCE, option, found=text, allowed=", ".join(known))
        return known[text]

    def read(text: str) -> str:
        if text.lower() not in back:
            raise ValueError(", ".join(back))
        return back[text.lower()]

    return Spelling(name, say, read)


# --- the options of an engine by every name that they have here


@dataclass(frozen=True)
class KnownOption:
    """An option of an engine as importers need it; `info` where the catalogue describes it.

    `type` is `int`, `float`, `bool`, or empty for a word, a text and what is not known. `spelling`
    is that of its values under the name by which it was found, where that differs.
    """

    name: str
    type: str = ""
    info: OptionInfo | None = None
    spelling: Spelling | None = None


_TYPES: Mapping[type[object], str] = {bool: "bool", int: "int", float: "float"}


@functools.cache
def known_options(engine: str) -> Mapping[str, KnownOption]:
    """Every option of `engine` that has a name here, dotted where it is nested."""
    known: dict[str, KnownOption] = {}
    if engine == "rocksdb":
        for option in written_options().values():
            kind = _TYPES.get(type(option_value(option.default or "")), "")
            known[option.dotted] = KnownOption(option.dotted, kind)
            for field in option.fields:
                name = f"{option.dotted}.{field}"
                known[name] = KnownOption(name)
    for name, info in option_catalogue(engine).items():
        kind = info.type if info.type in _TYPES.values() else ""
        known[name] = KnownOption(name, kind, info)
    return MappingProxyType(known)
