"""How good are the tests? The code is changed at one place at a time, and some test should fail.

    python scripts/mutants.py ROOM [--sample N] [--seed S] [--minutes M] [--of PATTERN] [-k TESTS]

mutmut 3 (`pip install mutmut`; not among the development tools) makes the mutants: N of them, drawn
at random, or all; with `--of` only of files and functions whose name matches. After M minutes no
further one is run: those before are a sample, too. pytest collects the tests once. Each mutant has
a process of its own, forked from there, which runs the tests that reach its function, the quickest
first, until one fails. mutmut's own runner starts pytest anew for each, which takes ten times as
long.

At the end stand the survivors, as diffs, and a line for each file: mutants, and how many of them
were killed; for the whole with the 95 % interval of Wilson (JASA 22, 1927). mutmut does not change
constants of modules, nor functions with a decorator. A text in other letters is left out: in SQL,
for one, it means the same.
"""

from __future__ import annotations

import argparse
import math
import os
import random
import re
import resource
import shutil
import sys
import time
from collections import Counter, defaultdict
from difflib import ndiff
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
import scipy

CHECKOUT = Path(__file__).resolve().parents[1]
FOLDER = CHECKOUT / "build" / "mutants"
# Of each room: where its files are, which, where its tests are, and which.
ROOMS = {
    "stats": ("stats", ["*"], "tests/stats", ["*"]),
    "store": ("experiment", ["store"], "tests/experiment", ["storage_measurements"]),
    "proof": (
        "proof",
        ["calibration", "minimise", "paired", "pairs", "standalone", "verdict"],
        "tests/proof",
        ["proof_[!cfps]*", "proof_calibration", "proof_paired", "proof_s[et]*"],
    ),
    "power": (
        "proof",
        ["crash_test", "file_log", "power_*", "recorded_load", "survival"],
        "tests/proof",
        ["proof_crash_test", "proof_file_log", "proof_power_*", "proof_survival"],
    ),
}
# Seconds of processor time beyond five times what the tests take without a mutant.
PATIENCE_S = 3


def mutated(room: str) -> dict[str, str]:
    """Make the mutated package in FOLDER/src; each mutant's name, and its function as a diff."""
    from mutmut.mutation.file_mutation import mutate_file_contents

    source, files, *_ = ROOMS[room]
    shutil.rmtree(FOLDER, ignore_errors=True)
    shutil.copytree(CHECKOUT / "python", FOLDER / "src")
    os.chdir(FOLDER)  # where mutmut guesses that `src` has the source
    diffs = {}
    for path in sorted(
        p for name in files for p in Path(f"src/lsmtune/{source}").glob(f"{name}.py")
    ):
        made = mutate_file_contents(str(path), path.read_text())
        path.write_text(made.code)
        lines = made.code.splitlines()
        spans = {
            name: lines[span.start - 1 : span.end]
            for name, span in made.line_span_by_function_name.items()
        }
        module = ".".join(path.relative_to("src").with_suffix("").parts)
        for name in made.mutant_names:
            stem = name.rpartition("_")[0]
            original = [line.replace(f"{stem}_orig", stem) for line in spans[f"{stem}_orig"]]
            mutant = [line.replace(name, stem) for line in spans[name]]
            if [line.lower() for line in original] != [line.lower() for line in mutant]:
                changed = (line for line in ndiff(original, mutant) if line[0] in "-+")
                diffs[f"{module}.{name}"] = "\n".join(changed)
    os.chdir(CHECKOUT)
    return diffs


