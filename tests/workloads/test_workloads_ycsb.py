"""YCSB's core workload: properties to phases, as YCSB and YCSB-cpp mean them."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lsmtune.engines.properties import Property, parse_properties, properties_of
from lsmtune.errors import InputError
from lsmtune.experiment.run_length import longer_by
from lsmtune.model.distribution import Distribution
from lsmtune.model.workload import Durability, KeyOrder, Mix, Phase, PhaseKind, Workload, YcsbKeys
from lsmtune.study.stored import smaller
from lsmtune.workloads.choice import choose_workload
from lsmtune.workloads.file import workload_fields
from lsmtune.workloads.stated import make_workload, state_workload
from lsmtune.workloads.ycsb import properties_text

DATA = Path(__file__).resolve().parents[3] / "shared" / "data"
WORKLOAD_FILES = sorted([*DATA.glob("ycsb-cpp/workloads/*"), *DATA.glob("dku-contest/workloads/*")])
PROPERTY_FILES = sorted(
    [*DATA.glob("ycsb-cpp/*.properties"), *DATA.glob("dku-contest/*/*.properties")]
)
ROW = Distribution.of(
    "row", fields=10, names_bytes=60, length=Distribution.of("constant", size=100)
)


def phases(workload: Workload) -> tuple[Phase, Mix, Phase, Mix]:
    load, settle, run = workload.phases
    assert settle == Phase("settle", PhaseKind.SETTLE)
    assert load.mix is not None
    assert run.mix is not None
    return load, load.mix, run, run.mix


def run_mix(**properties: object) -> Mix:
    return phases(make_workload("ycsb", properties, "-p"))[3]


def test_the_core_workload_by_its_defaults() -> None:
    workload = make_workload("ycsb", {"recordcount": "1000", "operationcount": 500}, "-p")
    load, load_mix, run, mix = phases(workload)
    assert (load.kind, load.operations, load_mix.operations) == (
        PhaseKind.LOAD,
        1000,
        (("insert", 1.0),),
    )
    assert (load_mix.records, load_mix.first, load_mix.value_sizes) == (0, 0, ROW)
    assert (run.name, run.kind, run.operations, run.threads) == ("run", PhaseKind.MEASURE, 500, 1)
    assert mix.operations == (("get", 0.95), ("update", 0.05))
    assert (mix.records, mix.keys, mix.insert_from) == (1000, Distribution("uniform"), None)
    assert workload.keys == YcsbKeys("user", 1, KeyOrder.HASHED)
    # 10 fields: 4 bytes, 6 of the name, 4 bytes, 100 of the value.
    assert (workload.num, workload.value_bytes, workload.compression_ratio) == (1000, 1140, 1.0)


@pytest.mark.parametrize(
    ("name", "operations", "keys"),
    [
        ("ycsb-a", {"get": 0.5, "update": 0.5}, "scrambled_zipfian"),
        ("ycsb-b", {"get": 0.95, "update": 0.05}, "scrambled_zipfian"),
        ("ycsb-c", {"get": 1.0}, "scrambled_zipfian"),
        ("ycsb-d", {"get": 0.95, "insert": 0.05}, "latest"),
        ("ycsb-e", {"scan": 0.95, "insert": 0.05}, "scrambled_zipfian"),
        ("ycsb-f", {"get": 0.5, "read_modify_write": 0.5}, "scrambled_zipfian"),
    ],
)
def test_the_six_core_workloads(name: str, operations: dict[str, float], keys: str) -> None:
    mix = phases(make_workload(name, {}, "-w"))[3]
    assert dict(mix.operations) == operations
    assert mix.keys.name == keys
    # Room for twice the expected inserts, so that inserts do not move the hot records.
    inserts = operations.get("insert", 0.0)
    assert mix.keys.get("items") in (None, 100_000 + int(100_000 * inserts * 2))
    assert (mix.scan_lengths is not None) == (name == "ycsb-e")


@pytest.mark.parametrize(
    ("properties", "keys"),
    [
        ({"requestdistribution": "uniform"}, Distribution("uniform")),
        ({"requestdistribution": "sequential"}, Distribution("sequential")),
        ({"requestdistribution": "latest"}, Distribution.of("latest", theta=0.99)),
        (
            {"requestdistribution": "zipfian", "zipfian_const": "0.7", "recordcount": 50},
            Distribution.of("scrambled_zipfian", theta=0.7, items=50),
        ),
        (
            {"requestdistribution": "hotspot", "hotspotdatafraction": 0.1},
            Distribution.of("hotspot", hot_data=0.1, hot_operations=0.8),
        ),
        (
            {"requestdistribution": "exponential", "exponential.percentile": 90},
            Distribution.of("exponential", percentile=90.0, fraction=0.8571428571),
        ),
    ],
)
def test_request_distributions(properties: dict[str, object], keys: Distribution) -> None:
    assert run_mix(**properties).keys == keys


def test_field_and_scan_lengths() -> None:
    mix = run_mix(
        fieldcount=12,
        fieldlength=20,
        field_len_dist="uniform",
        fieldnameprefix="f",
        scanproportion=1,
    )
    assert mix.value_sizes == Distribution.of(
        "row", fields=12, names_bytes=26, length=Distribution.of("uniform", low=1, high=20)
    )
    assert mix.scan_lengths == Distribution.of("uniform", low=1, high=1000)
    zipfian = run_mix(
        fieldlengthdistribution="zipfian",
        minfieldlength=5,
        scanproportion=1,
        scanlengthdistribution="zipfian",
    )
    assert zipfian.scan_lengths == Distribution.of("zipfian", low=1, high=1000, theta=0.99)
    assert zipfian.value_sizes is not None
    assert zipfian.value_sizes.get("length") == Distribution.of(
        "zipfian", low=5, high=100, theta=0.99
    )


def test_a_histogram_of_field_lengths(tmp_path: Path) -> None:
    path = tmp_path / "hist.txt"
    path.write_text("BlockSize\t10\n0\t3\n1\t0\n2\t7\n")
    given = {"fieldlengthdistribution": "histogram", "fieldlengthhistogram": str(path)}
    mix = run_mix(**given)
    assert mix.value_sizes is not None
    assert mix.value_sizes.get("length") == Distribution.of("table", sizes=((10, 3), (30, 7)))
    long = f"BlockSize\t10\n0\t{'9' * 400}\n"  # no float holds it
    for wrong in ("Blocks\t10\n", "BlockSize\t0\n1\t3\n", "BlockSize\t10\n-5\t3\n", long):
        path.write_text(wrong)  # a bucket of -5 made fields of -40 bytes
        with pytest.raises(InputError, match=r"fieldlengthhistogram: .*allowed: BlockSize"):
            run_mix(**given)
    path.write_text("BlockSize\t200000\n0\t1\n")
    # fieldlength was blamed, which has no effect then.
    with pytest.raises(InputError, match=r"^-p: fieldlengthhistogram: makes records of up to 20"):
        run_mix(**given)


def test_inserts_of_a_part_of_the_records_and_new_ones_after_all() -> None:
    given = {"recordcount": 100, "insertstart": 20, "insertcount": 30, "insertproportion": 0.1}
    load, load_mix, _, mix = phases(make_workload("ycsb", given, "-p"))
    assert (load.operations, load_mix.first) == (30, 20)
    assert (mix.first, mix.records, mix.insert_from) == (20, 30, 100)
    whole = phases(make_workload("ycsb", {"recordcount": 100, "insertstart": 20}, "-p"))
    assert whole[0].operations == 80


def test_target_time_and_threads() -> None:
    given = {"target": "5000", "maxexecutiontime": 60, "threadcount": 4, "zeropadding": 12}
    load, _, run, _ = phases(make_workload("ycsb", given, "-p"))
    assert (run.rate_ops_s, run.duration_s, run.threads, load.threads) == (5000.0, 60.0, 4, 4)
    assert load.rate_ops_s is None
    unlimited = phases(make_workload("ycsb", {"limit.ops": "0"}, "-p"))[2]
    assert unlimited.rate_ops_s is None
    endless = make_workload("ycsb", {"operationcount": 0, "maxexecutiontime": 5}, "-p").phases[-1]
    assert (endless.operations, endless.duration_s) == (None, 5.0)


@pytest.mark.parametrize(
    ("properties", "told"),
    [
        ({"recordcuont": 1}, "recordcuont: unknown .*did you mean recordcount"),
        ({"recordcount": 0}, "recordcount: found 0"),
        ({"operationcount": 0}, "operationcount: found 0; allowed: more than 0, or maxexecution"),
        ({"requestdistribution": "zipf"}, "requestdistribution: found 'zipf'; allowed: uniform, "),
        ({"workload": "site.ycsb.workloads.RestWorkload"}, "workload: .*core workload"),
        ({"readproportion": 0, "updateproportion": 0}, "readproportion: is 0, and so are all"),
        ({"minscanlength": 9, "maxscanlength": 3, "scanproportion": 1}, "minscanlength: found 9"),
        ({"insertstart": 100_000}, "insertstart: found 100000; allowed: less than recordcount"),
        ({"insertcount": 100_001}, "insertcount: found 100001; allowed: at most"),
        ({"fieldlength": 200_000}, "fieldlength: makes records of up to 2000140 bytes"),
        (
            {"zipfian_const": 1},
            "zipfian_const: found 1; allowed: a number above 0, at most 10, that is not 1",
        ),
        # The driver refused it, run by run.
        ({"hotspotdatafraction": 0}, "hotspotdatafraction: found 0; allowed: a number above 0, at"),
        (
            {"recordcount": 9, "requestdistribution": "zipfian", "insertproportion": 1},
            "operationcount: scatters zipfian requests over 200009 records, .*allowed: as .* 9000,",
        ),
        ({"limit.file": "rates"}, "limit.file: has no effect in ycsb: a rate that changes"),
        (
            {"field_len_dist": "uniform", "fieldlengthdistribution": "zipfian"},
            "fieldlengthdistribution: says something else than field_len_dist",
        ),
    ],
)
def test_properties_that_cannot_be_meant(properties: dict[str, object], told: str) -> None:
    with pytest.raises(InputError, match=f"^-p: {told}"):
        make_workload("ycsb", properties, "-p")


def test_a_name_that_is_mistyped_is_told_the_nearest() -> None:
    with pytest.raises(InputError, match=r"found 'zipfain'.*did you mean zipfian\?$"):
        make_workload("ycsb", {"requestdistribution": "zipfain"}, "-p")


def test_what_has_no_effect_is_said_and_not_dropped_silently() -> None:
    text = "table=t\nreadallfields=false\nhotspotdatafraction=0.3\nlmdb.mapsize=1\nrecordcount=9\n"
    stated = state_workload("ycsb", {}, "-w", parse_properties(text, "a.txt"))
    assert [note.split(": has no effect")[0] for note in stated.notes] == [
        "a.txt:4: lmdb.mapsize",
        "a.txt:1: table",
        "a.txt:2: readallfields",
        "a.txt:3: hotspotdatafraction",
    ]
    assert stated.workload.num == 9


def test_an_error_is_told_at_the_line_of_its_property() -> None:
    properties = parse_properties("recordcount=10\n\noperationcount=many\n", "w.txt")
    with pytest.raises(InputError, match=r"^w\.txt:3: operationcount: found 'many'"):
        state_workload("ycsb", {}, "-w", properties)
    assert state_workload("ycsb", {"operationcount": 1}, "-w", properties).workload.num == 10
    with pytest.raises(InputError, match=r"^w\.txt:1: recordcount: .*has no effect in fillrandom"):
        state_workload("fillrandom", {}, "-w", properties)


def test_synchronised_writes_of_rocksdb_are_the_durability_of_the_workload() -> None:
    properties = {"rocksdb.sync": Property("true", "-p"), "rocksdb.cache_size": Property("1", "-p")}
    stated = state_workload("ycsb", {}, "-w", properties)
    assert stated.workload.durability is Durability.SYNC
    assert list(stated.engine) == ["rocksdb.cache_size"]
    assert "rocksdb.sync: read as durability: sync" in stated.notes[0]
    # -p could not change what a file says: -w, which nobody gave, was told to agree with it.
    later = {**properties, "durability": Property("wal", "-p")}
    for flags, each in (({"durability": "wal"}, properties), ({}, later)):
        assert state_workload("ycsb", flags, "-w", each).workload.durability is Durability.WAL
    earlier = {"durability": Property("none", "w", 1)} | properties
    assert state_workload("ycsb", {}, "-w", earlier).workload.durability is Durability.SYNC


def test_synchronised_writes_of_rocksdb_say_nothing_of_leveldb(tmp_path: Path) -> None:
    """Of a file for both engines, LevelDB's runs synced each write as well."""
    file = tmp_path / "both"
    file.write_text("recordcount=9\nrocksdb.sync=true\nleveldb.block_size=4096\n")
    for engine, durability in (("rocksdb", Durability.SYNC), ("leveldb", Durability.WAL)):
        for name in (None, "ycsb", str(file)):
            said: list[str] = []
            choice = choose_workload(name, None, [file], None, engine, said.append)
            assert choice.workload.durability is durability
            assert any("rocksdb.sync" in line for line in said)
        fields = {"name": "ycsb", "properties": "both"}
        for stated in (fields, {"file": "both"}):
            workload = workload_fields(stated, tmp_path, "study.yaml", engine).workload
            assert workload.durability is durability


