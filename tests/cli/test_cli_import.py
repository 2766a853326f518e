"""`lsmtune import`: options or a study from other programs' files, and what was left out."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from lsmtune.study.build import load_spec

HERE = Path(__file__).parent
GOOD = HERE.parent / "engines" / "importers_good"
DATA = HERE.parents[2] / "shared" / "data"

SPACE = {
    "write_buffer_size": {"_type": "quniform", "_value": [1048576, 8388608, 1048576]},
    "block_size": {"_type": "choice", "_value": [4096, 8192]},
}
OPTIONS = """\
[Version]
rocksdb_version=10.2.1
[DBOptions]
max_background_jobs=4
[CFOptions "default"]
write_buffer_size=2097152
merge_operator=PutOperator
"""


@pytest.fixture
def space(home: Path) -> Path:
    path = home / "search_space.json"
    path.write_text(json.dumps(SPACE))
    return path


@pytest.fixture
def options(home: Path) -> Path:
    path = home / "OPTIONS-7"
    path.write_text(OPTIONS)
    return path


def collected(name: str) -> str:
    path = DATA / name
    if not path.is_file():
        pytest.skip(f"{path}: the collected test data is not there")
    return str(path)


def test_an_option_file_is_printed_as_options(lsmtune: Any, options: Path) -> None:
    said = lsmtune("import", str(options))
    assert said.status == 0
    assert said.out == "max_background_jobs: 4\nwrite_buffer_size: 2MiB\n"
    assert said.err == (
        f"lsmtune: note: {options}:7: merge_operator: left out: "
        "PutOperator is code of the program that wrote this\n"
    )


def test_json_has_the_notes_and_stderr_is_silent(lsmtune: Any, options: Path) -> None:
    said = lsmtune("import", str(options), "--json")
    assert said.err == ""
    assert said.json() == {
        "files": [{"file": str(options), "format": "rocksdb-options"}],
        "engine": "rocksdb",
        "version": "10.2.1",
        "options": {"max_background_jobs": 4, "write_buffer_size": 2 << 20},
        "notes": [
            f"{options}:7: merge_operator: left out: "
            "PutOperator is code of the program that wrote this"
        ],
    }


@pytest.mark.parametrize(
    ("flag", "value"),
    [
        ("--command", "./run.sh"),
        ("--workload", "ycsb-a"),
        ("-w", "num=5"),
        ("--budget", "5m"),
        ("--trials", "5"),
        ("--seed", "5"),
        ("--memory", "1GiB"),
    ],
)
def test_what_is_said_of_a_study_is_refused_where_none_is_made(
    lsmtune: Any, options: Path, flag: str, value: str
) -> None:
    """They were not looked at: who forgot --as got options, and no word."""
    refusal = lsmtune("import", str(options), flag, value).refusal
    assert flag in refusal
    assert "has no effect where an option file becomes options alone; allowed: --as" in refusal


def test_a_space_becomes_a_study_of_the_engine_that_has_its_names(
    lsmtune: Any, home: Path, space: Path
) -> None:
    said = lsmtune("import", str(space), "--output", "study.yaml")
    assert (said.status, said.out) == (0, "wrote study.yaml\nnext: lsmtune tune study.yaml\n")
    assert "engine: rocksdb, to which the options belong" in said.err
    assert "workload: no file says it: fillrandom" in said.err
    assert "budget: no file says it: 100 trials" in said.err
    assert "limits.memory: no file says it: 4GiB" in said.err
    spec = load_spec(home / "study.yaml")
    assert spec.engine_name == "rocksdb"
    assert {p.name for p in spec.space.parameters} == {
        "write_buffer_size",
        "block_based_table_factory.block_size",
    }
    assert spec.budget.trials == 100


def test_flags_say_what_the_files_do_not(lsmtune: Any, home: Path, space: Path) -> None:
    flags = ["--workload", "overwrite", "-w", "num=5000", "--budget", "9m", "--trials", "7"]
    flags += ["--memory", "1GiB"]
    said = lsmtune("import", str(space), *flags, "--seed", "3", "--output", "s.yaml", "--json")
    assert said.json()["output"] == "s.yaml"
    stated = ("workload", "budget", "limits")
    assert not any(n.startswith(stated) for n in said.json()["notes"])
    spec = load_spec(home / "s.yaml")
    assert spec.limits.memory_bytes == 1 << 30
    assert (spec.budget.time_s, spec.budget.trials, spec.seed) == (540.0, 7, 3)
    assert spec.workloads[0].workload.name == "overwrite"


@pytest.mark.parametrize("role", ["baseline", "study"])
def test_an_option_file_as_baseline(lsmtune: Any, home: Path, options: Path, role: str) -> None:
    said = lsmtune("import", str(options), "--as", role, "--output", "s.yaml")
    assert said.status == 0, said.err
    assert "the ready space rocksdb-basic" in said.err
    spec = load_spec(home / "s.yaml")
    assert spec.baseline.options == {"max_background_jobs": 4, "write_buffer_size": 2 << 20}


def test_an_option_file_as_fixed_base_leaves_to_the_space_what_it_searches(
    lsmtune: Any, home: Path, options: Path, space: Path
) -> None:
    said = lsmtune("import", str(space), str(options), "--as", "options", "--output", "s.yaml")
    assert said.status == 0, said.err
    assert "write_buffer_size: searched, so under baseline" in said.err
    spec = load_spec(home / "s.yaml")
    assert spec.fixed == {"max_background_jobs": 4}
    assert spec.baseline.options == {"write_buffer_size": 2 << 20}


def test_option_files_as_starts(lsmtune: Any, home: Path, options: Path, space: Path) -> None:
    other = home / "OPTIONS-8"
    other.write_text(OPTIONS.replace("2097152", "4194304"))
    files = [str(space), str(options), str(other)]
    said = lsmtune("import", *files, "--as", "start", "--output", "s.yaml")
    assert "max_background_jobs: left out: the space does not search it" in said.err
    spec = load_spec(home / "s.yaml")
    assert [dict(start.options) for start in spec.start] == [
        {"write_buffer_size": 2 << 20},
        {"write_buffer_size": 4 << 20},
    ]


def test_what_is_left_out_of_a_start_is_said_in_the_order_of_its_file(
    lsmtune: Any, home: Path, space: Path
) -> None:
    """Each time it was another order, that of a set."""
    left = {
        "level0_file_num_compaction_trigger": 6,
        "level0_slowdown_writes_trigger": 30,
        "level0_stop_writes_trigger": 50,
        "max_bytes_for_level_base": 512 << 20,
        "max_write_buffer_number": 4,
        "target_file_size_base": 32 << 20,
    }
    lines = [f"{name}={value}" for name, value in left.items()]
    (home / "OPTIONS-9").write_text("\n".join([OPTIONS.rstrip("\n"), *lines, ""]))
    said = lsmtune("import", str(space), "OPTIONS-9", "--as", "start", "--output", "s.yaml")
    assert said.status == 0, said.err
    notes = [line for line in said.err.splitlines() if "the space does not search it" in line]
    names = [line.split(": ")[3] for line in notes]
    assert [name for name in names if name in left] == list(left)


def test_a_program_of_ones_own(lsmtune: Any, home: Path) -> None:
    file = home / "tunables.json"
    parameter = {"type": "int", "range": [0, 9], "default": 3}
    file.write_text(json.dumps({"g": {"cost": 0, "params": {"retries": parameter}}}))
    said = lsmtune("import", str(file), "--command", "./run.sh --fast", "--output", "s.yaml")
    assert said.status == 0, said.err
    data = yaml.safe_load((home / "s.yaml").read_text())
    assert data["runner"] == {"command": ["./run.sh", "--fast"]}
    assert data["objective"] == {"metric": "value", "direction": "maximize"}
    assert load_spec(home / "s.yaml").baseline.options == {"retries": 3}


def test_a_program_without_a_baseline_gets_a_point_of_its_space(lsmtune: Any, home: Path) -> None:
    space = {
        "a": {"_type": "quniform", "_value": [0, 10, 1]},
        "b": {"_type": "loguniform", "_value": [1, 100]},
        "c": {"_type": "normal", "_value": [5, 1]},
        "d": {
            "_type": "choice",
            "_value": [{"_name": "x", "e": {"_type": "randint", "_value": [3, 6]}}, {"_name": "y"}],
        },
    }
    (home / "s.json").write_text(json.dumps(space))
    said = lsmtune("import", "s.json", "--command", "./run", "--output", "s.yaml")
    assert "baseline: no file says it: the middle of each range" in said.err
    found = load_spec(home / "s.yaml").baseline.options
    assert found["b"] == pytest.approx(10)
    assert found["c"] == pytest.approx(5)
    assert {n: found[n] for n in ("a", "d", "d_x_e")} == {"a": 5, "d": "x", "d_x_e": 4}


def test_a_default_between_bins_goes_to_the_nearest(lsmtune: Any, home: Path) -> None:
    parameter = {"type": "float", "range": [0, 10], "default": 4.9, "quantization_bins": 3}
    group = {"cost": 0, "params": {"a": parameter}}
    (home / "s.json").write_text(json.dumps({"g": group}))
    said = lsmtune("import", "s.json", "--command", "./run", "--output", "s.yaml")
    assert "baseline: a: 5.0 in place of 4.9, which is not in the space" in said.err
    assert load_spec(home / "s.yaml").baseline.options == {"a": 5.0}


def test_an_unsafe_option_is_allowed_aloud(lsmtune: Any, home: Path, options: Path) -> None:
    options.write_text(f"{OPTIONS}compaction_style=kCompactionStyleFIFO\n")
    said = lsmtune("import", str(options), "--as", "baseline", "--output", "s.yaml")
    assert "allow_unsafe: compaction_style is allowed, as the file has it: FIFO deletes" in said.err
    assert list(load_spec(home / "s.yaml").unsafe_options) == ["compaction_style"]


def test_a_range_that_ends_at_an_unsafe_number_is_allowed_aloud(lsmtune: Any, home: Path) -> None:
    """It was refused as a study that does not load, with nothing written that could be mended."""
    spec = {"_type": "randint", "_value": [20, 4097]}
    (home / "s.json").write_text(json.dumps(SPACE | {"level0_stop_writes_trigger": spec}))
    said = lsmtune("import", "s.json", "--engine", "rocksdb", "--output", "s.yaml")
    assert said.status == 0, said.err
    assert "allow_unsafe: level0_stop_writes_trigger is allowed, as the file has it" in said.err
    assert list(load_spec(home / "s.yaml").unsafe_options) == ["level0_stop_writes_trigger"]


BAD = [
    ([], "missing argument"),
    (["SPACE", "--format", "nni-spac"], "did you mean nni-space"),
    (["SPACE", "--engine", "rockdb"], "did you mean rocksdb"),
    (["SPACE", "--engine", "leveldb", "--workload", "fillrndom"], "did you mean fillrandom"),
    (["SPACE", "--as", "baselin"], "did you mean baseline"),
    (["SPACE", "--as", "start"], "none of the files is an option file"),
    (["SPACE", "OTHER"], "a second space"),
    (["OPTIONS", "OPTIONS"], "a second option file"),
    (["OPTIONS", "OPTIONS", "--as", "baseline"], "a second baseline"),
    (["OPTIONS", "--as", "baseline", "--command", "x"], "in the place of an engine"),
    (["SPACE", "--command", ""], "--command"),
    (["SPACE", "--command", "'open"], "no closing quotation"),
    (["SPACE", "--budget", "soon"], "--budget: found 'soon'"),
    (["SPACE", "--memory", "much"], "--memory: found 'much'"),
    (["SPACE", "--command", "x", "--workload", "overwrite"], "the workload is the program's"),
    (["SPACE", "--command", "x", "-w", "num=9"], "-w/--workload-set: the workload is the prog"),
    (["SPACE", "-w", "nmu=5"], "did you mean num"),
    (["none.json"], "none.json: no such file"),
    (["OPTIONS", "--engine", "leveldb"], "an OPTIONS file is RocksDB's"),
]


@pytest.mark.parametrize(("arguments", "message"), BAD, ids=[" ".join(a) for a, _ in BAD])
def test_bad_input_is_one_line_and_exit_2(
    lsmtune: Any, home: Path, space: Path, options: Path, arguments: list[str], message: str
) -> None:
    other = home / "other.json"
    other.write_text(json.dumps({"block_size": SPACE["block_size"]}))
    names = {"SPACE": str(space), "OPTIONS": str(options), "OTHER": str(other)}
    refusal = lsmtune(
        "import", *(names.get(a, a) for a in arguments), "--output", "new.yaml"
    ).refusal
    assert message in refusal
    assert not (home / "new.yaml").exists()


def test_a_space_beside_the_file_that_names_it_is_the_same_space(
    lsmtune: Any, home: Path, space: Path
) -> None:
    """Both files of NNI's example were given, and refused as two spaces."""
    config = home / "config.yml"
    config.write_text(
        "experimentName: both\nmaxTrialNum: 7\nsearchSpacePath: search_space.json\n"
        "tuner: {builtinTunerName: TPE, classArgs: {optimize_mode: maximize}}\n"
        "trial: {command: python3 main.py, codeDir: .}\n"
    )
    for files in ([space, config], [config, space]):
        said = lsmtune(
            "import", *map(str, files), "--engine", "leveldb", "--output", "s.yaml", "--force"
        )
        assert said.status == 0, said.err
        assert (load_spec(home / "s.yaml").name, load_spec(home / "s.yaml").budget.trials) == (
            "both",
            7,
        )


