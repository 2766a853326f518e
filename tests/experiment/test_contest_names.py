"""Names of teams, and which log is whose and of which round."""

from __future__ import annotations

from pathlib import Path

import pytest
from contest_parts import log_text

from lsmtune.errors import InputError
from lsmtune.experiment.contest import entries_by_team, team_and_entry
from lsmtune.experiment.contest_scores import log_files, scores_of_logs


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def write(*names: str, text: str = "") -> None:
    for name in names:
        Path(name).parent.mkdir(parents=True, exist_ok=True)
        Path(name).write_text(text or log_text(load_a=1000.0, run_a=2000.0))


def test_a_file_names_its_team() -> None:
    write("a.properties", "OPTIONS-000007", "odd=name.properties")
    found = entries_by_team(
        ["a.properties", "OPTIONS-000007", "odd=name.properties", "B b=a.properties", "default"]
    )
    assert list(found.items()) == [
        ("a", "a.properties"),
        ("OPTIONS-000007", "OPTIONS-000007"),
        ("odd=name", "odd=name.properties"),
        ("B b", "a.properties"),
        ("default", "default"),
    ]
    assert team_and_entry("fast=write_buffer_size=4MiB") == ("fast", "write_buffer_size=4MiB")


def test_options_that_are_longer_than_a_file_name_may_be_are_options() -> None:
    """The operating system refused them as the name of a file, and that was the command's end."""
    options = ",".join(f"option_{number}=4MiB" for number in range(30))
    assert team_and_entry(f"a={options}") == ("a", options)
    with pytest.raises(InputError, match="no file matches"):
        log_files([f"a={'x' * 300}*"])
    with pytest.raises(InputError, match="cannot be read: File name too long"):
        scores_of_logs([*log_files([f"a={'x' * 300}"]), *log_files([f"b={'x' * 300}"])])


@pytest.mark.parametrize("text", ["=a.properties", "a\nb=x", f"{'n' * 81}=x", "bad\udcff=x"])
def test_what_names_no_team_is_refused(text: str) -> None:
    with pytest.raises(InputError, match="names no team"):
        team_and_entry(text)


def test_two_teams_of_one_name_are_refused() -> None:
    write("x/a.properties", "y/a.properties")
    with pytest.raises(InputError, match=r"two teams are named a: .*NAME=FILE for each"):
        entries_by_team(["x/a.properties", "y/a.properties"])


def test_team_and_round_are_in_the_name_of_a_log() -> None:
    write("No5_Team1_2.txt", "No5_Team1_1.txt", "b-round1.log", "b-round2.log")
    found = log_files(["No5_Team1_2.txt", "No5_Team1_1.txt", "b-round2.log", "b-round1.log"])
    assert [(file.team, file.round, file.path.name) for file in found] == [
        ("No5_Team1", 1, "No5_Team1_1.txt"),
        ("No5_Team1", 2, "No5_Team1_2.txt"),
        ("b", 1, "b-round1.log"),
        ("b", 2, "b-round2.log"),
    ]


def test_a_pattern_and_logs_without_a_round() -> None:
    write("r/t_1.txt", "r/t_2.txt", "first.txt", "second.txt")
    for pattern in ("r/t_*.txt", f"{Path.cwd()}/r/t_*.txt"):
        found = log_files([f"A={pattern}", "B=second.txt", "B=first.txt"])
        assert [(file.team, file.round, file.path.name) for file in found] == [
            ("A", 1, "t_1.txt"),
            ("A", 2, "t_2.txt"),
            ("B", 1, "second.txt"),
            ("B", 2, "first.txt"),
        ]


def test_files_of_a_pattern_name_their_team_and_the_pattern_does_not() -> None:
    """One with a path of more than 80 characters was refused as a name that is too long."""
    folder = "results/" * 12
    write(f"{folder}t_1.txt", f"{folder}t_2.txt", "bad\udcff_1.txt")
    found = log_files([f"{folder}t_*.txt"])
    assert [(file.team, file.round) for file in found] == [("t", 1), ("t", 2)]
    with pytest.raises(InputError, match="names no team"):  # nor could it be shown
        log_files(["bad*.txt"])


def test_scores_of_logs() -> None:
    write("a_1.txt", "a_2.txt", text=log_text(load_a=1000.0, run_b=3000.0))
    write("b_1.txt", "b_2.txt", text=log_text(load_a=1500.0, run_b=2500.0))
    found, _ = scores_of_logs(log_files(["a_1.txt", "a_2.txt", "b_2.txt", "b_1.txt"]))
    assert found.phases == ("load-a", "run-b")
    assert found.rounds == (1, 2)
    assert found.values["run-b"] == {"a": (3000.0, 3000.0), "b": (2500.0, 2500.0)}


@pytest.mark.parametrize(
    ("texts", "said"),
    [
        (["A=none_*.txt"], "no file matches"),
        (["A=a**.txt"], "FILE: "),
        (["a_1.txt", "a_2.txt"], "all are logs of one team, a"),
        (["A=a_1.txt", "A=c_1.txt"], "c_1.txt: is round 1 of A, as a_1.txt is"),
        (["A=a_1.txt", "A=plain.txt"], "plain.txt: has no round in its name"),
        (["a_1.txt", "a_2.txt", "c_1.txt"], "c has other rounds than a; found 'rounds 1'"),
        (["a_1.txt", "other_1.txt"], "found 'load-a'; allowed: load-a, run-a as in a_1.txt"),
        (["a_1.txt", "empty_1.txt"], "empty_1.txt"),
        (["a_1.txt", "absent_1.txt"], "absent_1.txt: no such file"),
        (["a_1.txt", "zero_1.txt"], "zero_1.txt: line 2: found 0.0; allowed: above 0"),
    ],
)
def test_what_is_wrong_with_logs_is_one_line(texts: list[str], said: str) -> None:
    write("a_1.txt", "a_2.txt", "c_1.txt", "plain.txt")
    write("other_1.txt", text=log_text(load_a=1000.0))
    write("empty_1.txt", text="nothing\n")
    write("zero_1.txt", text=log_text(load_a=0.0, run_a=1.0))
    with pytest.raises(InputError) as caught:
        scores_of_logs(log_files(texts))
    assert said in str(caught.value)