@pytest.mark.skipif(not WORKLOAD_FILES, reason="the shared data is not here")
@pytest.mark.parametrize("path", WORKLOAD_FILES, ids=lambda path: f"{path.parts[-3]}-{path.name}")
def test_every_workload_file_of_the_shared_data_is_its_named_workload(path: Path) -> None:
    stated = state_workload("ycsb", {}, "-w", properties_of([path], {}))
    count = 2_000_000 if "dku-contest" in path.parts else 100_000
    named = make_workload(
        f"ycsb-{path.name[-1]}", {"recordcount": count, "operationcount": count}, "-w"
    )
    assert stated.workload.phases == named.phases
    assert [note.split(": ")[1] for note in stated.notes] == ["readallfields"]


@pytest.mark.skipif(not PROPERTY_FILES, reason="the shared data is not here")
@pytest.mark.parametrize("path", PROPERTY_FILES, ids=lambda path: path.name)
def test_every_properties_file_of_the_shared_data_is_accepted(path: Path) -> None:
    stated = state_workload("ycsb-a", {}, "-w", properties_of([path], {}))
    assert stated.engine
    assert stated.workload == make_workload("ycsb-a", {}, "-w")


@pytest.mark.parametrize(
    ("name", "given"),
    [
        *((f"ycsb-{letter}", {}) for letter in "abcdef"),
        ("ycsb", {"target": 100, "field_len_dist": "uniform", "insertorder": "ordered"}),
        ("ycsb", {"requestdistribution": "exponential", "exponential.frac": 0.5}),
    ],
)
def test_exported_properties_read_as_the_same_workload(name: str, given: dict[str, object]) -> None:
    stated = state_workload(name, given, "-w")
    text = properties_text(name, stated.parameters, "export")
    again = state_workload("ycsb", {}, "-w", parse_properties(text, "file"))
    assert again.workload.phases == stated.workload.phases
    assert again.parameters == stated.parameters


