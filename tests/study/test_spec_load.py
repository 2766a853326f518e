from __future__ import annotations

from pathlib import Path

import jsonschema
import pytest
import yaml

from lsmtune.errors import InputError
from lsmtune.experiment.folder import StudyFolder
from lsmtune.model.config import Config, OptionValue
from lsmtune.model.files import json_schema, parse_document
from lsmtune.model.goal import Direction, Objective
from lsmtune.model.request import DatabaseSpec, PairMethod
from lsmtune.model.workload import Durability, Replay
from lsmtune.study.build import load_spec, parse_spec, parse_stored_spec, stored_spec
from lsmtune.study.models import StudyModel
from lsmtune.study.spec import Budget, DataRungs, NoiseSpec, PrunerSpec, Spec, TimeRungs
from lsmtune.study.start import open_study

HERE = Path(__file__).parent
ROOT = HERE.parent.parent
GOOD = sorted((HERE / "good").glob("*.yaml")) + sorted((ROOT / "examples").glob("*/study.yaml"))
MINIMAL = (HERE / "good" / "minimal.yaml").read_text(encoding="utf-8")


def minimal(**replaced: str) -> Spec:
    text = MINIMAL
    for old, new in replaced.items():
        lines = [line if not line.startswith(f"{old}:") else new for line in text.splitlines()]
        text = "\n".join(lines if lines != text.splitlines() else [*lines, new])
    return parse_spec(text, Path("study.yaml"))


def test_the_defaults_of_a_minimal_study() -> None:
    spec = load_spec(HERE / "good" / "minimal.yaml")
    assert (spec.name, spec.engine_name, spec.engine_library) == ("minimal", "rocksdb", None)
    assert spec.text == MINIMAL
    assert spec.objective == Objective("sustained_throughput_ops_s", Direction.MAXIMIZE, None)
    assert spec.baseline == Config()
    assert (spec.fixed, spec.unsafe_options, spec.seed) == ({}, {}, 0)
    assert spec.sampler.name == "auto"
    settings = {"ratio": 0.5, "warmup": 0.25}
    assert spec.pruner == PrunerSpec("far-behind", settings, TimeRungs(1.0, "fillrandom"))
    assert (spec.constraints, spec.start, spec.command) == ((), (), None)
    assert (spec.budget.time_s, spec.budget.trials) == (None, 10)
    assert (spec.proof.pairs, spec.proof.confidence) == (30, 0.95)
    assert (spec.proof.smallest_effect, spec.proof.method) == (None, None)
    assert spec.noise == NoiseSpec(calibration_pairs=3, anchor_every=10, repeats_max=3)
    assert spec.databases == DatabaseSpec(reuse=True, size_bytes=20 * 2**30)
    assert spec.limits.deadline_s == 600
    assert (spec.limits.memory_bytes, spec.limits.disk_bytes) == (4 * 2**30, 20 * 2**30)
    assert spec.space["write_buffer_size"].unit == "bytes"


def test_every_field_is_read() -> None:
    spec = load_spec(HERE / "good" / "full.yaml")
    assert spec.engine_library == HERE / "good" / ".." / "lib" / "librocksdb.so"
    assert (spec.workload.num, spec.workload.value_bytes) == (1_000_000, 4096)
    assert spec.workload.durability is Durability.NONE
    assert [phase.kind.value for phase in spec.workload.phases] == [
        "load",
        "settle",
        "warmup",
        "measure",
    ]
    assert spec.workloads[0].parameters["reads"] == 5000
    assert spec.objective == Objective("latency_us_p99", Direction.MINIMIZE, "seekrandom")
    baseline: dict[str, OptionValue] = {
        "compression": "kLZ4Compression",
        "write_buffer_size": 32 * 2**20,
    }
    assert spec.baseline == Config(baseline, "baseline")
    # The engine's own suffix stays text; ours became bytes.
    assert spec.fixed["block_based_table_factory.block_cache"] == "8M"
    assert set(spec.unsafe_options) == {"disable_auto_compactions"}
    assert spec.space["compression"].choices == ("no", "kLZ4Compression", "kZSTD")
    assert spec.space["memtable_whole_key_filtering"].choices == (True, False)
    assert [s.value for s in spec.space["compression_opts.level"].specials] == [32767, -1]
    assert (spec.budget.time_s, spec.limits.memory_bytes) == (5400, 3 * 2**29)
    assert (spec.limits.deadline_s, spec.limits.disk_bytes) == (90, 10**10)
    assert spec.sampler.settings["startup_trials"] == 5
    assert (spec.proof.pairs, spec.seed) == (12, 42)
    assert (spec.proof.smallest_effect, spec.proof.method) == (0.03, PairMethod.SLICES)
    assert spec.noise == NoiseSpec(calibration_pairs=2, anchor_every=0, repeats_max=5)
    assert spec.databases == DatabaseSpec(reuse=False, size_bytes=4 * 2**30)


