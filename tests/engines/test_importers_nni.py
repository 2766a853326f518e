"""NNI's types mean here what they mean there, or a note says the difference."""

from __future__ import annotations

import json
import math
from typing import Any

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from importer_parts import collected, import_file, import_text, notes_of, study

from lsmtune.engines.catalogue import option_catalogue
from lsmtune.engines.formats import nni_config
from lsmtune.engines.formats.base import ImportedStudy, ImportRequest
from lsmtune.engines.formats.nni_config import programs_of
from lsmtune.errors import InputError
from lsmtune.search.samplers import SAMPLERS
from lsmtune.space.prior import Prior


def space_of(*values: Any, kind: str, name: str = "a") -> dict[str, Any]:
    """The one parameter that is made of a type and its values."""
    text = json.dumps({name: {"_type": kind, "_value": list(values)}, "b": BESIDE})
    found = study(text, "nni-space").study
    return {**found["space"], **found.get("options", {})}[name]


BESIDE = {"_type": "uniform", "_value": [0, 1]}


def nni_values(
    kind: str, low: float, high: float, q: float, draws: int = 4000
) -> dict[float, float]:
    """Value to probability, by the formula of NNI's documentation on evenly spread draws."""
    found: dict[float, float] = {}
    for index in range(draws):
        share = (index + 0.5) / draws
        if kind == "quniform":
            x = low + share * (high - low)
        else:
            x = math.exp(math.log(low) + share * (math.log(high) - math.log(low)))
        value = min(max(round(x / q) * q, low), high)
        found[value] = found.get(value, 0.0) + 1 / draws
    return found


def our_values(parameter: Any) -> tuple[set[float], dict[float, float]]:
    """All values of a parameter, and those of them that have a weight of their own."""
    if not isinstance(parameter, dict):
        return {parameter}, {}
    if parameter["type"] == "categorical":
        return set(parameter["choices"]), {}
    step = parameter.get("step", 1)
    weights = {special["value"]: special["weight"] for special in parameter.get("special", [])}
    return {*range(parameter["low"], parameter["high"] + 1, step), *weights}, weights


@pytest.mark.parametrize("kind", ["quniform", "qloguniform"])
@settings(max_examples=60)
@given(low=st.integers(1, 60), width=st.integers(1, 60), q=st.integers(1, 20))
def test_rounded_types_have_the_values_of_nni(kind: str, low: int, width: int, q: int) -> None:
    theirs = nni_values(kind, low, low + width, q)
    # What lies on the edge of a rounding is drawn by chance or not at all.
    assume(min(theirs.values()) > 0.001)
    ours, weights = our_values(space_of(low, low + width, q, kind=kind))
    assert ours == set(theirs)
    for value, weight in weights.items():
        assert weight == pytest.approx(theirs[value], abs=0.002)


def test_the_examples_of_nnis_documentation() -> None:
    tenths = space_of(0, 10, 2.5, kind="quniform")
    assert tenths == {"type": "float", "low": 0.0, "high": 10.0, "step": 2.5}
    assert our_values(space_of(2, 10, 5, kind="quniform"))[0] == {2, 5, 10}


@settings(max_examples=60)
@given(st.integers(-1000, 1000), st.integers(2, 1000))
def test_randint_excludes_its_upper_bound(low: int, width: int) -> None:
    found = space_of(low, low + width, kind="randint")
    assert found == {"type": "int", "low": low, "high": low + width - 1}


def test_a_log_step_of_floats_is_said() -> None:
    """Beside it stood that a bound is a special value, which it is only with the step."""
    text = json.dumps({"a": {"_type": "qloguniform", "_value": [0.12, 1, 0.1]}})
    found = study(text, "nni-space")
    assert found.study["space"]["a"] == {"type": "float", "low": 0.12, "high": 1.0, "log": True}
    (note,) = found.notes
    assert "step of 0.1 is left out" in note


