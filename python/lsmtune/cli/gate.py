"""`lsmtune verify` as a gate in CI: its exit status, a comment for people, a history of commits."""

from __future__ import annotations

import hashlib
import json
import math
import os
import subprocess
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import pairwise
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING

from lsmtune.cli.choices import config_text
from lsmtune.cli.flags import ForceOption, flag
from lsmtune.cli.output import check_apart, check_outputs, note
from lsmtune.errors import InputError, check_name
from lsmtune.machine.files import STDOUT, check_output, write_output
from lsmtune.model.codec import decode, encode
from lsmtune.model.text import read_text
from lsmtune.stats.changepoint import VALUES_LEAST, segments

if TYPE_CHECKING:
    from lsmtune.model.verdict import Verdict
    from lsmtune.proof.standalone import Verification

NOT_BETTER, WORSE = "not-better", "worse"
FAIL_IF = (NOT_BETTER, WORSE)
_HISTORY_FLAG = "--history"
# Where the systems that run such gates say which commit it is: GitHub's, GitLab's.
_COMMIT_VARIABLES = ("GITHUB_SHA", "CI_COMMIT_SHA")
_UNIX_S_MAX = 2**34  # in the year 2514
_SHORT = 12  # characters of a commit, as people are shown it


@dataclass(frozen=True)
class GateFlags:
    """What the exit status is to say, and what is left for later."""

    fail_if: str = flag(
        "--fail-if NAME",
        "Verdicts that are not status 0: not-better, all but better; or worse, all but better and "
        "equivalent.",
        NOT_BETTER,
        known=FAIL_IF,
    )
    markdown: Path | None = flag(
        "--markdown FILE", "Write the result as a comment for a pull request; - is stdout."
    )
    history: Path | None = flag(
        f"{_HISTORY_FLAG} FILE",
        "Add the result to this file, a JSON line each, and look for changes over commits.",
    )
    commit: str | None = flag(
        "--commit NAME", "What the history calls it; that of GitHub, GitLab or git if unset."
    )
    force: ForceOption = False

    def check(self, smallest_effect: str | None, *, as_json: bool) -> bool:
        """Whether standard output takes the comment. Raises InputError for what cannot be meant."""
        check_name(self.fail_if, FAIL_IF, "--fail-if")
        if self.fail_if == WORSE and smallest_effect is None:
            note("without --smallest-effect nothing is proved equivalent: equals end with status 3")
        if self.commit is not None and self.history is None:
            raise InputError("--commit", why=f"has no effect without {_HISTORY_FLAG} FILE")
        if self.history is not None:
            if self.history == STDOUT:
                raise InputError(_HISTORY_FLAG, found="-", allowed="a file that is added to")
            check_output(self.history)
            read_history(self.history)
        check_apart([(_HISTORY_FLAG, self.history), ("--markdown", self.markdown)])
        return check_outputs([("--markdown", self.markdown)], force=self.force, as_json=as_json)


# --- The history: a line for each result


@dataclass(frozen=True)
class Entry:
    """A line of the history. Those of one `series` differ in their candidate and its build alone.

    `ratio` is the candidate's over the baseline's `metric`, on one machine at one time: entries of
    different machines compare, as long as the baseline is the same.
    """

    series: str
    commit: str
    unix_s: float
    outcome: str
    metric: str
    direction: str
    ratio: float
    ratio_low: float | None = None
    ratio_high: float | None = None
    pairs: int = 0
    workload: str = ""
    engine: str = ""
    candidate: str = ""


@dataclass(frozen=True)
class Change:
    """The ratio's level is `factor` of what it was, from the entry of `commit` on."""

    commit: str
    unix_s: float
    factor: float


def read_history(path: Path) -> list[Entry]:
    """The entries of `path`, none where it is not there. Raises InputError, with the line."""
    if not path.exists():
        return []
    return parse_history(read_text(path, "a history of lsmtune verify"), str(path))


def parse_history(text: str, source: str) -> list[Entry]:
    """The entries of a history. Raises InputError, with the line, for what is none."""
    allowed, entries = "a line that lsmtune verify --history wrote", list[Entry]()
    for number, line in enumerate(text.split("\n"), start=1):
        if not line.strip():
            continue
        place = f"{source}:{number}"
        try:
            entry = decode(Entry, json.loads(line))
        except (ValueError, RecursionError):
            raise InputError(place, why="is no entry of a history", allowed=allowed) from None
        if not (entry.ratio > 0 and math.isfinite(entry.ratio)):
            raise InputError(place, "ratio", found=entry.ratio, allowed="a number above 0")
        if not 0 <= entry.unix_s <= _UNIX_S_MAX:
            raise InputError(place, "unix_s", found=entry.unix_s, allowed=f"0 to {_UNIX_S_MAX}")
        entries.append(entry)
    return entries