def test_what_ycsb_cannot_say_is_not_exported() -> None:
    with pytest.raises(InputError, match="is not one load and one run of YCSB; found 'contest'"):
        properties_text("contest", state_workload("contest", {}, "-w").parameters, "export")
    cold = state_workload("ycsb-a", {"page_cache": "cold"}, "-w")
    with pytest.raises(InputError, match="page_cache: found 'cold'; allowed: warm, without which"):
        properties_text("ycsb-a", cold.parameters, "export")
    aged = state_workload("ycsb-b", {"aging": 1}, "-w")
    with pytest.raises(InputError, match="aging: found 1; allowed: 0, without which"):
        properties_text("ycsb-b", aged.parameters, "export")
    for name in ("target", "maxexecutiontime"):  # YCSB does not read them, YCSB-cpp cuts them off
        split = state_workload("ycsb", {name: 1.5}, "-w")
        with pytest.raises(InputError, match=rf"export: {name}: found 1.5; allowed: a whole numb"):
            properties_text("ycsb", split.parameters, "export")
    writes = {"readproportion": 0, "updateproportion": 1, "aging": 1}
    assert [p.name for p in make_workload("ycsb", writes, "-w").phases][2:] == ["age", "run"]
    with pytest.raises(InputError, match="aging: has no effect in contest: its four phases"):
        make_workload("contest", {"aging": 1}, "-w")


