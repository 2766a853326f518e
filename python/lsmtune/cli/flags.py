"""The flags that several commands have, declared once, and the reading of their values.

Everything here is cheap to import: `lsmtune COMMAND --help` needs no more than this.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from lsmtune.engines.library import ENGINE_NAMES
from lsmtune.errors import InputError, nearest_name
from lsmtune.model.config import Config, OptionValue
from lsmtune.model.goal import Objective
from lsmtune.model.metrics import METRICS
from lsmtune.model.request import LIMITS_DEFAULT, SEED_MAX, TRIALS_MAX, Limits, PairMethod
from lsmtune.model.workload import Workload
from lsmtune.units import (
    UnitError,
    format_bytes,
    format_duration,
    option_text_allowed,
    option_value,
    parse_bytes,
    parse_duration,
    parse_share,
)
from lsmtune.workloads.choice import assignments
from lsmtune.workloads.stated import WORKLOAD_NAMES

if TYPE_CHECKING:
    from lsmtune.proof.paired import ProofPlan

OPTION_FLAG = "-o/--option"
DEADLINE_DEFAULT = format_duration(LIMITS_DEFAULT.deadline_s)
MEMORY_DEFAULT = format_bytes(LIMITS_DEFAULT.memory_bytes)
DISK_DEFAULT = format_bytes(LIMITS_DEFAULT.disk_bytes)

METRIC_DEFAULT = Objective().metric
PAIRS_FLAG = "--pairs"
PAIRS_DEFAULT = 30
CONFIDENCE_DEFAULT = "95%"
NO_CRASH_TEST_FLAG = "--no-crash-test"
BASELINE_LIBRARY_FLAG = "--baseline-library"
CANDIDATE_LIBRARY_FLAG = "--candidate-library"
AUTO = "auto"
METHODS = (AUTO, *(method.value for method in PairMethod))
_CONFIDENCE_LOW, _CONFIDENCE_HIGH = 0.5, 0.9999


def whole_number(flag: str, low: int, high: int) -> Callable[[str], int]:
    """A reader of the value of `flag`, which raises InputError outside `low` to `high`."""

    def read(text: str) -> int:
        try:
            number = int(text)
        except ValueError:
            number = low - 1
        if not low <= number <= high:
            raise InputError(flag, found=text, allowed=f"a whole number from {low} to {high}")
        return number

    return read


# --- what is measured, and how long

EngineOption = Annotated[
    str,
    typer.Option(
        "--engine",
        metavar="NAME",
        help=f"{', '.join(ENGINE_NAMES)}.",
        autocompletion=lambda: list(ENGINE_NAMES),
    ),
]
LibraryOption = Annotated[
    Path | None,
    typer.Option("--library", metavar="PATH", help="The engine's shared library to measure."),
]
WorkloadOption = Annotated[
    str | None,
    typer.Option(
        "--workload",
        metavar="NAME",
        help=f"{', '.join(WORKLOAD_NAMES)}; or a workload file, or one of YCSB's.",
        autocompletion=lambda: list(WORKLOAD_NAMES),
    ),
]
WorkloadSetOption = Annotated[
    list[str] | None,
    typer.Option(
        "-w",
        "--workload-set",
        metavar="KEY=VALUE",
        help="A workload parameter, again for each: num=1000000, value_bytes=100; "
        "`lsmtune workload show NAME` lists them.",
    ),
]
PropertiesOption = Annotated[
    list[Path] | None,
    typer.Option(
        "-P",
        "--properties",
        metavar="FILE",
        help="A file of YCSB's properties, again for each; those of the engine become options.",
    ),
]
PropertyOption = Annotated[
    list[str] | None,
    typer.Option(
        "-p",
        "--property",
        metavar="NAME=VALUE",
        help="A property over those of the files, again for each.",
    ),
]
OptionSetOption = Annotated[
    list[str] | None,
    typer.Option(
        "-o",
        "--option",
        metavar="NAME=VALUE",
        help="An engine option by the engine's own name, again for each; 4MiB is a value.",
    ),
]
SeedOption = Annotated[
    int,
    typer.Option(
        "--seed",
        metavar="N",
        parser=whole_number("--seed", 0, SEED_MAX),
        help="All randomness follows from it.",
    ),
]
RepeatOption = Annotated[
    int,
    typer.Option(
        "--repeat",
        metavar="N",
        parser=whole_number("--repeat", 1, 1000),
        help="Runs, each on a new seed.",
    ),
]
BudgetOption = Annotated[
    str | None, typer.Option("--budget", metavar="TIME", help="Time for all of it: 30m, 1h30m.")
]
TrialsOption = Annotated[
    int | None,
    typer.Option(
        "--trials",
        metavar="N",
        parser=whole_number("--trials", 1, TRIALS_MAX),
        help="At most so many trials.",
    ),
]
ForceOption = Annotated[bool, typer.Option("--force", help="Replace the file if it exists.")]
JsonOption = Annotated[bool, typer.Option("--json", help="One JSON document on stdout.")]
_DEADLINE = typer.Option("--deadline", metavar="TIME", help="A run is killed after this time.")
_MEMORY = typer.Option("--memory", metavar="SIZE", help="A run is killed above this memory.")
_DISK = typer.Option("--disk", metavar="SIZE", help="A run is killed above this disk space.")
DeadlineOption = Annotated[str, _DEADLINE]
MemoryOption = Annotated[str, _MEMORY]
DiskOption = Annotated[str, _DISK]
# For commands where unset is not the default.
DeadlineIfSetOption = Annotated[str | None, _DEADLINE]
MemoryIfSetOption = Annotated[str | None, _MEMORY]
DiskIfSetOption = Annotated[str | None, _DISK]
DatabasesDirOption = Annotated[
    Path | None,
    typer.Option("--dir", metavar="DIR", help="Where databases are made; here by default."),
]
RunsDirOption = Annotated[
    Path | None,
    typer.Option("--dir", metavar="DIR", help="Keep the runs here, and go on from them."),
]

# --- a proof

ConfigsArgument = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="BASELINE CANDIDATE",
        help="The two configurations, in place of --baseline and --candidate.",
        show_default=False,
    ),
]
CandidateOption = Annotated[
    str | None,
    typer.Option("--candidate", metavar="CONFIG", help="What is to be proved better."),
]
BaselineOption = Annotated[
    str | None,
    typer.Option(
        "--baseline", metavar="CONFIG", help="What it is compared with; default if unset."
    ),
]
MetricOption = Annotated[
    str,
    typer.Option(
        "--metric",
        metavar="NAME",
        help="The metric that is compared.",
        autocompletion=lambda: list(METRICS),
    ),
]
PhaseOption = Annotated[
    str | None,
    typer.Option("--phase", metavar="NAME", help="Of this measure phase; of the last if unset."),
]
BaselineLibraryOption = Annotated[
    Path | None,
    typer.Option(
        BASELINE_LIBRARY_FLAG, metavar="PATH", help="The engine's library of the baseline alone."
    ),
]
CandidateLibraryOption = Annotated[
    Path | None,
    typer.Option(
        CANDIDATE_LIBRARY_FLAG,
        metavar="PATH",
        help="The engine's library of the candidate alone: may I upgrade?",
    ),
]
AllowUnsafeOption = Annotated[
    list[str] | None,
    typer.Option(
        "--allow-unsafe",
        metavar="NAME",
        help="Run a candidate with this option although its value puts data at risk; repeat.",
    ),
]
PairsOption = Annotated[
    int,
    typer.Option(
        PAIRS_FLAG,
        metavar="N",
        parser=whole_number(PAIRS_FLAG, 1, 1000),
        help="At most so many pairs of runs; it ends as soon as the verdict is clear.",
    ),
]
ConfidenceOption = Annotated[
    str, typer.Option("--confidence", metavar="SHARE", help="Of the ratio's interval: 95%.")
]
SmallestEffectOption = Annotated[
    str | None,
    typer.Option(
        "--smallest-effect",
        metavar="SHARE",
        help="A difference of less does not matter: 3%. Without it nothing is called equivalent.",
    ),
]
MethodOption = Annotated[
    str,
    typer.Option(
        "--method",
        metavar="NAME",
        help=f"How both runs of a pair share the machine: {', '.join(METHODS)}.",
        autocompletion=lambda: list(METHODS),
    ),
]
NoCrashTestOption = Annotated[
    bool,
    typer.Option(
        NO_CRASH_TEST_FLAG,
        help="Do not kill a load of what was proved better to see what its database keeps.",
    ),
]


# --- the values of flags


def config_of(texts: Sequence[str] | None) -> Config:
    """The Config of the `-o` flags; `default` without any."""
    options: dict[str, OptionValue] = {}
    for name, text in assignments(OPTION_FLAG, texts).items():
        options[name] = option_of(OPTION_FLAG, name, text)
    label = ",".join(f"{name}={value}" for name, value in options.items())
    return Config(options, label=label or "default")


def option_of(source: str, name: str, text: str) -> OptionValue:
    """The value of option `name` that `text` states. Raises InputError, naming `source`."""
    allowed = option_text_allowed(text)
    if allowed:
        raise InputError(source, name, found=text, allowed=allowed)
    try:
        return option_value(text)
    except UnitError as error:
        raise _unit_error(source, name, error) from error


def limits_of(deadline: str, memory: str, disk: str) -> Limits:
    """The Limits of `--deadline`, `--memory` and `--disk`."""
    return Limits(
        deadline_s=duration_of("--deadline", deadline),
        memory_bytes=bytes_of("--memory", memory),
        disk_bytes=bytes_of("--disk", disk),
    )


def duration_of(flag: str, text: str) -> float:
    """A duration above zero, in seconds. Raises InputError naming `flag`."""
    try:
        seconds = parse_duration(text)
    except UnitError as error:
        raise _unit_error(flag, "", error) from error
    if seconds <= 0:
        raise InputError(flag, found=text, allowed="a duration above 0")
    return seconds


def bytes_of(flag: str, text: str) -> int:
    """A size above zero, in bytes. Raises InputError naming `flag`."""
    try:
        size = parse_bytes(text)
    except UnitError as error:
        raise _unit_error(flag, "", error) from error
    if size <= 0:
        raise InputError(flag, found=text, allowed="a size above 0")
    return size


def _unit_error(flag: str, field: str, error: UnitError) -> InputError:
    return InputError(flag, field, found=error.found, allowed=error.allowed, nearest=error.nearest)


def share_of(flag: str, text: str) -> float:
    """A share above 0 and below 1. Raises InputError naming `flag`."""
    try:
        return parse_share(text)
    except UnitError as error:
        raise InputError(flag, found=error.found, allowed=error.allowed) from error


def plan_of(
    pairs: int, confidence: str, smallest_effect: str | None, method: str, budget: str | None
) -> ProofPlan:
    """The plan of these flags' values. Raises InputError for one that cannot be used."""
    from lsmtune.proof.paired import ProofPlan
    from lsmtune.stats.sequential import pairs_at_least

    share = share_of("--confidence", confidence)
    if not _CONFIDENCE_LOW <= share <= _CONFIDENCE_HIGH:
        allowed = f"from {100 * _CONFIDENCE_LOW:g}% to {100 * _CONFIDENCE_HIGH:g}%"
        raise InputError("--confidence", found=confidence, allowed=allowed)
    least = pairs_at_least(share)
    if pairs < least:
        allowed = f"at least {least}, without which nothing is proved at {share:g}"
        raise InputError(PAIRS_FLAG, found=pairs, allowed=allowed)
    if method not in METHODS:
        nearest = nearest_name(method, METHODS)
        raise InputError("--method", found=method, allowed=", ".join(METHODS), nearest=nearest)
    return ProofPlan(
        pairs=pairs,
        confidence=share,
        deadline_s=None if budget is None else duration_of("--budget", budget),
        smallest_effect=None
        if smallest_effect is None
        else share_of("--smallest-effect", smallest_effect),
        method=None if method == AUTO else PairMethod(method),
    )


def check_pairs(plan: ProofPlan, options: int) -> None:
    """Raises InputError for fewer pairs than each step of a minimisation needs to prove anything.

    The more options, the surer each step has to be for all of them together to be right.
    """
    from lsmtune.proof.minimise import confidence_each, steps_of
    from lsmtune.stats.sequential import pairs_at_least

    each = confidence_each(plan.confidence, options)
    least = pairs_at_least(each)
    if plan.pairs < least:
        allowed = (
            f"at least {least}, without which nothing is proved in {steps_of(options)} steps that "
            f"hold together at {plan.confidence:g}"
        )
        raise InputError(PAIRS_FLAG, found=plan.pairs, allowed=allowed)


def check_method(plan: ProofPlan, workload: Workload, *, native: bool = True) -> None:
    """Raises InputError for a method that the runner cannot do with this workload.

    `native`: lsmtune's own driver performs the runs.
    """
    from lsmtune.proof.pairs import refusal

    why = refusal(plan.method, [workload], native=native)
    if why and plan.method is not None:
        raise InputError("--method", found=plan.method.value, why=why)
