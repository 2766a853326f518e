"""`lsmtune show` and `lsmtune ls`: stored studies in a screen, and in a line each."""

from __future__ import annotations

import errno
from dataclasses import replace
from pathlib import Path
from typing import Any

import optuna
import pytest

from lsmtune.cli import ls
from lsmtune.driver.messages import PhaseFinished, parse_message
from lsmtune.experiment.folder import default_folder
from lsmtune.experiment.store import Role
from lsmtune.machine.files import is_owned
from lsmtune.model.config import Config, EngineIdentity
from lsmtune.model.measurement import Measurement, Outcome
from lsmtune.model.verdict import GuardResult, MetricRatio, ProvedAt, Verdict, VerdictOutcome
from lsmtune.study.build import load_spec
from lsmtune.study.session import FLEET_ELAPSED
from lsmtune.study.start import open_study
from made_up import add_run

GOLDEN = Path(__file__).parents[2] / "protocol" / "golden" / "messages-run.jsonl"
STUDY = """\
version: 1
name: small
engine: {name: rocksdb}
workload: {name: fillrandom, num: 1000}
objective: {metric: latency_us_p99}
space:
  write_buffer_size: {type: int, low: 64KiB, high: 256MiB}
budget: {trials: 2, time: 1h}
"""
BETTER = Verdict(
    *(VerdictOutcome.BETTER, "latency_us_p99", "minimize", 0.95, 6),
    ratio=0.5,
    ratio_low=0.45,
    ratio_high=0.55,
    others=(MetricRatio("rss_bytes_max", "minimize", 2.0, 1.9, 2.1),),
    guards=(
        GuardResult("space_amplification <= 1.25 * baseline", 6, 2),
        GuardResult("write_amplification <= 1.5 * baseline", 6, 6, 6.6, 6.0, 7.0),
    ),
    proved_at=(ProvedAt("fillrandom", 1000, 1000),),
)


@pytest.fixture
def study(home: Path) -> Path:
    """A study file in the current folder, whose second trial has half the latency."""
    return stored_study(home / "small.yaml", STUDY)


def stored_study(path: Path, text: str) -> Path:
    """The study file at `path`, with its folder beside it."""
    path.write_text(text)
    (phase,) = (
        message.phase
        for message in map(parse_message, GOLDEN.read_text().splitlines())
        if isinstance(message, PhaseFinished)
    )
    engine = EngineIdentity("rocksdb", "10.2.1")
    size = optuna.distributions.IntDistribution(64 << 10, 256 << 20)
    with open_study(default_folder(path), load_spec(path)) as folder:
        folder.note_origin(path)
        runs = [(None, 64 << 20, 100.0), (0, 4 << 20, 200.0), (1, 128 << 20, 50.0)]
        for number, buffer, latency_us in runs:
            options = {"write_buffer_size": buffer}
            run = Measurement(
                *(Outcome.OK, engine, {}, "fillrandom", 1, 1_795_226_400.0, 1.0),
                (replace(phase, latency_us_p99=latency_us),),
            )
            if number is None:
                add_run(folder.measurements, Role.BASELINE, run, config=Config())
                continue
            trial = optuna.trial.create_trial(
                value=latency_us, params=options, distributions={"write_buffer_size": size}
            )
            folder.optuna_study().add_trial(trial)
            add_run(folder.measurements, Role.TRIAL, run, config=Config(options), trial=number)
    return path


def prove(study: Path, verdict: Verdict) -> None:
    with open_study(default_folder(study), load_spec(study)) as folder:
        folder.measurements.set_verdict(verdict)


def shown(lsmtune: Any, study: Path) -> list[str]:
    said = lsmtune("show", str(study))
    assert said.status == 0, said.err
    lines = [" ".join(line.split()) for line in said.out.splitlines()]
    assert len(lines) <= 24
    return lines


