"""The db_bench-like workloads as data: what each does, which parameters have a meaning in it."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True)
class NamedWorkload:
    """A workload; those of db_bench's name have its meaning.

    `loaded` workloads work on a database that is loaded and settled first. `no_effect` maps the
    parameters that this workload has no use for to the reason, which the user is told. `passes`
    are its measure phases, name and operation, where it is not one phase of its own name; in each
    of them all keys come up exactly once over all threads.
    """

    name: str
    description: str
    loaded: bool
    no_effect: dict[str, str] = field(default_factory=dict)
    passes: tuple[tuple[str, str], ...] = ()


_NO_LOAD = {
    "load": "it starts from an empty database",
    "warmup_operations": "it starts from an empty database",
}
_NO_READS = {"reads": "it does not read; num is its number of operations per thread"}
_NO_SEEKS = {"seek_nexts": "it does not seek"}
_IN_ORDER = {"duration_s": "it ends after the last key"}

_WORKLOADS = (
    NamedWorkload(
        "fillseq",
        "write num keys in order into an empty database",
        loaded=False,
        no_effect=_NO_LOAD | _NO_READS | _NO_SEEKS | _IN_ORDER,
    ),
    NamedWorkload(
        "fillrandom",
        "write num random keys into an empty database",
        loaded=False,
        no_effect=_NO_LOAD | _NO_READS | _NO_SEEKS,
    ),
    NamedWorkload(
        "overwrite",
        "write num random keys over a loaded database",
        loaded=True,
        no_effect=_NO_READS | _NO_SEEKS,
    ),
    NamedWorkload(
        "readseq", "iterate over the keys in order", loaded=True, no_effect=_NO_SEEKS | _IN_ORDER
    ),
    NamedWorkload("readrandom", "get random keys", loaded=True, no_effect=_NO_SEEKS),
    NamedWorkload("readmissing", "get keys that are absent", loaded=True, no_effect=_NO_SEEKS),
    NamedWorkload(
        "readhot", "get random keys of the first hundredth", loaded=True, no_effect=_NO_SEEKS
    ),
    NamedWorkload("seekrandom", "seek to random keys, then read seek_nexts entries", loaded=True),
    NamedWorkload(
        "deleterandom",
        "delete num random keys of a loaded database",
        loaded=True,
        no_effect=_NO_READS
        | _NO_SEEKS
        | {"warmup_operations": "a warmup would delete what the measure phase is to delete"},
    ),
    NamedWorkload(
        "readwhilewriting",
        "get random keys in the given threads while one more thread writes",
        loaded=True,
        no_effect=_NO_SEEKS,
    ),
    NamedWorkload(
        "put-get-delete",
        "put num keys into an empty database, get each in another order, delete each in a third",
        loaded=False,
        no_effect=_NO_LOAD
        | _NO_SEEKS
        | {
            "reads": "each of its phases meets every key once",
            "duration_s": "each of its phases meets every key once",
        },
        passes=(
            ("put", "filluniquerandom"),
            ("get", "readuniquerandom"),
            ("delete", "deleteuniquerandom"),
        ),
    ),
)

NAMED_WORKLOADS = {workload.name: workload for workload in _WORKLOADS}
