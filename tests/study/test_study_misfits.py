"""Studies that ask for what cannot be had: said at once and by its right name."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest
from fake_runner import MIB, FakeRunner
from study_parts import Recorder, make_spec, tuned

from lsmtune.errors import InputError, LsmtuneError
from lsmtune.model.config import OptionValue
from lsmtune.study.build import parse_spec
from lsmtune.study.feasible import Feasibility
from lsmtune.study.spec import Spec

STUDY = """\
version: 1
name: small
engine: {name: rocksdb}
space:
  write_buffer_size: {type: int, low: 2MiB, high: 16MiB, step: 1MiB, default: 2MiB}
sampler: {name: random}
budget: {trials: 4}
"""
ONE = "workload: {name: fillrandom, num: 1000}\n"
TWO = "workloads: [{name: fillrandom, num: 1000}, {name: fillseq, num: 1000}]\n"


def study(path: Path, more: str) -> Spec:
    return parse_spec(STUDY + more, path / "small.yaml")


def test_of_several_objectives_the_one_that_is_not_observed_is_named(tmp_path: Path) -> None:
    more = "objectives: [{metric: throughput_ops_s}, {metric: write_amplification}]\n"
    with pytest.raises(LsmtuneError, match="it did not observe write_amplification"):
        tuned(study(tmp_path, ONE + more), tmp_path / "s")


def test_a_baseline_without_a_mean_ends_the_study_before_a_trial(tmp_path: Path) -> None:
    """Every trial was run, and none gave a value: 0 under one workload has no geometric mean."""
    runner = FakeRunner()
    more = "objective: {metric: user_bytes_read, direction: maximize}\n"
    with pytest.raises(LsmtuneError, match=r"user_bytes_read is 0 under fillrandom.*have a mean"):
        tuned(study(tmp_path, TWO + more), tmp_path / "s", runner)
    assert len(runner.requests) == 2


def test_a_constraint_without_a_value_in_the_middle_of_a_study_is_told_with_its_file(
    tmp_path: Path,
) -> None:
    """`constraints[0]: division by zero`, and nobody said of which file."""
    spec = study(tmp_path, ONE + "constraints: [throughput_ops_s / stall_s >= 1]\n")
    with pytest.raises(InputError) as caught:
        tuned(spec, tmp_path / "s")
    told = f"{tmp_path / 'small.yaml'}: constraints[0]: division by zero in "
    assert str(caught.value).startswith(told)


def test_a_front_without_a_product_is_no_matter_of_the_pick(tmp_path: Path) -> None:
    """What cannot be weighed was said to break a `pick.where` that the study does not have."""
    more = "objectives: [{metric: throughput_ops_s}, {metric: stall_s}]\n"
    result = tuned(study(tmp_path, ONE + more), tmp_path / "s")
    assert result.verdict is not None
    assert "no trial has values above 0 of every objective" in result.verdict.why


def test_a_start_that_is_new_in_the_list_is_tried_and_no_other_twice(tmp_path: Path) -> None:
    """What counted was the place in the list: a new first start was dropped, the old run again."""
    old, new = "{write_buffer_size: 7MiB}", "{write_buffer_size: 9MiB}"
    first, second = FakeRunner(), FakeRunner()
    more = f"start: [{old}]\nsampler: {{name: random}}\n"
    text = STUDY.replace("sampler: {name: random}\n", "") + ONE
    tuned(parse_spec(text + more, tmp_path / "small.yaml"), tmp_path / "s", first)
    more = more.replace(f"[{old}]", f"[{new}, {old}]")
    text = text.replace("trials: 4", "trials: 6")
    tuned(parse_spec(text + more, tmp_path / "small.yaml"), tmp_path / "s", second)
    assert sizes(first)[1] == 7
    assert sizes(second)[0] == 9
    tried = sizes(first) + sizes(second)
    assert len(tried) == len(set(tried)) == 6


def sizes(runner: FakeRunner) -> list[int]:
    """MiB of each trial."""
    requests = [request for request in runner.requests if request.trial is not None]
    return [int(str(request.config.options["write_buffer_size"])) // MIB for request in requests]


def test_a_stop_is_obeyed_while_every_configuration_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The search for one that is allowed went on to its end, minutes later."""
    observer = Recorder()
    asked = 0

    def refuse(_: Feasibility, values: Mapping[str, OptionValue]) -> str:
        nonlocal asked
        asked += 1
        if asked == 3:
            observer.stop.set()
        return f"refuses {values}"

    monkeypatch.setattr(Feasibility, "refusal", refuse)
    result = tuned(make_spec(tmp_path), tmp_path / "s", observer=observer)
    assert result.interrupted
    assert asked == 3
