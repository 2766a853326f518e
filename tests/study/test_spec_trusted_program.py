"""A study whose runs a program that people trust performs: `runner: {program: ...}`."""

from __future__ import annotations

from pathlib import Path

import pytest

from lsmtune.errors import InputError
from lsmtune.model.command import ProgramSpec
from lsmtune.study.build import load_spec

STUDY = """\
version: 1
name: trusted
engine: {name: rocksdb}
runner: {program: rocksdb-db_bench, path: bin/db_bench, arguments: [--statistics=true]}
workload: {name: fillrandom, num: 1000}
objective: {metric: throughput_ops_s}
space:
  write_buffer_size: {type: int, low: 64KiB, high: 16MiB}
budget: {trials: 2}
"""


def write(folder: Path, old: str = "", new: str = "") -> Path:
    assert old in STUDY
    path = folder / "study.yaml"
    path.write_text(STUDY.replace(old, new) if old else STUDY)
    return path


def test_the_program_is_found_from_where_the_study_lies(tmp_path: Path) -> None:
    spec = load_spec(write(tmp_path))
    assert spec.program == ProgramSpec(
        "rocksdb-db_bench", tmp_path / "bin" / "db_bench", ("--statistics=true",)
    )
    assert spec.command is None
    assert spec.engine_name == "rocksdb"
    assert "rocksdb-db_bench" in str(spec.comparable_parts()["runner"])


def test_a_study_that_was_moved_with_its_program_goes_on(tmp_path: Path) -> None:
    """What made its runs comparable was where the program lay, and not which one it was."""
    for place in (tmp_path / "here", tmp_path / "there"):
        (place / "bin").mkdir(parents=True)
        (place / "bin" / "db_bench").write_text("a program")
    here = load_spec(write(tmp_path / "here")).comparable_parts()
    there = load_spec(write(tmp_path / "there"))
    assert there.comparable_parts() == here
    (tmp_path / "there" / "bin" / "db_bench").write_text("another program")
    assert there.comparable_parts()["runner"] != here["runner"]


def test_without_a_path_it_is_looked_for(tmp_path: Path) -> None:
    program = load_spec(write(tmp_path, "path: bin/db_bench, ", "")).program
    assert program is not None
    assert program.path is None


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("rocksdb-db_bench", "rocksdb-dbbench", "study.yaml:4: runner.program: found"),
        ("name: rocksdb}", "name: leveldb}", "engine.name: found 'leveldb'; allowed: rocksdb, of"),
        ("name: rocksdb}", "name: rocksdb, library: a.so}", "engine.library: has no effect with"),
        ("fillrandom", "readhot", "workload: rocksdb-db_bench cannot perform readhot: "),
        (
            "metric: throughput_ops_s",
            "metric: sustained_throughput_ops_s",
            "study.yaml:6: objective.metric: rocksdb-db_bench cannot tell it; found",
        ),
        ("objective: {metric: throughput_ops_s}\n", "", "objective.metric: rocksdb-db_bench cann"),
        (
            "budget: {trials: 2}",
            "budget: {trials: 2}\nconstraints: ['stall_s <= 1']",
            "constraints: rocksdb-db_bench cannot tell it: stall_s <= 1; found 'stall_s'; allo",
        ),
        (
            "budget: {trials: 2}",
            "budget: {trials: 2}\nconstraints: ['fillrandom.write_amplification < 20']",
            "found 'fillrandom.write_amplification'; allowed: ",
        ),
        (
            "path: bin/db_bench",
            'path: "~no-such-user/db_bench"',  # it was a traceback
            "study.yaml:4: runner.path: found '~no-such-user/db_bench'; allowed: the path of a p",
        ),
        ("path: bin/db_bench", "command: [x]", "runner.command: stands beside program"),
        ("path: bin/db_bench", "results: {json_lines: stdout}", "runner.results: stands beside"),
        ("path: bin/db_bench", 'parameters_file: ""', "runner.parameters_file: stands beside"),
        ("program: rocksdb-db_bench", "program: ", "runner"),
    ],
)
def test_what_cannot_be_is_one_line(tmp_path: Path, old: str, new: str, said: str) -> None:
    with pytest.raises(InputError) as error:
        load_spec(write(tmp_path, old, new))
    assert said in str(error.value)
    assert "\n" not in str(error.value)


def test_what_the_program_tells_is_guarded(tmp_path: Path) -> None:
    """A study by db_bench had no guards, though it tells the p99 latency."""

    def guards(old: str = "", new: str = "") -> list[str]:
        return [guard.text for guard in load_spec(write(tmp_path, old, new)).guards]

    assert guards() == ["latency_us_p99 <= 1.25 * baseline"]
    assert guards("budget: {trials: 2}", "budget: {trials: 2}\nguards: []") == []
    # Its histogram is that of the readers alone.
    reads = guards("{name: fillrandom, num: 1000}", "{name: readwhilewriting, num: 1000}")
    assert reads == ["readwhilewriting.latency_us_p99 <= 1.25 * baseline"]


def test_a_constraint_on_what_the_program_tells_is_taken(tmp_path: Path) -> None:
    told = "constraints: ['db_bytes <= 1GiB', 'fillrandom.latency_us_p99 < 5000']"
    spec = load_spec(write(tmp_path, "budget: {trials: 2}", f"budget: {{trials: 2}}\n{told}"))
    assert len(spec.constraints) == 2


def test_what_pick_asks_for_must_be_told_too(tmp_path: Path) -> None:
    two = "objectives: [{metric: throughput_ops_s}, {metric: rss_bytes_max}]\n"
    two += "pick: {best: throughput_ops_s, where: ['stall_s <= 1']}"
    with pytest.raises(InputError, match=r"pick\.where: rocksdb-db_bench cannot tell it"):
        load_spec(write(tmp_path, "objective: {metric: throughput_ops_s}", two))


@pytest.mark.parametrize("settled", ["writes", "reads"])
def test_the_processor_time_of_a_phase_whose_process_settles_is_not_told(
    tmp_path: Path, settled: str
) -> None:
    """db_bench settles in the process of the phase before, and no trial had such a value."""
    phases = {
        "load": "{name: load, kind: load, operation: fillrandom, operations: 1000}",
        "writes": "{name: writes, kind: measure, operation: overwrite, operations: 9}",
        "reads": "{name: reads, kind: measure, operation: readrandom, operations: 9}",
    }
    (tmp_path / "w.yaml").write_text(
        "version: 1\nname: w\nnum: 1000\nphases:\n"
        + "".join(
            f"  - {text}\n" + ("  - {name: settle, kind: settle}\n" if name == settled else "")
            for name, text in phases.items()
        )
    )

    def objective(phase: str) -> str:
        path = write(tmp_path, "{name: fillrandom, num: 1000}", "{file: w.yaml}")
        metric = f"metric: cpu_us_per_operation, phase: {phase}"
        path.write_text(path.read_text().replace("metric: throughput_ops_s", metric))
        return load_spec(path).objective.label

    (other,) = {"writes", "reads"} - {settled}
    assert objective(other) == f"{other}.cpu_us_per_operation"
    with pytest.raises(InputError, match=r"objective\.metric: rocksdb-db_bench cannot tell it"):
        objective(settled)