# As NNI's example for RocksDB calls db_bench.
WRAPPER = """\
import subprocess, nni
def generate_params(received_params):
    params = {"benchmarks": "BENCHMARK", "threads": 1, "key_size": 20, "num": 13107200,
              "db": "/tmp/rockdb", "disable_wal": 1, "write_buffer_size": 67108864,
              "max_write_buffer_number": 16, "use_direct_io_for_flush": 1}
    return params | {k: int(v) for k, v in received_params.items()}
args = [f"--{k}={v}" for k, v in generate_params(nni.get_next_parameter()).items()]
nni.report_final_result(rate(subprocess.run(["db_bench", *args], stdout=subprocess.PIPE)))
"""


@pytest.fixture
def experiment(home: Path, space: Path) -> Path:
    """An experiment of NNI, whose program is not there yet."""
    (home / "search_space.json").write_text(space.read_text())
    config = home / "config_tpe.yml"
    config.write_text(
        "maxTrialNum: 7\nsearchSpacePath: search_space.json\ntuner: {builtinTunerName: TPE}\n"
        "trial: {command: python3 main.py, codeDir: .}\n"
    )
    return config


def test_nnis_wrapper_of_db_bench_becomes_the_workload_that_it_asks_for(
    lsmtune: Any, home: Path, experiment: Path
) -> None:
    (home / "main.py").write_text(WRAPPER.replace("BENCHMARK", "overwrite"))
    said = lsmtune("import", str(experiment), "-w", "num=5000", "--output", "s.yaml")
    assert said.status == 0, said.err
    study = yaml.safe_load((home / "s.yaml").read_text())
    assert "runner" not in study
    assert study["engine"] == {"name": "rocksdb"}
    assert study["workload"] == {
        "name": "overwrite",
        "num": 5000,
        "threads": 1,
        "key_bytes": 20,
        "durability": "none",
    }
    assert study["options"] == {"max_write_buffer_number": 16}
    assert study["baseline"] == {"write_buffer_size": "64MiB"}
    assert f"{home}/main.py: --use_direct_io_for_flush: left out" in said.err