@pytest.mark.parametrize(("kind", "mean", "sd"), [("normal", 3, 2), ("lognormal", 1, 0.25)])
def test_distributions_without_bounds_are_cut_off_far_out(kind: str, mean: int, sd: float) -> None:
    found = study(json.dumps({"a": {"_type": kind, "_value": [mean, sd]}}), "nni-space")
    parameter = found.study["space"]["a"]
    assert parameter["prior"] == {"distribution": kind, "mean": mean, "sd": sd}
    prior = Prior(kind, mean, sd)
    middle = mean if kind == "normal" else math.exp(mean)
    assert prior.share_below(middle, parameter["low"], parameter["high"]) == pytest.approx(0.5)
    assert f"cut off at {parameter['low']} and {parameter['high']}" in notes_of(found)


@pytest.mark.parametrize("kind", ["qnormal", "qlognormal"])
def test_rounded_distributions_lie_on_multiples_of_q(kind: str) -> None:
    parameter = space_of(3, 1, 5, kind=kind)
    assert (parameter["type"], parameter["step"]) == ("int", 5)
    assert parameter["low"] % 5 == parameter["high"] % 5 == 0
    assert parameter["high"] > parameter["low"]
    assert kind == "qnormal" or parameter["low"] > 0


@pytest.mark.parametrize(("mean", "value"), [(2, 0), (7, 5), (8, 10)])
def test_a_narrow_distribution_is_the_multiple_of_q_next_to_it(mean: int, value: int) -> None:
    """It was the one above: 10 in place of 5, the only value that NNI draws."""
    assert space_of(mean, 0.1, 5, kind="qnormal") == value


def test_an_unbounded_option_ends_where_the_engine_may_refuse() -> None:
    text = json.dumps({"max_background_jobs": {"_type": "qnormal", "_value": [2, 2, 1]}})
    found = study(text, "nni-space", "rocksdb")
    lowest = option_catalogue("rocksdb")["max_background_jobs"].low
    assert found.study["space"]["max_background_jobs"]["low"] == lowest
    assert study(text, "nni-space").study["space"]["max_background_jobs"]["low"] < 0


def test_the_spaces_own_file_has_rocksdbs_options() -> None:
    path = collected("nni-rocksdb/search_space.json")
    found = import_file(path, engine="rocksdb")
    assert isinstance(found, ImportedStudy)
    space = found.study["space"]
    assert set(space) <= set(option_catalogue("rocksdb"))
    assert space["min_write_buffer_number_to_merge"] == {"type": "int", "low": 2, "high": 16}
    assert space["write_buffer_size"] == {
        "type": "int",
        "low": 2 << 20,
        "high": 16 << 20,
        "step": 1 << 20,
        "unit": "bytes",
    }
    # Line by line: one note for each parameter, at the line where it stands.
    assert [note.split(":")[1] for note in found.notes] == ["2", "6", "10"]


@pytest.mark.parametrize(
    ("name", "sampler"), [("config_tpe.yml", "tpe"), ("config_smac.yml", "forest")]
)
def test_nnis_own_configurations(name: str, sampler: str) -> None:
    found = import_file(collected(f"nni-rocksdb/{name}"))
    assert isinstance(found, ImportedStudy)
    fields = found.study
    # Its main.py is not here, and would need NNI: lsmtune takes its part.
    assert "runner" not in fields
    assert fields["budget"] == {"time": "12h", "trials": 256}
    assert len(fields["space"]) == 3
    assert fields["sampler"]["name"] in (sampler, "smac")  # of a package with NNI's name for it


def experiment(
    text: str, engine: str | None = None, searched: str = "write_buffer_size"
) -> ImportedStudy:
    whole = f"{text}\nsearchSpace: {{{searched}: {{_type: uniform, _value: [1000, 9000]}}}}\n"
    return study(whole, nni_config.FORMAT.name, engine)


def test_with_an_engine_the_trials_command_is_left_out() -> None:
    found = experiment("trial: {command: x}\ntuner: {builtinTunerName: TPE}", "rocksdb")
    assert "runner" not in found.study
    assert "objective" not in found.study
    assert "lsmtune itself measures rocksdb" in notes_of(found)


