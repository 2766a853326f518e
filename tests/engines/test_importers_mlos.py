"""What MLOS's fields mean is kept: weights, bins, distributions, defaults."""

from __future__ import annotations

import json
from typing import Any

import pytest
from importer_parts import collected, import_file, notes_of, study

from lsmtune.engines.formats.base import ImportedStudy
from lsmtune.space.prior import Prior
from lsmtune.space.range import Range


def imported(engine: str | None = None, **fields: Any) -> ImportedStudy:
    """A file with one parameter `a` of `fields`, and another."""
    beside = {"type": "int", "range": [0, 9], "default": 1}
    group = {"cost": 0, "params": {"a": fields, "b": beside}}
    return study(json.dumps({"group": group}), "mlos", engine)


def parameter(**fields: Any) -> dict[str, Any]:
    found: dict[str, Any] = imported(**fields).study["space"]["a"]
    return found


NUMBER = {"type": "int", "range": [0, 500], "default": 10}


def test_special_values_without_weights_have_half_of_the_draws() -> None:
    found = parameter(**NUMBER, special=[-1, -2])
    assert found["special"] == [{"value": -1, "weight": 0.25}, {"value": -2, "weight": 0.25}]


def test_weights_are_shares_of_their_sum() -> None:
    found = parameter(**NUMBER, special=[-1, -2], special_weights=[1, 3], range_weight=4)
    assert found["special"] == [{"value": -1, "weight": 0.125}, {"value": -2, "weight": 0.375}]


@pytest.mark.parametrize(
    ("special", "why"),
    [(["AUTO"], "not a whole number"), ([5], "lies within the range"), ([-0.5], "not a whole")],
)
def test_special_values_that_cannot_be_are_said(special: list[Any], why: str) -> None:
    found = imported(**NUMBER, special=special)
    assert "special" not in found.study["space"]["a"]
    assert why in notes_of(found)


def test_a_range_that_is_never_drawn_cannot_be_said() -> None:
    found = imported(**NUMBER, special=[-1], special_weights=[1], range_weight=0)
    assert found.study["space"]["a"]["special"] == [{"value": -1, "weight": 0.5}]
    assert "range_weight: 0 cannot be said" in notes_of(found)


def test_bins_are_where_configspace_has_them() -> None:
    functional = pytest.importorskip("ConfigSpace.functional")
    numpy = pytest.importorskip("numpy")
    found = parameter(type="float", range=[1.5, 9.5], default=2, quantization_bins=9)
    drawn = functional.quantize(numpy.linspace(0, 1, 500), bounds=(0, 1), bins=9)
    theirs = sorted(set(1.5 + drawn * 8.0))
    ours = Range(found["low"], found["high"], integer=False, bins=found["bins"]).binned
    assert ours == pytest.approx(theirs)


@pytest.mark.parametrize("log", [False, True])
def test_a_normal_distribution_is_that_of_configspace(log: bool) -> None:
    config_space = pytest.importorskip("ConfigSpace")
    numpy = pytest.importorskip("numpy")
    params = {"mu": 40, "sigma": 25}
    found = parameter(
        type="float",
        range=[2, 200],
        default=40,
        log=log,
        distribution={"type": "normal", "params": params},
    )
    prior = Prior(found["prior"]["distribution"], found["prior"]["mean"], found["prior"]["sd"])
    theirs = config_space.Float(
        "a", bounds=(2, 200), log=log, distribution=config_space.Normal(**params)
    )
    drawn = theirs.sample_value(20_000, seed=numpy.random.RandomState(1))
    for number in (10, 40, 100):
        ours = prior.share_below(number, 2, 200)
        assert ours == pytest.approx((drawn < number).mean(), abs=0.02)
    assert "log" not in found


def test_a_beta_distribution_spans_the_range() -> None:
    beta = {"type": "beta", "params": {"alpha": 2, "beta": 5}}
    found = parameter(**NUMBER, distribution=beta)
    assert found["prior"] == {"distribution": "beta", "alpha": 2, "beta": 5}
    found = imported(type="int", range=[1, 500], default=10, log=True, distribution=beta).study
    assert "prior" not in found["space"]["a"]
    assert found["space"]["a"]["log"]


def test_a_log_scale_from_zero_is_said() -> None:
    found = imported(**NUMBER, log=True)
    assert "log" not in found.study["space"]["a"]
    assert "a log scale cannot hold 0" in notes_of(found)


def test_a_note_on_text_of_several_lines_is_one_line() -> None:
    found = imported(**NUMBER, meta={"unit": "pages\nof 4 KiB"})
    (note,) = found.notes
    assert note.endswith("a.meta: left out: unit pages of 4 KiB")


def test_defaults_are_the_baseline() -> None:
    assert imported(**NUMBER).study["baseline"] == {"a": 10, "b": 1}


def test_weights_of_choices_are_said_unless_they_are_even() -> None:
    fields = {"type": "categorical", "values": ["x", "y"], "default": "x"}
    assert "values_weights" not in notes_of(imported(**fields, values_weights=[50, 50]))
    assert "values_weights: left out" in notes_of(imported(**fields, values_weights=[1, 9]))


@pytest.mark.parametrize(
    ("name", "parameters"),
    [
        ("dummy-tunables.jsonc", 3),
        ("linux-runtime-tunables.jsonc", 7),
        ("full-tunable-params-test.jsonc", 9),
    ],
)
def test_the_files_of_mlos(name: str, parameters: int) -> None:
    path = collected(f"mlos/{name}")
    found = import_file(path)
    assert isinstance(found, ImportedStudy)
    assert len(found.study["space"]) == parameters
    assert set(found.study["baseline"]) == set(found.study["space"])
    assert all(note.startswith(f"{path}:") for note in found.notes)
