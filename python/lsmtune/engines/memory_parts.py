"""What the memory models of all engines share: the facts of the data, and tables in memory."""

from __future__ import annotations

import math
from dataclasses import dataclass

# An entry of an index block besides the key: the 8 bytes of an internal key, two varint64 of the
# block's handle (7 bytes at most below 16 GiB), three lengths, a restart offset
# (leveldb doc/table_format.md; rocksdb table/block_based/block_builder.cc).
_INDEX_ENTRY_BYTES = 8 + 7 + 3 + 4


@dataclass(frozen=True)
class StoredData:
    """How much a database holds: distinct `keys` of `key_bytes` with values of `value_bytes`."""

    keys: int
    key_bytes: int
    value_bytes: int

    @property
    def entry_bytes(self) -> int:
        """A key and its value, before compression."""
        return self.key_bytes + self.value_bytes

    @property
    def data_bytes(self) -> int:
        """All keys and values, before compression."""
        return self.keys * self.entry_bytes

    def index_bytes(self, data_bytes: int, block_size: int) -> int:
        """The index entries of tables of `data_bytes` with blocks of `block_size`, one a block."""
        blocks = math.ceil(data_bytes / max(block_size, self.entry_bytes, 1))
        return blocks * (self.key_bytes + _INDEX_ENTRY_BYTES)

    def filter_bytes(self, data_bytes: int, bits_per_key: float) -> int:
        """Filters of `bits_per_key` for tables of `data_bytes`."""
        return math.ceil(self._entries(data_bytes) * bits_per_key / 8)

    def _entries(self, data_bytes: int) -> int:
        return math.ceil(data_bytes / max(self.entry_bytes, 1))

    def hash_bytes(self, data_bytes: int) -> int:
        """The 64-bit hashes that a builder keeps of each key until it makes the filter."""
        return 8 * self._entries(data_bytes)


def clipped(number: int, low: int, high: int) -> int:
    """`number` as the engines themselves bring options into bounds (`ClipToRange`)."""
    return min(max(number, low), high)
