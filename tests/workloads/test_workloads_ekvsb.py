"""Workloads of ekvsb: read and written as streams."""

from __future__ import annotations

import json
import tracemalloc
from collections import Counter
from dataclasses import replace
from itertools import islice, pairwise
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lsmtune.errors import InputError
from lsmtune.model.distribution import Distribution
from lsmtune.model.workload import Mix, Phase, PhaseKind, Workload
from lsmtune.stats.pareto import DistinctCounter
from lsmtune.workloads.ekvsb import (
    Task,
    imported_workload,
    lines_of,
    read_tasks,
    tasks_of,
    what_is_lost,
)
from lsmtune.workloads.file import parse_workload_file, workload_text
from lsmtune.workloads.stated import make_workload


def written(path: Path, tasks: list[object]) -> Path:
    path.write_text(json.dumps(tasks))
    return path


def put(key: str, size: int) -> object:
    return {"PUT": {"key": key, "value": {"size": size}}}


def test_tasks_of_every_kind(tmp_path: Path) -> None:
    path = written(
        tmp_path / "t.json", [put("a", 3), {"GET": {"key": "b"}}, {"DELETE": {"key": "c"}}]
    )
    assert list(read_tasks(path)) == [Task("put", "a", 3), Task("get", "b"), Task("delete", "c")]
    path.write_text("  [ ] \n")
    assert list(read_tasks(path)) == []


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("{}", "offset 0: found '{'; allowed: a JSON array"),
        ("", "offset 0: ends too early"),
        ('[{"GET":{"key":"a"}}', "offset 20: ends too early; allowed: a comma"),
        ('[{"GET":{"key":"a"}},', "offset 21: not JSON"),
        ('[{"GET":{"key":"a"}} {', "offset 21: found '{'; allowed: a comma"),
        ('[{"SCAN":{"key":"a"}}]', "offset 1: no method 'SCAN'; allowed: PUT, GET, DELETE"),
        ('[{"GET":{}}]', "offset 1: a task without a key"),
        ('[{"PUT":{"key":"a","value":{}}}]', "offset 1: a PUT without the size"),
        ("[3]", "offset 1: no task"),
        ('[{"GET":{"key":"a"}}] []', "offset 22: more than one array"),
    ],
)
def test_what_is_no_list_of_tasks_is_told_with_its_offset(
    tmp_path: Path, text: str, told: str
) -> None:
    path = tmp_path / "t.json"
    path.write_text(text)
    with pytest.raises(InputError) as caught:
        list(read_tasks(path))
    assert told in str(caught.value)


def test_tasks_before_the_damage_are_kept_and_chunks_do_not_matter(tmp_path: Path) -> None:
    path = tmp_path / "t.json"
    whole = json.dumps([put(f"key-{index}", index) for index in range(5000)])
    path.write_text(whole[:-20])
    tasks = read_tasks(path)
    got = [next(tasks).value_bytes for _ in range(4999)]
    assert got == list(range(4999))
    with pytest.raises(InputError, match=r"t\.json: offset"):
        next(tasks)


def most_memory(path: Path, records: int) -> tuple[int, int]:
    """Bytes at the most while tasks are written to `path`, and while these are read."""
    counts = {"recordcount": records, "operationcount": records}
    workload = make_workload("ycsb-a", counts, "-w")
    tracemalloc.start()
    try:
        with path.open("w") as file:
            file.writelines(lines_of(workload, 1, "test"))
        _, writing = tracemalloc.get_traced_memory()
        tracemalloc.reset_peak()
        imported_workload(path)
        _, reading = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    return writing, reading


def test_memory_does_not_grow_with_the_file(tmp_path: Path) -> None:
    """A limit of six times the size of one file held whatever was kept of it."""
    short, long = tmp_path / "short.json", tmp_path / "long.json"
    most_memory(short, 100)  # what is made once is there
    # Several chunks each.
    before, after = most_memory(short, 2_000), most_memory(long, 16_000)
    growth = long.stat().st_size - short.stat().st_size
    assert short.stat().st_size > 150_000
    assert growth > 1_000_000
    assert after[0] - before[0] < growth / 4
    assert after[1] - before[1] < growth / 4