@pytest.mark.parametrize("name", ["ycsb-b", "ycsb-d", "ycsb-e", "social-graph"])
def test_aging_overwrites_all_records_before_the_run(name: str) -> None:
    """A tree that was just loaded has one level: YCSB B came down to a half of its first rate."""
    sizes = {"num": 500} if name == "social-graph" else {"recordcount": 500, "insertstart": 100}
    fresh = make_workload(name, sizes, "-w")
    workload = make_workload(name, {**sizes, "aging": 2}, "-w")
    load, settle, age, warm, run = workload.phases
    assert (load, settle, run) == fresh.phases
    assert (age.kind, warm.kind) == (PhaseKind.WARMUP, PhaseKind.WARMUP)
    assert warm.mix is not None
    assert run.mix is not None
    assert warm.operations == load.operations
    assert warm.mix.names == run.mix.names & {"get", "scan"}
    assert warm.mix.keys == run.mix.keys
    assert load.mix is not None
    assert age.mix is not None
    assert age.operations == 2 * (load.operations or 0)
    assert (age.mix.records, age.mix.first) == (load.operations, load.mix.first)
    assert (age.mix.names, age.mix.value_sizes) == ({"put"}, load.mix.value_sizes)
    assert smaller(workload, 50).phases[2].operations == age.operations // 10
    assert longer_by(workload, 3.0).phases[:4] == workload.phases[:4]