def test_a_study_without_a_verdict_shows_its_best_and_how_to_go_on(
    lsmtune: Any, study: Path
) -> None:
    assert shown(lsmtune, study) == [
        "small: rocksdb 10.2.1; fillrandom, 1,000 records",
        "target p99 latency (lower is better); at a price of at most "
        "write_amplification <= 1.5 * baseline, space_amplification <= 1.25 * baseline, "
        "latency_us_p99 <= 1.25 * baseline",
        "budget 1h or 2 trials; 3s and 2 trials so far",
        "best trial 1: 50 µs, 0.50x the baseline's in the search",
        "write_buffer_size = 128MiB (baseline: 64MiB)",
        "verdict none yet: what the search found is a promise, not a proof",
        "next lsmtune tune small.yaml",
    ]


def test_an_option_at_the_default_that_the_study_states_does_not_differ(
    lsmtune: Any, home: Path
) -> None:
    """The end of `tune`, and `show`, took the catalogue's; the report knew better."""
    text = STUDY.replace("high: 256MiB", "high: 256MiB, default: 128MiB")
    study = stored_study(home / "small.yaml", text)
    assert "all 1 as in the baseline" in shown(lsmtune, study)
    assert lsmtune("show", str(study), "--json").json()["best"]["differs"] == {}


def test_the_time_of_a_fleet_is_that_of_the_clock(lsmtune: Any, study: Path) -> None:
    with open_study(default_folder(study), load_spec(study)) as folder:
        folder.measurements.set_fact(FLEET_ELAPSED, 1.0)
    assert "budget 1h or 2 trials; 1s and 2 trials so far" in shown(lsmtune, study)


def test_the_price_stands_beside_the_verdict_broken_guards_first(lsmtune: Any, study: Path) -> None:
    prove(study, BETTER)
    lines = shown(lsmtune, study)
    at = next(number for number, line in enumerate(lines) if line.startswith("verdict"))
    assert lines[at : at + 5] == [
        "verdict 0.50x the baseline (latency_us_p99, lower is better), 95 % CI 0.45 to 0.55, "
        "6 pairs",
        "price write_amplification <= 1.5 * baseline: broken in 6 of 6 pairs, "
        "6.60\u00d7 (6.00 to 7.00)",
        "space_amplification <= 1.25 * baseline: held; broken in 2 of 6 pairs",
        "peak resident memory: worse, 2.00\u00d7 (1.90 to 2.10)",
        "proved at fillrandom: 1,000 records, 1,000 operations",
    ]
    assert lines[-2].startswith("next lsmtune export small.yaml --format rocksdb-options")


@pytest.mark.parametrize(
    ("outcome", "command"),
    [
        (VerdictOutcome.NOT_PROVEN, "lsmtune tune small.yaml --budget TIME"),
        (VerdictOutcome.WORSE, "lsmtune report small.yaml"),
    ],
)
def test_what_to_do_next_follows_from_the_verdict(
    lsmtune: Any, study: Path, outcome: VerdictOutcome, command: str
) -> None:
    prove(study, replace(BETTER, outcome=outcome))
    document = lsmtune("show", str(study), "--json").json()
    assert document["next"][0].startswith(command)
    assert document["verdict"]["outcome"] == outcome.value
    assert document["best"]["differs"] == {"write_buffer_size": 128 << 20}
    assert document["study"]["file"] == str(study)


def test_what_to_do_next_is_said_of_the_folder_that_is_shown(
    lsmtune: Any, study: Path, home: Path
) -> None:
    """Without its --dir, tune began another study, and export took the options of another one."""
    default_folder(study).rename(home / "other")
    by_file = ("show", str(study), "--dir", "other", "--json")
    assert lsmtune(*by_file).json()["next"] == ["lsmtune tune small.yaml --dir other"]
    with open_study(home / "other", load_spec(study)) as folder:
        folder.measurements.set_verdict(BETTER)
    export, report = lsmtune("show", "other", "--json").json()["next"]
    assert export.startswith("lsmtune export other --format rocksdb-options ")
    assert report == "lsmtune report other"
    assert lsmtune(*by_file).json()["next"] == [export, report]


