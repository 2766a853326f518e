"""`lsmtune export`, and the names that configurations have on the command line."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import optuna
import pytest

from lsmtune.cli import export
from lsmtune.cli.choices import resolve_named
from lsmtune.errors import InputError
from lsmtune.experiment.folder import default_folder
from lsmtune.experiment.store import Role
from lsmtune.model.config import Config, EngineIdentity
from lsmtune.model.measurement import Measurement, Outcome
from lsmtune.study.build import load_spec
from lsmtune.study.start import open_study
from made_up import add_run

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
    return write_study(tmp_path / "small.yaml", "rocksdb")


def write_study(path: Path, engine_name: str) -> Path:
    """A study file whose folder holds trials 0, 1 and 2, of which 1 is best, and a baseline."""
    path.write_text(STUDY)
    engine = EngineIdentity(engine_name, "9.8.7")
    distribution = optuna.distributions.IntDistribution(1, 1 << 30)
    with open_study(default_folder(path), load_spec(path)) as folder:
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
            add_run(folder.measurements, Role.TRIAL, done, config=Config(options), trial=number)
        baseline = Config({"write_buffer_size": 50_000})
        add_run(folder.measurements, Role.BASELINE, done, config=baseline)
    return path


def test_a_study_names_its_best_and_each_of_its_trials(study: Path) -> None:
    assert resolve_named(str(study)).config.options == {"write_buffer_size": 200_000}
    assert resolve_named(str(default_folder(study))).config.options == {
        "write_buffer_size": 200_000
    }
    third = resolve_named(f"{study}#2", "rocksdb").config
    assert third == Config({"write_buffer_size": 300_000}, label=f"{study}#2")


@pytest.mark.parametrize(
    ("suffix", "message"),
    [
        ("#9", "no such trial.*between 0 and 2"),
        ("#x", "a trial's number after #"),
        ("#²", "a trial's number after #"),
    ],
)
def test_a_trial_that_does_not_exist_is_refused(study: Path, suffix: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        resolve_named(f"{study}{suffix}")


def test_a_study_of_another_engine_is_refused(study: Path) -> None:
    with pytest.raises(InputError, match="the study tuned rocksdb"):
        resolve_named(str(study), "leveldb")


@pytest.mark.parametrize("text", ["defualt", "absent.yaml", "absent.yaml#3", ""])
def test_what_names_no_configuration_is_refused(text: str) -> None:
    with pytest.raises(InputError, match="allowed: default, name=value"):
        resolve_named(text, source="--baseline")


def test_a_study_file_that_never_ran_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "new.yaml"
    path.write_text(STUDY)
    with pytest.raises(InputError, match="no such study folder"):
        resolve_named(str(path))


def test_a_study_in_a_folder_with_the_sign_of_a_trial_in_its_name_is_found(tmp_path: Path) -> None:
    """Of /data/c#/new.yaml it looked for the trial /new.yaml: no file that exists, it said."""
    path = tmp_path / "c#" / "new.yaml"
    path.parent.mkdir()
    path.write_text(STUDY)
    for text in (str(path), f"{path}#3"):
        with pytest.raises(InputError, match=r"c#/new\.lsmtune: there is no such study folder"):
            resolve_named(text)


