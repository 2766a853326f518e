"""Fixtures that every room's tests share: the driver, release engine libraries, a home."""

from __future__ import annotations

import itertools
import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
from alembic.config import Config
from alembic.script import ScriptDirectory
from hypothesis import HealthCheck, settings

from lsmtune.driver.conversation import find_driver
from lsmtune.engines.libraries import find_library
from lsmtune.engines.library import build_type
from lsmtune.errors import InputError

# A shell starts background jobs with SIGINT ignored, and nohup ignores SIGHUP. Programs inherit
# that, and the tests that interrupt a command would wait for an answer that never comes.
signal.signal(signal.SIGINT, signal.default_int_handler)
signal.signal(signal.SIGHUP, signal.SIG_DFL)

# A busy machine takes its time for an example; how many there are is what counts.
settings.register_profile("unhurried", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("unhurried")

SETUP = "run `make setup` first, or set {variable} to its path"


@pytest.fixture(scope="session")
def driver() -> Path:
    """The driver's binary: LSMTUNE_DRIVER, or the one that `make setup` put into the venv."""
    try:
        return find_driver()
    except InputError as error:
        pytest.fail(str(error))


@pytest.fixture(scope="session")
def rocksdb_library() -> Path:
    """A release build of RocksDB: LSMTUNE_TEST_ROCKSDB, or the installed one."""
    return _release_library("rocksdb", "LSMTUNE_TEST_ROCKSDB")


@pytest.fixture(scope="session")
def leveldb_library() -> Path:
    """A release build of LevelDB: LSMTUNE_TEST_LEVELDB, or the installed one."""
    return _release_library("leveldb", "LSMTUNE_TEST_LEVELDB")


@pytest.fixture(scope="session")
def _homes(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Numbered here: pytest lists all folders before it numbers one, and there are thousands."""
    folder = tmp_path_factory.mktemp("homes")
    return (folder / str(number) for number in itertools.count())


@pytest.fixture(autouse=True)
def lsmtune_home(_homes: Iterator[Path], monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home of its own for every test, empty: no test reads or writes the user's."""
    home = next(_homes)
    home.mkdir()
    monkeypatch.setenv("LSMTUNE_HOME", str(home))
    return home


@pytest.fixture(scope="session", autouse=True)
def _libraries_before_homes() -> None:
    """Look the installed libraries up while LSMTUNE_HOME is still the user's."""
    for name, variable in (
        ("rocksdb", "LSMTUNE_TEST_ROCKSDB"),
        ("leveldb", "LSMTUNE_TEST_LEVELDB"),
    ):
        if not os.environ.get(variable):
            try:
                os.environ[variable] = str(find_library(name).path)
            except InputError:
                continue


@pytest.fixture(scope="session", autouse=True)
def _migrations_are_read_once() -> Iterator[None]:
    """Optuna executes its migrations three times for each new study: most of what making one takes.

    They are the same each time.
    """
    read = ScriptDirectory.from_config
    migrations: dict[str | None, ScriptDirectory] = {}

    def from_config(config: Config) -> ScriptDirectory:
        place = config.get_main_option("script_location")
        if place not in migrations:
            migrations[place] = read(config)
        return migrations[place]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ScriptDirectory, "from_config", from_config)
        yield


def _release_library(name: str, variable: str) -> Path:
    path = Path(os.environ.get(variable, f"no {name} library is known"))
    if not path.is_file():
        pytest.fail(f"{path}: not a file; {SETUP.format(variable=variable)}")
    if not build_type(path, name).is_release:
        pytest.fail(f"{path}: not a release build; {SETUP.format(variable=variable)}")
    return path
