"""Programs of a user's own as runs: what they are given, what they report, and how they end."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import psutil
import pytest

from lsmtune.driver import watch
from lsmtune.driver.messages import Message
from lsmtune.errors import InputError
from lsmtune.model.command import (
    CommandSpec,
    JsonLines,
    JsonPointers,
    ParametersFile,
    RegularExpressions,
    Results,
)
from lsmtune.model.config import Config, EngineIdentity
from lsmtune.model.measurement import IntermediateReport, Outcome
from lsmtune.model.request import Limits, RunRequest
from lsmtune.model.workload import Workload
from lsmtune.programs.command import CommandRunner
from lsmtune.programs.command_process import CommandProcess
from patience import PATIENCE_S, in_time, wait_until_over
from troubles import why_not_ok

PROGRAM = (sys.executable, "-S", str(Path(__file__).parent / "program.py"))
LINES = JsonLines()
REQUEST = RunRequest(
    engine=EngineIdentity("program"),
    config=Config({"size": 21, "mode": "fast"}),
    workload=Workload("program", (), num=5000),
    seed=7,
    directory=Path(),
    limits=Limits(PATIENCE_S, 1 << 30, 1 << 30),
    trial=3,
)


@pytest.fixture
def request_(tmp_path: Path) -> RunRequest:
    directory = tmp_path / "run-1"
    directory.mkdir()
    return replace(REQUEST, directory=directory)


def program(*arguments: str, results: Results = LINES, **more: object) -> CommandSpec:
    spec = CommandSpec((*PROGRAM, *arguments), Path("/"), results=results, metrics=("score",))
    return replace(spec, **more)  # type: ignore[arg-type]


def literal(arguments: tuple[str, ...]) -> tuple[str, ...]:
    """`arguments` as they have to be written to arrive as they are."""
    return tuple(text.replace("{", "{{").replace("}", "}}") for text in arguments)


def wait_until_its_child_is_over(request: RunRequest) -> None:
    with contextlib.suppress(psutil.NoSuchProcess):
        wait_until_over([psutil.Process(int((request.directory / "child.pid").read_text()))])


def emptied(request: RunRequest) -> RunRequest:
    """The same once more."""
    shutil.rmtree(request.directory)
    request.directory.mkdir()
    return request


class Looks:
    """Calls `then` with the number of each look at the tree since the program has said something.

    `heard` is for the runner, which looks and listens in one thread.
    """

    def __init__(self, monkeypatch: pytest.MonkeyPatch, then: Callable[[int], None]) -> None:
        self._count: int | None = None
        look = CommandProcess._look

        def look_and_tell(process: CommandProcess) -> None:
            look(process)
            if self._count is not None:
                self._count += 1
                then(self._count)

        monkeypatch.setattr(CommandProcess, "_look", look_and_tell)

    def heard(self, _message: Message) -> None:
        self._count = self._count or 0


def test_a_program_reports_and_the_measurement_has_it(request_: RunRequest) -> None:
    measurement = CommandRunner(program("ok")).run(request_)
    assert measurement.error is None
    assert measurement.outcome is Outcome.OK
    assert measurement.reported == {"score": 42, "seed": 7}
    assert measurement.options == {"size": "21", "mode": "fast"}
    assert measurement.seed == 7
    # A program that is over before it was looked at has an unknown peak, not none; one that was
    # looked at only as it began may have had a few pages.
    assert measurement.rss_bytes_max is None or measurement.rss_bytes_max > 0


def test_arguments_environment_and_files(request_: RunRequest, tmp_path: Path) -> None:
    spec = program(
        "echo",
        "--size={size}",
        "{{{mode}}}",
        "{seed} {trial} {num} {directory}",
        folder=tmp_path,
        environment={"SIZE": "{size}", "ABSENT": "{absent}"},
        parameters_file=ParametersFile("params.json"),
    )
    spec = replace(spec, command=(*spec.command, ("--absent", "{absent}"), ("--mode", "{mode}")))
    measurement = CommandRunner(spec, environment={"PATH": "/bin"}).run(request_)
    assert measurement.outcome is Outcome.OK, measurement.error
    echo = json.loads((request_.directory / "echo.json").read_text())
    work = str(request_.directory / "work")
    assert echo["arguments"] == ["--size=21", "{fast}", f"7 3 5000 {work}", "--mode", "fast"]
    assert echo["cwd"] == str(tmp_path)
    assert json.loads(echo["files"]["params.json"]) == {"size": 21, "mode": "fast"}
    environment = echo["environment"]
    assert environment["SIZE"] == "21"
    assert "ABSENT" not in environment
    assert environment["LSMTUNE_DIRECTORY"] == work
    assert environment["LSMTUNE_SEED"] == "7"
    assert environment["LSMTUNE_TRIAL"] == "3"
    assert environment["LSMTUNE_NUM"] == "5000"
    assert environment["PATH"] == "/bin"
    assert echo["trial"] == {
        "parameters": {"size": 21, "mode": "fast"},
        "seed": 7,
        "trial": 3,
        "num": 5000,
        "directory": work,
        "metrics": ["score"],
    }


def test_a_run_without_a_size_is_told_none(request_: RunRequest) -> None:
    """It was told to have 0 records, also by `lsmtune.trial.num(default=1000)`."""
    spec = program("echo", "{num}")
    sizeless = replace(request_, workload=replace(request_.workload, num=0))
    assert CommandRunner(spec).run(sizeless).outcome is Outcome.OK
    echo = json.loads((request_.directory / "echo.json").read_text())
    assert (echo["arguments"], echo["environment"]["LSMTUNE_NUM"]) == (["-"], "-")
    assert echo["trial"]["num"] is None


def test_a_template_is_rendered(request_: RunRequest) -> None:
    file = ParametersFile("engine.ini", "[db]\nsize={size}\nmode={{{mode}}}\n")
    spec = program("echo", parameters_file=file)
    assert CommandRunner(spec).run(request_).outcome is Outcome.OK
    echo = json.loads((request_.directory / "echo.json").read_text())
    assert echo["files"] == {"engine.ini": "[db]\nsize=21\nmode={fast}\n"}


def test_a_parameter_without_a_value_is_invalid_and_starts_nothing(request_: RunRequest) -> None:
    measurement = CommandRunner(program("ok", "{bits}")).run(request_)
    assert measurement.outcome is Outcome.INVALID
    assert why_not_ok(measurement) == "command[4]: {bits} has no value in this configuration"
    assert list(request_.directory.iterdir()) == []


GOOD = [
    (("lines", '{"score": 1}', '{"score": 2.5, "p99": 3}'), JsonLines(), {"score": 2.5, "p99": 3}),
    (("lines", '{"step": 0, "score": 9}', '{"score": 1}'), JsonLines(), {"score": 1}),
    (("output", "{ set of 3 }"[2:], ' {"score": 4}'), JsonLines(stdout=True), {"score": 4}),
    (
        ("output", "10 ops/sec", "at 12.5e3 ops/sec; p99 -3 us"),
        RegularExpressions({"score": r"([\d.e]+) ops/sec", "p99": r"p99 (\S+) us$"}),
        {"score": 12500, "p99": -3},
    ),
    (
        ("document", '{"latency": {"p/99": [1, 7]}, "": 2}'),
        JsonPointers({"score": "/latency/p~199/1", "empty": "/"}, "out.json"),
        {"score": 7, "empty": 2},
    ),
    (("output", '{"a":', "5}"), JsonPointers({"score": "/a"}), {"score": 5}),
]


@pytest.mark.parametrize(("arguments", "results", "reported"), GOOD)
def test_results_in_every_form(
    request_: RunRequest,
    arguments: tuple[str, ...],
    results: Results,
    reported: dict[str, float],
) -> None:
    spec = program(*literal(arguments), results=results)
    measurement = CommandRunner(spec).run(request_)
    assert measurement.error is None
    assert measurement.outcome is Outcome.OK
    assert measurement.reported == reported


REGEX = RegularExpressions({"score": r"score=(\S*)"})
BAD = [
    (("lines", ""), JsonLines(), "without reporting score; reported: nothing"),
    (("lines", '{"scorre": 1}'), JsonLines(), "reported: scorre; did you mean score where you say"),
    (("lines", '{"step": 1, "score": 1}'), JsonLines(), "without reporting score"),
    (("lines", "1.5"), JsonLines(), "line 1: found 1.5; allowed: an object"),
    (("lines", '{"score": 1}', "done"), JsonLines(), "LSMTUNE_RESULTS, line 2: not JSON"),
    (("lines", '{"score": 1}', "", " ", "done"), JsonLines(), "LSMTUNE_RESULTS, line 4: not JSON"),
    (("lines", '{"score": "fast"}'), JsonLines(), "score: found 'fast'; allowed: a number"),
    (("lines", '{"score": true}'), JsonLines(), "score: found true; allowed: a number"),
    (("lines", '{"score": NaN}'), JsonLines(), "NaN is not a number to judge by"),
    (("lines", '{"score": 1e999}'), JsonLines(), "found inf; allowed: a finite number"),
    (("lines", '{"score": 1%s}' % ("0" * 400)), JsonLines(), "too large to compare"),
    (("lines", '{"step": 1.5, "score": 1}'), JsonLines(), "step: found 1.5; allowed: a whole"),
    (("lines", '{"step": 1}'), JsonLines(), "names no metric"),
    (("lines", "[" * 5000), JsonLines(), "not JSON"),
    (("output", '{"score": nan}'), JsonLines(stdout=True), "standard output, line 1: not JSON"),
    (("output", "nothing"), REGEX, "score: no match of 'score=(\\\\S*)' in standard output"),
    (("output", "score=fast"), REGEX, "found 'fast'; allowed: a number"),
    (("output", "score=nan"), REGEX, "found nan; allowed: a finite number"),
    (("ok",), JsonPointers({"score": "/a"}, "out.json"), "out.json: cannot be read: No such file"),
    (("document", "{"), JsonPointers({"score": "/a"}, "out.json"), "out.json: not JSON"),
    (("document", "{}"), JsonPointers({"score": "/a"}, "out.json"), "/a: member 'a' not found"),
    (("document", '{"a": {}}'), JsonPointers({"score": "/a"}, "out.json"), "/a: found {}; allow"),
]


@pytest.mark.parametrize(("arguments", "results", "why"), BAD)
def test_useless_results_are_invalid_and_say_why(
    request_: RunRequest, arguments: tuple[str, ...], results: Results, why: str
) -> None:
    spec = program(*literal(arguments), results=results)
    measurement = CommandRunner(spec).run(request_)
    assert measurement.outcome is Outcome.INVALID
    assert why in why_not_ok(measurement)


def test_a_bad_line_ends_the_run_at_once(request_: RunRequest) -> None:
    spec = program(command=("/bin/sh", "-c", 'echo oops >> "$LSMTUNE_RESULTS"; sleep 600'))
    started_s = time.monotonic()
    assert CommandRunner(spec).run(request_).outcome is Outcome.INVALID
    assert time.monotonic() - started_s < PATIENCE_S


@pytest.mark.parametrize(
    ("number", "outcome", "why"),
    [
        (3, Outcome.CRASHED, "exited with status 3; its last output: Assertion `n < 2' failed."),
        (-signal.SIGSEGV, Outcome.CRASHED, "killed by SIGSEGV"),
        (-signal.SIGKILL, Outcome.DISTURBED, "killed by SIGKILL"),
    ],
)
def test_a_program_that_fails_has_crashed_whatever_it_reported(
    request_: RunRequest,
    monkeypatch: pytest.MonkeyPatch,
    number: int,
    outcome: Outcome,
    why: str,
) -> None:
    # The kernel counts its kills for the whole machine, on which other tests make it kill.
    monkeypatch.setattr(watch, "machine_oom_kills", lambda: 0)
    measurement = CommandRunner(program("crash", str(number))).run(request_)
    assert measurement.outcome is outcome
    assert why in why_not_ok(measurement)
    assert measurement.error is not None
    assert measurement.error.found == "Assertion `n < 2' failed."
    assert measurement.reported == {"score": 1}


def test_intermediate_results_arrive_while_it_runs_and_a_cancel_ends_it(
    request_: RunRequest,
) -> None:
    heard: list[Message] = []
    cancel = threading.Event()

    def on_message(message: Message) -> None:
        heard.append(message)
        if len(heard) == 5:
            cancel.set()

    measurement = CommandRunner(program("stepwise")).run(request_, on_message, cancel)
    assert measurement.outcome is Outcome.CANCELLED
    assert heard[:3] == [IntermediateReport(n, {"score": n / 2}) for n in range(3)]


@pytest.mark.parametrize("behaviour", ["stubborn", "child", "strays"])
def test_a_cancelled_tree_is_gone_within_300_ms(request_: RunRequest, behaviour: str) -> None:
    def cancelled_in_time() -> bool:
        cancel = threading.Event()
        cancelled_s: list[float] = []

        def then(_look: int) -> None:
            cancelled_s.append(time.monotonic())
            cancel.set()

        with pytest.MonkeyPatch.context() as patch:
            looks = Looks(patch, then)
            runner = CommandRunner(program(behaviour))
            measurement = runner.run(emptied(request_), looks.heard, cancel)
        took_s = time.monotonic() - cancelled_s[0]
        assert measurement.outcome is Outcome.CANCELLED
        wait_until_its_child_is_over(request_)
        return took_s < 0.3

    in_time(cancelled_in_time)


def test_a_child_does_not_outlive_a_good_run(request_: RunRequest) -> None:
    assert CommandRunner(program("leaves_child")).run(request_).outcome is Outcome.OK
    wait_until_its_child_is_over(request_)


def test_the_memory_of_the_whole_tree_counts(request_: RunRequest) -> None:
    limited = replace(request_, limits=replace(request_.limits, memory_bytes=150 << 20))
    measurement = CommandRunner(program("eat_memory")).run(limited)
    assert measurement.outcome is Outcome.OUT_OF_MEMORY
    assert "over the limit of 150MiB" in why_not_ok(measurement)


def test_shared_memory_counts_once(request_: RunRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    limited = replace(request_, limits=replace(request_.limits, memory_bytes=250 << 20))

    def end_the_forks(look: int) -> None:
        if look == 2:  # by then, what the first has found has been added up
            (request_.directory / "looked").touch()

    looks = Looks(monkeypatch, end_the_forks)
    measurement = CommandRunner(program("share_memory")).run(limited, looks.heard)
    assert measurement.outcome is Outcome.OK, measurement.error
    assert measurement.rss_bytes_max is not None
    assert 96 << 20 < measurement.rss_bytes_max < 250 << 20


def test_our_own_memory_is_not_the_programs(request_: RunRequest) -> None:
    """A small program, started by a tester that held 340 MB, was said to have used as much."""
    held = bytearray(400 << 20)
    held[::4096] = b"x" * len(held[::4096])

    def is_seen() -> bool:
        """Not where the machine took half a second from us: it is over before it is looked at."""
        peak_bytes = CommandRunner(program("spin")).run(emptied(request_)).rss_bytes_max
        assert peak_bytes is None or peak_bytes < 300 << 20
        return peak_bytes is not None

    in_time(is_seen)
    del held


def test_disk_over_the_limit_is_killed(request_: RunRequest) -> None:
    limited = replace(request_, limits=replace(request_.limits, disk_bytes=16 << 20))
    measurement = CommandRunner(program("fill_disk")).run(limited)
    assert measurement.outcome is Outcome.DISK_FULL


def test_processor_time_is_counted(request_: RunRequest) -> None:
    measurement = CommandRunner(program("spin")).run(request_)
    assert measurement.cpu_s is not None
    assert 0.5 <= measurement.cpu_s < 5


def test_what_the_user_can_mend_is_an_input_error(request_: RunRequest, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"no-such-program: cannot be used: No such file"):
        CommandRunner(program(command=("no-such-program",))).run(request_)
    text = tmp_path / "text"
    text.write_text("not a program")
    request_.directory.rename(tmp_path / "old")
    request_.directory.mkdir()
    with pytest.raises(InputError, match="text: cannot be used: Permission denied"):
        CommandRunner(program(command=(str(text),))).run(request_)


SCRIPT = """\
set -eu
test -s "$LSMTUNE_PARAMETERS"
test "$LSMTUNE_DIRECTORY" = "$1"
cd "$LSMTUNE_DIRECTORY"
echo '{"score": 1}' >>"$LSMTUNE_RESULTS"
"""


def test_a_run_in_a_directory_named_from_here_is_found_from_elsewhere(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A program starts in the folder of its study file, wherever lsmtune was started."""
    study, here = tmp_path / "study", tmp_path / "here"
    (here / "run").mkdir(parents=True)
    study.mkdir()
    (study / "bench.sh").write_text(SCRIPT)
    monkeypatch.chdir(here)
    spec = CommandSpec(
        ("sh", "bench.sh", "{directory}"), study, results=JsonLines(), metrics=("score",)
    )
    measurement = CommandRunner(spec).run(replace(REQUEST, directory=Path("run")))
    assert measurement.outcome is Outcome.OK, measurement.error
    assert measurement.reported == {"score": 1.0}


