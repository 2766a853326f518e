"""`lsmtune verify` in CI: its comment, its history, earlier results, and the ready workflows."""

from __future__ import annotations

import json
import math
import os
import random
import subprocess
import sys
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import pytest
import yaml

from lsmtune.cli.choices import resolve_named
from lsmtune.cli.gate import Entry, History, changes, commit_here, entry_of, read_history
from lsmtune.cli.verify_result import _title
from lsmtune.errors import InputError, disk_full
from lsmtune.experiment.schedule import Arm
from lsmtune.model.config import Config, EngineIdentity
from lsmtune.model.goal import Objective
from lsmtune.model.request import LIMITS_DEFAULT
from lsmtune.model.verdict import GuardResult, Verdict, VerdictOutcome
from lsmtune.model.workload import Phase, PhaseKind, Workload
from lsmtune.proof.paired import ProofPlan
from lsmtune.proof.standalone import Verification

pytestmark = pytest.mark.usefixtures("fake_driver")
EXAMPLES = Path(__file__).parents[2] / "examples" / "ci"
GATE = (
    *("verify", "--engine", "memory", "--workload", "fillrandom", "-w", "num=1000"),
    *("--fail-if", "worse", "--smallest-effect", "3%"),
    *("--burst", "--no-guards", "--no-crash-test", "--no-power-test"),
)
SLOW = ("--candidate", "fake=paced,pace=0.5")
SAME = ("--candidate", "a=1")


# --- the history


def entries(*levels: tuple[int, float], noise: float = 0.005) -> list[Entry]:
    """So many entries of each level of the ratio; their commits are numbers."""
    draws, found = random.Random(4), list[Entry]()
    for count, level in levels:
        for _ in range(count):
            ratio = level * math.exp(draws.gauss(0.0, noise))
            commit = f"{len(found):040}"
            found.append(Entry("s", commit, 1.8e9, "equivalent", "m", "maximize", ratio))
    return found


def test_a_change_over_commits_is_found_where_it_began() -> None:
    (change,) = changes(entries((12, 1.4), (10, 1.19)), None)
    assert change.commit == f"{12:040}"
    assert change.factor == pytest.approx(0.85, rel=0.02)
    assert changes(entries((22, 1.4)), None) == []
    assert changes(entries((4, 1.4), (3, 1.0)), None) == []  # too few to tell
    assert changes(entries((12, 1.0), (12, 1.02)), 0.03) == []  # too small to matter


def test_a_history_says_what_it_saw_in_words() -> None:
    found = tuple(changes(entries((12, 1.4), (10, 1.19)), None))
    assert list(History(Path("h.jsonl"), 22, found).lines()) == [
        "history: 1 change in 22 entries of h.jsonl:",
        "  the ratio is 0.85 of before from 000000000000 (2027-01-15 08:00 UTC) on",
    ]
    (none,) = History(Path("h.jsonl")).lines()
    assert none == "history: nothing was added to h.jsonl, as there is no ratio"
    (few,) = History(Path("h.jsonl"), 1, ()).lines()
    assert few == "history: no change in 1 entry of h.jsonl (fewer than 8 cannot show one)"


def test_each_result_is_a_line_and_only_its_own_series_counts(lsmtune: Any, home: Path) -> None:
    kept = ("--history", "history.jsonl", "--json")
    first = lsmtune(*GATE, *SAME, *kept, "--commit", "c1")
    assert first.status == 0, first.err
    assert first.json()["history"] == {"file": "history.jsonl", "entries": 1, "changes": []}
    lsmtune(*GATE, "--baseline", "b=1", *SAME, *kept, "--commit", "c2")
    third = lsmtune(*GATE, *SLOW, *kept, "--commit", "c3")
    assert third.status == 4, third.err
    assert third.json()["history"]["entries"] == 2
    lines = [json.loads(line) for line in (home / "history.jsonl").read_text().splitlines()]
    assert [line["commit"] for line in lines] == ["c1", "c2", "c3"]
    assert [line["outcome"] for line in lines] == ["equivalent", "equivalent", "worse"]
    assert lines[0]["series"] == lines[2]["series"] != lines[1]["series"]
    assert lines[2]["candidate"] == "fake=paced,pace=0.5"


def test_another_memory_limit_or_engine_of_the_baseline_begins_a_series_of_its_own() -> None:
    """Each looked like a change of the code. Another build of the candidate may be one."""
    old, new = (EngineIdentity("rocksdb", version, "/lib.so") for version in ("10.2.1", "10.10.1"))
    workload = Workload("w", (Phase("w", PhaseKind.MEASURE),), num=1)
    less = replace(LIMITS_DEFAULT, memory_bytes=1 << 30)
    verdict = Verdict(VerdictOutcome.BETTER, "m", "maximize", 0.95, 6, ratio=1.2)

    def series(baseline: EngineIdentity, **changes: Any) -> str:
        sides = Arm(baseline, Config()), Arm(new, Config())
        plan = ProofPlan(pairs=6)
        asked = Verification(*sides, workload, Objective(), LIMITS_DEFAULT, 1, plan)
        entry = entry_of(replace(asked, **changes), verdict, "c", 0.0)
        assert entry is not None
        return entry.series

    first = series(old)
    assert series(old, candidate=Arm(old, Config())) == first
    assert series(replace(old, library="/elsewhere/lib.so")) == first
    assert len({first, series(new), series(old, limits=less)}) == 3