def test_studies_are_listed_with_what_they_came_to(
    lsmtune: Any, study: Path, home: Path, tmp_path: Path
) -> None:
    prove(study, BETTER)
    broken = home / "broken.lsmtune"
    broken.mkdir()
    (home / "other").mkdir()
    for name in (".lsmtune-owned", "study.yaml"):
        (broken / name).write_text("{}")
    said = lsmtune("ls", "--json")
    assert said.status == 0, said.err
    bad, good = said.json()["studies"]
    assert bad["path"] == "broken.lsmtune"
    assert "there are no measurements here" in bad["error"]
    assert (good["name"], good["engine"], good["workload"]) == ("small", "rocksdb", "fillrandom")
    assert (good["trials"], good["verdict"], good["ratio"]) == (2, "better", 0.5)
    out = lsmtune("ls").out
    assert "small.lsmtune   small  rocksdb  fillrandom       2  better 0.50x" in out
    assert lsmtune("ls", str(tmp_path / "here" / "other")).out == (
        f"no study in {tmp_path / 'here' / 'other'}; next step: lsmtune init\n"
    )
    assert "no such folder" in lsmtune("ls", "nowhere").refusal


def test_a_stored_study_that_cannot_be_read_is_named_by_its_copy(lsmtune: Any, study: Path) -> None:
    """The list named the file that the study was made of, in which nothing is wrong."""
    stored = default_folder(study) / "study.yaml"
    stored.write_text(stored.read_text().replace("name: small", "name: [small]"))
    (listed,) = lsmtune("ls", "--json").json()["studies"]
    assert listed["error"].startswith(f"{stored.relative_to(study.parent)}:2: name: ")
    assert str(study) not in listed["error"]


def test_a_folder_that_cannot_be_looked_into_hides_no_other_study(
    lsmtune: Any, study: Path, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`lsmtune ls` ended with `Permission denied` where one folder was another user's.

    So it did at a link into such a folder, though no link is a study.
    """
    (home / "theirs").mkdir()
    (home / "link").symlink_to("theirs/inner")

    def refused(path: Path) -> bool:
        if path.name == "theirs":
            raise PermissionError(errno.EACCES, "Permission denied", str(path / ".lsmtune-owned"))
        return is_owned(path)

    is_dir = Path.is_dir

    def refused_link(path: Path) -> bool:
        if path.name == "link":
            raise PermissionError(errno.EACCES, "Permission denied", str(path))
        return is_dir(path)

    monkeypatch.setattr(Path, "is_dir", refused_link)
    monkeypatch.setattr(ls, "is_owned", refused)
    said = lsmtune("ls", "--json")
    assert said.status == 0, said.err
    ours, theirs = said.json()["studies"]
    assert (ours["path"], ours["error"]) == (default_folder(study).name, "")
    assert (theirs["path"], theirs["error"]) == ("theirs", "cannot be read (Permission denied)")


@pytest.mark.parametrize("command", ["show", "report"])
def test_a_study_that_is_not_there_is_said_beside_dir_too(
    lsmtune: Any, study: Path, command: str
) -> None:
    """STUDY was not looked at: a misspelt file beside --dir showed the folder of another study."""
    (study.parent / "other").mkdir()
    refusal = lsmtune(command, "stady.yaml", "--dir", "other").refusal
    assert f"{command}: STUDY: no such file or folder; found 'stady.yaml'" in refusal
    (study.parent / "study.lsmtune").mkdir()
    refusal = lsmtune(command, "study.lsmtune", "--dir", "other").refusal
    assert "--dir: stands beside the study folder study.lsmtune; found 'other'" in refusal
    assert "other: " in lsmtune(command, str(study), "--dir", "other").refusal
