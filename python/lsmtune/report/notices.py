"""What the reader must know before trusting or deploying: one function per kind of notice."""

from __future__ import annotations

from collections.abc import Iterable

from lsmtune.engines.safety import flattened, unsafe_option
from lsmtune.experiment.run_length import factor_wanted, run_length, scaled_num
from lsmtune.experiment.store import StoredMeasurement
from lsmtune.model.config import Build, option_text
from lsmtune.model.measurement import Outcome
from lsmtune.model.workload import Durability
from lsmtune.report.front import Edge, edges
from lsmtune.report.source import StudyRecords, arms, chosen, workload_label
from lsmtune.report.tables import Arm, Notice, Severity
from lsmtune.report.trust import CACHED_SHARE_MAX, STEAL_SHARE_MAX, conditions
from lsmtune.report.trust_tables import Conditions
from lsmtune.units import format_bytes
from lsmtune.workloads.stated import sizes_for


def run_notices(records: StudyRecords) -> list[Notice]:
    """All of them."""
    return [*_length(records), *condition_notices(conditions(records))]


def condition_notices(found: Conditions) -> list[Notice]:
    """What of the conditions of the runs must be known."""
    return [*_cold(found), *_steal(found)]


def _length(records: StudyRecords) -> list[Notice]:
    """By the last run of each arm under each workload: most runs of an arm say much the same."""
    last: dict[tuple[Arm, int], StoredMeasurement] = {}
    for arm, runs in arms(records).items():
        for stored in runs:
            if stored.measurement.outcome is Outcome.OK:
                last[arm, stored.workload] = stored
    said: dict[str, list[str]] = {}
    for (arm, _), stored in last.items():
        for line in run_length(stored.measurement):
            said.setdefault(f"{_under(records, stored)}{line}", []).append(arm.value)
    if not said:
        return []
    lines = (f"{line} ({' and '.join(of)})" for line, of in said.items())
    return [
        Notice(
            Severity.WARNING,
            "run_length",
            "Runs may be too short to say what is sustained",
            f"By the last run of each: {'; '.join(lines)}. {_advice(records, list(last.values()))}",
        )
    ]


def _under(records: StudyRecords, stored: StoredMeasurement) -> str:
    label = workload_label(records, stored)
    return f"under {label} " if label else ""


def _advice(records: StudyRecords, runs: list[StoredMeasurement]) -> str:
    """How many keys would do for each workload, where that can be told."""
    wanted: dict[int, int] = {}
    for stored in runs:
        factor = factor_wanted(stored.measurement)
        num = records.workloads[stored.workload].workload.num
        if factor is not None and factor > 1.0:
            most = max(wanted.get(stored.workload, 0), scaled_num(num, factor))
            wanted[stored.workload] = most
    if not wanted:
        return "Longer runs say more."
    several = len(records.workloads) > 1
    sizes = (
        _sizes(records, index, num) + (f" for {records.workloads[index].label}" if several else "")
        for index, num in sorted(wanted.items())
    )
    return f"Tune again with longer runs, at least {', '.join(sizes)}."


def _sizes(records: StudyRecords, index: int, num: int) -> str:
    stated = sizes_for(records.workloads[index].workload, num)
    return ", ".join(f"{name}: {value}" for name, value in stated.items())


def _cold(found: Conditions) -> list[Notice]:
    share = found.cached_share_max
    if not found.cold_runs or (share is not None and share <= CACHED_SHARE_MAX):
        return []
    if share is None:
        title, text = (
            "Nothing shows that the cold runs began cold",
            (
                "The driver could not find out how much of the database the kernel still held in "
                "memory, here or for this engine."
            ),
        )
        return [Notice(Severity.INFO, "page_cache", title, text)]
    return [
        Notice(
            Severity.WARNING,
            "page_cache",
            "Cold runs did not begin cold",
            f"In one of them {100 * share:.0f} % of the database was still in the page cache when "
            "its measure phase began: the kernel did not drop it. Reads look faster than from the "
            "device; use `page_cache: direct`, or a filesystem that is not in memory.",
        )
    ]


