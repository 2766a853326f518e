"""`lsmtune workload`, and -P and -p of the commands that measure."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from lsmtune.cli.flags import WorkloadFlags
from lsmtune.errors import InputError
from lsmtune.model.config import Config
from lsmtune.study.build import load_spec
from lsmtune.workloads.file import load_workload_file
from lsmtune.workloads.stated import WORKLOAD_NAMES, make_workload

WORKLOAD = "recordcount=100\noperationcount=50\nreadproportion=1\nupdateproportion=0\n"
ENGINE = "leveldb.dbname=x\nleveldb.block_size=8192\nleveldb.compression=none\n"
NIGHTS = """\
version: 1
name: nights
num: 1000
phases:
  - {name: load, kind: load, mix: {operations: {insert: 1}}, operations: 1000}
  - {name: night, kind: measure, operation: readrandom, duration_s: 10s}
"""


@pytest.fixture
def files(home: Path) -> Path:
    (home / "workloadc").write_text(WORKLOAD)
    (home / "engine.properties").write_text(ENGINE)
    (home / "nights.yaml").write_text(NIGHTS)
    return home


def test_list_has_every_name(lsmtune: Any) -> None:
    said = lsmtune("workload", "list", "--json")
    assert [row["name"] for row in said.json()["workloads"]] == list(WORKLOAD_NAMES)
    assert all(name in lsmtune("workload", "list").out for name in WORKLOAD_NAMES)


@pytest.mark.parametrize("name", WORKLOAD_NAMES)
def test_show_says_every_parameter_and_figure(lsmtune: Any, name: str) -> None:
    document = lsmtune("workload", "show", name, "--json").json()
    assert document["name"] == name
    assert document["workload"]["phases"]
    text = lsmtune("workload", "show", name).out
    assert all(parameter["name"] in text for parameter in document["parameters"])
    assert all(figure["value"] in text for figure in document["figures"])
    assert ("not published" in text) == any(f["source"] is None for f in document["figures"])


def test_show_of_files_and_of_nothing(lsmtune: Any, files: Path) -> None:
    assert "readrandom; 10s" in lsmtune("workload", "show", "nights.yaml").out
    said = lsmtune("workload", "show", "workloadc", "-w", "threadcount=3", "-p", "table=t")
    assert "100 % get, keys uniform of 100; 50 operations; 3 threads" in said.out
    assert "note: -p: table: has no effect" in said.err
    assert "did you mean ycsb-a?" in lsmtune("workload", "show", "ycbs-a").refusal
    said = lsmtune("workload", "show", "nights.yaml", "-w", "num=5")
    assert "num: has no effect on nights.yaml" in said.err
    assert files.is_dir()


def test_an_exported_file_replays_the_trace_of_the_one_that_it_was_made_of(
    lsmtune: Any, files: Path
) -> None:
    """The path was written as it is from here, and looked for from where the new file is."""
    phase = "  - {name: replay, kind: measure, replay: {path: monday.trace}}\n"
    for folder in ("old", "new/er"):
        (files / folder).mkdir(parents=True)
    (files / "old" / "w.yaml").write_text(NIGHTS + phase)
    for output in ("new/er/w.yaml", str(files / "new" / "w.yaml"), "here.yaml"):
        lsmtune("workload", "export", "old/w.yaml", "--output", output)
        replay = load_workload_file(Path(output)).phases[-1].replay
        assert replay is not None
        assert Path(replay.path).resolve() == files / "old" / "monday.trace"


def test_export_and_import_of_a_workload_file(lsmtune: Any, home: Path) -> None:
    assert lsmtune("workload", "export", "contest", "--output", "c.yaml").status == 0
    assert load_workload_file(home / "c.yaml") == make_workload("contest", {}, "-w")
    said = lsmtune("workload", "export", "contest", "--output", "c.yaml")
    assert "exists already; allowed: another --output, or --force" in said.err
    arguments = ("ycsb-b", "-w", "recordcount=70", "--format", "ycsb", "--output", "b")
    assert lsmtune("workload", "export", *arguments).status == 0
    said = lsmtune("workload", "import", "b", "--output", "b.yaml", "--json")
    assert (said.json()["format"], said.json()["output"]) == ("ycsb", "b.yaml")
    expected = make_workload("ycsb-b", {"recordcount": 70}, "-w")
    assert load_workload_file(home / "b.yaml").phases == expected.phases


@pytest.mark.parametrize("form", ["yaml", "ycsb", "ekvsb"])
def test_options_that_a_workload_does_not_keep_are_said(
    lsmtune: Any, files: Path, form: str
) -> None:
    """An export dropped them in silence; an import said so."""
    given = ("-P", "workloadc", "-P", "engine.properties")
    told = "note: engine.properties:2: leveldb.block_size: left out: with -P or -p it is an option"
    exported = lsmtune("workload", "export", "ycsb", *given, "--format", form, "--output", "w")
    assert told in exported.err
    assert (files / "w").is_file()
    assert told in lsmtune("workload", "import", "engine.properties", "--output", "i.yaml").err


def test_tasks_of_ekvsb_there_and_back(lsmtune: Any, home: Path) -> None:
    arguments = ("-w", "recordcount=50", "-w", "operationcount=80", "--format", "ekvsb")
    said = lsmtune("workload", "export", "ycsb-a", *arguments, "--seed", "3", "--output", "t.json")
    assert "note: an update is a GET and a PUT" in said.err
    assert len(json.loads((home / "t.json").read_text())) > 130
    said = lsmtune("workload", "import", "t.json", "--output", "t.yaml")
    assert "note: lost: the keys themselves" in said.err
    put, tasks = load_workload_file(home / "t.yaml").phases
    assert (put.operations, put.name, tasks.name) == (50, "put", "tasks")
    assert not list(home.glob(".*partial"))


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (("export", "ycsb-a", "--format", "yml"), "--format: found 'yml'; .*did you mean yaml"),
        (("export", "fillseq", "--format", "ycsb"), "is not one load and one run of YCSB"),
        (("export", "fillseq", "--json"), "--json: has no effect without --output"),
        (("import", "none.json"), "none.json: no such file"),
    ],
)
def test_what_cannot_be_done(lsmtune: Any, arguments: tuple[str, ...], told: str) -> None:
    said = lsmtune("workload", *arguments)
    assert said.status == 2
    with pytest.raises(AssertionError, match=told):
        raise AssertionError(said.err)


def test_properties_choose_the_workload_and_the_options(
    files: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    given = [files / "workloadc", files / "engine.properties"]
    choice = WorkloadFlags(None, given, ["operationcount=9"]).choice(None, "leveldb")
    assert choice.workload.name == "ycsb"
    assert [phase.operations for phase in choice.workload.phases] == [100, None, 9]
    assert dict(choice.options) == {"block_size": 8192, "compression": "none"}
    assert "options of leveldb from properties: block_size=8192" in capsys.readouterr().err
    config = choice.config(Config({"block_size": 1024}, "mine"), "leveldb", "-o")
    assert config.options == {"block_size": 1024, "compression": "none"}
    other = WorkloadFlags(["num=5"], [given[1]]).choice("fillrandom", "rocksdb")
    assert (other.workload.name, other.options) == ("fillrandom", {})
    assert "leveldb.block_size: left out: not a property of rocksdb" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("name", "files_", "settings", "told"),
    [
        (None, None, None, "--workload: missing; allowed: the name of a workload or a file"),
        (None, None, ["recordcuont=1"], r"recordcuont: unknown .*did you mean recordcount\?"),
        (None, None, ["recordcount"], "-p/--property: found 'recordcount'; allowed: name=value"),
        (None, ["none"], None, "none: no such file"),
        ("fillseq", None, ["recordcount=1"], "-p: recordcount: has no effect in fillseq"),
        (None, None, ["leveldb.block_size=many"], "-p: leveldb.block_size: found 'many'"),
        ("up2x", None, None, "--workload: up2x merges, which leveldb cannot"),
        ("zippydb", None, ["column_families=2"], "-p: column_families: has no effect in zippydb"),
    ],
)
def test_what_cannot_be_chosen(
    home: Path, name: str | None, files_: list[str] | None, settings: list[str] | None, told: str
) -> None:
    assert home.is_dir()
    paths = None if files_ is None else [Path(file) for file in files_]
    with pytest.raises(InputError, match=told):
        WorkloadFlags(None, paths, settings).choice(name, "leveldb")


def test_column_families_and_merges_are_of_rocksdb(home: Path) -> None:
    assert home.is_dir()
    with pytest.raises(InputError, match="leveldb has no column families"):
        WorkloadFlags(["column_families=2"]).choice("ycsb-a", "leveldb")
    choice = WorkloadFlags().choice("up2x", "rocksdb")
    assert choice.config(Config(), "rocksdb", "-o").options == {"merge_operator": "put"}
    written = Config({"merge_operator": "PutOperator"})  # as an OPTIONS file has it
    assert choice.config(written, "rocksdb", "-o") == written
    with pytest.raises(InputError, match="merge_operator: found 'uint64add'; allowed: put"):
        choice.config(Config({"merge_operator": "uint64add"}), "rocksdb", "-o")


def test_a_study_of_properties_and_of_a_workload_file(lsmtune: Any, files: Path) -> None:
    arguments = ("-P", "workloadc", "-P", "engine.properties", "--engine", "leveldb")
    assert lsmtune("init", *arguments, "--output", "s.yaml").status == 0
    spec = load_spec(files / "s.yaml")
    assert (
        spec.workload.phases
        == make_workload(
            "ycsb",
            {"recordcount": 100, "operationcount": 50, "readproportion": 1, "updateproportion": 0},
            "-w",
        ).phases
    )
    # The properties are what runs today; both are searched by this space.
    assert spec.baseline.options == {"block_size": 8192, "compression": "none"}
    assert "block_size: 8KiB" in (files / "s.yaml").read_text()
    (files / "inner").mkdir()
    said = lsmtune("init", "--workload", "nights.yaml", "--output", "inner/n.yaml")
    assert said.status == 0
    assert load_spec(files / "inner" / "n.yaml").workload.name == "nights"


def test_a_study_of_a_workload_with_the_longest_name_there_is(lsmtune: Any, files: Path) -> None:
    """With the engine before it the name of the study was too long, and init failed."""
    text = (files / "nights.yaml").read_text()
    (files / "long.yaml").write_text(text.replace("name: nights", f"name: {'n' * 100}"))
    assert lsmtune("init", "--workload", "long.yaml", "--output", "s.yaml").status == 0
    spec = load_spec(files / "s.yaml")
    assert spec.workload.name == "n" * 100
    assert spec.name == f"rocksdb-{'n' * 92}"


def test_bench_takes_properties(lsmtune: Any, files: Path, fake_driver: Path) -> None:
    assert fake_driver.is_file()
    arguments = ("-P", "workloadc", "-p", "leveldb.block_size=4096", "--json")
    said = lsmtune("bench", "--engine", "memory", *arguments)
    assert said.json()["measurements"][0]["workload"] == "ycsb"
    assert "leveldb.block_size: has no effect on memory" in said.err
    assert files.is_dir()


def test_a_trace_that_is_not_there_is_said_before_a_database_is_loaded(
    lsmtune: Any, home: Path
) -> None:
    (home / "again.yaml").write_text(
        "version: 1\nname: again\nnum: 9\nphases:\n"
        "  - {name: run, kind: measure, replay: {path: gone.trace}}\n"
    )
    refusal = lsmtune("bench", "--engine", "memory", "--workload", "again.yaml").refusal
    assert "phase run replays what is no file; found 'gone.trace'" in refusal
