"""`lsmtune worker`: what Slurm is asked for, submitit's local jobs, and what it refuses."""

from __future__ import annotations

import os
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from lsmtune.cli.worker import fleet_environment, submit_jobs, token_advice, token_path
from lsmtune.errors import InputError

ASKED = ("worker", "--join", "10.0.0.1:6379", "--slurm", "300", "--dir", "/scratch")
# In the place of Slurm's: keeps what it was given, and says what Slurm says.
SBATCH = """\
#!/bin/sh
cp "$1" "$(dirname "$0")/submitted"
echo "Submitted batch job 71"
"""


@pytest.fixture
def nodes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with programs of Slurm that do nothing, at the head of PATH; a token is set."""
    pytest.importorskip("submitit", reason="submitit is not installed: make dev")
    programs = tmp_path / "slurm-programs"
    programs.mkdir()
    for name, text in (("sbatch", SBATCH), ("srun", "#!/bin/sh\n")):
        (programs / name).write_text(text)
        (programs / name).chmod(0o755)
    monkeypatch.setenv("PATH", f"{programs}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.setenv("RAY_AUTH_TOKEN", "0" * 64)
    monkeypatch.setenv("LSMTUNE_HOME", str(tmp_path / "home"))
    return programs


def test_slurm_is_asked_for_so_many_nodes_of_their_own(lsmtune: Any, nodes: Path) -> None:
    said = lsmtune(*ASKED, "--time", "8h", "--partition", "short")
    assert (said.status, said.err) == (0, "")
    assert [line.split(";")[0] for line in said.out.splitlines()] == [
        f"submitted job 71_{n}" for n in range(300)
    ]
    lines = (nodes / "submitted").read_text().splitlines()
    for wanted in ("array=0-299%300", "exclusive", "partition=short", "time=480", "nodes=1"):
        assert f"#SBATCH --{wanted}" in lines


def test_what_slurm_refuses_is_one_line(lsmtune: Any, nodes: Path) -> None:
    (nodes / "sbatch").write_text(
        "#!/bin/sh\necho 'sbatch: error: invalid partition' >&2\nexit 1\n"
    )
    said = lsmtune(*ASKED, "--time", "8h")
    assert said.status == 1
    assert "invalid partition" in said.err.splitlines()[-1]


@pytest.mark.parametrize(
    ("more", "why"),
    [
        ((), "--time 8h"),
        (("--time", "330s"), "whole minutes"),
        (("--time", "4m"), "from 5m"),
        (("--time", "1h", "--name", "a"), "the name of its node"),
    ],
)
def test_what_slurm_cannot_be_asked_for_is_one_line(
    lsmtune: Any, nodes: Path, more: tuple[str, ...], why: str
) -> None:
    assert why in lsmtune(*ASKED, *more).refusal
    assert not (nodes / "submitted").exists()


def test_hosts_need_a_disk_of_their_own(lsmtune: Any, nodes: Path) -> None:
    """The default folder is below a home that all nodes share."""
    said = lsmtune("worker", "--join", "10.0.0.1:6379", "--slurm", "2", "--time", "8h")
    assert "--dir DIR" in said.refusal
    assert not (nodes / "submitted").exists()


def test_without_slurm_or_submitit_one_line_says_so(
    lsmtune: Any, nodes: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (nodes / "srun").unlink()
    assert "no srun here" in lsmtune(*ASKED, "--time", "8h").refusal
    monkeypatch.setattr("lsmtune.errors.find_spec", lambda name: name != "submitit" or None)
    assert "pip install 'lsmtune[slurm]'" in lsmtune(*ASKED, "--time", "8h").refusal


def test_flags_of_slurm_alone_say_so(lsmtune: Any) -> None:
    said = lsmtune("worker", "--join", "10.0.0.1:6379", "--time", "8h")
    assert "--slurm N" in said.refusal


@pytest.mark.parametrize(
    ("flags", "refusal"),
    [
        (("--join", "10.0.0.1:6379", "--port", "7000"), "--port: has no effect beside --join"),
        (("--begin", "10.0.0.1", "--name", "a"), "--name: has no effect beside --begin"),
        (("--begin", "10.0.0.1", "--dir", "/scratch"), "--dir: has no effect beside --begin"),
    ],
)
def test_a_flag_that_is_for_the_other_kind_of_worker_says_so(
    lsmtune: Any, flags: tuple[str, ...], refusal: str
) -> None:
    """It was dropped: who gave the head's port by --port measured for whoever had another."""
    assert refusal in lsmtune("worker", *flags).refusal


def test_jobs_run_the_command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Processes of this machine in the place of Slurm's jobs."""
    submitit = pytest.importorskip("submitit", reason="submitit is not installed: make dev")
    local = partial(submitit.AutoExecutor, tmp_path, cluster="local")
    monkeypatch.setattr(submitit, "AutoExecutor", lambda _folder, cluster: local())  # noqa: ARG005
    command = ["sh", "-c", 'echo "job $SUBMITIT_LOCAL_JOB_ID"']
    jobs = submit_jobs(command, 2, tmp_path, minutes=60, partition=None)
    said = [str(job.result()).strip() for job in jobs]
    assert said == [f"job {job.job_id}" for job in jobs]


@pytest.mark.parametrize("address", ["", "10.0.0.1:6379", "fd00::1"])
def test_a_fleet_begins_at_an_address_without_a_port(
    lsmtune: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, address: str
) -> None:
    """`--join 10.0.0.1:6379:6379` was the line to copy, and no address an unexpected error."""
    monkeypatch.setattr("lsmtune.errors.find_spec", lambda _name: True)
    refusal = lsmtune("worker", "--begin", address).refusal
    assert f"--begin: found {address!r}; allowed: an address of this machine" in refusal
    assert not (tmp_path / "home" / "fleet-address").exists()


def test_the_token_that_is_to_be_copied_is_the_one_that_is_used(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """With RAY_AUTH_TOKEN_PATH it was ~/.ray/auth_token, which nobody had made."""
    for name in ("RAY_AUTH_TOKEN", "RAY_AUTH_TOKEN_PATH"):
        monkeypatch.delenv(name, raising=False)
    assert token_advice() == f"copy {token_path()} to"
    monkeypatch.setenv("RAY_AUTH_TOKEN_PATH", "/etc/fleet-token")
    assert token_advice() == "copy /etc/fleet-token to"
    monkeypatch.setenv("RAY_AUTH_TOKEN", "0" * 64)
    assert token_advice() == "set RAY_AUTH_TOKEN on"


def test_an_empty_token_is_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A full disk left one behind, with which the next `--begin` began a fleet."""
    for name in ("RAY_AUTH_TOKEN", "RAY_AUTH_TOKEN_PATH", "RAY_AUTH_MODE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    path = token_path()
    path.parent.mkdir()
    path.touch()
    with pytest.raises(InputError, match="there is no token: copy it from the machine"):
        fleet_environment(begin=False)
    fleet_environment(begin=True)
    made = path.read_text()
    assert (len(made), path.stat().st_mode & 0o777) == (64, 0o600)
    fleet_environment(begin=True)
    fleet_environment(begin=False)
    assert path.read_text() == made