class Mutants:
    """A plugin of pytest that runs the tests of `names`, one mutant after the other."""

    def __init__(self, names: list[str], until_s: float) -> None:
        self.names = names
        self.until_s = until_s  # on the monotonic clock
        self.killed: dict[str, bool] = {}
        self._failed = False

    def pytest_collection(self) -> None:
        """The same examples for every mutant; what fails need not be made small."""
        import hypothesis

        phases = (hypothesis.Phase.explicit, hypothesis.Phase.generate)
        profile: dict[str, Any] = {"deadline": None, "derandomize": True, "phases": phases}
        hypothesis.settings.register_profile("mutants", database=None, **profile)
        hypothesis.settings.load_profile("mutants")

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Note a failure."""
        self._failed = self._failed or report.failed

    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        """The tests as they are, to see what each reaches and takes; then the mutants."""
        from mutmut.mutation import trampoline

        reached: set[str] = set()
        trampoline.record_trampoline_hit = lambda name, **_: reached.add(name)
        trampoline.set_mutant_under_test("stats")
        reaching: dict[str, list[tuple[float, pytest.Item]]] = defaultdict(list)
        for item, following in zip(session.items, [*session.items[1:], None], strict=True):
            reached.clear()
            begun = time.process_time()
            self._run([item], following)
            for function in reached:
                reaching[function].append((time.process_time() - begun, item))
        if self._failed:
            raise session.Failed("a test fails without a mutant")
        tally: Counter[bool] = Counter()
        for name in self.names:
            if time.monotonic() > self.until_s:
                break
            tests = sorted(reaching[name.partition("__mutmut_")[0]], key=lambda test: test[0])
            self.killed[name] = self._is_killed(name, tests)
            tally[self.killed[name]] += 1
            print(f"\r{tally[True]} killed, {tally[False]} survived", end="", file=sys.stderr)
        return True

    def _run(self, items: list[pytest.Item], following: pytest.Item | None = None) -> None:
        for item, after in zip(items, [*items[1:], following], strict=True):
            item.config.hook.pytest_runtest_protocol(item=item, nextitem=after)
            if self._failed:
                return

    def _is_killed(self, name: str, tests: list[tuple[float, pytest.Item]]) -> bool:
        from mutmut.mutation import trampoline

        process = os.fork()
        if process == 0:
            limit = PATIENCE_S + round(time.process_time() + 5 * sum(taken for taken, _ in tests))
            resource.setrlimit(resource.RLIMIT_CPU, (limit, limit))
            nowhere = os.open(os.devnull, os.O_WRONLY)
            os.dup2(nowhere, 1)
            os.dup2(nowhere, 2)
            trampoline.set_mutant_under_test(name)
            try:
                self._run([item for _, item in tests])
            finally:
                os._exit(int(self._failed))
        return os.waitpid(process, 0)[1] != 0


def wilson(killed: int, mutants: int) -> str:
    """The share killed and its interval, in per cent."""
    ends = scipy.stats.binomtest(killed, mutants).proportion_ci(0.95, method="wilson")
    share = 100.0 * killed / mutants
    return f"{share:.1f} % ({100.0 * ends.low:.1f} to {100.0 * ends.high:.1f})"


def main() -> None:
    """Draw, run, tell."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("room", choices=ROOMS)
    parser.add_argument("--sample", type=int)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--minutes", type=float, default=math.inf)
    parser.add_argument("--of", default="")
    # Tests that assert how long something takes say nothing of mutants.
    parser.add_argument("-k", default="not second")
    given = parser.parse_args()
    diffs = mutated(given.room)
    names = [name for name in diffs if re.search(given.of, name)]
    if given.sample and given.sample < len(names):
        names = random.Random(given.seed).sample(names, given.sample)
    elif given.minutes < math.inf:
        random.Random(given.seed).shuffle(names)
    print(f"{len(names)} of {len(diffs)} mutants", flush=True)

    sys.path.insert(0, str(FOLDER / "src"))
    os.environ["PYTHONPATH"] = str(FOLDER / "src")  # of programs that tests start
    *_, folder, about = ROOMS[given.room]
    tests = sorted({str(p) for x in about for p in CHECKOUT.glob(f"{folder}/test_{x}.py")})
    plugin = Mutants(names, time.monotonic() + 60.0 * given.minutes)
    quiet = ["-q", "-x", "-s", "-p", "no:cacheprovider", "-p", "no:xdist", "-m", "not engine"]
    # In memory: a disk that is waited for takes longer than all the rest.
    with TemporaryDirectory(dir="/dev/shm") as base:
        quiet.append(f"--basetemp={base}/pytest")
        if status := pytest.main([*quiet, "-k", given.k, *tests], plugins=[plugin]):
            sys.exit(status)

    by_file: dict[str, list[bool]] = defaultdict(list)
    for name, killed in sorted(plugin.killed.items()):
        by_file[name.partition(".x")[0]].append(killed)
        if not killed:
            print(f"{name}\n{diffs[name]}\n")
    for file, kills in sorted(by_file.items()):
        print(f"{file:40} {len(kills):5} {sum(kills):5}")
    whole = list(plugin.killed.values())
    print(f"{given.room}: {sum(whole)} of {len(whole)} killed: {wilson(sum(whole), len(whole))}")


if __name__ == "__main__":
    main()