@pytest.mark.parametrize(
    ("command", "folder", "expected"),
    [
        ("python3 main.py", ".", ["python3", "main.py"]),
        ("python3 main.py", "code", ["bash", "-c", "cd code && python3 main.py"]),
        ("A=1 run | tee {x}", ".", ["bash", "-c", "A=1 run | tee {{x}}"]),
        ("python3 'my main.py'", ".", ["bash", "-c", "python3 'my main.py'"]),
    ],
)
def test_a_command_that_is_more_than_words_goes_by_way_of_bash(
    command: str, folder: str, expected: list[str]
) -> None:
    fields = json.dumps({"command": command, "codeDir": folder})
    found = experiment(f"trial: {fields}", searched="rate").study
    assert found["runner"]["command"] == expected
    assert found["objective"] == {"metric": "value", "direction": "maximize"}


def test_a_program_that_is_missing_is_said() -> None:
    found = experiment("trialCommand: python3 main.py", searched="rate")
    assert "main.py is not there, and no trial can run without it" in notes_of(found)


@pytest.mark.parametrize(
    ("duration", "expected"), [("12h", "12h"), ("0.5h", "30m"), ("2d", "48h"), ("90s", "1m30s")]
)
def test_durations(duration: str, expected: str) -> None:
    found = experiment(f"trialCommand: x\nmaxExperimentDuration: {duration}")
    assert found.study["budget"] == {"time": expected}


def test_a_duration_without_end_is_refused() -> None:
    """Its hundreds of digits are infinite to a float: an unexpected error."""
    with pytest.raises(InputError, match=r"maxExperimentDuration: found .*; allowed: a number and"):
        experiment(f"trialCommand: x\nmaxExperimentDuration: {'9' * 400}h")


@pytest.mark.parametrize("seconds", [3600, 90])
def test_a_duration_without_a_unit_is_seconds(seconds: int) -> None:
    """NNI 2 takes such a whole number; it was refused."""
    found = experiment(f"trialCommand: x\nmaxExperimentDuration: {seconds}")
    assert found.study["budget"] == {"time": {3600: "1h", 90: "1m30s"}[seconds]}


def test_a_tuner_that_is_not_here_is_said_with_what_comes_nearest() -> None:
    found = experiment("trialCommand: x\ntuner: {name: Anneal}")
    assert found.study["sampler"] == {"name": "tpe"}
    assert "Anneal is not here; tpe comes nearest" in notes_of(found)
    found = experiment("trialCommand: x\ntuner: {name: PPOTuner}")
    assert "sampler" not in found.study
    assert "PPOTuner is not here" in notes_of(found)


def test_every_tuner_that_nni_has_is_a_sampler_or_said() -> None:
    # nni/runtime/default_config/builtin_algorithms.yml of v3.0, tuners that search.
    builtin = (
        "SMAC TPE TPE_legacy Random Anneal Evolution GridSearch Metis GP PBT DNGO BOHB Hyperband"
    )
    for name in builtin.split():
        found = experiment(f"trialCommand: x\ntuner: {{name: {name}}}")
        assert found.study["sampler"]["name"] in SAMPLERS


def test_a_space_beside_the_configuration_is_read_from_its_own_file(tmp_path: Any) -> None:
    (tmp_path / "space.yml").write_text("a: {_type: choice, _value: [x, y, null]}\n")
    path = tmp_path / "config.yml"
    path.write_text("trialCommand: x\ntrialConcurrency: 1\nsearchSpaceFile: space.yml\n")
    found = import_file(path)
    assert isinstance(found, ImportedStudy)
    assert found.study["space"]["a"]["choices"] == ["x", "y"]
    assert f"{tmp_path}/space.yml:1: a._value: the value None is left out" in notes_of(found)


def test_a_nested_choice_of_one_branch_has_no_condition() -> None:
    branch = {"_name": "only", "b": BESIDE}
    text = json.dumps({"a": {"_type": "choice", "_value": [branch]}})
    found = study(text, "nni-space").study
    assert found["options"] == {"a": "only"}
    assert found["space"] == {"a_only_b": {"type": "float", "low": 0.0, "high": 1.0}}


