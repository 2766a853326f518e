"""YCSB: the core workload, its six settings A to F by name, and the DKU contest's workload.

From `CoreWorkload.java` of YCSB and `core_workload.cc` of YCSB-cpp. A record is one value, as
YCSB-cpp writes it for LevelDB and RocksDB with `format=single`: its fields one after another, each
name and each value with 4 bytes of length before it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from lsmtune.engines.properties import FILE_BYTES_MAX
from lsmtune.errors import InputError
from lsmtune.model.distribution import ITEMS_PER_RECORD_MAX, Distribution
from lsmtune.model.text import read_text
from lsmtune.model.workload import (
    VALUE_BYTES_MAX,
    Durability,
    KeyOrder,
    Mix,
    PageCache,
    Phase,
    PhaseKind,
    Workload,
    YcsbKeys,
)
from lsmtune.units import whole_number
from lsmtune.workloads.distributions import largest_size, mean_size
from lsmtune.workloads.parameter import AGING, Given, WorkloadFamily, aged, settings_by_name
from lsmtune.workloads.ycsb_properties import (
    ALIASES,
    ALSO,
    DATA_PROPERTIES,
    HISTOGRAM,
    IGNORED,
    OPERATIONS,
    OWN_PARAMETERS,
    PROPORTIONS,
    RECORDS,
    REFUSED,
    THREADS,
    WORKLOAD_CLASSES,
    YCSB_PARAMETERS,
    ZIPFIAN_THETA,
)

NAME = "ycsb"
KEY_PREFIX = "user"
# Digits of a hash of 64 bits, most often: 93 % of all have 19 or 20.
HASH_DIGITS = 19
_UNIFORM = Distribution("uniform")
# Both programs expect up to twice the inserts; CoreWorkload.java, "fudge factor".
_EXPECTED_TWICE = 2


def scattered_inserts(operations: int, share: float) -> int:
    """The records to come over which requests are scattered beside those that are there.

    So inserts do not change which records are hot.
    """
    return int(operations * share * _EXPECTED_TWICE)


def scattered_as(before: Phase, after: Phase) -> Phase:
    """`after`, of another size than `before`, with requests scattered as YCSB does where those are.

    Over its own records and those to come: the workload is the one that its properties would state.
    """
    if before.mix is None or after.mix is None or before.mix.keys.get("items") != _items(before):
        return after
    keys = after.mix.keys
    scattered = Distribution.of(keys.name, **{**dict(keys.parameters), "items": _items(after)})
    return replace(after, mix=replace(after.mix, keys=scattered))


def _items(phase: Phase) -> int:
    records = 0 if phase.mix is None else phase.mix.records
    return records + scattered_inserts(phase.operations or 0, phase.shares.get("insert", 0.0))


def prepare_properties(given: Mapping[str, object], source: str) -> dict[str, object]:
    """What was given under the names of YCSB_PARAMETERS.

    Raises InputError for another workload than the core workload, and for two names of one
    property with different values.
    """
    prepared: dict[str, object] = {}
    names: dict[str, str] = {}
    for key, value in given.items():
        name = ALIASES.get(key, key)
        if name == "workload" and value not in WORKLOAD_CLASSES:
            allowed = f"YCSB's core workload, {WORKLOAD_CLASSES[0]}"
            raise InputError(source, "workload", found=value, allowed=allowed)
        if name in YCSB_PARAMETERS:
            if name in prepared and str(prepared[name]) != str(value):
                why = f"says something else than {names[name]}"
                raise InputError(source, key, found=value, why=why, allowed="one of the two")
            prepared[name], names[name] = value, key
    return prepared


def ycsb_workload(name: str, given: Given, source: str) -> Workload:
    """The load, the settling, the aging and the run of `given`, all of YCSB_PARAMETERS.

    Raises InputError, naming `source`, for properties that do not go together.
    """
    load = Phase(
        "load",
        PhaseKind.LOAD,
        mix=load_mix(given, source),
        operations=_loaded(given, source),
        threads=given["threadcount"],
    )
    run = run_phase("run", given, source)
    phases = load, Phase("settle", PhaseKind.SETTLE), run
    return aged(ycsb_data(name, phases, given, source), given["aging"])


def ycsb_data(name: str, phases: tuple[Phase, ...], given: Given, source: str) -> Workload:
    """The workload of `phases` on the keys and records that `given` describes."""
    row = row_sizes(given, source)
    hashed = given["insertorder"] == KeyOrder.HASHED.value
    digits = HASH_DIGITS if hashed else len(str(given["recordcount"]))
    return Workload(
        name=name,
        phases=phases,
        num=given["recordcount"],
        key_bytes=len(KEY_PREFIX) + max(digits, given["zeropadding"]),
        value_bytes=round(mean_size(row)),
        compression_ratio=given["compression_ratio"],
        durability=Durability(given["durability"]),
        page_cache=PageCache(given["page_cache"]),
        keys=YcsbKeys(KEY_PREFIX, given["zeropadding"], KeyOrder(given["insertorder"])),
        databases=given["databases"],
        column_families=given["column_families"],
    )


def load_mix(given: Given, source: str) -> Mix:
    """The inserts of a load into an empty database."""
    return Mix(
        operations=(("insert", 1.0),),
        records=0,
        first=given["insertstart"],
        value_sizes=row_sizes(given, source),
    )


def run_phase(name: str, given: Given, source: str) -> Phase:
    """The measure phase of the transactions that `given` describes."""
    operations = given["operationcount"]
    if not operations and given["maxexecutiontime"] is None:
        allowed = "more than 0, or maxexecutiontime beside it"
        raise InputError(source, "operationcount", found=0, allowed=allowed)
    return Phase(
        name=name,
        kind=PhaseKind.MEASURE,
        mix=_run_mix(given, source),
        operations=operations or None,
        duration_s=given["maxexecutiontime"],
        threads=given["threadcount"],
        rate_ops_s=given["target"],
    )


def row_sizes(given: Given, source: str) -> Distribution:
    """The sizes of a record's value: YCSB-cpp's form of a row, with `fieldcount` fields."""
    fields, prefix = given["fieldcount"], given["fieldnameprefix"]
    names_bytes = sum(len(f"{prefix}{index}".encode()) for index in range(fields))
    if given["fieldlengthdistribution"] == "constant":
        length = Distribution.of("constant", size=given["fieldlength"])
    elif given["fieldlengthdistribution"] == "histogram":
        length = _histogram(Path(given[HISTOGRAM]), source)
    else:
        length = _between(given, "fieldlengthdistribution", "minfieldlength", "fieldlength", source)
    row = Distribution.of("row", fields=fields, names_bytes=names_bytes, length=length)
    if largest_size(row) > VALUE_BYTES_MAX:
        name = HISTOGRAM if given["fieldlengthdistribution"] == "histogram" else "fieldlength"
        why = f"makes records of up to {largest_size(row)} bytes with fieldcount {fields}"
        allowed = f"records of at most {VALUE_BYTES_MAX} bytes"
        raise InputError(source, name, found=given[name], why=why, allowed=allowed)
    return row


def _between(given: Given, kind: str, least: str, most: str, source: str) -> Distribution:
    """The uniform or zipfian distribution that three properties state."""
    low, high = given[least], given[most]
    if low > high:
        raise InputError(source, least, found=low, allowed=f"at most {most}, {high}")
    if given[kind] == "zipfian":
        return Distribution.of("zipfian", low=low, high=high, theta=ZIPFIAN_THETA)
    return Distribution.of("uniform", low=low, high=high)


def _histogram(path: Path, source: str) -> Distribution:
    """The lengths of a file of YCSB's `HistogramGenerator`: a block size, then bucket and count."""
    try:
        head, *lines = read_text(path, "a histogram", bytes_max=FILE_BYTES_MAX).splitlines()
        word, block = head.split("\t")
        if word != "BlockSize":
            raise ValueError(head)
        parts = (line.split("\t") for line in lines)
        counts = [(whole_number(bucket), whole_number(count)) for bucket, count in parts]
        size = whole_number(block)
        if size < 1 or any(bucket < 0 or count < 0 for bucket, count in counts):
            raise ValueError(head)
        pairs = tuple(((bucket + 1) * size, count) for bucket, count in counts if count)
    except InputError as error:
        raise InputError(source, HISTOGRAM, why=str(error)) from None
    except ValueError:
        allowed = "BlockSize and its value above 0, then lines of bucket and count, tabs between"
        raise InputError(source, HISTOGRAM, found=str(path), allowed=allowed) from None
    if not pairs:
        raise InputError(source, HISTOGRAM, found=str(path), why="has no lengths")
    return Distribution.of("table", sizes=pairs)


