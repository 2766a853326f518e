"""`lsmtune verify`: a paired, interleaved proof of any two configurations on fresh runs."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from lsmtune.cli.flags import (
    DEADLINE_DEFAULT,
    DISK_DEFAULT,
    MEMORY_DEFAULT,
    BudgetOption,
    DeadlineOption,
    DiskOption,
    EngineOption,
    JsonOption,
    LibraryOption,
    MemoryOption,
    SeedOption,
    WorkloadOption,
    WorkloadSetOption,
    limits_of,
    workload_of,
)
from lsmtune.cli.proof_flags import (
    AUTO,
    CONFIDENCE_DEFAULT,
    PAIRS_DEFAULT,
    ConfidenceOption,
    MethodOption,
    PairsOption,
    SmallestEffectOption,
    check_method,
    plan_of,
)
from lsmtune.errors import ExitStatus, InputError, nearest_name
from lsmtune.records.objective import METRICS, Objective, default_direction
from lsmtune.records.totals import TOTAL_METRICS
from lsmtune.records.verdict import Verdict, VerdictOutcome
from lsmtune.records.workload import PhaseKind, Workload

if TYPE_CHECKING:
    from lsmtune.cli.verification import Verification
    from lsmtune.records.config import Config

COMMAND = "verify"
METRIC_DEFAULT = Objective().metric
DEFAULT = "default"
_OPT_IN = "--allow-unsafe NAME for each such option, and a larger --memory, measure it all the same"
EPILOG = "\n\n".join(
    (
        "Examples:",
        "lsmtune verify --engine rocksdb --workload fillrandom --baseline default "
        "--candidate write_buffer_size=64KiB --budget 3m",
        "lsmtune verify default OPTIONS-000007 --engine rocksdb --workload readrandom "
        "--smallest-effect 3%",
        "It ends as soon as the verdict is clear; --dir DIR keeps the runs, and the same command "
        "goes on from them, also with more --pairs.",
        "Exit status 0: proved better; 3: not. A candidate that puts data at risk, or that may "
        "come to use more than --memory, is refused without a run: 3 as well.",
    )
)


def register(app: typer.Typer) -> None:
    """Add the `verify` command to `app`."""
    app.command(COMMAND, epilog=EPILOG)(_verify)


def _verify(
    engine: EngineOption,
    workload: WorkloadOption,
    configs: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="BASELINE CANDIDATE",
            help="The two configurations, in place of --baseline and --candidate.",
            show_default=False,
        ),
    ] = None,
    candidate: Annotated[
        str | None,
        typer.Option("--candidate", metavar="CONFIG", help="What is to be proved better."),
    ] = None,
    baseline: Annotated[
        str | None,
        typer.Option(
            "--baseline", metavar="CONFIG", help="What it is compared with; default if unset."
        ),
    ] = None,
    library: LibraryOption = None,
    workload_set: WorkloadSetOption = None,
    metric: Annotated[
        str, typer.Option("--metric", metavar="NAME", help="The metric that is compared.")
    ] = METRIC_DEFAULT,
    phase: Annotated[
        str | None,
        typer.Option(
            "--phase", metavar="NAME", help="Of this measure phase; of the last if unset."
        ),
    ] = None,
    allow_unsafe: Annotated[
        list[str] | None,
        typer.Option(
            "--allow-unsafe",
            metavar="NAME",
            help="Run a candidate with this option although its value puts data at risk; repeat.",
        ),
    ] = None,
    pairs: PairsOption = PAIRS_DEFAULT,
    confidence: ConfidenceOption = CONFIDENCE_DEFAULT,
    smallest_effect: SmallestEffectOption = None,
    method: MethodOption = AUTO,
    budget: BudgetOption = None,
    seed: SeedOption = 1,
    directory: Annotated[
        Path | None,
        typer.Option("--dir", metavar="DIR", help="Keep the runs here, and go on from them."),
    ] = None,
    deadline: DeadlineOption = DEADLINE_DEFAULT,
    memory: MemoryOption = MEMORY_DEFAULT,
    disk: DiskOption = DISK_DEFAULT,
    as_json: JsonOption = False,
) -> None:
    """Prove one configuration against another on paired, fresh runs."""
    from lsmtune.cli.config_name import resolve
    from lsmtune.cli.engine_choice import chosen_engine
    from lsmtune.cli.verification import Verification, judged
    from lsmtune.runners.driver_binary import find_driver

    started_s = time.monotonic()
    plan = plan_of(pairs, confidence, smallest_effect, method, budget)
    chosen, limits = workload_of(workload, workload_set), limits_of(deadline, memory, disk)
    check_method(plan, chosen)
    sources = _named(configs or (), baseline, candidate)
    arms = [resolve(name, engine, source) for source, name in sources.items()]
    objective = objective_of(metric, phase, chosen)
    driver = find_driver()
    identity, warnings = chosen_engine(engine, library, driver)
    verification = Verification(identity, chosen, objective, limits, arms[0], arms[1], seed, plan)
    refused, doubtful = judged(verification, allow_unsafe or ())
    for warning in (*warnings, *doubtful):
        typer.echo(f"lsmtune: warning: {warning}", err=True)
    verdict = _refusal(verification, refused) if refused else None
    verdict = verdict or _prove(verification.after(time.monotonic() - started_s), driver, directory)
    if as_json:
        document = _document(verification, verdict, refused, doubtful)
        typer.echo(json.dumps(document, indent=2))
    else:
        typer.echo(_text(verification, verdict, refused, doubtful))
    if verdict.outcome is not VerdictOutcome.BETTER:
        raise typer.Exit(ExitStatus.NOT_BETTER)


def _named(configs: Sequence[str], baseline: str | None, candidate: str | None) -> dict[str, str]:
    """What is compared with what, each by the flag that names it."""
    given = {"--baseline": baseline, "--candidate": candidate}
    if not configs:
        if candidate is None:
            why = "is missing: name what is to be proved better, or BASELINE CANDIDATE"
            raise InputError("--candidate", why=why)
        return {"--baseline": baseline or DEFAULT, "--candidate": candidate}
    for flag, name in given.items():
        if name is not None:
            why = "has no effect beside BASELINE CANDIDATE: name both in the same way"
            raise InputError(flag, found=name, why=why)
    if len(configs) != 2:
        allowed = "BASELINE CANDIDATE, or --candidate CONFIG alone"
        raise InputError("verify", found=" ".join(configs), allowed=allowed)
    return dict(zip(given, configs, strict=True))


def objective_of(metric: str, phase: str | None, workload: Workload) -> Objective:
    """The Objective of `--metric` and `--phase`, in its usual direction."""
    if metric not in METRICS:
        nearest = nearest_name(metric, METRICS)
        raise InputError("--metric", found=metric, allowed=", ".join(METRICS), nearest=nearest)
    measured = [p.name for p in workload.phases if p.kind is PhaseKind.MEASURE]
    if phase is not None and phase not in measured:
        nearest = nearest_name(phase, measured)
        raise InputError("--phase", found=phase, allowed=", ".join(measured), nearest=nearest)
    if phase is not None and metric in TOTAL_METRICS:
        why = f"has no effect: {metric} is of all phases"
        raise InputError("--phase", found=phase, why=why)
    return Objective(metric, default_direction(metric), phase)


def _refusal(verification: Verification, refused: Sequence[str]) -> Verdict:
    """The verdict on a candidate that was not run."""
    from lsmtune.proof.verdict import not_proven

    why = f"refused, not run: {'; '.join(refused)}"
    return not_proven(verification.objective, verification.plan.confidence, why)


def _prove(verification: Verification, driver: Path, directory: Path | None) -> Verdict:
    """The verdict; raises typer.Exit when interrupted before it stood."""
    from lsmtune.cli.interrupt import stop_on_interrupt
    from lsmtune.cli.verification import proved, verification_display

    with (
        _folder(directory) as path,
        verification_display(verification) as observer,
        stop_on_interrupt(observer.warning) as stop,
    ):
        verdict = proved(verification, path, driver, observer, stop)
    if verdict is None:
        kept = "nothing was kept" if directory is None else f"the runs are kept in {directory}"
        typer.echo(f"lsmtune: interrupted; {kept}", err=True)
        raise typer.Exit(ExitStatus.INTERRUPTED)
    return verdict


@contextmanager
def _folder(directory: Path | None) -> Iterator[Path]:
    """`directory`, or one of our own here that is removed afterwards."""
    from lsmtune.storage.scratch import run_directory
    from lsmtune.storage.trouble import explained

    if directory is not None:
        yield directory
        return
    with explained(Path.cwd()), run_directory(Path.cwd()) as path:
        yield path


def _text(
    verification: Verification, verdict: Verdict, refused: Sequence[str], warnings: Sequence[str]
) -> str:
    """The verdict for people: one line, then what was refused or must be known."""
    from lsmtune.cli.output import verdict_lines

    name = verification.candidate.label
    first, *rest = verdict_lines(verdict)
    lines = [f"{name}: {first}", *rest]
    if refused:
        lines = [f"{name}: no proven gain: refused as a recommendation, and not run:"]
        lines += [f"  - {reason}" for reason in refused]
        lines.append(_OPT_IN)
    return "\n".join([*lines, *(f"warning: {warning}" for warning in warnings)])


def _document(
    verification: Verification, verdict: Verdict, refused: Sequence[str], warnings: Sequence[str]
) -> dict[str, object]:
    from lsmtune.study.result import verdict_document

    return {
        "baseline": _config_document(verification.baseline),
        "candidate": _config_document(verification.candidate),
        "verdict": verdict_document(verdict),
        "refused": list(refused),
        "warnings": list(warnings),
    }


def _config_document(config: Config) -> dict[str, object]:
    return {"label": config.label, "options": dict(config.options)}