def _steal(found: Conditions) -> list[Notice]:
    if not found.steal_runs_disturbed or found.steal_share_max is None:
        return []
    usual = (found.steal_share_median or 0.0) > STEAL_SHARE_MAX
    return [
        Notice(
            Severity.WARNING if usual else Severity.INFO,
            "steal",
            "The host took processor time from runs",
            f"More than {100 * STEAL_SHARE_MAX:.0f} % in {found.steal_runs_disturbed} of "
            f"{found.steal_runs} runs, at most {100 * found.steal_share_max:.0f} %. Single runs "
            "say less for it; pairs, as in a proof, stand it best.",
        )
    ]


# --- What the reader must know before trusting or deploying: one function per kind of notice

_ORDER = (Severity.DANGER, Severity.WARNING, Severity.INFO)


def notices(records: StudyRecords, histogram_problems: Iterable[str] = ()) -> tuple[Notice, ...]:
    """All notices of the study, the gravest first."""
    found = [
        *_data_loss(records),
        *_unsafe(records),
        *_unsafe_allowed(records),
        *_durability(records),
        *_assertions(records),
        *_engines(records),
        *_not_taken(records),
        *run_notices(records),
        *_edges(records),
        *_failed_pairs(records),
        *_failed_runs(records),
        *_driver_warnings(records),
        *(
            Notice(Severity.WARNING, "histogram", "A latency histogram cannot be read", problem)
            for problem in histogram_problems
        ),
    ]
    return tuple(sorted(found, key=lambda notice: _ORDER.index(notice.severity)))


def _data_loss(records: StudyRecords) -> list[Notice]:
    lost = [s for s in records.measurements if s.measurement.outcome is Outcome.DATA_LOSS]
    if not lost:
        return []
    return [
        Notice(
            Severity.DANGER,
            "data_loss",
            f"{_runs(len(lost))} lost data",
            "Keys that were written could not be read back. Do not deploy the options of "
            f"{_places(s.trial for s in lost)}; report it to the engine's authors.",
        )
    ]


def _unsafe(records: StudyRecords) -> list[Notice]:
    tuned, engines = chosen(records), {s.measurement.engine.name for s in records.measurements}
    if tuned is None:
        return []
    options = {**records.fixed, **tuned.config.options}
    found = []
    for engine in sorted(engines):
        for name, value in flattened(options):
            unsafe = unsafe_option(engine, name, records.workload.durability)
            if unsafe is not None and unsafe.unsafe_values([value]):
                title = f"{name}={option_text(value)} trades data for speed"
                text = f"{unsafe.reason}. Deploy it only where that is acceptable."
                found.append(Notice(Severity.DANGER, "unsafe_option", title, _sentence(text)))
    return found


def _unsafe_allowed(records: StudyRecords) -> list[Notice]:
    return [
        Notice(
            Severity.INFO,
            "unsafe_allowed",
            f"The study allowed itself {name}, which is unsafe",
            _sentence(f"{reason}."),
        )
        for name, reason in sorted(records.unsafe_allowed.items())
    ]


def _durability(records: StudyRecords) -> list[Notice]:
    if records.workload.durability is not Durability.NONE:
        return []
    return [
        Notice(
            Severity.WARNING,
            "durability",
            "Measured with the write-ahead log off",
            "Writes since the last flush are lost when the process dies. The figures hold only "
            "for a deployment that runs without the log too.",
        )
    ]


def _assertions(records: StudyRecords) -> list[Notice]:
    return [
        Notice(
            Severity.WARNING,
            "assertions_on",
            "The engine library was built with assertions on",
            f"{library} is slower than a release build, and not evenly so. Tune again "
            "with a release build: `lsmtune engines` lists those at hand.",
        )
        for library in sorted(
            {
                s.measurement.engine.library or s.measurement.engine.name
                for s in records.measurements
                if s.measurement.engine.build is Build.ASSERTIONS_ON
            }
        )
    ]


def _engines(records: StudyRecords) -> list[Notice]:
    versions = sorted(
        {
            f"{s.measurement.engine.name} {s.measurement.engine.version or '(version not known)'}"
            for s in records.measurements
            if s.measurement.outcome is Outcome.OK
        }
    )
    if len(versions) < 2:
        return []
    return [
        Notice(
            Severity.WARNING,
            "engine_changed",
            "More than one engine version in one study",
            f"Runs were made on {', '.join(versions)}: their figures do not compare.",
        )
    ]