def test_nesting_goes_as_deep_as_the_file() -> None:
    inner = {"_type": "choice", "_value": [{"_name": "p", "c": BESIDE}, {"_name": "q"}]}
    outer = {"_type": "choice", "_value": [{"_name": "x", "b": inner}, {"_name": "y"}]}
    found = study(json.dumps({"a": outer}), "nni-space").study["space"]
    assert found["a_x_b"]["when"] == {"a": "x"}
    assert found["a_x_b_p_c"]["when"] == {"a_x_b": "p"}


def test_a_space_without_an_option_of_the_engine_is_refused() -> None:
    text = json.dumps({"learning_rate": BESIDE})
    request = ImportRequest(text, collected("README.md"), "rocksdb")
    with pytest.raises(InputError, match=r"no parameter to search .*no option of rocksdb"):
        import_text(request, "nni-space")


@pytest.mark.parametrize("name", ["main.py", f"{'x' * 300}.py"])
def test_a_program_that_cannot_be_read_stays_the_trial(name: str, tmp_path: Any) -> None:
    """Its text in Latin-1 ended the import, though nothing of it was to be carried over."""
    (tmp_path / "main.py").write_bytes(b"# caf\xe9\n")
    (tmp_path / "space.yml").write_text("rate: {_type: choice, _value: [1, 2]}\n")
    path = tmp_path / "config.yml"
    command = f"trialCommand: python3 {name}\ntrialConcurrency: 1\n"
    path.write_text(f"{command}searchSpaceFile: space.yml\n")
    found = import_file(path)
    assert isinstance(found, ImportedStudy)
    assert found.study["runner"]["command"] == ["python3", name]


@pytest.mark.parametrize("name", ["1", "on", "2020-01-01", "null"])
def test_a_name_that_is_no_text_to_yaml_is_a_name(name: str) -> None:
    """With an engine it was an unexpected error, and so was a date in what is no parameter."""
    text = "trialCommand: x\ntrialConcurrency: 1\nsearchSpace:\n"
    text += f"  num_levels: {{_type: randint, _value: [3, 9]}}\n  {name}: "
    found = study(f"{text}{{_type: randint, _value: [0, 9]}}\n", "nni-config", "rocksdb")
    assert list(found.study["space"]) == ["num_levels"]
    assert "left out: no option of rocksdb" in notes_of(found)
    with pytest.raises(InputError, match=r"found '.*'; allowed: \{_type: "):
        study(f"{text}{{{name}: x}}\n", "nni-config", "rocksdb")


def test_what_python_warns_of_in_a_program_is_the_programs_own(tmp_path: Any) -> None:
    """`import` printed a SyntaxWarning of Python 3.12 for a pattern that was no raw string."""
    text = 'found = "\\d"\nparams = {"benchmarks": "fillrandom"}\ncall("db_bench")\n'
    (tmp_path / "main.py").write_text(text)
    workload, _, _ = programs_of("python3 main.py", tmp_path).benchmark("rocksdb")
    assert workload == {"name": "fillrandom"}


def test_what_a_program_computes_is_said_and_numbers_below_0_are_read(tmp_path: Any) -> None:
    """Both were lost in silence; a duration of 0, which is none, was refused as if it were ours."""
    flags = '"benchmarks": "readrandom", "reads": -1, "duration": 0, "max_background_flushes": -1'
    text = f'p = {{{flags}, "db": "/tmp/" + user, "target_file_size_base": 8 << 20}}\ndb_bench(p)\n'
    (tmp_path / "main.py").write_text(text)
    workload, options, notes = programs_of("python3 main.py", tmp_path).benchmark("rocksdb")
    assert (workload, options) == ({"name": "readrandom"}, {"max_background_flushes": -1})
    why = "left out: its value is computed, and the program is not run"
    assert notes == (f"{tmp_path}/main.py: target_file_size_base: {why}",)
