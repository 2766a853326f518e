"""Workload files: what they say, what they may not, and that writing is the inverse of reading."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lsmtune.errors import InputError
from lsmtune.model.distribution import Distribution
from lsmtune.model.workload import (
    Companion,
    Durability,
    KeyOrder,
    Mix,
    PhaseKind,
    Replay,
    SineRate,
    StepRate,
    Workload,
    YcsbKeys,
)
from lsmtune.study.build import parse_spec
from lsmtune.workloads.file import (
    parse_workload_file,
    workload_text,
)
from lsmtune.workloads.stated import WORKLOAD_NAMES, make_workload

WHOLE = """\
version: 1
name: all of it
about: every field
num: 1000
value_bytes: 1KiB
compression_ratio: 1.0
durability: sync
page_cache: cold
keys: {format: ycsb, prefix: k, zero_padding: 4, order: ordered}
databases: 2
column_families: 3
phases:
  - name: load
    kind: load
    mix: {operations: {insert: 1}, value_sizes: 100}
    operations: 1000
    threads: 2
  - {name: settle, kind: settle}
  - name: day
    kind: warmup
    mix:
      operations: {get: 3, scan: 1}
      keys: {distribution: hotspot, hot_data: 0.1, hot_operations: 0.9}
      scan_lengths: {distribution: uniform, low: 1, high: 50}
    duration_s: 1m
    rate: {shape: sine, mean_ops_s: 500, amplitude_ops_s: 200, period_s: 1h, offset_s: 10m}
    companions:
      - {name: backup, operation: readseq, rate_ops_s: 100}
      - {name: writer, mix: {operations: {put: 1}}, threads: 2}
  - name: bursts
    kind: measure
    operation: overwrite
    operations_per_thread: 500
    rate: {shape: steps, steps: [[10s, 5000], [50s, 0]]}
  - name: trace
    kind: measure
    replay: {path: traces/monday, speed: 2}
"""


def read(text: str) -> Workload:
    return parse_workload_file(text, Path("here/w.yaml"))


def test_every_field() -> None:
    workload = read(WHOLE)
    assert (workload.num, workload.value_bytes, workload.databases) == (1000, 1024, 2)
    assert workload.durability is Durability.SYNC
    assert workload.keys == YcsbKeys("k", 4, KeyOrder.ORDERED)
    load, settle, day, bursts, trace = workload.phases
    sizes = Distribution.of("constant", size=100)
    assert load.mix == Mix((("insert", 1.0),), records=0, value_sizes=sizes)
    assert settle.kind is PhaseKind.SETTLE
    assert day.mix is not None
    assert (day.mix.records, day.duration_s) == (1000, 60.0)
    assert day.rate == SineRate(500.0, 200.0, 3600.0, 600.0)
    assert day.companions == (
        Companion("backup", operation="readseq", rate_ops_s=100.0),
        Companion("writer", mix=Mix((("put", 1.0),), records=1000), threads=2),
    )
    assert bursts.rate == StepRate(((10.0, 5000.0), (50.0, 0.0)))
    assert trace.replay == Replay("here/traces/monday", 2.0)


@pytest.mark.parametrize("name", WORKLOAD_NAMES)
def test_every_named_workload_is_read_as_it_was_written(name: str) -> None:
    workload = make_workload(name, {}, "-w")
    assert read(workload_text(workload, ["one\ntwo"])) == workload


def test_a_whole_file_is_read_as_it_was_written() -> None:
    workload = read(WHOLE)
    again = parse_workload_file(workload_text(workload), Path("w.yaml"))
    assert again == workload


def test_key_and_value_bytes_follow_from_sizes() -> None:
    text = """\
version: 1
name: sizes
num: 10
key_sizes: {distribution: uniform, low: 8, high: 40}
phases:
  - name: run
    kind: measure
    mix: {operations: {insert: 1}, value_sizes: {distribution: uniform, low: 0, high: 30}}
    operations: 10