def test_a_longer_run_is_that_of_as_many_operations() -> None:
    """Of YCSB E, keys were chosen among the records and twice the inserts of the shorter run."""
    for name in ("ycsb-d", "ycsb-e"):
        given = {"recordcount": 1000, "operationcount": 2000}
        longer = longer_by(make_workload(name, given, "-w"), 4.0)
        assert longer == make_workload(name, {**given, "operationcount": 8000}, "-w")


def test_the_contest_is_one_load_and_three_runs_on_one_database() -> None:
    workload = make_workload("contest", {"recordcount": 1000, "operationcount": 700}, "-w")
    assert [phase.name for phase in workload.phases] == ["load-a", "run-a", "run-b", "run-d"]
    assert {phase.kind for phase in workload.phases} == {PhaseKind.MEASURE}
    assert [phase.operations for phase in workload.phases] == [1000, 700, 700, 700]
    mixes = [phase.mix for phase in workload.phases if phase.mix is not None]
    assert [dict(mix.operations) for mix in mixes[1:]] == [
        {"get": 0.5, "update": 0.5},
        {"get": 0.95, "update": 0.05},
        {"get": 0.95, "insert": 0.05},
    ]
    whole = make_workload("contest", {}, "-w")
    assert {phase.operations for phase in whole.phases} == {2_000_000}
    for refused in ("readproportion", "limit.ops"):
        with pytest.raises(InputError, match=f"{refused}: has no effect in contest"):
            make_workload("contest", {refused: 1}, "-w")


def test_what_a_named_workload_says_itself_decides_what_has_an_effect() -> None:
    stated = state_workload("ycsb-a", {"zipfian_const": "0.7"}, "-w")
    assert stated.notes == ()
    assert stated.given == {"zipfian_const": "0.7"}
    assert dict(phases(stated.workload)[3].keys.parameters)["theta"] == 0.7
    (note,) = state_workload("ycsb-d", {"zipfian_const": "0.7"}, "-w").notes
    assert note.endswith("has no effect: requestdistribution is latest, not zipfian")


@pytest.mark.parametrize(
    ("properties", "why"),
    [
        ({"maxscanlength": 9}, "maxscanlength: has no effect: scanproportion is 0"),
        ({"scanlengthdistribution": "zipfian"}, "scanlengthdistribution: has no effect: scanpro"),
        ({"minfieldlength": 9}, "minfieldlength: has no effect: fieldlengthdistribution is con"),
        ({"fieldlengthhistogram": "x"}, "fieldlengthhistogram: has no effect: fieldlengthdis"),
        (
            {"readproportion": 0, "updateproportion": 0, "insertproportion": 1}
            | {"requestdistribution": "latest"},
            "requestdistribution: has no effect: inserts alone choose no record",
        ),
        ({"readproportion": 0.2}, "proportions add up to 0.25: each counts as its part of that"),
    ],
)
def test_properties_without_an_effect_beside_others(
    properties: dict[str, object], why: str
) -> None:
    (note,) = state_workload("ycsb", properties, "-w").notes
    assert note.startswith(f"-w: {why}")


def test_two_flags_do_not_silently_disagree() -> None:
    set_by_flag = properties_of([], {"recordcount": "10"})
    with pytest.raises(InputError, match=r"^-w: recordcount: says something else than -p, 10"):
        state_workload("ycsb", {"recordcount": "20"}, "-w", set_by_flag)
    assert state_workload("ycsb", {"recordcount": "10"}, "-w", set_by_flag).workload.num == 10
    in_file = parse_properties("recordcount=10", "w.txt")
    assert state_workload("ycsb", {"recordcount": "20"}, "-w", in_file).workload.num == 20


