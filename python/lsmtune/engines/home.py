"""Where lsmtune keeps what outlives a study: engine libraries, their registry, build logs."""

from __future__ import annotations

import os
from pathlib import Path

import platformdirs


def lsmtune_home() -> Path:
    """The folder named by LSMTUNE_HOME, else the platform's folder for user data. Not created."""
    chosen = os.environ.get("LSMTUNE_HOME")
    if chosen:
        return Path(chosen).expanduser().absolute()
    return platformdirs.user_data_path("lsmtune")


def engines_folder() -> Path:
    """Where engine libraries and their registry live. Not created."""
    return lsmtune_home() / "engines"


def logs_folder() -> Path:
    """Where the logs of downloads and builds are kept. Not created."""
    return lsmtune_home() / "logs"
