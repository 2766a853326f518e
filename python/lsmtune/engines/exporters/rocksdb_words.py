"""RocksDB's enumerations and small grammars, in the spelling of db_bench and YCSB-cpp.

Sources: `tools/db_bench_tool.cc` (flags as text or as the enumeration's number),
`include/rocksdb/{options,advanced_options,table}.h` (the numbers).
"""

from __future__ import annotations

from lsmtune.engines.exporters.base import SOURCE
from lsmtune.errors import InputError

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
COMPACTION_STYLE = {
    "kCompactionStyleLevel": "0",
    "kCompactionStyleUniversal": "1",
    "kCompactionStyleFIFO": "2",
    "kCompactionStyleNone": "3",
}
COMPACTION_PRIORITY = {
    "kByCompensatedSize": "0",
    "kOldestLargestSeqFirst": "1",
    "kOldestSmallestSeqFirst": "2",
    "kMinOverlappingRatio": "3",
    "kRoundRobin": "4",
}
CHECKSUM = {
    "kNoChecksum": "0",
    "kCRC32c": "1",
    "kxxHash": "2",
    "kxxHash64": "3",
    "kXXH3": "4",
}


BLOOM, RIBBON = "bloom", "ribbon"
_FILTER_NAMES = {BLOOM: "bloomfilter", RIBBON: "ribbonfilter"}
_FILTER_KINDS = {name: kind for kind, name in _FILTER_NAMES.items()}
# The part after the bits: whether Bloom filters are of the old kind (read by no version since
# 7.0), and the level above which Ribbon filters are Bloom filters (include/rocksdb/filter_policy.h
# has 0 when nothing is said).
_FILTER_TAILS = {BLOOM: ("", "false"), RIBBON: ("", "0")}
FILTER_ALLOWED = "nullptr, bloomfilter:BITS, ribbonfilter:BITS with whole BITS"


def filter_bits(name: str, text: str) -> tuple[str, int]:
    """Kind (`bloom`, `ribbon`) and bits per key of a filter policy; 0 bits for `nullptr`.

    Raises InputError, naming `name`, for any other policy and for a fraction of a bit, which
    the flags and properties of both programs do not take.
    """
    if text == "nullptr":
        return BLOOM, 0
    kind, _, rest = text.partition(":")
    bits, _, tail = rest.partition(":")
    known = _FILTER_KINDS.get(kind)
    if known is None or not bits.isdigit() or int(bits) == 0 or tail not in _FILTER_TAILS[known]:
        raise InputError(SOURCE, name, found=text, allowed=FILTER_ALLOWED)
    return known, int(bits)


def filter_policy(kind: str, bits: int) -> str:
    """The policy's text, as RocksDB reads it; the inverse of `filter_bits`."""
    if bits == 0:
        return "nullptr"
    return f"{_FILTER_NAMES[kind]}:{bits}"