def test_what_db_bench_takes_and_does_not_use_is_left_out(
    lsmtune: Any, home: Path, experiment: Path
) -> None:
    """One dictionary serves several benchmarks: reads beside fillrandom refused the whole file."""
    program = WRAPPER.replace('"BENCHMARK"', '"fillrandom", "reads": 1000')
    (home / "main.py").write_text(program)
    said = lsmtune("import", str(experiment), "--output", "s.yaml")
    assert said.status == 0, said.err
    assert "reads" not in yaml.safe_load((home / "s.yaml").read_text())["workload"]
    assert "workload: reads: left out: it does not read" in said.err


def test_a_benchmark_without_a_workload_of_its_name_is_said(
    lsmtune: Any, home: Path, experiment: Path
) -> None:
    (home / "main.py").write_text(WRAPPER.replace("BENCHMARK", "fillseq,compact"))
    said = lsmtune("import", str(experiment), "--output", "s.yaml")
    assert "workload: fillseq,compact is none here: fillrandom, see --workload" in said.err
    assert load_spec(home / "s.yaml").workloads[0].workload.name == "fillrandom"


def test_nnis_program_is_kept_where_it_is_no_wrapper_or_is_asked_for(
    lsmtune: Any, home: Path, experiment: Path
) -> None:
    (home / "main.py").write_text(WRAPPER)
    kept = {"command": ["python3", "main.py"]}
    said = lsmtune("import", str(experiment), "--command", "python3 main.py")
    assert yaml.safe_load(said.out)["runner"] == kept
    (home / "main.py").write_text("import nni\nnni.report_final_result(measure())\n")
    assert yaml.safe_load(lsmtune("import", str(experiment)).out)["runner"] == kept


