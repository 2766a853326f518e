"""What `lsmtune minimise` says: for people, for programs, and as the engine's file of options."""

from __future__ import annotations

import shlex
from dataclasses import dataclass
from functools import partial

from rich.console import RenderableType

from lsmtune.cli.config_text import config_document, config_text, value_text
from lsmtune.cli.output import interval, verdict_line, verdict_lines
from lsmtune.cli.verify_result import OPT_IN
from lsmtune.engines.catalogue import catalogue_defaults
from lsmtune.engines.formats import export, own_format
from lsmtune.engines.formats.base import ExportFormat
from lsmtune.engines.library import ENGINE_KINDS
from lsmtune.errors import InputError
from lsmtune.model.verdict import Verdict, VerdictOutcome
from lsmtune.proof.minimise import Minimised, OptionEffect
from lsmtune.proof.standalone import Verification
from lsmtune.report.document import NOT_KNOWN, Column, Paragraph, Table
from lsmtune.report.terminal import blocks_view
from lsmtune.study.observer import verdict_document
from lsmtune.units import format_ratio


@dataclass(frozen=True)
class Minimising:
    """What was asked: the candidate is without the options in `same`, which change nothing.

    `refused` says why the candidate was not run, `warnings` what must be known of either one,
    `notes` what was chosen because the user did not say.
    """

    verification: Verification
    same: tuple[str, ...] = ()
    refused: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()


def document(asked: Minimising, minimised: Minimised) -> dict[str, object]:
    """What `minimise --json` prints."""
    result = minimised.result
    verdicts = {"first": result.first, "gain": result.gain, "loss": result.loss}
    return {
        "baseline": config_document(asked.verification.baseline.config),
        "candidate": config_document(asked.verification.candidate.config),
        "kept": [_effect_document(effect) for effect in result.kept],
        "gone": [_effect_document(effect) for effect in result.gone],
        "same": list(asked.same),
        **{name: None if v is None else verdict_document(v) for name, v in verdicts.items()},
        **minimised.survival.document(),
        "configuration": dict(result.config.options),
        "complete": result.complete,
        "why": result.why,
        "refused": list(asked.refused),
        "warnings": list(asked.warnings),
        "notes": list(asked.notes),
    }


def _effect_document(effect: OptionEffect) -> dict[str, object]:
    return {
        "option": effect.option,
        "value": effect.value,
        "baseline_value": effect.baseline_value,
        "verdict": verdict_document(effect.verdict),
        "restored": effect.restored,
        "why": effect.why,
    }


def options_table(asked: Minimising, minimised: Minimised) -> RenderableType | None:
    """What became of each option; None where none was tried."""
    effects, verification = minimised.result.effects, asked.verification
    if not effects:
        return None
    better = "lower" if verification.objective.direction == "minimize" else "higher"
    level, together = effects[0].verdict.confidence, verification.plan.confidence
    about = (
        f"with the option over without it, {better} is better; each interval at "
        f"{100 * level:.4g} %, so that all hold at {100 * together:.4g} %"
    )
    columns = (
        Column("option", key="option", number=False),
        Column("value", partial(_value, verification, "value"), number=False),
        Column("baseline", partial(_value, verification, "baseline_value"), number=False),
        *(
            Column(f"effect on {verification.objective.metric}", _effect, "verdict", number=False),
            Column("result", _became, number=False),
        ),
    )
    gone = {number: "same" for number, effect in enumerate(effects) if not effect.kept}
    return blocks_view([Table.of(columns, effects, marks=gone), Paragraph(about, "quiet")])


def _value(verification: Verification, side: str, effect: OptionEffect) -> str:
    """A value for people; the engine's default where the configuration sets none."""
    engine, value = verification.engine, getattr(effect, side)
    if value is None and engine.version:
        value = catalogue_defaults(engine.name, engine.version).get(effect.option)
    return value_text(engine.name, effect.option, value)


def _effect(verdict: Verdict) -> str:
    """With the option over without it, as in `1.12x (1.08 to 1.17)`."""
    if verdict.ratio is None:
        return NOT_KNOWN
    return f"{format_ratio(verdict.ratio)}x ({interval(verdict) or 'no interval'})"


def _became(effect: OptionEffect) -> str:
    what = "put back" if effect.restored else "kept" if effect.kept else "gone"
    if not effect.kept:
        harm = effect.verdict.outcome is VerdictOutcome.WORSE
        what = f"{what}, it does harm" if harm else what
    return f"{what}: {effect.why}" if effect.why else what


def result_lines(asked: Minimising, minimised: Minimised) -> list[str]:
    """What the result gains and loses, the result itself, and what must be known of it."""
    return [*_lines(asked, minimised), *(f"warning: {text}" for text in asked.warnings)]


def _lines(asked: Minimising, minimised: Minimised) -> list[str]:
    result, verification = minimised.result, asked.verification
    name = verification.candidate.label
    if asked.refused:
        reasons = [f"  - {reason}" for reason in asked.refused]
        return [f"{name}: refused as a recommendation, and not run:", *reasons, OPT_IN]
    lines = []
    if asked.same:
        lines.append(f"not tried, since they change nothing: {', '.join(asked.same)}")
    if not result.complete:
        return [*lines, "what is known so far; the rest was not tried"]
    if result.gain is None:
        lines.append(f"nothing to minimise: {result.why}")
        return lines + ([] if result.first is None else verdict_lines(result.first, f"{name}: "))
    lines.append(f"{len(result.kept)} of {len(result.effects)} options kept")
    loss = "none: it is the full candidate"
    if result.loss is not None:  # against the full candidate
        loss = verdict_line(result.loss).replace("the baseline", "the full candidate")
        loss = loss.replace("no proven gain", "no proven difference")
    lines += [*verdict_lines(result.gain, "gain     "), f"loss     {loss}"]
    lines += minimised.survival.lines()
    if result.is_proven:
        text, engine = config_text(result.config), verification.engine.name
        lines.append(f"minimal configuration: {text}")
        own = own_format(engine)
        if own is not None:
            lines.append(
                f"lsmtune export {shlex.quote(text)} --engine {engine} --format {own.name} "
                f"--output {own.file_name}"
            )
    elif result.gain.outcome is VerdictOutcome.NOT_PROVEN:
        more = "give it more time (--budget) or pairs (--pairs)"
        lines.append(f"{name} is proved better, what is left of it is not: {more}")
    return lines


def format_for(engine_name: str) -> ExportFormat:
    """The format of `--output`. Raises InputError for an engine that reads no file of options."""
    own = own_format(engine_name)
    if own is None:
        why = f"{engine_name} reads no file of options"
        raise InputError("--output", why=why, allowed=f"with {', '.join(ENGINE_KINDS)}")
    return own


def exported(asked: Minimising, minimised: Minimised) -> str:
    """The result as the engine's file of options. Raises InputError where it cannot be one."""
    engine, config = asked.verification.engine, minimised.result.config
    return export(
        format_for(engine.name).name,
        engine.name,
        config.options,
        version=engine.version,
        label=config.label,
    )
