"""`lsmtune verify`: a paired, interleaved proof of any two configurations on fresh runs."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from lsmtune.cli.bench import RUNNER_FLAG, OneRunnerOption, ProgramOption, RunnerFlags, one_runner
from lsmtune.cli.choices import resolve_named
from lsmtune.cli.flags import (
    CONFIDENCE_DEFAULT,
    BudgetOption,
    EngineOption,
    JsonOption,
    LibraryOption,
    LimitFlags,
    QuietOption,
    RunsDirOption,
    SeedOption,
    WorkloadFlags,
    WorkloadOption,
    command,
    confidence_of,
    duration_of,
    flag,
    share_of,
    under_workload,
)
from lsmtune.cli.gate import WORSE, GateFlags, add_to_history
from lsmtune.cli.output import note, print_result, status_of, warn
from lsmtune.errors import InputError, LsmtuneError, by_name, check_name
from lsmtune.experiment.files import explained, run_directory
from lsmtune.experiment.schedule import Arm
from lsmtune.machine.files import write_output
from lsmtune.model.config import EngineIdentity
from lsmtune.model.goal import Objective, default_direction
from lsmtune.model.metrics import METRICS, TOTAL_METRICS
from lsmtune.model.request import POWER_STATES_DEFAULT, POWER_STATES_MAX, PairMethod
from lsmtune.programs.output import NATIVE
from lsmtune.programs.registry import PROGRAMS
from lsmtune.units import format_bytes

if TYPE_CHECKING:
    from lsmtune.driver.runner import Runner
    from lsmtune.model.workload import Workload
    from lsmtune.programs.runner import RunnerChoice
    from lsmtune.proof.paired import ProofPlan
    from lsmtune.proof.standalone import Verification
    from lsmtune.proof.survival import SurvivalPlan, Survived
    from lsmtune.space.constraint import Constraint

DEFAULT = "default"
PAIRS_FLAG = "--pairs"
NO_CRASH_TEST_FLAG = "--no-crash-test"
NO_POWER_TEST_FLAG = "--no-power-test"
POWER_STATES_FLAG = "--power-states"
BASELINE_LIBRARY_FLAG = "--baseline-library"
CANDIDATE_LIBRARY_FLAG = "--candidate-library"
AUTO = "auto"
METHODS = (AUTO, *(method.value for method in PairMethod))
EXAMPLES = (
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
    "What is proved better is killed once in the middle of a load (--no-crash-test) and opened "
    "from states that a power loss may leave (--no-power-test), to see what its database keeps.",
    "Exit status 0: proved better; 3: neither better nor worse is proved; 4: proved worse. A "
    "candidate that puts data at risk, or that may come to use more than --memory, is refused "
    "without a run: 3.",
    "With --fail-if worse, a gate in CI, 0 also where both are proved equivalent: "
    "lsmtune verify --engine rocksdb --workload readrandom --baseline default --candidate OPTIONS "
    "--fail-if worse --smallest-effect 3% --history history.jsonl --markdown comment.md",
)
app = typer.Typer()


@dataclass(frozen=True)
class ComparedFlags:
    """What is compared with what, and under which workload."""

    engine: EngineOption
    workload: WorkloadOption = None
    configs: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="BASELINE CANDIDATE",
            help="The two configurations, in place of --baseline and --candidate.",
            show_default=False,
        ),
    ] = None
    candidate: str | None = flag(
        "--candidate CONFIG", "The configuration that is to be proved better."
    )
    baseline: str | None = flag("--baseline CONFIG", "What it is compared with; default if unset.")
    library: LibraryOption = None

    def names(self) -> dict[str, str]:
        """Baseline and candidate, each by the flag that names it.

        Raises InputError for anything but two configurations.
        """
        given = {"--baseline": self.baseline, "--candidate": self.candidate}
        if not self.configs:
            if self.candidate is None:
                why = "is missing: name what is to be proved better, or BASELINE CANDIDATE"
                raise InputError("--candidate", why=why)
            return {"--baseline": self.baseline or DEFAULT, "--candidate": self.candidate}
        for source, name in given.items():
            if name is not None:
                why = "has no effect beside BASELINE CANDIDATE: name both in the same way"
                raise InputError(source, found=name, why=why)
        if len(self.configs) != 2:
            found, allowed = " ".join(self.configs), "two, or --candidate CONFIG alone"
            raise InputError("BASELINE CANDIDATE", found=found, allowed=allowed)
        return dict(zip(given, self.configs, strict=True))


@dataclass(frozen=True)
class LibraryFlags:
    """The builds of the engine, where each side has its own."""

    baseline_library: Path | None = flag(
        f"{BASELINE_LIBRARY_FLAG} PATH", "The engine's library of the baseline alone."
    )
    candidate_library: Path | None = flag(
        f"{CANDIDATE_LIBRARY_FLAG} PATH",
        "The engine's library of the candidate alone: may I upgrade?",
    )


@dataclass(frozen=True)
class ProofFlags:
    """What is proved, how surely, and in which time."""

    metric: str = flag(
        "--metric NAME", "The metric that is compared.", Objective().metric, known=METRICS
    )
    phase: str | None = flag(
        "--phase NAME", "The measure phase whose metric is compared; the last if unset."
    )
    allow_unsafe: list[str] | None = flag(
        "--allow-unsafe NAME",
        "Run a candidate with this option although its value puts data at risk; repeat.",
    )
    pairs: int = flag(
        f"{PAIRS_FLAG} N",
        "At most so many pairs of runs; it ends as soon as the verdict is clear.",
        30,
        number=(1, 1000),
    )
    confidence: str = flag(
        "--confidence SHARE", "Of the ratio's interval: 95%.", CONFIDENCE_DEFAULT
    )
    smallest_effect: str | None = flag(
        "--smallest-effect SHARE",
        "A difference of less does not matter: 3%. Without it nothing is called equivalent.",
    )
    guard: list[str] | None = flag(
        "--guard TEXT",
        "What the gain may cost, in place of the default guards; repeat. Such as "
        "write_amplification <= 2 * baseline.",
    )
    no_guards: bool = flag("--no-guards", "The gain may cost whatever it costs.", False)
    burst: bool = flag(
        "--burst", "Prove a gain in short bursts: runs need not show a sustained rate.", False
    )
    method: str = flag(
        "--method NAME",
        f"How both runs of a pair share the machine: {', '.join(METHODS)}.",
        AUTO,
        known=METHODS,
    )
    budget: BudgetOption = None
    seed: SeedOption = 1
    no_crash_test: bool = flag(
        NO_CRASH_TEST_FLAG,
        "Do not kill a load of what was proved better to see what its database keeps.",
        False,
    )
    no_power_test: bool = flag(
        NO_POWER_TEST_FLAG, "Do not try what a power loss leaves of what was proved better.", False
    )
    power_states: int | None = flag(
        f"{POWER_STATES_FLAG} N",
        f"States after a power loss that are tried: {POWER_STATES_DEFAULT}.",
        number=(1, POWER_STATES_MAX),
    )
    directory: RunsDirOption = None

    @property
    def plan(self) -> ProofPlan:
        """The plan of these. Raises InputError for a value that cannot be used."""
        from lsmtune.proof.paired import ProofPlan
        from lsmtune.stats.sequential import pairs_at_least

        confidence, effect = confidence_of(self.confidence), self.smallest_effect
        least = pairs_at_least(confidence)
        if self.pairs < least:
            allowed = f"at least {least}, without which nothing is proved at {confidence:g}"
            raise InputError(PAIRS_FLAG, found=self.pairs, allowed=allowed)
        check_name(self.method, METHODS, "--method")
        return ProofPlan(
            pairs=self.pairs,
            confidence=confidence,
            deadline_s=None if self.budget is None else duration_of("--budget", self.budget),
            smallest_effect=None if effect is None else share_of("--smallest-effect", effect),
            method=None if self.method == AUTO else PairMethod(self.method),
        )

    @property
    def survival(self) -> SurvivalPlan:
        """What is proved better has to survive. Raises InputError for what cannot be meant."""
        from lsmtune.proof.survival import SurvivalPlan

        states = self.power_states
        if states is not None and self.no_power_test:
            why = f"has no effect beside {NO_POWER_TEST_FLAG}"
            raise InputError(POWER_STATES_FLAG, found=states, why=why)
        return SurvivalPlan(
            NO_CRASH_TEST_FLAG if self.no_crash_test else "",
            NO_POWER_TEST_FLAG if self.no_power_test else "",
            states or POWER_STATES_DEFAULT,
        )

    def guards(self, engine: str, workload: Workload) -> tuple[Constraint, ...]:
        """What the candidate may cost. Raises InputError for a text that is no guard."""
        from lsmtune.proof.guards import default_guards, make_guards

        if self.guard and self.no_guards:
            raise InputError("--guard", found=self.guard[0], why="has no effect with --no-guards")
        texts = [] if self.no_guards else self.guard or default_guards([workload])
        return make_guards(texts, engine, [workload], "--guard")


@command(app, "verify", EXAMPLES)
def _verify(
    *,
    compared: ComparedFlags,
    libraries: LibraryFlags,
    workload: WorkloadFlags,
    proof: ProofFlags,
    limits: LimitFlags,
    runner: OneRunnerOption = NATIVE,
    program: ProgramOption = None,
    gate: GateFlags,
    quiet: QuietOption = False,
    as_json: JsonOption = False,
) -> None:
    """Prove one configuration against another on paired, fresh runs."""
    from lsmtune.cli.verify_result import VerifyReport, document, markdown, view

    started_s = time.monotonic()
    runners = RunnerFlags(runner, program)
    runners.check(several=False)
    err = gate.check(proof.smallest_effect, as_json=as_json)
    if libraries.candidate_library and not compared.configs and compared.candidate is None:
        compared = replace(compared, candidate=compared.baseline or DEFAULT)
    asked = asked_of(compared, workload, proof, limits, native=runner == NATIVE)
    builds = _builds_of(libraries, compared, runners, asked.workload)
    if runner != NATIVE:
        chosen = by_name(PROGRAMS, runner, RUNNER_FLAG)
        chosen.check_reported(proof.metric, proof.phase, asked.workload, "--metric")
    asked = replace(
        asked,
        baseline=Arm(builds[0].engine, asked.baseline.config),
        candidate=Arm(builds[1].engine, asked.candidate.config),
    )
    refused, warnings = judged(asked, proof.allow_unsafe or ())
    if runner != NATIVE and asked.plan.method is None:
        from lsmtune.proof.pairs import slices_unusable

        warnings.append(f"the pairs are of whole runs: {slices_unusable((), native=False)}")
    notes = phase_notes(asked)
    warn(dict.fromkeys((*builds[0].warnings, *builds[1].warnings, *warnings)))
    if refused:
        from lsmtune.proof.survival import Survived
        from lsmtune.proof.verdict import not_proven

        why = f"refused, not run: {'; '.join(refused)}"
        result = Survived(not_proven(asked.goal, asked.plan.confidence, why))
    else:
        timed = asked.after(time.monotonic() - started_s)
        result = _prove(timed, builds[1].runner, proof.directory, quiet=quiet)
    report = VerifyReport(asked, result, refused, warnings, notes)
    failure: LsmtuneError | None = None
    try:
        report = replace(report, history=add_to_history(gate, asked, result.verdict))
        if gate.markdown is not None:
            write_output(gate.markdown, markdown(report))
    except LsmtuneError as error:  # what hours went to is told all the same
        failure = error
    print_result(document(report), view(report), failure, as_json=as_json, soft_wrap=True, err=err)
    raise typer.Exit(status_of(result.verdict, equivalent=gate.fail_if == WORSE))


def asked_of(
    compared: ComparedFlags,
    workload: WorkloadFlags,
    proof: ProofFlags,
    limits: LimitFlags,
    *,
    native: bool = True,
) -> Verification:
    """What the flags ask for, on engines of which only the name is known yet.

    `native`: lsmtune's own driver performs the runs. Raises InputError for what cannot be meant.
    """
    from lsmtune.proof.pairs import refusal
    from lsmtune.proof.standalone import Verification

    plan, engine = proof.plan, compared.engine
    choice = workload.choice(compared.workload, engine)
    chosen, limit = choice.workload, limits.limits
    why = refusal(plan.method, [chosen], native=native)
    if why:
        raise InputError("--method", found=proof.method, why=why)
    sides = []
    for source, name in compared.names().items():
        named = resolve_named(name, engine, source)
        if named.memory_bytes not in (None, limit.memory_bytes):
            searched, here = map(format_bytes, (named.memory_bytes, limit.memory_bytes))
            note(f"{name} was searched with --memory {searched}, and is compared with {here}")
        sides.append(under_workload(named.config, choice, engine, source))
    baseline, candidate = sides
    return Verification(
        Arm(EngineIdentity(engine), baseline),
        Arm(EngineIdentity(engine), candidate),
        chosen,
        objective_of(proof.metric, proof.phase, chosen),
        limit,
        proof.seed,
        plan,
        proof.survival,
        proof.guards(engine, chosen),
        proof.burst,
    )


def _builds_of(
    libraries: LibraryFlags, compared: ComparedFlags, runners: RunnerFlags, workload: Workload
) -> tuple[RunnerChoice, RunnerChoice]:
    """What performs the runs of baseline and candidate.

    Raises InputError, naming the flag, for a library that cannot be used, and for `--library`
    beside one for each side.
    """
    both = {
        BASELINE_LIBRARY_FLAG: libraries.baseline_library,
        CANDIDATE_LIBRARY_FLAG: libraries.candidate_library,
    }
    library = compared.library
    if not any(both.values()):
        one = one_runner(runners, compared.engine, library, workload)
        return one, one
    if library is not None and all(both.values()):
        why = f"has no effect beside {' and '.join(both)}"
        raise InputError("--library", found=str(library), why=why)
    sides = []
    for source, own in both.items():
        try:
            sides.append(one_runner(runners, compared.engine, own or library, workload))
        except InputError as error:
            if own is None or error.source != "--library":
                raise
            raise error.but(source=source) from None
    return sides[0], sides[1]


def objective_of(metric: str, phase: str | None, workload: Workload) -> Objective:
    """The Objective of `--metric` and `--phase`, in its usual direction."""
    check_name(metric, METRICS, "--metric")
    if phase is not None:
        check_name(phase, workload.measured_names, "--phase")
        if metric in TOTAL_METRICS:
            why = f"has no effect: {metric} is of all phases"
            raise InputError("--phase", found=phase, why=why)
    return Objective(metric, default_direction(metric), phase)


def judged(asked: Verification, allowed: Sequence[str]) -> tuple[list[str], list[str]]:
    """Why the candidate is refused, and warnings on both configurations, before any run.

    The unsafe options in `allowed` are warned of in place of refused. The baseline is never
    refused: it is what the user has, and nobody is told to deploy it. Raises InputError for an
    allowance without effect.
    """
    from lsmtune.engines.safety import ALLOW_FLAG, check_allowed, doubts

    baseline, candidate = (
        doubts(arm.engine, arm.config, asked.workload.durability, asked.limits, source)
        for arm, source in ((asked.baseline, "--baseline"), (asked.candidate, "--candidate"))
    )
    check_allowed(allowed, asked.engine.name, [baseline, candidate])
    warnings = [f"the baseline: {reason}" for reason in baseline.reasons()]
    warnings += [
        f"the candidate: {text}; {ALLOW_FLAG} lets it run, deploy it only where that is right"
        for text in candidate.warnings(allowed)
    ]
    return candidate.reasons(allowed), warnings


def phase_notes(asked: Verification) -> list[str]:
    """Which phase is judged, printed and returned, where there are several and none was named."""
    objective, (*others, last) = asked.objective, asked.workload.measured_names
    if not others or objective.phase is not None or objective.metric in TOTAL_METRICS:
        return []
    names = ", ".join(others)
    text = f"the last of several phases is judged, {last}; --phase NAME judges another: {names}"
    note(text)
    return [text]


def _prove(asked: Verification, runner: Runner, directory: Path | None, *, quiet: bool) -> Survived:
    """The verdict; raises typer.Exit when interrupted before it stood."""
    from lsmtune.cli.proof_progress import VerificationObserver, proof_display
    from lsmtune.machine.interrupts import interrupted, stop_on_interrupt
    from lsmtune.proof.standalone import proved

    with (
        proof_folder(directory) as path,
        proof_display(VerificationObserver, asked, asked.plan.pairs, quiet=quiet) as observer,
        stop_on_interrupt(observer.warning) as stop,
    ):
        result = proved(asked, path, runner, observer, stop)
    if result is None:
        raise interrupted(directory)
    return result


@contextmanager
def proof_folder(directory: Path | None) -> Iterator[Path]:
    """`directory`, or one of our own here that is removed afterwards."""
    if directory is not None:
        yield directory
        return
    with explained(Path.cwd()), run_directory(Path.cwd()) as path:
        yield path