"""
    workload = read(text)
    assert (workload.key_bytes, workload.value_bytes) == (40, 15)
    with pytest.raises(InputError, match=r"w.yaml:4: key_bytes: found 20; allowed: at least 40"):
        read(text.replace("key_sizes", "key_bytes: 20\nkey_sizes", 1))


def test_a_workload_of_empty_values_is_read_as_it_was_written() -> None:
    """An export said `value_bytes: 0`, which no file may."""
    phase = (
        "{name: a, kind: measure, mix: {operations: {insert: 1}, value_sizes: 0}, operations: 9}"
    )
    workload = read(f"version: 1\nname: x\nnum: 9\nphases:\n  - {phase}\n")
    assert read(workload_text(workload)) == workload


PHASE = """\
version: 1
name: x
num: 100
phases:
  - {name: load, kind: load, operation: fillseq, operations_per_thread: 100}
"""


@pytest.mark.parametrize(
    ("phase", "told"),
    [
        (
            "{name: a, kind: measure, operation: readseq, operations: 1, seek_nexts: 4}",
            r"phases\[1\].seek_nexts: has no effect without operation: seekrandom, or a replay",
        ),
        ("{name: a, kind: measure}", r"w.yaml:6: phases\[1\]: does nothing; allowed: one of"),
        ("{name: a, kind: measure, operation: readseq}", r"phases\[1\]: has no size"),
        ("{name: load, kind: measure, operation: readseq, operations: 1}", "the same name twice"),
        ("{name: a, kind: settle, operations: 3}", r"phases\[1\].operations: has no effect: a set"),
        (
            "{name: a, kind: measure, operation: readrnadom, operations: 1}",
            r"phases\[1\].operation: found 'readrnadom'.*did you mean readrandom\?",
        ),
        (
            "{name: a, kind: measure, mix: {operations: {gte: 1}}, operations: 1}",
            r"phases\[1\].mix.operations.gte: found 'gte'",
        ),
        ("{name: a, kind: settle, threads: 4}", r"phases\[1\].threads: has no effect: a settle"),
        ("{name: a, kind: settle, seek_nexts: 4}", r"phases\[1\].seek_nexts: has no effect: a s"),
        (
            "{name: a, kind: measure, mix: {operations: {get: 1}, value_sizes: 9}, operations: 1}",
            r"phases\[1\].mix.value_sizes: has no effect: get writes no value",
        ),
        (
            "{name: a, kind: measure, mix: {operations: {insert: 1}, keys: sequential}, "
            "operations: 1}",
            r"phases\[1\].mix.keys: has no effect: insert draws no key",
        ),
        (
            "{name: a, kind: measure, mix: {operations: {get: 0}}, operations: 1}",
            r"phases\[1\].mix.operations.get: found 0.0; allowed: a weight above 0",
        ),
        (
            "{name: a, kind: measure, mix: {operations: {get: 1e308, put: 1e308}}, operations: 1}",
            r"phases\[1\].mix.operations.get: found 1e\+308; allowed: .* at most 1e\+100",
        ),
        (
            "{name: a, kind: measure, mix: {operations: {get: 1}, keys: zipfian}, operations: 1}",
            r"phases\[1\].mix.keys.theta: missing",
        ),
        (
            "{name: a, kind: measure, mix: {operations: {scan: 1}}, operations: 1}",
            r"phases\[1\].mix.scan_lengths: missing",
        ),
        (
            "{name: a, kind: measure, mix: {operations: {get: 1}, records: 0}, operations: 1}",
            r"phases\[1\].mix.records: is 0, and get needs a key",
        ),
        (
            "{name: a, kind: measure, operation: readseq, operations: 1, operations_per_thread: 1}",
            r"phases\[1\].operations_per_thread: stands beside operations",
        ),
        (
            "{name: a, kind: measure, operation: readseq, operations: 1, rate_ops_s: 0}",
            r"phases\[1\].rate_ops_s: found 0; allowed: more than 0",
        ),
        (
            "{name: a, kind: measure, operation: readseq, operations: 1, rate: {shape: sine}}",
            r"phases\[1\].rate.mean_ops_s: missing",
        ),
        (
            "{name: a, kind: measure, operation: readseq, operations: 1, "
            "rate: {shape: sine, mean_ops_s: 1, amplitude_ops_s: 2, period_s: 1s}}",
            r"phases\[1\].rate.amplitude_ops_s: found 2.0; allowed: at most mean_ops_s, 1",
        ),
        (
            "{name: a, kind: measure, operation: readseq, operations: 1, "
            "rate: {shape: steps, steps: [[1s, 0]]}}",
            r"phases\[1\].rate.steps: never does anything",
        ),
        (
            "{name: a, kind: measure, operation: readseq, operations: 1, treads: 2}",
            r"phases\[1\].treads: unknown field.*did you mean threads\?",
        ),
        (
            "{name: a, kind: measure, operation: readseq, operations: 1, threads: 5000}",
            r"phases\[1\].threads: found 5000; allowed: at most 1024",
        ),
        (
            "{name: a, kind: measure, operation: readseq, operations: 1, "
            "companions: [{name: b, operation: readseq, mix: {operations: {get: 1}}}]}",
            r"phases\[1\].companions\[0\].mix: stands beside operation",
        ),
        (
            "{name: a, kind: measure, replay: {path: t}, rate_ops_s: 5}",
            r"phases\[1\].rate_ops_s: has no effect: a trace has its own pace",
        ),
        ("{name: a, kind: load, operation: readseq, operations: 1}", "phases: none of them is mea"),
    ],
)
def test_what_a_phase_may_not_say(phase: str, told: str) -> None:
    with pytest.raises(InputError, match=told) as caught:
        read(f"{PHASE}  - {phase}\n")
    assert "\n" not in str(caught.value)


def mixed(operations: str, more: str) -> str:
    return f"{{name: a, kind: measure, mix: {{operations: {operations}, {more}}}, operations: 1}}"


@pytest.mark.parametrize(
    ("phase", "told"),
    [
        (mixed("{scan: 1}", "scan_lengths: 0"), "mix.scan_lengths: found 0; allowed: scans of at"),
        (
            mixed("{get: 1}", "keys: {distribution: scrambled_zipfian, theta: 0.9, items: 99}"),
            r"mix.keys.items: found 99; allowed: 100 \(records\) to 100000",
        ),
        (
            mixed("{get: 1}", "keys: {distribution: ranges, ranges: 101, a: 1, b: 0, c: 0, d: 0}"),
            r"mix.keys.ranges: found 101; allowed: at most 100 \(records\)",
        ),
        (
            mixed("{get: 1, delete_oldest: 1}", "keys: {distribution: power, a: 0.1, b: 0.5}"),
            "mix.keys.distribution: stands beside delete_oldest; found 'power'; allowed: uniform",
        ),
        (
            mixed("{insert: 1}", "insert_from: 99"),
            r"mix.insert_from: found 99; allowed: 100 \(first \+ records\) or more",
        ),
        (
            mixed("{get: 1, insert: 1}", "records: 0"),
            "mix.records: is 0, and get needs a key",
        ),
        (
            "{name: a, kind: measure, replay: {path: t}, "
            "companions: [{name: b, operation: readseq}]}",
            "companions: stand in a phase that replays a trace; allowed: none",
        ),
        (
            "{name: a, kind: measure, operation: readwhilewriting, operations: 1, "
            "companions: [{name: b, operation: readseq}]}",
            "companions: stand in a phase that has its writer; allowed: none",
        ),
        (
            "{name: a, kind: measure, operation: readseq, operations: 1, "
            "companions: [{name: b, operation: readwhilewriting}]}",
            r"companions\[0\].operation: found 'readwhilewriting'; allowed: readrandom",
        ),
    ],
)
def test_what_the_driver_would_refuse_is_told_before_the_first_run(phase: str, told: str) -> None:
    """The tuner took each of these, and all runs ended as `invalid`."""
    with pytest.raises(InputError, match=rf"^here/w.yaml:6: phases\[1\].{told}"):
        read(f"{PHASE}  - {phase}\n")


def test_keys_of_drawn_sizes_have_room_for_their_numbers() -> None:
    """The driver puts eight bytes of a number first, and refused shorter ones run by run."""
    with pytest.raises(InputError, match="key_sizes: found 4; allowed: keys of at least 8 bytes"):
        read(
            f"{PHASE}  - {{name: a, kind: measure, operation: readseq, operations: 1}}\n"
            "key_sizes: {distribution: uniform, low: 4, high: 40}\n"
        )


def test_seeks_of_a_trace_may_have_steps() -> None:
    """A trace holds no steps, so that this field alone can say them; it was refused."""
    text = f"{PHASE}  - {{name: a, kind: measure, replay: {{path: t}}, seek_nexts: 4}}\n"
    workload = read(text)
    assert workload.phases[1].seek_nexts == 4
    assert read(workload_text(workload)).phases[1].seek_nexts == 4


def test_records_that_nobody_can_know_have_to_be_stated() -> None:
    chance = "{name: a, kind: measure, mix: {operations: {get: 1, insert: 1}}, operations: 10}"
    after = "{name: b, kind: measure, mix: {operations: {get: 1}}, operations: 10}"
    text = f"{PHASE}  - {chance}\n  - {after}\n"
    with pytest.raises(InputError, match=r"phases\[2\].mix.records: missing, and how many"):
        read(text)
    stated = read(text.replace("{get: 1}}", "{get: 1}, records: 100}"))
    assert stated.phases[2].mix == Mix((("get", 1.0),), records=100)


@pytest.mark.parametrize(
    ("fill", "all_there"),
    [
        ("operation: fillseq, operations_per_thread: 100, threads: 4", True),
        ("operation: fillseq, operations_per_thread: 50, threads: 2", False),
        ("operation: fillseq, operations: 199, threads: 2", True),
        ("operation: fillseq, operations: 198, threads: 2", False),
        ("operation: fillseq, operations: 100, duration_s: 1s", False),
        ("operation: filluniquerandom, operations_per_thread: 50, threads: 2", True),
        ("operation: filluniquerandom, operations: 100, duration_s: 1s", False),
        ("operation: filluniquerandom, operations: 99, threads: 3", False),
        ("operation: filluniquerandom, operations: 100, threads: 3", True),
    ],
)
def test_a_fill_leaves_all_keys_only_where_that_is_certain(fill: str, all_there: bool) -> None:
    """Each thread of fillseq begins with the first key: two of 50 operations leave 50 of 100 keys,
    and a mix after them asked for all."""
    after = "{name: b, kind: measure, mix: {operations: {get: 1}}, operations: 10}"
    text = PHASE.replace("operation: fillseq, operations_per_thread: 100", fill) + f"  - {after}\n"
    if all_there:
        assert read(text).phases[1].mix == Mix((("get", 1.0),), records=100)
        return
    with pytest.raises(InputError, match=r"phases\[1\].mix.records: missing, and how many"):
        read(text)


@given(st.text(max_size=80))
def test_any_text_is_refused_in_one_line(text: str) -> None:
    with pytest.raises(InputError) as caught:
        read(f"version: 1\nname: x\nphases: {text}")
    assert "\n" not in str(caught.value)


STUDY = """\
version: 1
name: s
engine: {{name: {engine}}}
workload: {workload}
space: {engine}-basic
budget: {{trials: 3}}
"""


def test_studies_name_workloads_in_every_way(tmp_path: Path) -> None:
    (tmp_path / "w.yaml").write_text(WHOLE.replace("column_families: 3\n", ""))
    (tmp_path / "a").write_text("recordcount=50\noperationcount=5\nrocksdb.cache_size=5\n")
    study = tmp_path / "study.yaml"

    def of(workload: str, engine: str = "rocksdb") -> Workload:
        return parse_spec(STUDY.format(engine=engine, workload=workload), study).workload

    assert of("{name: ycsb-a, recordcount: 300}").num == 300
    assert of("{name: ycsb, properties: [a], operationcount: 7}").phases[-1].operations == 7
    assert of("{file: a, threadcount: 3}").phases[-1].threads == 3
    assert of("{file: w.yaml}").name == "all of it"
    # They were passed over in silence, also where no such file was there.
    (tmp_path / "local").write_text("operationcount=8\n")
    assert of("{file: a, properties: [local]}").phases[-1].operations == 8
    spec = parse_spec(STUDY.format(engine="rocksdb", workload="{file: a}"), study)
    assert any("rocksdb.cache_size: left out of the workload" in note for note in spec.notes)
    assert parse_spec(STUDY.format(engine="rocksdb", workload="{name: up2x}"), study).fixed == {
        "merge_operator": "put"
    }


@pytest.mark.parametrize("name", ["target", "limit.ops"])
def test_a_later_file_changes_a_property_of_an_exported_one_by_either_name(
    tmp_path: Path, name: str
) -> None:
    """The exported one has both names, and the later one was told to agree with it."""
    (tmp_path / "exported").write_text("target=100\nlimit.ops=100\n")
    (tmp_path / "local").write_text(f"{name}=200\n")

    def rate_of(workload: str) -> float | None:
        text = STUDY.format(engine="rocksdb", workload=workload)
        return parse_spec(text, tmp_path / "study.yaml").workload.phases[-1].rate_ops_s

    assert rate_of("{name: ycsb, properties: [exported, local]}") == 200
    assert rate_of("{file: exported, properties: [local]}") == 200
    assert rate_of("{name: ycsb, properties: [local, exported]}") == 100


def test_a_histogram_is_named_from_the_study_file(tmp_path: Path) -> None:
    """It was looked for in the current folder, also where a file of properties named it."""
    (tmp_path / "lengths").write_text("BlockSize\t10\n0\t1\n")
    (tmp_path / "a").write_text(
        "fieldlengthdistribution=histogram\nfieldlengthhistogram=lengths\nrecordcount=50\n"
    )
    histogram = "fieldlengthdistribution: histogram, fieldlengthhistogram: lengths"
    for workload in (
        f"{{name: ycsb, {histogram}}}",
        "{name: ycsb, properties: a}",
        "{file: a}",
    ):
        text = STUDY.format(engine="rocksdb", workload=workload)
        # Ten fields of 10 bytes, each after 8 bytes of lengths; 60 bytes of names.
        assert parse_spec(text, tmp_path / "study.yaml").workload.value_bytes == 240


@pytest.mark.parametrize(
    ("workload", "told"),
    [
        ("{file: none.yaml}", "none.yaml: no such file; allowed: a workload file"),
        # A file without a value, and so without a name, was a KeyError.
        ("{file: }", "study.yaml:4: workload.name: found nothing; allowed: fillseq, "),
        ("{file: w.yaml, num: 3}", r"study.yaml:4: workload.num: has no effect on .*w.yaml"),
        ("{file: w.yaml, name: x}", r"study.yaml:4: workload.name: stands beside file"),
        ("{file: w.yaml, properties: a}", r"a:1: recordcount: has no effect on .*w.yaml, a work"),
        ("{file: w.yaml, properties: none}", "none: no such file"),
        ("{file: bad.yaml}", "bad.yaml: num: missing"),
        ("{name: ycsb, properties: none}", r"none: no such file"),
        ("{name: ycsb, properties: [1]}", r"workload.properties: found \[1\]"),
        ("{name: fillseq, properties: a}", r"a:1: recordcount: has no effect in fillseq"),
        ("{name: up2x}", r"study.yaml:4: workload: up2x merges, which leveldb cannot"),
        ("{name: ycsb-a, column_families: 2}", "workload: leveldb has no column families"),
    ],
)
def test_what_a_study_may_not_say_of_its_workload(tmp_path: Path, workload: str, told: str) -> None:
    (tmp_path / "w.yaml").write_text(WHOLE)
    (tmp_path / "bad.yaml").write_text("version: 1\nname: x\n")
    (tmp_path / "a").write_text("recordcount=50\n")
    with pytest.raises(InputError, match=told) as caught:
        parse_spec(STUDY.format(engine="leveldb", workload=workload), tmp_path / "study.yaml")
    assert "\n" not in str(caught.value)


def test_the_length_of_keys_that_have_their_own_is_refused() -> None:
    text = (
        "version: 1\nname: x\nnum: 9\nkeys: {format: ycsb}\nkey_bytes: 20\nphases:\n"
        "  - {name: load, kind: measure, operation: fillseq, operations_per_thread: 9}\n"
    )
    with pytest.raises(InputError, match=r"w\.yaml:5: key_bytes: has no effect: keys have their"):
        parse_workload_file(text, Path("w.yaml"))
