"""The command runner: a program of the user's own performs the run and says what it measured."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from lsmtune.records.command import CommandSpec
from lsmtune.records.measurement import IntermediateReport, Measurement, Outcome, RunError
from lsmtune.records.request import RunRequest
from lsmtune.runners.command_process import CommandProcess, Usage
from lsmtune.runners.command_results import (
    ResultError,
    check_complete,
    final_results,
    read_line,
)
from lsmtune.runners.command_setting import STDOUT, MissingValueError, Setting, make_setting
from lsmtune.runners.conversation import ENGINE_LOG, OnMessage
from lsmtune.runners.directory import check_directory, check_free_space
from lsmtune.runners.followed_file import UnreadableError
from lsmtune.runners.judge import Judgement, died, judge_death
from lsmtune.runners.messages import Reported
from lsmtune.runners.process import tail_of
from lsmtune.runners.watch import Clock, Ending, watch

_PLACES = ("LSMTUNE_RESULTS", "standard output")


class CommandRunner:
    """Performs runs by starting the program of `spec`; see `base.Runner` for its obligations.

    `environment` is what the program inherits. A run's directory holds `work`, which is the
    program's own, `stdout.log` and, as for every engine, `engine.log`: what it printed to stderr.
    """

    def __init__(
        self,
        spec: CommandSpec,
        *,
        environment: Mapping[str, str] = os.environ,
        clock: Clock = time.monotonic,
        wall_clock: Clock = time.time,
    ) -> None:
        self._spec = spec
        self._environment = environment
        self._clock = clock
        self._wall_clock = wall_clock

    def run(
        self,
        request: RunRequest,
        on_message: OnMessage | None = None,
        cancel: threading.Event | None = None,
    ) -> Measurement:
        """One run; intermediate results come to `on_message` as `Reported`.

        A program that exits with another status than 0 has crashed, whatever it reported. One that
        reports something useless, or lacks a metric, is `invalid`. Raises InputError when the
        program or the folder cannot be used, LsmtuneError when the disk has no space for a run.
        """
        check_directory(request.directory)
        check_free_space(request.directory)
        # The program starts in the folder of its study file: a path from here means nothing there.
        request = replace(request, directory=request.directory.absolute())
        heard = _Heard(self._spec, on_message)
        started, started_unix_s = self._clock(), self._wall_clock()
        usage = Usage(0.0, 0)
        try:
            setting = make_setting(self._spec, request, self._environment)
        except MissingValueError as error:
            judgement = _invalid(str(error))
        else:
            judgement, usage = self._perform(request, setting, heard, cancel)
        return Measurement(
            outcome=judgement.outcome,
            engine=request.engine,
            options=request.config.engine_options(),
            workload=request.workload.name,
            seed=request.seed,
            started_unix_s=started_unix_s,
            elapsed_s=self._clock() - started,
            cpu_s=usage.cpu_s,
            rss_bytes_max=usage.rss_bytes_max or None,
            error=judgement.error,
            warnings=judgement.warnings,
            reported=heard.metrics,
            intermediate=tuple(heard.intermediate),
        )

    def _perform(
        self,
        request: RunRequest,
        setting: Setting,
        heard: _Heard,
        cancel: threading.Event | None,
    ) -> tuple[Judgement, Usage]:
        stdout, stderr = request.directory / STDOUT, request.directory / ENGINE_LOG
        process = CommandProcess(
            setting.arguments,
            setting.environment,
            self._spec.folder,
            stdout,
            stderr,
            setting.followed,
        )
        ending = None
        with process:
            try:
                ending = watch(
                    process, request.directory, request.limits, heard.take, cancel, self._clock
                )
            except (ResultError, UnreadableError) as error:
                judgement = _invalid(str(error))
        if ending is not None:
            log_tail = tail_of(stderr) or tail_of(stdout)
            judgement = judge_program(ending, setting.arguments[0], log_tail)
        if judgement.outcome is Outcome.OK:
            judgement = heard.finish(setting, request)
        return judgement, process.usage


@dataclass
class _Heard:
    """What a program has said so far."""

    spec: CommandSpec
    on_message: OnMessage | None
    metrics: dict[str, float] = field(default_factory=dict)
    intermediate: list[IntermediateReport] = field(default_factory=list)
    lines: list[int] = field(default_factory=lambda: [0] * len(_PLACES))

    def take(self, line: tuple[int, bytes]) -> bool:
        """Takes a line of one of the followed files; none of them is ever known to be the last."""
        place, text = line
        self.lines[place] += 1
        if place == 1 and not text.lstrip().startswith(b"{"):
            return False  # standard output is free for other text
        said = read_line(text, f"{_PLACES[place]}, line {self.lines[place]}")
        if not isinstance(said, Reported):
            self.metrics.update(said)
            return False
        self.intermediate.append(IntermediateReport(said.step, dict(said.metrics)))
        if self.on_message is not None:
            self.on_message(said)
        return False

    def finish(self, setting: Setting, request: RunRequest) -> Judgement:
        """What the program reported at its end, now that it has exited well."""
        try:
            stdout = request.directory / STDOUT
            self.metrics.update(final_results(self.spec.results, setting.directory, stdout))
            check_complete(self.metrics, self.spec.metrics)
        except ResultError as error:
            return _invalid(str(error))
        return Judgement(Outcome.OK)


def judge_program(ending: Ending, program: str, log_tail: str) -> Judgement:
    """How `program` ended: what lsmtune did to it counts more than how it died of that."""
    if ending.outcome is not None:
        why = f"{program}: {ending.why}"
        return died(ending.outcome, why, log_tail)
    if ending.exit_status == 0:
        return Judgement(Outcome.OK)
    if ending.exit_status > 0:
        return died(Outcome.CRASHED, f"{program} exited with status {ending.exit_status}", log_tail)
    return judge_death(ending.exit_status, f"in {program}", log_tail)


def _invalid(why: str) -> Judgement:
    return Judgement(Outcome.INVALID, RunError("result", why))