def _loaded(given: Given, source: str) -> int:
    """How many records the load inserts: `insertcount`, or all from `insertstart` on."""
    records, start, count = (given[k] for k in ("recordcount", "insertstart", "insertcount"))
    if start >= records:
        allowed = f"less than recordcount, {records}"
        raise InputError(source, "insertstart", found=start, allowed=allowed)
    if count is not None and start + count > records:
        allowed = f"at most recordcount - insertstart, {records - start}"
        raise InputError(source, "insertcount", found=count, allowed=allowed)
    return int(records - start if count is None else count)


def _run_mix(given: Given, source: str) -> Mix:
    loaded, start = _loaded(given, source), given["insertstart"]
    shares = {name: given[parameter.name] for name, parameter in PROPORTIONS.items()}
    operations = {name: share for name, share in shares.items() if share > 0}
    if not operations:
        why = "is 0, and so are all other proportions"
        raise InputError(source, "readproportion", why=why, allowed="one of them above 0")
    # New records are numbered from recordcount on, whatever was loaded.
    new_from = given["recordcount"]
    scans = ("scanlengthdistribution", "minscanlength", "maxscanlength")
    return Mix(
        operations=tuple(operations.items()),
        records=loaded,
        keys=_requests(given, loaded, source) if operations.keys() - {"insert"} else _UNIFORM,
        first=start,
        insert_from=new_from if "insert" in operations and new_from != start + loaded else None,
        scan_lengths=_between(given, *scans, source) if "scan" in operations else None,
        value_sizes=row_sizes(given, source) if operations.keys() - {"get", "scan"} else None,
    )