@pytest.mark.parametrize(
    ("stem", "name"),
    [("ü_space", "space"), ("(-1) x", "1 x"), ("_räume-2", "rume-2"), ("日本", "imported")],
)
def test_a_study_has_the_letters_of_its_file_for_a_name(
    lsmtune: Any, home: Path, stem: str, name: str
) -> None:
    """What was left of `ü_space` began with `_`: no study that loads, and nothing was written."""
    (home / f"{stem}.json").write_text(json.dumps(SPACE))
    said = lsmtune("import", f"{stem}.json", "--engine", "rocksdb", "--output", "s.yaml")
    assert said.status == 0, said.err
    assert load_spec(home / "s.yaml").name == name


def test_names_of_no_engine_need_a_command(lsmtune: Any, home: Path) -> None:
    file = home / "s.json"
    file.write_text(json.dumps({"learning_rate": {"_type": "uniform", "_value": [0, 1]}}))
    refusal = lsmtune("import", str(file)).refusal
    assert "learning_rate do not tell it; allowed: rocksdb, leveldb; or --command" in refusal


def test_a_file_that_exists_is_replaced_by_force_only(
    lsmtune: Any, home: Path, space: Path
) -> None:
    (home / "s.yaml").write_text("mine")
    assert "exists already" in lsmtune("import", str(space), "--output", "s.yaml").refusal
    assert (home / "s.yaml").read_text() == "mine"
    assert lsmtune("import", str(space), "--output", "s.yaml", "--force").status == 0