@pytest.mark.parametrize(
    "replaced",
    [
        {"engine": "engine: {name: leveldb}"},
        {"workload": "workload: {name: fillseq}"},
        {"workload": "workload: {name: fillrandom, num: 10}"},
        {"objective": "objective: {metric: latency_us_p99}"},
        {"baseline": "baseline: {max_open_files: 5}"},
        {"options": "options: {max_open_files: 5}"},
        {"limits": "limits: {deadline: 5s}"},
        {"pruner": "pruner: {name: median, rungs: {num: [1000, 1000000]}}"},
    ],
)
def test_the_comparable_parts_hold_what_changes_a_measurement(replaced: dict[str, str]) -> None:
    assert minimal(**replaced).comparable_parts() != minimal().comparable_parts()


@pytest.mark.parametrize(
    "replaced",
    [
        {"name": "name: another"},
        {"budget": "budget: {time: 5m}"},
        {"proof": "proof: {pairs: 9}"},
        {"noise": "noise: {anchors: 5}"},
        {"sampler": "sampler: {name: random}"},
        {"pruner": "pruner: {name: median}"},
        {"seed": "seed: 9"},
        {"baseline": "baseline: default"},
        {"workload": "workload: {name: fillrandom, num: 1000000}"},
        {"# comment": "# a comment"},
    ],
)
def test_the_comparable_parts_hold_nothing_else(replaced: dict[str, str]) -> None:
    assert minimal(**replaced).comparable_parts() == minimal().comparable_parts()


def test_a_library_and_a_trace_are_compared_by_their_bytes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A study that was moved was refused; one of which the trace was replaced went on."""
    text = MINIMAL.replace("{name: fillrandom}", "{file: w.yaml}")
    text = text.replace("{name: rocksdb}", "{name: rocksdb, library: lib.so}")
    for place in (tmp_path / "here", tmp_path / "there"):
        place.mkdir()
        (place / "lib.so").write_text("an engine")
        (place / "monday").write_text("a trace")
        (place / "w.yaml").write_text(
            "version: 1\nname: w\nnum: 10\nphases:\n"
            "  - {name: load, kind: load, operation: fillseq, operations_per_thread: 10}\n"
            "  - {name: trace, kind: measure, replay: {path: monday}}\n"
        )
    here = parse_spec(text, tmp_path / "here" / "study.yaml").comparable_parts()
    monkeypatch.chdir(tmp_path / "there")
    there = parse_spec(text, Path("study.yaml"))
    assert there.workload.phases[1].replay == Replay(str(tmp_path / "there" / "monday"))
    assert there.comparable_parts() == here
    for name, part in (("lib.so", "engine"), ("monday", "workload")):
        Path(name).write_text(f"another {name}, and longer")
        assert parse_spec(text, Path("study.yaml")).comparable_parts()[part] != here[part]


def test_a_study_that_was_moved_is_read_with_the_files_beside_it(tmp_path: Path) -> None:
    """They were looked for where it was tuned, so that its report ended at their names."""
    home, moved = tmp_path / "here", tmp_path / "there"
    home.mkdir()
    (home / "study.yaml").write_text(MINIMAL.replace("{name: fillrandom}", "{file: w.yaml}"))
    phase = "{name: fill, kind: measure, operation: fillrandom, operations_per_thread: 10}"
    (home / "w.yaml").write_text(f"version: 1\nname: w\nnum: 10\nphases:\n  - {phase}\n")
    spec = load_spec(home / "study.yaml")
    with open_study(home / "study.lsmtune", spec) as folder:
        folder.note_origin(spec.path)
    home.rename(moved)
    with StudyFolder.open(moved / "study.lsmtune") as folder:
        read = stored_spec(folder)
    assert (read.path, read.workload) == (moved / "study.yaml", spec.workload)


def test_the_comparable_parts_hold_whether_runs_start_from_copies() -> None:
    """Trials on copies of one tree were judged by a baseline that had loaded its own."""
    own, sized = "databases: {reuse: false}", "databases: {size: 1GiB}"
    parts = minimal().comparable_parts()
    assert minimal(databases=own).comparable_parts() != parts
    assert minimal(databases=sized).comparable_parts() == parts


def test_the_comparable_parts_hold_the_space() -> None:
    narrower = parse_spec(MINIMAL.replace("high: 64MiB", "high: 32MiB"), Path("study.yaml"))
    spelled = parse_spec(MINIMAL.replace("high: 64MiB", "high: 67108864"), Path("study.yaml"))
    assert narrower.comparable_parts() != minimal().comparable_parts()
    assert spelled.comparable_parts() == minimal().comparable_parts()


def test_a_study_of_forest_can_be_read_where_scikit_learn_is_absent(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Reports of older studies of `forest` ended with status 2 once it was an extra."""
    text = f"{MINIMAL}sampler: {{name: forest}}\n"
    monkeypatch.setattr("lsmtune.errors.find_spec", lambda _name: None)
    assert parse_stored_spec(text, Path("study.yaml")).sampler.name == "forest"
    with pytest.raises(InputError, match=r"study.yaml:\d+: sampler.name: needs the package"):
        parse_spec(text, Path("study.yaml"))