def test_a_result_that_is_no_text_is_not_called_a_study_file(tmp_path: Path) -> None:
    path = tmp_path / "result.json"
    path.write_bytes(b"\xff")
    with pytest.raises(InputError, match=r"allowed: a result of lsmtune, or an option file, in"):
        resolve_named(str(path))


def test_a_history_of_years_is_read(tmp_path: Path) -> None:
    """At 1 MiB, some 2,500 results, every later gate was refused: a study file is not larger."""
    path = tmp_path / "h.jsonl"
    line = json.dumps(asdict(replace(entries((1, 1.0))[0], candidate="x" * 40_000)))
    path.write_text(f"{line}\n" * 30)
    assert path.stat().st_size > 2**20
    assert len(read_history(path)) == 30
    path.write_bytes(b"\xff")
    with pytest.raises(InputError, match=r"allowed: a history of lsmtune verify in UTF-8"):
        read_history(path)


@pytest.mark.parametrize(
    ("text", "flags", "refusal"),
    [
        ("{}\n", (), "h.jsonl:1: is no entry of a history; allowed: a line that lsmtune verify"),
        ("\n\nnothing\n", (), "h.jsonl:3: is no entry"),
        (
            json.dumps(asdict(replace(entries((1, 1.0))[0], ratio=-1.0))),
            (),
            "h.jsonl:1: ratio: fou",
        ),
        ("", ("--history", "-"), "--history: found '-'; allowed: a file that is added to"),
        ("", ("--markdown", "-", "--json"), "--json: stands beside --markdown -"),
        # The comment replaced the history, where that was new or with --force.
        ("", ("--markdown", "./h.jsonl", "--force"), "--markdown: is the file of --history, too"),
    ],
)
def test_what_cannot_be_kept_is_refused_before_any_run(
    lsmtune: Any, home: Path, text: str, flags: tuple[str, ...], refusal: str
) -> None:
    (home / "h.jsonl").write_text(text)
    said = lsmtune(*GATE, *SAME, "--history", "h.jsonl", *flags)
    assert said.status == 2
    assert refusal in said.err
    assert "pair" not in said.err
    assert (home / "h.jsonl").read_text() == text


@pytest.mark.parametrize("flags", [("--history", "kept"), ("--markdown", "/dev/full")])
def test_a_verdict_that_cannot_be_written_is_told_all_the_same(
    lsmtune: Any, monkeypatch: pytest.MonkeyPatch, flags: tuple[str, str]
) -> None:
    """The disk was full when the history was written, and a proof of hours was lost."""

    def refuse(path: Path, _content: object) -> Path:
        raise disk_full(path)

    monkeypatch.setattr("lsmtune.cli.gate.write_output", refuse)
    said = lsmtune(*GATE, *SLOW, *flags, "--json")
    assert said.status == 1
    assert said.json()["verdict"]["outcome"] == "worse"
    assert f"{flags[1]}: the disk is full" in said.json()["error"]["message"]
    assert f"lsmtune: {flags[1]}: the disk is full" in said.err.splitlines()[-1]
    assert "worse: 0.50x the baseline" in lsmtune(*GATE, *SLOW, *flags).out


def test_the_commit_is_that_of_the_system_that_runs_it() -> None:
    assert commit_here({"GITHUB_SHA": "a", "CI_COMMIT_SHA": "b"}) == "a"
    assert commit_here({"CI_COMMIT_SHA": "b"}) == "b"


# --- the comment, and earlier results


def test_a_comment_has_the_verdict_what_differs_and_the_price(lsmtune: Any, home: Path) -> None:
    said = lsmtune(*GATE, *SLOW, "--markdown", "comment.md")
    assert said.status == 4, said.err
    comment = (home / "comment.md").read_text()
    assert comment.startswith(
        "<!-- lsmtune verify -->\n# lsmtune: fake=paced,pace=0.5 is proved wor"
    )
    assert "0.50x the baseline (sustained\\_throughput\\_ops\\_s)" in comment
    assert "| pace | not set | 0.5 |" in comment
    assert "| throughput | higher | 0.50\u00d7 |" in comment
    assert "All these intervals hold together at 95 %: " in comment
    assert "That needs " in comment
    piped = lsmtune(*GATE, *SLOW, "--markdown", "-")
    assert piped.out.startswith("<!-- lsmtune verify -->\n")
    assert "fake=paced,pace=0.5: worse: 0.50x the baseline" in piped.err


