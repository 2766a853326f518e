"""RocksDB's own db_bench as the peer: one process per comparison, same keys, values and phases.

db_bench loads and measures in one process (`filluniquerandom,flush,waitforcompaction,NAME`), so
the driver's workload here has the same phases: load, settle, measure.
"""

from __future__ import annotations

import re
import subprocess
from configparser import RawConfigParser
from pathlib import Path

from lsmtune.programs.db_bench_output import ROCKSDB, parse_db_bench

# db_bench's flags set these where the engine's own defaults differ. Both sides get them, and the
# OPTIONS files of the two databases are compared, so that nothing else differs unsaid.
SHARED_OPTIONS = {
    "block_based_table_factory.block_cache": "33554432",
    "block_based_table_factory.index_shortening": "kShortenSeparatorsAndSuccessor",
    "block_based_table_factory.pin_top_level_index_and_filter": "false",
    "compaction_options_fifo": "{allow_compaction=true;max_table_files_size=0}",
    "create_missing_column_families": "true",
    "delayed_write_rate": "8388608",
    "dump_malloc_stats": "true",
    "enable_pipelined_write": "true",
    "hard_pending_compaction_bytes_limit": "137438953472",
    "level_compaction_dynamic_level_bytes": "false",
    "table_cache_numshardbits": "4",
}
# db_bench turns the library's per-thread counters off (--perf_level=1); in every other program they
# are on (kEnableCount). They cost 5 to 15 % here, so both sides run as a program that is deployed.
LIBRARY_PERF_LEVEL = 2
LOADED = ("overwrite", "readrandom", "readseq", "seekrandom")


def run_db_bench(
    binary: Path,
    directory: Path,
    name: str,
    *,
    num: int,
    reads: int,
    threads: int,
    seed: int,
    histogram: bool,
) -> float:
    """The throughput of benchmark `name` (ops/s) in an empty `directory`.

    `histogram` records latencies, as we do. Raises CalledProcessError when db_bench fails.
    """
    steps = ["filluniquerandom", "flush", "waitforcompaction"] if name in LOADED else []
    command = [
        str(binary),
        f"--db={directory}",
        f"--benchmarks={','.join([*steps, name])}",
        f"--num={num}",
        f"--reads={reads}",
        f"--writes={reads if name == 'overwrite' else -1}",
        f"--threads={threads}",
        f"--seed={seed}",
        "--key_size=16",
        "--value_size=100",
        "--compression_ratio=0.5",
        "--cache_size=33554432",
        # What an option of so many bytes means to the library. db_bench has other defaults, which
        # differ from release to release, and no OPTIONS file shows them.
        "--cache_type=lru_cache",
        "--cache_high_pri_pool_ratio=0.5",
        f"--histogram={int(histogram)}",
        f"--perf_level={LIBRARY_PERF_LEVEL}",
    ]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    result = parse_db_bench(done.stdout, binary.name, ROCKSDB).result_of(name)
    if result is None or result.throughput_ops_s is None:
        raise SystemExit(f"db_bench printed no result for {name}: {done.stdout[-500:]}")
    return result.throughput_ops_s


def options_file(directory: Path) -> dict[str, str]:
    """The newest OPTIONS file of a database, and what LOG says of its block cache.

    As `section/name` to value.
    """
    newest = max(directory.glob("OPTIONS-*"), key=lambda path: path.name)
    parser = RawConfigParser(delimiters=("=",))
    parser.optionxform = str  # type: ignore[assignment,method-assign]
    parser.read(newest)
    _, _, cache = (directory / "LOG").read_text().partition("block_cache_options:")
    said = re.findall(r"(\w+) ?: (\S+)", cache.partition("persistent_cache")[0])
    found = {f"block_cache/{name}": value for name, value in said}
    for section in parser.sections():
        found |= {f"{section}/{name}": value for name, value in parser[section].items()}
    return found


def different(ours: Path, theirs: Path) -> list[str]:
    """Options that two databases do not share; listeners only report errors in db_bench."""
    one, other = options_file(ours), options_file(theirs)
    return [
        f"{name}: {one.get(name)} | {other.get(name)}"
        for name in sorted(one.keys() | other.keys())
        if one.get(name) != other.get(name) and "listeners" not in name
    ]
