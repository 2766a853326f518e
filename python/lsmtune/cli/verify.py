"""`lsmtune verify`: a paired, interleaved proof of any two configurations on fresh runs."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from lsmtune.cli.bench import Asked, OneRunnerOption, ProgramOption, RunnerChoice
from lsmtune.cli.choices import choose_workload
from lsmtune.cli.flags import (
    AUTO,
    BASELINE_LIBRARY_FLAG,
    CANDIDATE_LIBRARY_FLAG,
    CONFIDENCE_DEFAULT,
    DEADLINE_DEFAULT,
    DISK_DEFAULT,
    MEMORY_DEFAULT,
    METRIC_DEFAULT,
    NO_CRASH_TEST_FLAG,
    PAIRS_DEFAULT,
    AllowUnsafeOption,
    BaselineLibraryOption,
    BaselineOption,
    BudgetOption,
    CandidateLibraryOption,
    CandidateOption,
    ConfidenceOption,
    ConfigsArgument,
    DeadlineOption,
    DiskOption,
    EngineOption,
    JsonOption,
    LibraryOption,
    MemoryOption,
    MethodOption,
    MetricOption,
    NoCrashTestOption,
    PairsOption,
    PhaseOption,
    PropertiesOption,
    PropertyOption,
    RunsDirOption,
    SeedOption,
    SmallestEffectOption,
    WorkloadOption,
    WorkloadSetOption,
    check_method,
    limits_of,
    plan_of,
)
from lsmtune.errors import ExitStatus, InputError, nearest_name
from lsmtune.experiment.schedule import Arm
from lsmtune.model.config import Build, EngineIdentity
from lsmtune.model.goal import Objective, default_direction
from lsmtune.model.metrics import METRICS, TOTAL_METRICS
from lsmtune.model.verdict import VerdictOutcome
from lsmtune.model.workload import Workload
from lsmtune.programs.output import NATIVE
from lsmtune.programs.registry import PROGRAMS
from lsmtune.workloads.choice import WORKLOAD_FLAG, Choice

if TYPE_CHECKING:
    from lsmtune.driver.runner import Runner
    from lsmtune.model.config import Config
    from lsmtune.proof.crash_test import Survived
    from lsmtune.proof.paired import ProofPlan
    from lsmtune.proof.standalone import Verification

COMMAND = "verify"
DEFAULT = "default"
OPT_IN = "--allow-unsafe NAME for each such option, and a larger --memory, measure it all the same"
EPILOG = "\n\n".join(
    (
        "Examples:",
        "lsmtune verify --engine rocksdb --workload fillrandom --baseline default "
        "--candidate write_buffer_size=64KiB --budget 3m",
        "lsmtune verify default OPTIONS-000007 --engine rocksdb --workload readrandom "
        "--smallest-effect 3%",
        "lsmtune verify --engine rocksdb --workload fillrandom --candidate write_buffer_size=1MiB "
        "--runner rocksdb-db_bench --metric throughput_ops_s",
        "lsmtune verify --engine rocksdb --workload readrandom --baseline-library old.so "
        "--candidate-library new.so",
        "It ends as soon as the verdict is clear; --dir DIR keeps the runs, and the same command "
        "goes on from them, also with more --pairs.",
        "What is proved better is killed once in the middle of a load, to see what its database "
        "keeps (--no-crash-test).",
        "Exit status 0: proved better; 3: not. A candidate that puts data at risk, or that may "
        "come to use more than --memory, is refused without a run: 3 as well.",
    )
)


def register(app: typer.Typer) -> None:
    """Add the `verify` command to `app`."""
    app.command(COMMAND, epilog=EPILOG)(_verify)


def _verify(
    engine: EngineOption,
    workload: WorkloadOption = None,
    configs: ConfigsArgument = None,
    candidate: CandidateOption = None,
    baseline: BaselineOption = None,
    library: LibraryOption = None,
    baseline_library: BaselineLibraryOption = None,
    candidate_library: CandidateLibraryOption = None,
    workload_set: WorkloadSetOption = None,
    properties: PropertiesOption = None,
    property_set: PropertyOption = None,
    metric: MetricOption = METRIC_DEFAULT,
    phase: PhaseOption = None,
    allow_unsafe: AllowUnsafeOption = None,
    pairs: PairsOption = PAIRS_DEFAULT,
    confidence: ConfidenceOption = CONFIDENCE_DEFAULT,
    smallest_effect: SmallestEffectOption = None,
    method: MethodOption = AUTO,
    budget: BudgetOption = None,
    seed: SeedOption = 1,
    no_crash_test: NoCrashTestOption = False,
    directory: RunsDirOption = None,
    deadline: DeadlineOption = DEADLINE_DEFAULT,
    memory: MemoryOption = MEMORY_DEFAULT,
    disk: DiskOption = DISK_DEFAULT,
    runner: OneRunnerOption = NATIVE,
    program: ProgramOption = None,
    as_json: JsonOption = False,
) -> None:
    """Prove one configuration against another on paired, fresh runs."""
    from lsmtune.cli.verification import judged
    from lsmtune.proof.standalone import Verification

    started_s = time.monotonic()
    asked = Asked(runner, program)
    asked.check(several=False)
    plan = plan_of(pairs, confidence, smallest_effect, method, budget)
    choice = choose_workload(workload, workload_set, properties, property_set, engine)
    chosen, limits = choice.workload, limits_of(deadline, memory, disk)
    check_method(plan, chosen, native=asked.runner == NATIVE)
    if candidate_library is not None and not configs and candidate is None:
        candidate = baseline or DEFAULT
    sources = named(COMMAND, configs or (), baseline, candidate)
    before, after = configs_of(sources, engine, choice)
    objective = objective_of(metric, phase, chosen)
    libraries = {
        BASELINE_LIBRARY_FLAG: baseline_library,
        CANDIDATE_LIBRARY_FLAG: candidate_library,
    }
    base, own = builds_of(libraries, library, asked, engine, chosen)
    if asked.runner != NATIVE:
        PROGRAMS[asked.runner].check_told(metric, phase, chosen, "--metric")
    verification = Verification(
        Arm(base.engine, before),
        Arm(own.engine, after),
        chosen,
        objective,
        limits,
        seed,
        plan,
        NO_CRASH_TEST_FLAG if no_crash_test else "",
    )
    refused, doubtful = judged(verification, allow_unsafe or ())
    doubtful += _whole_runs(asked, plan)
    notes = phase_notes(objective, chosen)
    for warning in dict.fromkeys((*base.warnings, *own.warnings, *doubtful)):
        typer.echo(f"lsmtune: warning: {warning}", err=True)
    found = _refusal(verification, refused) if refused else None
    found = found or _prove(verification.after(time.monotonic() - started_s), own.runner, directory)
    if as_json:
        document = _document(verification, found, refused, doubtful) | {"notes": notes}
        typer.echo(json.dumps(document, indent=2))
    else:
        typer.echo(_text(verification, found, refused, doubtful))
    if found.verdict.outcome is not VerdictOutcome.BETTER:
        raise typer.Exit(ExitStatus.NOT_BETTER)


def _whole_runs(asked: Asked, plan: ProofPlan) -> list[str]:
    """What to know of a proof by a program, unless the user asked for what it does."""
    from lsmtune.proof.pairs import slices_unusable

    if asked.runner == NATIVE or plan.method is not None:
        return []
    return [f"the pairs are of whole runs: {slices_unusable((), native=False)}"]


def named(
    command: str, configs: Sequence[str], baseline: str | None, candidate: str | None
) -> dict[str, str]:
    """What is compared with what, each by the flag that names it.

    Raises InputError, naming the flag or `command`, for anything but two configurations.
    """
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
        raise InputError(command, found=" ".join(configs), allowed=allowed)
    return dict(zip(given, configs, strict=True))


def builds_of(
    libraries: Mapping[str, Path | None],
    library: Path | None,
    asked: Asked,
    engine: str,
    workload: Workload,
) -> tuple[RunnerChoice, RunnerChoice]:
    """The engine of baseline and candidate; `libraries` are those of one side, by their flags.

    Raises InputError, naming the flag, for a library that cannot be used, and for `--library`
    beside one for each side.
    """
    from lsmtune.cli.bench import one_runner

    if library is not None and all(libraries.values()):
        why = f"has no effect beside {' and '.join(libraries)}"
        raise InputError("--library", found=str(library), why=why)
    sides = []
    for flag, own in libraries.items():
        try:
            sides.append(one_runner(asked, engine, own or library, workload))
        except InputError as error:
            if own is None or error.source != "--library":
                raise
            raise InputError(
                flag, found=error.found, why=error.why, allowed=error.allowed
            ) from None
        if not any(libraries.values()):
            return sides[0], sides[0]
    return sides[0], sides[1]


def configs_of(sources: Mapping[str, str], engine: str, choice: Choice) -> tuple[Config, Config]:
    """Baseline and candidate of what `named` says, with what the workload asks of both.

    Raises InputError for one that is no configuration of `engine`.
    """
    from lsmtune.cli.choices import resolve
    from lsmtune.engines.workload_options import with_page_cache

    baseline, candidate = (
        with_page_cache(
            choice.config(resolve(name, engine, source), engine, source),
            engine,
            choice.workload.page_cache,
            WORKLOAD_FLAG,
        )
        for source, name in sources.items()
    )
    return baseline, candidate


def objective_of(metric: str, phase: str | None, workload: Workload) -> Objective:
    """The Objective of `--metric` and `--phase`, in its usual direction."""
    if metric not in METRICS:
        nearest = nearest_name(metric, METRICS)
        raise InputError("--metric", found=metric, allowed=", ".join(METRICS), nearest=nearest)
    measured = workload.measured_phases
    if phase is not None and phase not in measured:
        nearest = nearest_name(phase, measured)
        raise InputError("--phase", found=phase, allowed=", ".join(measured), nearest=nearest)
    if phase is not None and metric in TOTAL_METRICS:
        why = f"has no effect: {metric} is of all phases"
        raise InputError("--phase", found=phase, why=why)
    return Objective(metric, default_direction(metric), phase)


def phase_notes(objective: Objective, workload: Workload) -> list[str]:
    """Which phase is judged, printed and returned, where there are several and none was named."""
    *others, last = workload.measured_phases
    if not others or objective.phase is not None or objective.metric in TOTAL_METRICS:
        return []
    names = ", ".join(others)
    note = f"the last of several phases is judged, {last}; --phase NAME judges another: {names}"
    typer.echo(f"lsmtune: note: {note}", err=True)
    return [note]


def _refusal(verification: Verification, refused: Sequence[str]) -> Survived:
    """The verdict on a candidate that was not run."""
    from lsmtune.proof.crash_test import Survived
    from lsmtune.proof.verdict import not_proven

    why = f"refused, not run: {'; '.join(refused)}"
    return Survived(not_proven(verification.objective, verification.plan.confidence, why))


def _prove(verification: Verification, runner: Runner, directory: Path | None) -> Survived:
    """The verdict; raises typer.Exit when interrupted before it stood."""
    from lsmtune.cli.interrupts import interrupted, stop_on_interrupt
    from lsmtune.cli.verification import verification_display
    from lsmtune.proof.standalone import proved

    with (
        proof_folder(directory) as path,
        verification_display(verification) as observer,
        stop_on_interrupt(observer.warning) as stop,
    ):
        found = proved(verification, path, runner, observer, stop)
    if found is None:
        raise interrupted(directory)
    return found


@contextmanager
def proof_folder(directory: Path | None) -> Iterator[Path]:
    """`directory`, or one of our own here that is removed afterwards."""
    from lsmtune.experiment.files import explained, run_directory

    if directory is not None:
        yield directory
        return
    with explained(Path.cwd()), run_directory(Path.cwd()) as path:
        yield path


def _text(
    verification: Verification, found: Survived, refused: Sequence[str], warnings: Sequence[str]
) -> str:
    """The verdict for people: one line, then what was refused or must be known."""
    from lsmtune.cli.output import verdict_lines
    from lsmtune.proof.crash_test import crash_line

    name = verification.candidate.label
    first, *rest = verdict_lines(found.verdict)
    lines = [f"{name}: {first}", *rest]
    if len(verification.builds) > 1:
        for side, arm in (
            ("baseline", verification.baseline),
            ("candidate", verification.candidate),
        ):
            lines.append(f"{side}: {arm.label} on {build_text(arm.engine)}")
    if found.crash is not None:
        lines.append(f"crash test: {crash_line(found.crash)}")
    if refused:
        lines = [f"{name}: no proven gain: refused as a recommendation, and not run:"]
        lines += [f"  - {reason}" for reason in refused]
        lines.append(OPT_IN)
    return "\n".join([*lines, *(f"warning: {warning}" for warning in warnings)])


def _document(
    verification: Verification, found: Survived, refused: Sequence[str], warnings: Sequence[str]
) -> dict[str, object]:
    from lsmtune.model.codec import encode
    from lsmtune.study.observer import verdict_document

    return {
        **{
            side: config_document(arm.config) | {"engine": encode(arm.engine)}
            for side, arm in (
                ("baseline", verification.baseline),
                ("candidate", verification.candidate),
            )
        },
        "verdict": verdict_document(found.verdict),
        "crash_test": encode(found.crash),
        "refused": list(refused),
        "warnings": list(warnings),
    }


def build_text(engine: EngineIdentity) -> str:
    """A build of an engine in words: `rocksdb 7.8.3, /usr/lib/librocksdb.so.7.8 (assertions)`."""
    version = engine.version or "of unknown version"
    build = "" if engine.build is Build.UNKNOWN else f" ({engine.build.value})"
    return f"{engine.name} {version}, {engine.library}{build}"


def config_document(config: Config) -> dict[str, object]:
    """A configuration as the commands' JSON has it."""
    return {"label": config.label, "options": dict(config.options)}
