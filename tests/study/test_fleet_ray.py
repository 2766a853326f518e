"""A fleet on Ray's own daemons: two hosts of this machine, in a process of its own."""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

SCALING = Path(__file__).parents[2] / "benchmarks" / "fleet" / "scaling.py"


@pytest.mark.skipif(importlib.util.find_spec("ray") is None, reason="Ray is not installed")
def test_two_hosts_on_ray_share_a_study(tmp_path: Path) -> None:
    # A process of its own: Ray's warnings and signals are not ours.
    command = [sys.executable, str(SCALING), "--hosts", "2", "--run", "0.5", "--each", "4"]
    ended = subprocess.run(
        [*command, "--port", str(20_000 + os.getpid() % 9_000)],
        env=os.environ | {"TMPDIR": str(tmp_path), "HOME": str(tmp_path)},
        check=False,
        capture_output=True,
        text=True,
        timeout=300,
    )
    if "no address but its loopback" in ended.stderr:
        pytest.skip("Ray takes no fleet on the loopback, and this machine has no other address")
    assert ended.returncode == 0, ended.stderr[-2000:]
    found = json.loads(ended.stdout)
    assert found["outcomes"] == {"ok": 8}
    assert found["hosts_used"] == 2
    assert found["discarded"] == 0