def _requests(given: Given, loaded: int, source: str) -> Distribution:
    match given["requestdistribution"]:
        case "zipfian":
            count, share = given["operationcount"], given["insertproportion"]
            items, most = loaded + scattered_inserts(count, share), ITEMS_PER_RECORD_MAX * loaded
            if items > most:
                why = f"scatters zipfian requests over {items} records, as inserts may come to"
                allowed = f"as many as make at most {most}, {ITEMS_PER_RECORD_MAX} times the load"
                raise InputError(source, OPERATIONS.name, found=count, why=why, allowed=allowed)
            theta = given["zipfian_const"]
            return Distribution.of("scrambled_zipfian", theta=theta, items=items)
        case "latest":
            return Distribution.of("latest", theta=ZIPFIAN_THETA)
        case "hotspot":
            data, operations = given["hotspotdatafraction"], given["hotspotopnfraction"]
            return Distribution.of("hotspot", hot_data=data, hot_operations=operations)
        case "exponential":
            percentile, fraction = given["exponential.percentile"], given["exponential.frac"]
            return Distribution.of("exponential", percentile=percentile, fraction=fraction)
    return Distribution(given["requestdistribution"])


# --- The workloads of YCSB by name: the core workload as such, and its six settings A to F.

# As in the files workloads/workloada to workloadf of both programs; their counts are YCSB-cpp's.
_CORE: Mapping[str, tuple[str, Mapping[str, Any]]] = {
    "a": (
        "update heavy: half reads, half updates",
        {"readproportion": 0.5, "updateproportion": 0.5},
    ),
    "b": ("read mostly: 95 % reads, 5 % updates", {}),
    "c": ("read only", {"readproportion": 1.0, "updateproportion": 0.0}),
    "d": (
        "read latest: 95 % reads of new records, 5 % inserts",
        {"updateproportion": 0.0, "insertproportion": 0.05, "requestdistribution": "latest"},
    ),
    "e": (
        "short ranges: 95 % scans of up to 100 records, 5 % inserts",
        {
            "readproportion": 0.0,
            "updateproportion": 0.0,
            "scanproportion": 0.95,
            "insertproportion": 0.05,
            "maxscanlength": 100,
        },
    ),
    "f": (
        "read-modify-write: half reads, half reads that write back",
        {"readproportion": 0.5, "updateproportion": 0.0, "readmodifywriteproportion": 0.5},
    ),
}


def core_properties(letter: str) -> dict[str, Any]:
    """The properties by which core workload `letter`, `a` to `f`, differs from the defaults."""
    return {"requestdistribution": "zipfian", **_CORE[letter][1]}


def _family(name: str, description: str, defaults: Mapping[str, Any]) -> WorkloadFamily:
    """A family of the core workload whose properties have other `defaults`."""
    return WorkloadFamily(
        name=name,
        description=description,
        parameters={
            key: replace(parameter, default=defaults.get(key, parameter.default))
            for key, parameter in YCSB_PARAMETERS.items()
        },
        build=partial(ycsb_workload, name),
        no_effect=REFUSED,
        ignored=IGNORED,
        also=ALSO,
        prepare=prepare_properties,
        sizes=("recordcount", "operationcount"),
    )


