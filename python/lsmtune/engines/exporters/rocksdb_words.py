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


def filter_bits(name: str, text: str) -> tuple[str, int]:
    """Kind (`bloom`, `ribbon`) and bits per key of a filter policy; 0 bits for `nullptr`.

    Raises InputError, naming `name`, for any other policy and for a fraction of a bit, which
    the flags and properties of both programs do not take.
    """
    if text == "nullptr":
        return "bloom", 0
    kind, _, rest = text.partition(":")
    bits = rest.split(":")[0]
    kinds = {"bloomfilter": "bloom", "ribbonfilter": "ribbon"}
    if kind not in kinds or not bits.isdigit():
        allowed = "nullptr, bloomfilter:BITS, ribbonfilter:BITS with whole BITS"
        raise InputError(SOURCE, name, found=text, allowed=allowed)
    return kinds[kind], int(bits)
