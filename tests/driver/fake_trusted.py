"""A fake of one of the programs that people trust: answers, prints and misbehaves like it.

KIND says which one it is; the test puts another one in its place. The argument `--fake=WHAT` says
how it misbehaves. Standard library only: it is started with whatever interpreter runs the tests.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from itertools import pairwise
from pathlib import Path

KIND = "rocksdb-db_bench"

HELP = {
    "rocksdb-db_bench": "db_bench:\n    -benchmarks (Which) type: string\n"
    "    -value_size (Bytes) type: int32\n    -fake (Of tests) type: string\n",
    "ycsb-cpp": "Options:\n  -load: run the loading phase of the workload\nrocksdb.dbname\n",
    "ekvsb": "Commands:\n  summary   Shows summary of a benchmark result\n",
}
REFUSAL = {
    "rocksdb-db_bench": ("ERROR: unknown command line flag 'val_size'", 1),
    "leveldb-db_bench": ("Invalid flag '--val_size=100'", 1),
    "ycsb-cpp": ("Unknown option '-x'", 0),
    "ekvsb": ("error: unexpected argument '--write-buffer-siz' found", 2),
}
HISTOGRAM = """\
Microseconds per {what}:
Count: {n} Average: 2.0000  StdDev: 0.50
Min: 1  Median: 2.0000  Max: 3
------------------------------------------------------
(       1,       3 ]     {n} 100.000% 100.000% ####################
"""
WARNING = "WARNING: Assertions are enabled; benchmarks unnecessarily slow\n"


def flags() -> dict[str, str]:
    pairs = (text.lstrip("-").partition("=") for text in sys.argv[1:])
    return {name: value for name, _, value in pairs}


def say(text: str, *, error: bool = False) -> None:
    stream = sys.stderr if error else sys.stdout
    stream.write(text)
    stream.flush()


def found_of(keys: int) -> int:
    return keys // 2 if flags().get("fake") == "lose" else keys


def write_database(path: str) -> None:
    folder = Path(path)
    folder.mkdir(exist_ok=True)
    (folder / "000001.sst").write_bytes(b"x" * 1000)


def rocksdb() -> None:
    given = flags()
    if "version" in given:
        say("db_bench version 7.8.3\n")
        return
    say("RocksDB:    version 7.8.3\n", error=True)
    say(f"Memtablerep: SkipListFactory\n{WARNING}")
    write_database(given["db"])
    if "options_file" in given:
        assert Path(given["options_file"]).read_text().startswith("# ")
    if given.get("report_file"):
        Path(given["report_file"]).write_text("secs_elapsed,interval_qps\n1,700\n")
    for name in filter(None, given["benchmarks"].split(",")):
        if name in ("flush", "waitforcompaction"):
            continue
        each = given.get("writes") or given.get("reads") or given["num"]
        n = int(each) * int(given["threads"])
        what = "read" if name.startswith("read") else "write"
        found = f" ({found_of(n)} of {n} found)\n" if what == "read" else ""
        say(f"{name:12} : 2.000 micros/op 500000 ops/sec {n * 2e-6:.3f} seconds {n} operations;")
        say(f"{found}\n{HISTOGRAM.format(what=what, n=n)}\n")


def leveldb() -> None:
    given = flags()
    say("LevelDB:    version 1.23\n", error=True)
    say(WARNING)
    write_database(given["db"])
    for name in filter(None, given["benchmarks"].split(",")):
        each = given["reads"] if name.startswith("read") else given["num"]
        n = int(each) * int(given["threads"])
        found = f" ({found_of(n)} of {given['num']} found)" if name == "readrandom" else ""
        say(f"{name:12} : 2.000 micros/op;{found}\n{HISTOGRAM.format(what='op', n=n)}\n")


def ycsb() -> None:
    texts = [Path(name).read_text() for flag, name in pairwise(sys.argv) if flag == "-P"]
    given = dict(line.split("=", 1) for text in texts for line in text.splitlines() if "=" in line)
    engine = sys.argv[sys.argv.index("-db") + 1]
    write_database(given[f"{engine}.dbname"])
    load = "-load" in sys.argv
    n = int(given["recordcount" if load else "operationcount"])
    types = ["INSERT"] if load else ["READ", "UPDATE"]
    each = " ".join(
        f"[{name}: Count={n // len(types)} Max=9.00 Min=1.00 Avg=2.00 90=2.00 99=3.00"
        " 99.9=4.00 99.99=5.00]"
        for name in types
    )
    word = "Load" if load else "Run"
    say(f"2026-01-01 00:00:00 0 sec: 0 operations;\n2026-01-01 00:00:01 1 sec: {n} operations; ")
    say(f"{each}\n{word} runtime(sec): 2\n{word} operations(ops): {n}\n")
    say(f"{word} throughput(ops/sec): {n / 2:g}\n")


def ekvsb() -> None:
    tasks = json.load(sys.stdin)
    write_database(sys.argv[3])
    say("[\n")
    for number, task in enumerate(tasks):
        ((method, value),) = task.items()
        record = {"seqno": number, "key": value["key"], "method": method}
        record |= {"start_time": number * 1e-5, "elapsed": 2e-6, "error": None}
        record["exists"] = number % 2 < found_of(2) if method == "GET" else None
        say(("" if number == 0 else ",\n") + "  " + json.dumps(record))
    say("\n]\n")


def misbehave(what: str) -> None:
    if what == "refuse":
        text, status = REFUSAL[KIND]
        say(text + "\n", error=True)
        sys.exit(status)
    if what == "fail":
        say("put error: IO error: no such device\n", error=True)
        sys.exit(3)
    if what == "crash":
        os.kill(os.getpid(), signal.SIGSEGV)
    if what == "nonsense":
        say("all is well\n")
        sys.exit(0)
    if what == "status":  # one that cannot be, while it goes on
        figures = "Count=5 Max=nan Min=1 Avg=1 90=1 99=1 99.9=1 99.99=1"
        say(f"2026-01-01 00:00:01 1 sec: 5 operations; [READ: {figures}]\n")
        time.sleep(60)
    if what == "hang":
        subprocess.Popen([sys.executable, "-S", "-c", "import time; time.sleep(60)"])
        time.sleep(60)
    if what == "eat":
        kept = bytearray(300 << 20)
        time.sleep(60)
        del kept


if __name__ == "__main__":
    if "--help" in sys.argv:
        if KIND == "leveldb-db_bench":
            say("Invalid flag '--help'\n", error=True)
            sys.exit(1)
        say(HELP[KIND])
        sys.exit(0)
    misbehave(flags().get("fake", ""))
    {
        "rocksdb-db_bench": rocksdb,
        "leveldb-db_bench": leveldb,
        "ycsb-cpp": ycsb,
        "ekvsb": ekvsb,
    }[KIND]()
