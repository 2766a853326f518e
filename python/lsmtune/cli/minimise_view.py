"""What `lsmtune minimise` says: for people, for programs, and as the engine's file of options."""

from __future__ import annotations

import shlex
from collections.abc import Sequence

from lsmtune.cli.choices import config_document, config_text
from lsmtune.cli.verify_result import OPT_IN
from lsmtune.engines.differences import differences, known_defaults
from lsmtune.engines.formats import export, own_format
from lsmtune.engines.formats.base import ExportFormat
from lsmtune.engines.library import ENGINE_KINDS
from lsmtune.errors import InputError
from lsmtune.model.config import Config, EngineIdentity
from lsmtune.model.verdict import Verdict, VerdictOutcome
from lsmtune.proof.minimise import Minimisation, OptionEffect
from lsmtune.proof.standalone import Verification
from lsmtune.report.differences import here_cell, there_cell
from lsmtune.report.document import (
    NOT_KNOWN,
    Block,
    Column,
    Notice,
    Notices,
    Paragraph,
    Table,
    paragraphs,
)
from lsmtune.report.verdict import verdict_blocks, verdict_line
from lsmtune.report.words import direction_words, interval, plain_ratio
from lsmtune.study.observer import verdict_document


def document(
    asked: Verification,
    result: Minimisation,
    same: Sequence[str],
    refused: Sequence[str],
    warnings: Sequence[str],
    notes: Sequence[str],
) -> dict[str, object]:
    """What `minimise --json` prints.

    The candidate is without the options in `same`, which change nothing. `refused` says why it was
    not run, `warnings` what must be known of either one, `notes` what was chosen because the user
    did not say.
    """
    verdicts = {"first": result.first, "gain": result.gain, "loss": result.loss}
    return {
        "baseline": config_document(asked.baseline.config),
        "candidate": config_document(asked.candidate.config),
        "kept": [_effect_document(effect) for effect in result.kept],
        "gone": [_effect_document(effect) for effect in result.gone],
        "same": list(same),
        **{name: None if v is None else verdict_document(v) for name, v in verdicts.items()},
        **result.survival.document(),
        "configuration": dict(result.config.options),
        "complete": result.complete,
        "why": result.why,
        "refused": list(refused),
        "warnings": list(warnings),
        "notes": list(notes),
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


def view(
    asked: Verification,
    result: Minimisation,
    same: Sequence[str],
    refused: Sequence[str],
    warnings: Sequence[str],
) -> list[Block]:
    """What became of each option, the result, and what must be known of it."""
    notices = Notices([Notice(warning) for warning in warnings])
    return [*_options(asked, result), *_result(asked, result, same, refused), notices]


def _options(asked: Verification, result: Minimisation) -> list[Block]:
    """What became of each option; empty where none was tried."""
    effects, engine = result.effects, asked.engine
    if not effects:
        return []
    before, after = asked.baseline.config.options, asked.candidate.config.options
    differ = differences(engine.name, after, before, known_defaults(engine))
    differing = {each.option: each for each in differ}
    level, together = effects[0].verdict.confidence, asked.plan.confidence
    about = (
        f"with the option over without it, {direction_words(asked.objective.direction)}; "
        f"each interval at {100 * level:.4g} %, so that all hold at {100 * together:.4g} %"
    )
    columns = (
        Column("option", key="option", number=False),
        Column("value", lambda effect: here_cell(differing[effect.option]), number=False),
        Column("baseline", lambda effect: there_cell(differing[effect.option]), number=False),
        Column(f"effect on {asked.objective.metric}", _effect, "verdict", number=False),
        Column("result", _became, number=False),
    )
    gone = {number: "same" for number, effect in enumerate(effects) if not effect.kept}
    return [Table.of(columns, effects, marks=gone), Paragraph(about, "quiet")]


def _effect(verdict: Verdict) -> str:
    """With the option over without it, as in `1.12x (1.08 to 1.17)`."""
    if verdict.ratio is None:
        return NOT_KNOWN
    return f"{plain_ratio(verdict.ratio)}x ({interval(verdict) or 'no interval'})"


def _became(effect: OptionEffect) -> str:
    what = "put back" if effect.restored else "kept" if effect.kept else "gone"
    if not effect.kept and effect.verdict.outcome is VerdictOutcome.WORSE:
        what = f"{what}, it does harm"
    return f"{what}: {effect.why}" if effect.why else what


def _result(
    asked: Verification, result: Minimisation, same: Sequence[str], refused: Sequence[str]
) -> list[Block]:
    """What is left of the options, what that gains and loses, and how to have it."""
    name = asked.candidate.label
    if refused:
        reasons = [f"  - {reason}" for reason in refused]
        return paragraphs([f"{name}: refused as a recommendation, and not run:", *reasons, OPT_IN])
    blocks: list[Block] = []
    if same:
        blocks.append(Paragraph(f"not tried, since they change nothing: {', '.join(same)}"))
    if not result.complete:
        return [*blocks, Paragraph("what is known so far; the rest was not tried")]
    if result.gain is None:
        blocks.append(Paragraph(f"nothing to minimise: {result.why}"))
        return blocks + ([] if result.first is None else verdict_blocks(result.first, f"{name}: "))
    blocks.append(Paragraph(f"{len(result.kept)} of {len(result.effects)} options kept"))
    loss = "none: it is the full candidate"
    if result.loss is not None:  # against the full candidate
        loss = verdict_line(result.loss).replace("the baseline", "the full candidate")
        loss = loss.replace("no proven gain", "no proven difference")
    blocks += verdict_blocks(result.gain, "gain     ")
    lines = [f"loss     {loss}", *result.survival.lines()]
    if result.is_proven:
        text, engine = config_text(result.config), asked.engine.name
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
    return blocks + paragraphs(lines)


def format_for(engine_name: str) -> ExportFormat:
    """The format of `--output`. Raises InputError for an engine that reads no file of options."""
    own = own_format(engine_name)
    if own is None:
        why = f"{engine_name} reads no file of options"
        raise InputError("--output", why=why, allowed=f"with {', '.join(ENGINE_KINDS)}")
    return own


def exported(engine: EngineIdentity, config: Config) -> str:
    """`config` as the engine's file of options. Raises InputError where it cannot be one."""
    own = format_for(engine.name).name
    return export(own, engine.name, config.options, version=engine.version, label=config.label)
