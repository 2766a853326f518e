"""What the documents show works: study files load, commands exist, names and defaults are right.

A `yaml` block with `version:` is a whole study file. Any other one shows some fields; those that it
lacks are completed from a minimal study. A line of a block that begins with `lsmtune`, and every
`lsmtune ...` in running text, is parsed as a command line. The `sh` blocks of the tutorial and of
the how-tos are run, too, one after the other, on a real engine and smaller: `small` says how. Not
run is a block behind a comment `not run: ...`. A `yaml` block that begins with a file's name is
that file.
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
import signal
import subprocess
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import typer
import yaml
from optuna.samplers import BaseSampler
from typer.main import get_command

from lsmtune.cli.commands import COMMANDS, load_command
from lsmtune.cli.main import PROGRAM, app, main
from lsmtune.engines.formats import IMPORTERS
from lsmtune.engines.ready import known_spaces
from lsmtune.model.setting import Setting
from lsmtune.search.in_memory_study import InMemoryStudy
from lsmtune.search.pruners import PRUNERS
from lsmtune.search.sampler import SamplerContext, proposed
from lsmtune.search.samplers import SAMPLERS
from lsmtune.study.build import parse_spec
from lsmtune.study.start import outside
from lsmtune.testing.search import MAXIMIZE, NUMBERS

ROOT = Path(__file__).resolve().parent.parent
PAGES = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"), *ROOT.glob("examples/*/README.md")])
SEARCHING = ROOT / "docs" / "searching.md"
OWN_SAMPLERS = [name for name in SAMPLERS if SAMPLERS.origin(name) is None]

_BLOCK = re.compile(r"^```(?P<language>\w*)\n(?P<text>.*?)^```$", re.M | re.S)
_SPAN = re.compile(rf"(?<!`)`({PROGRAM}\s[^`]+)`(?!`)")
_SHELL_ENDS = frozenset({"&&", "||", "|", ";", ">", "2>"})
_SHELL_LANGUAGES = frozenset({"", "sh", "console", "bash"})
_PLACEHOLDER = "COMMAND"  # `lsmtune COMMAND --help` is about every command

# What a block that shows only some fields is completed with.
_MINIMAL = {
    "version": "version: 1",
    "name": "name: documented",
    "engine": "engine: {name: rocksdb}",
    "workload": "workload: {name: fillrandom}",
    "space": "space: rocksdb-basic",
    "budget": "budget: {trials: 10}",
}
_IN_PLACE_OF = {"workload": "workloads"}

# Option files that examples name.
_OPTION_FILES = {
    "OPTIONS-000007": """\
[Version]
  rocksdb_version=10.2.1
  options_file_version=1.1

[DBOptions]
  max_background_jobs=4

[CFOptions "default"]
  write_buffer_size=33554432
