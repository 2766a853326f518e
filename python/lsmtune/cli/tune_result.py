"""The end of a tune: the files it leaves, and what it says."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

from lsmtune.cli.choices import is_beside, shortest
from lsmtune.engines.formats import export, own_format
from lsmtune.errors import InputError, LsmtuneError
from lsmtune.experiment.files import explained
from lsmtune.experiment.folder import StudyFolder
from lsmtune.experiment.store import Role
from lsmtune.model.codec import encode
from lsmtune.model.config import EngineIdentity
from lsmtune.model.measurement import Outcome
from lsmtune.model.verdict import VerdictOutcome
from lsmtune.report.differences import difference_lines
from lsmtune.report.document import Block, Notice, Notices, paragraphs
from lsmtune.report.history import front
from lsmtune.report.notices import warnings_of
from lsmtune.report.source import StudyRecords, read_study
from lsmtune.report.verdict import KEEP, verdict_blocks
from lsmtune.report.words import count, none_best, quantity
from lsmtune.study.observer import TuneResult, result_document
from lsmtune.study.spec import Spec

PARAMETERS = "parameters.json"
_FRONT_ROWS = 8


@dataclass(frozen=True)
class ResultFiles:
    """Where the report and the deployable file are; `trouble` says why one is missing."""

    report: Path | None = None
    deployable: Path | None = None
    trouble: tuple[str, ...] = ()


def write_result_files(
    folder: StudyFolder, spec: Spec, result: TuneResult, engine: EngineIdentity
) -> ResultFiles:
    """Writes both for a study that is finished; nothing for one that was interrupted."""
    from lsmtune.report.study import write_as

    if result.interrupted:
        return ResultFiles()
    files = _write_deployable(folder, spec, result, engine)
    _remove_others(folder, spec.engine_name, files.deployable)
    try:
        report, _ = write_as(folder, "html")
        return replace(files, report=report)
    except LsmtuneError as error:
        # Hours of measuring must not end without their verdict because a page cannot be written.
        return replace(files, trouble=(*files.trouble, f"no report: {error}"))


def _write_deployable(
    folder: StudyFolder, spec: Spec, result: TuneResult, engine: EngineIdentity
) -> ResultFiles:
    best, name = result.best, spec.engine_name
    if best is None:
        return ResultFiles(trouble=(f"no configuration to deploy: {_without_best(result)}",))
    trouble: tuple[str, ...] = ()
    if spec.command is None:
        own = own_format(name)
        if own is None:
            return ResultFiles(trouble=(f"{name} reads no file of options",))
        try:
            text = export(own.name, name, best.options, version=engine.version, label=best.label)
            return ResultFiles(deployable=folder.write_result(own.file_name, text))
        except InputError as error:
            # The options are all the same what the study was for: they are kept in another form.
            instead = f"the options are in {PARAMETERS} instead"
            trouble = (f"no {own.file_name} file: {error}; {instead}",)
    parameters = {"label": best.label, "parameters": dict(best.options)}
    return ResultFiles(deployable=folder.write_result(PARAMETERS, parameters), trouble=trouble)


def _remove_others(folder: StudyFolder, engine: str, written: Path | None) -> None:
    """Leave nothing of an earlier session to deploy beside what was `written` now, if anything."""
    own = own_format(engine)
    names = [PARAMETERS] if own is None else [PARAMETERS, own.file_name]
    with explained(folder.path):
        for path in (folder.result_path / name for name in names):
            if path != written:
                path.unlink(missing_ok=True)


def tune_document(
    spec: Spec, folder: StudyFolder, result: TuneResult, files: ResultFiles
) -> dict[str, object]:
    """What `tune --json` prints; `front` are the trials that no other beats."""
    records = read_study(folder)
    trade_offs = front(records)
    on_front = None
    if trade_offs is not None:
        on_front = [
            {
                "trial": row.trial,
                "values": dict(zip(trade_offs.objectives, row.values, strict=True)),
                "ratios": dict(zip(trade_offs.objectives, row.ratios, strict=True)),
                "picked": row.is_picked,
                "options": dict(row.options),
            }
            for row in trade_offs.rows
        ]
    return {
        "study": {"name": spec.name, "file": str(spec.path), "seed": spec.seed},
        **result_document(result),
        "notices": [*(notice.line for notice in warnings_of(records)), *files.trouble],
        "front": on_front,
        "paths": encode(
            {"folder": folder.path, "report": files.report, "deployable": files.deployable}
        ),
    }


def tune_view(
    spec: Spec, folder: StudyFolder, result: TuneResult, files: ResultFiles
) -> list[Block]:
    """What `tune` prints at its end: options, verdict, notices, paths."""
    records = read_study(folder)
    blocks = paragraphs([*_options(spec, result), ""])
    lines: list[str] = []
    if result.verdict is not None:
        blocks += verdict_blocks(result.verdict, f"tuned vs {result.baseline.label}: ")
        lines += result.survival.lines()
        if result.verdict.outcome is not VerdictOutcome.BETTER:
            lines.append(KEEP)
    blocks += paragraphs([*lines, *_front_lines(spec, records)])
    blocks.append(Notices([*warnings_of(records), *map(Notice, files.trouble)]))
    lines = [""]
    if files.report is not None:
        lines.append(f"report      {files.report}")
    if files.deployable is not None:
        proved = result.verdict is not None and result.verdict.outcome is VerdictOutcome.BETTER
        label = "deployable  {}" if proved else "candidate   {} (no gain is proved)"
        lines.append(label.format(files.deployable))
    lines.append(f"study       {spec.name}, {count(result.trials, 'trial')} in {folder.path}")
    return [*blocks, *paragraphs(lines)]


def _front_lines(spec: Spec, records: StudyRecords) -> list[str]:
    """The front in a few lines; the report has all of it."""
    trade_offs = front(records)
    if trade_offs is None or not trade_offs.rows:
        return []
    named = shortest(spec.path if is_beside(records.path, spec.path) else records.path)
    named = f"{named}#{trade_offs.rows[0].trial}"
    lines = [f"front: {len(trade_offs.rows)} configurations; each has a name, such as {named}"]
    for row in trade_offs.rows[:_FRONT_ROWS]:
        values = ", ".join(
            quantity(metric, value)
            for metric, value in zip(trade_offs.metrics, row.values, strict=True)
        )
        lines.append(f"  trial {row.trial}: {values}{' (picked)' if row.is_picked else ''}")
    left = len(trade_offs.rows) - _FRONT_ROWS
    return lines + ([f"  and {left} more in the report"] if left > 0 else [])


def all_failed(folder: StudyFolder, spec: Spec, result: TuneResult) -> LsmtuneError | None:
    """The failure of a study that ran trials of which none gave a value."""
    if result.interrupted or result.best is not None or not result.trials:
        return None
    runs = [m for m in folder.measurements.all() if m.role in (Role.TRIAL, Role.RUNG)]
    last = runs[-1].measurement
    if last.outcome is Outcome.OK:
        return None
    return LsmtuneError(
        f"{spec.path}: none of {result.trials} trials gave a value; the last one ended {last.ended}"
    )


def _options(spec: Spec, result: TuneResult) -> list[str]:
    """What the best differs in, each beside the baseline's; the rest is only counted."""
    if result.best is None:
        return [_without_best(result)]
    lines = [f"tuned options (trial {result.best_trial}):"]
    best, baseline = result.best, result.baseline
    differing = difference_lines(best, baseline, spec.engine_name, spec.defaults)
    return lines + [f"  {line}" for line in differing]


def _without_best(result: TuneResult) -> str:
    """Why a study has no best configuration."""
    return f"no trial {none_best(valued=bool(result.counts.get(Outcome.OK.value)))}"
