"""What the reader must know before trusting or deploying: of the runs, the options, the proof."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

from lsmtune.engines.safety import unsafe_uses
from lsmtune.experiment.run_length import factor_advised, length_warnings, scaled_num
from lsmtune.experiment.store import StoredMeasurement
from lsmtune.model.config import Build, OptionValue, option_text
from lsmtune.model.measurement import Measurement, Outcome
from lsmtune.model.workload import Durability, Workload
from lsmtune.report import words
from lsmtune.report.document import Notice, Severity
from lsmtune.report.history import share_of_range
from lsmtune.report.source import StudyRecords, arms, chosen, workload_label
from lsmtune.report.tables import Arm, Conditions
from lsmtune.report.trust import CACHED_SHARE_MAX, STEAL_SHARE_MAX, conditions
from lsmtune.space.parameter import Parameter
from lsmtune.space.range import Range
from lsmtune.workloads.stated import size_advice


def _notice(severity: Severity, kind: str, title: str, text: str) -> Notice:
    return Notice(text, title, severity, kind)


_danger = partial(_notice, Severity.DANGER)
_warning = partial(_notice, Severity.WARNING)
_info = partial(_notice, Severity.INFO)


def notices(records: StudyRecords, histogram_problems: Iterable[str] = ()) -> tuple[Notice, ...]:
    """All notices of the study, the gravest first."""
    of_study = [
        *_of_safety(records),
        *_of_engine(records),
        *_length(records),
        *condition_notices(conditions(records)),
        *_edges(records),
        *_of_failures(records),
        *(
            _warning("histogram", "A latency histogram cannot be read", problem)
            for problem in histogram_problems
        ),
    ]
    return tuple(sorted(of_study, key=lambda notice: -list(Severity).index(notice.severity)))


def warnings_of(records: StudyRecords) -> list[Notice]:
    """The notices that ask for something: without those that only inform."""
    return [each for each in notices(records) if each.severity is not Severity.INFO]


def _of_safety(records: StudyRecords) -> Iterator[Notice]:
    """Data that was lost, or may be: by what the runs did, the options, the workload."""
    runs, tuned = records.measurements, chosen(records)
    workloads = records.spec.workloads
    classes = dict.fromkeys(each.workload.durability for each in workloads)
    lost = [stored for stored in runs if stored.measurement.outcome is Outcome.DATA_LOSS]
    if lost:
        numbers = sorted({stored.trial for stored in lost if stored.trial is not None})
        those = f"trial {', '.join(map(str, numbers))}" if numbers else "those runs"
        yield _danger(
            "data_loss",
            f"{words.count(len(lost), 'run')} lost data",
            "Keys that were written could not be read back. Do not deploy the options of "
            f"{those}; report it to the engine's authors.",
        )
    options = {} if tuned is None else {**records.spec.fixed, **tuned.config.options}
    for engine in sorted({stored.measurement.engine.name for stored in runs}):
        uses = (use for each in classes for use in unsafe_uses(engine, options, each))
        for name, value, reason in dict.fromkeys(uses):
            title = f"{name}={option_text(value)} trades data for speed"
            text = f"{reason}. Deploy it only where that is acceptable."
            yield _danger("unsafe_option", title, words.sentence(text))
    for name, reason in sorted(records.spec.unsafe_options.items()):
        title = f"The study allowed itself {name}, which is unsafe"
        yield _info("unsafe_allowed", title, words.sentence(f"{reason}."))
    unlogged = [each.label for each in workloads if each.workload.durability is Durability.NONE]
    if unlogged:
        under = f" under {', '.join(unlogged)}" if len(unlogged) < len(workloads) else ""
        yield _warning(
            "durability",
            f"Measured with the write-ahead log off{under}",
            "Writes since the last flush are lost when the process dies. The figures hold only "
            "for a deployment that runs without the log too.",
        )


def _of_engine(records: StudyRecords) -> Iterator[Notice]:
    """Builds with assertions, versions that changed, and options that did not take."""
    runs = [stored.measurement for stored in records.measurements]
    slow = (run.engine for run in runs if run.engine.build is Build.ASSERTIONS_ON)
    for library in sorted({engine.library or engine.name for engine in slow}):
        yield _warning(
            "assertions_on",
            "The engine library was built with assertions on",
            f"{library} is slower than a release build, and not evenly so. Tune again "
            "with a release build: `lsmtune engines` lists those at hand.",
        )
    builds = {run.engine.build for run in runs}
    if Build.SLOW_SNAPPY in builds:
        yield _warning(
            "slow_snappy",
            "The library's Snappy was compiled without optimisation",
            "It compresses at a fourth of the speed of other builds, so that what another "
            "compression gains over it holds for this library alone.",
        )
    if Build.OWN_SNAPPY in builds:
        yield _info(
            "own_snappy",
            "Snappy is that of lsmtune",
            "That inside the library was compiled without optimisation, and compresses at a fourth "
            "of the speed of other builds. If you deploy this very library, measure it as it is: "
            "copy it into another folder, and name the copy (`engine.library`, `--library PATH`).",
        )
    good = (run.engine for run in runs if run.outcome is Outcome.OK)
    versions = sorted({f"{e.name} {e.version or '(version not known)'}" for e in good})
    if len(versions) > 1:
        yield _warning(
            "engine_changed",
            "More than one engine version in one study",
            f"Runs were made on {', '.join(versions)}: their figures do not compare.",
        )
    replaced = Counter(option for run in runs for option in run.options_replaced)
    for option, count in replaced.items():
        yield _warning(
            "option_not_taken",
            f"The engine did not take {option.name}={option.requested}",
            f"It ran with {option.effective} instead, in {words.count(count, 'run')}. "
            "Its slice shows what was asked for, not what ran.",
        )


# --- Under what the runs were made


def _length(records: StudyRecords) -> Iterator[Notice]:
    """By the last run of each arm under each workload: most runs of an arm say much the same."""
    last: dict[tuple[Arm, int], StoredMeasurement] = {}
    for arm, runs in arms(records).items():
        for stored in runs:
            if stored.measurement.outcome is Outcome.OK:
                last[arm, stored.workload] = stored
    warned: dict[str, list[str]] = {}  # the arms, by what is wrong with their runs
    wanted: dict[int, int] = {}  # the keys that would do, by the number of the workload
    for (arm, index), stored in last.items():
        label = workload_label(records, stored)
        for line in length_warnings(stored.measurement):
            warned.setdefault(f"under {label} {line}" if label else line, []).append(arm.value)
        factor = factor_advised(stored.measurement)
        workload = records.spec.workloads[index].workload
        times = _times_as_much(stored.measurement, workload)
        if factor is not None and factor > 1.0 and factor * times > 1.0:
            num = scaled_num(workload.num, factor * times)
            wanted[index] = max(wanted.get(index, 0), num)
    if not warned:
        return
    # How many keys would do for each workload, where that can be told: none of a model, whose runs
    # the target would make long enough.
    several, sizes = len(records.spec.workloads) > 1, []
    for index, num in sorted(wanted.items()):
        weighted = records.spec.workloads[index]
        size = size_advice(weighted.workload, num, weighted.parameters, "{}: {}", ", ")
        sizes.append(f"{size} for {weighted.label}" if several else size)
    advice = f"Tune again with longer runs, at least {', '.join(sizes)}."
    lines = "; ".join(f"{line} ({' and '.join(of)})" for line, of in warned.items())
    yield _warning(
        "run_length",
        "Runs may be too short to say what is sustained",
        f"By the last run of each: {lines}. {advice if sizes else 'Longer runs say more.'}",
    )


def _times_as_much(run: Measurement, workload: Workload) -> float:
    """How many times as much `run` measured as `workload` states, in two digits.

    Runs of a proof, and of trials with larger memtables, are longer, and those of a model smaller.
    """
    stated, times = {phase.name: phase for phase in workload.measured_phases}, []
    for phase in run.measured_phases:
        of = stated.get(phase.name)
        if of is not None and of.operations_whole:
            times.append(phase.operations / of.operations_whole)
        if of is not None and of.duration_s:
            times.append(phase.elapsed_s / of.duration_s)
    return float(f"{max(times):.2g}") if times else 1.0


def condition_notices(under: Conditions) -> Iterator[Notice]:
    """What of the conditions of the runs must be known."""
    cached = under.cached_share_max if under.cold_runs else 0.0
    if cached is None:
        yield _info(
            "page_cache",
            "Nothing shows that the cold runs began cold",
            "The driver could not find out how much of the database the kernel still held in "
            "memory, here or for this engine.",
        )
    elif cached > CACHED_SHARE_MAX:
        yield _warning(
            "page_cache",
            "Cold runs did not begin cold",
            f"In one of them {100 * cached:.0f} % of the database was still in the page cache when "
            "its measure phase began: the kernel did not drop it. Reads look faster than from the "
            "device; use `page_cache: direct`, or a filesystem that is not in memory.",
        )
    if under.steal_runs_disturbed and under.steal_share_max is not None:
        usual = (under.steal_share_median or 0.0) > STEAL_SHARE_MAX
        yield _notice(
            Severity.WARNING if usual else Severity.INFO,
            "steal",
            "The host took processor time from runs",
            f"More than {100 * STEAL_SHARE_MAX:.0f} % in {under.steal_runs_disturbed} of "
            f"{under.steal_runs} runs, at most {100 * under.steal_share_max:.0f} %. Single runs "
            "say less for it; pairs, as in a proof, stand it best.",
        )


# --- Values on the edge of a range, and a wider range to try: the optimum may lie beyond

# How far a range is widened on the side of the edge: by a factor on a log scale, else by a share
# of its width. Two doublings reach a new region without leaving most of the old one behind.
_FACTOR = 4
_SHARE = 0.5
# A sampler that wants to go beyond an edge stops short of it by a little: so near is on it.
_NEAR = 0.01  # of the range, on its own scale


@dataclass(frozen=True)
class Edge:
    """`value` of `parameter` is on a `side` (`low` or `high`) of its range, `numbers`.

    On the side is also what is within 1 % of the range of it, on the range's scale. `proposed` is
    the range to try, None where nothing sensible lies beyond (a range that begins at zero or one,
    or next to a special value).
    """

    parameter: Parameter
    numbers: Range
    side: str
    value: float
    proposed: tuple[float, float] | None

    def needs_finer_step(self) -> bool:
        """Whether the proposed range does not lie on the grid of the parameter's step."""
        if self.numbers.step is None or self.proposed is None:
            return False
        steps = (self.numbers.low - self.proposed[0]) / self.numbers.step
        return not math.isclose(steps, round(steps), abs_tol=1e-6)