def test_what_is_written_loads_or_is_refused_here(lsmtune: Any, home: Path) -> None:
    file = home / "s.json"
    wide = {"_type": "uniform", "_value": [0, 1e300]}
    file.write_text(json.dumps({"max_bytes_for_level_multiplier": wide}))
    said = lsmtune("import", str(file))
    # Numbers beyond 2^53 are refused by the importer itself.
    assert said.status == 2
    assert said.err.count("\n") == 1


@pytest.mark.parametrize(
    "arguments",
    [
        ["nni-space.json", "--engine", "rocksdb"],
        ["nni-space.json", "--command", "./run"],
        ["mlos.jsonc"],
        ["nni-config.yml"],
        ["nni-config-v2.yml"],
        ["rocksdb-options.ini", "--as", "baseline"],
        ["rocksdb-options-102.ini", "--as", "options"],
        ["rocksdb-log-78.LOG", "--as", "baseline"],
        ["properties.properties", "--engine", "rocksdb", "--as", "start"],
        ["db_bench.flags", "--engine", "rocksdb", "--as", "baseline"],
    ],
    ids=" ".join,
)
def test_every_format_makes_a_study_that_loads(
    lsmtune: Any, home: Path, arguments: list[str]
) -> None:
    said = lsmtune("import", str(GOOD / arguments[0]), *arguments[1:], "--output", "s.yaml")
    assert said.status == 0, said.err
    load_spec(home / "s.yaml")


@pytest.mark.parametrize(
    "arguments",
    [
        ["nni-rocksdb/search_space.json"],
        ["nni-rocksdb/config_tpe.yml"],
        ["nni-rocksdb/config_smac.yml", "--engine", "rocksdb"],
        ["mlos/dummy-tunables.jsonc", "--command", "./run"],
        ["mlos/linux-runtime-tunables.jsonc", "--command", "./run"],
        ["mlos/full-tunable-params-test.jsonc", "--command", "./run"],
        ["rocksdb/option_file_example.ini", "--as", "baseline"],
        ["rocksdb/OPTIONS-000005", "--as", "start"],
        ["peer-output/OPTIONS-000007", "--as", "options"],
        ["ycsb-cpp/rocksdb.properties", "--as", "baseline"],
        ["dku-contest/properties/leveldb4.properties", "--as", "start"],
    ],
    ids=" ".join,
)
def test_the_collected_files_make_studies_that_load(
    lsmtune: Any, home: Path, arguments: list[str]
) -> None:
    said = lsmtune("import", collected(arguments[0]), *arguments[1:], "--output", "s.yaml")
    assert said.status == 0, said.err
    load_spec(home / "s.yaml")