def test_puts_at_the_beginning_are_inserts_and_the_rest_a_mix(tmp_path: Path) -> None:
    tasks = [put(f"key-{index:06}", 100) for index in range(400)]
    tasks += [{"GET": {"key": "key-000001"}}] * 75 + [put("key-000001", 50)] * 25
    workload, notes = imported_workload(written(tmp_path / "w.json", tasks))
    first, second = workload.phases
    assert first.mix is not None
    assert second.mix is not None
    assert (first.operations, first.mix.operations) == (400, (("insert", 1.0),))
    assert (second.operations, dict(second.mix.operations)) == (100, {"put": 25.0, "get": 75.0})
    assert second.mix.records == 400
    assert first.mix.value_sizes == Distribution.of("table", sizes=((50, 25), (100, 400)))
    assert (workload.key_bytes, workload.key_sizes) == (10, None)
    assert len(notes) == 1


def test_without_puts_the_database_is_loaded_first_which_is_said(tmp_path: Path) -> None:
    tasks: list[object] = [{"GET": {"key": f"{index % 50}"}} for index in range(200)]
    workload, notes = imported_workload(written(tmp_path / "w.json", tasks))
    assert [phase.name for phase in workload.phases] == ["load", "settle", "tasks"]
    assert workload.phases[0].operations == pytest.approx(50, abs=1)
    assert any("is loaded with" in note for note in notes)
    # Nothing was said of their size.
    assert workload.value_bytes == 100
    assert any(note.endswith("those loaded have 100 bytes") for note in notes)
    assert any("keys shorter than 8 bytes" in note for note in notes)
    with pytest.raises(InputError, match="has no tasks"):
        imported_workload(written(tmp_path / "none.json", []))


def read_again(workload: Workload) -> Workload:
    return parse_workload_file(workload_text(workload), Path("w.yaml"))


def test_the_database_has_the_records_that_were_put_and_not_the_keys_that_were_asked_for(
    tmp_path: Path,
) -> None:
    """`num` counted keys that nobody had put, so that the data were half as large again."""
    tasks = [put(f"key-{index:06}", 100) for index in range(400)]
    tasks += [{"GET": {"key": f"key-{index:06}"}} for index in range(600)]
    workload, _ = imported_workload(written(tmp_path / "w.json", tasks))
    assert workload.num == workload.phases[0].operations == 400


@pytest.mark.parametrize(
    ("file", "name"),
    [
        ("été (1).json", "t- -1-"),
        ("_.json", "tasks"),
        ("ok 1.json", "ok 1"),
        # Written bare, it was read as a number.
        ("1e5.json", "1e5"),
        ("5E3.2.json", "5E3.2"),
        ("1.json", "1"),
    ],
)
def test_a_workload_has_a_name_that_can_be_read_again(tmp_path: Path, file: str, name: str) -> None:
    workload, _ = imported_workload(written(tmp_path / file, [put("key-000001", 7)]))
    assert workload.name == name
    assert read_again(workload) == workload
    long, _ = imported_workload(written(tmp_path / f"{'a' * 200}.json", [put("key-000001", 7)]))
    assert read_again(long).name == "a" * 100


def test_empty_values_stay_empty(tmp_path: Path) -> None:
    """They had a byte, though the driver writes empty ones."""
    tasks = [put(f"key-{index:06}", 0) for index in range(9)]
    workload, notes = imported_workload(written(tmp_path / "w.json", tasks))
    (phase,) = workload.phases
    assert phase.mix is not None
    assert phase.mix.value_sizes == Distribution.of("constant", size=0)
    assert (len(notes), read_again(workload)) == (1, workload)


def test_values_of_a_mebibyte_stay_as_large_as_values_may_be(tmp_path: Path) -> None:
    """Where sizes are put together, the middle of the last group was above the largest value."""
    most = 2**20
    tasks = [put("key-000001", size) for size in range(most - 1200, most + 1, 2)]
    workload, notes = imported_workload(written(tmp_path / "w.json", tasks))
    assert any("were put together" in note for note in notes)
    assert read_again(workload) == workload


def drawn(workload: Workload, seed: int) -> list[Task]:
    return list(tasks_of(workload, seed, "test"))


