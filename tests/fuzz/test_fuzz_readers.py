"""A short run of every fuzz target: the kept seeds, and changes of them that are always the same.

`docs/test-strength.md` says how the long runs are made, and what they found.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence

import pytest
from readers import READERS, refused, seeds_of

# Enough that the whole file takes some ten seconds.
CHANGED = 200
# Signs that mean something to most formats, and what numbers and texts are apt to go wrong at.
PIECES = (
    *(b"{", b"}", b"[", b"]", b'"', b"'", b":", b",", b";", b"=", b"#", b"\\", b"\n", b"\r", b" "),
    *(b"- ", b"&a ", b"*a", b"<<", b"!!", b"null", b"true", b"NaN", b"Infinity", b"-1", b"1e999"),
    *(b"9" * 20, b"9" * 5000, b"0x", b"\0", b"\xff", b"\xc2\x85", b"\xe2\x80\xa8", b"\\ud800"),
    *("\u0663".encode(), b"1" * 400 + b".5", b"[" * 2000, b'{"a":' * 2000),
)


def changed(seeds: Sequence[bytes], rng: random.Random) -> Iterator[bytes]:
    """Endless changes of `seeds`: pieces put in, parts dropped, doubled, exchanged."""
    while True:
        data = bytearray(rng.choice(seeds))
        for _ in range(rng.choice((1, 1, 1, 2, 4))):
            start = rng.randint(0, len(data))
            end = min(len(data), start + rng.choice((0, 1, 2, 8, 64)))
            match rng.randrange(5):
                case 0:
                    data[start:end] = rng.choice(PIECES)
                case 1:
                    data[start:end] = rng.randbytes(end - start)
                case 2:
                    del data[start:end]
                case 3:
                    data[start:start] = data[start:end] * rng.choice((1, 1, 50))
                case _:
                    other = rng.choice(seeds)
                    cut = rng.randint(0, len(other))
                    data[start:end] = other[cut : cut + rng.choice((1, 8, 64))]
        yield bytes(data)


@pytest.mark.parametrize("name", READERS)
def test_whatever_the_bytes_a_reader_takes_them_or_refuses_them_in_one_line(name: str) -> None:
    read, seeds = READERS[name].read, seeds_of(name)
    refusals = [refused(lambda data=data: read(data)) for data in seeds]  # type: ignore[misc]
    assert not all(refusals), "no seed is one of this format"
    for _, data in zip(range(CHANGED), changed(seeds, random.Random(1)), strict=False):
        try:
            refused(lambda data=data: read(data))  # type: ignore[misc]
        except Exception as error:
            pytest.fail(f"{type(error).__name__}: {error}\nbytes: {data!r}")
