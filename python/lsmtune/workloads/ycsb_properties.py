"""The properties of YCSB's core workload: meaning, default, and those without an effect here.

From YCSB's `CoreWorkload.java`, `Client.java` and the generators beside them, and from YCSB-cpp's
`core_workload.cc`, `ycsbc.cc` and `PROPERTIES.md`. `docs/workloads.md` says where the two differ
and which of them is followed.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

from lsmtune.model.distribution import KEY_DISTRIBUTIONS
from lsmtune.model.setting import TEXT, Domain, Setting, above, one_of, real, whole
from lsmtune.model.workload import RATE_MAX, THREADS_MAX, VALUE_BYTES_MAX
from lsmtune.workloads.parameter import (
    AGING,
    COLUMN_FAMILIES,
    DATABASES,
    DURABILITY,
    PAGE_CACHE,
    Given,
    compression_parameter,
    settings_by_name,
)

# Neither program has a default that can be run; this is that of YCSB-cpp's own workload files.
_COUNT_DEFAULT = 100_000
HISTOGRAM = "fieldlengthhistogram"  # the property that names a file
ZIPFIAN_THETA = 0.99  # ZipfianGenerator.java, ZIPFIAN_CONSTANT; zipfian_generator.h, kZipfianConst


def _limit(unit: str) -> Domain:
    """0, which is no limit in both programs, is read as not set."""
    allowed = f"a number from 0 (no limit) to {RATE_MAX:.0f}"
    return Domain(allowed, lambda value: real(0, RATE_MAX).read(value) or None, unit)


_LENGTH = whole(0, VALUE_BYTES_MAX, unit="bytes")
DATA_PROPERTIES = (
    Setting("fieldcount", "fields of a record", 10, whole(1, 10_000)),
    Setting("fieldlength", "bytes of a field, the most of them", 100, _LENGTH),
    Setting("minfieldlength", "bytes of a field, the least of them", 1, _LENGTH),
    Setting(
        "fieldlengthdistribution",
        "how the length of a field is drawn",
        "constant",
        one_of("constant", "uniform", "zipfian", "histogram"),
    ),
    Setting(HISTOGRAM, "file with the lengths of a histogram", "hist.txt", TEXT),
    Setting("fieldnameprefix", "what the name of a field begins with", "field", TEXT),
    Setting(
        "insertorder",
        "hashed: records inserted one after another lie apart; ordered: they are neighbours",
        "hashed",
        one_of("hashed", "ordered"),
    ),
    Setting("zeropadding", "digits of a key's number, at least", 1, whole(0, 1000)),
)
OWN_PARAMETERS = (
    DURABILITY,
    PAGE_CACHE,
    # YCSB fills fields with random letters, which no compression makes much smaller.
    compression_parameter(1.0),
    DATABASES,
    COLUMN_FAMILIES,
)
RECORDS = Setting("recordcount", "records of the database", _COUNT_DEFAULT, whole(1))
OPERATIONS = Setting(
    "operationcount",
    "operations over all threads; 0: until maxexecutiontime",
    _COUNT_DEFAULT,
    whole(0),
)
THREADS = Setting("threadcount", "threads of every phase", 1, whole(1, THREADS_MAX))
# The property of each operation of a mix.
_SHARE = real(0, 1)
PROPORTIONS = {
    "get": Setting("readproportion", "share of reads", 0.95, _SHARE),
    "update": Setting("updateproportion", "share of updates", 0.05, _SHARE),
    "insert": Setting("insertproportion", "share of inserts", 0.0, _SHARE),
    "scan": Setting("scanproportion", "share of scans", 0.0, _SHARE),
    "read_modify_write": Setting(
        "readmodifywriteproportion", "share of read-modify-writes", 0.0, _SHARE
    ),
}
_SCAN_LENGTH = whole(1, 10_000_000)
YCSB_PARAMETERS: Mapping[str, Setting] = settings_by_name(
    (
        RECORDS,
        OPERATIONS,
        Setting("insertstart", "number of the first record that is loaded", 0, whole(0)),
        Setting(
            "insertcount",
            "records that are loaded; recordcount - insertstart if not set",
            None,
            whole(1),
        ),
        THREADS,
        Setting(
            "target",
            "operations per second over all threads; 0: as many as go",
            None,
            _limit("ops/s"),
        ),
        Setting(
            "maxexecutiontime",
            "the run ends after this time at the latest; 0: never",
            None,
            _limit("s"),
        ),
        *PROPORTIONS.values(),
        Setting(
            "requestdistribution",
            "how keys are chosen",
            "uniform",
            one_of("uniform", "zipfian", "latest", "hotspot", "exponential", "sequential"),
        ),
        Setting(
            "zipfian_const",
            "exponent of zipfian requests; a property of YCSB-cpp",
            ZIPFIAN_THETA,
            KEY_DISTRIBUTIONS["zipfian"]["theta"],
        ),
        Setting(
            "hotspotdatafraction",
            "share of the records that is hot",
            0.2,
            KEY_DISTRIBUTIONS["hotspot"]["hot_data"],
        ),
        Setting("hotspotopnfraction", "share of the operations on hot records", 0.8, _SHARE),
        Setting(
            "exponential.percentile",
            "per cent of exponential requests that go to the newest records",
            95.0,
            KEY_DISTRIBUTIONS["exponential"]["percentile"],
        ),
        Setting(
            "exponential.frac",
            "share of the records that are these newest",
            0.8571428571,
            above(0, 1e6),
        ),
        Setting("minscanlength", "records of a scan, the least of them", 1, _SCAN_LENGTH),
        Setting("maxscanlength", "records of a scan, the most of them", 1000, _SCAN_LENGTH),
        Setting(
            "scanlengthdistribution",
            "how the length of a scan is drawn",
            "uniform",
            one_of("uniform", "zipfian"),
        ),
        *DATA_PROPERTIES,
        *OWN_PARAMETERS,
        AGING,
    )
)

# Other names of the same thing, both of YCSB-cpp.
ALIASES = {"field_len_dist": "fieldlengthdistribution", "limit.ops": "target"}
ALSO = frozenset({*ALIASES, "workload"})
WORKLOAD_CLASSES = ("site.ycsb.workloads.CoreWorkload", "com.yahoo.ycsb.workloads.CoreWorkload")

# Properties that are taken and have no effect, by the reason.
_IGNORED = {
    "an engine has no tables": ("table",),
    "a record is one value, which the engine reads and writes whole": (
        *("readallfields", "readallfieldsbyname", "writeallfields"),
    ),
    "lsmtune reads back what was written and checks it, always": ("dataintegrity",),
    "a write that fails ends the run": (
        "core_workload_insertion_retry_limit",
        "core_workload_insertion_retry_interval",
        "core_workload_insertion_keep_going_on_error",
    ),
    "the command line says it": ("db", "dbname"),
    "a workload is its load and its run": ("doload", "dotransaction", "dotransactions"),
    "the run begins when the engine has nothing left to do": ("sleepafterload",),
    "lsmtune waits in its own way": ("spin.sleep",),
    "lsmtune reports in its own way": (
        *("status", "status.interval", "label", "silent", "debug", "exporter", "exportfile"),
        *("measurementtype", "measurement.raw.output_file", "measurement.raw.no_summary"),
        *("measurement.interval", "measurement.trackjvm", "measurement.histogram.verbose"),
        *("histogram.buckets", "hdrhistogram.fileoutput", "hdrhistogram.output.path"),
        *("hdrhistogram.percentiles", "timeseries.granularity"),
        *("reportlatencyforeacherror", "latencytrackederrors"),
    ),
}
IGNORED: Mapping[str, str] = {name: why for why, names in _IGNORED.items() for name in names}
REFUSED: Mapping[str, str] = {"limit.file": "a rate that changes is `rate` of a workload file"}


# --- Which properties of YCSB have no effect beside the others, and what else is to be said.

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
    idle: dict[str, str] = {}
    lengths = complete.get("fieldlengthdistribution")
    if lengths is not None:
        why = f"fieldlengthdistribution is {lengths}"
        if lengths in ("constant", "histogram"):
            idle["minfieldlength"] = why
        if lengths == "histogram":
            idle["fieldlength"] = why
        else:
            idle[HISTOGRAM] = f"{why}, not histogram"
    if not complete.get("scanproportion", 1):
        scans = ("minscanlength", "maxscanlength", "scanlengthdistribution")
        idle |= dict.fromkeys(scans, "scanproportion is 0")
    requests = complete.get("requestdistribution")
    if requests is not None:
        chosen = [name for name, part in PROPORTIONS.items() if complete[part.name]]
        if set(chosen) <= {"insert"}:
            why = "inserts alone choose no record"
            idle |= dict.fromkeys(("requestdistribution", *_OF_REQUESTS), why)
        else:
            for name, of in _OF_REQUESTS.items():
                if requests != of:
                    idle[name] = f"requestdistribution is {requests}, not {of}"
    names = ((name, ALIASES.get(name, name)) for name in given)
    return tuple((name, idle[own]) for name, own in names if own in idle)


def proportions_remark(given: Mapping[str, object], complete: Given) -> str:
    """What is said of stated proportions that do not add up to 1; empty if they do."""
    names = [parameter.name for parameter in PROPORTIONS.values()]
    if not any(name in given for name in names):
        return ""
    total = sum(complete[name] for name in names)
    if math.isclose(total, 1, rel_tol=1e-9):
        return ""
    return f"proportions add up to {total:g}: each counts as its part of that"
