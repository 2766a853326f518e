"""`lsmtune dashboard`: where it is, how it ends, and what it refuses."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import optuna
import pytest

from lsmtune.experiment.files import STUDY_DB
from patience import PATIENCE_S


@pytest.fixture
def finished(study: Path, lsmtune: Any, fake_driver: Path) -> Path:
    """The folder of a study that has ended."""
    assert fake_driver.exists()
    assert lsmtune("tune", str(study), "--quiet", "--trials", "1").status == 0
    return study.with_suffix(".lsmtune")


class Dashboard:
    """`lsmtune dashboard` as a process of its own, on a port that is free."""

    def __init__(self, here: Path, *arguments: str) -> None:
        command = [sys.executable, "-m", "lsmtune.cli.main", "dashboard", "--port", "0", *arguments]
        self.process = subprocess.Popen(
            command,
            cwd=here,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env={**os.environ, "PYTHONPATH": ":".join(sys.path), "PYTHONUNBUFFERED": "1"},
        )
        assert self.process.stdout is not None
        self.line = self.process.stdout.readline()
        self.address = self.line.split(" ")[0]

    def end(self, number: signal.Signals) -> tuple[int, str]:
        """The status, and what was said on standard error."""
        self.process.send_signal(number)
        _, err = self.process.communicate(timeout=PATIENCE_S)
        return self.process.returncode, err


@pytest.fixture
def dashboards() -> Iterator[list[Dashboard]]:
    made: list[Dashboard] = []
    yield made
    for dashboard in made:
        if dashboard.process.poll() is None:
            dashboard.end(signal.SIGKILL)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_it_ends_quietly_while_a_browser_is_connected(
    finished: Path, dashboards: list[Dashboard], number: signal.Signals
) -> None:
    dashboards.append(dashboard := Dashboard(finished.parent))
    assert dashboard.line.endswith("  (Ctrl-C ends this page, and no study)\n")
    with urllib.request.urlopen(dashboard.address, timeout=PATIENCE_S) as page:
        assert page.url == f"{dashboard.address}study/0"
        assert b"smoke" in page.read()
    events = f"{dashboard.address}study/0/events"
    with urllib.request.urlopen(events, timeout=PATIENCE_S) as stream:
        assert stream.readline().startswith(b"event: section")
        status, err = dashboard.end(number)
    assert (status, err) == (0, "")


def test_what_is_here_are_the_studies_wherever_they_are_kept(
    finished: Path, lsmtune: Any, dashboards: list[Dashboard]
) -> None:
    """A sweep's folder was a study that cannot be read, and that of `tune --dir` was none."""
    proof = ("verify", "--engine", "memory", "--workload", "fillrandom", "-w", "num=1000")
    lsmtune(*proof, "default", "a=1", "--pairs", "6", "--dir", "proofs.lsmtune")
    assert (finished.parent / "proofs.lsmtune").is_dir()
    sweep = ("sweep", "--engine", "memory", "--workload", "fillrandom", "-w", "num=1000")
    assert lsmtune(*sweep, "--axis", "value_bytes=100,200", "--repeat", "1").status == 0
    assert (finished.parent / "sweep.lsmtune").is_dir()
    finished.rename(finished.with_name("elsewhere"))
    dashboards.append(dashboard := Dashboard(finished.parent))
    with urllib.request.urlopen(dashboard.address, timeout=PATIENCE_S) as page:
        assert page.url == f"{dashboard.address}study/0"
        assert b"smoke" in page.read()


def test_beyond_this_machine_it_prints_a_token(finished: Path, dashboards: list[Dashboard]) -> None:
    dashboards.append(dashboard := Dashboard(finished.parent, "--host", "0.0.0.0"))
    place, token = dashboard.address.split("?token=")
    assert len(token) >= 20
    port = place.rstrip("/").rpartition(":")[2]
    with pytest.raises(urllib.error.HTTPError, match="403"):
        urllib.request.urlopen(f"http://127.0.0.1:{port}/study/0", timeout=PATIENCE_S)
    opener = urllib.request.build_opener(urllib.request.HTTPCookieProcessor())
    with opener.open(f"http://127.0.0.1:{port}/?token={token}", timeout=PATIENCE_S) as page:
        assert page.url == f"http://127.0.0.1:{port}/study/0"


def test_a_port_in_use_is_one_line(finished: Path, lsmtune: Any) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        said = lsmtune("dashboard", str(finished), "--port", str(port))
    assert said.refusal == (
        f"lsmtune: dashboard: 127.0.0.1, port {port}: cannot listen there: "
        "Address already in use; allowed: another --host, another --port\n"
    )


def test_a_host_that_is_none_is_one_line(finished: Path, lsmtune: Any) -> None:
    said = lsmtune("dashboard", str(finished), "--host", "256.1.1.1", "--port", "0")
    assert "dashboard: 256.1.1.1, port 0: cannot listen there: " in said.refusal


def test_no_study_is_one_line(lsmtune: Any) -> None:
    assert lsmtune("dashboard").refusal == (
        "lsmtune: dashboard: there is no study here; allowed: a study file, or its folder\n"
    )
    assert lsmtune("dashboard", "other.yaml").refusal == (
        "lsmtune: other.yaml: there is no such study\n"
    )


def test_optunas_own_storage_opens_the_database_as_it_stands(finished: Path) -> None:
    """So do its dashboard and all other tools that take such an address."""
    study = optuna.load_study(study_name=None, storage=f"sqlite:///{finished / STUDY_DB}")
    (trial,) = study.trials
    assert trial.value is not None
    assert "write_buffer_size" in trial.params