def test_what_is_asked_of_the_budget_is_in_the_place_of_the_files() -> None:
    none = MINIMAL.replace("budget: {trials: 10}", "")
    assert parse_spec(none, Path("study.yaml"), Budget(time_s=5.0)).budget == Budget(5.0, None)
    assert parse_spec(MINIMAL, Path("study.yaml"), Budget(5.0, 3)).budget == Budget(5.0, 3)
    # A folder keeps the file as it was.
    assert parse_stored_spec(none, Path("study.yaml")).budget == Budget()


def test_the_json_schema_is_valid() -> None:
    schema = json_schema(StudyModel)
    assert schema["$schema"] == "https://json-schema.org/draft/2020-12/schema"
    jsonschema.Draft202012Validator.check_schema(schema)


@pytest.mark.parametrize("path", GOOD, ids=[f"{p.parent.name}-{p.stem}" for p in GOOD])
def test_good_files_load_and_match_the_json_schema(path: Path) -> None:
    load_spec(path)
    document = parse_document(path.read_text(encoding="utf-8"), path.name)
    jsonschema.Draft202012Validator(json_schema(StudyModel)).validate(document.data)


@pytest.mark.parametrize(
    "name",
    [
        *("top-unknown-field", "engine-unknown", "space-type-unknown", "proof-pairs-few"),
        *("version-2", "space-low-elephants", "pruner-unknown", "sampler-unknown"),
    ],
)
def test_the_json_schema_refuses_bad_shapes(name: str) -> None:
    data = yaml.safe_load((HERE / "bad" / f"{name}.yaml").read_text(encoding="utf-8"))
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.Draft202012Validator(json_schema(StudyModel)).validate(data)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("no", "no"),
        ("off", "off"),
        ("y", "y"),
        ("true", True),
        ("'true'", "true"),
        ("010", "010"),
        ("0x10", "0x10"),
        ("1_000", "1_000"),
        ("1:30", "1:30"),
        ("2024-01-01", "2024-01-01"),
        ("1e6", 1e6),
        ("-5", -5),
        ("~", None),
        (".inf", ".inf"),
        ("1e999", "1e999"),
        ("<<", "<<"),
        ("=", "="),
        ("9" * 5000, "9" * 5000),
    ],
)
def test_plain_scalars_are_read_strictly(text: str, value: object) -> None:
    found = parse_document(f"a: {text}\n", "x").data["a"]
    assert found == value
    assert type(found) is type(value)


def test_a_byte_order_mark_is_skipped(tmp_path: Path) -> None:
    path = tmp_path / "study.yaml"
    path.write_text(MINIMAL, encoding="utf-8-sig")
    assert load_spec(path).name == "minimal"


def test_every_field_of_a_study_of_several_things_is_read() -> None:
    spec = load_spec(HERE / "good" / "several.yaml")
    assert [(w.label, w.workload.name, w.weight) for w in spec.workloads] == [
        ("writes", "fillrandom", 1.0),
        ("reads", "readrandom", 3.0),
    ]
    assert spec.goal.shares == (0.25, 0.75)
    assert [o.label for o in spec.goal.objectives] == ["throughput_ops_s", "latency_us_p99"]
    assert spec.goal.metric == "throughput_ops_s"
    assert [c.text for c in spec.pick_where] == ["latency_us_p99 <= 2000"]
    assert spec.baseline.label == "rocksdb-optimize-for-point-lookup"
    assert [c.label for c in spec.start] == ["rocksdb-optimize-for-small-db", "start[1]"]
    assert spec.fixed["max_open_files"] == 500
    names = {parameter.name for parameter in spec.space.parameters}
    assert "compression" not in names
    assert spec.space["write_buffer_size"].numbers is not None
    assert spec.space["write_buffer_size"].numbers.bins == 12
    assert spec.space["max_background_jobs"].prior is not None
    texts = [constraint.text for constraint in spec.constraints]
    assert texts[:2] == [
        "write_buffer_size * max_write_buffer_number + block_cache <= 1GiB",
        "rss_bytes_max <= 2GiB",
    ]
    assert len(texts) > 2, "the ready space brings constraints of its own"
    assert (spec.sampler.name, spec.sampler.settings["population"]) == ("nsga2", 10)