@pytest.mark.parametrize("name", ["target", "limit.ops"])
def test_a_flag_changes_a_property_of_an_exported_file_by_either_name(name: str) -> None:
    """The file has both names of a property, of which the flag changed one."""
    text = properties_text("ycsb", state_workload("ycsb", {"target": 100}, "-w").parameters, "x")
    assert {"target=100", "limit.ops=100"} <= set(text.split("\n"))
    in_file = parse_properties(text, "workloada")
    for parameters, settings in (({name: "200"}, {}), ({}, {name: "200"})):
        given = {**in_file, **properties_of([], settings)}
        stated = state_workload("ycsb", parameters, "-w", given)
        assert stated.workload.phases[-1].rate_ops_s == 200
    # Two names in one file, or in two flags, still have to agree.
    with pytest.raises(InputError, match=r"^w:2: limit\.ops: says something else than target"):
        state_workload("ycsb", {}, "-w", parse_properties("target=1\nlimit.ops=2", "w"))
    with pytest.raises(InputError, match="says something else than "):
        state_workload("ycsb", {"limit.ops": "3"}, "-w", properties_of([], {"target": "4"}))


def test_an_error_has_the_name_under_which_a_property_was_given() -> None:
    with pytest.raises(InputError, match=r"^w\.txt:1: limit\.ops: found 'abc'"):
        state_workload("ycsb", {}, "-w", parse_properties("limit.ops=abc", "w.txt"))


def test_a_value_that_another_line_replaces_is_said() -> None:
    text = "recordcount=10\nleveldb.cache_size=1\nrecordcount=20\nleveldb.cache_size=2\n"
    stated = state_workload("ycsb", {}, "-w", parse_properties(text, "w.txt"))
    assert stated.notes == (
        "w.txt:3: recordcount: replaces the value of line 1",
        "w.txt:4: leveldb.cache_size: replaces the value of line 2",
    )


# --- properties in files


def values(text: str) -> dict[str, str]:
    return {name: found.value for name, found in parse_properties(text, "file").items()}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a=1\nb = 2 \n\tc\t=\t3\t", {"a": "1", "b": "2", "c": "3"}),
        ("# a=1\n! b=2\n  # c=3\n\nd=4", {"d": "4"}),
        ("a=b=c", {"a": "b=c"}),
        ("a:1\nb 2\nc : 3", {"a": "1", "b": "2", "c": "3"}),
        ("a=1\na=2", {"a": "2"}),
        ("a=1\\\n   2\nb=3", {"a": "12", "b": "3"}),
        ("a=#1", {"a": "#1"}),
        ("a=", {"a": ""}),
        ("a\\=b=1\nc=\\u0041\\t", {"a=b": "1", "c": "A"}),
        ("a=1\r\nb=2\r\n", {"a": "1", "b": "2"}),
    ],
)
def test_lines(text: str, expected: dict[str, str]) -> None:
    assert values(text) == expected


def test_a_name_alone_is_an_error_with_its_line() -> None:
    with pytest.raises(
        InputError, match=r"^file:3: is no property; found 'fast'; allowed: name=value"
    ):
        parse_properties("a=1\n# no\nfast\n", "file")


def test_later_files_and_then_settings_win(tmp_path: Path) -> None:
    first, second = tmp_path / "a", tmp_path / "b"
    first.write_text("x=1\ny=1\nz=1\n")
    second.write_text("y=2\nz=2\n")
    found = properties_of([first, second], {"z": "3"})
    assert {name: p.value for name, p in found.items()} == {"x": "1", "y": "2", "z": "3"}
    assert (found["x"].where, found["z"].where) == (f"{first}:1", "-p")


def test_files_that_are_none(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no such file"):
        properties_of([tmp_path / "none"], {})
    (tmp_path / "png").write_bytes(b"\x89PNG")
    with pytest.raises(InputError, match="is not text: byte 0x89 at offset 0"):
        properties_of([tmp_path / "png"], {})


names = st.text("abcdefgh.", min_size=1, max_size=8)
words = st.text(st.characters(codec="ascii", categories=["L", "N"]), max_size=8)


@given(st.dictionaries(names, words, max_size=5))
def test_what_is_written_plainly_is_read_back(given_: dict[str, str]) -> None:
    assert values("\n".join(f"{name}={value}" for name, value in given_.items())) == given_


@given(st.text(max_size=60))
def test_any_text_is_read_or_refused_in_one_line(text: str) -> None:
    try:
        told = " ".join(parse_properties(text, "file"))
    except InputError as error:
        told = str(error)
    assert "\r\n" not in told