def test_options_are_typed_and_split_outside_braces_only() -> None:
    text = "write_buffer_size=4MiB, compression=none,x={a=1,b={c=2,d=3}},use_fsync=true"
    assert resolve_named(text, source="CONFIG").config.options == {
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
        resolve_named(text, source="CONFIG")


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


def test_the_options_of_a_plugins_engine_are_exported(
    monkeypatch: pytest.MonkeyPatch, lsmtune: Any
) -> None:
    """A shell completed its name, and memory and noop, of which each was refused."""
    assert not {"memory", "noop"} & set(export.ENGINES)
    monkeypatch.setattr(export, "ENGINES", (*export.ENGINES, "mine"))
    said = lsmtune("export", "buffer_bytes=4MiB", "--engine=mine", "--format=json")
    assert json.loads(said.out)["options"] == {"buffer_bytes": 4 << 20}


def test_what_a_format_cannot_say_is_said_on_stderr(lsmtune: Any) -> None:
    said = lsmtune("export", "ttl=60,write_buffer_size=4MiB", "--format=ekvsb", "--engine=rocksdb")
    assert (said.status, said.out) == (0, "--write-buffer-size=4194304\n")
    assert said.err == "lsmtune: note: left out: ttl=60: ekvsb has no such flag\n"


def test_a_file_that_is_there_is_replaced_only_when_asked(tmp_path: Path, lsmtune: Any) -> None:
    path = tmp_path / "o.json"
    path.write_text("mine")
    command = ("export", "num_levels=5", "--engine=rocksdb", "--format=json", "--output", str(path))
    assert "exists already; allowed: another --output, or --force" in lsmtune(*command).refusal
    assert path.read_text() == "mine"
    assert lsmtune(*command, "--force").status == 0
    assert json.loads(path.read_text())["options"] == {"num_levels": 5}


def test_json_has_the_text_and_what_it_leaves_out(lsmtune: Any) -> None:
    flags = ("--format=db_bench", "--engine=rocksdb", "--output=-", "--json")
    document = lsmtune("export", "ttl=60,num_levels=5", *flags).json()
    assert document["text"] == "--num_levels=5\n"
    why = "db_bench of rocksdb has no such flag"
    assert document["left_out"] == [{"option": "ttl", "value": "60", "why": why}]


def test_two_configurations_are_told_apart_with_both_values(study: Path, lsmtune: Any) -> None:
    said = lsmtune("export", f"{study}#2", "--diff", "write_buffer_size=4MiB,num_levels=7")
    head, row = said.out.splitlines()
    assert head.split() == ["option", f"{study}#2", "write_buffer_size=4MiB,num_levels=7"]
    assert row.split() == ["write_buffer_size", "300000", "(~292.97KiB)", "4MiB"]
    document = lsmtune("export", f"{study}#2", "--diff=default", "--json").json()
    assert document["differences"] == [
        {
            "option": "write_buffer_size",
            "value": 300_000,
            "is_set": True,
            "other_value": 64 << 20,
            "other_is_set": False,
            "unit": "bytes",
        }
    ]


def test_the_way_back_of_a_study_is_its_baseline(study: Path, lsmtune: Any) -> None:
    said = lsmtune("export", str(study), "--format=set-options")
    forward, _, back = said.out.partition("// The way back.")
    assert '{"write_buffer_size", "200000"}' in forward
    assert '{"write_buffer_size", "50000"}' in back


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        ((), "--format: missing; allowed: rocksdb-options"),
        (("--format=java", "--diff=default"), "--diff: java says one configuration"),
        (("--diff=default", "--output=x"), "--output: a difference is no file"),
        (("--format=jsn",), "did you mean json"),
    ],
)
def test_flags_that_do_not_go_together_are_refused(
    flags: tuple[str, ...], message: str, lsmtune: Any
) -> None:
    assert message in lsmtune("export", "num_levels=5", "--engine=rocksdb", *flags).refusal


def test_options_of_a_program_of_ones_own_are_json_and_differ(tmp_path: Path, lsmtune: Any) -> None:
    study = write_study(tmp_path / "small.yaml", "mine")
    document = json.loads(lsmtune("export", f"{study}#0", "--format=json").out)
    assert (document["engine"], document["options"]) == ("mine", {"write_buffer_size": 100_000})
    said = lsmtune("export", f"{study}#0", "--diff", f"{study}#1")
    assert said.out.splitlines()[1].split() == ["write_buffer_size", "100000", "200000"]
    assert "cannot be written for mine" in lsmtune("export", f"{study}#0", "--format=java").refusal
