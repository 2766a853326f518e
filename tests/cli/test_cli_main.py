"""Every error is one line with an exit status; help is quick and whole."""

from __future__ import annotations

import importlib
import resource
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import typer
from typer.core import TyperGroup

from lsmtune.cli import commands
from lsmtune.cli.commands import COMMANDS
from lsmtune.cli.main import main
from lsmtune.errors import InputError, LsmtuneError


def test_help_lists_every_command(lsmtune: Any) -> None:
    for arguments in ([], ["--help"], ["-h"]):
        said = lsmtune(*arguments)
        assert said.status == 0
        assert all(name in said.out for name in COMMANDS)
        assert "Exit status" in said.out


@pytest.mark.parametrize("moment", ["make_context", "invoke"])
def test_an_interrupt_is_told_at_whatever_moment_it_comes(
    lsmtune: Any, monkeypatch: pytest.MonkeyPatch, moment: str
) -> None:
    """While the command line was read, it ended with status 130 and not a word."""

    def interrupt(*_arguments: object, **_named: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(TyperGroup, moment, interrupt)
    said = lsmtune("doctor")
    assert (said.status, said.err) == (130, "lsmtune: interrupted\n")


_INTERRUPTED_IN_EXEC = """
import sys
from typer.core import TyperGroup
from lsmtune.cli.main import main

def interrupt(*_arguments, **_named):
    exec("raise KeyboardInterrupt")  # as where a dataclass is made

TyperGroup.invoke = interrupt
sys.exit(main(["doctor"]))
"""


def test_an_interrupt_while_a_dataclass_is_made_exits_with_130(tmp_path: Path) -> None:
    """The line was told, and then Python died of the signal, one time in hundreds."""
    (tmp_path / "interrupted_in_exec.py").write_text(_INTERRUPTED_IN_EXEC)
    said = subprocess.run(
        [sys.executable, "-m", "interrupted_in_exec"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (said.returncode, said.stderr) == (130, "lsmtune: interrupted\n")


# What takes longer to import than a command without a run may take in all. (`import scipy` alone
# loads none of its parts.)
HEAVY = ("scipy.optimize", "scipy.special", "scipy.stats", "sklearn")
_LOADED = """
import sys
from lsmtune.cli.main import main
for line in sys.stdin:
    status = main(line.split())
    print(line.rstrip(), [name for name in sys.argv[1:] if name in sys.modules], file=sys.stderr)
    if status:
        sys.exit(status)
"""


def loaded(modules: tuple[str, ...], *lines: str) -> tuple[str, float]:
    """Which of `modules` commands have imported by the end, and the CPU seconds that they took.

    All in one process, because the imports that all of them share take longest: what one of them
    has imported is there after every later one.
    """
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    said = subprocess.run(
        [sys.executable, "-c", _LOADED, *modules],
        input="".join(f"{line}\n" for line in lines),
        capture_output=True,
        text=True,
        check=True,
    )
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu_s = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return said.stderr, cpu_s


def test_help_is_quick_and_loads_no_heavy_module() -> None:
    modules = (*HEAVY, "optuna", "numpy", "scipy", "pydantic", "sqlalchemy", "jinja2", "yaml")
    ran = [loaded(modules, "--help") for _ in range(3)]
    assert [said for said, _ in ran] == ["--help []\n"] * 3
    assert min(cpu_s for _, cpu_s in ran) < 1.0  # 0.3 s on an idle machine


@pytest.mark.usefixtures("fake_driver", "home")
def test_help_and_a_command_without_a_run_load_no_heavy_module() -> None:
    said, _ = loaded(
        HEAVY,
        *(f"{name} --help" for name in COMMANDS),
        "engines --json",
        "export default --engine rocksdb --format rocksdb-options",
        "init",
        "options rocksdb --spaces",
        "workload export ycsb-a --format ycsb",
        "workload list",
        "workload show ycsb-a",
    )
    assert said.endswith("workload show ycsb-a []\n"), said


def test_version(lsmtune: Any) -> None:
    assert lsmtune("--version").out.startswith("lsmtune 0.")


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        (["benhc"], "no such command 'benhc'. Did you mean 'bench'?"),
        (["--hepl"], "--hepl: no such option; allowed: those of `lsmtune --help`; did you mean"),
        (["bench", "--sed", "1"], "bench: --sed: no such option; "),
        (["bench", "--sed", "1"], "did you mean --seed?"),
        (["bench"], "bench: missing option '--engine'"),
        (["bench", "--engine"], "lsmtune: option '--engine' requires an argument"),
        (["tune"], "tune: missing argument 'STUDY'"),
        (["tune", "a", "b"], "tune: got unexpected extra argument(s) (b)"),
        (["engines", "ad"], "engines: no such command 'ad'. Did you mean 'add'?"),
        (["bench", "--seed", "x", "--engine", "memory"], "--seed: found 'x'; allowed: a whole"),
        (["bench", "--seed", "-1", "--engine", "memory"], "--seed: found '-1'; allowed: a whole"),
    ],
)
def test_usage_errors_are_one_line(lsmtune: Any, arguments: list[str], line: str) -> None:
    refusal = lsmtune(*arguments).refusal
    assert refusal.startswith("lsmtune: ")
    assert line in refusal


class Failing:
    """Stands in for a command's module."""

    def __init__(self, error: BaseException) -> None:
        self.error = error
        self.app = typer.Typer()
        self.app.command("doctor")(self._fail)

    def _fail(self) -> None:
        raise self.error


@pytest.mark.parametrize(
    ("error", "status", "line"),
    [
        (InputError("study.yaml", "budget", why="missing"), 2, "lsmtune: study.yaml: budget: miss"),
        (LsmtuneError("the disk is full"), 1, "lsmtune: the disk is full\n"),
        (ValueError("two\nlines"), 1, "unexpected error: ValueError: two lines; set LSMTUNE_DEB"),
        (KeyboardInterrupt(), 130, ""),
    ],
)
def test_what_a_command_raises_is_a_line_and_a_status(
    lsmtune: Any,
    monkeypatch: pytest.MonkeyPatch,
    error: BaseException,
    status: int,
    line: str,
) -> None:
    monkeypatch.delenv("LSMTUNE_DEBUG", raising=False)
    monkeypatch.setattr(commands, "importlib", _import_instead(Failing(error)))
    said = lsmtune("doctor")
    assert said.status == status
    assert line in said.err
    assert "Traceback" not in said.err
    assert said.err.count("\n") <= 1


def test_a_traceback_is_there_for_those_who_ask(
    lsmtune: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LSMTUNE_DEBUG", "1")
    monkeypatch.setattr(commands, "importlib", _import_instead(Failing(ValueError("odd"))))
    said = lsmtune("doctor")
    assert said.status == 1
    assert "Traceback" in said.err


@pytest.mark.parametrize(
    ("typed", "offered"),
    [
        ("lsmtune be", "bench"),
        ("lsmtune bench --wor", "--workload-set"),
        ("lsmtune bench --engine le", "leveldb"),
        ("lsmtune bench --workload fillr", "fillrandom"),
    ],
)
@pytest.mark.usefixtures("lsmtune")
def test_completion_offers_commands_options_and_names(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], typed: str, offered: str
) -> None:
    monkeypatch.setenv("_LSMTUNE_COMPLETE", "complete_bash")
    monkeypatch.setenv("COMP_WORDS", typed)
    monkeypatch.setenv("COMP_CWORD", str(len(typed.split()) - 1))
    with pytest.raises(SystemExit):
        main([])
    assert offered in capsys.readouterr().out.split()


def _import_instead(module: object) -> object:
    class Importer:
        import_module = staticmethod(lambda _name: module)

    assert importlib.import_module is not Importer.import_module
    return Importer