""",
    "production.properties": "rocksdb.write_buffer_size=33554432\nrocksdb.compression=lz4\n",
}


def blocks(page: Path) -> Iterator[tuple[int, str, str]]:
    """The fenced blocks of `page`: line, language, text."""
    text = page.read_text()
    for found in _BLOCK.finditer(text):
        yield text.count("\n", 0, found.start()) + 1, found["language"], found["text"]


def command_lines(page: Path) -> Iterator[tuple[int, str, bool]]:
    """The command lines of `page`: line, text, and whether it is whole (in a block)."""
    for line, language, text in blocks(page):
        if language not in _SHELL_LANGUAGES:
            continue
        for index, shown in enumerate(text.splitlines()):
            plain = shown.strip().removeprefix("$ ").removeprefix(".venv/bin/")
            if plain.startswith(f"{PROGRAM} "):
                yield line + 1 + index, plain, True
    outside = _BLOCK.sub(lambda found: "\n" * found[0].count("\n"), page.read_text())
    for found in _SPAN.finditer(outside):
        # A span may go over the end of a line.
        yield outside.count("\n", 0, found.start()) + 1, " ".join(found[1].split()), False


def words_of(line: str) -> list[str]:
    """The arguments of a command line, up to what belongs to the shell."""
    # Not by `shlex`, to which the number in `study.yaml#17` is a comment.
    words = shlex.split(re.sub(r"(^|\s)#.*", "", line))[1:]
    ends = [index for index, word in enumerate(words) if word in _SHELL_ENDS]
    return words[: ends[0]] if ends else words


def completed(text: str) -> str:
    """A whole study file that has the fields of `text`."""
    given = yaml.safe_load(text)
    if "version" in given:
        return text
    added = [
        field
        for name, field in _MINIMAL.items()
        if name not in given and _IN_PLACE_OF.get(name) not in given
    ]
    return "\n".join([*added, text])


def parse(words: list[str], *, whole: bool) -> None:
    """Parses a command line as `lsmtune` would; running text may leave required arguments out."""
    if not words or words[0].startswith("-"):
        root: Any = get_command(app)
        root.make_parser(typer.Context(root)).parse_args(args=list(words))
        return
    name, *rest = words
    assert name in COMMANDS, f"no command {name}"
    command = load_command(name)
    if hasattr(command, "commands") and rest and rest[0] in command.commands:
        command, rest = command.commands[rest[0]], rest[1:]
    context = typer.Context(command, info_name=name)
    values, left, _ = command.make_parser(context).parse_args(args=list(rest))
    assert not left, f"unexpected {left}"
    if whole and "help" not in values:
        for parameter in command.params:
            required = parameter.required and values.get(parameter.name) is None
            assert not required, f"missing {parameter.name}"


def _id(page: Path, line: int) -> str:
    return f"{page.relative_to(ROOT)}:{line}"


STUDIES = [
    pytest.param(text, id=_id(page, line))
    for page in PAGES
    for line, language, text in blocks(page)
    if language == "yaml"
]
COMMAND_LINES = [
    pytest.param(text, whole, id=f"{_id(page, line)} {text[:40]}")
    for page in PAGES
    for line, text, whole in command_lines(page)
]


@pytest.mark.parametrize("text", STUDIES)
def test_every_study_of_the_documents_loads(text: str, tmp_path: Path) -> None:
    for name, content in _OPTION_FILES.items():
        (tmp_path / name).write_text(content)
    spec = parse_spec(completed(text), tmp_path / "study.yaml")
    assert [line for line in outside(spec) if "is not tried" in line] == []


@pytest.mark.parametrize(("line", "whole"), COMMAND_LINES)
def test_every_command_of_the_documents_is_one(line: str, whole: bool) -> None:
    words = words_of(line)
    if words[0] != _PLACEHOLDER:
        parse(words, whole=whole)


def test_the_pages_hold_examples_at_all() -> None:
    assert len(STUDIES) > 10
    assert len(COMMAND_LINES) > 30


@pytest.mark.parametrize(
    "line",
    [
        "lsmtune tun study.yaml",
        "lsmtune tune study.yaml --trial-count 3",
        "lsmtune tune",
        "lsmtune tune a.yaml b.yaml",
        "lsmtune engines forget rocksdb",
        "lsmtune --no-such-flag",
    ],
)
def test_the_check_itself_sees_what_is_wrong(line: str) -> None:
    with pytest.raises((AssertionError, _usage_error())):
        parse(words_of(line), whole=True)


def _usage_error() -> type[Exception]:
    """The error of the command line's parser, which typer keeps to itself."""
    return next(c for c in typer.BadParameter.__mro__ if c.__name__ == "UsageError")


def rows(heading: str) -> dict[str, list[str]]:
    """The rows of the table below `heading` that begin with a name: their other cells, by it."""
    section = SEARCHING.read_text().split(f"\n{heading}", 1)[1].split("\n## ", 1)[0]
    found = re.findall(r"^\| `([^`]+)` \|(.*)\|$", section, re.M)
    return {name: [cell.strip() for cell in cells.split("|")] for name, cells in found}


@pytest.mark.parametrize(
    ("heading", "names"),
    [
        ("### Ready spaces", known_spaces()),
        ("## Who proposes", OWN_SAMPLERS),
        ("## What ends early", PRUNERS),
        ("## Importing", IMPORTERS),
    ],
)
def test_the_tables_have_every_name_and_no_other(heading: str, names: Any) -> None:
    assert set(rows(heading)) == set(names)


def shown(setting: Setting) -> str:
    """A setting and its default as the tables have them."""
    default = setting.default
    return f"`{setting.name}`" + (f" {default}" if isinstance(default, int | float | str) else "")


@pytest.mark.parametrize("name", OWN_SAMPLERS)
def test_the_settings_of_a_sampler_are_those_of_the_code(name: str) -> None:
    kind = SAMPLERS[name]
    _, settings, several = rows("## Who proposes")[name]
    assert settings == ", ".join(shown(setting) for setting in kind.settings)
    assert several == ("yes" if kind.several_objectives else "no")


@pytest.mark.parametrize("name", PRUNERS)
def test_the_settings_of_a_pruner_are_those_of_the_code(name: str) -> None:
    table = rows("## What ends early")
    settings = table[name][1].replace("and those of `median`", table["median"][1])
    assert settings == ", ".join(shown(setting) for setting in PRUNERS[name].settings)


def test_the_readme_has_every_command() -> None:
    readme = (ROOT / "README.md").read_text()
    assert [name for name in COMMANDS if f"| `{PROGRAM} {name}" not in readme] == []


class _Server:
    """What the documents' Python stands for: something that can be measured."""

    crashed = False
    rate = 1000.0
    p99 = 100.0

    def round(self) -> float:
        return self.rate


PROGRAMS = [
    pytest.param(text, id=_id(page, line))
    for page in PAGES
    for line, language, text in blocks(page)
    if language == "python"
]