def test_exported_tasks_are_those_of_the_workload(tmp_path: Path) -> None:
    workload = make_workload("ycsb-a", {"recordcount": 500, "operationcount": 4000}, "-w")
    tasks = drawn(workload, 1)
    assert tasks == drawn(workload, 1) != drawn(workload, 2)
    loaded = [task.key for task in tasks[:500]]
    assert len(set(loaded)) == 500
    # YCSB's key of record 0: FNV-1a of eight zero bytes.
    assert loaded[0] == "user12161962213042174405"
    counts = Counter(task.method for task in tasks[500:])
    # Half of 4000 are reads, half are a read and a write.
    assert counts["put"] == pytest.approx(2000, abs=150)
    assert counts["get"] == 4000
    assert {task.key for task in tasks[500:]} <= set(loaded)
    path = tmp_path / "w.json"
    path.write_text("".join(lines_of(workload, 1, "test")))
    assert list(read_tasks(path)) == tasks


@pytest.mark.parametrize("letter", "dl")
def test_newest_records_are_read_most(letter: str) -> None:
    keys = "latest" if letter == "d" else "exponential"
    given = {"recordcount": 1000, "operationcount": 3000, "insertorder": "ordered"}
    workload = make_workload(
        "ycsb", {**given, "requestdistribution": keys, "exponential.frac": 0.1}, "-w"
    )
    numbers = [int(task.key.removeprefix("user")) for task in drawn(workload, 3)[1000:]]
    newest = sum(number >= 900 for number in numbers) / len(numbers)
    # Of a Zipfian over 1000 ranks the first 100 have 0.70; of YCSB's exponential, 95 per cent.
    assert newest == pytest.approx(0.70 if keys == "latest" else 0.95, abs=0.04)


def test_inserts_do_not_widen_what_counts_as_new() -> None:
    """The newest 100 of 1,000 keys had been the newest 300 once there were 3,000."""
    given = {"recordcount": 1000, "operationcount": 4000, "insertorder": "ordered"}
    shares = {"readproportion": 0.5, "updateproportion": 0, "insertproportion": 0.5}
    keys = {"requestdistribution": "exponential", "exponential.frac": 0.1}
    count, ages = 0, []
    for task in drawn(make_workload("ycsb", {**given, **shares, **keys}, "-w"), 3):
        if task.method == "put":
            count += 1
        else:
            ages.append(count - int(task.key.removeprefix("user")))
    assert sum(age <= 100 for age in ages) / len(ages) == pytest.approx(0.95, abs=0.02)


@pytest.mark.parametrize(
    ("keys", "grows"),
    [("uniform", False), ("sequential", False), ("hotspot", False), ("latest", True)],
)
def test_inserted_keys_are_chosen_where_the_driver_chooses_them(keys: str, grows: bool) -> None:
    """Most distributions are over the keys of the beginning, as in YCSB; tasks had all of them."""
    given = {"recordcount": 100, "operationcount": 2000, "insertorder": "ordered"}
    shares = {"readproportion": 0.5, "updateproportion": 0, "insertproportion": 0.5}
    workload = make_workload("ycsb", {**given, **shares, "requestdistribution": keys}, "-w")
    asked = [int(t.key.removeprefix("user")) for t in drawn(workload, 3) if t.method == "get"]
    assert len(asked) == pytest.approx(1000, abs=100)
    assert any(number >= 100 for number in asked) is grows


def test_new_keys_are_read_also_where_their_numbers_do_not_follow_on() -> None:
    """Of a load of a part of the records, only the keys of that part were asked for."""
    given = {"recordcount": 1000, "insertcount": 100, "operationcount": 500}
    shares = {"readproportion": 0.5, "updateproportion": 0, "insertproportion": 0.5}
    latest = {"requestdistribution": "latest", "insertorder": "ordered"}
    tasks = drawn(make_workload("ycsb", {**given, **shares, **latest}, "-w"), 3)
    put: set[str] = set()
    for task in tasks:
        assert task.method == "put" or task.key in put
        put |= {task.key} if task.method == "put" else set()
    asked = [int(task.key.removeprefix("user")) for task in tasks if task.method == "get"]
    assert any(number >= 1000 for number in asked)