def entry_of(asked: Verification, verdict: Verdict, commit: str, unix_s: float) -> Entry | None:
    """What is kept of a result; None where there is no ratio to keep."""
    if verdict.ratio is None or verdict.ratio <= 0:
        return None
    baseline, options = asked.baseline.engine, dict(asked.baseline.config.options)
    # Without the path of the library: machines differ in that.
    engine = [baseline.name, baseline.version, baseline.build]
    memory_bytes = asked.limits.memory_bytes
    series = [engine, memory_bytes, asked.workload, asked.objective, options]
    text = json.dumps(encode(series), sort_keys=True)
    return Entry(
        series=hashlib.sha256(text.encode()).hexdigest()[:16],
        commit=commit,
        unix_s=round(unix_s, 3),
        outcome=verdict.outcome.value,
        metric=verdict.metric,
        direction=verdict.direction,
        ratio=verdict.ratio,
        ratio_low=verdict.ratio_low,
        ratio_high=verdict.ratio_high,
        pairs=verdict.pairs,
        workload=asked.workload.name,
        engine=asked.engine.title,
        candidate=config_text(asked.candidate.config),
    )


def changes(entries: Sequence[Entry], smallest_effect: float | None) -> list[Change]:
    """Where the level of the entries' ratio changes, in their order.

    By the test that anchors of a study are cut with (`stats.changepoint`): at each look it sees one
    in at most 5 of 100 histories without a change, and none in fewer than 8 entries. Levels that
    differ by less than `smallest_effect` are one.
    """
    logs = [math.log(entry.ratio) for entry in entries]
    least = None if smallest_effect is None else math.log1p(smallest_effect)
    shifts = []
    for before, after in pairwise(segments(logs, least)):
        was, now = (median(logs[part.start : part.stop]) for part in (before, after))
        since = entries[after.start]
        shifts.append(Change(since.commit, since.unix_s, math.exp(now - was)))
    return shifts


def commit_here(environment: Mapping[str, str]) -> str:
    """The commit that is built, or that of the current folder; empty where nobody says it."""
    for name in _COMMIT_VARIABLES:
        if environment.get(name):
            return environment[name]
    try:
        asked = ["git", "rev-parse", "HEAD"]
        return subprocess.run(asked, capture_output=True, text=True, check=True).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        return ""


@dataclass(frozen=True)
class History:
    """What the history `file` says once the result is in it: entries of its series, and changes.

    There are no entries where the result had no ratio to keep.
    """

    file: Path
    entries: int = 0
    changes: tuple[Change, ...] = ()

    def lines(self) -> Iterator[str]:
        """For people."""
        from lsmtune.report.words import count, moment, plain_ratio

        if not self.entries:
            yield f"history: nothing was added to {self.file}, as there is no ratio"
            return
        number = f"{self.entries:,} {'entry' if self.entries == 1 else 'entries'}"
        if not self.changes:
            few = self.entries < VALUES_LEAST
            why = f" (fewer than {VALUES_LEAST} cannot show one)" if few else ""
            yield f"history: no change in {number} of {self.file}{why}"
            return
        times = count(len(self.changes), "change")
        yield f"history: {times} in {number} of {self.file}:"
        for each in self.changes:
            since = f"{each.commit[:_SHORT] or 'no commit'} ({moment(each.unix_s)})"
            yield f"  the ratio is {plain_ratio(each.factor)} of before from {since} on"


def add_to_history(flags: GateFlags, asked: Verification, verdict: Verdict) -> History | None:
    """Add the result to the file of `--history`, whole or not at all; None without the flag."""
    if flags.history is None:
        return None
    path, known = flags.history, read_history(flags.history)
    commit = flags.commit if flags.commit is not None else commit_here(os.environ)
    entry = entry_of(asked, verdict, commit, time.time())
    if entry is None:
        return History(path)
    known.append(entry)
    write_output(path, [json.dumps(asdict(each)) + "\n" for each in known])
    series = [each for each in known if each.series == entry.series]
    return History(path, len(series), tuple(changes(series, asked.plan.smallest_effect)))