def edges(parameters: tuple[Parameter, ...], options: Mapping[str, OptionValue]) -> list[Edge]:
    """The parameters whose value in `options` lies on a bound of its range, or next to it.

    A special value is on no edge: it lies outside the range.
    """
    on_edge = []
    for parameter in parameters:
        value, numbers = options.get(parameter.name), parameter.numbers
        if numbers is None or isinstance(value, str | bool) or value is None:
            continue
        side = side_of(numbers, value)
        if side is not None:
            specials = [special.value for special in parameter.specials]
            proposed = proposed_range(numbers, side, specials)
            on_edge.append(Edge(parameter, numbers, side, value, proposed))
    return on_edge


def side_of(numbers: Range, value: float) -> str | None:
    """`low` or `high` when `value` lies on that bound or within 1 % of the range of it."""
    if not numbers.low <= value <= numbers.high:
        return None
    place = share_of_range(numbers, value)
    if place <= _NEAR:
        return "low"
    return "high" if place >= 1 - _NEAR else None


def proposed_range(
    numbers: Range, side: str, specials: Sequence[float] = ()
) -> tuple[float, float] | None:
    """`numbers` widened on `side`, on the grid of its step, or None where it cannot be.

    A wider range stops before the next of the `specials`, which mean something else.
    """
    if side == "high":
        step = numbers.step or (1 if numbers.integer else 0)
        beyond = numbers.high + max(step, (numbers.high - numbers.low) * _SHARE)
        beyond = numbers.high * _FACTOR if numbers.log else beyond
        first = min((special for special in specials if special > numbers.high), default=None)
        if first is not None and beyond >= first:
            beyond = first - _gap(numbers)
        high = _on_grid(numbers, beyond)
        return (numbers.low, high) if high > numbers.high else None
    if numbers.low == 0:
        return None
    # Sizes and counts stay above zero: beyond it lies another meaning, not a smaller one.
    wider = numbers.low - (numbers.high - numbers.low) * _SHARE
    beyond = numbers.low / _FACTOR if numbers.low > 0 else wider
    last = max((special for special in specials if special < numbers.low), default=None)
    if last is not None and beyond <= last:
        beyond = last + _gap(numbers)
    low = _on_grid(numbers, beyond)
    if low >= numbers.low and numbers.step is not None:
        # A range that begins at its own step has no grid point below; a finer step has.
        low = _on_grid(replace(numbers, step=None), beyond)
    return (low, numbers.high) if low < numbers.low else None