def test_auto_stands_for_tpe_where_it_knows_nothing_and_says_so() -> None:
    several = minimal(objective="objectives: [{metric: throughput_ops_s}, {metric: rss_bytes_max}]")
    assert several.sampler.name == "tpe"
    assert several.notes == ("sampler auto stands for tpe, as there are several objectives",)
    with pytest.raises(InputError, match=r"sampler.hedge: auto stands for tpe, as there are sev"):
        minimal(
            objective="objectives: [{metric: throughput_ops_s}, {metric: rss_bytes_max}]",
            sampler="sampler: {name: auto, hedge: 0.1}",
        )
    assert minimal(sampler="sampler: {name: auto, hedge: 0.1}").sampler.settings["hedge"] == 0.1


def test_rungs_are_in_time_or_in_size() -> None:
    halving = minimal(
        workload="workload: {name: fillrandom, num: 500000}",
        pruner="pruner: {name: successive-halving, rungs: "
        "{num: [5000, 50000, 500000], deadlines: [4s, 40s, 400s]}}",
    )
    assert halving.pruner is not None
    assert halving.pruner.rungs == DataRungs((5000, 50_000, 500_000), (4.0, 40.0, 400.0))
    median = minimal(pruner="pruner: {name: median, rungs: {every: 500ms}}")
    assert median.pruner is not None
    assert median.pruner.rungs == TimeRungs(0.5, "fillrandom", charged=True)


@pytest.mark.parametrize(
    "changed",
    [
        {"sampler": "sampler: {name: tpe}"},
        {"pruner": "pruner: {name: none}"},
        {"objective": "objective: {metric: latency_us_p99}"},
        {"objective": "objective: {metric: block_cache_hits}"},
        {"objective": "objectives: [{metric: throughput_ops_s}, {metric: latency_us_p99}]"},
        {"workload": "workloads: [{name: fillrandom, num: 1000}, {name: fillseq, num: 1000}]"},
    ],
)
def test_far_behind_is_what_auto_comes_with_where_a_run_tells_its_rate(
    changed: dict[str, str],
) -> None:
    assert minimal(**changed).pruner is None


def test_far_behind_never_charges_what_is_due() -> None:
    """Right after the first flushes what is due is at its most, and ended good trials."""
    metric = "objective: {metric: sustained_throughput_ops_s}"
    pruner = minimal(objective=metric, pruner="pruner: {name: far-behind, ratio: 0.7}").pruner
    assert pruner is not None
    assert (pruner.settings["ratio"], pruner.rungs) == (0.7, TimeRungs(1.0, "fillrandom"))


def test_a_program_of_ones_own_needs_no_engine() -> None:
    text = """
version: 1
name: own
runner:
  command: [./bench.sh, "{threads}", [--cache, "{cache}"]]
  environment: {MODE: "{mode}"}
  parameters_file: {name: conf.ini, template: "threads={threads}"}
  results: {json_pointer: {file: out.json, metrics: {wait_ms: /p99}}}
objective: {metric: wait_ms, direction: minimize}
space:
  threads: {type: int, low: 1, high: 8, default: 2}
  mode: {type: categorical, choices: [a, b], default: b}
  cache: {type: int, low: 1, high: 8, when: {mode: a}}
constraints: [threads <= 6, wait_ms <= 10]
budget: {trials: 10}
"""
    spec = parse_spec(text, Path("/somewhere/study.yaml"))
    assert spec.command is not None
    assert spec.command.command == ("./bench.sh", "{threads}", ("--cache", "{cache}"))
    assert spec.command.folder == Path("/somewhere")
    assert spec.command.metrics == ("wait_ms",)
    assert [c.kind.value for c in spec.constraints] == ["options", "outcome"]
    with pytest.raises(InputError, match="a program has no defaults of its own"):
        parse_spec(text.replace(", default: 2", ""), Path("/somewhere/study.yaml"))
    assert (spec.engine_name, spec.workload.name) == ("program", "program")


def test_what_depends_on_a_parameter_left_out_follows_the_value_that_it_keeps() -> None:
    """`without: [compaction_style]` was refused: others were active for a value of it."""

    def names(options: str) -> set[str]:
        text = MINIMAL[: MINIMAL.index("space:")] + "budget: {trials: 10}\n"
        text += "space: {use: rocksdb-write, without: [compaction_style]}\n" + options
        spec = parse_spec(text, Path("study.yaml"))
        return {parameter.name for parameter in spec.space.parameters}

    level, universal = names(""), names("options: {compaction_style: kCompactionStyleUniversal}")
    assert "max_bytes_for_level_base" in level - universal
    assert "compaction_options_universal.size_ratio" in universal - level


def test_the_folder_of_a_proof_is_not_taken_for_a_study_with_a_mistake() -> None:
    with pytest.raises(InputError, match=r"s/study\.yaml: is of a proof without a study"):
        parse_stored_spec('{"verify": {"engine": ["leveldb", ""]}}', Path("s/study.yaml"))