# --- a tuner that is killed leaves no program, although no program listens for that


PARENT = """
import sys
from pathlib import Path
from lsmtune.model.command import CommandSpec
from lsmtune.model.config import Config
from lsmtune.model.config import EngineIdentity
from lsmtune.model.request import Limits, RunRequest
from lsmtune.model.workload import Workload
from lsmtune.programs.command import CommandRunner

program, directory = sys.argv[1:]
CommandRunner(CommandSpec((sys.executable, "-S", program, "child"), Path("/"))).run(
    RunRequest(
        engine=EngineIdentity("program"),
        config=Config({}),
        workload=Workload("program", (), num=1),
        seed=1,
        directory=Path(directory),
        limits=Limits(60.0, 1 << 30, 1 << 30),
    ),
    on_message=lambda message: print(type(message).__name__, flush=True),
)
"""


def test_the_program_and_its_children_go_when_the_tuner_is_killed(tmp_path: Path) -> None:
    program = Path(__file__).parent / "program.py"
    parent = subprocess.Popen(
        [sys.executable, "-c", PARENT, str(program), str(tmp_path)],
        stdout=subprocess.PIPE,
        text=True,
    )
    with parent:
        assert parent.stdout is not None
        assert parent.stdout.readline().strip() == "IntermediateReport"
        tree = psutil.Process(parent.pid).children(recursive=True)
        assert len(tree) == 3  # the program, its child and the guard
        os.kill(parent.pid, signal.SIGKILL)
        parent.wait()
    wait_until_over(tree)