def _gap(numbers: Range) -> float:
    """How far from a special value a range keeps: one step, or a hundredth of its width."""
    return numbers.step or (1 if numbers.integer else _NEAR * (numbers.high - numbers.low))


def _on_grid(numbers: Range, bound: float) -> float:
    """`bound` moved towards the range onto the grid of its step, and onto integers."""
    step = numbers.step or (1 if numbers.integer else 0)
    if not step:
        return bound
    inward = math.ceil if bound < numbers.low else math.floor
    origin = 0 if numbers.log else numbers.low
    moved = origin + inward(round((bound - origin) / step, 9)) * step
    return int(moved) if numbers.integer else moved


def _edges(records: StudyRecords) -> Iterator[Notice]:
    tuned = chosen(records)
    options = {} if tuned is None else tuned.config.options
    for edge in edges(records.spec.space.parameters, options):
        word = {"low": "lower", "high": "upper"}[edge.side]
        title = f"The best {edge.parameter.name} lies on the {word} edge of its range"
        text = f"{_shown(edge, edge.value)} is the {edge.side}est value that was allowed"
        bound = edge.numbers.low if edge.side == "low" else edge.numbers.high
        if edge.value != bound:
            nearest = f"the {edge.side}est value that was allowed, {_shown(edge, bound)}"
            text = f"{_shown(edge, edge.value)} is next to {nearest}"
        if edge.proposed is None:
            yield _info("edge_of_range", title, f"{text}, and nothing sensible lies beyond it.")
            continue
        low, high = (_shown(edge, end) for end in edge.proposed)
        also = ["a finer step"] if edge.needs_finer_step() else []
        if edge.parameter.prior is not None:
            # It keeps the search where it expects the best, wherever the bounds are.
            also.append("a prior that reaches there")
        with_also = f", and {' and '.join(also)}" if also else ""
        advice = f"Tune again with low: {low}, high: {high}{with_also}."
        yield _warning("edge_of_range", title, f"{text}; a better one may lie beyond. {advice}")


