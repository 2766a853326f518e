"""Options of a proof, and the reading of their values."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from lsmtune.cli.flags import duration_of, whole_number
from lsmtune.errors import InputError, nearest_name
from lsmtune.model.goal import METRICS, Objective
from lsmtune.model.request import PairMethod
from lsmtune.model.workload import Workload
from lsmtune.stats.sequential import pairs_at_least
from lsmtune.units import UnitError, parse_share

if TYPE_CHECKING:
    from lsmtune.proof.paired import ProofPlan

METRIC_DEFAULT = Objective().metric
PAIRS_FLAG = "--pairs"
PAIRS_DEFAULT = 30
CONFIDENCE_DEFAULT = "95%"
NO_CRASH_TEST_FLAG = "--no-crash-test"
BASELINE_LIBRARY_FLAG = "--baseline-library"
CANDIDATE_LIBRARY_FLAG = "--candidate-library"
AUTO = "auto"
_CONFIDENCE_LOW, _CONFIDENCE_HIGH = 0.5, 0.9999
METHODS = (AUTO, *(method.value for method in PairMethod))

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
AllowUnsafeOption = Annotated[
    list[str] | None,
    typer.Option(
        "--allow-unsafe",
        metavar="NAME",
        help="Run a candidate with this option although its value puts data at risk; repeat.",
    ),
]
ProofDirOption = Annotated[
    Path | None,
    typer.Option("--dir", metavar="DIR", help="Keep the runs here, and go on from them."),
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


def plan_of(
    pairs: int, confidence: str, smallest_effect: str | None, method: str, budget: str | None
) -> ProofPlan:
    """The plan of these flags' values. Raises InputError for one that cannot be used."""
    from lsmtune.proof.paired import ProofPlan

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


def share_of(flag: str, text: str) -> float:
    """A share above 0 and below 1. Raises InputError naming `flag`."""
    try:
        return parse_share(text)
    except UnitError as error:
        raise InputError(flag, found=error.found, allowed=error.allowed) from error