def test_a_comment_on_a_gain_that_breaks_a_guard_does_not_say_that_nothing_is_proved() -> None:
    broken = GuardResult("write_amplification <= 1.5 * baseline", 6, 6)
    verdict = Verdict(
        *(VerdictOutcome.NOT_PROVEN, "m", "maximize", 0.95, 6),
        **{"ratio": 1.2, "ratio_low": 1.1, "ratio_high": 1.3, "guards": (broken,)},
    )
    assert _title(verdict, "fast") == "fast is not recommended"
    without_gain = replace(verdict, ratio_low=0.9)
    assert _title(without_gain, "fast") == "of fast nothing is proved"
    assert _title(replace(verdict, guards=()), "fast") == "of fast nothing is proved"


def test_a_later_gate_compares_with_what_an_earlier_result_speaks_for(
    lsmtune: Any, home: Path
) -> None:
    """A candidate that was not proved better is not what the next one is compared with."""
    fast = lsmtune(*GATE, "--candidate", "fake=paced,pace=2", "--json")
    assert fast.status == 0, fast.err
    (home / "fast.json").write_text(fast.out)
    slow = lsmtune(*GATE, "--baseline", "b=1", *SLOW, "--json")
    (home / "slow.json").write_text(slow.out)
    again = lsmtune(*GATE, "--baseline", "fast.json", "--candidate", "fake=paced,pace=2", "--json")
    assert again.json()["baseline"]["options"] == {"fake": "paced", "pace": 2}
    assert again.json()["verdict"]["outcome"] == "equivalent"
    assert resolve_named("slow.json").config.options == {"b": 1}
    assert resolve_named("slow.json#candidate").config.options == {"fake": "paced", "pace": 0.5}
    with pytest.raises(InputError, match=r"none of it; found 'slow\.json#best'; allowed: #c"):
        resolve_named("slow.json#best")
    least = {"gain": {"outcome": "better"}, "configuration": {"a": 1}, "candidate": None}
    (home / "least.json").write_text(json.dumps(least))
    assert resolve_named("least.json").config.options == {"a": 1}


# --- the ready workflows


def commands_of(name: str) -> tuple[dict[str, str], list[str]]:
    """The variables of a workflow, and what it has its shell run, in order."""
    workflow = yaml.safe_load((EXAMPLES / name).read_text())
    if name == "github-actions.yml":
        steps = workflow["jobs"]["gate"]["steps"]
        return workflow["env"], [step["run"] for step in steps if "run" in step]
    job = workflow["lsmtune"]
    before = "\n".join([*job["before_script"], *job["script"]])  # in one shell
    return job["variables"], [before, *job["after_script"]]


@pytest.mark.parametrize(
    ("name", "fails_with"),
    [("github-actions.yml", {0: 0, 3: 0, 4: 4}), ("gitlab-ci.yml", {0: 0, 3: 3, 4: 4})],
)
@pytest.mark.parametrize(
    ("candidate", "status"), [("a=1", 0), ("fake=paced,pace=0.5", 4), ("fake=fail,line=1", 2)]
)
def test_the_commands_of_a_workflow_run_as_written(
    home: Path, name: str, fails_with: dict[int, int], candidate: str, status: int
) -> None:
    """Of an engine that is made up; what fetches, builds and posts is only noted."""
    variables, commands = commands_of(name)
    stubs = home / "stubs"
    stubs.mkdir()
    for program in ("git", "make", "gh", "curl"):
        (stubs / program).write_text(f'#!/bin/sh\necho {program} "$@" >> {home}/called\n')
    code = f"import sys; sys.path[:0] = {sys.path!r}; from lsmtune.cli.main import main"
    lsmtune = f"#!{sys.executable}\n{code}; sys.exit(main())\n"
    (stubs / "lsmtune").write_text(lsmtune)
    for stub in stubs.iterdir():
        stub.chmod(0o755)
    made_up = {"ENGINE": "memory", "WORKLOAD": "fillrandom", "NUM": "1000", "CANDIDATE": candidate}
    given = {
        "PATH": f"{stubs}:{os.environ['PATH']}",
        "RUNNER_TEMP": str(home),
        "GITHUB_PATH": str(home / "path"),
        "GITHUB_SHA": "c1",
        "PULL_REQUEST": "7",
    }
    environment = {**os.environ, **variables, **made_up, **given}
    ended = []
    for command in commands:
        shell = ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", command]
        ran = subprocess.run(
            shell, cwd=home, env=environment, capture_output=True, text=True, check=False
        )
        ended.append((ran.returncode, command, ran.stdout + ran.stderr))
    (verified,) = (each for each in ended if "lsmtune verify" in each[1])
    assert verified[0] == fails_with.get(status, status), verified[2]
    assert all(code == 0 for code, command, _ in ended if "lsmtune verify" not in command)
    called = (home / "called").read_text()
    assert "git clone --depth 1 https://git.example.org/lsmtune.git" in called
    assert "comment.md" in called
    result = json.loads((home / "result.json").read_text())
    assert ("error" in result) == (status == 2)
    assert (home / "comment.md").exists() == (home / "history.jsonl").exists() == (status != 2)