def _shown(edge: Edge, value: float) -> str:
    """As a study file takes it."""
    return f"{value:g}" if isinstance(value, float) else words.option(value, edge.parameter.unit)


# --- What failed


def _of_failures(records: StudyRecords) -> Iterator[Notice]:
    """Pairs and runs that failed, and what runs warned of."""
    verdict, runs = records.verdict, [stored.measurement for stored in records.measurements]
    if verdict is not None and verdict.pairs_failed:
        pairs = verdict.pairs + verdict.pairs_failed
        yield _danger(
            "pairs_failed",
            f"{verdict.pairs_failed:,} of {words.count(pairs, 'pair')} failed",
            "A run of the proof did not end well, so the verdict stands on the other pairs alone. "
            "Look at the failures before deploying.",
        )
    no_failure = (Outcome.OK, Outcome.PRUNED, Outcome.DATA_LOSS)
    failed = Counter(run.outcome for run in runs if run.outcome not in no_failure)
    if failed:
        kinds = ", ".join(f"{n:,} {words.outcome(outcome)}" for outcome, n in failed.items())
        yield _info(
            "failed_runs",
            f"{failed.total():,} of {words.count(len(runs), 'run')} failed",
            f"By kind: {kinds}. They count against their options and are listed under Failures.",
        )
    for text, count in Counter(warning for run in runs for warning in run.warnings).items():
        yield _info("run_warning", "A run warned", f"{text} ({words.count(count, 'run')})")
