"""Where `auto` begins: at what this user's earlier studies proved on workloads like the new."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from fake_runner import FakeRunner
from study_parts import make_spec, tuned

from lsmtune.model.verdict import VerdictOutcome
from lsmtune.study.build import parse_spec
from lsmtune.study.observer import TuneResult
from lsmtune.study.spec import Spec
from lsmtune.study.start import open_study
from lsmtune.study.winners import remember_winner, with_winners


def spec_of(path: Path, workload: str = "fillrandom", memory: str = "1GiB") -> Spec:
    path.mkdir(parents=True, exist_ok=True)
    more = f"limits: {{memory: {memory}}}\nburst: true"
    spec = make_spec(path, sampler="auto", more=more)
    return parse_spec(spec.text.replace("fillrandom", workload), path / "small.yaml")


def begun(spec: Spec, folder: Path) -> list[tuple[str, object]]:
    with open_study(folder, spec) as opened:
        start = with_winners(spec, opened).start
    return [(config.label, config.options["write_buffer_size"]) for config in start]


@pytest.fixture
def proved(tmp_path: Path) -> tuple[Spec, TuneResult]:
    spec = spec_of(tmp_path / "earlier")
    result = tuned(spec, tmp_path / "earlier" / "study", FakeRunner())
    assert result.verdict is not None
    assert result.verdict.outcome is VerdictOutcome.BETTER
    remember_winner(spec, result)
    return spec, result


def test_a_study_begins_with_what_an_earlier_one_proved(
    tmp_path: Path, proved: tuple[Spec, TuneResult]
) -> None:
    earlier, result = proved
    assert result.best is not None
    spec = spec_of(tmp_path / "new")
    ((label, buffer),) = begun(spec, tmp_path / "new" / "study")
    assert str(earlier.path) in label
    assert buffer == result.best.options["write_buffer_size"]


@pytest.mark.parametrize(
    ("workload", "memory", "taken"),
    [
        ("overwrite", "1GiB", True),
        ("fillrandom", "2GiB", True),
        ("fillrandom", "64GiB", False),
        ("readrandom", "1GiB", False),
    ],
)
def test_only_workloads_that_are_alike_give_starts(
    tmp_path: Path, proved: tuple[Spec, TuneResult], workload: str, memory: str, taken: bool
) -> None:
    del proved
    spec = spec_of(tmp_path / "new", workload, memory)
    assert bool(begun(spec, tmp_path / "new" / "study")) is taken


def test_what_others_prove_meanwhile_changes_nothing_in_a_study(
    tmp_path: Path, proved: tuple[Spec, TuneResult]
) -> None:
    earlier, result = proved
    spec = spec_of(tmp_path / "new")
    before = begun(spec, tmp_path / "new" / "study")
    third = spec_of(tmp_path / "third")
    assert result.best is not None
    options = {**result.best.options, "write_buffer_size": 3 << 20}
    best = replace(result.best, options=options)
    remember_winner(third, replace(result, best=best))
    assert begun(spec, tmp_path / "new" / "study") == before
    fourth = spec_of(tmp_path / "fourth")
    assert {3 << 20} < {size for _, size in begun(fourth, tmp_path / "fourth" / "study")}
    del earlier


def test_a_winner_is_kept_once_and_a_torn_line_is_passed_over(
    tmp_path: Path, proved: tuple[Spec, TuneResult], lsmtune_home: Path
) -> None:
    path = lsmtune_home / "winners.jsonl"
    remember_winner(*proved)
    assert len(path.read_text().splitlines()) == 1
    with path.open("a") as file:
        file.write('{"engine": "rocks')
    assert len(begun(spec_of(tmp_path / "new"), tmp_path / "new" / "study")) == 1
    other = spec_of(tmp_path / "other")
    remember_winner(other, proved[1])
    assert len(begun(spec_of(tmp_path / "next"), tmp_path / "next" / "study")) == 1
    assert str(other.path) in path.read_text().splitlines()[-1]


def test_a_winner_that_sets_nothing_of_the_space_is_no_start(
    tmp_path: Path, proved: tuple[Spec, TuneResult]
) -> None:
    """It came out as the defaults, and the study said that it begins with what was proved."""
    earlier, result = proved
    assert result.best is not None
    best = replace(result.best, options={"max_open_files": 100})
    remember_winner(spec_of(tmp_path / "other"), replace(result, best=best))
    ((label, _),) = begun(spec_of(tmp_path / "new"), tmp_path / "new" / "study")
    assert str(earlier.path) in label


def test_damaged_lines_are_passed_over_with_one_warning(
    tmp_path: Path, proved: tuple[Spec, TuneResult], lsmtune_home: Path
) -> None:
    """`tune` ended in a traceback at its start for a `data_share` of 0, and for other bytes."""
    path = lsmtune_home / "winners.jsonl"
    line = json.loads(path.read_text())
    wrong = [json.dumps({**line, "data_share": share}).encode() for share in (0, -1, 10**400)]
    with path.open("ab") as file:
        file.write(b"\n".join([*wrong, b"\xff", b"[" * 100_000]))
    spec = spec_of(tmp_path / "new")
    with open_study(tmp_path / "new" / "study", spec) as opened:
        found = with_winners(spec, opened)
    assert len(found.start) == 1
    (warning,) = (note for note in found.notes if "damaged" in note)
    assert warning.startswith(f"{path}: 5 damaged lines passed over")
    other = spec_of(tmp_path / "other")
    remember_winner(other, proved[1])
    assert str(other.path) in path.read_bytes().splitlines()[-1].decode()


def test_other_samplers_begin_as_their_file_says(
    tmp_path: Path, proved: tuple[Spec, TuneResult]
) -> None:
    del proved
    spec = make_spec(tmp_path, sampler="tpe")
    assert begun(spec, tmp_path / "study") == []