def _not_taken(records: StudyRecords) -> list[Notice]:
    found: dict[tuple[str, str, str], int] = {}
    for stored in records.measurements:
        for option in stored.measurement.options_not_taken:
            if option.effective is not None:
                key = (option.name, option.requested, option.effective)
                found[key] = found.get(key, 0) + 1
    return [
        Notice(
            Severity.WARNING,
            "option_not_taken",
            f"The engine did not take {name}={requested}",
            f"It ran with {effective} instead, in {_runs(count)}. "
            "Its slice shows what was asked for, not what ran.",
        )
        for (name, requested, effective), count in found.items()
    ]


def _edges(records: StudyRecords) -> list[Notice]:
    tuned = chosen(records)
    found = [] if tuned is None else edges(records.parameters, tuned.config.options)
    return [_edge(edge) for edge in found]


def _edge(edge: Edge) -> Notice:
    word = {"low": "lower", "high": "upper"}[edge.side]
    title = f"The best {edge.parameter.name} lies on the {word} edge of its range"
    text = f"{_shown(edge, edge.value)} is the {edge.side}est value that was allowed"
    if edge.value != edge.bound():
        nearest = f"the {edge.side}est value that was allowed, {_shown(edge, edge.bound())}"
        text = f"{_shown(edge, edge.value)} is next to {nearest}"
    if edge.proposed is None:
        return Notice(
            Severity.INFO, "edge_of_range", title, f"{text}, and nothing sensible lies beyond it."
        )
    low, high = (_shown(edge, bound) for bound in edge.proposed)
    also = [*(["a finer step"] if edge.needs_finer_step() else []), *_moved_prior(edge)]
    also_text = f", and {' and '.join(also)}" if also else ""
    text += f"; a better one may lie beyond. Tune again with low: {low}, high: {high}{also_text}."
    return Notice(Severity.WARNING, "edge_of_range", title, text)


def _moved_prior(edge: Edge) -> list[str]:
    """A prior keeps the search where it expects the best, wherever the bounds are."""
    return ["a prior that reaches there"] if edge.parameter.prior is not None else []


def _shown(edge: Edge, value: object) -> str:
    if edge.parameter.unit == "bytes" and isinstance(value, int):
        return format_bytes(value)
    return f"{value:g}" if isinstance(value, float) else str(value)


def _failed_pairs(records: StudyRecords) -> list[Notice]:
    verdict = records.verdict
    if verdict is None or not verdict.pairs_failed:
        return []
    return [
        Notice(
            Severity.DANGER,
            "pairs_failed",
            f"{verdict.pairs_failed} of {verdict.pairs + verdict.pairs_failed} pairs failed",
            "A run of the proof did not end well, so the verdict stands on the other pairs alone. "
            "Look at the failures before deploying.",
        )
    ]


def _failed_runs(records: StudyRecords) -> list[Notice]:
    failed: dict[Outcome, int] = {}
    for stored in records.measurements:
        outcome = stored.measurement.outcome
        if outcome not in (Outcome.OK, Outcome.PRUNED, Outcome.DATA_LOSS):
            failed[outcome] = failed.get(outcome, 0) + 1
    if not failed:
        return []
    kinds = ", ".join(f"{count} {kind.value.replace('_', ' ')}" for kind, count in failed.items())
    return [
        Notice(
            Severity.INFO,
            "failed_runs",
            f"{sum(failed.values())} of {_runs(len(records.measurements))} failed",
            f"By kind: {kinds}. They count against their options and are listed under Failures.",
        )
    ]


def _driver_warnings(records: StudyRecords) -> list[Notice]:
    found: dict[str, int] = {}
    for stored in records.measurements:
        for warning in stored.measurement.warnings:
            found[warning] = found.get(warning, 0) + 1
    return [
        Notice(Severity.INFO, "run_warning", "A run warned", f"{text} ({_runs(count)})")
        for text, count in found.items()
    ]


def _places(trials: Iterable[int | None]) -> str:
    numbers = sorted({trial for trial in trials if trial is not None})
    return f"trial {', '.join(map(str, numbers))}" if numbers else "those runs"


def _runs(count: int) -> str:
    return f"{count} run" if count == 1 else f"{count} runs"


def _sentence(text: str) -> str:
    return text[:1].upper() + text[1:]