def test_the_oldest_keys_are_deleted_until_one_is_left() -> None:
    """Five more deletes were of keys that nobody had put."""
    mix = Mix((("delete_oldest", 1.0),), records=10, first=3)
    run = Phase("run", PhaseKind.MEASURE, mix=mix, operations=15)
    tasks = drawn(Workload("w", (run,), num=10), 1)
    assert [int(task.key) for task in tasks] == list(range(3, 12))


@given(seed=st.integers(0, 2**53), num=st.integers(1, 3000))
def test_unique_keys_come_up_once_each_and_in_no_equal_steps(seed: int, num: int) -> None:
    tasks = drawn(make_workload("put-get-delete", {"num": num, "value_bytes": 7}, "-w"), seed)
    phases = [tasks[at : at + num] for at in range(0, 3 * num, num)]
    assert [{task.method for task in phase} for phase in phases] == [{"put"}, {"get"}, {"delete"}]
    assert {task.value_bytes for task in phases[0]} == {7}
    for phase in phases:
        numbers = [int(task.key) for task in phase]
        assert sorted(numbers) == list(range(num))
        assert num < 100 or len({b - a for a, b in pairwise(numbers)}) > 2


@pytest.mark.parametrize(("operation", "threads"), [("fillseq", 1), ("fillseq", 4), ("readhot", 1)])
def test_loops_meet_the_keys_that_the_driver_meets(operation: str, threads: int) -> None:
    """Four threads of fillseq wrote four times as many keys, and readhot rounded down."""
    phase = Phase("p", PhaseKind.MEASURE, operation, operations_per_thread=150, threads=threads)
    numbers = [int(task.key) for task in drawn(Workload("w", (phase,), num=199 * 4), 1)]
    assert len(numbers) == 150 * threads
    # driver/src/random/keys.rs: each thread from the first key on; a hundredth, rounded up.
    assert set(numbers) == set(range(8 if operation == "readhot" else 150))


def test_what_an_export_loses_is_said() -> None:
    """That the key decides the operation, and that time may end a phase, was lost in silence."""
    mix = Mix((("get", 1.0), ("put", 1.0)), records=10)
    run = Phase("run", PhaseKind.MEASURE, mix=mix, operations=5)
    assert what_is_lost(Workload("w", (run,), num=10)) == ()
    by_key = replace(run, mix=replace(mix, operation_by_key=0.5))
    (line,) = what_is_lost(Workload("w", (by_key,), num=10))
    assert "no key decides it" in line
    (line,) = what_is_lost(Workload("w", (replace(run, duration_s=60.0),), num=10))
    assert "whatever its duration" in line


def test_what_ekvsb_has_no_task_for() -> None:
    with pytest.raises(InputError, match="ekvsb has no task for it; found 'seekrandom'"):
        list(lines_of(make_workload("seekrandom", {"num": 5}, "-w"), 1, "test"))
    with pytest.raises(InputError, match="ekvsb has no task for it; found 'scan'"):
        list(lines_of(make_workload("ycsb-e", {}, "-w"), 1, "test"))
    with pytest.raises(InputError, match="ends after a time"):
        list(lines_of(make_workload("fillrandom", {"duration_s": 5}, "-w"), 1, "test"))
    # The load had been written before it was said, as that of a fitted trace.
    mix = Mix((("get", 1.0),), keys=Distribution.of("power", a=0.1, b=0.5), records=9)
    load = Phase("load", PhaseKind.LOAD, "fillseq", operations_per_thread=9)
    run = Phase("run", PhaseKind.MEASURE, mix=mix, operations=5)
    with pytest.raises(InputError, match=r"^test: keys: is drawn by lsmtune's driver only; found"):
        next(lines_of(Workload("w", (load, run), num=9), 1, "test"))
    assert len(list(islice(lines_of(make_workload("contest", {}, "-w"), 1, "test"), 10))) == 10


@pytest.mark.parametrize("count", [0, 1, 50, 3000, 60_000])
def test_different_things_are_counted_to_two_per_cent(count: int) -> None:
    counter = DistinctCounter()
    for index in range(count):
        counter.add(f"key {index}".encode())
        counter.add(b"key 0")
    assert counter.count() == pytest.approx(count, rel=0.025, abs=1)
