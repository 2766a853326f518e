"""How many different things there were, counted in constant memory.

HyperLogLog: P. Flajolet, E. Fusy, O. Gandouet, F. Meunier, "HyperLogLog: the analysis of a
near-optimal cardinality estimation algorithm" (AofA 2007), with 64-bit hashes, which need no
correction for large counts, and linear counting for small ones (K.-Y. Whang and others, TODS 1990).
"""

from __future__ import annotations

import hashlib
import math

_INDEX_BITS = 14
_REGISTERS = 1 << _INDEX_BITS
_REST_BITS = 64 - _INDEX_BITS
_ALPHA = 0.7213 / (1 + 1.079 / _REGISTERS)
_LINEAR_UP_TO = 2.5 * _REGISTERS

RELATIVE_ERROR = 1.04 / math.sqrt(_REGISTERS)


class DistinctCounter:
    """Counts the different things it is shown, to about RELATIVE_ERROR, in 16 KiB."""

    def __init__(self) -> None:
        self._registers = bytearray(_REGISTERS)

    def add(self, item: bytes) -> None:
        """Take note of `item`; a second time changes nothing."""
        digest = hashlib.blake2b(item, digest_size=8).digest()
        word = int.from_bytes(digest, "little")
        rest = word >> _INDEX_BITS
        rank = _REST_BITS - rest.bit_length() + 1
        index = word & (_REGISTERS - 1)
        if rank > self._registers[index]:
            self._registers[index] = rank

    def count(self) -> int:
        """The estimate; 0 before the first item."""
        raw = _ALPHA * _REGISTERS**2 / math.fsum(math.ldexp(1.0, -rank) for rank in self._registers)
        empty = self._registers.count(0)
        if raw <= _LINEAR_UP_TO and empty:
            return round(_REGISTERS * math.log(_REGISTERS / empty))
        return round(raw)