YCSB_FAMILIES = (
    _family(NAME, "YCSB's core workload, by its own properties", {}),
    *(
        _family(f"{NAME}-{one}", f"YCSB's workload {one.upper()}, {about}", core_properties(one))
        for one, (about, _) in _CORE.items()
    ),
)


# --- A workload of YCSB as a file of its properties, which both YCSB and YCSB-cpp read.

_ALWAYS = {"recordcount", "operationcount", "requestdistribution"} | {
    parameter.name for parameter in PROPORTIONS.values()
}
# Both programs take these in whole operations a second, and whole seconds.
_WHOLE = {"target", "maxexecutiontime"}
# YCSB-cpp has another name for some; each program passes over the other's.
_OTHER_NAMES = {name: alias for alias, name in ALIASES.items()}


def properties_text(name: str, parameters: Mapping[str, Any], source: str) -> str:
    """The file's text for the `parameters` of workload `name`.

    Raises InputError for a workload that is not load and run of YCSB, and for parameters that are
    not YCSB's.
    """
    if not YCSB_PARAMETERS.keys() <= parameters.keys():
        allowed = "a workload of YCSB; --format yaml for all"
        why = "is not one load and one run of YCSB"
        raise InputError(source, found=name, why=why, allowed=allowed)
    own = {parameter.name: parameter.default for parameter in (*OWN_PARAMETERS, AGING)}
    for key, default in own.items():
        if parameters[key] != default:
            allowed = f"{default}, without which YCSB cannot say it; --format yaml for all"
            raise InputError(source, key, found=parameters[key], allowed=allowed)
    lines = [f"# {name}, written by lsmtune", f"workload={WORKLOAD_CLASSES[0]}", ""]
    for key, parameter in YCSB_PARAMETERS.items():
        value = parameters[key]
        if key in own or (key not in _ALWAYS and value == parameter.default):
            continue
        if isinstance(value, float) and value == int(value):
            value = int(value)
        if key in _WHOLE and isinstance(value, float):
            allowed = "a whole number, which is what YCSB reads; --format yaml for all"
            raise InputError(source, key, found=value, allowed=allowed)
        names = (key, _OTHER_NAMES[key]) if key in _OTHER_NAMES else (key,)
        lines += [f"{name}={value}" for name in names]
    return "\n".join(lines) + "\n"


# --- The workload of the DKU tuning contest: YCSB's Load A, Run A, Run B and Run D in turn.
#
# From DKU-StarLab/leveldb-study, `tuning/`: one database of 2,000,000 records through all four,
# with 2,000,000 operations in each run. Every one of them is measured, the load as well.

CONTEST_NAME = "contest"
RUNS = ("a", "b", "d")
_COUNT = 2_000_000
_CONTEST_PARAMETERS = settings_by_name(
    (
        replace(RECORDS, default=_COUNT),
        replace(OPERATIONS, default=_COUNT, description="operations of each run, over all threads"),
        THREADS,
        *DATA_PROPERTIES,
        *OWN_PARAMETERS,
    )
)
_OF_ITS_PHASES = "its four phases have properties of their own"


def _contest_workload(given: Given, source: str) -> Workload:
    defaults = {name: parameter.default for name, parameter in YCSB_PARAMETERS.items()}
    data = {**defaults, **given}
    load = Phase(
        "load-a",
        PhaseKind.MEASURE,
        mix=load_mix(data, source),
        operations=data["recordcount"],
        threads=data["threadcount"],
    )
    runs = [
        run_phase(f"run-{letter}", {**data, **core_properties(letter)}, source) for letter in RUNS
    ]
    return ycsb_data(CONTEST_NAME, (load, *runs), data, source)


CONTEST = WorkloadFamily(
    name=CONTEST_NAME,
    description="Load A, Run A, Run B and Run D of YCSB on one database, all measured",
    parameters=_CONTEST_PARAMETERS,
    build=_contest_workload,
    no_effect={name: _OF_ITS_PHASES for name in YCSB_PARAMETERS if name not in _CONTEST_PARAMETERS},
    ignored=IGNORED,
    also=ALSO,
    prepare=prepare_properties,
    sizes=("recordcount", "operationcount"),
)
