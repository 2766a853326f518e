"""A seeded order of a huge range of integers, one at a time, without a list."""

from __future__ import annotations

from hashlib import blake2b

_ROUNDS = 6


class Permutation:
    """The integers from 0 to `size` - 1 in an order that follows from `seed`.

    A Feistel network over the next even number of bits; what falls outside the range is sent
    through it again until it falls inside ("cycle walking", J. Black and P. Rogaway, "Ciphers with
    arbitrary finite domains", CT-RSA 2002). At most three in four are outside, so it ends soon.
    """

    def __init__(self, size: int, seed: int) -> None:
        self._size = size
        self._half_bits = max(1, -(-max(1, (size - 1).bit_length()) // 2))
        self._mask = (1 << self._half_bits) - 1
        self._seed = str(seed).encode()

    def at(self, index: int) -> int:
        """The integer at place `index`; both from 0 to `size` - 1."""
        if not 0 <= index < self._size:
            raise IndexError(index)
        value = self._once(index)
        while value >= self._size:
            value = self._once(value)
        return value

    def _once(self, value: int) -> int:
        left, right = value >> self._half_bits, value & self._mask
        for number in range(_ROUNDS):
            left, right = right, left ^ (self._hash(number, right) & self._mask)
        return left << self._half_bits | right

    def _hash(self, number: int, half: int) -> int:
        text = b"%s:%d:%d" % (self._seed, number, half)
        return int.from_bytes(blake2b(text, digest_size=32).digest(), "big")
