"""`lsmtune export`, and the names that configurations have on the command line."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import optuna
import pytest

from lsmtune.cli.choices import parse_options, resolve
from lsmtune.errors import InputError
from lsmtune.experiment.folder import StudyFolder, default_folder
from lsmtune.experiment.store import Role
from lsmtune.model.config import Config, EngineIdentity
from lsmtune.model.measurement import Measurement, Outcome
from lsmtune.study.build import load_spec

STUDY = """\
version: 1
name: small
engine: {name: rocksdb}
workload: {name: fillrandom, num: 1000}
space:
  write_buffer_size: {type: int, low: 64KiB, high: 16MiB}
budget: {trials: 2}
"""


@pytest.fixture
def study(tmp_path: Path) -> Path:
    """A study file whose folder holds trials 0, 1 and 2; trial 1 is the best."""
    path = tmp_path / "small.yaml"
    path.write_text(STUDY)
    engine = EngineIdentity("rocksdb", "9.8.7")
    distribution = optuna.distributions.IntDistribution(1, 1 << 30)
    with StudyFolder.create_or_resume(default_folder(path), load_spec(path)) as folder:
        trials = folder.optuna_study()
        for number, (size, value) in enumerate([(100_000, 1.0), (200_000, 3.0), (300_000, 2.0)]):
            options = {"write_buffer_size": size}
            trials.add_trial(
                optuna.trial.create_trial(
                    value=value,
                    params=options,
                    distributions={"write_buffer_size": distribution},
                )
            )
            done = Measurement(Outcome.OK, engine, {}, "fillrandom", 1, 0.0, 1.0)
            folder.measurements.add(Role.TRIAL, done, config=Config(options), trial=number)
    return path


def test_a_study_names_its_best_and_each_of_its_trials(study: Path) -> None:
    assert resolve(str(study)).options == {"write_buffer_size": 200_000}
    assert resolve(str(default_folder(study))).options == {"write_buffer_size": 200_000}
    third = resolve(f"{study}#2", "rocksdb")
    assert third == Config({"write_buffer_size": 300_000}, label=f"{study}#2")


@pytest.mark.parametrize(
    ("suffix", "message"),
    [("#9", "no such trial.*between 0 and 2"), ("#x", "a trial's number after #")],
)
def test_a_trial_that_does_not_exist_is_refused(study: Path, suffix: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        resolve(f"{study}{suffix}")


def test_a_study_of_another_engine_is_refused(study: Path) -> None:
    with pytest.raises(InputError, match="the study tuned rocksdb"):
        resolve(str(study), "leveldb")


@pytest.mark.parametrize("text", ["defualt", "absent.yaml", "absent.yaml#3", ""])
def test_what_names_no_configuration_is_refused(text: str) -> None:
    with pytest.raises(InputError, match="allowed: default, name=value"):
        resolve(text, source="--baseline")


def test_a_study_file_that_never_ran_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "new.yaml"
    path.write_text(STUDY)
    with pytest.raises(InputError, match="no such study folder"):
        resolve(str(path))


def test_options_are_typed_and_split_outside_braces_only() -> None:
    text = "write_buffer_size=4MiB, compression=none,x={a=1,b={c=2,d=3}},use_fsync=true"
    assert parse_options(text, "CONFIG") == {
        "write_buffer_size": 4 << 20,
        "compression": "none",
        "x": "{a=1,b={c=2,d=3}}",
        "use_fsync": True,
    }


@pytest.mark.parametrize(
    ("text", "message"),
    [("a=1,b", "allowed: name=value"), ("a=1,a=2", "given twice"), ("a=0.3B", "bytes")],
)
def test_malformed_options_are_refused(text: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        parse_options(text, "CONFIG")


def test_the_best_of_a_study_is_exported_with_its_engines_version(
    study: Path, tmp_path: Path, lsmtune: Any
) -> None:
    output = tmp_path / "OPTIONS"
    said = lsmtune("export", str(study), "--format", "rocksdb-options", "--output", str(output))
    assert (said.status, said.out.strip()) == (0, str(output))
    text = output.read_text()
    assert "rocksdb_version=9.8.7" in text
    assert "  write_buffer_size=200000\n" in text


def test_export_needs_an_engine_unless_a_study_says_it(lsmtune: Any) -> None:
    refusal = lsmtune("export", "default", "--format", "db_bench").refusal
    assert refusal.startswith("lsmtune: export: --engine: missing")
