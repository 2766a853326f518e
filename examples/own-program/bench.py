"""Inserts rows into a SQLite database, with the parameters of the trial, and reports the rate.

By hand, `python3 bench.py` runs with the defaults below and prints what it would report.
"""

import random
import sqlite3
import tempfile
import time

import lsmtune

ROWS = 10_000
STEPS = 10  # intermediate results, by which a pruner may end the trial
DEFAULTS = {
    "page_bytes": 4096,
    "cache_pages": 2000,
    "rows_per_commit": 100,
    "journal": "delete",
    "checkpoint_pages": 1000,
}


def opened(parameters, path):
    """A new database with one empty table."""
    database = sqlite3.connect(path)
    database.execute(f"PRAGMA page_size = {parameters['page_bytes']}")
    database.execute(f"PRAGMA cache_size = {parameters['cache_pages']}")
    database.execute(f"PRAGMA journal_mode = {parameters['journal']}")
    database.execute(f"PRAGMA wal_autocheckpoint = {parameters['checkpoint_pages']}")
    database.execute("CREATE TABLE rows (key INTEGER PRIMARY KEY, value BLOB)")
    return database


def main():
    """One trial."""
    parameters = lsmtune.trial.parameters(default=DEFAULTS)
    draw = random.Random(lsmtune.trial.seed())
    keys = draw.sample(range(10 * ROWS), ROWS)
    value = draw.randbytes(100)
    # In a study a fresh directory, by hand the current one: what is written goes away either way.
    with tempfile.TemporaryDirectory(dir=lsmtune.trial.directory()) as folder:
        database = opened(parameters, f"{folder}/rows.db")
        started = time.perf_counter()
        for done, key in enumerate(keys, start=1):
            database.execute("INSERT INTO rows VALUES (?, ?)", (key, value))
            if done % parameters["rows_per_commit"] == 0:
                database.commit()
            if done % (ROWS // STEPS) == 0:
                lsmtune.trial.report(done / (time.perf_counter() - started))
        database.commit()
        lsmtune.trial.result({"rows_s": ROWS / (time.perf_counter() - started)})
        database.close()


if __name__ == "__main__":
    main()
