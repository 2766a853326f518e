"""Notices on how the runs were made: too short, not cold, disturbed by the host."""

from __future__ import annotations

from lsmtune.analysis.conditions import CACHED_SHARE_MAX, STEAL_SHARE_MAX, conditions
from lsmtune.analysis.runs import arms, workload_label
from lsmtune.analysis.source import StudyRecords
from lsmtune.analysis.tables import Arm, Notice, Severity
from lsmtune.analysis.trust_tables import Conditions
from lsmtune.proof.run_length import factor_wanted, run_length, scaled_num
from lsmtune.records.measurement import Outcome
from lsmtune.storage.measurements import StoredMeasurement
from lsmtune.workloads import sizes_for


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