@pytest.mark.parametrize("text", PROGRAMS)
def test_every_program_of_the_documents_runs(
    text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    names: dict[str, Any] = {
        "start": lambda _parameters: _Server(),
        "one_round": lambda _parameters, seed: float(seed),
    }
    exec(compile(text.replace("< 100:", "< 12:"), "documents", "exec"), names)


def test_the_sampler_of_the_documents_goes_on_after_a_stop_as_if_it_had_not_been_stopped() -> None:
    """It had one random stream for the whole study, which began again."""
    page = blocks(ROOT / "docs" / "plugins.md")
    names: dict[str, Any] = {}
    exec(next(text for _, _, text in page if "SamplerKind(" in text), names)
    context, study = SamplerContext(NUMBERS, 7, {}, MAXIMIZE), InMemoryStudy(MAXIMIZE, None)

    def proposal(sampler: BaseSampler, number: int) -> object:
        trial = study.trial(number)
        sampler.before_trial(study.as_optuna(), trial)
        return next(proposed(sampler, NUMBERS, study.as_optuna(), trial)).values

    straight, numbers = names["KIND"].make(context), [study.add() for _ in range(3)]
    asked = [proposal(straight, number) for number in numbers]
    assert asked == [proposal(names["KIND"].make(context), number) for number in numbers]
    assert asked[0] != asked[1]


# --- what is run

RUN_PAGES = [ROOT / "docs" / "tutorial.md", *sorted(ROOT.glob("docs/how-to-*.md"))]
_NOT_RUN = re.compile(r"<!-- not run: .*? -->\n+```.*?^```$", re.M | re.S)
# A hundredth of the data, or a thousandth where 1000 of them are left.
_SIZE = re.compile(r"((?:recordcount|operationcount|num|reads)(?:=|: |\": ))(\d{4,}?|\d+)0{2,3}\b")
_FILE = re.compile(r"# (\S+\.yaml)\n")
_OWN_LINE = re.compile(rf"^({PROGRAM} .*\n)", re.M)
# Two trials in the place of a study's budget, six pairs and two states after a power loss in a
# proof, runs that are not made longer until they are sustained, and no guards, which runs of
# milliseconds break by chance.
_PAIRS, _POWER_STATES = 6, 2


def small(words: list[str]) -> list[str]:
    """The command `words`, smaller."""
    if words[0] == "verify":
        return [*words, f"--pairs={_PAIRS}", f"--power-states={_POWER_STATES}"]
    if words[0] == "tune" and not (file := Path(words[1])).with_suffix(".lsmtune").exists():
        study = yaml.safe_load(file.read_text())
        proof, burst = {"pairs": _PAIRS}, {}
        if "engine" in study:
            proof["power_states"] = _POWER_STATES
            burst = {"burst": True, "guards": []}
        proof = study.get("proof", {}) | proof
        file.write_text(yaml.safe_dump(study | burst | {"budget": {"trials": 2}, "proof": proof}))
    return words


@pytest.mark.engine
@pytest.mark.parametrize("page", RUN_PAGES, ids=lambda page: page.stem)
def test_the_commands_of_a_page_run_one_after_the_other(
    page: Path,
    rocksdb_library: Path,
    driver: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    request: pytest.FixtureRequest,
) -> None:
    text = _SIZE.sub(r"\1\2", _NOT_RUN.sub("", page.read_text()))
    if "db_bench --" in text and shutil.which("db_bench") is None:
        pytest.skip("db_bench is not there")
    quickstart = tmp_path / "examples" / "quickstart" / "study.yaml"
    quickstart.parent.mkdir(parents=True)
    quickstart.write_text(_SIZE.sub(r"\1\2", (ROOT / quickstart.relative_to(tmp_path)).read_text()))
    # Commands set what this process does on it.
    request.addfinalizer(partial(signal.signal, signal.SIGTERM, signal.getsignal(signal.SIGTERM)))
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("LSMTUNE_DRIVER", str(driver))
    for variable in ("OLD", "NEW"):
        monkeypatch.setenv(variable, str(rocksdb_library))
    registered = f"```sh\n{PROGRAM} engines add {rocksdb_library}\n```\n"
    for found in _BLOCK.finditer(registered + text):
        language, block = found["language"], found["text"]
        if language == "yaml" and (name := _FILE.match(block)):
            Path(name[1]).write_text(block)
        elif language == "sh":
            for part in _OWN_LINE.split(block):
                perform(part, capsys)


def perform(part: str, capsys: pytest.CaptureFixture[str]) -> None:
    """A line of lsmtune in this process, which has loaded all that it takes; others in a shell."""
    if not _OWN_LINE.match(part):
        subprocess.run(("bash", "-e", "-c", part), check=True, capture_output=True)
        return
    line, _, file = os.path.expandvars(part).partition(" > ")
    words = small(shlex.split(line)[1:])
    capsys.readouterr()
    status = main(words)
    said = capsys.readouterr()
    if file:
        Path(file.strip()).write_text(said.out)
    # So little data proves nothing of the page: a verdict is taken for done.
    assert status == 0 or (words[0] == "verify" and status in (3, 4)), part + said.out + said.err
