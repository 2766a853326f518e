"""The properties of YCSB's core workload: meaning, default, and those without an effect here.

From YCSB's `CoreWorkload.java`, `Client.java` and the generators beside them, and from YCSB-cpp's
`core_workload.cc`, `ycsbc.cc` and `PROPERTIES.md`. `docs/workloads.md` says where the two differ
and which of them is followed.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

from lsmtune.model.fields import COUNT_MAX, read_number
from lsmtune.model.workload import RATE_MAX, THREADS_MAX, VALUE_BYTES_MAX
from lsmtune.workloads.parameter import (
    COLUMN_FAMILIES,
    DATABASES,
    DURABILITY,
    PAGE_CACHE,
    Given,
    WorkloadParameter,
    choice_parameter,
    compression_parameter,
    count_parameter,
    fraction_parameter,
    positive_parameter,
    read_text,
)

# Neither program has a default that can be run; this is that of YCSB-cpp's own workload files.
_COUNT_DEFAULT = 100_000
_THETA = 0.99  # ZipfianGenerator.java, ZIPFIAN_CONSTANT; zipfian_generator.h, kZipfianConst
FIELD_LENGTHS = ("constant", "uniform", "zipfian", "histogram")
REQUESTS = ("uniform", "zipfian", "latest", "hotspot", "exponential", "sequential")


def _text(name: str, description: str, default: str) -> WorkloadParameter:
    return WorkloadParameter(name, description, default, "", "text of one line", read_text)


def _read_theta(value: object) -> float:
    number = float(read_number(value))
    if not 0 < number < 100 or number == 1:
        raise ValueError(value)
    return number


def _read_percentile(value: object) -> float:
    number = float(read_number(value))
    if not 0 < number < 100:
        raise ValueError(value)
    return number


def _read_limit(value: object) -> float | None:
    """0, which is no limit in both programs, as not set."""
    number = float(read_number(value))
    if not 0 <= number <= RATE_MAX:
        raise ValueError(value)
    return number or None


def _limit(name: str, description: str, unit: str) -> WorkloadParameter:
    allowed = f"a number from 0 (no limit) to {RATE_MAX:.0f}"
    return WorkloadParameter(name, description, None, unit, allowed, _read_limit)


DATA_PROPERTIES = (
    count_parameter("fieldcount", "fields of a record", 10, 1, 10_000),
    count_parameter(
        "fieldlength", "bytes of a field, the most of them", 100, 0, VALUE_BYTES_MAX, unit="bytes"
    ),
    count_parameter(
        "minfieldlength", "bytes of a field, the least of them", 1, 0, VALUE_BYTES_MAX, unit="bytes"
    ),
    choice_parameter(
        "fieldlengthdistribution", "how the length of a field is drawn", "constant", FIELD_LENGTHS
    ),
    _text("fieldlengthhistogram", "file with the lengths of a histogram", "hist.txt"),
    _text("fieldnameprefix", "what the name of a field begins with", "field"),
    choice_parameter(
        "insertorder",
        "hashed: records inserted one after another lie apart; ordered: they are neighbours",
        "hashed",
        ("hashed", "ordered"),
    ),
    count_parameter("zeropadding", "digits of a key's number, at least", 1, 0, 1000),
)
OWN_PARAMETERS = (
    DURABILITY,
    PAGE_CACHE,
    # YCSB fills fields with random letters, which no compression makes much smaller.
    compression_parameter(1.0),
    DATABASES,
    COLUMN_FAMILIES,
)
RECORDS = count_parameter("recordcount", "records of the database", _COUNT_DEFAULT, 1, COUNT_MAX)
OPERATIONS = count_parameter(
    "operationcount",
    "operations over all threads; 0: until maxexecutiontime",
    _COUNT_DEFAULT,
    0,
    COUNT_MAX,
)
THREADS = count_parameter("threadcount", "threads of every phase", 1, 1, THREADS_MAX)
_PROPERTIES = (
    RECORDS,
    OPERATIONS,
    count_parameter("insertstart", "number of the first record that is loaded", 0, 0),
    count_parameter(
        "insertcount", "records that are loaded; recordcount - insertstart if not set", None, 1
    ),
    THREADS,
    _limit("target", "operations per second over all threads; 0: as many as go", "ops/s"),
    _limit("maxexecutiontime", "the run ends after this time at the latest; 0: never", "s"),
    fraction_parameter("readproportion", "share of reads", 0.95),
    fraction_parameter("updateproportion", "share of updates", 0.05),
    fraction_parameter("insertproportion", "share of inserts", 0.0),
    fraction_parameter("scanproportion", "share of scans", 0.0),
    fraction_parameter("readmodifywriteproportion", "share of read-modify-writes", 0.0),
    choice_parameter("requestdistribution", "how keys are chosen", "uniform", REQUESTS),
    WorkloadParameter(
        "zipfian_const",
        "exponent of zipfian requests; a property of YCSB-cpp",
        _THETA,
        "",
        "a number above 0 that is not 1",
        _read_theta,
    ),
    fraction_parameter("hotspotdatafraction", "share of the records that is hot", 0.2),
    fraction_parameter("hotspotopnfraction", "share of the operations on hot records", 0.8),
    WorkloadParameter(
        "exponential.percentile",
        "per cent of exponential requests that go to the newest records",
        95.0,
        "%",
        "a number above 0, below 100",
        _read_percentile,
    ),
    positive_parameter(
        "exponential.frac", "share of the records that are these newest", 0.8571428571, 1e6
    ),
    count_parameter("minscanlength", "records of a scan, the least of them", 1, 1, 10_000_000),
    count_parameter("maxscanlength", "records of a scan, the most of them", 1000, 1, 10_000_000),
    choice_parameter(
        "scanlengthdistribution",
        "how the length of a scan is drawn",
        "uniform",
        ("uniform", "zipfian"),
    ),
    *DATA_PROPERTIES,
    *OWN_PARAMETERS,
)
YCSB_PARAMETERS: Mapping[str, WorkloadParameter] = {p.name: p for p in _PROPERTIES}

# Other names of the same thing, both of YCSB-cpp.
ALIASES = {"field_len_dist": "fieldlengthdistribution", "limit.ops": "target"}
ALSO = frozenset({*ALIASES, "workload"})
WORKLOAD_CLASSES = (
    "site.ycsb.workloads.CoreWorkload",
    "com.yahoo.ycsb.workloads.CoreWorkload",
)

_WHOLE_ROW = "a record is one value, which the engine reads and writes whole"
_REPORTS = "lsmtune reports in its own way"
_RETRIES = "a write that fails ends the run"
_COMMAND = "the command line says it"
IGNORED: Mapping[str, str] = {
    "table": "an engine has no tables",
    "readallfields": _WHOLE_ROW,
    "readallfieldsbyname": _WHOLE_ROW,
    "writeallfields": _WHOLE_ROW,
    "dataintegrity": "lsmtune reads back what was written and checks it, always",
    "core_workload_insertion_retry_limit": _RETRIES,
    "core_workload_insertion_retry_interval": _RETRIES,
    "core_workload_insertion_keep_going_on_error": _RETRIES,
    "db": _COMMAND,
    "dbname": _COMMAND,
    "doload": "a workload is its load and its run",
    "dotransaction": "a workload is its load and its run",
    "dotransactions": "a workload is its load and its run",
    "sleepafterload": "the run begins when the engine has nothing left to do",
    "spin.sleep": "lsmtune waits in its own way",
    **dict.fromkeys(
        (
            "status",
            "status.interval",
            "label",
            "silent",
            "debug",
            "exporter",
            "exportfile",
            "measurementtype",
            "measurement.raw.output_file",
            "measurement.raw.no_summary",
            "measurement.interval",
            "measurement.trackjvm",
            "measurement.histogram.verbose",
            "histogram.buckets",
            "hdrhistogram.fileoutput",
            "hdrhistogram.output.path",
            "hdrhistogram.percentiles",
            "timeseries.granularity",
            "reportlatencyforeacherror",
            "latencytrackederrors",
        ),
        _REPORTS,
    ),
}
REFUSED: Mapping[str, str] = {
    "limit.file": "a rate that changes is `rate` of a workload file",
}


# --- Which properties of YCSB have no effect beside the others, and what else is to be said.

PROPORTIONS = (
    "readproportion",
    "updateproportion",
    "insertproportion",
    "scanproportion",
    "readmodifywriteproportion",
)
_OF_SCANS = ("minscanlength", "maxscanlength", "scanlengthdistribution")
# Properties that only one request distribution looks at.
_OF_REQUESTS = {
    "zipfian_const": "zipfian",
    "hotspotdatafraction": "hotspot",
    "hotspotopnfraction": "hotspot",
    "exponential.percentile": "exponential",
    "exponential.frac": "exponential",
}


def without_effect(given: Mapping[str, object], complete: Given) -> tuple[tuple[str, str], ...]:
    """Properties in `given` that have no effect beside all others, `complete`, and why."""
    idle = {
        **_idle_of_fields(complete),
        **_idle_of_scans(complete),
        **_idle_of_requests(complete),
    }
    names = ((name, ALIASES.get(name, name)) for name in given)
    return tuple((name, idle[own]) for name, own in names if own in idle)


def _idle_of_fields(complete: Given) -> dict[str, str]:
    kind = complete.get("fieldlengthdistribution")
    if kind is None:
        return {}
    why = f"fieldlengthdistribution is {kind}"
    if kind == "histogram":
        return {"fieldlength": why, "minfieldlength": why}
    idle = {"fieldlengthhistogram": f"{why}, not histogram"}
    return idle | ({"minfieldlength": why} if kind == "constant" else {})


def _idle_of_scans(complete: Given) -> dict[str, str]:
    if complete.get("scanproportion", 1):
        return {}
    return dict.fromkeys(_OF_SCANS, "scanproportion is 0")


def _idle_of_requests(complete: Given) -> dict[str, str]:
    requests = complete.get("requestdistribution")
    if requests is None:
        return {}
    if not any(complete[name] for name in PROPORTIONS if name != "insertproportion"):
        why = "inserts alone choose no record"
        return dict.fromkeys(("requestdistribution", *_OF_REQUESTS), why)
    return {
        name: f"requestdistribution is {requests}, not {of}"
        for name, of in _OF_REQUESTS.items()
        if requests != of
    }


def proportions_remark(given: Mapping[str, object], complete: Given) -> str:
    """What is said of stated proportions that do not add up to 1; empty if they do."""
    if not any(name in given for name in PROPORTIONS):
        return ""
    total = sum(complete[name] for name in PROPORTIONS)
    if math.isclose(total, 1, rel_tol=1e-9):
        return ""
    return f"proportions add up to {total:g}: each counts as its part of that"
