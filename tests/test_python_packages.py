"""`scripts/python_packages.py`: uv is told what pip was told."""

from __future__ import annotations

import importlib.util
import os
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[1] / "scripts" / "python_packages.py"
SPECIFICATION = importlib.util.spec_from_file_location("python_packages", SCRIPT)
assert SPECIFICATION is not None
assert SPECIFICATION.loader is not None
packages = importlib.util.module_from_spec(SPECIFICATION)
SPECIFICATION.loader.exec_module(packages)

PIP_CONF = """\
[global]
index-url = https://mirror.example/simple
extra-index-url =
    https://one.example/simple
    https://two.example/simple
cert = /etc/ssl/company.pem
proxy = http://files.example:1
[install]
proxy = http://proxy.example:3128
"""


@pytest.fixture
def settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    """What pip is told by a file and by the environment, and by nothing of this machine."""
    file = tmp_path / "pip.conf"
    file.write_text(PIP_CONF)
    for name in [name for name in os.environ if name.startswith("PIP_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("PIP_CONFIG_FILE", str(file))
    monkeypatch.setenv("PIP_TRUSTED_HOST", "one.example two.example")
    monkeypatch.setenv("PIP_FIND_LINKS", f"{tmp_path} {tmp_path}/absent https://links.example")
    said: dict[str, str] = packages.pip_settings()
    return said


def test_uv_looks_for_packages_where_pip_does(settings: dict[str, str], tmp_path: Path) -> None:
    arguments = packages.uv_arguments(settings)
    assert [a for a in arguments if "index" in a] == [
        "--default-index=https://mirror.example/simple",
        "--index=https://one.example/simple",
        "--index=https://two.example/simple",
    ]
    assert [a for a in arguments if "find-links" in a] == [
        f"--find-links={tmp_path}",
        "--find-links=https://links.example",
    ]
    assert "--allow-insecure-host=two.example" in arguments
    assert packages.uv_arguments({}) == []
    assert packages.uv_arguments({"no-index": "true"}) == ["--no-index"]


def test_uv_trusts_and_asks_whom_pip_does(settings: dict[str, str]) -> None:
    environment = packages.uv_environment(settings, {"HTTP_PROXY": "http://mine.example"})
    assert environment["SSL_CERT_FILE"] == "/etc/ssl/company.pem"
    assert environment["HTTPS_PROXY"] == "http://proxy.example:3128"
    assert environment["HTTP_PROXY"] == "http://mine.example"
    assert packages.uv_environment({}, {}) == {"UV_SYSTEM_CERTS": "1"}
