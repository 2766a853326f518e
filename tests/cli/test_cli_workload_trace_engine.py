"""A trace of db_bench's mixgraph, the workload fitted to it, and both performed by RocksDB."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import threading
from pathlib import Path
from typing import Any

import pytest

from patience import wait_until

DB_BENCH = shutil.which("db_bench")
pytestmark = [
    pytest.mark.engine,
    pytest.mark.skipif(DB_BENCH is None, reason="db_bench is not installed"),
]

NUM, KEY_BYTES, VALUE_BYTES = 150_000, 48, 100
MIXGRAPH = {
    "reads": 150_000,
    **{"mix_get_ratio": 0.85, "mix_put_ratio": 0.14, "mix_seek_ratio": 0.01},
    **{"key_dist_a": 0.002312, "key_dist_b": 0.3467, "keyrange_num": 10},
    **{"keyrange_dist_a": 0.9, "keyrange_dist_b": -1.0},
    **{"keyrange_dist_c": 0.05, "keyrange_dist_d": -0.1},
}
# The hit rates of both runs differ by chance, too: by about half a point between seeds.
TOLERANCE = 0.03
CACHES_MIB = (1, 4)


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A trace of 150,000 operations on as many keys."""
    place = tmp_path_factory.mktemp("mixgraph")
    trace = place / "mixgraph.trace"
    common = [f"--db={place}/db", f"--num={NUM}", f"--key_size={KEY_BYTES}", "--seed=1"]
    common += [f"--value_size={VALUE_BYTES}", "--compression_type=none"]
    flags = [f"--{name}={value}" for name, value in MIXGRAPH.items()]
    traced = ["--benchmarks=mixgraph", "--use_existing_db=1", f"--trace_file={trace}", *flags]
    # One run for each: every benchmark of a run begins the trace file again.
    for what in (["--benchmarks=fillseq"], traced):
        subprocess.run([str(DB_BENCH), *what, *common], check=True, capture_output=True)
    shutil.rmtree(place / "db")
    return trace


@pytest.fixture
def rocksdb(driver: Path, rocksdb_library: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Flags of a run on the release build of RocksDB."""
    monkeypatch.setenv("LSMTUNE_DRIVER", str(driver))
    plain = ["-o", "compression=kNoCompression", "--json"]
    return ["--engine", "rocksdb", "--library", str(rocksdb_library), *plain]


LOAD = [
    *("--load", "fillseq", "-w", f"num={NUM}"),
    *("-w", f"key_bytes={KEY_BYTES}", "-w", f"value_bytes={VALUE_BYTES}"),
]


def hit_rate(said: Any) -> float:
    assert said.status == 0, said.err
    (measurement,) = said.json()["measurements"]
    phase = measurement["phases"][-1]
    assert phase["operations"] == MIXGRAPH["reads"]
    hits = phase["block_cache_hits"]
    return float(hits / (hits + phase["block_cache_misses"]))


def test_the_fitted_workload_hits_the_block_cache_as_often_as_the_trace(
    lsmtune: Any, recorded: Path, rocksdb: list[str]
) -> None:
    command = ("workload", "fit", str(recorded), "--output", "w.yaml", "--records", str(NUM))
    said = lsmtune(*command, "--load-value-bytes", str(VALUE_BYTES), "--json")
    assert said.status == 0, said.err
    parts = {part["name"]: part["fits"] for part in said.json()["parts"]}
    assert parts["hotness"]
    assert parts["ranges"]
    assert parts["hit_rate"]
    for mib in CACHES_MIB:
        cache = ("-o", f"block_based_table_factory.block_cache={mib}MiB")
        replayed = lsmtune("workload", "replay", str(recorded), *LOAD, *rocksdb, *cache)
        synthetic = lsmtune("bench", "--workload", "w.yaml", *rocksdb, *cache)
        found = (hit_rate(synthetic), hit_rate(replayed))
        assert found[0] == pytest.approx(found[1], abs=TOLERANCE), mib
        assert 0.05 < found[1] < 0.95


def test_a_damaged_trace_is_performed_up_to_its_damage(
    lsmtune: Any, recorded: Path, rocksdb: list[str], home: Path
) -> None:
    whole = recorded.read_bytes()
    (home / "cut.trace").write_bytes(whole[: len(whole) // 10])
    said = lsmtune("workload", "replay", "cut.trace", *LOAD, *rocksdb)
    phase = said.json()["measurements"][0]["phases"][-1]
    assert 0 < phase["operations"] < MIXGRAPH["reads"] / 5
    inspected = lsmtune("workload", "inspect", "cut.trace")
    assert inspected.status == 1
    assert "cut.trace: damaged at offset" in inspected.err
    assert said.status == 0
    assert "offset" in said.out + said.err


def test_ctrl_c_ends_a_replay_and_leaves_no_database(
    lsmtune: Any, recorded: Path, rocksdb: list[str], home: Path
) -> None:
    over = threading.Event()

    def interrupt() -> None:
        wait_until(lambda: over.is_set() or list(home.rglob("CURRENT")))
        if not over.is_set():
            os.kill(os.getpid(), signal.SIGINT)

    interrupting = threading.Thread(target=interrupt)
    interrupting.start()
    # At a ten-thousandth of its pace it would take hours.
    slow = ("--speed", "0.0001", "--dir", str(home))
    said = lsmtune("workload", "replay", str(recorded), *LOAD, *rocksdb, *slow)
    over.set()
    interrupting.join()
    assert said.status == 130, said.err
    assert list(home.iterdir()) == []
