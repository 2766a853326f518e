"""Install this checkout, editable, into the virtual environment of the Python that runs this.

    .venv/bin/python scripts/python_packages.py [EXTRA...]

uv does it in a tenth of pip's time. It does not read pip's settings, so those that say where
packages come from are passed on. Where uv cannot be had, or fails, that is said, and pip does it.
"""

from __future__ import annotations

import ast
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

PIP = (sys.executable, "-m", "pip", "--disable-pip-version-check")
CHECKOUT = Path(__file__).resolve().parents[1]


def pip_settings() -> dict[str, str]:
    """What pip was told by its files and its environment variables: setting -> value."""
    command = (*PIP, "config", "list")
    lines = subprocess.run(command, check=True, capture_output=True, text=True).stdout.splitlines()
    settings = {}
    # Sections as `pip install` reads them; the later one wins.
    for section in ("global.", "install.", ":env:."):
        for line in lines:
            name, _, value = line.partition("=")
            if name.startswith(section):
                settings[name.removeprefix(section)] = str(ast.literal_eval(value))
    return settings


def uv_arguments(settings: Mapping[str, str]) -> list[str]:
    """The arguments of `uv pip install` that say the same as these settings of pip."""

    def values(name: str) -> list[str]:
        return settings.get(name, "").split()

    arguments = [f"--default-index={url}" for url in values("index-url")]
    arguments += [f"--index={url}" for url in values("extra-index-url")]
    # pip passes over a folder that is not there, and uv fails.
    places = [p for p in values("find-links") if "://" in p or Path(p).expanduser().exists()]
    arguments += [f"--find-links={place}" for place in places]
    arguments += [f"--allow-insecure-host={host}" for host in values("trusted-host")]
    if settings.get("no-index", "").lower() in ("1", "true", "yes", "on"):
        arguments.append("--no-index")
    return arguments


def uv_environment(settings: Mapping[str, str], environment: Mapping[str, str]) -> dict[str, str]:
    """`environment` with pip's certificates and proxy, where it does not name others.

    Without either, uv trusts the authorities that the machine trusts, as pip does.
    """
    said = {"UV_SYSTEM_CERTS": "1"}
    if "cert" in settings:
        said["SSL_CERT_FILE"] = settings["cert"]
    if "proxy" in settings:
        said |= {"HTTP_PROXY": settings["proxy"], "HTTPS_PROXY": settings["proxy"]}
    return said | dict(environment)


def install_with_uv(target: str, *, compile_all: bool) -> bool:
    """Whether uv installed `target`; what it or pip says of a failure is on standard error."""
    if subprocess.run((*PIP, "install", "--quiet", "uv"), check=False).returncode != 0:
        return False
    settings = pip_settings()
    command = [sys.executable, "-m", "uv", "pip", "install", "--quiet", "--python", sys.executable]
    command += ["--compile-bytecode"] if compile_all else []
    command += [*uv_arguments(settings), "--editable", target]
    environment = uv_environment(settings, os.environ)
    return subprocess.run(command, env=environment, check=False).returncode == 0


def main(extras: list[str]) -> int:
    """Install the checkout with `extras`; returns the exit status."""
    target = f"{CHECKOUT}[{','.join(extras)}]" if extras else str(CHECKOUT)
    # Python compiles what it imports, once, unless it was told to keep nothing. Tests start it
    # hundreds of times, and side by side.
    compile_all = bool(extras or os.environ.get("PYTHONDONTWRITEBYTECODE"))
    if install_with_uv(target, compile_all=compile_all):
        return 0
    print("== uv could not install the packages; pip does, which takes longer", file=sys.stderr)
    return subprocess.run(
        (*PIP, "install", "--quiet", "--editable", target), check=False
    ).returncode


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
