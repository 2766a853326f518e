"""`lsmtune minimise`: the fewest options that keep a configuration's proven gain."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from lsmtune.cli.bench import native_runner
from lsmtune.cli.flags import (
    ForceOption,
    JsonOption,
    LimitFlags,
    QuietOption,
    WorkloadFlags,
    command,
    option,
)
from lsmtune.cli.output import check_outputs, print_result, say, status_of, warn
from lsmtune.cli.verify import (
    PAIRS_FLAG,
    ComparedFlags,
    ProofFlags,
    asked_of,
    judged,
    phase_notes,
    proof_folder,
)
from lsmtune.errors import InputError, LsmtuneError
from lsmtune.experiment.schedule import Arm
from lsmtune.machine.files import write_output

if TYPE_CHECKING:
    from lsmtune.driver.runner import Runner
    from lsmtune.proof.minimise import Minimisation
    from lsmtune.proof.paired import ProofPlan
    from lsmtune.proof.standalone import Verification

EXAMPLES = (
    "lsmtune minimise default study.yaml --engine rocksdb --workload fillrandom --budget 30m "
    "--output OPTIONS",
    "lsmtune minimise --engine leveldb --workload readrandom --candidate study.yaml#17 "
    "--smallest-effect 2% --dir fewest",
    "Each option goes back to the baseline's value in turn, the risky ones first, and stays "
    "there unless the gain is proved to need it. --dir DIR keeps the runs, and the same "
    "command goes on from them; those of `lsmtune verify` count as well.",
    "Exit status 0: the gain is kept, and proved; 3: none is proved, or the candidate is "
    "refused as in verify; 4: the candidate is proved worse.",
)
app = typer.Typer()


@command(app, "minimise", EXAMPLES)
def _minimise(
    *,
    compared: ComparedFlags,
    workload: WorkloadFlags,
    proof: ProofFlags,
    output: Path | None = option(
        "--output FILE", "Write the result as the engine's file of options; - is stdout.", None
    ),
    force: ForceOption = False,
    limits: LimitFlags,
    quiet: QuietOption = False,
    as_json: JsonOption = False,
) -> None:
    """Find the fewest options that keep a configuration's gain."""
    from lsmtune.cli.minimise_view import document, exported, format_for, view
    from lsmtune.machine.interrupts import interrupted
    from lsmtune.proof.minimise import Minimisation, differing_options, without_same_values

    started_s = time.monotonic()
    err = check_outputs([("--output", output)], force=force, as_json=as_json)
    if output is not None:
        format_for(compared.engine)
    asked = asked_of(compared, workload, proof, limits)
    by = native_runner(compared.engine, compared.library)
    before = asked.baseline.config
    least, same = without_same_values(before, asked.candidate.config, by.engine)
    asked = replace(asked, baseline=Arm(by.engine, before), candidate=Arm(by.engine, least))
    _check_pairs(asked.plan, len(differing_options(before, least)))
    allowed = proof.allow_unsafe or ()
    refused, warnings = judged(asked, allowed)
    warn((*by.warnings, *warnings))
    notes = phase_notes(asked)
    if refused:
        why = f"refused, not run: {'; '.join(refused)}"
        result = Minimisation(asked.candidate.config, why=why)
    else:
        timed = asked.after(time.monotonic() - started_s)
        result = _carry_out(timed, allowed, by.runner, proof.directory, quiet=quiet)
    failure: LsmtuneError | None = None if result.complete else interrupted(proof.directory)
    if output is not None and failure is None and result.is_proven:
        try:
            write_output(output, exported(by.engine, result.config))
        except LsmtuneError as error:  # what hours went to is told all the same
            failure = error
    blocks = view(asked, result, same, refused, warnings)
    fields = document(asked, result, same, refused, warnings, notes)
    print_result(fields, blocks, failure, as_json=as_json, soft_wrap=True, err=err)
    if not result.is_proven:
        raise typer.Exit(status_of(result.gain or result.first))
    if output is not None and not err:
        say(f"the minimal configuration is in {output}")


def _check_pairs(plan: ProofPlan, options: int) -> None:
    """Raises InputError for fewer pairs than each step needs to prove anything.

    The more options, the surer each step has to be for all of them together to be right.
    """
    from lsmtune.proof.minimise import confidence_each, steps_of
    from lsmtune.stats.sequential import pairs_at_least

    least = pairs_at_least(confidence_each(plan.confidence, options))
    if plan.pairs < least:
        allowed = (
            f"at least {least}, without which nothing is proved in {steps_of(options)} steps that "
            f"hold together at {plan.confidence:g}"
        )
        raise InputError(PAIRS_FLAG, found=plan.pairs, allowed=allowed)


def _carry_out(
    asked: Verification,
    allowed: Sequence[str],
    runner: Runner,
    directory: Path | None,
    *,
    quiet: bool,
) -> Minimisation:
    """Runs the steps with their display; Ctrl-C stops them in order."""
    from lsmtune.cli.proof_progress import MinimisationObserver, proof_display
    from lsmtune.engines.safety import doubts
    from lsmtune.machine.interrupts import stop_on_interrupt
    from lsmtune.proof.minimise import differing_options, minimised, steps_of

    def refusal(arm: Arm) -> str:
        """A mixture may be refused although both wholes may be recommended."""
        durability = asked.workload.durability
        doubtful = doubts(arm.engine, arm.config, durability, asked.limits, arm.label)
        reasons = "; ".join(doubtful.reasons(allowed))
        return f"the configuration is refused: {reasons}" if reasons else ""

    pairs = asked.plan.pairs * steps_of(
        len(differing_options(asked.baseline.config, asked.candidate.config))
    )
    with (
        proof_folder(directory) as path,
        proof_display(MinimisationObserver, asked, pairs, quiet=quiet) as observer,
        stop_on_interrupt(observer.warning) as stop,
    ):
        return minimised(asked, refusal, path, runner, observer, stop)
