"""What both db_benches have in common: which benchmark performs a phase, and what it times."""

from __future__ import annotations

from collections.abc import Mapping

from lsmtune.errors import nearest_name
from lsmtune.programs.performing import cannot
from lsmtune.records.workload import Phase

# The operation type, in lsmtune's words, that a benchmark's latencies are those of.
TIMED_TYPE: Mapping[str, str] = {
    "fillseq": "put",
    "fillrandom": "put",
    "filluniquerandom": "put",
    "overwrite": "put",
    "deleterandom": "delete",
    "readrandom": "get",
    "readmissing": "get",
    "readhot": "get",
    "readwhilewriting": "get",
    "readseq": "next",
    "seekrandom": "seek",
}
WRITES = frozenset({"fillseq", "fillrandom", "filluniquerandom", "overwrite"})
# Benchmarks that begin with an empty database.
FRESH = frozenset({"fillseq", "fillrandom", "filluniquerandom"})


def benchmark_of(program: str, phase: Phase, known: tuple[str, ...], *, first: bool) -> str:
    """The benchmark that performs `phase`, one of `known`.

    On a database that is there already (not `first`), random keys are written by `overwrite`.
    Raises InputError for an operation that the program has no benchmark of.
    """
    operation = phase.operation
    field = f"{phase.name}: operation"
    if operation is None:
        what = "a mix of operations" if phase.mix is not None else "nothing"
        raise cannot(program, field, found=what, allowed=", ".join(known))
    if operation == "fillrandom" and not first:
        operation = "overwrite"
    if operation not in known:
        nearest = nearest_name(operation, known)
        hint = f"; the nearest is {nearest}" if nearest else ""
        raise cannot(program, field, found=operation, allowed=f"{', '.join(known)}{hint}")
    if operation in FRESH and not first:
        raise cannot(program, field, found=operation, why="it fills only an empty database")
    return operation
