"""Small golden tables of YCSB-cpp's request frequencies, distilled from whole ones.

    .venv/bin/python benchmarks/ycsb/distil_frequencies.py --counts DIRECTORY \\
        --output tests/workloads/data/ycsb_cpp_frequencies

`DIRECTORY` holds one CSV file for each table below, `freq-<file>.csv` with the columns
`number,count`: how often YCSB-cpp's own generator gave each number. A golden table keeps two parts
of it: the counts of up to 100 single numbers, and those of ranges of numbers that together cover
all draws. Which numbers are kept is a rule of the parameters, never of the counts: the most
frequent numbers of a sample are the ones whose counts came out too high.
"""

from __future__ import annotations

import argparse
import csv
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

SINGLE = 100
CELLS = 64
_FNV_OFFSET = 0xCBF29CE484222325  # of the 64-bit FNV hash, as in `utils::FNVHash64`
_FNV_PRIME = 0x100000001B3
_U64 = 2**64 - 1


@dataclass(frozen=True)
class Table:
    """One table: the file it comes from, what was drawn, and where the numbers lie.

    `singles` says which numbers are kept one by one: `lowest`, `highest`, `spread` evenly, or
    `scrambled`, those that the first ranks of a scrambled zipfian distribution are mapped to.
    """

    file: str
    distribution: str
    parameters: str
    low: int
    high: int
    singles: str
    items: int = 0
    doubling_cells: bool = False


TABLES = (
    Table("uniform-0-999", "uniform", "low=0 high=999", 0, 999, "spread"),
    Table("zipfian-0-999-0.99", "zipfian", "low=0 high=999 theta=0.99", 0, 999, "lowest"),
    Table("zipfian-0-999-0.5", "zipfian", "low=0 high=999 theta=0.5", 0, 999, "lowest"),
    Table("zipfian-0-99999-0.8", "zipfian", "low=0 high=99999 theta=0.8", 0, 99999, "lowest"),
    Table("zipfian-1-100-0.99", "zipfian", "low=1 high=100 theta=0.99", 1, 100, "lowest"),
    *(
        Table(
            f"scrambled-{records}-{items}-{theta}",
            "scrambled_zipfian",
            f"records={records} items={items} theta={theta}",
            0,
            records - 1,
            "scrambled",
            items,
        )
        for records, items, theta in (
            (1000, 1000, 0.99),
            (1000, 1000, 0.8),
            (1000, 1100, 0.99),
            (100000, 110000, 0.99),
        )
    ),
    Table("latest-1000", "latest", "records=1000 theta=0.99", 0, 999, "highest"),
    *(
        Table(
            f"latest-growing-{records}-{share}",
            "latest",
            f"records={records} theta=0.99, before each draw an insert with probability {share}; "
            "number = newest record - chosen one",
            0,
            131071,
            "lowest",
            doubling_cells=True,
        )
        for records, share in ((1000, 0.05), (100000, 0.0025))
    ),
)


def fnv_hash(number: int) -> int:
    """The 64-bit FNV-1a hash of the eight bytes of `number`, lowest first, as YCSB-cpp has it."""
    found = _FNV_OFFSET
    for byte in number.to_bytes(8, "little"):
        found = ((found ^ byte) * _FNV_PRIME) & _U64
    return found


def single_numbers(table: Table) -> list[int]:
    """The numbers whose counts are kept one by one, each once."""
    count = min(SINGLE, table.high - table.low + 1)
    match table.singles:
        case "lowest":
            return list(range(table.low, table.low + count))
        case "highest":
            return list(range(table.high, table.high - count, -1))
        case "spread":
            step = (table.high - table.low + 1) // count
            return [table.low + step * i for i in range(count)]
        case "scrambled":
            targets = (fnv_hash(rank) % table.items for rank in range(count))
            return list(dict.fromkeys(target for target in targets if target <= table.high))
        case other:
            raise ValueError(f"no such choice of numbers: {other}")


def cells(table: Table) -> list[tuple[int, int]]:
    """Ranges of numbers, both ends included, that cover the table, equal ones or doubling."""
    if table.doubling_cells:
        firsts = [0, *(2**i for i in range((table.high + 1).bit_length() - 1))]
    else:
        size = table.high - table.low + 1
        count = min(CELLS, size)
        firsts = [table.low + size * i // count for i in range(count)]
    lasts = [first - 1 for first in firsts[1:]] + [table.high]
    return list(zip(firsts, lasts, strict=True))


def distil(table: Table, counts: dict[int, int]) -> Iterable[tuple[str, int, int, int]]:
    """The rows of the golden table: part, first and last number, count."""
    if not all(table.low <= number <= table.high for number in counts):
        raise ValueError(f"{table.file}: numbers outside {table.low} to {table.high}")
    for number in single_numbers(table):
        yield "number", number, number, counts.get(number, 0)
    for first, last in cells(table):
        yield "cell", first, last, sum(counts.get(n, 0) for n in range(first, last + 1))


def read_counts(path: Path) -> dict[int, int]:
    """A whole table as the generator's program wrote it."""
    with path.open(newline="") as file:
        return {int(row["number"]): int(row["count"]) for row in csv.DictReader(file)}


def main() -> None:
    """Writes one golden table for each whole one."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--counts", type=Path, required=True, help="folder of freq-*.csv")
    parser.add_argument("--output", type=Path, required=True)
    arguments = parser.parse_args()
    arguments.output.mkdir(parents=True, exist_ok=True)
    for table in TABLES:
        counts = read_counts(arguments.counts / f"freq-{table.file}.csv")
        lines = [
            f"# {table.distribution}: {table.parameters}; draws={sum(counts.values())}",
            "part,first,last,count",
            *(",".join(map(str, row)) for row in distil(table, counts)),
        ]
        (arguments.output / f"{table.file}.csv").write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
